"""The suites on Spark frames: what must fail fails, what can't be evaluated blocks, and nothing is left behind."""

from __future__ import annotations

import importlib
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.checkpoint import EXPECTATION_MODULES, run_suite
from expectations.coverage import Floor, coverage_suite
from expectations.integrity import ExpectedTotals, GroupTotals, integrity_suite, sums_to_match
from expectations.results import ExpectationResult
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

SCHEMA = "doc_id string, source string, tokens int, score double"
BILLION_AND_A_HALF = 1_500_000_000


def documents(spark: SparkSession, counts: dict[str | None, int], tokens: int = 10) -> DataFrame:
    """So many documents of each source, with ids that are unique over the frame."""
    rows = [(f"{source}-{number}", source, tokens, 0.5) for source in counts for number in range(counts[source])]
    return spark.createDataFrame(rows, SCHEMA)


def only(results: list[ExpectationResult], expectation: str) -> ExpectationResult:
    (found,) = [result for result in results if result.expectation == expectation]
    return found


def with_row_floor(*expectations: Expectation) -> Suite:
    return Suite("trial", (row_floor(), *expectations))


def coverage_of(frame: DataFrame, floors: dict[Any, Floor], *per: str, **options: Any) -> ExpectationResult:
    suite = coverage_suite(per or ("source",), [], Floor(), overrides=floors, **options)
    return only(run_suite(frame, suite, run_id="run-1"), SLICE_COVERAGE)


# --- what must fail


def test_an_empty_table_fails_though_every_other_expectation_holds_on_it(spark: SparkSession) -> None:
    """O-VAL-01."""
    empty = documents(spark, {})
    results = run_suite(empty, integrity_suite(numeric=["tokens", "score"]), run_id="run-1")
    floor = only(results, ROW_FLOOR)
    assert (floor.success, floor.errored, floor.blocks, floor.observed) == (False, False, True, "0")
    assert floor.limit == '{"min_value": 1}'
    assert all(result.success for result in results if result is not floor)

    coverage = run_suite(empty, coverage_suite(["source"], ["web", "books"], Floor(documents=1)), run_id="run-1")
    assert [result.blocks for result in coverage] == [True, True]
    assert [found["slice"] for found in json.loads(coverage[1].details)["violations"]] == [["web"], ["books"]]


def test_a_stratum_that_vanished_counts_as_zero(spark: SparkSession) -> None:
    """O-VAL-03: web 12, books 6, forum 0, and 5 of each were planned."""
    frame = documents(spark, {"web": 12, "books": 6})
    results = run_suite(frame, coverage_suite(["source"], ["web", "books", "forum"], Floor(5)), run_id="run-1")
    coverage = only(results, SLICE_COVERAGE)
    assert coverage.blocks
    assert not coverage.errored
    assert coverage.observed == "1 of 3 planned slices below the floor: forum has 0 of 5 documents"
    assert coverage.description == "Each of the 3 planned slices by source has at least 5 documents."
    assert json.loads(coverage.details)["violations"] == [
        {"slice": ["forum"], "documents": 0, "tokens": 0, "floor_documents": 5, "floor_tokens": 0}
    ]


def test_floors_hold_in_documents_and_in_tokens(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 4, "books": 3}, tokens=10)
    assert coverage_of(frame, {"web": Floor(4, 40), "books": Floor(3, 30)}).success
    missed = coverage_of(frame, {"web": Floor(4, 41), "books": Floor(4, 30)})
    assert missed.observed == (
        "2 of 2 planned slices below the floor: web has 40 of 41 tokens; books has 3 of 4 documents"
    )


def test_repeats_cannot_meet_a_floor(spark: SparkSession) -> None:
    """Three documents written five times each are three documents, and their tokens count once."""
    frame = documents(spark, {"web": 3}, tokens=10)
    for _ in range(4):
        frame = frame.unionAll(documents(spark, {"web": 3}, tokens=11))
    assert coverage_of(frame, {"web": Floor(documents=3, tokens=30)}).success
    missed = coverage_of(frame, {"web": Floor(documents=4, tokens=31)})
    assert json.loads(missed.details)["violations"] == [
        {"slice": ["web"], "documents": 3, "tokens": 30, "floor_documents": 4, "floor_tokens": 31}
    ]


