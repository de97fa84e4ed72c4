"""Pinned Unicode tables: the same answers under every Python version.

``unicodedata``, ``str.lower`` and ``str.casefold`` follow the Unicode version that a Python release was built with, so
two workers with different Pythons would give one text two keys. The kernels read the file ``unicode_14.npz`` instead,
made once from Unicode 14.0.0 (Python 3.11) by ``python -m udfs.unicode_tables``. Code points that Unicode assigned
later stay as they are. The tables load at first use, once per process, and take about a megabyte.

A table over code points has two stages: ``pages[code >> 7]`` names a page of 128 entries, and pages with equal
content are stored once.
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

CLASS_MASK = 0xFF
"""Bits of ``MappingTables.flags``: the canonical combining class of the last code point of the decomposed result."""
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
"""Bits of ``ClassTables.classes``: one of the nine below, from the general category."""
OTHER, LETTER, MARK_CLASS, DIGIT, NUMBER, PUNCTUATION, SYMBOL, SEPARATOR, UNASSIGNED = range(9)
"""C* but Cn; L*; M*; Nd; Nl and No; P*; S*; Z*; Cn."""
WHITE_SPACE_BIT = 0x10
UPPER_CASE_BIT = 0x20
"""General category Lu."""
UNSPACED_BIT = 0x40
"""A letter (L* or Nl) of a script that is written without spaces (``unicode_ranges.UNSPACED``)."""

LONGEST_COMPOSED = 40
"""No code point's composed result takes more bytes of UTF-8 (the longest is U+FDFA's, 33)."""


class MappingTables(NamedTuple):
    """What each code point maps to, before the whole is brought into canonical order and composed.

    ``records[pages[code >> 7] * 128 + (code & 127)]`` is the code point's record r. ``flags[r]`` is made of the bits
    above. The composed result (NFC of the result alone) is ``code + delta[r]`` with SINGLE, else
    ``sequences[composed_start[r]:composed_end[r]]``. The decomposed result is
    ``sequences[expanded_start[r]:expanded_end[r]]``, or, if that is empty, ``code + delta[r]``. ``iota`` is what U+0345 becomes
    once the marks stand in order: U+03B9 where case is folded, else itself.
    """

    pages: np.ndarray
    records: np.ndarray
    flags: np.ndarray
    delta: np.ndarray
    composed_start: np.ndarray
    composed_end: np.ndarray
    expanded_start: np.ndarray
    expanded_end: np.ndarray
    sequences: np.ndarray
    iota: int


class CompositionTables(NamedTuple):
    """Canonical order and composition.

    ``properties[pages[code >> 7] * 128 + (code & 127)]`` (uint16) holds the combining class and COMBINES_BACK. The pair
    (first, second) composes into ``pair_values[k]`` where ``pair_keys[k] = first << 32 | second``, rising.
    """

    pages: np.ndarray
    properties: np.ndarray
    pair_keys: np.ndarray
    pair_values: np.ndarray


class ClassTables(NamedTuple):
    """``classes[pages[code >> 7] * 128 + (code & 127)]`` (uint8) is the code point's class and class bits."""

    pages: np.ndarray
    classes: np.ndarray


@functools.cache
def lower_case_tables() -> MappingTables:
    """Return ``norm_v1``'s mapping: lower case, white space to U+0020, three invisible characters to nothing."""
    return _mapping("lower", iota=0x0345)


@functools.cache
def folding_tables() -> MappingTables:
    """Return ``words_v1``'s mapping: default-ignorables to nothing, compatibility decomposition, full case folding."""
    return _mapping("fold", iota=0x03B9)


@functools.cache
def composition_tables() -> CompositionTables:
    """Return canonical combining classes and compositions."""
    stored = _stored()
    return CompositionTables(*(stored[f"composition_{name}"] for name in CompositionTables._fields))


@functools.cache
def class_tables() -> ClassTables:
    """Return the character classes."""
    stored = _stored()
    return ClassTables(*(stored[f"class_{name}"] for name in ClassTables._fields))


@compiled
def class_of(tables: ClassTables, code: int) -> int:
    """Return the class and class bits of a code point."""
    return np.int64(tables.classes[(np.int64(tables.pages[code >> 7]) << 7) | (code & 127)])


@compiled
def record_of(tables: MappingTables, code: int) -> int:
    """Return the number of a code point's record."""
    return np.int64(tables.records[(np.int64(tables.pages[code >> 7]) << 7) | (code & 127)])


@compiled
def combining_properties(tables: CompositionTables, code: int) -> int:
    """Return a code point's combining class and COMBINES_BACK."""
    return np.int64(tables.properties[(np.int64(tables.pages[code >> 7]) << 7) | (code & 127)])


@functools.cache
def _stored() -> dict[str, np.ndarray]:
    # Opened as a resource, not by path: a wheel may be imported from inside a zip.
    with resources.files("udfs").joinpath(FILE_NAME).open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


def _mapping(name: str, iota: int) -> MappingTables:
    stored = _stored()
    arrays = (stored[f"{name}_{field}"] for field in MappingTables._fields if field != "iota")
    return MappingTables(*arrays, iota)


def main() -> None:
    """Write the table file beside this module, from this Python's Unicode data, which must be 14.0.0."""
    from udfs.unicode_build import build_tables

    tables = build_tables()
    np.savez_compressed(Path(__file__).with_name(FILE_NAME), allow_pickle=False, **tables)


if __name__ == "__main__":
    main()
