"""Lengths and shares of character classes of a text, from which simple quality rules are made.

Everything is counted in one walk over the bytes as they are, before any normalisation. Unicode is pinned
(``unicode_tables``); malformed bytes in a binary column count as U+FFFD, a symbol.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from udfs.arrow_text import Texts, text_buffers
from udfs.compiled import compiled
from udfs.unicode_tables import (
    DIGIT,
    GENERAL,
    LETTER,
    MARK_CLASS,
    PUNCTUATION,
    SYMBOL,
    UPPER_CASE_BIT,
    WHITE_SPACE_BIT,
    class_table,
    lookup,
)
from udfs.utf8 import decode

COUNTS = ("bytes", "characters", "words", "lines", "longest_word")
SHARES = ("letters", "digits", "white_space", "symbols", "upper_case")

MILLION = 1_000_000
"""Shares are whole millionths."""

LETTERS_AND_MARKS, DIGITS, WHITE_SPACE, SYMBOLS, UPPER_CASE, LETTERS, LINE_FEEDS = range(7)
"""What is counted. Each count takes 9 bits of one 64-bit sum, so a character costs one addition, whatever it is."""
COUNTED = 7
COUNT_BITS = 9
FLUSH_AFTER = 2**COUNT_BITS - 1
"""Characters after which a count could be full: then the sum is emptied."""


def text_statistics(texts: Texts) -> pa.StructArray:
    """Describe each text in numbers.

    Args:
        texts: n strings (or binaries that hold UTF-8), nulls allowed, sliced or chunked.

    Returns:
        n structs; null where the text is null. Counts are int64:

        - ``bytes``: of UTF-8.
        - ``characters``: code points.
        - ``words``: maximal runs of characters that aren't white space, as ``len(text.split())``.
        - ``lines``: ends of lines (U+000A), and one more if characters follow the last of them.
        - ``longest_word``: code points of the longest of these words.

        Shares are float64 between 0 and 1, rounded to six decimals (half to even, computed in integers, so the same
        everywhere):

        - ``letters``: characters of the general categories L* and M*, of all characters. Marks count, since a script
          whose vowels are marks isn't less made of letters.
        - ``digits``: characters of category Nd, of all characters.
        - ``white_space``: characters that ``str.isspace`` takes for it, of all characters.
        - ``symbols``: characters of the categories P* and S*, of all characters.
        - ``upper_case``: characters of category Lu, of those of the categories L*; 0 if there are none.

        All shares of an empty text are null.
    """
    buffers = text_buffers(texts)
    counts, shares = _statistics(*buffers, class_table(), _packed_by_class(), _packed_by_byte())
    characters = counts[COUNTS.index("characters")]
    unknown = characters == 0
    arrays = [pa.array(column, pa.int64()) for column in counts]
    arrays += [pa.array(column, pa.float64(), mask=unknown) for column in shares]
    return pa.StructArray.from_arrays(arrays, names=[*COUNTS, *SHARES], mask=pa.array(~buffers.valid))


def _packed_by_class() -> np.ndarray:
    """Return for each value of the class table what one such character adds to the sum (uint64[256])."""
    return np.array([_packed(bits) for bits in range(256)], np.uint64)


def _packed_by_byte() -> np.ndarray:
    """Return what each ASCII character adds to the sum (uint64[128])."""
    classes = class_table()
    packed = np.array([_packed(lookup(classes, byte)) for byte in range(128)], np.uint64)
    packed[ord("\n")] += np.uint64(1 << COUNT_BITS * LINE_FEEDS)
    return packed


def _packed(bits: int) -> int:
    general = bits & GENERAL
    counted = {
        LETTERS_AND_MARKS: general in (LETTER, MARK_CLASS),
        DIGITS: general == DIGIT,
        WHITE_SPACE: bool(bits & WHITE_SPACE_BIT),
        SYMBOLS: general in (PUNCTUATION, SYMBOL),
        UPPER_CASE: bool(bits & UPPER_CASE_BIT),
        LETTERS: general == LETTER,
    }
    return sum(1 << COUNT_BITS * place for place, counts in counted.items() if counts)


@compiled
def _statistics(
    values: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    classes: np.ndarray,
    by_class: np.ndarray,
    by_byte: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts (int64[5, n]) and the shares (float64[5, n]) of all documents."""
    count = valid.size
    counts = np.zeros((5, count), np.int64)
    shares = np.zeros((5, count), np.float64)
    sums = np.zeros(COUNTED, np.int64)
    for document in range(count):
        if not valid[document]:
            continue
        start = offsets[document]
        end = offsets[document + 1]
        sums[:] = 0
        characters, words, longest = _count(values, start, end, classes, by_class, by_byte, sums)
        unended = end > start and values[end - 1] != 10
        counts[0, document] = end - start
        counts[1, document] = characters
        counts[2, document] = words
        counts[3, document] = sums[LINE_FEEDS] + unended
        counts[4, document] = longest
        shares[0, document] = _share(sums[LETTERS_AND_MARKS], characters)
        shares[1, document] = _share(sums[DIGITS], characters)
        shares[2, document] = _share(sums[WHITE_SPACE], characters)
        shares[3, document] = _share(sums[SYMBOLS], characters)
        shares[4, document] = _share(sums[UPPER_CASE], sums[LETTERS])
    return counts, shares


@compiled
def _count(
    values: np.ndarray,
    start: int,
    end: int,
    classes: np.ndarray,
    by_class: np.ndarray,
    by_byte: np.ndarray,
    sums: np.ndarray,
) -> tuple[int, int, int]:
    """Add up one document in ``sums``, and return its characters, words and longest word."""
    white_space = np.uint64(1) << np.uint64(COUNT_BITS * WHITE_SPACE)
    position = start
    characters = 0
    words = 0
    longest = 0
    run = 0
    while position < end:
        total = np.uint64(0)
        taken = 0
        while position < end and taken < FLUSH_AFTER:
            byte = values[position]
            if byte < 0x80:
                added = by_byte[byte]
                position += 1
            else:
                code, length = decode(values, position, end)
                added = by_class[lookup(classes, code)]
                position += length
            total += added
            taken += 1
            # Without a branch: where a word ends is what a processor can't foresee.
            run = (run + 1) * (added & white_space == 0)
            words += run == 1
            longest = max(longest, run)
        characters += taken
        for place in range(COUNTED):
            sums[place] += np.int64((total >> np.uint64(COUNT_BITS * place)) & np.uint64(FLUSH_AFTER))
    return characters, words, longest


@compiled
def _share(part: int, whole: int) -> float:
    """Return part / whole in millionths, rounded half to even; 0 if the whole is nothing."""
    if whole == 0:
        return 0.0
    millionths = part * MILLION // whole
    twice_rest = 2 * (part * MILLION - millionths * whole)
    if twice_rest > whole or (twice_rest == whole and millionths % 2 == 1):
        millionths += 1
    return millionths / MILLION
