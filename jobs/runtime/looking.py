"""What a folder of data holds: sources, formats and columns, with the evidence for each. No Spark and no Java.

Every file's name and size is looked at, and the beginning of a few files of every source. Which files a setting takes
in is asked of ``ingest``'s own listing, so that it reads just the files that were counted here.
"""

from __future__ import annotations

import bz2
import codecs
import fnmatch
import glob
import gzip
import itertools
import json
import os
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.ingesting.files import COMPRESSIONS, ENDINGS, list_files
from jobs.runtime.errors import UnreadableInput
from udfs.records import parse_timestamp

SAMPLE_FILES, SAMPLE_RECORDS, SAMPLE_BYTES = 5, 200, 8 * 2**20
"""A source's sample: so many records of so many files; of a file no more than so many (unpacked) bytes from its start."""
PEEK_FILES, PEEK_BYTES = 1000, 2**16
"""How many files are peeked into, and how far, to see whether they are JSON lines, or text at all."""
NESTED, FEW_VALUES, LONGEST_NAME, PATHS_MOST, ENDINGS_MOST, SHOWN = 5, 20, 100, 50, 40, 5
EARLIEST_NUMBER = 631_152_000
"""1990-01-01 in epoch seconds. A smaller number is no time of fetching, but rather a date such as 20240131."""

TEXT_ENDING = re.compile(
    r"\.(txt|text|md|markdown|rst|tex|org|adoc|html?|xhtml|xml|srt|css|sql|pyi?|java|kt|scala|go|rs|c|h|cc|hh|cpp|hpp|cs"
    r"|m?js|jsx|tsx?|rb|php|pl|sh|r|jl|lua|swift|hs|ml|clj|f90)$",
    re.IGNORECASE,
)
NO_DOCUMENTS = (".csv", ".tsv", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".lock")
"""Endings of files that are valid text, but tables or settings: never guessed to be documents."""
ABOUT = re.compile(r"(readme|licen[cs]e|notice|changelog|citation|contributing)(\.[a-z]+)?", re.IGNORECASE)
"""Files that describe the data beside them."""

TEXT = ("text", "content", "raw_content", "body", "article", "document", "code", "passage", "paragraph", "markdown")
IDS = ("id", "doc_id", "document_id", "docid", "uuid", "_id", "warc_record_id", "record_id")
STRINGS = {
    "url": ("url", "uri", "link", "source_url", "page_url", "warc_target_uri"),
    "language": ("language", "lang", "language_code", "lang_code"),
}
TIMES = ("fetched_at", "timestamp", "date", "crawl_date", "created_at", "created", "published", "warc_date")
SOURCES = ("source", "dataset", "subset")
METADATA = frozenset({"meta", "metadata", "attributes", "properties", "info", "headers", "warc_headers"})
"""Objects that describe the whole record. Elsewhere (``author.url``) a field says something about a part of it."""

SOURCE_FOLDER = "source=([^/]+)"
NO_SESSION: Any = None
"""``list_files`` asks a Spark session only about paths with a scheme."""


@dataclass(frozen=True)
class FoundSource:
    """One entry of the setting ``ingest``, and why it looks like this.

    ``paths`` stand as in the settings: relative if under the current folder, else absolute. ``suggested`` are columns
    that may be right: to be offered, not to be set. ``sources`` are the names that documents will carry. ``beside``
    says what else the folder holds that is in no source (the same for all sources of a folder).
    """

    name: str
    paths: tuple[str, ...]
    format: str
    files: int
    bytes: int
    pattern: str | None = None
    source_pattern: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    suggested: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass
class _Sample:
    """Records from the beginnings of a few files, and what could not be read there."""

    records: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class _Findings:
    """What the sample says about columns. ``ids`` are those of the sample; ``source_names`` the values of the source
    field, if every record has one; ``one_folder`` says that all files lie side by side."""

    columns: dict[str, str] = field(default_factory=dict)
    suggested: dict[str, str] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    source_names: list[str] = field(default_factory=list)
    one_folder: bool = False


@dataclass(frozen=True)
class _Folder:
    """The folder that is looked at: its Delta tables with their files, and the paths in it that are no data, whether
    they are there already or will be after the first run."""

    root: str
    tables: Mapping[str, Sequence[str]]
    barred: Sequence[str]


