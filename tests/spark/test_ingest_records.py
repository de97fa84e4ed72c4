"""ingest, record by record: a record is read whole or rejected whole, with a reason of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.ingesting.settings import IngestSettings
from jobs.runtime.errors import UnreadableInput
from tests.spark.helpers import case_rows, expected, lay_out, read_files

BOM = b"\xef\xbb\xbf"


# --- what a line can be

REJECTED: list[tuple[bytes, str]] = [
    (b'{"text":"glued"}{"text":"together"}', "several_records_on_line"),
    (b'{"text":"glued"} {"text":"by a space"}', "several_records_on_line"),
    (b'{"text":"glued"}\r{"text":"by a carriage return"}', "several_records_on_line"),
    (b'{"text":"cut"', "bad_json"),
    (b'{"text":"a comma after it"},', "bad_json"),
    (b"{'text':'single quotes'}", "bad_json"),
    (b'{"text":"a raw\ttab"}', "bad_json"),
    (b"\x00\x00\x00\x00", "bad_json"),
    (b"text,source", "bad_json"),
    (b'[{"text":"in an array"}]', "not_an_object"),
    (b'"a string"', "not_an_object"),
    (b"null", "not_an_object"),
    (b"12", "not_an_object"),
    (b'{"text":"one","text":"two"}', "duplicate_key"),
    (b'{"text":"one","meta":{"k":1,"k":2}}', "duplicate_key"),
    (b'{"t\\u0065xt":"escaped","text":"plain"}', "duplicate_key"),
    (b'{"text":"caf\xe9"}', "bad_encoding"),
    (b'{"text":NaN}', "text_not_string"),
    (b'{"text":-Infinity}', "text_not_string"),
    (b'{"text":{"deep":[1,2]}}', "text_not_string"),
    (b'{"txt":"misspelt"}', "text_missing"),
    (b'{"text":null}', "text_missing"),
    (b"{}", "text_missing"),
    (b'{"text":"n","number":' + b"9" * 5000 + b"}", "bad_json"),
    (b'{"text":"d","deep":' + b"[" * 5000 + b"]" * 5000 + b"}", "bad_json"),
]
KEPT: list[tuple[bytes, str, dict[str, str]]] = [
    (b'{"text":"plain"}', "plain", {}),
    (b'  {"text":"spaces around"}\t\r', "spaces around", {}),
    (BOM + b'{"text":"byte order mark"}', "byte order mark", {}),
    (b'{"text":"it says \\"text\\": twice"}', 'it says "text": twice', {}),
    (b'{"text":"nested","meta":{"text":"inner"}}', "nested", {"meta": '{"text":"inner"}'}),
    (b'{"text":"nul\\u0000inside"}', "nul\0inside", {}),
    (b'{"text":""}', "", {}),
    (b'{"text":"not numbers","a":NaN,"b":-Infinity}', "not numbers", {"a": "NaN", "b": "-Infinity"}),
    (b'{"text":"big","n":123456789012345678901234567890}', "big", {"n": "123456789012345678901234567890"}),
    (b'{"text":"large","n":9007199254740993}', "large", {"n": "9007199254740993"}),
    (b'{"text":"null field","n":null,"s":"","t":true}', "null field", {"s": "", "t": "true"}),
    ('{"text":"\u00fcml\u00e4ut \U0001f600 \\ud83d\\ude00"}'.encode(), "\u00fcml\u00e4ut \U0001f600 \U0001f600", {}),
]


def test_every_kind_of_line_is_kept_whole_or_rejected_whole_with_its_own_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [line for line, _ in REJECTED] + [line for line, _, _ in KEPT]
    documents, rejects = read_files(spark, lay_out(tmp_path, lines), raw_characters=20_000)
    assert [(r["record"], r["reason"]) for r in rejects] == [(n, why) for n, (_, why) in enumerate(REJECTED, 1)]
    assert [r["raw"] for r in rejects] == [line.decode("utf-8", errors="backslashreplace") for line, _ in REJECTED]
    assert [(d["text"], d["attributes"]) for d in documents] == [(text, more) for _, text, more in KEPT]
    assert [d["record"] for d in documents] == list(range(len(REJECTED) + 1, len(lines) + 1))
    assert all(d["bytes"] == len(d["text"].encode()) and d["characters"] == len(d["text"]) for d in documents)


@pytest.mark.parametrize("depth", [20, 500, 900, 980, 1000, 1020, 1030])
def test_nesting_near_the_parsers_limits_never_stops_the_job(depth: int) -> None:
    """Parsers give up at different depths; a record is then kept with its field whole, or rejected."""
    from udfs.record_types import Document, RecordRules
    from udfs.records import read_json_line

    deep = "[" * depth + "1.5e300" + "]" * depth
    outcome = read_json_line(f'{{"text":"t","deep":{deep}}}'.encode(), RecordRules("s"))
    if isinstance(outcome, Document):
        assert outcome.attributes == [("deep", deep.replace("1.5e300", "1.5e+300"))]
    else:
        assert outcome is not None and outcome.reason == "bad_json" and "nested too deeply" in outcome.detail


def test_ids_are_strings_or_whole_numbers_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    """Integers keep all their digits; floats, booleans, arrays and empty ids are told apart from missing ones."""
    good = ["a", 7, 123456789012345678901234567890, "007", -1, 0, " ", "\u00fc"]
    bad: list[tuple[Any, str]] = [
        (1.0, "bad_id"), (1e3, "bad_id"), (True, "bad_id"), (["a"], "bad_id"), ({"a": 1}, "bad_id"),
        (float("nan"), "bad_id"), ("", "id_missing"), (None, "id_missing"),
    ]  # fmt: skip
    rows = [{"id": value, "text": "t"} for value in good] + [{"id": value, "text": "t"} for value, _ in bad]
    documents, rejects = read_files(spark, lay_out(tmp_path, [*rows, {"text": "t"}]), columns={"doc_id": "id"})
    assert [d["doc_id"] for d in documents] == [str(value) for value in good]
    assert [r["reason"] for r in rejects] == [*(why for _, why in bad), "id_missing"]


def test_a_dotted_name_leads_into_nested_objects_and_a_name_with_a_dot_wins(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"doc": {"body": "inside", "id": 5}, "meta": {"url": "https://a.example/"}},
        {"doc.body": "outside", "doc": {"body": "inside", "id": 6}},
        {"doc": "no object"},
        {"doc": {"body": ["no", "string"], "id": 8}},
    ]
    columns = {"text": "doc.body", "doc_id": "doc.id", "url": "meta.url"}
    documents, rejects = read_files(spark, lay_out(tmp_path, rows), columns=columns)
    assert [(d["doc_id"], d["text"], d["url"]) for d in documents] == [
        ("5", "inside", "https://a.example/"), ("6", "outside", None),
    ]  # fmt: skip
    assert [r["reason"] for r in rejects] == ["id_missing", "text_not_string"]
    assert rejects[1]["doc_id"] == "8"


def test_typed_fields_take_one_spelling_or_reject_the_record(spark: SparkSession, tmp_path: Path) -> None:
    """O-JOB-05: in both runs of the case. A value that doesn't fit never becomes NULL."""
    want = next(w for w in expected("O-JOB-05")["accept_any_of"] if isinstance(w, dict))
    documents, rejects = read_files(
        spark, lay_out(tmp_path, case_rows("O-JOB-05")), columns={"doc_id": "id"}, types={"tokens": "integer"}
    )
    assert [d["doc_id"] for d in documents] == want["kept"]
    assert [d["attributes"]["tokens"] for d in documents] == ["11", "12", "13", "15"]
    assert [(r["doc_id"], r["reason"]) for r in rejects] == [(name, "bad_type") for name in want["quarantined"]]
    assert "'tokens' should be integer, is a string" in rejects[0]["detail"]


