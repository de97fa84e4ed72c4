"""The gate's plain parts, without a JVM and without Great Expectations: what blocks, what a suite must hold, and
how floors and totals are compared."""

from __future__ import annotations

import dataclasses
import json
import logging
import subprocess
import sys
import warnings
from typing import Any

import pytest

from expectations.checkpoint import _quiet, error_message
from expectations.coverage import Floor, coverage_observed, coverage_suite, coverage_violations
from expectations.integrity import (
    ExpectedTotals,
    GroupTotals,
    integrity_suite,
    sum_differences,
    sums_observed,
    sums_to_match,
)
from expectations.results import ExpectationResult
from expectations.slices import slice_label, slice_names, slice_values
from expectations.suite import (
    NO_NULL_OR_NAN,
    ROW_FLOOR,
    SLICE_COVERAGE,
    SUMS_TO_MATCH,
    UNIQUE_KEY,
    Expectation,
    Suite,
    no_null_or_nan,
    row_floor,
    unique_key,
)


def result(**changes: Any) -> ExpectationResult:
    fields: dict[str, Any] = {
        "suite": "integrity",
        "expectation": ROW_FLOOR,
        "description": "The frame has at least 1 row.",
        "column": None,
        "severity": "critical",
        "success": True,
        "errored": False,
        "observed": "3",
        "limit": '{"min_value": 1}',
    }
    return ExpectationResult(**{**fields, **changes})


@pytest.mark.parametrize(
    ("severity", "success", "errored", "blocks"),
    [
        ("critical", True, False, False),
        ("critical", False, False, True),
        ("warning", False, False, False),
        ("info", False, False, False),
        ("critical", False, True, True),
        ("warning", False, True, True),
        ("info", False, True, True),
    ],
)
def test_a_critical_failure_blocks_and_so_does_any_error(
    severity: str, success: bool, errored: bool, blocks: bool
) -> None:
    assert result(severity=severity, success=success, errored=errored).blocks is blocks


def test_a_result_cannot_claim_success_after_an_error() -> None:
    with pytest.raises(ValueError, match="an error proves nothing"):
        result(success=True, errored=True)


def test_a_result_with_an_unknown_severity_is_refused_because_it_would_never_block() -> None:
    with pytest.raises(ValueError, match="severity is 'fatal'"):
        result(severity="fatal", success=False)


def test_a_result_is_frozen_so_that_a_gate_cannot_be_edited_after_the_fact() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result().success = False  # type: ignore[misc]


