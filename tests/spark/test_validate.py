"""validate: the gates stand between a corpus that isn't what was planned and its release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.runtime.errors import InputContractError
from jobs.settings import Settings
from jobs.validate import CoverageSettings, FloorSettings, coverage_of
from tests.spark.helpers import CASES, case_rows, expected, lay_out, run, run_until, settings_in, table


def blocking(spark: SparkSession, settings: Settings, run_id: str) -> list[tuple[str, str]]:
    rows = table(spark, settings, "validations").where(f"run_id = '{run_id}' AND blocks").orderBy("suite", "position")
    return [(r["suite"], r["expectation"]) for r in rows.collect()]


def test_an_empty_corpus_does_not_pass(spark: SparkSession, tmp_path: Path) -> None:
    """O-VAL-01: every expectation about rows holds where there are none; the row floors don't."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part.jsonl").write_bytes((CASES / "O-VAL-01.jsonl").read_bytes())
    settings = settings_in(
        tmp_path,
        ingest={"s1": {"paths": [str(tmp_path / "in")]}},
        annotate={"statistics": {}},
        decide=["eligibility"],
    )
    run_until(spark, settings, "select")
    result = run(spark, settings, "validate")
    assert (result.blocked is None, result.record.exit_code) == (expected("O-VAL-01")["success"], 3)
    found = blocking(spark, settings, "r1")
    assert {suite for suite, _ in found} == {"integrity", "coverage"}
    assert ("integrity", "expect_table_row_count_to_be_between") in found


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """O-VAL-03's rows, each with a text of its own, from two of three planned sources."""
    folder = tmp_path_factory.mktemp("validate")
    lay_out(folder / "in", [{**row, "text": f"text of {row['id']}"} for row in case_rows("O-VAL-03")])
    run_until(spark, settings_of(folder), "select")
    return folder


def settings_of(folder: Path, **coverage: Any) -> Settings:
    return settings_in(
        folder,
        ingest={"all": {"paths": [str(folder / "in")], "columns": {"doc_id": "id", "source": "source"}}},
        annotate={"statistics": {}},
        decide=["eligibility"],
        sources={"web": {}, "books": {}, "eval": {"use": "evaluation_only"}},
        **({"validate": {"coverage": coverage}} if coverage else {}),
    )


def test_a_planned_slice_without_a_row_counts_as_zero(spark: SparkSession, home: Path) -> None:
    """O-VAL-03."""
    want = expected("O-VAL-03")
    settings = settings_of(home, floor={"documents": 5}, floors={"forum": {"documents": 5}})
    result = run(spark, settings, "validate", "planned")
    assert result.record.exit_code == 3 and "forum has 0 of 5 documents" in (result.blocked or "")
    assert not any(name in (result.blocked or "") for name in want["coverage"] if name not in want["failed"])
    assert blocking(spark, settings, "planned") == [("coverage", "expect_slice_coverage")]
    assert (
        table(spark, settings, "runs").where("job = 'validate' AND run_id = 'planned'").collect()[0]["status"] == "done"
    )


def test_a_corpus_that_is_as_planned_passes_and_every_result_is_stored(spark: SparkSession, home: Path) -> None:
    """A source that may not be used needs no document."""
    settings = settings_of(home, floor={"documents": 6})
    result = run(spark, settings, "validate", "passed")
    assert result.blocked is None and result.record.exit_code == 0
    rows = table(spark, settings, "validations").where("run_id = 'passed'").collect()
    assert {r["suite"] for r in rows} == {"integrity", "coverage"} and all(
        r["success"] and not r["blocks"] for r in rows
    )
    assert len({(r["suite"], r["position"]) for r in rows}) == len(rows) > 3


def test_a_selection_of_another_version_of_documents_is_not_validated(spark: SparkSession, home: Path) -> None:
    lay_out(home / "in", [{"id": "late", "source": "web", "text": "late"}], "late.jsonl")
    run(spark, settings_of(home), "ingest", "late")
    with pytest.raises(InputContractError, match="was made for version"):
        run(spark, settings_of(home), "validate", "late")


def test_slices_come_from_the_input_the_registry_and_the_floors(spark: SparkSession) -> None:
    documents = spark.createDataFrame([("web", "en"), ("web", None)], "source STRING, language STRING")

    def slices(coverage: CoverageSettings, expected_sources: list[str]) -> set[tuple[str | None, ...]]:
        suite = coverage_of(documents, coverage, expected_sources, with_tokens=False)
        return {tuple(floor["slice"]) for e in suite.expectations for floor in e.arguments.get("floors", [])}

    assert slices(CoverageSettings(floors={"forum": FloorSettings(documents=1)}), ["books"]) == {
        ("web",),
        ("books",),
        ("forum",),
    }
    both = CoverageSettings(
        per=["source", "language"],
        floors={"web/<null>": FloorSettings(documents=2), "web/de": FloorSettings(documents=2)},
    )
    nothing = coverage_of(documents.limit(0), CoverageSettings(), [], with_tokens=False)
    assert [e.type for e in nothing.expectations] == ["expect_table_row_count_to_be_between"]
    assert slices(both, ["books"]) == {("web", "en"), ("web", None), ("web", "de")}
