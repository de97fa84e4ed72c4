"""Draws by hash: the same document draws the same number in every run, on every cluster, whatever the layout.

Two purposes never share a draw, unless they are given the same salt on purpose.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

BITS = 53
"""Of a draw; so many a DOUBLE holds exactly."""


def draw_bits(purpose: str, seed: int, doc_id: str | Column = "doc_id") -> Column:
    """A number from 0 to 2^53 - 1 as DOUBLE, drawn by (purpose, seed, document).

    It is the upper 53 bits of XXH64 over one string of all three; ids are strings, so no type can change it.
    """
    key = F.concat_ws("\u0000", F.lit(purpose), F.lit(str(seed)), doc_id)
    return F.shiftrightunsigned(F.xxhash64(key), 64 - BITS).cast("double")


def draw(purpose: str, seed: int, doc_id: str | Column = "doc_id") -> Column:
    """A number from 0 to just below 1 as DOUBLE; see ``draw_bits``."""
    return draw_bits(purpose, seed, doc_id) / F.lit(2.0**BITS)
