"""Raw records to rows, batch by batch: what ``mapInArrow`` runs when files are taken in.

Every raw record gives one row, good or bad; every stretch of a file gives one more row that says how many lines it
had, from which line numbers follow although the file was read in parallel.
"""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from udfs.record_types import Document, RecordRules, Reject
from udfs.record_values import json_default
from udfs.records import document_of, document_of_file, raw_of, read_json_line

LINES_MARK = "#lines"
"""The reason of the row that ends a stretch of a file: ``position`` holds its number of lines, blank ones included."""

SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("stretch", pa.int64()),
        ("position", pa.int64()),
        ("source", pa.string()),
        ("doc_id", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("raw", pa.string()),
        ("raw_sha256", pa.binary()),
        ("bytes", pa.int64()),
        ("characters", pa.int64()),
        ("text_sha256", pa.binary()),
        ("url", pa.string()),
        ("language", pa.string()),
        ("fetched_at", pa.timestamp("us", tz="UTC")),
        ("origin", pa.string()),
        ("generator", pa.string()),
        ("generation", pa.int32()),
        ("attributes", pa.map_(pa.string(), pa.string())),
        ("notes", pa.list_(pa.string())),
        ("text", pa.string()),
    ]
)
"""One raw record. ``reason`` is NULL for a document; ``stretch`` is the byte at which its part of the file begins."""

SPARK_SCHEMA = (
    "file STRING, stretch BIGINT, position BIGINT, source STRING, doc_id STRING, reason STRING, detail STRING, "
    "raw STRING, raw_sha256 BINARY, bytes BIGINT, characters BIGINT, text_sha256 BINARY, url STRING, language STRING, "
    "fetched_at TIMESTAMP, origin STRING, generator STRING, generation INT, attributes MAP<STRING, STRING>, "
    "notes ARRAY<STRING>, text STRING"
)

FLUSH_BYTES = 16 * 2**20
"""Text gathered before a batch goes out, so that a batch of long documents doesn't fill the worker."""


