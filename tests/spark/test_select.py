"""select: every document once, with the fate that the first step to drop it gave, and everything adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from jobs.runtime.errors import GateFailed, ReconciliationError
from jobs.select import _check_twins, first_decisions, selected, twins
from jobs.settings import Settings
from tests.spark.helpers import case_rows, expected, lay_out, run, run_until, settings_in, table

DECIDED = "doc_id STRING, step STRING, reason STRING, kept_id STRING, kept_in STRING, group_size BIGINT"
FIRST = f"{DECIDED}, position INT"
STEPS = ["one", "two", "three"]


def decided(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Rows of doc_id, step, reason, kept_id, group_size; and perhaps kept_in."""
    return spark.createDataFrame([(*r[:4], r[5] if len(r) > 5 else None, r[4]) for r in rows], DECIDED)


def test_the_earliest_step_in_the_settings_order_decides(spark: SparkSession) -> None:
    """Not the first in the table or the alphabet; decisions of steps that the settings don't have count for nothing."""
    rows = [
        ("a", "three", "r3", None, None), ("a", "one", "r1", None, None), ("b", "two", "dup", "k", 3), ("b", "three", "r3", None, None),
        ("c", "former", "r0", None, None),
    ]  # fmt: skip
    want = spark.createDataFrame([("a", "one", "r1", None, None, None, 0), ("b", "two", "dup", "k", None, 3, 1)], FIRST)
    assert_df_equality(first_decisions(decided(spark, *rows), STEPS), want, ignore_row_order=True, ignore_nullable=True)
    turned = first_decisions(decided(spark, *rows[::-1]).repartition(3), STEPS[::-1])
    assert {r["doc_id"]: r["step"] for r in turned.collect()} == {"a": "three", "b": "three"}


def test_every_document_stands_in_the_selection_once_with_its_groups_size(spark: SparkSession) -> None:
    """A survivor has the size of its largest group, counted over all decisions that name it; a document without
    duplicates has 1; a group whose kept document stands in another table is one of its own."""
    documents = spark.createDataFrame(
        [(n, "s") for n in ("keep", "copy", "alone", "bad", "new", "away")], "doc_id STRING, source STRING"
    )
    decisions = decided(
        spark, ("copy", "one", "dup", "keep", 2), ("gone", "two", "near", "keep", 2), ("bad", "two", "rule", None, None),
        ("new", "two", "near", "keep", 2), ("away", "two", "near", "keep", 2, "elsewhere"), ("none", "one", "dup", None, 7),
    )  # fmt: skip
    found = selected(documents, first_decisions(decisions, STEPS), decisions).collect()
    assert {r["doc_id"]: (r["kept"], r["step"], r["reason"], r["kept_id"], r["group_size"]) for r in found} == {
        "keep": (True, None, None, None, 3),
        "copy": (False, "one", "dup", "keep", 2),
        "alone": (True, None, None, None, 1),
        "bad": (False, "two", "rule", None, 1),
        "new": (False, "two", "near", "keep", 3),
        "away": (False, "two", "near", "keep", 2),
    }
    assert len(found) == 6


def test_twins_that_a_later_step_dropped_are_orphans_and_earlier_ones_are_a_defect(spark: SparkSession) -> None:
    good = [
        ("copy", "one", "dup", "kept", 2),
        ("orphan", "one", "dup", "later", 2),
        ("later", "two", "rule", None, None),
    ]
    first = first_decisions(decided(spark, *good), STEPS)
    fates = {r["doc_id"]: (r["position"], r["twin_position"]) for r in twins(first).collect()}
    assert fates == {"copy": (0, None), "orphan": (0, 1)}
    assert _check_twins(first) == (1, 2)
    for broken in (("copy", "two", "dup", "gone", 2), ("copy", "one", "dup", "gone", 2)):
        rows = [*good[1:], broken, ("gone", "one", "rule", None, None)]
        with pytest.raises(ReconciliationError, match="copy -> gone"):
            _check_twins(first_decisions(decided(spark, *rows), STEPS))
    assert _check_twins(first_decisions(decided(spark), STEPS)) == (0, 0)
    # A twin of another table is not the document of that id here, whatever becomes of this one.
    away = [("copy", "one", "dup", "gone", 2, "elsewhere"), ("gone", "one", "rule", None, None)]
    assert _check_twins(first_decisions(decided(spark, *away), STEPS)) == (0, 0)


