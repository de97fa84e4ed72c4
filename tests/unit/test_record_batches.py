"""Batches of raw lines, files and rows: one row each, the right positions, whatever the batches' borders."""

from __future__ import annotations

import bz2
import datetime
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, StructType

from schemas.types import parse_type
from udfs import record_batches
from udfs.record_batches import (
    LINES_MARK,
    SCHEMA,
    SPARK_SCHEMA,
    file_reader,
    line_reader,
    row_reader,
    source_in,
    unpack,
)
from udfs.record_types import Mapped, RecordRules

RULES = RecordRules("web")


def lines(*rows: tuple[str, int, bytes]) -> pa.RecordBatch:
    """A batch of (file, stretch, line)."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([r[0] for r in rows], pa.string()),
            pa.array([r[1] for r in rows], pa.int64()),
            pa.array([r[2] for r in rows], pa.binary()),
        ],
        names=["file", "stretch", "line"],
    )


def files(**contents: bytes) -> pa.RecordBatch:
    names = [name.replace("__", ".") for name in contents]
    return pa.RecordBatch.from_arrays(
        [pa.array([f"file:///d/{n}" for n in names]), pa.array(list(contents.values()), pa.binary())],
        names=["file", "content"],
    )


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    found = list(batches)
    assert all(batch.schema == SCHEMA for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def text_line(text: str) -> bytes:
    return json.dumps({"text": text}).encode()


# --- schemas


def test_both_schemas_are_the_same() -> None:
    """What goes out of Python is described twice, for Arrow and for Spark."""
    names = {
        pa.string(): "string", pa.int64(): "bigint", pa.int32(): "int", pa.binary(): "binary",
        pa.timestamp("us", tz="UTC"): "timestamp", pa.map_(pa.string(), pa.string()): "map<string,string>",
        pa.list_(pa.string()): "array<string>",
    }  # fmt: skip
    columns = ", ".join(
        part.replace(" ", ": ", 1) for part in SPARK_SCHEMA.replace("<STRING, STRING>", "<S>").split(", ")
    )
    spark: DataType = parse_type(f"STRUCT<{columns.replace('<S>', '<STRING, STRING>')}>")
    assert isinstance(spark, StructType)
    assert [(f.name, f.dataType.simpleString()) for f in spark.fields] == [(f.name, names[f.type]) for f in SCHEMA]


# --- lines


def test_a_good_line_has_all_measures() -> None:
    (row, mark) = rows_of(line_reader(RULES, None)([lines(("f", 0, '{"text":"hé","k":1}'.encode()))]))
    assert row == dict.fromkeys(SCHEMA.names) | {
        "file": "f", "stretch": 0, "position": 1, "source": "web", "bytes": 3, "characters": 2,
        "text_sha256": hashlib.sha256("hé".encode()).digest(), "attributes": [("k", "1")], "notes": [], "text": "hé",
    }  # fmt: skip
    assert mark == dict.fromkeys(SCHEMA.names) | {
        "file": "f", "stretch": 0, "position": 1, "source": "web", "reason": LINES_MARK, "detail": "0",
    }  # fmt: skip


def test_a_bad_line_is_stored_as_it_was_read() -> None:
    line = b'{"id":"a","text":'
    (row, _) = rows_of(line_reader(RULES, None)([lines(("f", 7, line))]))
    assert (row["reason"], row["raw"], row["raw_sha256"]) == ("bad_json", line.decode(), hashlib.sha256(line).digest())
    assert (row["file"], row["stretch"], row["position"], row["text"], row["bytes"]) == ("f", 7, 1, None, None)


def test_positions_go_on_over_batches_and_start_anew_with_each_stretch() -> None:
    a, b = text_line("a"), text_line("b")
    batches = [
        lines(("f", 0, a), ("f", 0, b"")),
        lines(("f", 0, b"oops"), ("f", 0, b"\r"), ("f", 100, b)),
        lines(("f", 100, a), ("g", 0, b"")),
    ]
    found = [(r["file"], r["stretch"], r["position"], r["reason"], r["detail"], r["text"])
             for r in rows_of(line_reader(RULES, None)(batches))]  # fmt: skip
    bad = next(row[4] for row in found if row[3] == "bad_json")
    assert found == [
        ("f", 0, 1, None, None, "a"),
        ("f", 0, 3, "bad_json", bad, None),
        ("f", 0, 4, LINES_MARK, "2", None),
        ("f", 100, 1, None, None, "b"),
        ("f", 100, 2, None, None, "a"),
        ("f", 100, 2, LINES_MARK, "0", None),
        ("g", 0, 1, LINES_MARK, "1", None),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_the_borders_of_batches_change_nothing(size: int) -> None:
    all_rows = [("f", 0, text_line(str(i)) if i % 3 else b" ") for i in range(30)] + [("f", 9, b"x")] * 5
    batches = [lines(*all_rows[i : i + size]) for i in range(0, len(all_rows), size)]
    assert rows_of(line_reader(RULES, None)(batches)) == rows_of(line_reader(RULES, None)([lines(*all_rows)]))


def test_every_line_is_a_row_or_counted_as_blank() -> None:
    given = [b"", text_line("a"), b"bad", b"\t", text_line("b"), b"[]", b" "]
    found = rows_of(line_reader(RULES, None)([lines(*[("f", 0, line) for line in given])]))
    (mark,) = [row for row in found if row["reason"] == LINES_MARK]
    assert mark["position"] == len(given)
    assert len(found) - 1 == mark["position"] - int(mark["detail"]) == 4


def test_no_lines_give_no_rows() -> None:
    assert rows_of(line_reader(RULES, None)([])) == []
    assert rows_of(line_reader(RULES, None)([lines()])) == []


def test_a_reader_can_be_used_again() -> None:
    """The function is made once and runs in many tasks: nothing may be left over."""
    reader = line_reader(RULES, None)
    first = rows_of(reader([lines(("f", 0, text_line("a")))]))
    assert rows_of(reader([lines(("f", 0, text_line("a")))])) == first


def test_the_source_may_stand_in_the_path() -> None:
    batch = lines(("file:///d/source=007/p", 0, text_line("a")), ("file:///d/source=7/p", 0, b"bad"),
                  ("file:///d/source%3Da%20b/p", 0, b" "), ("file:///d/none/p", 0, text_line("b")))  # fmt: skip
    found = rows_of(line_reader(RULES, "source=([^/]+)")([batch]))
    assert {r["file"].split("/")[4]: r["source"] for r in found} == {
        "source=007": "007", "source=7": "7", "source%3Da%20b": "a b", "none": "web",
    }  # fmt: skip
    assert all(r["source"] for r in found)


def test_the_source_in_a_path() -> None:
    assert source_in("file:///d/books/x", "/(books|web)/") == "books"
    assert source_in("file:///d/books/x", "books") == "books"
    assert source_in("file:///d/books/x", "(forum)") is None


# --- batches that go out


def test_long_texts_go_out_before_they_fill_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "FLUSH_BYTES", 100)
    batch = lines(*[("f", 0, text_line("x" * 40)) for _ in range(10)])
    sizes = [b.num_rows for b in line_reader(RULES, None)([batch])]
    assert sizes == [3, 3, 3, 2]


def test_long_attributes_and_raw_records_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "FLUSH_BYTES", 100)
    wide = json.dumps({"text": "", "k": "x" * 60}).encode()
    assert [b.num_rows for b in line_reader(RULES, None)([lines(*[("f", 0, wide)] * 4)])] == [2, 2, 1]
    assert [b.num_rows for b in line_reader(RULES, None)([lines(*[("f", 0, b"x" * 60)] * 4)])] == [2, 2, 1]


def test_many_small_rows_go_out_ten_thousand_at_a_time() -> None:
    batch = lines(*[("f", 0, b"{}")] * 20_500)
    assert [b.num_rows for b in line_reader(RULES, None)([batch])] == [10_000, 10_000, 501]


# --- files


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}


def test_a_file_is_a_document_and_keeps_its_name() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["file:///d/a%20b.txt"]), pa.array(["hé\r\n".encode()], pa.binary())], names=["file", "content"]
    )
    (row,) = rows_of(file_reader(RULES, None)([batch]))
    assert (row["text"], row["position"], row["stretch"], row["reason"]) == ("hé\r\n", 1, 0, None)
    assert row["attributes"] == [("file_name", "a b.txt")]


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_files_are_unpacked_by_their_name(ending: str) -> None:
    content = b"some text " * 1000
    packed = PACKERS[ending](content)
    (row,) = rows_of(file_reader(RULES, None)([files(**{f"a__txt__{ending}": packed})]))
    assert (row["text"], row["bytes"]) == (content.decode(), len(content))
    assert unpack(f"a.{ending}", packed + PACKERS[ending](b"more"), 10**6) == content + b"more"


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_a_compressed_file_that_was_cut_is_rejected_whole(ending: str, share: float) -> None:
    """A half of a document would look like a document."""
    packed = PACKERS[ending](bytes(range(32, 127)) * 50)
    cut = packed[: max(1, int(len(packed) * share))]
    (row,) = rows_of(file_reader(RULES, None)([files(**{f"a__{ending}": cut})]))
    assert (row["reason"], row["text"], row["raw_sha256"]) == ("bad_encoding", None, hashlib.sha256(cut).digest())
    assert row["detail"].startswith("can't be unpacked: ")


@pytest.mark.parametrize("ending", PACKERS)
def test_a_file_that_only_looks_compressed(ending: str) -> None:
    (row,) = rows_of(file_reader(RULES, None)([files(**{f"a__{ending}": b"plain text, not compressed"})]))
    assert row["reason"] == "bad_encoding"


@pytest.mark.parametrize("ending", PACKERS)
def test_a_small_file_can_t_unpack_into_more_than_the_limit(ending: str) -> None:
    packed = PACKERS[ending](b"a" * 10**6)
    assert len(unpack(f"a.{ending}", packed, 5000)) == 5001
    (row,) = rows_of(file_reader(RecordRules("web", max_bytes=5000), None)([files(**{f"a__{ending}": packed})]))
    assert row["reason"] == "text_too_long"
    exact = PACKERS[ending](b"a" * 5000)
    (row,) = rows_of(file_reader(RecordRules("web", max_bytes=5000), None)([files(**{f"a__{ending}": exact})]))
    assert row["bytes"] == 5000


def test_files_that_are_no_text_or_empty() -> None:
    found = rows_of(file_reader(RULES, None)([files(a=b"", b=b"\x00\x01", c=b"\xff")]))
    assert [(r["text"], r["reason"]) for r in found] == [("", None), (None, "binary_file"), (None, "bad_encoding")]


# --- rows of tables


def table(**columns: Any) -> pa.RecordBatch:
    number = len(next(iter(columns.values())))
    arrays = [pa.array(["file:///d/t"] * number), pa.array(range(1, number + 1), pa.int64())]
    arrays += [c if isinstance(c, pa.Array) else pa.array(c) for c in columns.values()]
    names = [name.replace("json__", "json:") for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=["#file", "#position", *names])


def test_rows_of_a_table_keep_their_types() -> None:
    rules = RecordRules("web", Mapped(doc_id="id", fetched_at="ts", url="meta.url"))
    stamp = datetime.datetime(2024, 3, 10, 2, 30, tzinfo=datetime.UTC)
    batch = table(
        id=[2**63 - 1], text=["hé"], ts=pa.array([stamp], pa.timestamp("us", tz="America/New_York")), n=[0.5], b=[True],
        json__meta=['{"url":"u","k":[1,{"x":null}]}'], none=pa.array([None], pa.string()),
    )  # fmt: skip
    (row,) = rows_of(row_reader(rules, None)([batch]))
    assert (row["doc_id"], row["text"], row["fetched_at"], row["url"]) == (str(2**63 - 1), "hé", stamp, "u")
    assert row["attributes"] == [("n", "0.5"), ("b", "true"), ("meta", '{"k":[1,{"x":null}]}')]
    assert (row["position"], row["reason"]) == (1, None)


def test_a_time_among_the_attributes_is_in_utc_whatever_the_session_s_zone() -> None:
    stamp = datetime.datetime(2024, 3, 10, 2, 30, tzinfo=datetime.UTC)
    for zone in ("UTC", "Asia/Tokyo"):
        (row,) = rows_of(
            row_reader(RULES, None)([table(text=["a"], ts=pa.array([stamp], pa.timestamp("us", tz=zone)))])
        )
        assert row["attributes"] == [("ts", "2024-03-10T02:30:00+00:00")]


def test_bad_rows_are_stored_as_json() -> None:
    batch = table(
        text=pa.array([None, "a"], pa.string()), b=pa.array([b"\xff", b"ok"], pa.binary()), json__m=["[1]", None]
    )
    bad, good = rows_of(row_reader(RULES, None)([batch]))
    raw = '{"b": "/w==", "m": [1], "text": null}'
    assert (bad["reason"], bad["position"], bad["raw"]) == ("text_missing", 1, raw)
    assert bad["raw_sha256"] == hashlib.sha256(raw.encode()).digest()
    assert (good["text"], good["position"], good["attributes"]) == ("a", 2, [("b", "ok")])


def test_binary_text_is_decoded_or_rejected() -> None:
    batch = table(text=pa.array([b"h\xe9", "hé".encode()], pa.binary()))
    first, second = rows_of(row_reader(RULES, None)([batch]))
    assert (first["reason"], second["text"]) == ("bad_encoding", "hé")
    (latin, _) = rows_of(row_reader(RecordRules("web", encoding="latin-1"), None)([batch]))
    assert latin["text"] == "hé"
    (replaced, _) = rows_of(row_reader(RecordRules("web", replace_bad_bytes=True), None)([batch]))
    assert (replaced["text"], replaced["notes"]) == ("h\ufffd", ["bad_encoding"])


def test_empty_tables() -> None:
    assert rows_of(row_reader(RULES, None)([table(text=pa.array([], pa.string()))])) == []