def test_importing_the_package_loads_neither_great_expectations_nor_spark() -> None:
    """Every job imports suites; the library costs seconds and may only be loaded by a run."""
    modules = ["expectations", "expectations.results", "expectations.coverage", "expectations.integrity"]
    code = (
        f"import sys, importlib; [importlib.import_module(m) for m in {[*modules, 'expectations.checkpoint']}]; "
        "sys.exit(bool({'great_expectations', 'pyspark'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- suites


@pytest.mark.parametrize(
    "expectations",
    [
        (),
        (unique_key(["doc_id"]),),
        (Expectation(ROW_FLOOR, {"min_value": 0}, "any number of rows"),),
        (Expectation(ROW_FLOOR, {"max_value": 9}, "few rows"),),
        (Expectation(ROW_FLOOR, {"min_value": 1}, "a row", severity="warning"),),
    ],
)
def test_a_suite_without_a_critical_row_floor_cannot_be_built(expectations: tuple[Expectation, ...]) -> None:
    """O-VAL-01: all other expectations hold on an empty table."""
    with pytest.raises(ValueError, match="no critical floor of at least one row"):
        Suite("quality", expectations)


def test_the_same_expectation_twice_is_refused_because_one_of_them_would_be_dropped() -> None:
    with pytest.raises(ValueError, match="twice"):
        Suite("s", (row_floor(), no_null_or_nan("tokens"), no_null_or_nan("tokens", severity="warning")))


def test_a_row_floor_of_zero_is_refused_because_it_cannot_fail() -> None:
    with pytest.raises(ValueError, match="can't fail"):
        row_floor(0)


@pytest.mark.parametrize("value", [{1, 2}, float("nan")])
def test_limits_that_json_cannot_hold_are_refused_because_they_could_not_be_stored(value: Any) -> None:
    with pytest.raises(ValueError, match="must be JSON values"):
        Expectation("expect_x", {"limit": value}, "x")


def test_equal_limits_are_equal_strings_whatever_the_order_of_the_arguments() -> None:
    assert Expectation("expect_x", {"b": 1, "a": "é"}, "x").limit == '{"a": "é", "b": 1}'


def test_the_integrity_suite_checks_rows_key_presence_and_totals() -> None:
    totals = ExpectedTotals(("source",), (GroupTotals("web", 2, {"tokens": 4_500_000_000}),))
    suite = integrity_suite(key=("policy", "doc_id"), numeric=("tokens", "doc_id"), totals=(totals,))
    assert [(expectation.type, expectation.column) for expectation in suite.expectations] == [
        (ROW_FLOOR, None),
        (UNIQUE_KEY, None),
        (NO_NULL_OR_NAN, "policy"),
        (NO_NULL_OR_NAN, "doc_id"),
        (NO_NULL_OR_NAN, "source"),
        (NO_NULL_OR_NAN, "tokens"),
        (SUMS_TO_MATCH, None),
    ]
    assert suite.expectations[1].description == "Every policy + doc_id occurs once."
    assert json.loads(suite.expectations[-1].limit)["expected"][0]["sums"]["tokens"] == 4_500_000_000


def test_the_severity_of_a_suite_never_softens_its_row_floor() -> None:
    suites = [
        integrity_suite(severity="warning"),
        coverage_suite(["source"], ["web"], Floor(1), severity="info"),
    ]
    assert [suite.expectations[0].severity for suite in suites] == ["critical", "critical"]
    assert {expectation.severity for expectation in suites[0].expectations[1:]} == {"warning"}
    assert suites[1].expectations[1].severity == "info"


# --- coverage


def floors_of(suite: Suite) -> dict[tuple[str | None, ...], tuple[int, int]]:
    coverage = suite.expectations[1]
    assert coverage.type == SLICE_COVERAGE
    return {tuple(floor["slice"]): (floor["documents"], floor["tokens"]) for floor in coverage.arguments["floors"]}


def test_an_override_changes_only_the_unit_that_it_names_and_plans_its_slice() -> None:
    suite = coverage_suite(
        ["source"],
        ["web", "books", None],
        Floor(documents=10, tokens=1_000),
        overrides={"books": Floor(documents=3), "forum": Floor(tokens=0), "<null>": Floor(documents=0)},
    )
    assert floors_of(suite) == {
        ("web",): (10, 1_000),
        ("books",): (3, 1_000),
        (None,): (0, 1_000),
        ("forum",): (10, 0),
    }


def test_a_slice_of_two_columns_has_one_value_for_each() -> None:
    suite = coverage_suite(["source", "language"], [("web", "en"), ["web", None]], Floor(documents=1))
    assert floors_of(suite) == {("web", "en"): (1, 0), ("web", None): (1, 0)}
    with pytest.raises(ValueError, match="has 1 values, but slices are by 2 columns"):
        coverage_suite(["source", "language"], ["web"], Floor(documents=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"per": []}, "at least one column"),
        ({"planned": []}, "list of planned slices"),
        ({"floor": Floor()}, "every coverage floor is 0"),
        ({"floor": Floor(tokens=1), "token_column": None}, "no token column"),
    ],
)
def test_coverage_that_could_not_fail_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coverage_suite(
            arguments.get("per", ["source"]),
            arguments.get("planned", ["web"]),
            arguments.get("floor", Floor(documents=1)),
            token_column=arguments.get("token_column", "tokens"),
        )


def test_a_negative_floor_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 tokens"):
        Floor(tokens=-1)


def test_floors_are_met_at_the_limit_and_missed_by_one_in_either_unit() -> None:
    floors = [{"slice": [name], "documents": 5, "tokens": 50} for name in ("exact", "few", "short", "gone")]
    counts = [
        {"slice": ["exact"], "documents": 5, "tokens": 50},
        {"slice": ["few"], "documents": 4, "tokens": 50},
        {"slice": ["short"], "documents": 5, "tokens": 49},
        {"slice": [None], "documents": 2, "tokens": 3},
        {"slice": ["new"], "documents": 7, "tokens": 1},
    ]
    violations, unplanned = coverage_violations(floors, counts)
    limits = {"floor_documents": 5, "floor_tokens": 50}
    assert violations == [
        {"slice": ["few"], "documents": 4, "tokens": 50, **limits},
        {"slice": ["short"], "documents": 5, "tokens": 49, **limits},
        {"slice": ["gone"], "documents": 0, "tokens": 0, **limits},
    ]
    assert unplanned == {
        "slices": 2,
        "documents": 9,
        "tokens": 4,
        "first": [
            {"slice": ["new"], "documents": 7, "tokens": 1},
            {"slice": ["<null>"], "documents": 2, "tokens": 3},
        ],
    }
    assert coverage_observed(violations, 4) == (
        "3 of 4 planned slices below the floor: few has 4 of 5 documents; short has 49 of 50 tokens; "
        "gone has 0 of 5 documents and 0 of 50 tokens"
    )


def test_unplanned_slices_are_counted_in_full_and_listed_in_part() -> None:
    counts = [{"slice": [f"s{number:02}"], "documents": number, "tokens": 1} for number in range(30)]
    _, unplanned = coverage_violations([], counts)
    assert (unplanned["slices"], unplanned["documents"], unplanned["tokens"]) == (30, 435, 30)
    assert [count["slice"] for count in unplanned["first"]] == [[f"s{number:02}"] for number in range(29, 9, -1)]