def test_a_document_in_two_slices_counts_in_both_and_rows_without_an_id_in_none(spark: SparkSession) -> None:
    rows = [("a", "web", 5, 0.1), ("a", "books", 5, 0.1), (None, "web", 5, 0.1), (None, "forum", 5, 0.1)]
    frame = spark.createDataFrame(rows, SCHEMA)
    coverage = coverage_of(frame, dict.fromkeys(["web", "books", "forum"], Floor(1, 5)))
    assert coverage.observed == ("1 of 3 planned slices below the floor: forum has 0 of 1 documents and 0 of 5 tokens")


def test_a_null_slice_is_a_slice_of_its_own(spark: SparkSession) -> None:
    """Named ``<null>``, planned or not; a source that is really called ``<null>`` doesn't meet its floor."""
    frame = documents(spark, {None: 2, "<null>": 5, "web": 1})
    coverage = coverage_of(frame, {"<null>": Floor(documents=3), "web": Floor(documents=1)})
    assert coverage.observed == "1 of 2 planned slices below the floor: <null> has 2 of 3 documents"
    assert json.loads(coverage.details)["unplanned"]["first"] == [{"slice": ['"<null>"'], "documents": 5, "tokens": 50}]
    unplanned = coverage_of(frame, {"web": Floor(documents=1)})
    assert unplanned.success
    assert json.loads(unplanned.details)["unplanned"]["first"][1]["slice"] == ["<null>"]


def test_slices_by_several_columns_of_any_type_and_by_a_field_of_a_struct(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 3, "books": 2}).select(
        "doc_id",
        "tokens",
        "source",
        F.lit(2).alias("bucket"),
        F.struct(F.lit("en").alias("code")).alias("language"),
        F.lit("flat").alias("a.b"),
    )
    floors = {("web", "2", "en", "flat"): Floor(3), ("books", "2", "en", "flat"): Floor(2)}
    assert coverage_of(frame, floors, "source", "bucket", "language.code", "a.b").success


def test_coverage_needs_no_token_column_if_floors_are_in_documents(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 3}).select("doc_id", "source")
    assert coverage_of(frame, {"web": Floor(3)}, token_column=None).success


def test_totals_beyond_32_bits_are_right(spark: SparkSession) -> None:
    """O-JOB-07: three documents of 1,500,000,000 tokens in a 32-bit column are 4,500,000,000, not 205,032,704."""
    frame = documents(spark, {"web": 3}, tokens=BILLION_AND_A_HALF)
    totals = ExpectedTotals(("source",), (GroupTotals("web", 3, {"tokens": 4_500_000_000}),))
    assert only(run_suite(frame, integrity_suite(totals=[totals]), run_id="run-1"), SUMS_TO_MATCH).success
    assert coverage_of(frame, {"web": Floor(documents=3, tokens=4_500_000_000)}).success
    long = documents(spark, {"web": 2}).withColumn("tokens", F.lit(3_000_000_000).cast("bigint"))
    assert coverage_of(long, {"web": Floor(documents=2, tokens=6_000_000_000)}).success

    off_by_one = ExpectedTotals((), (GroupTotals((), 3, {"tokens": 4_500_000_001}),))
    missed = only(run_suite(frame, integrity_suite(totals=[off_by_one]), run_id="run-1"), SUMS_TO_MATCH)
    assert missed.blocks
    assert missed.observed == "all rows: tokens 4,500,000,000 instead of 4,500,000,001"


def test_rows_in_must_equal_kept_and_dropped_for_every_source(spark: SparkSession) -> None:
    """A source that lost a row, one that vanished, and one that nobody put in."""
    frame = documents(spark, {"web": 4, "books": 2, None: 1})
    expected = (
        GroupTotals("web", 5, {"tokens": 50}),
        GroupTotals("books", 2, {"tokens": 20}),
        GroupTotals("forum", 1, {"tokens": 10}),
    )
    sums = only(
        run_suite(frame, with_row_floor(sums_to_match(ExpectedTotals(("source",), expected))), run_id="run-1"),
        SUMS_TO_MATCH,
    )
    details = json.loads(sums.details)
    assert [
        (found["group"], found["measure"], found["expected"], found["observed"]) for found in details["violations"]
    ] == [
        (["web"], "rows", 5, 4),
        (["web"], "tokens", 50, 40),
        (["forum"], "rows", 1, 0),
        (["forum"], "tokens", 10, 0),
        (["<null>"], "rows", 0, 1),
        (["<null>"], "tokens", 0, 10),
    ]
    assert details["unexpected_groups"] == 1


