"""The characters and phrases that the heuristics look for, as tables for their kernels. Unicode is pinned to 14.0."""

from __future__ import annotations

import functools

import numpy as np

from udfs.unicode_tables import (
    DIGIT,
    GENERAL,
    LETTER,
    MARK_CLASS,
    NUMBER,
    WHITE_SPACE_BIT,
    class_table,
    lookup,
)

FIRST_PHRASE = 9
WHITE, NON_ASCII, ALPHABETIC, WORDY, HASH, DOT, CURLY, ENDING, CLOSING = (1 << bit for bit in range(FIRST_PHRASE))
"""Marks of a character: white space; not ASCII; a letter (L*); a letter, mark or number (L*, M*, N*); # . { and what
ends a sentence, or may stand after that. From FIRST_PHRASE on there is one more for each phrase: the byte is its anchor,
in either case."""

PHRASES = (
    ("javascript", "j"),
    ("terms of use", "f"),
    ("privacy policy", "v"),
    ("cookie policy", "k"),
    ("uses cookies", "k"),
    ("use of cookies", "k"),
    ("use cookies", "k"),
    ("lorem ipsum", "p"),
)
"""What C4 looks for, with its anchor: the rarest of its letters, at its first place. Only there the phrase is compared."""

LOREM_IPSUM = 1 << 7
"""The bit of the last phrase; a line with one of the others isn't kept."""

PHRASE_ROW = 16
"""Numbers that describe a phrase in ``phrase_table``: its length, the place of its anchor, its bytes."""

INTERRUPTING = WHITE | NON_ASCII | HASH | DOT | (0xFF << FIRST_PHRASE)
"""A byte with one of these marks needs more than its marks to be noted."""

BULLETS = (0x2022, 0x2023, 0x2043, 0x25AA, 0x25CF, 0x25E6)
"""• ‣ ⁃ ▪ ● ◦ start a bullet line, whatever follows; - and * do as a word of their own."""

ELLIPSIS = 0x2026
CLOSING_QUOTES = (0x2019, 0x201D)
"""’ and ”. The ASCII quotes close (and open) too."""

SENTENCE_TERMINAL = (
    *((0x0021, 0x0021), (0x002E, 0x002E), (0x003F, 0x003F), (0x0589, 0x0589), (0x061D, 0x061F), (0x06D4, 0x06D4)),
    *((0x0700, 0x0702), (0x07F9, 0x07F9), (0x0837, 0x0837), (0x0839, 0x0839), (0x083D, 0x083E), (0x0964, 0x0965)),
    *((0x104A, 0x104B), (0x1362, 0x1362), (0x1367, 0x1368), (0x166E, 0x166E), (0x1735, 0x1736), (0x1803, 0x1803)),
    *((0x1809, 0x1809), (0x1944, 0x1945), (0x1AA8, 0x1AAB), (0x1B5A, 0x1B5B), (0x1B5E, 0x1B5F), (0x1B7D, 0x1B7E)),
    *((0x1C3B, 0x1C3C), (0x1C7E, 0x1C7F), (0x203C, 0x203D), (0x2047, 0x2049), (0x2E2E, 0x2E2E), (0x2E3C, 0x2E3C)),
    *((0x2E53, 0x2E54), (0x3002, 0x3002), (0xA4FF, 0xA4FF), (0xA60E, 0xA60F), (0xA6F3, 0xA6F3), (0xA6F7, 0xA6F7)),
    *((0xA876, 0xA877), (0xA8CE, 0xA8CF), (0xA92F, 0xA92F), (0xA9C8, 0xA9C9), (0xAA5D, 0xAA5F), (0xAAF0, 0xAAF1)),
    *((0xABEB, 0xABEB), (0xFE52, 0xFE52), (0xFE56, 0xFE57), (0xFF01, 0xFF01), (0xFF0E, 0xFF0E), (0xFF1F, 0xFF1F)),
    *((0xFF61, 0xFF61), (0x10A56, 0x10A57), (0x10F55, 0x10F59), (0x10F86, 0x10F89), (0x11047, 0x11048)),
    *((0x110BE, 0x110C1), (0x11141, 0x11143), (0x111C5, 0x111C6), (0x111CD, 0x111CD), (0x111DE, 0x111DF)),
    *((0x11238, 0x11239), (0x1123B, 0x1123C), (0x112A9, 0x112A9), (0x1144B, 0x1144C), (0x115C2, 0x115C3)),
    *((0x115C9, 0x115D7), (0x11641, 0x11642), (0x1173C, 0x1173E), (0x11944, 0x11944), (0x11946, 0x11946)),
    *((0x11A42, 0x11A43), (0x11A9B, 0x11A9C), (0x11C41, 0x11C42), (0x11EF7, 0x11EF8), (0x16A6E, 0x16A6F)),
    *((0x16AF5, 0x16AF5), (0x16B37, 0x16B38), (0x16B44, 0x16B44), (0x16E98, 0x16E98), (0x1BC9F, 0x1BC9F)),
    (0x1DA88, 0x1DA88),
)
"""Code points with the property Sentence_Terminal (Unicode 14.0, PropList.txt), as first and last of each range: . ! ?
and the likes of other scripts, such as 。！？ and । and ؟."""


@functools.cache
def mark_table() -> np.ndarray:
    """Return the marks of each byte of ASCII, then those of each value of the class table (int64[384])."""
    classes = class_table()
    by_class = [_marks(bits) | NON_ASCII for bits in range(256)]
    by_byte = [_marks(lookup(classes, byte)) for byte in range(128)]
    for mark, bytes_with_it in ((HASH, b"#"), (DOT, b"."), (CURLY, b"{"), (ENDING, b".!?"), (CLOSING, b"\"')]")):
        for byte in bytes_with_it:
            by_byte[byte] |= mark
    for index, (_, anchor) in enumerate(PHRASES):
        for letter in (anchor, anchor.upper()):
            by_byte[ord(letter)] |= 1 << FIRST_PHRASE + index
    return np.array([*by_byte, *by_class], np.int64)


def _marks(bits: int) -> int:
    general = bits & GENERAL
    marks = WHITE if bits & WHITE_SPACE_BIT else 0
    if general in (LETTER, MARK_CLASS, DIGIT, NUMBER):
        marks |= WORDY
    return marks | ALPHABETIC if general == LETTER else marks


@functools.cache
def phrase_table() -> np.ndarray:
    """Return a row of each phrase (uint8[8, 16]): its length, the place of its anchor, its bytes."""
    table = np.zeros((len(PHRASES), PHRASE_ROW), np.uint8)
    for row, (phrase, anchor) in zip(table, PHRASES, strict=True):
        row[:2] = len(phrase), phrase.index(anchor)
        row[2 : 2 + len(phrase)] = np.frombuffer(phrase.encode(), np.uint8)
    return table


@functools.cache
def terminal_bounds() -> np.ndarray:
    """Return where the ranges of ``SENTENCE_TERMINAL`` start and where they have ended, rising (int32[2 × ranges])."""
    return np.array([bound for first, last in SENTENCE_TERMINAL for bound in (first, last + 1)], np.int32)
