"""The ingest cases, all in one run: each source is a case, ids are made from content, the case's own id is an attribute."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.runtime.job import Result
from tests.spark.helpers import CASES, case_rows, expected, lay_out, run, table

PLAIN = ("O-ING-01", "O-ING-02", "O-ING-03", "O-ING-04", "O-ING-07", "O-ING-08")


@dataclass
class Outcome:
    """What one ingest run of all cases wrote: per case, documents and rejects as dictionaries."""

    documents: dict[str, list[dict[str, Any]]]
    rejects: dict[str, list[dict[str, Any]]]
    result: Result

    def kept(self, case: str) -> list[str]:
        return sorted(d["attributes"]["id"] for d in self.documents.get(case, []))

    def document(self, case: str, name: str) -> dict[str, Any]:
        return next(d for d in self.documents[case] if d["attributes"]["id"] == name)


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    from jobs.runtime.layers import Layer, resolve
    from jobs.settings import Settings

    home = tmp_path_factory.mktemp("ingest")
    entries: dict[str, Any] = {}
    for case in PLAIN:
        if case == "O-ING-07":
            folder = lay_out(home / case, case_rows(case))
        else:
            folder = home / case
            folder.mkdir()
            (folder / "part-0000.jsonl").write_bytes((CASES / f"{case}.jsonl").read_bytes())
        entries[case] = {"paths": [str(folder)], "columns": {"fetched_at": "ts"} if case == "O-ING-08" else {}}
    for case in ("O-ING-05", "O-ING-06"):
        by_file: dict[str, list[dict[str, Any]]] = {}
        for row in case_rows(case):
            by_file.setdefault(row.pop("file"), []).append(row)
        for name, rows in by_file.items():
            lay_out((home / case / name).parent, rows, Path(name).name)
        (home / case / "_SUCCESS").touch()
        entries[case] = {"paths": [str(home / case)]}
    entries["O-ING-06"]["source_pattern"] = "source=([^/]+)"
    settings = resolve(Settings, [Layer("test", {"warehouse": str(home / "warehouse"), "ingest": entries})]).settings
    result = run(spark, settings, "ingest")
    documents: dict[str, list[dict[str, Any]]] = {}
    for row in table(spark, settings, "documents").withColumnRenamed("text", "content").collect():
        values = row.asDict(recursive=True)
        case = next(c for c in entries if f"/{c}/" in values["file"])
        documents.setdefault(case, []).append(values)
    rejects: dict[str, list[dict[str, Any]]] = {}
    for row in table(spark, settings, "rejects").collect():
        values = row.asDict(recursive=True)
        case = next(c for c in entries if f"/{c}/" in values["file"])
        rejects.setdefault(case, []).append(values)
    yield Outcome(documents, rejects, result)


def test_a_truncated_line_is_quarantined_whole_with_its_line_number(outcome: Outcome) -> None:
    """O-ING-01."""
    want = expected("O-ING-01")
    assert outcome.kept("O-ING-01") == want["kept"]
    (reject,) = outcome.rejects["O-ING-01"]
    assert (reject["record"], reject["reason"]) == (2, "bad_json")
    assert reject["raw"] == (CASES / "O-ING-01.jsonl").read_text().splitlines()[1]
    counts = {c["outcome"]: c["documents"] for c in outcome.result.record.counts if c["source"] == "O-ING-01"}
    assert counts == {"in": 3, "kept": 2, "quarantined": 1}


def test_a_text_that_is_no_string_is_never_taken_for_prose(outcome: Outcome) -> None:
    """O-ING-02."""
    want = expected("O-ING-02")
    assert outcome.kept("O-ING-02") == want["kept"]
    reasons = {json.loads(r["raw"])["id"]: r["reason"] for r in outcome.rejects["O-ING-02"]}
    assert reasons == {q["id"]: q["reason"] for q in want["quarantined"]}


def test_line_separators_inside_a_string_do_not_end_a_record(outcome: Outcome) -> None:
    """O-ING-03."""
    assert outcome.kept("O-ING-03") == ["a", "b"]
    assert outcome.document("O-ING-03", "a")["content"] == "one\u2028two\u0085three\u2029four\u000bfive\u000csix"


def test_half_a_surrogate_pair_is_replaced_and_counted_not_turned_into_a_question_mark(outcome: Outcome) -> None:
    """O-ING-04."""
    texts = {d["attributes"]["id"]: d["content"] for d in outcome.documents["O-ING-04"]}
    assert texts["c"] == expected("O-ING-04")["text"]["c"]
    assert texts["a"] == "Great \ufffd news today" != texts["d"]
    assert outcome.result.record.notes["repaired.bad_unicode"] == "2"
    assert outcome.document("O-ING-04", "b")["notes"] == ["bad_unicode"]


def test_files_that_spark_takes_for_hidden_are_read(outcome: Outcome) -> None:
    """O-ING-05."""
    assert outcome.kept("O-ING-05") == expected("O-ING-05")["accept_any_of"][0]["kept"]


def test_sources_in_folder_names_stay_as_they_are_spelled(outcome: Outcome) -> None:
    """O-ING-06."""
    sources = [d["source"] for d in outcome.documents["O-ING-06"]]
    assert {s: sources.count(s) for s in sources} == expected("O-ING-06")["rows_per_source"]


def test_a_text_of_21_million_characters_is_kept_whole(outcome: Outcome) -> None:
    """O-ING-07."""
    assert outcome.kept("O-ING-07") == ["big", "small"]
    assert outcome.document("O-ING-07", "big")["characters"] == 21_000_000


def test_time_stamps_are_utc_whatever_the_sessions_zone(outcome: Outcome, spark: SparkSession) -> None:
    """O-ING-08: the session of the tests is in New York."""
    want = expected("O-ING-08")
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    stamps = {d["attributes"]["id"]: d["fetched_at"] for d in outcome.documents["O-ING-08"]}
    assert sorted(stamps) == want["kept"]
    assert {k: int(stamps[k].timestamp()) for k in want["epoch"]} == want["epoch"]
    bad = [d["attributes"]["id"] for d in outcome.documents["O-ING-08"] if "bad_timestamp" in d["notes"]]
    assert sorted(bad) == ["d", "e", "g", "h"]
    assert all(stamps[name] is None for name in bad)
