"""Files that Spark does not read: names that start with ``_`` or ``.`` or hold a colon or a bracket, and empty files.

A corpus of source code has an ``__init__.py`` in every folder, and a crawl may name a shard ``_part-0002.jsonl``. So
these files are opened by the Python workers themselves, through pyarrow's file systems (local, s3, gcs, hdfs, abfs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from udfs.record_batches import SPARK_SCHEMA, file_reader, line_reader
from udfs.record_types import RecordRules

Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
FILES_PER_TASK = 2_000
LINES_PER_BATCH, BYTES_PER_BATCH = 10_000, 16 * 2**20


def read_hidden(
    spark: SparkSession, uris: Sequence[str], file_format: str, rules: RecordRules, source_pattern: str | None
) -> DataFrame:
    """Raw records of files that Spark would skip; text and JSONL only.

    Args:
        spark: The session.
        uris: Absolute paths or URIs that the workers can open.
        file_format: ``text`` (a file is a record) or ``jsonl``.
        rules: How records are read.
        source_pattern: Where the source stands in the path, if it does.
    """
    tasks = -(-len(uris) // FILES_PER_TASK)
    names = spark.createDataFrame([(as_uri(uri),) for uri in sorted(uris)], "file STRING").repartition(tasks, "file")
    reader = file_reader(rules, source_pattern) if file_format == "text" else line_reader(rules, source_pattern)
    feed = _contents if file_format == "text" else _lines
    return names.mapInArrow(_opened(feed, reader), SPARK_SCHEMA)


def as_uri(path: str) -> str:
    """A local path as a URI, percent-encoded as Spark's own file names are; URIs unchanged."""
    return path if "://" in path else Path(path.removeprefix("file:")).as_uri()


def _opened(feed: Callable[[str], Iterator[pa.RecordBatch]], reader: Reader) -> Reader:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = (file for batch in batches for file in batch.column(0).to_pylist())
        return reader(batch for file in files for batch in feed(file))

    return run


def _contents(file: str) -> Iterator[pa.RecordBatch]:
    with _open(file) as stream:
        content = stream.read()
    yield pa.RecordBatch.from_arrays([pa.array([file]), pa.array([content], pa.binary())], names=["file", "content"])


def _lines(file: str) -> Iterator[pa.RecordBatch]:
    with _open(file) as raw, pa.input_stream(raw, compression=_codec(file)) as stream:
        lines: list[bytes] = []
        size, rest = 0, b""
        while block := _next_block(stream, file):
            *whole, rest = (rest + block).split(b"\n")
            lines += whole
            size += len(block)
            if len(lines) >= LINES_PER_BATCH or size >= BYTES_PER_BATCH:
                yield _batch(file, lines)
                lines, size = [], 0
        if rest:
            lines.append(rest)
        if lines:
            yield _batch(file, lines)


def _next_block(stream: pa.NativeFile, file: str) -> bytes:
    try:
        block: bytes = stream.read(2**20)
        return block
    except OSError as error:
        if _codec(file) is None:
            raise
        raise OSError(f"{file}: stream is corrupted: {error}") from None


def _batch(file: str, lines: Sequence[bytes]) -> pa.RecordBatch:
    arrays = [pa.array([file] * len(lines)), pa.array([0] * len(lines), pa.int64()), pa.array(lines, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["file", "stretch", "line"])


def _open(file: str) -> BinaryIO:
    system, path = fs.FileSystem.from_uri(file)
    stream: BinaryIO = system.open_input_stream(path, compression=None)
    return stream


def _codec(file: str) -> str | None:
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(Path(file).suffix.lower())
