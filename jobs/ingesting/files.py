"""Which files a source consists of. Spark skips names that start with ``_`` or ``.`` without a word: here every file
is listed first, and what will not be read is said."""

from __future__ import annotations

import codecs
import fnmatch
import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession

from jobs.runtime.errors import NotPermitted, UnreadableInput
from jobs.runtime.session import list_hadoop_files

COMPRESSIONS = ("", ".gz", ".bz2", ".zst")
ENDINGS = {
    "jsonl": tuple(f"{e}{c}" for e in (".jsonl", ".ndjson", ".json") for c in COMPRESSIONS),
    "parquet": (".parquet", ".parq"),
    "text": (),
}
BOOKKEEPING = re.compile(
    r"^(?:_SUCCESS|_committed_.*|_started_.*|_metadata|_common_metadata|\.DS_Store|Thumbs\.db|\..*\.crc|\.gitignore|\.gitkeep)$"
)
BOOKKEEPING_FOLDERS = frozenset({"_delta_log", "_temporary", ".git", ".ipynb_checkpoints", "__pycache__"})
UNREADABLE = re.compile(r"^[_.]|[:\[\]{}*?\\]|\.(?!gz$|bz2$|zst$)(?i:gz|bz2|zst)$")
"""Names with which Spark does not do what one expects: it passes over those that start with _ or . ; it can't open one
with a colon (Hadoop looks for the checksum file ``.NAME.crc`` beside it and takes what stands before the colon for a
scheme); one with a bracket among the paths makes it list all the others twice; and what ends in ``.GZ`` it takes for
text."""
PACKED_NOTHING = 300
"""A compressed file of more bytes than this has content: the header, with a file name, takes up to 280."""
GLOB = re.compile(r"[\[\]{}*?\\]")
"""Characters that Spark takes for a pattern, wherever they stand in a path."""
SHOWN = 10


@dataclass(frozen=True)
class Listing:
    """The files of one source. ``uri`` is what Spark is given; hidden and other files are named, not read."""

    uris: tuple[str, ...]
    total_bytes: int
    with_content: tuple[str, ...] = ()
    """Those, hidden ones too, that hold more than a byte order mark or a compressor's header: each must give a row."""
    hidden: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    """Text files without a byte: documents, although empty, that Spark would leave out."""
    other: int = 0

    def must_be_seen(self, file_format: str, with_hidden: bool) -> int:
        """How many files must have given a row once all were read: every text file, every JSONL file with content."""
        barred = frozenset() if with_hidden else frozenset(self.hidden)
        if file_format == "text":
            return len(self.uris) + len(self.empty) + (len(self.hidden) if with_hidden else 0)
        return sum(1 for uri in self.with_content if uri not in barred)


def list_files(spark: SparkSession, paths: Sequence[str], file_format: str, pattern: str | None) -> Listing:
    """All files of a source: paths are files, folders (read with all their subfolders) or globs.

    Args:
        spark: Asked only for paths with a scheme (s3a://, abfss:// ...).
        paths: As in the settings.
        file_format: jsonl, parquet or text: which endings count in a folder.
        pattern: A file name pattern (``*.md``) instead of the format's endings.

    Raises:
        UnreadableInput: listing the paths at which there is nothing, or nothing of the format.
        NotPermitted: for folders or files that may not be read.
    """
    found: dict[str, int] = {}
    missing, barred = [], []
    for path in paths:
        try:
            entries = _list_one(spark, path)
        except FileNotFoundError:
            missing.append(path)
            continue
        except PermissionError as error:
            barred.append(str(error.filename or path))
            continue
        found.update(entries)
        barred.extend(p for p, _ in entries if "://" not in p and not os.access(p, os.R_OK))
    if barred:
        raise NotPermitted(
            f"{len(barred)} file(s) or folder(s) may not be read:",
            sorted(barred)[:SHOWN],
            "Give this user the right to read them, or take them out of the setting 'paths'.",
        )
    if missing:
        raise UnreadableInput(
            "nothing is at these paths of the setting 'paths':",
            missing,
            f"Relative paths start from the current folder, {Path.cwd()}.",
        )
    listing = _sort_out(found, paths, file_format, pattern)
    if not listing.uris and not listing.hidden and not listing.empty:
        raise UnreadableInput(
            f"no file under {', '.join(paths)} looks like {file_format} "
            f"({', '.join(ENDINGS[file_format]) or pattern or 'any file'}); {listing.other} other file(s) are there",
            remedy="Name the right format, or say which files to take with the setting 'pattern' (for example '*.txt').",
        )
    return listing