class _Rows:
    """Gathers rows column by column."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
        self.size = 0

    def document(self, file: str, stretch: int, position: int, document: Document) -> None:
        self._add(
            file=file,
            stretch=stretch,
            position=position,
            source=document.source,
            doc_id=document.doc_id,
            bytes=len(document.encoded),
            characters=len(document.text),
            text_sha256=hashlib.sha256(document.encoded).digest(),
            url=document.url,
            language=document.language,
            fetched_at=document.fetched_at,
            origin=document.origin,
            generator=document.generator,
            generation=document.generation,
            attributes=document.attributes,
            notes=document.notes,
            text=document.encoded,
        )
        self.size += len(document.encoded) + sum(len(value) for _, value in document.attributes)

    def reject(self, file: str, stretch: int, position: int, reject: Reject, raw: tuple[str, bytes]) -> None:
        self._add(
            file=file,
            stretch=stretch,
            position=position,
            source=reject.source,
            doc_id=reject.doc_id,
            reason=reject.reason,
            detail=reject.detail,
            raw=raw[0],
            raw_sha256=raw[1],
        )
        self.size += len(raw[0])

    def lines(self, file: str, stretch: int, count: int, blank: int, source: str) -> None:
        self._add(file=file, stretch=stretch, position=count, source=source, reason=LINES_MARK, detail=str(blank))

    def take(self) -> pa.RecordBatch:
        arrays = []
        for column in SCHEMA:
            values = self.columns[column.name]
            if column.name == "text":
                # The bytes are valid UTF-8 already: Arrow needs no string objects.
                arrays.append(pa.array(values, pa.binary()).cast(pa.string()))
            else:
                arrays.append(pa.array(values, column.type))
        self.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _add(self, **values: Any) -> None:
        for name, column in self.columns.items():
            column.append(values.get(name))

    def __len__(self) -> int:
        return len(self.columns["file"])


def line_reader(
    rules: RecordRules, source_pattern: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For batches of (file, stretch, line): JSONL. Lines of a stretch come in their order, without gaps."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, here, current, position, blank = _Rows(), rules, None, 0, 0
        for batch in batches:
            for file, stretch, line in zip(
                batch.column(0).to_pylist(), batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True
            ):
                if (file, stretch) != current:
                    if current is not None:
                        rows.lines(*current, position, blank, here.source)
                    current, position, blank = (file, stretch), 0, 0
                    here = _rules_for(rules, source_pattern, file)
                position += 1
                outcome = read_json_line(line, here)
                if outcome is None:
                    blank += 1
                elif isinstance(outcome, Document):
                    rows.document(file, stretch, position, outcome)
                else:
                    rows.reject(file, stretch, position, outcome, raw_of(line, here))
                if rows.size >= FLUSH_BYTES or len(rows) >= 10_000:
                    yield rows.take()
        if current is not None:
            rows.lines(*current, position, blank, here.source)
        if len(rows):
            yield rows.take()

    return read


def file_reader(
    rules: RecordRules, source_pattern: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For batches of (file, content): every file is a document. Compressed files are unpacked by their name."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows()
        for batch in batches:
            for file, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                here = _rules_for(rules, source_pattern, file)
                try:
                    unpacked = unpack(file, content, here.max_bytes)
                except OSError as error:
                    outcome: Document | Reject = Reject("bad_encoding", f"can't be unpacked: {error}", here.source)
                    unpacked = content
                else:
                    outcome = document_of_file(unpacked, here)
                if isinstance(outcome, Document):
                    outcome.attributes.append(("file_name", posixpath.basename(urllib.parse.unquote(file))))
                    rows.document(file, 0, 1, outcome)
                else:
                    rows.reject(file, 0, 1, outcome, raw_of(unpacked, here))
                if rows.size >= FLUSH_BYTES or len(rows) >= 10_000:
                    yield rows.take()
        if len(rows):
            yield rows.take()

    return read


def row_reader(
    rules: RecordRules, source_pattern: str | None, names: Sequence[str] | None = None, counted: bool = False
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For batches of (file, position, then the table's own columns): Parquet and Delta.

    Columns that came as ``json:name`` hold nested values as JSON.

    Args:
        rules: How records are read.
        source_pattern: Where the source stands in the path, if it does.
        names: The table's own column names, in order; default: the batches'.
        counted: The second column holds the stretch instead; positions are counted here, as ``line_reader`` does.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, current, count = _Rows(), None, 0
        for batch in batches:
            files, places = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            given = batch.schema.names[2:]
            own = names if names is not None else [name.removeprefix("json:") for name in given]
            nested = [name.startswith("json:") for name in given]
            values = [column.to_pylist() for column in batch.columns[2:]]
            for index, (file, place) in enumerate(zip(files, places, strict=True)):
                stretch, position = 0, place
                if counted:
                    if (file, place) != current:
                        if current is not None:
                            rows.lines(*current, count, 0, rules.source)
                        current, count = (file, place), 0
                    count += 1
                    stretch, position = place, count
                record = {}
                for name, is_nested, column in zip(own, nested, values, strict=True):
                    value = column[index]
                    if isinstance(value, bytes):
                        value = _decoded(value, rules)
                    record[name] = json.loads(value) if is_nested and value is not None else value
                outcome = document_of(record, _rules_for(rules, source_pattern, file))
                if isinstance(outcome, Document):
                    rows.document(file, stretch, position, outcome)
                else:
                    raw = json.dumps(record, ensure_ascii=False, default=json_default, sort_keys=True)
                    encoded = raw.encode("utf-8", errors="backslashreplace")
                    rows.reject(file, stretch, position, outcome, raw_of(encoded, rules))
                if rows.size >= FLUSH_BYTES or len(rows) >= 10_000:
                    yield rows.take()
        if current is not None:
            rows.lines(*current, count, 0, rules.source)
        if len(rows):
            yield rows.take()

    return read


def unpack(file: str, content: bytes, limit: int) -> bytes:
    """The content of a ``.gz``, ``.bz2`` or ``.zst`` file, at most one byte more than ``limit``; others unchanged.

    Raises:
        OSError: if the file is damaged.
    """
    for ending, codec in ((".gz", "gzip"), (".bz2", "bz2"), (".zst", "zstd")):
        if file.endswith(ending):
            try:
                with pa.CompressedInputStream(pa.py_buffer(content), codec) as stream:
                    parts, size = io.BytesIO(), 0
                    while size <= limit and (part := stream.read(min(1 << 20, limit + 1 - size))):
                        size += parts.write(part)
                    return parts.getvalue()
            except pa.ArrowException as error:
                raise OSError(str(error)) from None
    return content


def source_in(file: str, pattern: str) -> str | None:
    """The source that stands in a file's URI: the pattern's first group, exactly as spelled."""
    match = re.search(pattern, urllib.parse.unquote(file))
    if match is None:
        return None
    return match.group(1) if match.re.groups else match.group(0)


def _rules_for(rules: RecordRules, source_pattern: str | None, file: str) -> RecordRules:
    if source_pattern is None:
        return rules
    source = source_in(file, source_pattern)
    if source is None:
        return rules
    return replace(rules, source=source)


def _decoded(value: bytes, rules: RecordRules) -> Any:
    """A binary column as text where it is valid in the stated encoding; else the bytes, which are then no string."""
    try:
        return value.decode(rules.encoding)
    except UnicodeDecodeError:
        return value