def test_types_accept_what_means_the_same_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    fits: dict[str, list[tuple[Any, str]]] = {
        "integer": [(5, "5"), (" 5 ", "5"), (5.0, "5"), ("-7", "-7"), (10**30, str(10**30))],
        "number": [(5, "5"), ("1e3", "1000"), (0.5, "0.5")],
        "boolean": [(True, "true"), ("false", "false")],
        "timestamp": [("2024-03-10T02:30:00+01:00", "2024-03-10T01:30:00+00:00"), (0, "1970-01-01T00:00:00+00:00")],
        "string": [("x", "x"), ("", "")],
    }
    fails: dict[str, list[Any]] = {
        "integer": [5.5, "5.5", True, "", [1], float("nan"), float("inf"), "9" * 5000],
        "number": ["x", True, float("nan"), float("inf"), "nan", [1.0]],
        "boolean": [1, 0, "yes", "True"],
        "timestamp": ["10/03/2024", "1710037800", True, 10**30],
        "string": [5, True, ["x"], {"a": "b"}],
    }
    rows = [{"text": "t", kind: value} for kind, pairs in fits.items() for value, _ in pairs]
    rows += [{"text": "t", kind: value} for kind, values in fails.items() for value in values]
    documents, rejects = read_files(spark, lay_out(tmp_path, rows), types={kind: kind for kind in fits})
    assert [d["attributes"] for d in documents] == [{kind: text} for kind, pairs in fits.items() for _, text in pairs]
    assert {r["reason"] for r in rejects} == {"bad_type"} and len(rejects) == sum(map(len, fails.values()))


