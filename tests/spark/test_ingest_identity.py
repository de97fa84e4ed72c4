"""Ids of documents: the same whatever the files look like, and the same files again add nothing."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.ingesting.identity import content_id, number_occurrences, place_id
from jobs.ingesting.judging import judged
from jobs.runtime.job import Result
from tests.spark.helpers import ids, lay_out, run, settings_in, table, version_of

# --- what is the same whatever the layout


def records() -> list[dict[str, Any]]:
    """60 records with repeats: some alike in everything, some only in their text."""
    draw = random.Random(11)
    rows: list[dict[str, Any]] = [{"text": f"text {n}", "url": f"https://a.example/{n}", "n": n} for n in range(40)]
    rows += [dict(rows[n]) for n in (0, 0, 0, 1, 2)]
    rows += [{"text": "text 3", "url": "https://b.example", "n": n, "at": f"2024-01-0{n}"} for n in range(1, 6)]
    rows += [{"text": "", "n": n} for n in range(5)] + [{"text": "text 4", "at": f"2024-02-0{n}"} for n in range(1, 6)]
    draw.shuffle(rows)
    for number, row in enumerate(rows):
        row["key"] = number
    return rows


def layouts(rows: list[dict[str, Any]]) -> dict[str, list[list[dict[str, Any]]]]:
    shuffled = list(rows)
    random.Random(5).shuffle(shuffled)
    return {
        "one file": [rows],
        "25 files, reversed": [rows[::-1][n::25] for n in range(25)],
        "8 files, shuffled": [shuffled[n::8] for n in range(8)],
    }


@dataclass
class Layouts:
    """What each layout gave, for content ids (entry ``made``) and given ids (entry ``given``)."""

    digests: dict[str, str | None] = field(default_factory=dict)
    documents: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Layouts:
    """The same records in each layout, each into a warehouse of its own, with content ids and with given ids."""
    found = Layouts()
    without_key = [{k: v for k, v in row.items() if k != "key"} for row in records()]
    given = layouts(records())
    for name, files in layouts(without_key).items():
        home = tmp_path_factory.mktemp("layout")
        for number, rows in enumerate(files):
            lay_out(home / "made", rows, f"{number}.jsonl")
            lay_out(home / "given", given[name][number], f"{number}.jsonl")
        columns = {"url": "url", "fetched_at": "at"}
        settings = settings_in(
            home,
            ingest={
                "made": {"paths": [str(home / "made")], "columns": columns},
                "given": {"paths": [str(home / "given")], "columns": {**columns, "doc_id": "key"}},
            },
        )
        found.digests[name] = run(spark, settings, "ingest").record.digest
        kept = table(spark, settings, "documents").drop("file", "record", "ingest_run").withColumnRenamed("text", "t")
        rows_of = kept.select("doc_id", "source", "t", "url", F.unix_seconds("fetched_at"), F.to_json("attributes"))
        found.documents[name] = sorted(tuple(map(str, row)) for row in rows_of.collect())
    return found


def test_every_record_becomes_one_document_with_an_id_of_its_own(outcomes: Layouts) -> None:
    """Identical texts are told apart by their occurrence: none is lost."""
    for rows in outcomes.documents.values():
        assert len(rows) == 2 * len(records()) == len({row[0] for row in rows})


def test_ids_and_fields_are_the_same_however_the_records_are_cut_into_files(outcomes: Layouts) -> None:
    """Also which of several copies has which id: the copies' own fields decide, not their place."""
    first = outcomes.documents["one file"]
    for name, rows in outcomes.documents.items():
        assert rows == first, name


def test_the_digest_is_the_same_however_the_records_are_cut_into_files(outcomes: Layouts) -> None:
    assert len(set(outcomes.digests.values())) == 1 and None not in outcomes.digests.values()


def test_content_and_place_ids_do_not_run_into_each_other(spark: SparkSession) -> None:
    """An id is made of several parts; none of them may flow over into the next."""
    rows = [("a", "b", 1), ("ab", "", 1), ("a", "b1", 1), ("a", "b", 11), ("", "ab", 1), ("A", "b", 1)]
    frame = spark.createDataFrame(rows, "source STRING, file STRING, n INT")
    sha = F.unhex(F.sha2("file", 256))
    made = frame.select(place_id(F.col("source"), F.col("file"), F.col("n")).alias("doc_id")).union(
        frame.select(content_id(F.col("source"), sha, F.col("n")))
    )
    found = ids(made)
    assert len(set(found)) == 2 * len(rows) and {len(name) for name in found} == {32}


# --- taking in again


def counts(result: Result) -> dict[tuple[str, str], int]:
    return {(c["outcome"], c["reason"]): c["documents"] for c in result.record.counts if c["outcome"] != "in"}