_Looked = tuple[FoundSource, _Findings]
_Read = tuple[list[dict[str, Any]], int, str]
"""Records of a file's beginning, the number of broken ones, and what is wrong with the file (or nothing)."""


def look(folder: Path, leave_out: Sequence[Path] = ()) -> list[FoundSource]:
    """The sources of a folder: each of its subfolders that can be read, and the files that lie directly in it.

    Deterministic: depends on the files' names, sizes and beginnings, and on the current folder (for ``paths``).

    Args:
        folder: A local folder.
        leave_out: Files and folders in it that are no data, such as the settings file and the warehouse.

    Raises:
        UnreadableInput: if the folder is missing, empty, or holds nothing that can be read as documents.
        NotPermitted: naming files and folders that may not be read.
    """
    root = os.path.abspath(folder)
    own = os.path.basename(os.path.realpath(root)) or "data"
    barred = [path for path in map(os.path.abspath, leave_out) if path != root and _is_below(path, root)]
    files, beside = _files_of(folder, root, barred)
    whole = _Folder(root, tables := _tables(root, files), barred)
    groups: dict[str, list[str]] = {}
    for file in files:
        first, below, _ = os.path.relpath(file, root).partition("/")
        if not below or root in tables:
            first = ""
        elif re.fullmatch(SOURCE_FOLDER, first):
            first = "source=*"
        groups.setdefault(first, []).append(file)
    loose = groups.pop("", [])
    looked: list[_Looked] = []
    for first, inside in sorted(groups.items()):
        reasons = ["hidden"]
        if not first.startswith("."):
            hive = first == "source=*"
            name, start = (own, root) if hive else (first, os.path.join(root, first))
            found, reasons = _sources_in(whole, name, start, inside, one=True, guess=True)
            looked += found
        beside += [f"{first}/: {reason}" for reason in reasons]
    if looked and all(ABOUT.fullmatch(os.path.basename(file)) for file in loose):
        beside += [f"{os.path.basename(file)}: about the data" for file in loose]
    elif loose:
        found, reasons = _sources_in(whole, own, root, loose, one=root in tables, guess=not looked)
        looked += found
        beside += reasons
    if not looked:
        raise UnreadableInput(
            f"nothing in '{folder}' can be read as documents; it holds {_endings(files) or 'no file'}",
            beside[:SHOWN],
            "Known are JSON lines (.jsonl .ndjson .json, also .gz .bz2 .zst), Parquet, Delta tables and text files.",
        )
    return [replace(source, beside=tuple(beside)) for source in _settled(looked)]


def settings_path(path: str, table: bool = False) -> str:
    """A local path for the settings: relative if under the current folder; a ``./`` keeps it from being taken for a
    URI, a home folder or (``table``) a table's name."""
    full, here = os.path.abspath(path), os.getcwd().rstrip("/")
    if full == here:
        return "."
    if not full.startswith(f"{here}/"):
        return full
    relative = full[len(here) + 1 :]
    mistaken = re.match(r"~|[a-z][a-z0-9+.\-]*:", relative) or (table and "/" not in relative)
    return f"./{relative}" if mistaken else relative


