"""annotate: every document gets every annotator for its present text, and what stands is left alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.annotate import annotate, missing, table_for
from jobs.runtime.errors import InputContractError, SettingsError
from jobs.runtime.job import Result
from jobs.runtime.tables import TableRef, list_tables, table_properties
from jobs.settings import Settings
from tests.reference.normalise import norm_v1_key
from tests.spark.helpers import lay_out, run, settings_in, table, version_of
from udfs.annotators.exact_key import ExactKeySettings
from udfs.annotators.statistics import StatisticsSettings
from udfs.annotators.tokens import TokensSettings

TEXTS = {
    "plain": "The ferry leaves at nine. The ferry returns at ten.",
    "empty": "",
    "spaces": " \u00a0\n",
    "nul": "a\0b",
    "emoji": "\U0001f600 \u00fcml\u00e4ut \u65e5\u672c",
    "long": "word " * 50_000,
    "special": "<|endoftext|>",
}


def frame_of(spark: SparkSession, texts: dict[str, str]) -> DataFrame:
    rows = [(name, "s", hashlib.sha256(text.encode()).digest(), "main", text) for name, text in texts.items()]
    return spark.createDataFrame(rows, "doc_id STRING, source STRING, text_sha256 BINARY, batch STRING, text STRING")


# --- the pure function


def test_any_subset_of_annotators_gives_the_same_values(spark: SparkSession) -> None:
    """Each annotator depends on the text alone, whatever runs beside it; odd texts have defined values."""
    every: dict[str, Any] = {"tokens": TokensSettings(), "statistics": StatisticsSettings(), "key": ExactKeySettings()}
    documents = frame_of(spark, TEXTS)
    together = {r["doc_id"]: r.asDict(recursive=True) for r in annotate(documents, list(every.items())).collect()}
    assert sorted(together) == sorted(TEXTS)
    for wanted in ([], ["tokens"], ["key", "statistics"]):
        rows = annotate(documents.repartition(3), [(name, every[name]) for name in wanted]).collect()
        assert len(rows) == len(TEXTS)
        for row in rows:
            values = row.asDict(recursive=True)
            assert values == {name: together[row["doc_id"]][name] for name in values}
            assert set(values) == {"doc_id", "source", "text_sha256", "batch", *wanted}
    for name, text in TEXTS.items():
        assert together[name]["key"]["key"] == norm_v1_key(text), name
        assert (together[name]["statistics"]["characters"], together[name]["statistics"]["bytes"]) == (
            len(text),
            len(text.encode()),
        )
    assert together["empty"]["tokens"]["count"] == 0 and together["empty"]["statistics"]["letters"] is None
    assert together["special"]["tokens"]["count"] > 1  # a special token's name in a text is text


def test_documents_without_an_annotation_of_their_present_text_are_missing(spark: SparkSession) -> None:
    documents = frame_of(spark, {"same": "a", "changed": "b", "new": "c"})
    annotated = frame_of(spark, {"same": "a", "changed": "old", "gone": "d"}).drop("text")
    assert sorted(r["doc_id"] for r in missing(documents, annotated).collect()) == ["changed", "new"]


def test_later_annotators_go_into_a_table_named_after_them() -> None:
    """By identity, so that the same annotator with other settings has another table."""
    assert table_for({"tokens": "tokens-1-a"}, []) == "annotations"
    names = [
        table_for({"tokens": identity}, ["annotations"]) for identity in ("tokens-1-a", "tokens-1-b", "tokens-1-a")
    ]
    assert names[0] == names[2] != names[1] and names[0].startswith("annotations_tokens_")


# --- the job


@dataclass
class Story:
    """A warehouse in which annotators are added one after the other."""

    home: Path
    settings: Settings
    results: dict[str, Result]
    files: dict[str, set[str]]
    versions: dict[str, dict[str, int]]

    def with_annotators(self, annotators: dict[str, Any]) -> Settings:
        ingest = {
            "web": {
                "paths": [str(self.home / "in")],
                "columns": {"doc_id": "id", "fetched_at": "at"},
                "duplicate_ids": "keep_latest",
            }
        }
        return settings_in(self.home, annotate=annotators, ingest=ingest, decide=["exact_dedup"])


STATISTICS: dict[str, Any] = {"statistics": {}}
BOTH: dict[str, Any] = {"statistics": {}, "tokens": {}}


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """first: statistics of 3 documents. second: tokens added. third: a new document and a changed text."""
    home = tmp_path_factory.mktemp("annotate")
    lay_out(home / "in", [{"id": n, "text": f"text {n}", "at": "2024-01-01"} for n in "abc"], "1.jsonl")
    told = Story(home, settings_in(home), {}, {}, {})
    told.settings = told.with_annotators(BOTH)

    def note(step: str) -> None:
        names = list_tables(spark, told.settings.warehouse, "annotations")
        told.files[step] = {file for name in names for file in table(spark, told.settings, name).inputFiles()}
        told.versions[step] = {name: version_of(spark, told.settings, name) for name in names}

    run(spark, told.settings, "ingest", "i1")
    told.results["first"] = run(spark, told.with_annotators(STATISTICS), "annotate", "first")
    note("first")
    told.results["second"] = run(spark, told.settings, "annotate", "second")
    note("second")
    told.results["again"] = run(spark, told.settings, "annotate", "again")
    note("again")
    lay_out(home / "in", [{"id": "d", "text": "text d"}, {"id": "b", "text": "another", "at": "2024-02-01"}], "2.jsonl")
    run(spark, told.settings, "ingest", "i2")
    with pytest.raises(InputContractError, match="has not been annotated with"):
        run(spark, _by_tokens(told), "exact-dedup", "early", "exact_dedup")
    told.results["third"] = run(spark, told.settings, "annotate", "third")
    note("third")
    return told


def _by_tokens(story: Story) -> Settings:
    return story.settings.model_copy(update={"survivor": ["-tokens.count", "doc_id"]})


def rows_of(spark: SparkSession, story: Story, name: str) -> dict[str, Any]:
    return {r["doc_id"]: r for r in table(spark, story.settings, name).collect()}


def later(story: Story) -> str:
    (name,) = set(story.versions["second"]) - {"annotations"}
    return name


def test_an_annotator_added_later_goes_into_its_own_table_and_leaves_the_first_alone(
    spark: SparkSession, story: Story
) -> None:
    assert story.versions["second"]["annotations"] == story.versions["first"]["annotations"]
    assert story.files["first"] < story.files["second"]
    assert list(story.versions["first"]) == ["annotations"] and later(story).startswith("annotations_tokens_")
    assert "tokens" not in table(spark, story.settings, "annotations").columns
    assert story.results["second"].record.notes[f"added.{later(story)}"] == "3 rows for tokens"


def test_annotating_again_changes_no_row(spark: SparkSession, story: Story) -> None:
    """A run with nothing to do may leave an empty commit, but no file and no other row."""
    assert story.files["again"] == story.files["second"]
    assert story.results["again"].record.notes["added.annotations"] == "0 rows for statistics"


def test_new_documents_and_changed_texts_get_every_annotator(spark: SparkSession, story: Story) -> None:
    documents = rows_of(spark, story, "documents")
    assert sorted(documents) == ["a", "b", "c", "d"]
    for name in ("annotations", later(story)):
        annotated = table(spark, story.settings, name)
        assert annotated.count() == 4
        for doc_id, row in rows_of(spark, story, name).items():
            assert row["text_sha256"] == documents[doc_id]["text_sha256"], (name, doc_id)
    statistics = {d: r["statistics"]["characters"] for d, r in rows_of(spark, story, "annotations").items()}
    assert statistics == {d: len(r["text"]) for d, r in documents.items()}


def test_a_tables_properties_say_what_stands_in_it(spark: SparkSession, story: Story) -> None:
    properties = table_properties(spark, TableRef.in_warehouse(story.settings.warehouse, later(story)))
    identity = story.settings.annotator_identities()["tokens"]
    assert properties["weir.annotator.tokens"] == identity
    assert {r["tokens"]["version"] for r in rows_of(spark, story, later(story)).values()} == {identity}


def test_every_document_counts_as_kept_once_every_annotator_has_it(story: Story) -> None:
    counts = {(c["outcome"]): (c["documents"], c["tokens"]) for c in story.results["third"].record.counts}
    assert counts["in"][0] == counts["kept"][0] == 4 and counts["kept"][1] > 0


def test_a_table_made_by_another_version_of_an_annotator_is_not_mixed_with_this_one(
    spark: SparkSession, story: Story
) -> None:
    """The table still says the old identity, under the same settings: new rows would not mean the same."""
    ref = TableRef.in_warehouse(story.settings.warehouse, "annotations")
    key = "weir.annotator.statistics"
    identity = story.settings.annotator_identities()["statistics"]
    lay_out(story.home / "in", [{"id": "e", "text": "text e"}], "3.jsonl")
    run(spark, story.settings, "ingest", "i3")
    spark.sql(f"ALTER TABLE {ref.identifier} SET TBLPROPERTIES ('{key}' = 'statistics-0-000000000000')")
    result = run(spark, story.settings, "annotate", "fourth")
    # The old table is left as it is; the present version of the annotator has a table of its own.
    assert result.record.notes["annotator.statistics"].startswith(f"{identity} in annotations_statistics_")
    assert table(spark, story.settings, "annotations").count() == 4
    assert rows_of(spark, story, later(story)).keys() == {"a", "b", "c", "d", "e"}


def test_no_annotator_is_a_mistake_in_the_settings(spark: SparkSession, tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in", [{"text": "a"}])
    settings = settings_in(tmp_path, annotate={}, ingest={"web": {"paths": [str(folder)]}})
    run(spark, settings, "ingest")
    with pytest.raises(SettingsError, match="names no annotator"):
        run(spark, settings, "annotate")
