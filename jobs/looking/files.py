"""Which files of a folder belong together, by name and format, and the shortest setting that takes in exactly these."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobs.ingesting.files import COMPRESSIONS, ENDINGS, list_files
from jobs.looking.found import NO_SESSION, SHOWN, Folder, is_below, settings_path
from jobs.runtime.errors import UnreadableInput

PATHS_MOST, ENDINGS_MOST = 50, 40

TEXT_ENDING = re.compile(
    r"\.(txt|text|md|markdown|rst|tex|org|adoc|html?|xhtml|xml|srt|css|sql|pyi?|java|kt|scala|go|rs|c|h|cc|hh|cpp|hpp|cs"
    r"|m?js|jsx|tsx?|rb|php|pl|sh|r|jl|lua|swift|hs|ml|clj|f90)$",
    re.IGNORECASE,
)


# --- files and formats


def files_of(folder: Path, root: str, barred: Sequence[str]) -> tuple[list[str], list[str]]:
    """All files, as ``ingest`` lists them, and notes about those that no settings file can name."""
    if not os.path.isdir(root):
        what = "is a file, not a folder" if os.path.exists(root) else "does not exist"
        raise UnreadableInput(f"'{folder}' {what}", remedy="Name a folder of this machine that holds the data.")
    files = [f for f in sorted(_read_by([root], "text", None)) if not any(is_below(f, path) for path in barred)]
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


def tables_in(root: str, files: Sequence[str]) -> dict[str, list[str]]:
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


def format_of(file: str) -> str:
    """The format that a file's ending says; nothing for an unknown one."""
    name = os.path.basename(file).lower()
    for kind in ("jsonl", "parquet"):
        if name.endswith(ENDINGS[kind]):
            return kind
    return "text" if is_text_name(name) else ""


def is_text_name(name: str) -> bool:
    """Whether files of this ending are documents as they are."""
    return TEXT_ENDING.search(name) is not None


def unpacked_name(file: str) -> str:
    """A file's name without the ending of its compression."""
    return next((file[: -len(end)] for end in COMPRESSIONS[1:] if file.lower().endswith(end)), file)


def ending_of(file: str, kind: str) -> str:
    """What a pattern for files like this one ends with, as the file spells it; nothing for a name without a dot."""
    name = os.path.basename(file)
    known = [len(end) for end in ENDINGS.get(kind, ()) if name.lower().endswith(end)]
    return name[-max(known) :] if known else os.path.splitext(name)[1]


def endings_of(files: Iterable[str]) -> str:
    """The commonest endings with their counts, for people."""
    counts = Counter(ending_of(file, "") or os.path.basename(file) for file in files)
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    more = f" and {len(rows) - SHOWN:,} other kinds" if len(rows) > SHOWN else ""
    return ", ".join(f"{count:,} x {ending}" for ending, count in rows[:SHOWN]) + more


def selection_of(
    folder: Folder, root: str, kind: str, files: Sequence[str], hive: bool
) -> tuple[tuple[str, ...], str | None, list[str]]:
    """The shortest ``paths`` and ``pattern`` with which ``ingest`` reads exactly these files, and warnings."""
    start, wanted = settings_path(root), frozenset(files)
    inside = glob.escape(start)
    ends = sorted({ending_of(file, kind) for file in files})
    stars = [f"*{glob.escape(end)}" for end in ends if end][:ENDINGS_MOST]
    tries: list[tuple[list[str], str | None]] = [([start], None)]
    if kind == "text" and len(ends) == 1:  # says what is read, and keeps out what is put there later
        tries.insert(0, ([start], stars[0] if stars else "*"))
    tries += [([start], star) for star in stars if len(ends) == 1]
    tries += [([f"{inside}/source=*"], None)] if hive else []
    tries += [([f"{inside}/{star}" for star in stars], None), ([f"{inside}/**/{star}" for star in stars], None)]
    if len(files) <= PATHS_MOST:
        tries.append(([settings_path(file) for file in sorted(files)], None))
    barred = [path for path in folder.barred if is_below(path, root)]
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