# --- the job


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a and b alike, and the survivor a is dropped by a rule afterwards; big documents by their stated tokens."""
    folder = tmp_path_factory.mktemp("select")
    rows = [
        {"id": "a", "text": "same", "n": 0},
        {"id": "b", "text": "Same ", "n": 1},
        {"id": "c", "text": "other", "n": 2},
    ]
    lay_out(folder / "in", [*rows, "broken"])
    run_until(spark, settings_of(folder), "select", "r1")
    return folder


def settings_of(folder: Path, **more: Any) -> Settings:
    rule = {"name": "n", "keep": "attributes['n'] <> '0'"}
    values: dict[str, Any] = {
        "ingest": {"web": {"paths": [str(folder / "in")], "columns": {"doc_id": "id"}}},
        "annotate": {"tokens": {}},
        "decide": ["exact_dedup", {"quality_filter": {"rules": [rule]}}],
    }
    return settings_in(folder, **{**values, **more})


def test_counts_add_up_in_documents_bytes_and_tokens(spark: SparkSession, home: Path) -> None:
    """In = kept + dropped, by step and reason, and the selection holds every document with its tokens."""
    settings = settings_of(home)
    record = table(spark, settings, "runs").where("job = 'select' AND run_id = 'r1'").collect()[0]
    counts = {(c["outcome"], c["reason"]): (c["documents"], c["bytes"]) for c in record["counts"]}
    assert counts == {
        ("in", ""): (3, 14), ("kept", ""): (1, 5), ("dropped", "exact_dedup: exact_duplicate"): (1, 5),
        ("dropped", "quality_filter: n"): (1, 4),
    }  # fmt: skip
    rows = {r["doc_id"]: r for r in table(spark, settings, "selection").collect()}
    assert sorted(rows) == ["a", "b", "c"] and all(r["tokens"] > 0 for r in rows.values())
    assert sum(c["tokens"] for c in record["counts"] if c["outcome"] != "in") == sum(r["tokens"] for r in rows.values())


def test_orphans_are_counted_and_a_limit_on_them_stops_the_run(spark: SparkSession, home: Path) -> None:
    """b was dropped for a, and a was dropped later: of one duplicate one lost its twin."""
    settings = settings_of(home)
    record = table(spark, settings, "runs").where("job = 'select' AND run_id = 'r1'").collect()[0]
    assert (record["notes"]["orphaned"], record["notes"]["duplicates"]) == ("1", "1")
    with pytest.raises(GateFailed, match=r"1 of 1 duplicates .*100\.0%") as caught:
        run(spark, settings_of(home, select={"max_orphaned": 0.5}), "select", "r2")
    assert caught.value.exit_code == 3


def test_a_step_taken_out_of_the_settings_counts_for_nothing(spark: SparkSession, home: Path) -> None:
    """Its decisions are still in the table: neither fate nor group size may come from them."""
    rule = {"name": "n", "keep": "attributes['n'] <> '0'"}
    settings = settings_of(home, decide=[{"quality_filter": {"rules": [rule]}}])
    run(spark, settings, "quality-filter", "r3", "quality_filter")
    run(spark, settings, "select", "r3")
    assert table(spark, settings, "decisions").where("step = 'exact_dedup'").count() == 1
    rows = {r["doc_id"]: (r["kept"], r["group_size"]) for r in table(spark, settings, "selection").collect()}
    assert rows == {"a": (False, 1), "b": (True, 1), "c": (True, 1)}


def test_totals_go_beyond_32_bits(spark: SparkSession) -> None:
    """O-JOB-07: in the counts that every job reports, and in the sums that the integrity suite checks."""
    from pyspark.sql import functions as F

    from expectations.checkpoint import run_suite
    from expectations.integrity import ExpectedTotals, GroupTotals, integrity_suite
    from jobs.runtime.job import reconcile
    from jobs.runtime.stages import counts_by, with_totals_in

    total = expected("O-JOB-07")["total_tokens"]
    rows = [(r["id"], r["source"], r["tokens"]) for r in case_rows("O-JOB-07")]
    for kind in ("INT", "BIGINT"):
        frame = spark.createDataFrame(rows, f"doc_id STRING, source STRING, tokens {kind}")
        counts = counts_by(frame, outcome=F.lit("kept"), reason=F.lit(""), tokens=F.col("tokens"), size=F.col("tokens"))
        assert [(c.tokens, c.bytes) for c in with_totals_in(counts)] == [(total, total)] * 2
        reconcile("select", with_totals_in(counts))
        groups = (GroupTotals(("s1",), len(rows), {"tokens": total}),)
        suite = integrity_suite(key=("doc_id",), numeric=["tokens"], totals=(ExpectedTotals(("source",), groups),))
        assert all(result.success for result in run_suite(frame, suite, run_id="r"))
        off = (GroupTotals(("s1",), len(rows), {"tokens": total % 2**32}),)
        wrong = integrity_suite(key=("doc_id",), numeric=["tokens"], totals=(ExpectedTotals(("source",), off),))
        assert any(result.blocks for result in run_suite(frame, wrong, run_id="r"))