def _list_one(spark: SparkSession, path: str) -> list[tuple[str, int]]:
    if re.match(r"^[a-z][a-z0-9+.\-]*:/", path) and not path.startswith("file:"):
        return list_hadoop_files(spark, path)
    local = path.removeprefix("file://").removeprefix("file:") if path.startswith("file:") else path
    local = os.path.expanduser(local)
    if os.path.exists(local):
        starts = [local]
    elif glob.has_magic(local):
        starts = sorted(glob.glob(local, recursive=True, include_hidden=True))
    else:
        starts = []
    if not starts:
        raise FileNotFoundError(path)
    entries: list[tuple[str, int]] = []
    for start in starts:
        if os.path.isfile(start):
            entries.append((os.path.abspath(start), os.path.getsize(start)))
            continue
        visited: set[str] = set()
        for folder, names, files in os.walk(start, onerror=_raise, followlinks=True):
            here = os.path.realpath(folder)
            if here in visited:  # a link back up, or a second way to the same folder
                names.clear()
                continue
            visited.add(here)
            names.sort()
            for name in sorted(files):
                full = os.path.join(folder, name)
                if os.path.isfile(full):  # not a pipe, a socket or a link into nowhere
                    entries.append((os.path.abspath(full), os.path.getsize(full)))
    return entries


def _raise(error: OSError) -> None:
    raise error


def _sort_out(found: dict[str, int], paths: Sequence[str], file_format: str, pattern: str | None) -> Listing:
    uris, hidden, empty, with_content, total, other = [], [], [], [], 0, 0
    given = {os.path.abspath(os.path.expanduser(p)) for p in paths}
    for full, size in sorted(found.items()):
        inside = _below(full, paths)
        parts = inside.split("/")
        if any(part in BOOKKEEPING_FOLDERS for part in parts[:-1]) or BOOKKEEPING.match(parts[-1]):
            continue
        named_itself = full in given or full in paths
        if not named_itself and not _wanted(parts[-1], file_format, pattern):
            other += 1
            continue
        if size > (PACKED_NOTHING if full.lower().endswith(COMPRESSIONS[1:]) else len(codecs.BOM_UTF8)):
            with_content.append(full)
        if UNREADABLE.search(parts[-1]) or GLOB.search(full):
            hidden.append(full)
        elif not size and file_format == "text":
            empty.append(full)
        else:
            uris.append(full)
        total += size
    return Listing(tuple(uris), total, tuple(with_content), tuple(hidden), tuple(empty), other)


def _wanted(name: str, file_format: str, pattern: str | None) -> bool:
    if pattern is not None:
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.lstrip("_."), pattern)
    endings = ENDINGS[file_format]
    return not endings or name.lower().endswith(endings)


def _below(full: str, paths: Sequence[str]) -> str:
    """The part of a file's path that lies below the path given in the settings."""
    text = unquote(full)
    for path in sorted(paths, key=len, reverse=True):
        root = path.rstrip("/") if "://" in path else os.path.abspath(os.path.expanduser(path))
        if not os.path.exists(root) and (magic := re.search(r"[*?\[]", root)):
            root = root[: magic.start()].rpartition("/")[0]  # the folder in which a pattern begins to match
        if text.startswith(root + "/"):
            return text[len(root) + 1 :]
    return text.rsplit("/", 1)[-1]