def human_size(size: int) -> str:
    """A number of bytes for people, in decimal units."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


# --- files and formats


def _files_of(folder: Path, root: str, barred: Sequence[str]) -> tuple[list[str], list[str]]:
    """All files, as ``ingest`` lists them, and notes about those that no settings file can name."""
    if not os.path.isdir(root):
        what = "is a file, not a folder" if os.path.exists(root) else "does not exist"
        raise UnreadableInput(f"'{folder}' {what}", remedy="Name a folder of this machine that holds the data.")
    files = [f for f in sorted(_read_by([root], "text", None)) if not any(_is_below(f, path) for path in barred)]
    if not files:
        raise UnreadableInput(f"'{folder}' is empty: there is no file in it", remedy="Name the folder of the data.")
    nameable = [file for file in files if file == file.encode("utf-8", "replace").decode()]
    left = len(files) - len(nameable)
    return nameable, [f"{left:,} file(s) whose names are not valid UTF-8: rename them"] if left else []


def _read_by(paths: Sequence[str], kind: str, pattern: str | None) -> frozenset[str]:
    """The files that ``ingest`` would take in."""
    try:
        listing = list_files(NO_SESSION, paths, kind, pattern)
    except UnreadableInput:  # nothing is there
        return frozenset()
    return frozenset((*listing.uris, *listing.hidden, *listing.empty))


def _tables(root: str, files: Sequence[str]) -> dict[str, list[str]]:
    """Delta tables: folder -> the files in it (a table within another one belongs to that)."""
    table_of: dict[str, str] = {os.path.dirname(root): ""}

    def find(folder: str) -> str:
        if folder not in table_of:
            outer = find(os.path.dirname(folder)) if folder != root else ""
            table_of[folder] = outer or (folder if os.path.isdir(os.path.join(folder, "_delta_log")) else "")
        return table_of[folder]

    tables: dict[str, list[str]] = {}
    for file in files:
        if table := find(os.path.dirname(file)):
            tables.setdefault(table, []).append(file)
    return tables


def _sources_in(
    folder: _Folder, name: str, root: str, files: Sequence[str], one: bool, guess: bool
) -> tuple[list[_Looked], list[str]]:
    """Files below ``root`` as a source of their dominant format (``one``) or one per format; or why they are none.

    ``guess``: where no ending is known, any files that decode as UTF-8 are documents.
    """
    tables = sorted(table for table, inside in folder.tables.items() if not set(inside).isdisjoint(files))
    in_table = {file for table in tables for file in folder.tables[table]}
    by_format: dict[str, list[str]] = {}
    for file in files:
        by_format.setdefault("delta" if file in in_table else _format_of(file), []).append(file)
    other, json_files = by_format.pop("", []), by_format.pop("jsonl", [])
    whole = _whole_json(json_files)
    if len(whole) < len(json_files):
        by_format["jsonl"] = [file for file in json_files if file not in whole]
    if not by_format and not whole and guess:
        guessed = _guessed_texts(other)
        other = [file for file in other if file not in guessed]
        by_format = {"text": sorted(guessed)} if guessed else {}
    texts = by_format.get("text", [])
    about = (len(by_format) > 1 or whole) and all(ABOUT.fullmatch(os.path.basename(file)) for file in texts)
    if about or (len(by_format) == 1 and _size(whole) > _size(texts)):
        other += by_format.pop("text", [])  # a README beside data, which perhaps must be converted first
    notes = [f"{os.path.basename(file)} is {what}" for file, what in sorted(whole.items())[:SHOWN]]
    if len(whole) > SHOWN:
        notes.append(f"{len(whole) - SHOWN:,} more file(s) that are not JSON lines either")
    if other:
        notes.append(f"other files: {_endings(other)}")
    if any(file.lower().endswith(COMPRESSIONS[1:]) and _is_text(_unpacked(file)) for file in other):
        notes.append("compressed text files can't be read: unpack them")
    found: list[_Looked] = []
    sizes = {kind: _size(inside) for kind, inside in sorted(by_format.items())}
    for kind in sorted(sizes, key=lambda kind: -sizes[kind]):
        what = f"{len(by_format[kind]):,} {kind} file(s), {human_size(sizes[kind])}"
        if found and one:
            notes.append(f"{what}: a source has one format, and this one's is {found[0][0].format}")
            continue
        looked = _source(folder, name, root, kind, by_format[kind], tables)
        if isinstance(looked, str):
            notes.append(f"{what}: {looked}")
        else:
            found.append(looked)
    left_out = tuple(f"not taken in: {note}" for note in notes)
    found = [
        (
            replace(
                source,
                name=f"{name}_{source.format}" if len(found) > 1 else name,
                warnings=left_out + source.warnings,
            ),
            findings,
        )
        for source, findings in found
    ]
    return sorted(found, key=lambda looked: looked[0].name), [] if found else notes


def _source(
    folder: _Folder, name: str, root: str, kind: str, files: Sequence[str], tables: Sequence[str]
) -> _Looked | str:
    """One source, or why its files can't be read as documents."""
    places = [os.path.relpath(path, root) for path in (tables if kind == "delta" else map(os.path.dirname, files))]
    named = [re.search(f"(?:^|/){SOURCE_FOLDER}", place) for place in places]
    source_pattern, sources = None, list[str]()
    if all(named):
        sources = sorted({match[1] for match in named if match})
        first = re.search(SOURCE_FOLDER, files[0])  # unless a folder above is named like this too
        source_pattern = SOURCE_FOLDER if first and first[1] in sources else f".*/{SOURCE_FOLDER}"
    problems: list[str] = []
    pattern = None
    if kind == "delta":
        rows = {file: how for table in tables for file, how in _live_files(table).items()}
        files, paths = sorted(rows), tuple(settings_path(table, table=True) for table in tables)
        sample = _sampled(files, lambda file: _parquet_records(file, *rows[file]))
    else:
        paths, pattern, problems = _selection(folder, root, kind, files, hive=source_pattern is not None)
        sample = _sampled(files if kind != "text" else (), _json_records if kind == "jsonl" else _parquet_records)
    findings = _of_texts(files) if kind == "text" else _columns(sample, source_pattern is None)
    if isinstance(findings, str):
        return findings
    findings.one_folder = len(tables if kind == "delta" else set(map(os.path.dirname, files))) == 1
    warnings = (*problems, *sample.problems, *findings.warnings)
    evidence = tuple(findings.evidence)
    return (
        FoundSource(
            name, paths, kind, len(files), _size(files), pattern, source_pattern,
            findings.columns, findings.suggested, tuple(sources), evidence, warnings,
        ),
        findings,
    )  # fmt: skip