def test_nan_fails_like_null_and_each_is_counted(spark: SparkSession) -> None:
    """The library's own "not null" passes NaN."""
    rows = [
        ("a", "web", 1, float("nan")),
        ("b", "web", None, None),
        ("c", "web", 3, float("nan")),
        ("d", "web", 4, 0.0),
    ]
    results = run_suite(
        spark.createDataFrame(rows, SCHEMA), integrity_suite(numeric=["tokens", "score"]), run_id="run-1"
    )
    found = {result.column: result for result in results if result.expectation == NO_NULL_OR_NAN}
    assert {column: result.success for column, result in found.items()} == {
        "doc_id": True,
        "source": True,
        "tokens": False,
        "score": False,
    }
    assert found["tokens"].observed == "1 NULL and 0 NaN"
    assert found["score"].observed == "1 NULL and 2 NaN"
    assert found["score"].blocks


def test_a_repeated_id_fails_with_counts_and_an_example_and_a_null_id_fails_as_null(spark: SparkSession) -> None:
    ids = ["a", "b", "b", "c", "c", "c", None, None]
    frame = spark.createDataFrame([(doc_id, "web", 1, 0.5) for doc_id in ids], SCHEMA)
    results = run_suite(frame, integrity_suite(), run_id="run-1")
    unique = only(results, UNIQUE_KEY)
    assert (unique.blocks, unique.column) == (True, "doc_id")
    assert unique.observed == "2 keys occur more than once (3 surplus rows); c occurs 3 times"
    assert [result.observed for result in results if result.column == "doc_id"][1] == "2 NULL and 0 NaN"


def test_a_key_of_two_columns_is_unique_together(spark: SparkSession) -> None:
    rows = [("a", "web", 1, 0.5), ("a", "books", 1, 0.5), ("b", "web", 1, 0.5)]
    frame = spark.createDataFrame(rows, SCHEMA)
    suite = with_row_floor(unique_key(["doc_id", "source"]), unique_key(["doc_id"]))
    assert [result.success for result in run_suite(frame, suite, run_id="run-1")] == [True, True, False]


# --- what can't be evaluated


def test_an_errored_expectation_blocks_even_when_it_is_only_a_warning(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 1})
    suite = with_row_floor(no_null_or_nan("qualty", severity="warning"), no_null_or_nan("score"))
    floor, missing, present = run_suite(frame, suite, run_id="run-1")
    assert (missing.success, missing.errored, missing.severity, missing.blocks) == (False, True, "warning", True)
    assert missing.exception == "the frame has no column 'qualty'; it has doc_id, source, tokens, score"
    assert missing.observed is None
    # The others are evaluated all the same.
    assert (floor.success, present.success) == (True, True)


def test_a_warning_that_fails_does_not_block(spark: SparkSession) -> None:
    coverage = coverage_of(documents(spark, {"web": 1}), {"forum": Floor(1)}, severity="warning")
    assert (coverage.success, coverage.errored, coverage.blocks) == (False, False, False)


def test_a_missing_column_is_an_error_in_every_kind_of_expectation(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 1})
    totals = ExpectedTotals(("source",), (GroupTotals("web", 1, {"bytes": 1}),))
    suite = with_row_floor(
        unique_key(["nope"]),
        no_null_or_nan("language.code"),
        sums_to_match(totals),
        coverage_suite(["nope"], ["web"], Floor(1)).expectations[1],
    )
    results = run_suite(frame, suite, run_id="run-1")
    assert [result.errored for result in results] == [False, True, True, True, True]
    assert all("the frame has no column" in str(result.exception) for result in results[1:])


def test_a_query_that_fails_while_it_runs_is_an_error_and_spares_the_others(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 2}).withColumn("broken", F.raise_error(F.lit("shard lost")).cast("int"))
    suite = with_row_floor(no_null_or_nan("broken"), no_null_or_nan("score"))
    floor, broken, score = run_suite(frame, suite, run_id="run-1")
    assert broken.errored
    assert "shard lost" in str(broken.exception)
    assert (floor.success, score.success) == (True, True)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_total_beyond_64_bits_is_an_error_and_never_wraps(spark: SparkSession, ansi: str) -> None:
    frame = documents(spark, {"web": 2}).withColumn("tokens", F.lit(2**62).cast("bigint"))
    before = str(spark.conf.get("spark.sql.ansi.enabled"))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        wrapped = ExpectedTotals((), (GroupTotals((), 2, {"tokens": -(2**63)}),))
        (_, sums) = run_suite(frame, with_row_floor(sums_to_match(wrapped)), run_id="run-1")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert sums.errored
    assert "passes the largest 64-bit integer" in str(sums.exception)


