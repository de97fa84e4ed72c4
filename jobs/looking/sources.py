"""What a folder of data holds: sources, formats and columns, with the evidence for each. No Spark and no Java.

Every file's name and size is looked at, and the beginning of a few files of every source. Which files a setting takes
in is asked of ``ingest``'s own listing, so that it reads just the files that were counted here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.ingesting.files import COMPRESSIONS
from jobs.looking.fields import columns_in, of_texts
from jobs.looking.files import endings_of, files_of, format_of, is_text_name, selection_of, tables_in, unpacked_name
from jobs.looking.found import SHOWN, Folder, FoundSource, Looked, human_size, is_below, settings_path, total_size
from jobs.looking.samples import guessed_texts, json_records, live_files, parquet_records, sample_of, whole_json
from jobs.runtime.errors import UnreadableInput

ABOUT = re.compile(r"(readme|licen[cs]e|notice|changelog|citation|contributing)(\.[a-z]+)?", re.IGNORECASE)
"""Files that describe the data beside them."""

SOURCE_FOLDER = "source=([^/]+)"


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
    barred = [path for path in map(os.path.abspath, leave_out) if path != root and is_below(path, root)]
    files, beside = files_of(folder, root, barred)
    whole = Folder(root, tables := tables_in(root, files), barred)
    groups: dict[str, list[str]] = {}
    for file in files:
        first, below, _ = os.path.relpath(file, root).partition("/")
        if not below or root in tables:
            first = ""
        elif re.fullmatch(SOURCE_FOLDER, first):
            first = "source=*"
        groups.setdefault(first, []).append(file)
    loose = groups.pop("", [])
    looked: list[Looked] = []
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
            f"nothing in '{folder}' can be read as documents; it holds {endings_of(files) or 'no file'}",
            beside[:SHOWN],
            "Known are JSON lines (.jsonl .ndjson .json, also .gz .bz2 .zst), Parquet, Delta tables and text files.",
        )
    return [replace(source, beside=tuple(beside)) for source in _settled(looked)]


def _sources_in(
    folder: Folder, name: str, root: str, files: Sequence[str], one: bool, guess: bool
) -> tuple[list[Looked], list[str]]:
    """Files below ``root`` as a source of their dominant format (``one``) or one per format; or why they are none.

    ``guess``: where no ending is known, any files that decode as UTF-8 are documents.
    """
    tables = sorted(table for table, inside in folder.tables.items() if not set(inside).isdisjoint(files))
    in_table = {file for table in tables for file in folder.tables[table]}
    by_format: dict[str, list[str]] = {}
    for file in files:
        by_format.setdefault("delta" if file in in_table else format_of(file), []).append(file)
    other, json_files = by_format.pop("", []), by_format.pop("jsonl", [])
    whole = whole_json(json_files)
    if len(whole) < len(json_files):
        by_format["jsonl"] = [file for file in json_files if file not in whole]
    if not by_format and not whole and guess:
        guessed = guessed_texts(other)
        other = [file for file in other if file not in guessed]
        by_format = {"text": sorted(guessed)} if guessed else {}
    texts = by_format.get("text", [])
    about = (len(by_format) > 1 or whole) and all(ABOUT.fullmatch(os.path.basename(file)) for file in texts)
    if about or (len(by_format) == 1 and total_size(whole) > total_size(texts)):
        other += by_format.pop("text", [])  # a README beside data, which perhaps must be converted first
    notes = [f"{os.path.basename(file)} is {what}" for file, what in sorted(whole.items())[:SHOWN]]
    if len(whole) > SHOWN:
        notes.append(f"{len(whole) - SHOWN:,} more file(s) that are not JSON lines either")
    if other:
        notes.append(f"other files: {endings_of(other)}")
    if any(file.lower().endswith(COMPRESSIONS[1:]) and is_text_name(unpacked_name(file)) for file in other):
        notes.append("compressed text files can't be read: unpack them")
    found: list[Looked] = []
    sizes = {kind: total_size(inside) for kind, inside in sorted(by_format.items())}
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
    folder: Folder, name: str, root: str, kind: str, files: Sequence[str], tables: Sequence[str]
) -> Looked | str:
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
        rows = {file: how for table in tables for file, how in live_files(table).items()}
        files, paths = sorted(rows), tuple(settings_path(table, table=True) for table in tables)
        sample = sample_of(files, lambda file: parquet_records(file, *rows[file]))
    else:
        paths, pattern, problems = selection_of(folder, root, kind, files, hive=source_pattern is not None)
        sample = sample_of(files if kind != "text" else (), json_records if kind == "jsonl" else parquet_records)
    findings = of_texts(files) if kind == "text" else columns_in(sample, source_pattern is None)
    if isinstance(findings, str):
        return findings
    findings.one_folder = len(tables if kind == "delta" else set(map(os.path.dirname, files))) == 1
    warnings = (*problems, *sample.problems, *findings.warnings)
    evidence = tuple(findings.evidence)
    return (
        FoundSource(
            name, paths, kind, len(files), total_size(files), pattern, source_pattern,
            findings.columns, findings.suggested, tuple(sources), evidence, warnings,
        ),
        findings,
    )  # fmt: skip


def _settled(looked: Sequence[Looked]) -> list[FoundSource]:
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
