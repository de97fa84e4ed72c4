"""What a folder of data holds: sources, formats and columns, with the evidence. No Spark: only a sample is read."""

from __future__ import annotations

import bz2
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.ingesting.files import BOOKKEEPING, BOOKKEEPING_FOLDERS, ENDINGS
from jobs.runtime.errors import NotPermitted, UnreadableInput
from udfs.records import parse_timestamp

SAMPLE_FILES, SAMPLE_RECORDS, SAMPLE_BYTES = 5, 200, 4 * 2**20
TEXT_ENDINGS = (
    ".txt",
    ".md",
    ".rst",
    ".html",
    ".htm",
    ".py",
    ".java",
    ".go",
    ".rs",
    ".c",
    ".h",
    ".cpp",
    ".js",
    ".ts",
    ".tex",
    ".xml",
)
TEXT_NAMES = (
    "text",
    "content",
    "raw_content",
    "body",
    "article",
    "document",
    "code",
    "passage",
    "paragraph",
    "markdown",
)
ID_NAMES = ("doc_id", "id", "document_id", "docid", "uuid", "_id", "warc_record_id", "record_id")
OTHER_NAMES = {
    "url": ("url", "uri", "link", "source_url", "page_url"),
    "language": ("language", "lang", "language_code"),
    "fetched_at": ("fetched_at", "timestamp", "date", "crawl_date", "created_at", "published", "ts"),
}


@dataclass(frozen=True)
class FoundSource:
    """A source that was found: what goes into the settings, and why."""

    name: str
    path: str
    format: str
    files: int
    bytes: int
    pattern: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    source_pattern: str | None = None
    evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def look(folder: Path) -> list[FoundSource]:
    """The sources of a folder: its subfolders, and the files that lie directly in it.

    Deterministic: names and samples are taken in sorted order.

    Raises:
        UnreadableInput: if the folder is missing, or nothing in it can be read as documents.
        NotPermitted: if it may not be listed.
    """
    if not folder.is_dir():
        raise UnreadableInput(f"'{folder}' is not a folder", remedy="Name the folder that holds the data.")
    try:
        entries = sorted(folder.iterdir())
    except PermissionError:
        raise NotPermitted(f"'{folder}' may not be listed", remedy="Give this user the right to read it.") from None
    if (folder / "_delta_log").is_dir():
        return [found for found in [_source(folder.name, folder, [folder])] if found is not None]
    subfolders = [e for e in entries if e.is_dir() and e.name not in BOOKKEEPING_FOLDERS]
    hive = [e for e in subfolders if e.name.startswith("source=")]
    found = []
    if hive and len(hive) == len(subfolders):
        whole = _source(folder.name, folder, subfolders)
        if whole is not None:
            found.append(FoundSource(**{**whole.__dict__, "source_pattern": "source=([^/]+)"}))
    else:
        found += [s for s in (_source(e.name, e, [e]) for e in subfolders) if s is not None]
    loose = [e for e in entries if e.is_file() and not BOOKKEEPING.match(e.name)]
    if loose:
        name = (
            folder.resolve().name
            if folder.resolve().name not in {s.name for s in found}
            else f"{folder.resolve().name}_files"
        )
        direct = _source(name, folder, loose, only_direct=True)
        if direct is not None:
            found.append(direct)
    if not found:
        endings = Counter(p.suffix or p.name for p in folder.rglob("*") if p.is_file())
        seen = ", ".join(f"{n} x {e}" for e, n in endings.most_common(5)) or "no files at all"
        raise UnreadableInput(
            f"nothing under '{folder}' can be read as documents; it holds {seen}",
            remedy="Known are JSON lines, Parquet, Delta tables and text files.",
        )
    return found


def _source(name: str, root: Path, starts: Sequence[Path], only_direct: bool = False) -> FoundSource | None:
    if any((start / "_delta_log").is_dir() for start in starts if start.is_dir()):
        files = [p for p in root.rglob("*.parquet") if p.is_file()]
        columns, evidence = _columns(list(_parquet_records(files[:SAMPLE_FILES])))
        return FoundSource(
            name,
            str(root),
            "delta",
            len(files),
            sum(p.stat().st_size for p in files),
            columns=columns,
            evidence=evidence,
        )
    files = []
    for start in starts:
        files += [start] if start.is_file() else [p for p in sorted(start.rglob("*")) if p.is_file()]
    files = [
        p
        for p in files
        if not BOOKKEEPING.match(p.name) and not BOOKKEEPING_FOLDERS & set(p.relative_to(root).parts[:-1])
    ]
    by_format: dict[str, list[Path]] = {}
    for file in files:
        kind = _format_of(file)
        if kind:
            by_format.setdefault(kind, []).append(file)
    warnings = [f"{len([f for f in files if _format_of(f) is None])} file(s) of other kinds are left out"] if any(
        _format_of(f) is None for f in files) and by_format else []  # fmt: skip
    arrays = [f for f in by_format.get("jsonl", []) if f.name.lower().endswith(".json") and _is_json_array(f)]
    for file in arrays:
        by_format["jsonl"].remove(file)
        warnings.append(
            f"{file.name} is one JSON value, not JSON lines; convert it (jq -c '.[]' {file.name}) and look again"
        )
    by_format = {kind: found for kind, found in by_format.items() if found}
    if not by_format:
        return None
    sizes = {kind: sum(p.stat().st_size for p in found) for kind, found in by_format.items()}
    kind = max(sorted(sizes), key=lambda k: sizes[k])
    warnings += [
        f"{len(found)} {other} file(s) are left out: one source has one format"
        for other, found in sorted(by_format.items())
        if other != kind
    ]
    chosen = by_format[kind]
    path, pattern = str(root), None
    if kind == "text":
        suffixes = Counter(p.suffix for p in chosen)
        pattern = f"*{suffixes.most_common(1)[0][0]}" if len(suffixes) == 1 else None
        return FoundSource(
            name,
            path,
            kind,
            len(chosen),
            sizes[kind],
            pattern,
            evidence=(f"{len(chosen)} text files",),
            warnings=tuple(warnings),
        )
    if only_direct:
        ending = next(e for e in sorted(ENDINGS[kind], key=len, reverse=True) if chosen[0].name.lower().endswith(e))
        path = str(root / f"*{ending}")
    records = list(
        _parquet_records(chosen[:SAMPLE_FILES]) if kind == "parquet" else _json_records(chosen[:SAMPLE_FILES])
    )
    columns, evidence = _columns(records)
    return FoundSource(name, path, kind, len(chosen), sizes[kind], pattern, columns, None, evidence, tuple(warnings))