def test_the_same_files_again_add_nothing_and_a_changed_one_adds_what_is_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Content ids, with the same text several times in one file and across files; rejects too are stored once.

    A file under another name is another delivery: its records are copies, and are added as such.
    """
    folder = lay_out(tmp_path / "in", [{"text": t} for t in ("a", "b", "a", "a")] + ["broken"], "1.jsonl")
    lay_out(folder, [{"text": t} for t in ("a", "c")], "2.jsonl")
    settings = settings_in(tmp_path, ingest={"web": {"paths": [str(folder)]}})

    first = run(spark, settings, "ingest", "r1")
    assert counts(first) == {("kept", ""): 6, ("quarantined", "bad_json"): 1}
    before = ids(table(spark, settings, "documents"))
    second = run(spark, settings, "ingest", "r2")
    assert counts(second) == {("dropped", "already_there"): 6, ("quarantined", "bad_json"): 1}
    assert ids(table(spark, settings, "documents")) == before
    assert table(spark, settings, "rejects").count() == 1

    # Two more lines, one of them a copy that stands before the others; an older line is gone.
    lay_out(folder, [{"text": t} for t in ("a", "a", "a", "b", "d", "a")], "1.jsonl")
    third = run(spark, settings, "ingest", "r3")
    assert counts(third) == {("kept", ""): 2, ("dropped", "already_there"): 6}
    after = table(spark, settings, "documents")
    assert len(ids(after)) == len(set(ids(after))) == 8 and set(before) < set(ids(after))
    assert sorted(r["text"] for r in after.where("ingest_run = 'r3'").collect()) == ["a", "d"]

    (folder / "2.jsonl").rename(folder / "3.jsonl")
    fourth = run(spark, settings, "ingest", "r4")
    assert counts(fourth) == {("kept", ""): 2, ("dropped", "already_there"): 6}
    assert len(set(ids(table(spark, settings, "documents")))) == 10


def test_place_and_given_ids_again_add_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Given ids may come from other files the second time; place ids are by file and line."""
    placed = lay_out(tmp_path / "placed", [{"text": t} for t in ("a", "a", "b")])
    given = lay_out(tmp_path / "given", [{"id": n, "text": "a"} for n in range(3)])
    entries = {
        "placed": {"paths": [str(placed)], "ids": "place"},
        "given": {"paths": [str(given)], "columns": {"doc_id": "id"}},
    }
    settings = settings_in(tmp_path, ingest=entries)
    run(spark, settings, "ingest", "r1")
    before = ids(table(spark, settings, "documents"))
    assert len(set(before)) == 6
    lay_out(given, [{"id": 3, "text": "a"}, {"id": 2, "text": "a"}], "other.jsonl")
    (given / "part-0000.jsonl").write_bytes(
        b"".join(reversed((given / "part-0000.jsonl").read_bytes().splitlines(True)[:2]))
    )
    result = run(spark, settings, "ingest", "r2")
    by_source = {(c["source"], c["reason"]): c["documents"] for c in result.record.counts if c["outcome"] != "in"}
    assert by_source == {("placed", "already_there"): 3, ("given", "already_there"): 3, ("given", ""): 1}
    assert sorted(ids(table(spark, settings, "documents"))) == sorted([*before, "3"])


