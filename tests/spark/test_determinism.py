"""Same input, same settings: same ids out, whatever the partitions and files, for every job of the pipeline."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.exact_dedup import ExactDedupSettings, exact_duplicates
from jobs.quality_filter import Rule, quality_decisions
from jobs.registry import pipeline
from jobs.runtime.digest import content_digest
from jobs.runtime.errors import RunRefused
from jobs.runtime.job import run_job
from jobs.runtime.session import configured
from jobs.settings import Settings
from tests.spark.helpers import case_rows, expected, lay_out, settings_in, table, version_of

PARTITIONS = (1, 3, 8)
TABLES = ("documents", "rejects", "annotations", "decisions", "selection")


def corpus() -> list[Any]:
    """O-EXD-02's 90 rows, and broken, empty and blocked ones; odd line numbers don't matter here."""
    rows: list[Any] = [{**r, "url": f"https://{r['id']}.example"} for r in case_rows("O-EXD-02")]
    rows += [{"id": f"empty{n}", "source": "a", "text": " " * n} for n in range(4)]
    rows += [{"id": f"bad{n}", "source": "b", "text": f"bad {n}", "url": "https://bad.example"} for n in range(3)]
    return [*rows, {"id": "nothing", "source": "c", "text": None}]


@dataclass
class Run:
    """One run of the pipeline."""

    settings: Settings
    digests: dict[str, str | None]
    counts: dict[str, list[Any]]


def settings_of(home: Path, **more: Any) -> Settings:
    return settings_in(
        home,
        survivor=["source", "doc_id"],
        ingest={"all": {"paths": [str(home / "in")], "columns": {"doc_id": "id", "source": "source", "url": "url"}}},
        annotate={"tokens": {}, "statistics": {}, "exact_key": {}},
        decide=[
            {"eligibility": {"blocked_domains": ["bad.example"]}},
            {"quality_filter": {"rules": [{"name": "short", "keep": "statistics.words >= 3 OR statistics.words = 0"}]}},
            "exact_dedup",
        ],
        validate={"coverage": {"floor": {"documents": 1}}},
        **more,
    )


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Run]:
    """The pipeline with 1, 3 and 8 shuffle partitions, the input in as many files, and in another order each time."""
    found = {}
    for number in PARTITIONS:
        home = tmp_path_factory.mktemp("partitions")
        rows = corpus()
        if number > 1:
            random.Random(number).shuffle(rows)
        for part in range(number):
            lay_out(home / "in", rows[part::number], f"{part}.jsonl")
        settings = settings_of(home)
        with configured(spark, {"spark.sql.shuffle.partitions": str(number)}):
            records = [run_job(spark, job, settings, "r", step, quiet=True).record for job, step in pipeline(settings)]
        found[number] = Run(
            settings, {f"{r.job} {r.step}": r.digest for r in records}, {f"{r.job} {r.step}": r.counts for r in records}
        )
    return found


def test_every_jobs_digest_and_counts_are_the_same_for_1_3_and_8_partitions(runs: dict[int, Run]) -> None:
    first = runs[1]
    assert [job for job, digest in first.digests.items() if digest] == [
        "ingest ", "eligibility eligibility", "quality_filter quality_filter", "exact_dedup exact_dedup", "select ",
    ]  # fmt: skip
    for number in PARTITIONS[1:]:
        assert runs[number].digests == first.digests and runs[number].counts == first.counts, number


def content(spark: SparkSession, run: Run, name: str) -> list[str]:
    """A table's rows as text, without what says where and when: runs, files, versions."""
    frame = table(spark, run.settings, name)
    kept = [c for c in frame.columns if c not in ("file", "record", "ingest_run", "run_id", "documents_version")]
    return sorted(str(row) for row in frame.select(*kept).collect())


@pytest.mark.parametrize("name", TABLES)
def test_every_tables_rows_are_the_same_for_1_3_and_8_partitions(
    spark: SparkSession, runs: dict[int, Run], name: str
) -> None:
    first = content(spark, runs[1], name)
    assert first
    for number in PARTITIONS[1:]:
        assert content(spark, runs[number], name) == first, number