def _settled(looked: Sequence[_Looked]) -> list[FoundSource]:
    """What only shows when all sources are known: names and ids that several of them have, a source field's use."""
    names: set[str] = set()
    settled = []
    for at, (source, findings) in enumerate(looked):
        others = [(s.name, f.ids) for n, (s, f) in enumerate(looked) if n != at and "doc_id" in s.columns]
        if "doc_id" in source.columns and (shared := _shared_ids(findings.ids, others)):
            columns = {name: path for name, path in source.columns.items() if name != "doc_id"}
            suggested = {"doc_id": source.columns["doc_id"], **source.suggested}
            source = replace(source, columns=columns, suggested=suggested, warnings=(*source.warnings, shared))
        if len(looked) == 1 and findings.one_folder and len(findings.source_names) > 1:
            columns = {**source.columns, "source": source.suggested["source"]}
            suggested = {name: path for name, path in source.suggested.items() if name != "source"}
            source = replace(source, columns=columns, suggested=suggested, sources=tuple(findings.source_names))
        name, number = source.name, 1
        while name in names:
            number += 1
            name = f"{source.name}_{number}"
        names.add(name)
        settled.append(replace(source, name=name, sources=source.sources or (name,)))
    return settled


def _shared_ids(ids: Sequence[Any], others: Sequence[tuple[str, Sequence[Any]]]) -> str:
    """Why ids that are unique in one source can't be used beside others: ids must be unique in all documents."""
    mine, whole = set(map(str, ids)), all(isinstance(value, int) for value in ids)
    for name, theirs in others:
        if not mine.isdisjoint(map(str, theirs)):
            return f"doc_id is not set, so ids are made from content: source '{name}' has the same ids"
        if whole and all(isinstance(value, int) for value in theirs):
            return (
                f"doc_id is not set, so ids are made from content: source '{name}' has whole numbers as ids too, "
                "and the same number must not stand for two documents"
            )
    return ""


def _format_of(file: str) -> str:
    name = os.path.basename(file).lower()
    for kind in ("jsonl", "parquet"):
        if name.endswith(ENDINGS[kind]):
            return kind
    return "text" if _is_text(name) else ""


def _is_text(name: str) -> bool:
    return TEXT_ENDING.search(name) is not None


def _unpacked(file: str) -> str:
    """A file's name without the ending of its compression."""
    return next((file[: -len(end)] for end in COMPRESSIONS[1:] if file.lower().endswith(end)), file)


def _ending(file: str, kind: str) -> str:
    """What a pattern for files like this one ends with, as the file spells it; nothing for a name without a dot."""
    name = os.path.basename(file)
    known = [len(end) for end in ENDINGS.get(kind, ()) if name.lower().endswith(end)]
    return name[-max(known) :] if known else os.path.splitext(name)[1]


def _endings(files: Iterable[str]) -> str:
    counts = Counter(_ending(file, "") or os.path.basename(file) for file in files)
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    more = f" and {len(rows) - SHOWN:,} other kinds" if len(rows) > SHOWN else ""
    return ", ".join(f"{count:,} x {ending}" for ending, count in rows[:SHOWN]) + more


def _size(files: Iterable[str]) -> int:
    return sum(os.path.getsize(file) for file in files)


def _is_below(file: str, path: str) -> bool:
    return file == path or file.startswith(path.rstrip("/") + "/")


