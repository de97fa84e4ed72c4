"""ingest: a record is read whole or rejected whole, whatever the files look like; nothing is lost or half-read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import random
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.ingest import IngestSettings
from jobs.ingesting.files import list_files
from jobs.runtime.errors import DuplicateIds, InputContractError, NotPermitted, UnreadableInput
from jobs.runtime.tables import TableRef, latest_version
from tests.spark.helpers import case_rows, expected, lay_out, read_files, run, settings_in, table, version_of

BOM = b"\xef\xbb\xbf"


@contextmanager
def configured(spark: SparkSession, **conf: str) -> Iterator[None]:
    """Spark configuration for a block, dots written as double underscores."""
    from jobs.runtime.session import configured as set_for

    with set_for(spark, {name.replace("__", "."): value for name, value in conf.items()}):
        yield


def zstd(content: bytes) -> bytes:
    sink = io.BytesIO()
    with pa.CompressedOutputStream(pa.PythonFile(sink), "zstd") as stream:
        stream.write(content)
    return sink.getvalue()


def file_of(row: dict[str, Any]) -> str:
    """The path that a row's file URI stands for."""
    return urllib.parse.unquote(urllib.parse.urlsplit(row["file"]).path)


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


@pytest.mark.parametrize("depth", [500, 900, 980, 1000, 1020, 1030])
def test_nesting_near_the_parsers_limits_never_stops_the_job(depth: int) -> None:
    """Parsers give up at different depths; a record is then kept with its field whole, or rejected."""
    from udfs.records import Document, RecordRules, read_json_line

    deep = "[" * depth + "1.5e300" + "]" * depth
    outcome = read_json_line(f'{{"text":"t","deep":{deep}}}'.encode(), RecordRules("s"))
    if isinstance(outcome, Document):
        assert outcome.attributes == [("deep", deep.replace("1.5e300", "1.5e+300"))]
    else:
        assert outcome is not None and (outcome.reason, outcome.detail) == ("bad_json", "nested too deeply")


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
        "number": [(5, "5"), ("1e3", "1000.0"), (0.5, "0.5")],
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


# --- lines and files

LINES = 400


def long_file() -> tuple[bytes, dict[int, int], list[int]]:
    """A file with blank and broken lines; the number of every good line by its n, and those of the broken ones."""
    draw = random.Random(3)
    lines, good, broken = [], {}, []
    for number in range(1, LINES + 1):
        kind = draw.random()
        if kind < 0.2:
            lines.append(draw.choice([b"", b"  ", b"\r", b"\t\r"]))
        elif kind < 0.3:
            lines.append(b'{"text": "broken')
            broken.append(number)
        else:
            words = "".join(chr(draw.randrange(97, 123)) for _ in range(draw.randrange(1, 3000)))
            lines.append(json.dumps({"text": words, "n": number}).encode() + draw.choice([b"", b"\r"]))
            good[number] = number
    return b"\n".join(lines), good, broken


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2"])
def test_line_numbers_count_through_stretches_and_blank_lines(spark: SparkSession, tmp_path: Path, ending: str) -> None:
    """A file is cut into many tasks (bz2 too can be cut); the line numbers are those of the whole file."""
    content, good, broken = long_file()
    packed = {"": content, ".gz": gzip.compress(content), ".bz2": bz2.compress(content, 1)}[ending]
    (tmp_path / f"long.jsonl{ending}").write_bytes(packed)
    with configured(spark, spark__sql__files__maxPartitionBytes="20000", spark__sql__files__openCostInBytes="1"):
        documents, rejects = read_files(spark, tmp_path)
        if ending == "":
            stretches = spark.read.text(str(tmp_path)).selectExpr("_metadata.file_block_start").distinct().count()
            assert stretches > 10
    assert {d["record"]: int(d["attributes"]["n"]) for d in documents} == good
    assert [r["record"] for r in rejects] == broken


def test_compressed_files_are_read_by_their_ending_hidden_or_not(spark: SparkSession, tmp_path: Path) -> None:
    """Also a gz of several members, as many tools write them; and names that Spark itself would pass over."""
    packers = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}
    want = []
    for ending, pack in packers.items():
        for start in ("", "_", "."):
            name = f"{start}part.jsonl.{ending}"
            parts = [f'{{"text":"{name} {number}"}}\n'.encode() for number in range(2)]
            (tmp_path / name).write_bytes(
                b"".join(pack(part) for part in parts) if ending != "zst" else pack(b"".join(parts))
            )
            want += [f"{name} {number}" for number in range(2)]
    documents, rejects = read_files(spark, tmp_path)
    assert sorted(d["text"] for d in documents) == sorted(want) and rejects == []


