"""The beginnings of a few files of each source: records of JSON lines, Parquet and Delta tables, and whether files are text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import itertools
import json
import os
import shlex
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.looking.files import ending_of, unpacked_name
from jobs.looking.found import Read, Sample, human_size

SAMPLE_FILES, SAMPLE_RECORDS, SAMPLE_BYTES = 5, 200, 8 * 2**20
"""A source's sample: so many records of so many files; of a file no more than so many (unpacked) bytes from its start."""
PEEK_FILES, PEEK_BYTES = 1000, 2**16
"""How many files are peeked into, and how far, to see whether they are JSON lines, or text at all."""
NO_DOCUMENTS = (".csv", ".tsv", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".lock")
"""Endings of files that are valid text, but tables or settings: never guessed to be documents."""


# --- samples


def spread(files: Sequence[str], number: int) -> list[str]:
    """So many of the files, evenly from the first to the last."""
    if len(files) <= number:
        return list(files)
    return [files[at * (len(files) - 1) // (number - 1)] for at in range(number)]


def sample_of(files: Sequence[str], read: Callable[[str], Read]) -> Sample:
    """Records of a few files in turn, so that a long file does not crowd out the others."""
    sample, columns = Sample(), []
    for file in spread([file for file in files if os.path.getsize(file)], SAMPLE_FILES):
        records, broken, problem = read(file)
        columns.append(records)
        sample.broken += broken
        if problem:
            sample.problems.append(f"{os.path.basename(file)}: {problem}")
    in_turn = (record for row in itertools.zip_longest(*columns) for record in row if record is not None)
    sample.records = list(itertools.islice(in_turn, SAMPLE_RECORDS))
    return sample


def _beginning(file: str, limit: int) -> tuple[bytes, bool, str]:
    """The first bytes of a file, unpacked; whether that is all of it; and what is wrong with the rest."""
    parts, size, problem = [], 0, ""
    opened: dict[str, Callable[[str], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".zst": lambda path: pa.input_stream(path, compression="zstd"),
    }
    try:
        with opened.get(os.path.splitext(file)[1].lower(), lambda path: open(path, "rb"))(file) as stream:
            while size <= limit and (part := stream.read(2**16)):
                parts.append(part)
                size += len(part)
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        problem = f"damaged ({error})"
    return b"".join(parts)[:limit].removeprefix(b"\xef\xbb\xbf"), size <= limit and not problem, problem


def _json(line: bytes) -> Any:
    """A line's value; None if it is not JSON. As ``ingest`` does, NaN and lone surrogates are let through."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            return None


def json_records(file: str) -> Read:
    """Records of the beginning of a file of JSON lines."""
    data, complete, problem = _beginning(file, SAMPLE_BYTES)
    lines = data.split(b"\n")
    if not complete:
        lines.pop()  # cut off
        if not lines and not problem:
            problem = f"its first line is longer than {human_size(SAMPLE_BYTES)} and was not looked at"
    values = [_json(line) for line in itertools.islice((line for line in lines if line.strip()), SAMPLE_RECORDS)]
    records = [value for value in values if isinstance(value, dict)]
    return records, len(values) - len(records), problem


def whole_json(files: Sequence[str]) -> dict[str, str]:
    """Files that hold JSON, but not a value per line, with what they are and how they are converted."""
    peeked = spread(files, PEEK_FILES)
    kinds = {file: kind for file in peeked if (kind := _kind_of_json(file))}
    if kinds:  # where there is one, there may be more
        kinds |= {file: kind for file in sorted({*files} - {*peeked}) if (kind := _kind_of_json(file))}
    return {file: f"{kind}, not JSON lines; convert it: {_conversion(file, kind)}" for file, kind in kinds.items()}


def _kind_of_json(file: str) -> str:
    data, complete, _ = _beginning(file, PEEK_BYTES)
    if not complete and b"\n" not in data.strip():
        data, complete, _ = _beginning(file, SAMPLE_BYTES)
    lines = [line for line in data.split(b"\n")[: None if complete else -1] if line.strip()]
    if data.lstrip().startswith(b"["):
        return "one JSON array"
    if not data.lstrip().startswith(b"{") or not lines or isinstance(_json(lines[0]), dict):
        return ""
    spread_out = lines[0].strip() == b"{" or (complete and isinstance(_json(data), dict))
    return "pretty-printed JSON" if spread_out else ""


def _conversion(file: str, kind: str) -> str:
    plain = os.path.basename(unpacked_name(file))
    opener = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".zst": "zstd -dc"}.get(os.path.splitext(file)[1].lower(), "cat")
    target = shlex.quote(f"{os.path.splitext(plain)[0]}.jsonl")
    select = "'.[]'" if "array" in kind else "."
    return f"{opener} {shlex.quote(os.path.basename(file))} | jq -c {select} > {target}"


def parquet_records(
    file: str, constants: Mapping[str, Any] | None = None, names: Mapping[str, str] | None = None
) -> Read:
    """Rows of a Parquet file; with a Delta table's partition values and the names that it gives to columns."""
    records: list[dict[str, Any]] = []
    size = 0
    try:
        # Mapped into memory, only the pages that are looked at are read.
        with pq.ParquetFile(file, memory_map=True, pre_buffer=False) as opened:
            for batch in opened.iter_batches(batch_size=20):
                size += batch.nbytes
                columns = {(names or {}).get(name, name): _values(batch[name]) for name in batch.schema.names}
                rows = zip(*columns.values(), strict=True) if columns else ()
                records += [{**dict(zip(columns, row, strict=True)), **(constants or {})} for row in rows]
                if len(records) >= SAMPLE_RECORDS or size >= SAMPLE_BYTES:
                    break
    except (OSError, pa.ArrowException) as error:
        return records, 0, f"can't be read as Parquet ({str(error).splitlines()[0]})"
    return records, 0, ""


def _values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # a date that Python does not know
        return [None] * len(column)


def live_files(table: str) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
    """Files of a Delta table's newest version: file -> partition values, and logical names of physical columns."""
    log = Path(table, "_delta_log")
    checkpoints: dict[str, list[Path]] = {}
    for path in sorted(log.glob("*.checkpoint*.parquet")):
        checkpoints.setdefault(path.name[:20], []).append(path)
    start = max(checkpoints, default="")
    actions: list[dict[str, Any]] = []
    try:
        for path in checkpoints.get(start, []):
            actions += pq.read_table(path, columns=["add", "metaData"]).to_pylist()
        if start and not any(action.get("add") for action in actions):
            return _all_files(table)  # a checkpoint of another kind, which names its files elsewhere
        for path in sorted(log.glob("*.json")):
            if path.stem > start:
                actions += [value for line in path.read_bytes().split(b"\n") if isinstance(value := _json(line), dict)]
    except (OSError, pa.ArrowException):
        actions = []
    live: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for action in actions:
        if add := action.get("add"):
            live[add["path"]] = dict(add.get("partitionValues") or {})
        if remove := action.get("remove"):
            live.pop(remove["path"], None)
        if metadata := action.get("metaData"):
            fields = json.loads(metadata["schemaString"])["fields"]
            physical = [f.get("metadata", {}).get("delta.columnMapping.physicalName", f["name"]) for f in fields]
            names = {key: f["name"] for key, f in zip(physical, fields, strict=True)}
    files = {os.path.join(table, unquote(path)): (values, names) for path, values in live.items()}
    files = {
        file: ({names.get(key, key): value for key, value in values.items()}, names)
        for file, (values, names) in files.items()
        if os.path.isfile(file)
    }
    return files if actions else _all_files(table)


def _all_files(table: str) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
    files = sorted(path for path in Path(table).rglob("*.parquet") if "_delta_log" not in path.parts)
    return {str(path): ({}, {}) for path in files}


def guessed_texts(files: Sequence[str]) -> set[str]:
    """Those files of unknown endings that decode as UTF-8, judged ending by ending."""
    asked = [f for f in files if not f.lower().endswith(NO_DOCUMENTS) and not os.path.basename(f).startswith(".")]
    verdicts: dict[str, bool] = {}
    for file in spread(asked, PEEK_FILES):
        if os.path.getsize(file):
            verdicts[ending_of(file, "")] = verdicts.get(ending_of(file, ""), True) and is_utf8(file)
    return {file for file in asked if verdicts.get(ending_of(file, ""), False)}


def is_utf8(file: str) -> bool:
    """Whether the beginning of a file is text in UTF-8."""
    with open(file, "rb") as stream:
        data = stream.read(PEEK_BYTES)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < PEEK_BYTES)
    except UnicodeDecodeError:
        return False
    return b"\x00" not in data
