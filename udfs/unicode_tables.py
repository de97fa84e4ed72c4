"""Pinned Unicode tables: the same answers under every Python version.

``unicodedata``, ``str.lower`` and ``str.casefold`` follow the Unicode version that a Python release was built with, so
two workers with different Pythons would give one text two keys. The kernels read the file ``unicode_14.npz`` instead,
made once from Unicode 14.0.0 (Python 3.11) by ``python -m udfs.unicode_tables``. Code points that Unicode assigned
later stay as they are. The tables load at first use, once per process, and take about a megabyte.

A table over code points has two stages, in one uint16 array: its first 8704 entries name, for each 128 code points,
the page where their entries are, and pages with equal content are stored once (``lookup``). The arrays are few, because
a kernel hands each of them on with every call that isn't inlined.
"""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from udfs.compiled import compiled

UNIDATA_VERSION = "14.0.0"
FILE_NAME = "unicode_14.npz"

PAGE_BITS = 7
PAGE_SIZE = 1 << PAGE_BITS
PAGES = 0x110000 >> PAGE_BITS

# Fields of a row of ``MappingTables.entries``.
FLAGS, DELTA, COMPOSED_START, COMPOSED_END, EXPANDED_START, EXPANDED_END = range(6)
ROW = 6

CLASS_MASK = 0xFF
"""Bits of a row's FLAGS: the canonical combining class of the last code point of the decomposed result."""
FAST = 0x100
"""The result starts with a starter that never combines with what stands before it: it can be written at once."""
REMOVED = 0x200
"""The code point maps to nothing."""
MARK = 0x400
"""A non-starter that maps to itself and never combines with what stands before it: it only must stand in order."""
SINGLE = 0x800
"""The composed result is one code point, ``code + delta``."""
HANGUL = 0x1000
"""A Hangul syllable: its decomposition is computed (The Unicode Standard, section 3.12), not stored."""
SIGMA = 0x2000
"""U+03A3, whose lower case depends on its neighbours."""
CASED = 0x4000
"""Cased (section 3.13, D135) and not case-ignorable: what the rule for the final sigma looks for."""
CASE_IGNORABLE = 0x8000
"""Case_Ignorable (D136): what that rule looks across."""

COMBINING_CLASS = 0xFF
"""Bits of ``CompositionTables.properties``: the canonical combining class."""
COMBINES_BACK = 0x100
"""Some code point followed by this one composes into a third one."""

GENERAL = 0x0F
"""Bits of a character's class: one of the nine below, from the general category."""
OTHER, LETTER, MARK_CLASS, DIGIT, NUMBER, PUNCTUATION, SYMBOL, SEPARATOR, UNASSIGNED = range(9)
"""C* but Cn; L*; M*; Nd; Nl and No; P*; S*; Z*; Cn."""
WHITE_SPACE_BIT = 0x10
UPPER_CASE_BIT = 0x20
"""General category Lu."""
UNSPACED_BIT = 0x40
"""A letter (L* or Nl) of a script that is written without spaces (``unicode_ranges.UNSPACED``)."""

LONGEST_COMPOSED = 40
"""No code point's composed result takes more bytes of UTF-8 (the longest is U+FDFA's, 33)."""


PAIR_BITS = 21
PAIR_MASK = (1 << PAIR_BITS) - 1


class MappingTables(NamedTuple):
    """What each code point maps to, before the whole is brought into canonical order and composed.

    ``lookup(records, code)`` is the number r of the code point's row, ``entries[ROW * r:ROW * (r + 1)]`` (int32). Its
    FLAGS are made of the bits above. The composed result (NFC of the result alone) is ``code + DELTA`` with SINGLE,
    else ``entries[COMPOSED_START:COMPOSED_END]``. The decomposed result is ``entries[EXPANDED_START:EXPANDED_END]``, or
    ``code + DELTA`` if that is empty. ``iota`` is what U+0345 becomes once the marks stand in order: U+03B9 where case
    is folded, else itself.
    """

    records: np.ndarray
    entries: np.ndarray
    iota: int


class CompositionTables(NamedTuple):
    """Canonical order and composition.

    ``lookup(properties, code)`` holds the combining class and COMBINES_BACK. ``pairs`` (int64, rising) holds
    ``first << 42 | second << 21 | composite`` for each two code points that compose.
    """

    properties: np.ndarray
    pairs: np.ndarray


@functools.cache
def lower_case_tables() -> MappingTables:
    """Return ``norm_v1``'s mapping: lower case, white space to U+0020, three invisible characters to nothing."""
    stored = _stored()
    return MappingTables(stored["lower_records"], stored["lower_entries"], 0x0345)


@functools.cache
def folding_tables() -> MappingTables:
    """Return ``words_v1``'s mapping: default-ignorables to nothing, compatibility decomposition, case folding."""
    stored = _stored()
    return MappingTables(stored["fold_records"], stored["fold_entries"], 0x03B9)


@functools.cache
def composition_tables() -> CompositionTables:
    """Return canonical combining classes and compositions."""
    stored = _stored()
    return CompositionTables(stored["composition_properties"], stored["composition_pairs"])


@functools.cache
def class_table() -> np.ndarray:
    """Return the characters' classes with their class bits, a two-stage table."""
    return _stored()["classes"]


@compiled
def lookup(table: np.ndarray, code: int) -> int:
    """Return the entry of a code point in a two-stage table (uint16)."""
    page = np.int64(table[code >> PAGE_BITS])
    return np.int64(table[PAGES + (page << PAGE_BITS) + (code & (PAGE_SIZE - 1))])


@compiled
def entry(mapping: MappingTables, index: int) -> int:
    """Return ``mapping.entries[index]``, widened: sums of 32-bit numbers would stay 32-bit in a kernel."""
    return np.int64(mapping.entries[index])


@functools.cache
def _stored() -> dict[str, np.ndarray]:
    # Opened as a resource, not by path: a wheel may be imported from inside a zip.
    with resources.files("udfs").joinpath(FILE_NAME).open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


def main() -> None:
    """Write the table file beside this module, from this Python's Unicode data, which must be 14.0.0."""
    from udfs.unicode_build import build_tables

    tables = build_tables()
    np.savez_compressed(Path(__file__).with_name(FILE_NAME), allow_pickle=False, **tables)


if __name__ == "__main__":
    main()