def test_the_source_of_a_record_is_as_the_record_spells_it(spark: SparkSession, tmp_path: Path) -> None:
    """007 and 7 are two sources, whether strings or numbers; a record without one is rejected, not put anywhere."""
    values: list[Any] = ["007", "7", 7, "1e3", "2024-01-01", "", None, ["x"]]
    rows = [{"text": "t", "from": value} for value in values]
    documents, rejects = read_files(spark, lay_out(tmp_path, rows), source="entry", columns={"source": "from"})
    assert [d["source"] for d in documents] == ["007", "7", "7", "1e3", "2024-01-01"]
    assert [(r["reason"], r["source"]) for r in rejects] == [("source_missing", "entry")] * 3


def test_a_text_above_the_limit_is_rejected_by_its_id(spark: SparkSession, tmp_path: Path) -> None:
    """The limit is in bytes, and a text of exactly as many is kept."""
    rows = [{"id": 1, "text": "\u00e4" * 50}, {"id": 2, "text": "\u00e4" * 50 + "x"}]
    documents, rejects = read_files(
        spark, lay_out(tmp_path, rows), columns={"doc_id": "id"}, max_bytes=100, raw_characters=10
    )
    assert [d["doc_id"] for d in documents] == ["1"]
    assert [(r["doc_id"], r["reason"], len(r["raw"])) for r in rejects] == [("2", "text_too_long", 10)]


# --- encodings


def test_a_utf16_file_is_rejected_line_by_line_and_not_half_read(spark: SparkSession, tmp_path: Path) -> None:
    lay_out(tmp_path, [])
    (tmp_path / "part-0000.jsonl").write_bytes('{"text":"one"}\n{"text":"two"}\n'.encode("utf-16"))
    documents, rejects = read_files(spark, tmp_path)
    assert documents == [] and [r["record"] for r in rejects] == [1, 2, 3]
    assert {r["reason"] for r in rejects} <= {"bad_encoding", "bad_json"}


@pytest.mark.parametrize("encoding", ["utf-16", "UTF_16_LE", "utf-32", "cp037"])
def test_jsonl_in_an_encoding_whose_line_feed_is_not_one_byte_is_refused(encoding: str) -> None:
    """Lines are cut at the byte 0x0A: in these encodings that would cut characters apart."""
    with pytest.raises(ValueError, match=r"convert the files to UTF-8"):
        IngestSettings(paths=["x"], encoding=encoding)
    assert IngestSettings(paths=["x"], format="text", encoding=encoding).encoding == encoding


def test_a_stated_encoding_holds_for_every_line_however_it_is_parsed(spark: SparkSession, tmp_path: Path) -> None:
    """Lines that only the exact parser reads (NaN, big numbers, lone surrogates) are decoded once, not twice."""
    lines = [
        '{"text":"caf\u00e9"}',
        '{"text":"caf\u00e9","n":NaN}',
        f'{{"text":"caf\u00e9","n":{10**30}}}',
        '{"text":"caf\u00e9 \\ud83d"}',
    ]
    folder = lay_out(tmp_path, [line.encode("latin-1") for line in lines])
    documents, rejects = read_files(spark, folder, encoding="latin-1")
    assert rejects == []
    assert [d["text"] for d in documents] == ["caf\u00e9", "caf\u00e9", "caf\u00e9", "caf\u00e9 \ufffd"]


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "shift_jis"])
def test_replaced_bytes_are_noted_in_the_document(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    folder = lay_out(tmp_path, [b'{"text":"bad \xff\xff byte"}', b'{"text":"good"}'])
    documents, rejects = read_files(spark, folder, encoding=encoding, encoding_errors="replace")
    assert rejects == []
    assert [d["notes"] for d in documents] == [["bad_encoding"], []]
    assert "\ufffd" in documents[0]["text"] and documents[1]["text"] == "good"


@pytest.mark.parametrize("columns", [{"text": "txet"}, {"doc_id": "di"}])
def test_a_mistyped_column_stops_the_job_instead_of_rejecting_everything(
    spark: SparkSession, tmp_path: Path, columns: dict[str, str]
) -> None:
    """One record in which the field is there, and the others are rejects like any."""
    rows: list[dict[str, Any]] = [{"id": f"d{i}", "text": "a text"} for i in range(12)]
    ((column, field),) = columns.items()
    with pytest.raises(UnreadableInput, match="not one record has the field") as caught:
        read_files(spark, lay_out(tmp_path / "all", rows), columns=columns)
    assert field in str(caught.value) and f"columns.{column}" in str(caught.value)
    documents, rejects = read_files(
        spark, lay_out(tmp_path / "most", [*rows, {"text": "t", field: "x"}]), columns=columns
    )
    assert (len(documents), len(rejects)) == (1, 12)
