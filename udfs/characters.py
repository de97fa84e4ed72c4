"""Pinned Unicode tables for the kernels: the same answers under every Python version.

``unicodedata``, ``str.lower`` and ``str.casefold`` follow the Unicode version that a Python release was built with: two
clusters with different Pythons would give one text two keys. The kernels read ``characters_14.npz``, made once from
Unicode 14.0.0 (Python 3.11) by ``python -m udfs.characters``; code points that Unicode assigned later stay as they are.

Most characters map to one character each and never combine with a neighbour: the compiled kernels handle documents that
hold nothing else. A document with any other character (``COMPLEX``: combining marks, conjoining jamo, characters that
fold into several) goes through Python's own C routines, split at code points that are not in Unicode 14.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from udfs.unicode_ranges import DEFAULT_IGNORABLE, REMOVED_BY_NORM_V1, UNSPACED, WHITE_SPACE, holds

UNICODE = "14.0.0"
FILE_NAME = "characters_14.npz"
CODES = 0x110000

COPY, SPACE, REMOVED, COMPLEX = 0, 1, 2, 3
"""Kinds for ``norm_v1``."""
SEPARATOR, WORD, ALONE, MARK, IGNORED, COMPLEX_WORD = 0, 1, 2, 3, 4, 5
"""Kinds for ``words_v1``: what separates, what makes runs, what is a word by itself, what joins the word before it."""
LETTER_BIT, DIGIT_BIT, SPACE_BIT, SYMBOL_BIT, UPPER_BIT = 1, 2, 4, 8, 16
"""Bits of the classes that statistics count."""

HANGUL_VOWELS, HANGUL_TAILS = range(0x1161, 0x1176), range(0x11A8, 0x11C3)
CAPITAL_SIGMA = 0x03A3
"""Its lower case depends on its neighbours (The Unicode Standard, section 3.13): left to ``str.lower``."""


class CharacterTables(NamedTuple):
    """One entry per code point. Maps are uint32 code points and hold where the kind is not COMPLEX; ``folded_kind`` is
    the kind of a code point in a text that has been folded."""

    lower_kind: NDArray[np.uint8]
    lower_map: NDArray[np.uint32]
    word_kind: NDArray[np.uint8]
    word_map: NDArray[np.uint32]
    folded_kind: NDArray[np.uint8]
    classes: NDArray[np.uint8]


@functools.cache
def character_tables() -> CharacterTables:
    """The tables, read once per process (8 MB)."""
    with resources.files("udfs").joinpath(FILE_NAME).open("rb") as file, np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files}
    codes = np.arange(CODES, dtype=np.uint32)
    # Stored as distances from the code point itself, of which nearly all are 0: that packs small.
    maps = {name: codes + arrays[f"{name}_distance"].astype(np.uint32) for name in ("lower_map", "word_map")}
    tables = CharacterTables(
        arrays["lower_kind"],
        maps["lower_map"],
        arrays["word_kind"],
        maps["word_map"],
        arrays["folded_kind"],
        arrays["classes"],
    )
    for table in tables:
        table.flags.writeable = False
    return tables


@functools.cache
def unassigned() -> re.Pattern[str]:
    """Matches runs of code points that Unicode 14 doesn't assign; newer Pythons must not map them."""
    with resources.files("udfs").joinpath(FILE_NAME).open("rb") as file, np.load(file) as stored:
        ranges = stored["unassigned"]
    return re.compile("([" + "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in ranges) + "]+)")


def fold(text: str) -> str:
    """Compatibility composition and case folding until nothing changes (NFKC_Casefold's closure, section 3.13, R5)."""
    while True:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        if folded == text:
            return text
        text = folded


def word_class(code: int) -> int:
    """SEPARATOR, WORD, ALONE or MARK, of a code point that ``fold`` leaves as it is."""
    category = unicodedata.category(chr(code))
    if category[0] == "M":
        return MARK
    if category[0] == "L" or category == "Nl":
        return ALONE if holds(UNSPACED, code) else WORD
    return WORD if category[0] == "N" else SEPARATOR


def build() -> dict[str, NDArray[np.generic]]:
    """All tables from this Python's Unicode data, as they are stored.

    Raises:
        RuntimeError: if that isn't Unicode 14.0.0.
    """
    if unicodedata.unidata_version != UNICODE:
        raise RuntimeError(
            f"this Python has Unicode {unicodedata.unidata_version}; the tables are made from {UNICODE} (Python 3.11)"
        )
    combines_back = _combines_back()

    def inert(character: str) -> bool:
        return unicodedata.combining(character) == 0 and ord(character) not in combines_back

    lower_kind, word_kind, folded_kind, classes = (np.zeros(CODES, np.uint8) for _ in range(4))
    lower_distance, word_distance = np.zeros(CODES, np.int32), np.zeros(CODES, np.int32)
    gaps: list[list[int]] = []
    for code in range(CODES):
        if 0xD800 <= code <= 0xDFFF:  # surrogates never occur in UTF-8
            continue
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cn":
            if gaps and gaps[-1][1] == code - 1:
                gaps[-1][1] = code
            else:
                gaps.append([code, code])
        classes[code] = _class_bits(code, category)
        folded_kind[code] = IGNORED if holds(DEFAULT_IGNORABLE, code) else word_class(code)
        if holds(WHITE_SPACE, code):
            lower_kind[code] = SPACE
        elif holds(REMOVED_BY_NORM_V1, code):
            lower_kind[code] = REMOVED
        else:
            lower = unicodedata.normalize("NFC", character.lower())
            if len(lower) == 1 and code != CAPITAL_SIGMA and inert(lower) and inert(character):
                lower_distance[code] = ord(lower) - code
            else:
                lower_kind[code] = COMPLEX
        folded = "".join(c for c in fold(character) if not holds(DEFAULT_IGNORABLE, ord(c)))
        if holds(DEFAULT_IGNORABLE, code) or not folded:
            word_kind[code] = IGNORED
        elif len(folded) == 1 and inert(folded) and inert(character):
            word_kind[code] = word_class(ord(folded))
            word_distance[code] = ord(folded) - code
        else:
            word_kind[code] = COMPLEX_WORD
    return {
        "lower_kind": lower_kind,
        "lower_map_distance": lower_distance,
        "word_kind": word_kind,
        "word_map_distance": word_distance,
        "folded_kind": folded_kind,
        "classes": classes,
        "unassigned": np.array(gaps, np.uint32),
    }


def _combines_back() -> frozenset[int]:
    """Code points that may compose with the one before them: second parts of canonical decompositions, and jamo."""
    found = {*HANGUL_VOWELS, *HANGUL_TAILS}
    for code in range(CODES):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.add(int(parts[1], 16))
    return frozenset(found)


def _class_bits(code: int, category: str) -> int:
    bits = SPACE_BIT if holds(WHITE_SPACE, code) else 0
    if category[0] in "LM":
        bits |= LETTER_BIT
    if category[0] == "N":
        bits |= DIGIT_BIT
    if category[0] in "PS":
        bits |= SYMBOL_BIT
    return bits | (UPPER_BIT if category == "Lu" else 0)


def main() -> int:
    """Write the table file beside this module."""
    np.savez_compressed(Path(__file__).with_name(FILE_NAME), allow_pickle=False, **build())  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