def test_sums_of_a_floating_point_column_are_refused_because_they_depend_on_the_order(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 2})
    totals = ExpectedTotals((), (GroupTotals((), 2, {"score": 1}),))
    (_, sums) = run_suite(frame, with_row_floor(sums_to_match(totals)), run_id="run-1")
    assert sums.errored
    assert "column 'score' is double" in str(sums.exception)


def test_slices_by_a_column_with_a_value_per_document_are_an_error_and_are_not_collected(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expectations import metrics

    monkeypatch.setattr(metrics, "MOST_GROUPS", 3)
    frame = documents(spark, {"web": 4})
    assert coverage_of(documents(spark, {"a": 1, "b": 1, "c": 1}), {"a": Floor(1)}).success
    coverage = coverage_of(frame, {"web-0": Floor(1)}, "doc_id")
    assert coverage.errored
    assert "doc_id has more than 3 different values" in str(coverage.exception)


@pytest.mark.parametrize("name", ["text", "Text"])
def test_a_frame_with_text_is_refused_before_anything_is_read(spark: SparkSession, name: str) -> None:
    frame = documents(spark, {"web": 1}).withColumn(name, F.raise_error(F.lit("text was read")).cast("string"))
    with pytest.raises(ValueError, match="gates never see text"):
        run_suite(frame, integrity_suite(), run_id="run-1")


# --- what must not be mixed, left behind, or depend on the layout


def test_two_frames_one_after_another_are_not_mixed(spark: SparkSession) -> None:
    """The library hands one frame to all validations of a checkpoint, and keeps batches and views by name."""
    suite = coverage_suite(["source"], ["web"], Floor(documents=5))
    small, large = documents(spark, {"web": 4}), documents(spark, {"web": 6})
    assert [
        [result.success for result in run_suite(frame, suite, run_id="run-1")] for frame in (small, large, small)
    ] == [[True, False], [True, True], [True, False]]


def test_frames_validated_from_several_threads_are_not_mixed(spark: SparkSession) -> None:
    frames = [documents(spark, {"web": count}) for count in (1, 2, 3, 4)]
    observed: dict[int, str | None] = {}

    def validate(count: int) -> None:
        observed[count] = run_suite(frames[count - 1], integrity_suite(), run_id="run-1")[0].observed

    threads = [threading.Thread(target=validate, args=(count,)) for count in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert observed == {1: "1", 2: "2", 3: "3", 4: "4"}


def test_results_come_in_the_order_of_the_suite(spark: SparkSession) -> None:
    """The library groups its results by column, and puts errors first."""
    suite = with_row_floor(
        no_null_or_nan("tokens"), no_null_or_nan("nope"), unique_key(["doc_id"]), no_null_or_nan("score")
    )
    results = run_suite(documents(spark, {"web": 2}), suite, run_id="run-1")
    assert [(result.expectation, result.column, result.limit) for result in results] == [
        (expectation.type, expectation.column, expectation.limit) for expectation in suite.expectations
    ]
    assert {result.suite for result in results} == {"trial"}


def test_validation_leaves_the_storage_level_of_the_frame_as_it_was(spark: SparkSession) -> None:
    """By default the library persists the frame and never releases it."""
    frame = documents(spark, {"web": 11})
    assert not frame.storageLevel.useMemory
    run_suite(frame, integrity_suite(), run_id="run-1")
    assert not frame.storageLevel.useMemory
    assert not frame.storageLevel.useDisk

    cached = documents(spark, {"web": 12}).cache()
    try:
        before = cached.storageLevel
        run_suite(cached, integrity_suite(), run_id="run-1")
        assert cached.storageLevel == before
    finally:
        cached.unpersist()


def test_results_do_not_depend_on_the_partitions(spark: SparkSession) -> None:
    frame = documents(spark, {"web": 7, "books": 5, None: 3}).unionAll(documents(spark, {"web": 2}))
    totals = ExpectedTotals(("source",), (GroupTotals("web", 7, {"tokens": 70}),))
    suite = Suite(
        "all",
        (
            *integrity_suite(numeric=["score"], totals=[totals]).expectations,
            coverage_suite(["source"], ["web", "forum"], Floor(8, 70)).expectations[1],
        ),
    )
    one, three, eight = (run_suite(frame.repartition(n), suite, run_id="run-1") for n in (1, 3, 8))
    assert one == three == eight


def test_a_run_is_quiet_and_restores_logging_and_warnings(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library logs errors, draws progress bars, and sends all of a process's warnings to its log."""
    shown_by, level = warnings.showwarning, logging.getLogger("great_expectations").level
    frame = documents(spark, {"web": 2})
    capfd.readouterr()
    run_suite(frame, with_row_floor(no_null_or_nan("nope"), no_null_or_nan("score")), run_id="run-1")
    captured = capfd.readouterr()
    assert captured.out == ""
    assert not [
        line
        for line in captured.err.splitlines()
        if any(word in line for word in ("Warning", "great_expectations", "Calculating", "Traceback", "nope"))
    ]
    assert warnings.showwarning is shown_by
    assert logging.getLogger("great_expectations").level == level


def test_a_context_of_the_caller_is_the_current_one_again_after_a_run(spark: SparkSession) -> None:
    import great_expectations as gx
    from great_expectations.data_context.data_context.context_factory import project_manager

    own = gx.get_context(mode="ephemeral")
    try:
        run_suite(documents(spark, {"web": 2}), integrity_suite(), run_id="run-1")
        assert project_manager.get_current_project() is own
    finally:
        project_manager.set_project(None)


# --- registration and rendering


def load_expectations() -> None:
    for module in EXPECTATION_MODULES:
        importlib.import_module(module)


@pytest.fixture
def library_warnings(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="great_expectations"):
        yield caplog


def test_loading_the_modules_twice_registers_once_and_says_nothing(
    spark: SparkSession, library_warnings: pytest.LogCaptureFixture
) -> None:
    """A notebook reload; the library would log that it overwrites metrics, expectations and renderers."""
    for module in ("expectations.metrics", *EXPECTATION_MODULES):
        importlib.reload(importlib.import_module(module))
    assert not library_warnings.records
    assert coverage_of(documents(spark, {"web": 2}), {"web": Floor(2)}).success


def test_another_class_cannot_take_the_name_of_a_gate(spark: SparkSession) -> None:
    from expectations.base import WeirExpectation, WeirMetric
    from expectations.metrics import SLICE_COUNTS
    from expectations.slice_coverage import ExpectSliceCoverage

    with pytest.raises(ValueError, match=r"weir\.slice_counts is registered by expectations\.metrics"):
        type("Other", (WeirMetric,), {"metric_name": SLICE_COUNTS})
    with pytest.raises(ValueError, match=r"expect_slice_coverage is registered by expectations\.slice_coverage"):
        type("ExpectSliceCoverage", (WeirExpectation,), {"_validate": ExpectSliceCoverage._validate})
    with pytest.raises(ValueError, match=r"must begin with 'weir\.'"):
        type("Unprefixed", (WeirMetric,), {"metric_name": "slice_counts"})
    assert coverage_of(documents(spark, {"web": 2}), {"web": Floor(2)}).success


def test_every_argument_of_a_metric_reaches_it_from_the_expectation() -> None:
    """An argument that isn't both a success key and a value key arrives as None, and a default would hide it."""
    from great_expectations.expectations.registry import _registered_metrics, get_expectation_impl

    load_expectations()
    for name in (SLICE_COVERAGE, SUMS_TO_MATCH, NO_NULL_OR_NAN, UNIQUE_KEY):
        expectation = get_expectation_impl(name)
        for metric in expectation.metric_dependencies:
            value_keys = set(_registered_metrics[metric]["metric_value_keys"])
            assert value_keys, metric
            assert value_keys <= set(expectation.success_keys)
            assert value_keys <= set(expectation.__fields__)


@pytest.mark.parametrize(
    ("expectation", "sentence"),
    [
        (
            coverage_suite(["source"], ["a$b"], Floor(5, 70)).expectations[1],
            "The planned slice by source has at least 5 documents and 70 tokens.",
        ),
        (
            sums_to_match(ExpectedTotals((), (GroupTotals((), 3, {"tokens": 4_500_000_000}),))),
            "The frame adds up to 3 rows and 4,500,000,000 tokens.",
        ),
        (no_null_or_nan("score"), "score is never NULL and never NaN."),
        (unique_key(["doc_id"]), "Every doc_id occurs once."),
    ],
)
def test_data_docs_show_the_sentence_of_the_suite(expectation: Expectation, sentence: str) -> None:
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.registry import get_renderer_impl

    load_expectations()
    configuration = ExpectationConfiguration(type=expectation.type, kwargs=dict(expectation.arguments))
    found = get_renderer_impl(expectation.type, "renderer.prescriptive")
    assert found is not None
    (content,) = found.renderer(configuration=configuration, runtime_configuration={})
    template = content.to_json_dict()["string_template"]
    assert (template["template"], template["params"]) == ("$sentence", {"sentence": sentence})
    assert expectation.description == sentence