def _format_of(file: Path) -> str | None:
    name = file.name.lower()
    for kind in ("jsonl", "parquet"):
        if name.endswith(ENDINGS[kind]):
            return kind
    plain = name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")
    return "text" if plain.endswith(TEXT_ENDINGS) else None


def _open(file: Path) -> Any:
    if file.name.endswith(".gz"):
        return gzip.open(file, "rb")
    if file.name.endswith(".bz2"):
        return bz2.open(file, "rb")
    if file.name.endswith(".zst"):
        return pa.input_stream(str(file), compression="zstd")
    return file.open("rb")


def _beginning(file: Path) -> bytes:
    try:
        with _open(file) as stream:
            found: bytes = stream.read(SAMPLE_BYTES)
            return found
    except (OSError, EOFError, pa.ArrowException):
        return b""


def _is_json_array(file: Path) -> bool:
    start = _beginning(file).lstrip()
    if start.startswith(b"["):
        return True
    first = start.split(b"\n", 1)[0]
    return start.startswith(b"{") and not first.rstrip().endswith(b"}")


def _json_records(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        data = _beginning(file)
        lines = data.split(b"\n")[: SAMPLE_RECORDS // max(1, len(files)) + 1]
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _parquet_records(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        try:
            batches = pq.ParquetFile(file).iter_batches(batch_size=SAMPLE_RECORDS // max(1, len(files)) + 1)
            yield from next(batches, pa.RecordBatch.from_pylist([])).to_pylist()
        except (OSError, pa.ArrowException):
            continue


def _columns(records: Sequence[dict[str, Any]]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Columns by the fields' names and values, with a sentence of evidence each."""
    if not records:
        return {}, ("no record could be read in the sample",)
    values: dict[str, list[Any]] = {}
    for record in records:
        for path, value in _flat(record, ""):
            values.setdefault(path, []).append(value)
    columns: dict[str, str] = {}
    evidence = []
    strings = {p: [v for v in vs if isinstance(v, str)] for p, vs in values.items()}
    named = [p for n in TEXT_NAMES for p in values if p.rsplit(".", 1)[-1] == n and strings[p]]
    longest = sorted(values, key=lambda p: (-sum(map(len, strings[p])), p))
    text = (named or [p for p in longest if strings[p]] or ["text"])[0]
    columns["text"] = text
    mean = sum(map(len, strings.get(text, []))) // max(1, len(strings.get(text, [])))
    evidence.append(
        f"text: field '{text}', {len(strings.get(text, []))} of {len(records)} sampled records, mean {mean:,} characters"
    )
    for name in ID_NAMES:
        ids = values.get(name, [])
        fine = [v for v in ids if isinstance(v, (str, int)) and not isinstance(v, bool) and v != ""]
        if len(fine) == len(records) and len(set(map(str, fine))) == len(records):
            columns["doc_id"] = name
            evidence.append(f"doc_id: field '{name}', unique in the sample")
            break
        if ids:
            evidence.append(f"field '{name}' is not always given or not unique, so ids will be made from content")
            break
    else:
        evidence.append("no field looks like an id, so ids will be made from content")
    for column, names in OTHER_NAMES.items():
        for name in names:
            given = [v for v in values.get(name, []) if v is not None]
            if given and (column == "fetched_at" or all(isinstance(v, str) for v in given)):
                if column == "fetched_at" and not all(parse_timestamp(v) for v in given[:20]):
                    continue
                columns[column] = name
                evidence.append(f"{column}: field '{name}', {len(given)} of {len(records)} sampled records")
                break
    return columns, tuple(evidence)


def _flat(record: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(value, dict) and path.count(".") < 2:
            yield from _flat(value, here)
        else:
            yield here, value