def _selection(
    folder: _Folder, root: str, kind: str, files: Sequence[str], hive: bool
) -> tuple[tuple[str, ...], str | None, list[str]]:
    """The shortest ``paths`` and ``pattern`` with which ``ingest`` reads exactly these files, and warnings."""
    start, wanted = settings_path(root), frozenset(files)
    inside = glob.escape(start)
    ends = sorted({_ending(file, kind) for file in files})
    stars = [f"*{glob.escape(end)}" for end in ends if end][:ENDINGS_MOST]
    tries: list[tuple[list[str], str | None]] = [([start], None)]
    if kind == "text" and len(ends) == 1:  # says what is read, and keeps out what is put there later
        tries.insert(0, ([start], stars[0] if stars else "*"))
    tries += [([start], star) for star in stars if len(ends) == 1]
    tries += [([f"{inside}/source=*"], None)] if hive else []
    tries += [([f"{inside}/{star}" for star in stars], None), ([f"{inside}/**/{star}" for star in stars], None)]
    if len(files) <= PATHS_MOST:
        tries.append(([settings_path(file) for file in sorted(files)], None))
    barred = [path for path in folder.barred if _is_below(path, root)]
    exact = (
        (paths, pattern)
        for paths, pattern in tries
        if paths and not _may_take(barred, start, kind, paths, pattern) and _read_by(paths, kind, pattern) == wanted
    )
    paths, pattern = next(exact, tries[0])
    warnings: list[str] = []
    if _may_take(barred, start, kind, paths, pattern):
        warnings.append(
            "the settings file or the warehouse lies among these files: put it elsewhere, or it is read too"
        )
    if more := len(_read_by(paths, kind, pattern) - wanted):
        warnings.append(f"{more:,} file(s) that are not taken in lie among the others: move them before the first run")
    if kind == "parquet" and (hidden := list_files(NO_SESSION, paths, kind, pattern).hidden):
        warnings.append(
            f"{len(hidden):,} Parquet file(s) that Spark can't read by their names (_ or . first, brackets, colons), "
            f"such as {os.path.basename(hidden[0])}: rename them, or leave them out with hidden_files: skip"
        )
    return tuple(paths), pattern, warnings


def _may_take(barred: Sequence[str], start: str, kind: str, paths: Sequence[str], pattern: str | None) -> bool:
    """Whether settings would take in the settings file or a table of the warehouse, once these are there."""
    names = [os.path.basename(path) for path in barred]
    if barred and any(path == start or "/**/" in path for path in paths):
        names.append("part.parquet")
    masks = [pattern or "*"] if paths[0] == start else [os.path.basename(path) for path in paths]
    ends = ENDINGS[kind] or ("",)
    return any(name.lower().endswith(ends) and any(fnmatch.fnmatchcase(name, m) for m in masks) for name in names)


# --- samples


def _spread(files: Sequence[str], number: int) -> list[str]:
    """So many of the files, evenly from the first to the last."""
    if len(files) <= number:
        return list(files)
    return [files[at * (len(files) - 1) // (number - 1)] for at in range(number)]


def _sampled(files: Sequence[str], read: Callable[[str], _Read]) -> _Sample:
    """Records of a few files in turn, so that a long file does not crowd out the others."""
    sample, columns = _Sample(), []
    for file in _spread([file for file in files if os.path.getsize(file)], SAMPLE_FILES):
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


def _json_records(file: str) -> _Read:
    data, complete, problem = _beginning(file, SAMPLE_BYTES)
    lines = data.split(b"\n")
    if not complete:
        lines.pop()  # cut off
        if not lines and not problem:
            problem = f"its first line is longer than {human_size(SAMPLE_BYTES)} and was not looked at"
    values = [_json(line) for line in itertools.islice((line for line in lines if line.strip()), SAMPLE_RECORDS)]
    records = [value for value in values if isinstance(value, dict)]
    return records, len(values) - len(records), problem


def _whole_json(files: Sequence[str]) -> dict[str, str]:
    """Files that hold JSON, but not a value per line, with what they are and how they are converted."""
    peeked = _spread(files, PEEK_FILES)
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
    plain = os.path.basename(_unpacked(file))
    opener = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".zst": "zstd -dc"}.get(os.path.splitext(file)[1].lower(), "cat")
    target = shlex.quote(f"{os.path.splitext(plain)[0]}.jsonl")
    select = "'.[]'" if "array" in kind else "."
    return f"{opener} {shlex.quote(os.path.basename(file))} | jq -c {select} > {target}"


def _parquet_records(
    file: str, constants: Mapping[str, Any] | None = None, names: Mapping[str, str] | None = None
) -> _Read:
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


def _live_files(table: str) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
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


def _guessed_texts(files: Sequence[str]) -> set[str]:
    """Those files of unknown endings that decode as UTF-8, judged ending by ending."""
    asked = [f for f in files if not f.lower().endswith(NO_DOCUMENTS) and not os.path.basename(f).startswith(".")]
    verdicts: dict[str, bool] = {}
    for file in _spread(asked, PEEK_FILES):
        if os.path.getsize(file):
            verdicts[_ending(file, "")] = verdicts.get(_ending(file, ""), True) and _is_utf8(file)
    return {file for file in asked if verdicts.get(_ending(file, ""), False)}


def _is_utf8(file: str) -> bool:
    with open(file, "rb") as stream:
        data = stream.read(PEEK_BYTES)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < PEEK_BYTES)
    except UnicodeDecodeError:
        return False
    return b"\x00" not in data


