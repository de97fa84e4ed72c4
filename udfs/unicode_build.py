"""Building the pinned Unicode tables from Python's ``unicodedata`` (only where that is Unicode 14.0.0).

The layout is described in ``unicode_tables``, and the kernels that read it are in ``composition``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from udfs.unicode_ranges import DEFAULT_IGNORABLE, REMOVED_BY_NORM_V1, UNSPACED, WHITE_SPACE, holds
from udfs.unicode_tables import (
    CASE_IGNORABLE,
    CASED,
    COMBINES_BACK,
    DIGIT,
    FAST,
    HANGUL,
    LETTER,
    LONGEST_COMPOSED,
    MARK,
    MARK_CLASS,
    NUMBER,
    OTHER,
    PAGE_SIZE,
    PUNCTUATION,
    REMOVED,
    SEPARATOR,
    SIGMA,
    SINGLE,
    SYMBOL,
    UNASSIGNED,
    UNIDATA_VERSION,
    UNSPACED_BIT,
    UPPER_CASE_BIT,
    WHITE_SPACE_BIT,
)

CODE_POINTS = 0x110000
IOTA_SUBSCRIPT = "\u0345"
"""Combining mark of class 240 that folds to the letter iota: it must stand in order as a mark before it is folded."""
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
HANGUL_VOWELS = range(0x1161, 0x1176)
HANGUL_FINALS = range(0x11A8, 0x11C3)
GENERAL_CLASSES = {"L": LETTER, "M": MARK_CLASS, "P": PUNCTUATION, "S": SYMBOL, "Z": SEPARATOR, "C": OTHER}

Codes = tuple[int, ...]


class Record(NamedTuple):
    """What a code point maps to; equal records are stored once."""

    flags: int
    delta: int
    composed: Codes
    expanded: Codes


def build_tables() -> dict[str, np.ndarray]:
    """Return all arrays of the table file, by name.

    Raises:
        ValueError: this Python has another Unicode version, or a limit that the kernels count on doesn't hold.
    """
    if unicodedata.unidata_version != UNIDATA_VERSION:
        raise ValueError(
            f"the tables are made from Unicode {UNIDATA_VERSION}; this Python has {unicodedata.unidata_version}: "
            "run it with Python 3.11"
        )
    pairs = composition_pairs()
    combines_back = {second for _, second in pairs} | set(HANGUL_VOWELS) | set(HANGUL_FINALS)
    return {
        **_prefixed("class", two_stages([class_bits(chr(code)) for code in range(CODE_POINTS)], np.uint8, "classes")),
        **_prefixed("composition", composition_arrays(pairs, combines_back)),
        **_prefixed("lower", mapping_arrays(lowered, IOTA_SUBSCRIPT, combines_back, has_context=True)),
        **_prefixed("fold", mapping_arrays(folded, "ι", combines_back, has_context=False)),
    }


def lowered(character: str) -> str:
    """Return what ``norm_v1`` makes of a character by itself, canonically decomposed."""
    code = ord(character)
    if holds(REMOVED_BY_NORM_V1, code):
        return ""
    if holds(WHITE_SPACE, code):
        return " "
    return unicodedata.normalize("NFD", character.lower())


def folded(character: str) -> str:
    """Return what ``words_v1`` makes of a character by itself, decomposed, with the iota subscript still a mark."""
    if holds(DEFAULT_IGNORABLE, ord(character)):
        return ""
    decomposed = unicodedata.normalize("NFKD", character)
    parts = [part if part == IOTA_SUBSCRIPT else part.casefold() for part in decomposed]
    return unicodedata.normalize("NFKD", "".join(parts))


def class_bits(character: str) -> int:
    """Return the class of a character and its class bits."""
    category = unicodedata.category(character)
    code = ord(character)
    if category == "Cn":
        return UNASSIGNED
    bits = (DIGIT if category == "Nd" else NUMBER) if category[0] == "N" else GENERAL_CLASSES[category[0]]
    if holds(WHITE_SPACE, code):
        bits |= WHITE_SPACE_BIT
    if category == "Lu":
        bits |= UPPER_CASE_BIT
    if (category[0] == "L" or category == "Nl") and holds(UNSPACED, code):
        bits |= UNSPACED_BIT
    return bits


def composition_pairs() -> dict[tuple[int, int], int]:
    """Return all primary composites but the Hangul syllables, by the two code points that they are composed of."""
    pairs = {}
    for code in range(CODE_POINTS):
        character = chr(code)
        decomposition = unicodedata.decomposition(character).split()
        # Two code points without a <tag>: canonical. A character that NFC takes apart is excluded from composition.
        if (
            len(decomposition) == 2
            and decomposition[0][0] != "<"
            and unicodedata.normalize("NFC", character) == character
        ):
            pairs[int(decomposition[0], 16), int(decomposition[1], 16)] = code
    return pairs


def composition_arrays(pairs: dict[tuple[int, int], int], combines_back: set[int]) -> dict[str, np.ndarray]:
    """Return the arrays of ``CompositionTables``."""
    properties = [
        unicodedata.combining(chr(code)) | (COMBINES_BACK if code in combines_back else 0)
        for code in range(CODE_POINTS)
    ]
    keyed = sorted((first << 32 | second, composite) for (first, second), composite in pairs.items())
    return {
        **two_stages(properties, np.uint16, "properties"),
        "pair_keys": np.array([key for key, _ in keyed], np.int64),
        "pair_values": np.array([composite for _, composite in keyed], np.int32),
    }


def mapping_arrays(
    expansion: Callable[[str], str], iota: str, combines_back: set[int], *, has_context: bool
) -> dict[str, np.ndarray]:
    """Return the arrays of ``MappingTables`` for a mapping of characters to decomposed strings.

    ``iota`` replaces the iota subscript of composed results. With ``has_context`` the flags tell the final sigma's neighbours.
    """
    numbers: dict[Record, int] = {}
    of_code = []
    for code in range(CODE_POINTS):
        record = _record(chr(code), expansion, iota, combines_back)
        if has_context:
            record = record._replace(flags=record.flags | context_flags(chr(code)))
        of_code.append(numbers.setdefault(record, len(numbers)))
    sequences: list[int] = []
    spans: dict[Codes, tuple[int, int]] = {(): (0, 0)}

    def span(codes: Codes) -> tuple[int, int]:
        if codes not in spans:
            spans[codes] = (len(sequences), len(sequences) + len(codes))
            sequences.extend(codes)
        return spans[codes]

    composed = np.array([span(record.composed) for record in numbers], np.int32)
    expanded = np.array([span(record.expanded) for record in numbers], np.int32)
    return {
        **two_stages(of_code, np.uint16, "records"),
        "flags": np.array([record.flags for record in numbers], np.int32),
        "delta": np.array([record.delta for record in numbers], np.int32),
        "composed_start": composed[:, 0].copy(),
        "composed_end": composed[:, 1].copy(),
        "expanded_start": expanded[:, 0].copy(),
        "expanded_end": expanded[:, 1].copy(),
        "sequences": np.array(sequences, np.int32),
    }


def _record(character: str, expansion: Callable[[str], str], iota: str, combines_back: set[int]) -> Record:
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:  # no surrogate is ever decoded
        return Record(FAST | SINGLE, 0, (), ())
    expanded = expansion(character)
    if not expanded:
        return Record(REMOVED, 0, (), ())
    composed = unicodedata.normalize("NFC", expanded.replace(IOTA_SUBSCRIPT, iota))
    if len(composed.encode()) > LONGEST_COMPOSED:
        raise ValueError(f"U+{code:04X} becomes {len(composed.encode())} bytes, above the limit {LONGEST_COMPOSED}")
    flags = unicodedata.combining(expanded[-1])
    if unicodedata.combining(expanded[0]) == 0 and ord(expanded[0]) not in combines_back:
        flags |= FAST
    elif expanded == composed == character and code not in combines_back:
        flags |= MARK
    delta = 0
    if len(composed) == 1:
        flags |= SINGLE
        delta = ord(composed) - code
    hangul = code in HANGUL_SYLLABLES
    if hangul:
        flags |= HANGUL
    stored_composed = () if len(composed) == 1 else tuple(map(ord, composed))
    stored_expanded = () if hangul or expanded == composed == chr(code + delta) else tuple(map(ord, expanded))
    return Record(flags, delta, stored_composed, stored_expanded)


def context_flags(character: str) -> int:
    """Return what the character means to a sigma near it, found out by asking ``str.lower``.

    A sigma becomes final if a cased letter stands before it, with nothing but case-ignorables between (and no such letter after it).
    """
    if character == "Σ":
        return SIGMA | CASED
    if "\ud800" <= character <= "\udfff":
        return 0
    if f"{character}Σ".lower().endswith("ς"):
        return CASED
    return CASE_IGNORABLE if f"a{character}Σ".lower().endswith("ς") else 0


def two_stages(entries: list[int], dtype: type[np.unsignedinteger], name: str) -> dict[str, np.ndarray]:
    """Return a table over all code points as ``pages`` and the entries of the distinct pages, under ``name``."""
    rows = np.array(entries, dtype).reshape(-1, PAGE_SIZE)
    if not np.array_equal(rows.ravel(), np.array(entries)):
        raise ValueError(f"an entry of the table {name} doesn't fit into {np.dtype(dtype)}")
    distinct: dict[bytes, int] = {}
    pages = [distinct.setdefault(row.tobytes(), len(distinct)) for row in rows]
    content = np.frombuffer(b"".join(distinct), dtype)
    return {"pages": np.array(pages, np.uint16), name: content}


def _prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}_{name}": array for name, array in arrays.items()}