def test_the_coverage_sentence_names_the_common_floor_and_the_exceptions() -> None:
    suite = coverage_suite(["source"], ["a", "b", "c"], Floor(100, 2_000), overrides={"c": Floor(5, 0)})
    assert suite.expectations[1].description == (
        "Each of the 3 planned slices by source has at least 100 documents and 2,000 tokens; c: at least 5 documents."
    )


def test_a_source_called_null_is_not_taken_for_rows_without_a_source() -> None:
    assert slice_values("<null>", ["source"]) == [None]
    assert slice_names([None, "<null>", "web"]) == ["<null>", '"<null>"', "web"]
    assert slice_label([]) == "all rows"


# --- totals


def test_totals_beyond_32_bits_are_compared_exactly_and_so_are_surplus_and_vanished_groups() -> None:
    """O-JOB-07, and rows in = kept + dropped for every source, whichever side the source is missing on."""
    expected = [
        {"group": ["web"], "rows": 3, "sums": {"tokens": 4_500_000_000}},
        {"group": ["books"], "rows": 1, "sums": {"tokens": 2**53 + 1}},
        {"group": ["gone"], "rows": 1, "sums": {"tokens": 7}},
        {"group": ["empty"], "rows": 0, "sums": {"tokens": 0}},
    ]
    found = [
        {"group": ["web"], "rows": 3, "sums": {"tokens": 4_500_000_000}},
        {"group": ["books"], "rows": 1, "sums": {"tokens": 2**53}},
        {"group": [None], "rows": 2, "sums": {"tokens": 0}},
    ]
    differences, unexpected = sum_differences(expected, found)
    assert differences == [
        {"group": ["books"], "measure": "tokens", "expected": 2**53 + 1, "observed": 2**53},
        {"group": ["gone"], "measure": "rows", "expected": 1, "observed": 0},
        {"group": ["gone"], "measure": "tokens", "expected": 7, "observed": 0},
        {"group": ["<null>"], "measure": "rows", "expected": 0, "observed": 2},
    ]
    assert unexpected == 1
    assert sums_observed(differences[:1], 0, 4) == (
        "books: tokens 9,007,199,254,740,992 instead of 9,007,199,254,740,993"
    )


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ((), "at least one group"),
        ((GroupTotals(("web", "en"), 1),), "has 2 values"),
        ((GroupTotals("web", 1), GroupTotals("web", 2)), "expected twice"),
        ((GroupTotals("web", 1, {"tokens": 1}), GroupTotals("books", 1, {})), "must sum the same columns"),
    ],
)
def test_expected_totals_that_contradict_themselves_are_refused(groups: tuple[GroupTotals, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sums_to_match(ExpectedTotals(("source",), groups))


# --- errors


@pytest.mark.parametrize(
    ("exception_info", "message"),
    [
        (None, None),
        ({}, None),
        ({"raised_exception": False, "exception_message": None, "exception_traceback": None}, None),
        ({"raised_exception": True, "exception_message": "no column", "exception_traceback": "..."}, "no column"),
        ({"('metric', 'x')": {"exception_message": "no column", "exception_traceback": "..."}}, "no column"),
        (
            {"m1": {"exception_message": "a"}, "m2": {"exception_message": "b"}, "m3": {"exception_message": "a"}},
            "a; b",
        ),
    ],
)
def test_an_error_is_read_from_both_shapes_that_the_library_reports_it_in(
    exception_info: dict[str, Any] | None, message: str | None
) -> None:
    """Read as one shape only, an error of the other would pass for a plain failure, or for nothing."""
    assert error_message(exception_info) == message


def test_an_error_without_a_message_is_an_error_all_the_same() -> None:
    assert error_message({"raised_exception": True, "exception_message": ""})
    assert error_message({"metric": {}})


def test_the_message_of_an_error_is_cut_because_it_may_hold_a_query_plan() -> None:
    message = error_message({"raised_exception": True, "exception_message": "x" * 100_000})
    assert message is not None
    assert len(message) == 2_000


# --- quietness


def test_the_library_can_neither_log_nor_warn_nor_redirect_the_warnings_of_the_process(
    caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    """On import it sends every later Python warning of the process to its log."""
    library = logging.getLogger("great_expectations")
    shown_by, level = warnings.showwarning, library.level
    with pytest.raises(RuntimeError), _quiet():
        logging.captureWarnings(True)
        logging.getLogger("great_expectations.validator").error("aborting graph resolution")
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
        raise RuntimeError
    assert not caplog.records
    assert not recwarn.list
    assert warnings.showwarning is shown_by
    assert library.level == level
    # And a later user of the redirection finds it in working order.
    logging.captureWarnings(True)
    try:
        assert warnings.showwarning is not shown_by
    finally:
        logging.captureWarnings(False)
    assert warnings.showwarning is shown_by