# --- columns


def _of_texts(files: Sequence[str]) -> _Findings | str:
    """Whole files as documents: whether they are UTF-8."""
    seen = _spread([file for file in files if os.path.getsize(file)], SAMPLE_RECORDS)
    good = sum(map(_is_utf8, seen))
    if not seen:
        return f"{len(files):,} text file(s), all empty"
    findings = _Findings()
    findings.evidence.append(
        f"text: a file is a document; {good:,} of {len(seen):,} sampled files are UTF-8, "
        f"mean {_size(files) // len(files):,} bytes; ids are made from content"
    )
    if good < len(seen):
        bad = os.path.basename(next(file for file in seen if not _is_utf8(file)))
        findings.warnings.append(
            f"{len(seen) - good:,} of {len(seen):,} sampled files are not UTF-8 and would be rejected, such as {bad}; "
            "if it is text, name its encoding, for example encoding: latin-1"
        )
    return findings


def _columns(sample: _Sample, source_field: bool) -> _Findings | str:
    """Columns by fields' names and values, each with its evidence; or why the sample holds no documents."""
    if not sample.records:
        return "; ".join(["no record could be read", *sample.problems[:SHOWN]])
    total, findings = len(sample.records), _Findings()
    fields: dict[str, list[Any]] = {}
    for record in sample.records:
        for path, value in _flat(record):
            fields.setdefault(path, []).append(value)
    text = _text_field(fields, total)
    if text is None:
        return f"no field of its {total:,} sampled records holds text"
    findings.columns["text"] = text
    _judge_text(fields, text, total, findings)
    if sample.broken:
        findings.warnings.append(
            f"{sample.broken:,} of {total + sample.broken:,} sampled lines are no JSON objects and would be rejected"
        )
    near = text.rpartition(".")[0]
    _find_id(fields, near, total, findings)
    for column, names in STRINGS.items():
        for path in _named(fields, names, near):
            if path != text and all(isinstance(value, str) for value in fields[path]):
                findings.columns[column] = path
                findings.evidence.append(f"{column}: {_share(fields, path, total)}")
                break
    for path in _named(fields, TIMES, near):
        if all(_is_time(value) for value in fields[path]):
            findings.columns["fetched_at"] = path
            findings.evidence.append(f"fetched_at: {_share(fields, path, total)}, all of them time stamps")
            break
        findings.evidence.append(f"fetched_at: not field '{path}', for not all of its values are time stamps")
    for path in _named(fields, SOURCES, near) if source_field else ():
        values = fields[path]
        distinct = {value for value in values if isinstance(value, str)}
        usable = all(isinstance(v, str) and 0 < len(v) <= LONGEST_NAME and "://" not in v for v in values)
        if usable and len(distinct) <= FEW_VALUES and path != text:
            findings.suggested["source"] = path
            findings.source_names = sorted(distinct) if len(values) == total else []
            shown = ", ".join(sorted(distinct))
            findings.evidence.append(f"source: {_share(fields, path, total)}, {len(distinct)} value(s): {shown}")
            break
    return findings