def test_one_file_in_two_entries_gives_each_record_once_to_each(spark: SparkSession, tmp_path: Path) -> None:
    """As when one file holds prompts and answers: records are known by entry, file and line."""
    rows = [{"id": n, "q": "same question", "a": "same answer"} for n in range(3)]
    folder = lay_out(tmp_path / "in", rows)
    entries: dict[str, Any] = {name: {"paths": [str(folder)], "columns": {"text": name}} for name in ("q", "a")}
    entries["given"] = {"paths": [str(folder)], "columns": {"text": "a", "doc_id": "id"}}
    settings = settings_in(tmp_path, ingest=entries)
    for run_id in ("r1", "r2"):
        run(spark, settings, "ingest", run_id)
        found = table(spark, settings, "documents")
        by_source = {
            r[0]: (r[1], r[2]) for r in found.groupBy("source").agg(F.count("*"), F.countDistinct("doc_id")).collect()
        }
        assert by_source == {"q": (3, 3), "a": (3, 3), "given": (3, 3)}, run_id
        assert sorted(r["record"] for r in found.collect()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_second_batch_leaves_the_first_batchs_files_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Batches are partitions; what a run adds is its own files."""
    folder = lay_out(tmp_path / "in", [{"text": "one"}])
    first = settings_in(tmp_path, batch="2024-01", ingest={"web": {"paths": [str(folder)]}})
    run(spark, first, "ingest", "r1")
    files = set(table(spark, first, "documents").inputFiles())
    lay_out(folder, [{"text": "two"}], "2.jsonl")
    second = settings_in(tmp_path, batch="2024-02", ingest={"web": {"paths": [str(folder)]}})
    version = version_of(spark, second, "documents")
    run(spark, second, "ingest", "r2")
    assert version_of(spark, second, "documents") == version + 1
    found = table(spark, second, "documents")
    assert files < set(found.inputFiles())
    assert sorted((r["text"], r["batch"], r["ingest_run"]) for r in found.collect()) == [
        ("one", "2024-01", "r1"), ("two", "2024-02", "r2"),
    ]  # fmt: skip


# --- the pure functions

RECORD = (
    "entry STRING, source STRING, text_sha256 STRING, file STRING, record BIGINT, url STRING, language STRING, "
    "fetched_at STRING, origin STRING, generator STRING, generation INT, attributes_text STRING"
)


def narrow(*rows: tuple[str, str, int, str | None]) -> list[tuple[Any, ...]]:
    """(text, file, record, url) of one source."""
    return [("e", "s", text, file, record, url, None, None, None, None, None, "{}") for text, file, record, url in rows]


def test_only_repeats_and_what_is_there_are_numbered(spark: SparkSession) -> None:
    """A corpus without repeats gives an empty frame, so that nothing wide is joined."""
    rows = narrow(("a", "f", 1, None), ("b", "f", 2, None), ("a", "g", 1, "u"), ("a", "g", 2, None))
    frame = spark.createDataFrame(rows, RECORD)
    found = number_occurrences(frame, None).orderBy("file", "record").collect()
    # The one with an URL is the last of the three, wherever it stands.
    assert [(r["file"], r["record"], r["occurrence"], r["present"]) for r in found] == [
        ("g", 1, 2, False), ("g", 2, 1, False),
    ]  # fmt: skip
    assert number_occurrences(
        spark.createDataFrame(narrow(("a", "f", 1, None), ("b", "f", 2, None)), RECORD), None
    ).isEmpty()


def test_of_a_files_copies_as_many_are_present_as_the_table_has_of_it(spark: SparkSession) -> None:
    frame = spark.createDataFrame(narrow(*[("a", "f", n, None) for n in range(1, 4)], ("b", "f", 9, None)), RECORD)
    held = [("s", "a", "f"), ("s", "a", "f"), ("s", "a", "other"), ("t", "a", "f"), ("t", "b", "f")]
    existing = spark.createDataFrame(held, "source STRING, text_sha256 STRING, file STRING")
    found = number_occurrences(frame, existing).orderBy("record").collect()
    assert [(r["record"], r["present"]) for r in found] == [(1, True), (2, True), (3, False)]
    assert found[2]["occurrence"] == 3  # after the three that the source has


def test_the_fate_of_a_record_is_decided_by_id_text_and_time(spark: SparkSession) -> None:
    schema = (
        "entry STRING, doc_id STRING, source STRING, text_sha256 STRING, fetched_at STRING, file STRING, "
        "record BIGINT, present BOOLEAN, keep_latest BOOLEAN"
    )
    rows = [
        ("e", "new", "s", "x", None, "f", 1, False, True),
        ("e", "same", "s", "x", None, "f", 2, False, True),
        ("e", "changed", "s", "y", "2024-02", "f", 3, False, True),
        ("e", "outdated", "s", "y", "2023-01", "f", 4, False, True),
        ("e", "undated", "s", "y", None, "f", 5, False, True),
        ("e", "clash", "s", "y", "2023-01", "f", 6, False, False),
        ("e", "never dated", "s", "y", None, "f", 10, False, True),
        ("e", "twice", "s", "z", "2024-01", "f", 7, False, True),
        ("e", "twice", "s", "y", "2024-02", "f", 8, False, True),
        ("e", "twice", "s", "x", None, "f", 9, False, True),
    ]
    held = [(n, "x", "b0", "2024-01") for n in ("same", "changed", "outdated", "undated", "clash")]
    held.append(("never dated", "x", "b0", None))
    existing = spark.createDataFrame(held, "doc_id STRING, text_sha256 STRING, batch STRING, fetched_at STRING")
    candidates = spark.createDataFrame(rows, schema)
    fates = {(r["doc_id"], r["record"]): r["fate"] for r in judged(candidates, existing).collect()}
    assert fates == {
        ("new", 1): "new", ("same", 2): "present", ("changed", 3): "changed", ("outdated", 4): "outdated",
        ("undated", 5): "outdated", ("clash", 6): "changed", ("never dated", 10): "changed", ("twice", 7): "repeated", ("twice", 8): "new",
        ("twice", 9): "repeated",
    }  # fmt: skip
    alone = {(r["doc_id"], r["record"]): r["fate"] for r in judged(candidates, None).collect()}
    assert {fate for key, fate in alone.items() if key[0] != "twice"} == {"new"} and alone["twice", 8] == "new"


def test_records_of_the_input_are_what_the_tests_take_them_for() -> None:
    """The layouts hold the same 60 records; some are alike in everything, and some texts are empty."""
    rows = [json.dumps({k: v for k, v in row.items() if k != "key"}, sort_keys=True) for row in records()]
    assert len(rows) == 60 and len(set(rows)) == 55
    for files in layouts(records()).values():
        assert sorted(row["key"] for file in files for row in file) == list(range(60))
