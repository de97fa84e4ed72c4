"""ingest, file by file: every file is read once, whatever it is called, however it is packed or cut."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import random
import urllib.parse
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.ingesting.files import list_files
from jobs.runtime.errors import NotPermitted, UnreadableInput
from jobs.runtime.session import configured
from jobs.runtime.tables import TableRef, latest_version
from tests.spark.helpers import lay_out, read_files, run, settings_in, table

BOM = b"\xef\xbb\xbf"


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def file_of(row: dict[str, Any]) -> str:
    """The path that a row's file URI stands for."""
    return urllib.parse.unquote(urllib.parse.urlsplit(row["file"]).path)


# --- lines and files

LINES = 200


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
    with configured(spark, {"spark.sql.files.maxPartitionBytes": "20000", "spark.sql.files.openCostInBytes": "1"}):
        documents, rejects = read_files(spark, tmp_path)
        if ending == "":
            stretches = spark.read.text(str(tmp_path)).selectExpr("_metadata.file_block_start").distinct().count()
            assert stretches > 8
    assert {d["record"]: int(d["attributes"]["n"]) for d in documents} == good
    assert [r["record"] for r in rejects] == broken


def test_compressed_files_are_read_by_their_ending_hidden_or_not(spark: SparkSession, tmp_path: Path) -> None:
    """Also a gz of several members, as many tools write them; and names that Spark itself would pass over."""
    packers = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}
    want = []
    for ending, pack in packers.items():
        for name in (*(f"{start}part.jsonl.{ending}" for start in ("", "_", ".")), f"LOUD.JSONL.{ending.upper()}"):
            parts = [f'{{"text":"{name} {number}"}}\n'.encode() for number in range(2)]
            (tmp_path / name).write_bytes(
                b"".join(pack(part) for part in parts) if ending != "zst" else pack(b"".join(parts))
            )
            want += [f"{name} {number}" for number in range(2)]
    documents, rejects = read_files(spark, tmp_path)
    assert sorted(d["text"] for d in documents) == sorted(want) and rejects == []


@pytest.mark.parametrize(
    "name", ["cut.jsonl.gz", "_cut.jsonl.gz", "cut.jsonl.zst", "cut.jsonl.bz2", "_cut.jsonl.bz2", "noise.jsonl.bz2"]
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
    assert caught.value.exit_code == 4
    assert ("source 'web': 2 files" if name.startswith("noise") else name) in str(caught.value)
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


@pytest.mark.parametrize("encoding", ["utf-16", "utf_16", "UTF-16LE", "utf_32"])
def test_text_in_a_wide_encoding_is_not_taken_for_a_binary_file(
    spark: SparkSession, tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "a.txt").write_bytes("wide \u00e4\n".encode(encoding))
    documents, rejects = read_files(spark, tmp_path, format="text", encoding=encoding)
    assert rejects == [] and [d["text"] for d in documents] == ["wide \u00e4\n"]
