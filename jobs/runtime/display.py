"""Tables and lines for people: on a terminal as wide as it is, elsewhere as wide as needed."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

CELL = 120
"""Longest cell; what is longer is cut and ends in an ellipsis."""


def console(stream: TextIO | None = None) -> Console:
    """A console that never cuts lines where nobody looks at a terminal."""
    target = stream or sys.stdout
    return Console(file=target, width=None if target.isatty() else 400, highlight=False, soft_wrap=not target.isatty())


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """A table with a title; numbers with thousands separators; ``right`` names columns that are set flush right."""
    table = Table(
        title=title or None, title_justify="left", show_edge=False, pad_edge=False, box=None, header_style="bold"
    )
    for name in columns:
        table.add_column(name, justify="right" if name in set(right) else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(cell(value)) for value in row])
    console(stream).print(table)


def print_record(values: Mapping[str, object], stream: TextIO | None = None) -> None:
    """One row, a line per column: for tables that are too wide to stand side by side."""
    width = max((len(name) for name in values), default=0)
    out = stream or sys.stdout
    for name, value in values.items():
        out.write(f"  {name:<{width}}  {cell(value)}\n")


def cell(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
    if isinstance(value, (bytes, bytearray)):
        text = value.hex()
        return text if len(text) <= 16 else text[:12] + "…"
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    text = " ".join(str(value).split())
    return text if len(text) <= CELL else text[: CELL - 1] + "…"
