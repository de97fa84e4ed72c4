"""Building the pinned Unicode tables from Python's ``unicodedata`` (only where that is Unicode 14.0.0).

The layout is described in ``unicode_tables``, and the kernels that read it are in ``mapping`` and ``composition``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from udfs.unicode_ranges import DEFAULT_IGNORABLE, REMOVED_BY_NORM_V1, UNSPACED, WHITE_SPACE, members
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
    PAGES,
    PAIR_BITS,
    PUNCTUATION,
    REMOVED,
    ROW,
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
GENERAL_CLASSES = {"L": LETTER, "M": MARK_CLASS, "N": NUMBER, "P": PUNCTUATION, "S": SYMBOL, "Z": SEPARATOR, "C": OTHER}

IGNORABLE_CODES = members(DEFAULT_IGNORABLE)
REMOVED_CODES = members(REMOVED_BY_NORM_V1)
UNSPACED_CODES = members(UNSPACED)
WHITE_SPACE_CODES = members(WHITE_SPACE)

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
    lower_records, lower_entries = mapping_arrays(lowered, IOTA_SUBSCRIPT, combines_back, has_context=True)
    fold_records, fold_entries = mapping_arrays(folded, "ι", combines_back, has_context=False)
    return {
        "classes": two_stages([class_bits(chr(code)) for code in range(CODE_POINTS)]),
        "composition_properties": two_stages(
            [
                unicodedata.combining(chr(code)) | (COMBINES_BACK if code in combines_back else 0)
                for code in range(CODE_POINTS)
            ]
        ),
        "composition_pairs": np.array(
            sorted(
                (first << PAIR_BITS | second) << PAIR_BITS | composite for (first, second), composite in pairs.items()
            ),
            np.int64,
        ),
        "lower_records": lower_records,
        "lower_entries": lower_entries,
        "fold_records": fold_records,
        "fold_entries": fold_entries,
    }


def lowered(character: str) -> str:
    """Return what ``norm_v1`` makes of a character by itself, canonically decomposed."""
    code = ord(character)
    if code in REMOVED_CODES:
        return ""
    if code in WHITE_SPACE_CODES:
        return " "
    return unicodedata.normalize("NFD", character.lower())


def folded(character: str) -> str:
    """Return what ``words_v1`` makes of a character by itself, decomposed, with the iota subscript still a mark."""
    if ord(character) in IGNORABLE_CODES:
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
    bits = DIGIT if category == "Nd" else GENERAL_CLASSES[category[0]]
    if code in WHITE_SPACE_CODES:
        bits |= WHITE_SPACE_BIT
    if category == "Lu":
        bits |= UPPER_CASE_BIT
    if (category[0] == "L" or category == "Nl") and code in UNSPACED_CODES:
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


def mapping_arrays(
    expansion: Callable[[str], str], iota: str, combines_back: set[int], *, has_context: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``MappingTables.records`` and ``entries`` for a mapping of characters to decomposed strings.

    ``iota`` replaces the iota subscript of composed results. With ``has_context`` the flags say what each character
    means to a sigma near it.
    """
    numbers: dict[Record, int] = {}
    of_code = []
    for code in range(CODE_POINTS):
        record = _record(chr(code), expansion, iota, combines_back)
        if has_context:
            record = record._replace(flags=record.flags | context_flags(chr(code)))
        of_code.append(numbers.setdefault(record, len(numbers)))
    spans: dict[Codes, tuple[int, int]] = {(): (0, 0)}
    sequences: list[int] = []
    first = ROW * len(numbers)  # the sequences lie behind the rows
    for record in numbers:
        for codes in (record.composed, record.expanded):
            if codes not in spans:
                spans[codes] = (first + len(sequences), first + len(sequences) + len(codes))
                sequences.extend(codes)
    rows = [(record.flags, record.delta, *spans[record.composed], *spans[record.expanded]) for record in numbers]
    return two_stages(of_code), np.concatenate([np.ravel(rows), sequences]).astype(np.int32)


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

    A sigma becomes final if a cased letter stands before it, with nothing but case-ignorables between (and no such
    letter after it).
    """
    if character == "Σ":
        return SIGMA | CASED
    if "\ud800" <= character <= "\udfff":
        return 0
    if f"{character}Σ".lower().endswith("ς"):
        return CASED
    return CASE_IGNORABLE if f"a{character}Σ".lower().endswith("ς") else 0


def two_stages(entries: list[int]) -> np.ndarray:
    """Return the two-stage table (uint16) of one entry per code point, as ``unicode_tables.lookup`` reads it."""
    if not 0 <= min(entries) <= max(entries) < 2**16:
        raise ValueError(f"an entry doesn't fit into 16 bits: {min(entries)}, {max(entries)}")
    distinct: dict[bytes, int] = {}
    pages = [
        distinct.setdefault(page.tobytes(), len(distinct))
        for page in np.array(entries, np.uint16).reshape(PAGES, PAGE_SIZE)
    ]
    return np.concatenate([np.array(pages, np.uint16), np.frombuffer(b"".join(distinct), np.uint16)])
