"""What looking at a folder gives: sources, and why each looks as it does; the spelling of paths and sizes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHOWN = 5
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
class Sample:
    """Records from the beginnings of a few files, and what could not be read there."""

    records: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class Findings:
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
class Folder:
    """The folder that is looked at: its Delta tables with their files, and the paths in it that are no data, whether
    they are there already or will be after the first run."""

    root: str
    tables: Mapping[str, Sequence[str]]
    barred: Sequence[str]


Looked = tuple[FoundSource, Findings]
Read = tuple[list[dict[str, Any]], int, str]
"""Records of a file's beginning, the number of broken ones, and what is wrong with the file (or nothing)."""


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


def total_size(files: Iterable[str]) -> int:
    """Bytes of all these files."""
    return sum(os.path.getsize(file) for file in files)


def is_below(file: str, path: str) -> bool:
    """Whether a file is at or below a path."""
    return file == path or file.startswith(path.rstrip("/") + "/")
