"""ingest: tables as input, and the job's own promises: once per run id, times in UTC, ids that are unique."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.runtime.errors import DuplicateIds, InputContractError, UnreadableInput
from jobs.runtime.session import configured
from jobs.runtime.tables import TableRef
from tests.spark.helpers import case_rows, expected, lay_out, read_files, run, settings_in, table, version_of

# --- Parquet and Delta


def parquet(spark: SparkSession, folder: Path, select: str) -> None:
    spark.sql(f"SELECT {select}").coalesce(1).write.mode("append").parquet(str(folder))


def test_parquet_columns_of_every_type_become_what_they_say(spark: SparkSession, tmp_path: Path) -> None:
    select = """
        'first' AS text, 5000000000L AS id, CAST(12.50 AS DECIMAL(10,2)) AS price, DATE'2024-03-10' AS day,
        TIMESTAMP_NTZ'2024-03-10 02:30:00' AS seen, TIMESTAMP'2024-03-10 02:30:00Z' AS zoned, CAST('raw' AS BINARY) AS bin,
        CAST(X'FF' AS BINARY) AS bytes_only, named_struct('url', 'https://a.example', 'n', 1) AS meta, array(1, 2) AS list,
        map('k', 'v') AS dictionary, CAST('NaN' AS DOUBLE) AS nan, true AS flag, CAST(NULL AS STRING) AS nothing,
        'dots' AS `a.b`, INTERVAL '1' DAY AS gap
    """
    parquet(spark, tmp_path / "p", select)
    columns = {"doc_id": "id", "url": "meta.url", "fetched_at": "seen"}
    documents, rejects = read_files(spark, tmp_path / "p", format="parquet", columns=columns)
    assert rejects == []
    (found,) = documents
    assert (found["doc_id"], found["text"], found["url"], found["record"]) == (
        "5000000000",
        "first",
        "https://a.example",
        1,
    )
    assert found["fetched_at"].timestamp() == 1710037800
    more = found["attributes"]
    assert (more["price"], more["day"], more["bin"], more["list"], more["dictionary"]) == (
        "12.50",
        "2024-03-10",
        "raw",
        "[1,2]",
        '{"k":"v"}',
    )
    assert (more["nan"], more["flag"], more["a.b"]) == ("NaN", "true", "dots")
    assert json.loads(more["meta"]) == {"n": 1} and "nothing" not in more  # the URL has become a column


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("5", "text_not_string"), ("CAST(1.5 AS DECIMAL(3,1))", "text_not_string"), ("DATE'2024-03-10'", "text_not_string"),
        ("TIMESTAMP'2024-03-10 00:00:00'", "text_not_string"), ("TIMESTAMP_NTZ'2024-03-10 00:00:00'", "text_not_string"),
        ("CAST(X'FFFE' AS BINARY)", "bad_encoding"), ("array('a')", "text_not_string"), ("named_struct('a', 'b')", "text_not_string"),
        ("CAST(NULL AS STRING)", "text_missing"), ("true", "text_not_string"),
    ],
)  # fmt: skip
def test_a_parquet_text_that_is_no_string_is_rejected_as_in_jsonl(
    spark: SparkSession, tmp_path: Path, value: str, reason: str
) -> None:
    """A date or a decimal does not become prose by being printed; bytes that are no text are no text."""
    parquet(spark, tmp_path / "p", f"{value} AS text, 'x' AS id")
    documents, rejects = read_files(spark, tmp_path / "p", format="parquet", columns={"doc_id": "id"})
    assert documents == [] and [(r["reason"], r["doc_id"], r["record"]) for r in rejects] == [(reason, "x", 1)]


def test_parquet_files_may_have_different_columns(spark: SparkSession, tmp_path: Path) -> None:
    parquet(spark, tmp_path / "p", "'one' AS text, 1 AS a")
    parquet(spark, tmp_path / "p", "'x' AS b, 'two' AS text")
    documents, _ = read_files(spark, tmp_path / "p", format="parquet")
    assert sorted((d["text"], str(d["attributes"])) for d in documents) == [
        ("one", "{'a': '1'}"),
        ("two", "{'b': 'x'}"),
    ]


def test_parquet_files_whose_columns_contradict_each_other_are_said_so(spark: SparkSession, tmp_path: Path) -> None:
    parquet(spark, tmp_path / "p", "'one' AS text, 1 AS a")
    parquet(spark, tmp_path / "p", "'two' AS text, 'x' AS a")
    settings = settings_in(tmp_path, ingest={"web": {"paths": [str(tmp_path / "p")], "format": "parquet"}})
    with pytest.raises(InputContractError, match=r"web.*contradict.*'a'") as caught:
        run(spark, settings, "ingest")
    assert caught.value.exit_code == 4


def test_a_file_that_is_no_parquet_stops_the_job(spark: SparkSession, tmp_path: Path) -> None:
    parquet(spark, tmp_path / "p", "'one' AS text")
    (tmp_path / "p" / "bad.parquet").write_bytes(b"this is no parquet file")
    settings = settings_in(tmp_path, ingest={"web": {"paths": [str(tmp_path / "p")], "format": "parquet"}})
    with pytest.raises(UnreadableInput, match=r"bad\.parquet"):
        run(spark, settings, "ingest")


def test_a_delta_table_is_read_at_one_version_that_is_noted(spark: SparkSession, tmp_path: Path) -> None:
    """Rows deleted from the table before are not read; the same table named twice is read once."""
    place = str(tmp_path / "input")
    for number in range(3):
        spark.createDataFrame(
            [(f"d{number}", f"text {number}", {"n": str(number)})], "id STRING, text STRING, m MAP<STRING, STRING>"
        ).write.format("delta").mode("append").save(place)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE id = 'd1'")
    settings = settings_in(
        tmp_path, ingest={"web": {"paths": [place, place + "/"], "format": "delta", "columns": {"doc_id": "id"}}}
    )
    result = run(spark, settings, "ingest")
    assert result.record.notes["version_of.web"] == f"{place}@3"
    rows = table(spark, settings, "documents").orderBy("doc_id").collect()
    assert [(r["doc_id"], r["text"], r["attributes"]) for r in rows] == [
        ("d0", "text 0", {"m": '{"n":"0"}'}), ("d2", "text 2", {"m": '{"n":"2"}'}),
    ]  # fmt: skip
    with pytest.raises(UnreadableInput, match=r"no Delta table"):
        run(
            spark,
            settings_in(tmp_path, ingest={"web": {"paths": [str(tmp_path / "nothing")], "format": "delta"}}),
            "ingest",
            "r2",
        )


# --- the job's own promises


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_time_stamps_do_not_depend_on_the_sessions_zone(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """O-ING-08 in two more zones: of JSON and of Parquet, stored in a table."""
    from pyspark.sql import functions as F

    want = expected("O-ING-08")
    folder = lay_out(tmp_path / "j", case_rows("O-ING-08"))
    parquet(spark, tmp_path / "p", "'t' AS text, TIMESTAMP_NTZ'2024-03-10 02:30:00' AS ts, 'p' AS id")
    columns = {"doc_id": "id", "fetched_at": "ts"}
    entries = {
        "j": {"paths": [str(folder)], "columns": columns},
        "p": {"paths": [str(tmp_path / "p")], "format": "parquet", "columns": columns},
    }
    with configured(spark, {"spark.sql.session.timeZone": zone}):
        settings = settings_in(tmp_path, ingest=entries)
        result = run(spark, settings, "ingest")
        rows = table(spark, settings, "documents").select("doc_id", F.unix_seconds("fetched_at"), "notes").collect()
        assert spark.conf.get("spark.sql.session.timeZone") == zone  # the job puts back what it sets
    stamps = {r[0]: r[1] for r in rows}
    assert sorted(stamps) == [*want["kept"], "p"]
    assert {name: stamps[name] for name in want["epoch"]} == want["epoch"] and stamps["p"] == 1710037800
    bad = sorted(r[0] for r in rows if "bad_timestamp" in r[2])
    assert bad == sorted([*want["null_and_counted"], "g"]) and all(stamps[name] is None for name in bad)
    assert result.record.notes["repaired.bad_timestamp"] == "4"


def test_running_the_same_run_id_three_times_writes_once(spark: SparkSession, tmp_path: Path) -> None:
    """O-JOB-01; other settings under the same run id are refused."""
    from jobs.runtime.errors import RunRefused

    folder = lay_out(tmp_path / "in", case_rows("O-JOB-01"))
    entry = {"paths": [str(folder)], "columns": {"doc_id": "id", "source": "source"}}
    settings = settings_in(tmp_path, ingest={"s1": entry})
    versions = []
    for attempt, rows in enumerate(expected("O-JOB-01")["rows_after_runs"]):
        result = run(spark, settings, "ingest")
        assert (result.already_done, result.record.exit_code) == (attempt > 0, 0)
        assert table(spark, settings, "documents").count() == rows
        versions.append([version_of(spark, settings, name) for name in ("documents", "rejects", "runs")])
    assert versions[0] == versions[1] == versions[2]
    history = spark.sql(f"DESCRIBE HISTORY {TableRef.in_warehouse(settings.warehouse, 'documents').identifier}")
    assert history.where("operation = 'WRITE'").count() == 1
    with pytest.raises(RunRefused, match=r"other settings"):
        run(spark, settings_in(tmp_path, ingest={"s1": {**entry, "max_bytes": 1000}}), "ingest")


def test_of_doubled_keys_the_latest_is_kept_and_updated_and_the_reduction_is_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """O-JOB-03; delivering the old file again changes nothing back."""
    want = expected("O-JOB-03")
    rows = case_rows("O-JOB-03")
    columns = {"doc_id": "id", "source": "source", "fetched_at": "fetched_at"}
    results = []
    for number in (1, 2, 1):
        folder = lay_out(tmp_path / f"run{number}", [r for r in rows if r["run"] == number])
        entry = {"paths": [str(folder)], "columns": columns, "duplicate_ids": "keep_latest"}
        settings = settings_in(tmp_path, ingest={"s1": entry})
        results.append(run(spark, settings, "ingest", f"r{len(results)}"))
        found = {r["doc_id"]: r for r in table(spark, settings, "documents").collect()}
        assert table(spark, settings, "documents").count() == len(found) == want["rows_after"][0]
        assert found["k3"]["text"] == want["k3_text"][min(len(results), 2) - 1]
        # Collected stamps are naive and local to this process.
        assert found["k2"]["fetched_at"].astimezone().timestamp() == 1704153600
    counts = [{(c["outcome"], c["reason"]): c["documents"] for c in r.record.counts} for r in results]
    assert counts[0] == {("in", ""): 4, ("kept", ""): 3, ("quarantined", "duplicate_id"): 1}
    assert counts[1] == {("in", ""): 2, ("kept", "changed"): 1, ("quarantined", "duplicate_id"): 1}
    assert counts[2] == {
        ("in", ""): 4, ("dropped", "already_there"): 2, ("dropped", "outdated"): 1, ("quarantined", "duplicate_id"): 1,
    }  # fmt: skip
    rejects = table(spark, settings, "rejects").collect()
    assert sorted((r["doc_id"], r["record"]) for r in rejects) == [("k2", 2), ("k3", 2)]
    assert all(r["raw"] and len(r["raw_sha256"]) == 32 for r in rejects), "what was rejected is not stored"


def test_duplicate_given_ids_stop_the_job_with_counts_and_examples(spark: SparkSession, tmp_path: Path) -> None:
    """Within a delivery and against the table; nothing of the delivery is written, not even its rejects."""
    first = lay_out(tmp_path / "a", [{"id": n, "text": f"t{n}"} for n in range(4)])
    columns = {"doc_id": "id"}
    settings = settings_in(tmp_path, ingest={"web": {"paths": [str(first)], "columns": columns}})
    run(spark, settings, "ingest")
    before = [version_of(spark, settings, name) for name in ("documents", "rejects")]
    rows = [
        {"id": "x", "text": "one"},
        {"id": "x", "text": "two"},
        {"id": "x", "text": "one"},
        {"id": 2, "text": "other"},
    ]
    second = lay_out(tmp_path / "b", [*rows, {"id": 3, "text": "t3"}, "broken"])
    with pytest.raises(DuplicateIds) as caught:
        run(spark, settings_in(tmp_path, ingest={"web": {"paths": [str(second)], "columns": columns}}), "ingest", "r2")
    message = str(caught.value)
    assert caught.value.exit_code == 4
    assert "3 record(s)" in message and "2 repeat an id" in message and "1 have an id" in message
    assert "id 'x' (repeated)" in message and "id '2' (other text)" in message and "line 4" in message
    assert [version_of(spark, settings, name) for name in ("documents", "rejects")] == before