def _flat(record: Mapping[str, Any], above: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """A record's values but null, by the dotted path with which the settings reach them."""
    for name, value in record.items():
        if value is None or not name or (above and "." in name):
            continue  # a dot in an inner name can't be told from a step into an object
        path = f"{above}.{name}" if above else name
        if isinstance(value, dict):
            if depth < NESTED and "." not in name:
                yield from ((inner, v) for inner, v in _flat(value, path, depth + 1) if inner not in record)
        else:
            yield path, value


def _named(fields: Mapping[str, Any], names: Sequence[str], near: str | None) -> list[str]:
    """Fields of one of these names: the least nested first, then in the names' order.

    ``near``: only at the top, beside the text, or in objects of metadata; None: anywhere.
    """
    ranked = []
    for path in fields:
        above, _, last = path.rpartition(".") if path not in names else ("", "", path)
        spelled = last.lower().replace("-", "_")
        about = above in ("", near) or all(part.lower() in METADATA for part in above.split("."))
        if spelled in names and (near is None or about):
            ranked.append((path.count("."), names.index(spelled), path))
    return [path for *_, path in sorted(ranked)]


def _text_field(fields: Mapping[str, list[Any]], total: int) -> str | None:
    """The field of a usual name that mostly holds strings, else that with the longest strings on average."""
    strings = {path: found for path, values in fields.items() if (found := _strings(values))}
    for path in _named(strings, TEXT, None):
        if 2 * len(strings[path]) >= total:
            return path
    plain = {path: found for path, found in strings.items() if isinstance(fields[path][0], str)}
    often = {path: found for path, found in plain.items() if 2 * len(found) >= total}
    return min(often or plain, key=lambda path: (-_mean(plain[path]), path), default=None)


def _strings(values: Iterable[Any]) -> list[str]:
    """The strings among values, those too that a table holds as UTF-8 bytes: ``ingest`` decodes them."""
    found = []
    for value in values:
        if isinstance(value, bytes):
            try:
                found.append(value.decode())
            except UnicodeDecodeError:
                continue
        elif isinstance(value, str):
            found.append(value)
    return found


def _mean(strings: Sequence[str]) -> int:
    return sum(map(len, strings)) // len(strings)


def _share(fields: Mapping[str, list[Any]], path: str, total: int) -> str:
    return f"field '{path}', {len(fields[path]):,} of {total:,} sampled records"


def _judge_text(fields: Mapping[str, list[Any]], text: str, total: int, findings: _Findings) -> None:
    held = _strings(fields[text])
    mean = _mean(held)
    findings.evidence.append(
        f"text: field '{text}', {len(held):,} of {total:,} sampled records, mean {mean:,} characters"
    )
    if len(held) < total:
        findings.warnings.append(
            f"{total - len(held):,} of {total:,} sampled records have no string in '{text}' and would be rejected"
        )
    means = {path: _mean(found) for path, values in fields.items() if (found := _strings(values))}
    longest = min(means, key=lambda path: (-means[path], path))
    if means[longest] > 10 * max(mean, 1):
        findings.warnings.append(f"field '{longest}' is longer (mean {means[longest]:,} characters): is that the text?")


def _find_id(fields: Mapping[str, list[Any]], near: str, total: int, findings: _Findings) -> None:
    """The first field of a usual name that can be an id: always there, a string or whole number, never repeated."""
    refused = []
    for path in _named(fields, IDS, near):
        values = fields[path]
        if not all(isinstance(v, (str, int)) and not isinstance(v, bool) and v != "" for v in values):
            refused.append(f"field '{path}' is not always a string or a whole number")
        elif len(values) < total:
            refused.append(f"field '{path}' is missing in {total - len(values):,} of {total:,} sampled records")
        elif len(set(map(str, values))) < total:
            refused.append(f"field '{path}' has {len(set(map(str, values))):,} values in {total:,} sampled records")
        else:
            findings.columns["doc_id"], findings.ids = path, values
            findings.evidence.append(f"doc_id: {_share(fields, path, total)}, each value once")
            return
    why = "; ".join(refused) or "no field has the name of an id"
    findings.evidence.append(f"doc_id: ids are made from content, for {why}")


def _is_time(value: Any) -> bool:
    """Whether ``ingest`` reads a value as a time stamp, and as one that can be meant."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    earlier = isinstance(value, (int, float)) and value < EARLIEST_NUMBER
    return not earlier and parse_timestamp(value) is not None