def test_the_survivors_of_the_case_are_the_same_30_each_time(spark: SparkSession, runs: dict[int, Run]) -> None:
    """O-EXD-02."""
    for number, run in runs.items():
        kept = table(spark, run.settings, "selection").where("kept").select("source", "doc_id").collect()
        assert sorted([r[0], r[1]] for r in kept) == expected("O-EXD-02")["kept"], number


def test_a_finished_run_id_writes_nothing_again_in_any_job(spark: SparkSession, runs: dict[int, Run]) -> None:
    """Table versions stay; the recorded result is given back; other settings under the same id are refused."""
    settings, digests = runs[3].settings, runs[3].digests
    names = (*TABLES, "validations", "runs")
    before = {name: version_of(spark, settings, name) for name in names}
    for job, step in pipeline(settings):
        again = run_job(spark, job, settings, "r", step, quiet=True)
        assert again.already_done and again.record.digest == digests[f"{job.record_name} {step}"]
        with pytest.raises(RunRefused):
            run_job(spark, job, settings.model_copy(update={"seed": 1}), "r", step, quiet=True)
    assert {name: version_of(spark, settings, name) for name in names} == before


# --- the pure functions, on rows in many orders and layouts


def layouts(frame: DataFrame) -> list[DataFrame]:
    rows = frame.collect()
    spark = frame.sparkSession
    shuffled = list(rows)
    random.Random(2).shuffle(shuffled)
    orders = [rows, rows[::-1], shuffled]
    return [spark.createDataFrame(r, frame.schema).repartition(n) for r in orders for n in (1, 7, 64)]


def test_exact_duplicates_are_the_same_on_1_7_and_64_partitions_and_reversed(spark: SparkSession) -> None:
    """O-EXD-02, as the case says."""
    rows = [(r["id"], r["source"], "b", r["text"].encode()) for r in case_rows("O-EXD-02")]
    frame = spark.createDataFrame(rows, "doc_id STRING, source STRING, batch STRING, key BINARY")
    want = {name for _, name in expected("O-EXD-02")["kept"]}
    results = set()
    for layout in layouts(frame):
        decided = exact_duplicates(layout, None, ExactDedupSettings(), ["source", "doc_id"], {}).collect()
        results.add(tuple(sorted((r["doc_id"], r["kept_id"], r["group_size"]) for r in decided)))
        assert {name for name, *_ in rows} - {r["doc_id"] for r in decided} == want
    assert len(results) == 1


def test_quality_decisions_and_digests_do_not_depend_on_the_layout(spark: SparkSession) -> None:
    rows = [(f"d{n}", "s", "b", [0.1, None, float("nan"), 0.9][n % 4]) for n in range(40)]
    frame = spark.createDataFrame(rows, "doc_id STRING, source STRING, batch STRING, score DOUBLE")
    found = set()
    for layout in layouts(frame):
        decided = quality_decisions(layout, [Rule(name="score", keep="score >= 0.5")])
        found.add(content_digest(decided, "doc_id", decided["reason"]))
    assert len(found) == 1
    other = quality_decisions(frame, [Rule(name="score", keep="score >= 0.5", on_nan="keep")])
    assert content_digest(other, "doc_id", other["reason"]) not in found


def test_a_digest_sees_every_difference_in_the_rows(spark: SparkSession) -> None:
    """A repeated row, NULL and an empty string, and values that flow from one column into the next."""

    def digest(*rows: tuple[str, str | None, str | None]) -> str:
        frame = spark.createDataFrame(list(rows), "k STRING, a STRING, b STRING")
        return content_digest(frame, "k", frame["a"], frame["b"])

    row = ("k", "x", "y")
    assert digest(row, ("l", "x", "y")) == digest(("l", "x", "y"), row)
    others = [
        (),
        (row,),
        (row, row),
        (("k", None, "y"),),
        (("k", "", "y"),),
        (("k", "xy", ""),),
        (("kx", "", "y"),),
        (("k", "x", None),),
        (("k", "y", "x"),),
    ]
    assert len({digest(*rows) for rows in others}) == len(others)
