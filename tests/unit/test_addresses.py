"""Where things are: tables in a warehouse, scratch folders, names in SQL, run ids."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.errors import SettingsError
from jobs.runtime.runs import Count, RunRecord, check_run_id, new_run_id
from jobs.runtime.scratch import Scratch
from jobs.runtime.tables import TableRef, is_catalog, sql_in, sql_string

NO_SPARK: Any = None


@pytest.mark.parametrize(
    "warehouse", ["main.corpus", "corpus.", "a.b.", "my-catalog.my_schema", "spark_catalog.default"]
)
def test_warehouses_that_are_schemas(warehouse: str) -> None:
    assert is_catalog(warehouse)
    ref = TableRef.in_warehouse(warehouse, "documents")
    assert ref.is_name
    assert ref.address == warehouse.rstrip(".") + ".documents"


@pytest.mark.parametrize(
    "warehouse", ["warehouse", "./warehouse", "/lake/v1.2", "../a.b", "~/a.b", ".", "..", ".hidden", "s3a://bucket/a.b",
                  "a.b/c", "1a.b", "a.b.c.d"]
)  # fmt: skip
def test_warehouses_that_are_folders(warehouse: str) -> None:
    assert not is_catalog(warehouse)
    assert not TableRef.in_warehouse(warehouse, "documents").is_name


def test_a_table_s_address_in_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Absolute: the workers' current folder is another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for warehouse in ("lake", "./lake", "~/lake", str(tmp_path / "lake"), "lake/"):
        assert TableRef.in_warehouse(warehouse, "runs").address == str(tmp_path / "lake" / "runs"), warehouse


def test_a_table_s_address_in_an_object_store() -> None:
    assert TableRef.in_warehouse("s3a://bucket/lake/", "runs").address == "s3a://bucket/lake/runs"
    assert TableRef.in_warehouse("file:/lake", "runs").address == "file:/lake/runs"


@pytest.mark.parametrize("warehouse", ["", "  "])
def test_a_warehouse_that_is_empty(warehouse: str) -> None:
    with pytest.raises(SettingsError, match="setting 'warehouse' is empty"):
        TableRef.in_warehouse(warehouse, "runs")


def test_identifiers_are_quoted() -> None:
    assert TableRef("main.corpus.runs", True).identifier == "`main`.`corpus`.`runs`"
    assert TableRef("/lake/o`dd/runs", False).identifier == "delta.`/lake/o``dd/runs`"


@pytest.mark.parametrize(
    ("value", "literal"), [("a", "'a'"), ("it's", "'it\\'s'"), ("a\\b", "'a\\\\b'"), ("\\'", "'\\\\\\''"), ("", "''")]
)
def test_strings_in_sql_can_t_end_early(value: str, literal: str) -> None:
    assert sql_string(value) == literal


def test_a_list_in_sql_is_sorted() -> None:
    assert sql_in("batch", ["b", "a'"]) == "batch IN ('a\\'', 'b')"


# --- scratch


def scratch(run_id: str, job: str = "ingest", **values: Any) -> Scratch:
    return Scratch(NO_SPARK, values.pop("warehouse", "/lake"), run_id, job, **values)


def test_scratch_lies_in_the_warehouse_unless_it_is_set() -> None:
    assert re.fullmatch(r"/lake/scratch/r1-ingest-[0-9a-f]{8}", scratch("r1").folder)
    assert scratch("r1", location="s3a://b/tmp").folder.startswith("s3a://b/tmp/scratch/r1-ingest-")
    assert scratch("r1").folder == scratch("r1").folder


def test_runs_and_jobs_never_share_scratch_data() -> None:
    """``a:b`` and ``a+b`` are both a_b once safe for a file name."""
    folders = {scratch(*names).folder for names in (("a:b",), ("a+b",), ("a_b",), ("a", "b-ingest"), ("a-b", "ingest"))}
    assert len(folders) == 5
    assert all(re.fullmatch(r"/lake/scratch/[A-Za-z0-9_.\-]+", folder) for folder in folders)


def test_scratch_in_a_catalog() -> None:
    assert scratch("r", warehouse="main.corpus").in_catalog
    assert not scratch("r", warehouse="main.corpus", location="/tmp/x").in_catalog
    assert not scratch("r").in_catalog


# --- run ids


@pytest.mark.parametrize("run_id", ["a", "2024-03-10", "manual__2024-03-10T02:30:00+00:00", "A.b_c:d+e-1", "x" * 128])
def test_run_ids_of_schedulers(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize("run_id", ["", " a", "a b", "-a", ".a", "a/b", "a'b", "a\n", "é", "x" * 129])
def test_run_ids_that_can_t_be_used(run_id: str) -> None:
    with pytest.raises(SettingsError, match="1 to 128 letters, digits") as caught:
        check_run_id(run_id)
    assert "scheduler" not in str(caught.value)


def test_a_template_that_was_not_filled_in_is_recognised() -> None:
    """All runs would share one id, and every run but the first would do nothing."""
    for template in ("{{ run_id }}", "{{ds}}"):
        with pytest.raises(SettingsError, match="scheduler's template that was not filled in"):
            check_run_id(template)


def test_run_ids_that_are_made_can_be_used_and_differ() -> None:
    made = {new_run_id() for _ in range(50)}
    assert len(made) == 50
    assert all(check_run_id(run_id) == run_id for run_id in made)


# --- run records


def record(**values: Any) -> RunRecord:
    return RunRecord("r", "ingest", "", "default", "started", "0", "{}", "x", **values)


def test_totals_follow_from_the_counts() -> None:
    run = record()
    run.take([
        Count("b", "in", "", 3, bytes=30), Count("a", "in", "", 4, bytes=40), Count("a", "kept", "", 5),
        Count("a", "dropped", "x", 1), Count("b", "quarantined", "bad_json", 1),
    ])  # fmt: skip
    assert (run.documents_in, run.documents_kept, run.documents_dropped, run.documents_quarantined) == (7, 5, 1, 1)
    assert run.bytes == 70
    assert [(c["source"], c["outcome"]) for c in run.counts] == sorted((c["source"], c["outcome"]) for c in run.counts)


def test_totals_pass_32_bits_and_unknown_bytes_stay_unknown() -> None:
    run = record()
    run.take([Count("a", "in", "", 1_500_000_000)] * 3)
    assert run.documents_in == 4_500_000_000
    assert run.bytes is None


def test_a_finished_record_has_rates() -> None:
    run = record(cores=2)
    run.take([Count("a", "in", "", 100, bytes=10**9)])
    run.started_at -= datetime.timedelta(seconds=10)
    run.finish("done", 0)
    assert run.seconds is not None and 10 <= run.seconds < 11
    assert run.documents_per_core_second == pytest.approx(100 / run.seconds / 2)
    assert run.gb_per_core_hour == pytest.approx(1 / (run.seconds / 3600) / 2)
    assert (run.status, run.exit_code, run.error) == ("done", 0, None)
