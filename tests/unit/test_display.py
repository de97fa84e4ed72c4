"""What people read: cells, tables, the funnel, and how the columns of ``weir show`` are told apart."""

from __future__ import annotations

import datetime
import io

import pytest

from jobs.runtime.display import CELL, cell, print_record, print_table
from jobs.runtime.funnel import funnel_rows, print_funnel
from jobs.runtime.inspect import _split
from jobs.runtime.runs import Count, RunRecord


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (True, "yes"), (False, "no"), (0, "0"), (1234567, "1,234,567"), (-1234, "-1,234"), (0.5, "0.5"),
        (0.123456, "0.123"), (999.4, "999"), (999.6, "1,000"), (-999.6, "-1,000"), (123456.7, "123,457"),
        (1e-9, "1e-09"), (float("nan"), "nan"), (float("inf"), "inf"), (b"\x01\xff", "01ff"), (bytes(32), "0" * 12 + "…"),
        (datetime.datetime(2024, 3, 10, 2, 30, 5, 999), "2024-03-10 02:30:05"), (" a\n\tb  c ", "a b c"), ("", ""),
        ([1, "a"], "[1, 'a']"),
    ],
)  # fmt: skip
def test_a_value_as_people_read_it(value: object, text: str) -> None:
    assert cell(value) == text


def test_long_cells_are_cut_with_an_ellipsis() -> None:
    assert cell("x" * CELL) == "x" * CELL
    assert cell("x" * (CELL + 1)) == "x" * (CELL - 1) + "…"


def test_a_table_outside_a_terminal_is_not_cut() -> None:
    stream = io.StringIO()
    print_table("", ["name", "n"], [["a" * 100, 5], ["[bold]b[/bold]", 12345]], right=["n"], stream=stream)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines == [f"{'name':<100}       n", f"{'a' * 100}       5", f"{'[bold]b[/bold]':<100}  12,345"]


def test_a_record_has_a_line_a_column() -> None:
    stream = io.StringIO()
    print_record({"a": 1, "long": None}, stream)
    assert stream.getvalue() == "  a     1\n  long  -\n"


def record(job: str, step: str, *counts: Count) -> RunRecord:
    made = RunRecord("r", job, step, "default", "done", "0", "{}", "x")
    made.take(counts)
    return made


RECORDS = [
    record("ingest", "", Count("a", "in", "", 10), Count("b", "in", "", 5), Count("a", "quarantined", "bad_json", 1),
           Count("a", "dropped", "already_there", 2), Count("a", "kept", "", 7)),
    record("annotate", "", Count("a", "in", "", 7), Count("a", "kept", "", 7, 70)),
    record("exact-dedup", "exact_dedup", Count("a", "in", "", 7, 70), Count("a", "dropped", "empty", 1, 0),
           Count("a", "dropped", "exact_duplicate", 2, 20), Count("a", "kept", "", 4, 50)),
    record("select", "", Count("a", "kept", "", 4, 50), Count("a", "dropped", "empty", 3, 20)),
    record("validate", ""),
]  # fmt: skip


def test_the_funnel_counts_each_loss_once() -> None:
    assert funnel_rows(RECORDS) == [
        ("read", "a", "", 10, None),
        ("read", "b", "", 5, None),
        ("rejected", "a", "bad_json", 1, None),
        ("not new", "a", "already_there", 2, None),
        ("dropped by exact_dedup", "a", "empty", 1, 0),
        ("dropped by exact_dedup", "a", "exact_duplicate", 2, 20),
        ("kept", "a", "", 4, 50),
    ]


def test_the_funnel_as_a_table_has_totals(capsys: pytest.CaptureFixture[str]) -> None:
    print_funnel(RECORDS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["stage", "source", "reason", "documents", "tokens"],
        ["read", "a", "10", "-"],
        ["b", "5", "-"],
        ["all", "15", "-"],
        ["rejected", "a", "bad_json", "1", "-"],
        ["not", "new", "a", "already_there", "2", "-"],
        ["dropped", "by", "exact_dedup", "a", "empty", "1", "0"],
        ["a", "exact_duplicate", "2", "20"],
        ["all", "3", "20"],
        ["kept", "a", "4", "50"],
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a, b ,c", ["a", "b", "c"]),
        ("concat(a, b), c", ["concat(a, b)", "c"]),
        ("f(g(a, b), c), d[1, 2]", ["f(g(a, b), c)", "d[1, 2]"]),
        ("a || ',' AS x, b", ["a || ',' AS x", "b"]),
        ("'(' AS x, b", ["'(' AS x", "b"]),
        ("`odd, name`, b", ["`odd, name`", "b"]),
        ("a,,b,", ["a", "b"]),
        ("", []),
    ],
)
def test_columns_are_divided_at_commas_of_their_own(text: str, parts: list[str]) -> None:
    assert _split(text) == parts