@pytest.mark.parametrize(
    "name", ["cut.jsonl.gz", "_cut.jsonl.gz", "cut.jsonl.zst", "_cut.jsonl.bz2", "noise.jsonl.bz2"]
)
def test_a_damaged_compressed_file_stops_the_job_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    draw = random.Random(4)
    content = b"".join(b'{"text":"%032x"}\n' % draw.getrandbits(128) for _ in range(3000))
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}[name.rpartition(".")[2]](content)
    folder = lay_out(tmp_path / "in", [{"text": "fine"}])
    (folder / name).write_bytes(b"noise" * 100 if name.startswith("noise") else packed[: len(packed) // 2])
    settings = settings_in(tmp_path, ingest={"web": {"paths": [str(folder)]}})
    with pytest.raises(UnreadableInput) as caught:
        run(spark, settings, "ingest")
    assert caught.value.exit_code == 4 and name in str(caught.value)
    assert latest_version(spark, TableRef.in_warehouse(settings.warehouse, "documents")) is None


NAMES = [
    "plain.jsonl", "two words.jsonl", "50%25.jsonl", "100%.jsonl", "\u00fcml\u00e4ut.jsonl", "\u65e5\u672c.jsonl", "a[1].jsonl",
    "b{2}.jsonl", "c*.jsonl", "d?.jsonl", "e:f.jsonl", "g#h.jsonl", "i+j&k=l.jsonl", "it's.jsonl", 'quo"te.jsonl', "comma,.jsonl",
    "back\\slash.jsonl", "~tilde.jsonl", "_under.jsonl", ".dot.jsonl", "UPPER.JSONL", "x.ndjson", "y.json", "sub/dir/z.jsonl",
    "_folder/p.jsonl", ".folder/q.jsonl", "odd [folder]/r.jsonl", "odd {f}%41/s.jsonl", "k=v/t.jsonl",
]  # fmt: skip


def test_files_are_read_once_whatever_they_are_called(spark: SparkSession, tmp_path: Path) -> None:
    """Names that Spark takes for patterns, schemes, escapes or hidden files; folders likewise."""
    for name in NAMES:
        lay_out((tmp_path / name).parent, [{"text": name}], Path(name).name)
    documents, rejects = read_files(spark, tmp_path)
    assert rejects == []
    assert sorted((file_of(d), d["text"]) for d in documents) == sorted((str(tmp_path / n), n) for n in NAMES)


def test_a_path_with_odd_characters_can_be_given_itself(spark: SparkSession, tmp_path: Path) -> None:
    """A file named in the settings is that file, also if its name would be a glob, and whatever its ending."""
    for name in ("a[1].jsonl", "a1.jsonl", "data.txt"):
        lay_out(tmp_path, [{"text": name}], name)
    documents, _ = read_files(spark, [tmp_path / "a[1].jsonl", tmp_path / "data.txt"])
    assert sorted(d["text"] for d in documents) == ["a[1].jsonl", "data.txt"]


def test_a_file_reached_by_two_paths_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    lay_out(tmp_path / "x", [{"text": "one"}, {"text": "one"}])
    paths = [
        tmp_path / "x",
        tmp_path / "x" / "part-0000.jsonl",
        tmp_path / "*" / "*.jsonl",
        tmp_path / "x" / ".." / "x",
    ]
    documents, _ = read_files(spark, paths)
    assert [d["text"] for d in documents] == ["one", "one"]


def test_bookkeeping_files_are_left_out_below_a_glob_too(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("t/_delta_log/0000.json", "t/_SUCCESS", "t/.part.jsonl.crc", "t/_temporary/x.jsonl", "t/.git/y.json"):
        lay_out((tmp_path / name).parent, [{"text": name}], Path(name).name)
    lay_out(tmp_path / "t", [{"text": "data"}])
    for path in (tmp_path, tmp_path / "*", tmp_path / "t"):
        listing = list_files(spark, [str(path)], "jsonl", None)
        assert [os.path.basename(uri) for uri in (*listing.uris, *listing.hidden)] == ["part-0000.jsonl"]


@pytest.mark.parametrize("content", [b"", b"\n\n \r\n", BOM, BOM + b"\n"])
def test_files_without_a_record_are_nothing_to_complain_about(
    spark: SparkSession, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "empty.jsonl").write_bytes(content)
    (tmp_path / "_empty.jsonl").write_bytes(content)
    assert read_files(spark, tmp_path) == ([], [])


def test_hidden_files_can_be_refused_or_skipped_and_are_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in", [{"text": "seen"}])
    lay_out(folder, [{"text": "hidden"}], "_shard.jsonl")
    refusing = settings_in(tmp_path, ingest={"web": {"paths": [str(folder)], "hidden_files": "error"}})
    with pytest.raises(UnreadableInput, match=r"_shard\.jsonl"):
        run(spark, refusing, "ingest")
    skipping = settings_in(tmp_path, ingest={"web": {"paths": [str(folder)], "hidden_files": "skip"}})
    result = run(spark, skipping, "ingest", "r2")
    assert result.record.notes["skipped_files.web"] == "_shard.jsonl"
    assert [r["text"] for r in table(spark, skipping, "documents").collect()] == ["seen"]


def test_paths_with_nothing_to_read_are_all_named(spark: SparkSession, tmp_path: Path) -> None:
    lay_out(tmp_path, [], "readme.md")
    with pytest.raises(UnreadableInput, match=r"nothing is at these paths") as caught:
        list_files(spark, [str(tmp_path / "no"), str(tmp_path), str(tmp_path / "no*.jsonl")], "jsonl", None)
    assert caught.value.differences == [str(tmp_path / "no"), str(tmp_path / "no*.jsonl")]
    with pytest.raises(UnreadableInput, match=r"looks like jsonl .*1 other file"):
        list_files(spark, [str(tmp_path)], "jsonl", None)


def test_a_file_that_may_not_be_read_is_named_before_anything_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so the answer of the operating system is replaced."""
    lay_out(tmp_path, [{"text": "x"}], "secret.jsonl")
    lay_out(tmp_path, [{"text": "x"}], "open.jsonl")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("secret.jsonl"))
    with pytest.raises(NotPermitted) as caught:
        list_files(spark, [str(tmp_path)], "jsonl", None)
    assert caught.value.differences == [str(tmp_path / "secret.jsonl")] and caught.value.exit_code == 4


# --- text files


def test_a_text_file_is_a_document_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    contents = {
        "a.txt": b"one\r\ntwo\n", "empty.txt": b"", "bom.txt": BOM + b"marked", "_init.py": b"pass\n", "x y%[1].txt": b"odd",
        "packed.txt.gz": gzip.compress(b"packed"), "packed.txt.zst": zstd(b"zipped"), "image.png": b"\x89PNG\x00\x00", "latin.txt": b"caf\xe9",
        "broken.txt.gz": gzip.compress(b"x" * 1000)[:20],
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    documents, rejects = read_files(spark, tmp_path, format="text")
    assert {d["attributes"]["file_name"]: d["text"] for d in documents} == {
        "a.txt": "one\r\ntwo\n", "empty.txt": "", "bom.txt": "marked", "_init.py": "pass\n", "x y%[1].txt": "odd",
        "packed.txt.gz": "packed", "packed.txt.zst": "zipped",
    }  # fmt: skip
    assert {os.path.basename(file_of(r)): r["reason"] for r in rejects} == {
        "image.png": "binary_file", "latin.txt": "bad_encoding", "broken.txt.gz": "bad_encoding",
    }  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-16", "utf_16", "UTF16LE", "utf_32"])
def test_text_in_a_wide_encoding_is_not_taken_for_a_binary_file(
    spark: SparkSession, tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "a.txt").write_bytes("wide \u00e4\n".encode(encoding))
    documents, rejects = read_files(spark, tmp_path, format="text", encoding=encoding)
    assert rejects == [] and [d["text"] for d in documents] == ["wide \u00e4\n"]


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
    assert json.loads(more["meta"]) == {"url": "https://a.example", "n": 1} and "nothing" not in more


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("5", "text_not_string"), ("CAST(1.5 AS DECIMAL(3,1))", "text_not_string"), ("DATE'2024-03-10'", "text_not_string"),
        ("TIMESTAMP'2024-03-10 00:00:00'", "text_not_string"), ("TIMESTAMP_NTZ'2024-03-10 00:00:00'", "text_not_string"),
        ("CAST(X'FFFE' AS BINARY)", "text_not_string"), ("array('a')", "text_not_string"), ("named_struct('a', 'b')", "text_not_string"),
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
    with configured(spark, spark__sql__session__timeZone=zone):
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
