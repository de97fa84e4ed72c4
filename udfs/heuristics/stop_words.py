"""Which stop words occur in a text: a small hash table of them, and a word's place in it.

A word is compared without the characters at its ends that are no letters, marks or numbers, and in lower case: each
character by itself becomes what ``norm_v1`` makes of it, if that is one character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.compiled import compiled
from udfs.heuristics.characters import WORDY
from udfs.mapping import lower_ascii
from udfs.shingles import mixed
from udfs.unicode_tables import DELTA, FLAGS, ROW, SINGLE, lookup, lower_case_tables
from udfs.utf8 import decode

NOWHERE = np.int64(-1)
STARTS, ENDS = 1, 2
FREE = np.uint64(0)
FACTOR = np.uint64(0x100000001B3)
"""The prime of the hash FNV-1a, which takes whole code points here instead of bytes."""


class StopWords(NamedTuple):
    """The stop words as a hash table: a power of two of ``slots`` (uint64), FREE where nothing is.

    ``records`` and ``entries`` are those of ``lower_case_tables``. ``edges`` (uint8[256]) says of each byte whether a
    stop word STARTS or ENDS with this letter of ASCII, in either case. ``longest`` is the number of code points of the
    longest word, and ``different`` the number of different words.
    """

    slots: np.ndarray
    records: np.ndarray
    entries: np.ndarray
    edges: np.ndarray
    longest: int
    different: int


def stop_word_table(words: Sequence[str]) -> StopWords:
    """Return the table of some stop words, which are written as ``HeuristicsSettings`` takes them."""
    lower = lower_case_tables()
    keys = set()
    for word in words:
        encoded = np.frombuffer(word.encode(), np.uint8)
        keys.add(int(_key(encoded, 0, len(encoded), lower.records, lower.entries)))
    size = 1 << (2 * len(keys)).bit_length()
    slots = np.zeros(size, np.uint64)
    for key in sorted(keys):
        slot = key >> 32 & size - 1
        while slots[slot] != FREE:
            slot = slot + 1 & size - 1
        slots[slot] = key
    edges = np.zeros(256, np.uint8)
    for word in words:
        for letter, edge in ((word[0], STARTS), (word[-1], ENDS)):
            for byte in (letter + letter.upper()).encode():
                edges[byte] |= edge
    return StopWords(slots, lower.records, lower.entries, edges, max(map(len, words), default=0), len(keys))


@compiled
def bare_ascii(values: np.ndarray, start: int, end: int, marks: np.ndarray) -> tuple[int, int]:
    """Return the bounds of an ASCII word that has a letter or digit, without what is neither at both ends."""
    while marks[values[start]] & WORDY == 0:
        start += 1
    while marks[values[end - 1]] & WORDY == 0:
        end -= 1
    return start, end


@compiled
def may_be_stop_word(values: np.ndarray, start: int, end: int, edges: np.ndarray, longest: int) -> bool:
    """Say whether a bare ASCII word may be a stop word, by its length, first and last letter."""
    return end - start <= longest and edges[values[start]] & STARTS != 0 and edges[values[end - 1]] & ENDS != 0


@compiled
def stop_word(
    values: np.ndarray, start: int, end: int, slots: np.ndarray, records: np.ndarray, entries: np.ndarray
) -> np.int64:
    """Return the slot of a bare word, NOWHERE if it's no stop word."""
    key = _key(values, start, end, records, entries)
    last = slots.size - 1
    slot = np.int64(key >> np.uint64(32)) & last
    while slots[slot] != FREE:
        if slots[slot] == key:
            return slot
        slot = (slot + 1) & last
    return NOWHERE


@compiled
def bare(values: np.ndarray, start: int, end: int, classes: np.ndarray, marks: np.ndarray) -> tuple[int, int]:
    """Return the bounds of a word without what is no letter, mark or number at both ends."""
    while start < end:
        code, length = decode(values, start, end)
        if _marks_of(code, classes, marks) & WORDY:
            break
        start += length
    while start < end:
        last = end - 1
        while values[last] & 0xC0 == 0x80:
            last -= 1
        code, _ = decode(values, last, end)
        if _marks_of(code, classes, marks) & WORDY:
            break
        end = last
    return start, end


@compiled
def _marks_of(code: int, classes: np.ndarray, marks: np.ndarray) -> int:
    return marks[code] if code < 0x80 else marks[128 + lookup(classes, code)]


@compiled
def _key(values: np.ndarray, start: int, end: int, records: np.ndarray, entries: np.ndarray) -> np.uint64:
    """Return 64 bits of the lower-case word, not 0."""
    state = np.uint64(end > start)
    while start < end:
        code, length = decode(values, start, end)
        lower = np.int64(code)
        if code < 0x80:
            lower = np.int64(lower_ascii(np.uint8(code)))
        else:
            row = ROW * lookup(records, code)
            if entries[row + FLAGS] & SINGLE:
                lower += np.int64(entries[row + DELTA])
        state = (state ^ np.uint64(lower)) * FACTOR
        start += length
    return mixed(state) | np.uint64(1)
