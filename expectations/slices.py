"""Slices: the combinations of column values, such as source and language, that floors and totals go by."""

from __future__ import annotations

import json
from collections.abc import Sequence

NULL_NAME = "<null>"
"""How a slice whose value is NULL is written, in plans and in results."""

Slice = str | None | Sequence[str | None]
"""One value per column; a bare string or None stands for a slice of one column."""


def slice_values(given: Slice, columns: Sequence[str]) -> list[str | None]:
    """The values of a planned slice, one for each of ``columns``; ``<null>`` becomes None.

    Raises:
        ValueError: the number of values isn't the number of columns.
    """
    values = [given] if given is None or isinstance(given, str) else list(given)
    if len(values) != len(columns):
        raise ValueError(
            f"the slice {values} has {len(values)} values, but slices are by {len(columns)} columns "
            f"({', '.join(columns) or 'none'})"
        )
    return [None if value == NULL_NAME else value for value in values]


def slice_names(values: Sequence[str | None]) -> list[str]:
    """The values as they are shown: NULL as ``<null>``, and a text that reads ``<null>`` itself in quotes.

    The quotes keep a source that is really called ``<null>`` apart from rows without a source.
    """
    return [NULL_NAME if value is None else json.dumps(value) if value == NULL_NAME else value for value in values]


def slice_label(values: Sequence[str | None]) -> str:
    """The values in one string for a sentence, e.g. ``web / en``; ``all rows`` for no columns."""
    return " / ".join(slice_names(values)) or "all rows"
