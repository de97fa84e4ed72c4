"""Repeated words, lines and paragraphs of one document: what occurs again, and how many characters that covers.

n-grams are counted for n = 2, 3 and so on, each from the one before: an n-gram can only occur twice if the two shorter
n-grams that it consists of do, and these two identify it. So each step looks at what is left of the step before, which
in ordinary text soon is little, and only words are compared by a hash: two different words of a document are taken
for one with a probability below words² / 2^65, n-grams of different words never.

Time and memory grow with the number of words, however often one is repeated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.compiled import compiled
from udfs.heuristics.counted import LONGEST_N_GRAM, MOST_FREQUENT_UP_TO, TOP_2_GRAM
from udfs.shingles import mixed

NONE = -1
FREE = np.uint64(0)
SMALLEST_BITS = 4
LARGEST_FIRST_BITS = 13
"""A table has at most so many slots at first (the processor's nearest caches hold it); it grows with what it holds."""


class Scratch(NamedTuple):
    """Arrays with an entry for each word of a document, and one more.

    ``grams`` int32: the number of the n-gram that starts at a word, NONE if it occurs only once; ``places`` int32: the
    words where repeated n-grams start; ``counts`` int32, ``reached`` int32 and ``covered`` int64: of each n-gram, how
    often it occurs, up to which word it has been covered, and how many characters that are.
    """

    grams: np.ndarray
    places: np.ndarray
    counts: np.ndarray
    reached: np.ndarray
    covered: np.ndarray


@compiled
def new_scratch(words: int) -> Scratch:
    """Return arrays for documents of up to so many words (below 2^31: that is a text of 4 GiB)."""
    return Scratch(
        np.empty(words + 1, np.int32),
        np.empty(words + 1, np.int32),
        np.empty(words + 1, np.int32),
        np.empty(words + 1, np.int32),
        np.empty(words + 1, np.int64),
    )


@compiled
def new_table(bits: int) -> np.ndarray:
    """Return an empty hash table of 2^bits slots: uint64, a key (or FREE) and a number for each.

    Keys are hashes, or mixed by a bijection: their upper bits say where they belong.
    """
    return np.zeros(2 << bits, np.uint64)


@compiled
def duplicates(hashes: np.ndarray, characters: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Count the entries that are equal to an earlier one, and their characters; return the table too, maybe larger."""
    table, bits = _emptied(table, hashes.size)
    again = 0
    again_characters = 0
    held = 0
    for entry in range(hashes.size):
        key = max(hashes[entry], np.uint64(1))
        slot = _slot(table, bits, key)
        if table[slot] == key:
            again += 1
            again_characters += characters[entry]
            continue
        table[slot] = key
        table[slot + 1] = np.uint64(held)
        held += 1
        if _is_full(held, bits):
            table, bits = _grown(table, bits)
    return table, again, again_characters


@compiled
def count_n_grams(
    hashes: np.ndarray, ends: np.ndarray, table: np.ndarray, scratch: Scratch, counts: np.ndarray
) -> np.ndarray:
    """Count the characters in repeated n-grams.

    Args:
        hashes: uint64[w], of a document's words.
        ends: int64[w], the characters of all words up to and with each.
        table: any table, whose content is lost.
        scratch: room for w words.
        counts: int64[COUNTED], whose places from TOP_2_GRAM on are filled.

    Returns:
        The table, maybe a larger one.
    """
    table = _number_words(hashes, table, scratch)
    left = _keep_repeated(scratch, hashes.size)
    for n in range(2, LONGEST_N_GRAM + 1):
        table, left, most = _number_n_grams(table, scratch, left)
        left = _keep_repeated(scratch, left)
        if left == 0:
            break
        if n <= MOST_FREQUENT_UP_TO:
            counts[TOP_2_GRAM + n - 2] = _most_frequent(scratch, left, most, ends, n)
        else:
            counts[TOP_2_GRAM + n - 2] = _repeated(scratch, left, ends, n)
    return table


@compiled
def _number_words(hashes: np.ndarray, table: np.ndarray, scratch: Scratch) -> np.ndarray:
    """Number the different words of a document, and count each."""
    table, bits = _emptied(table, hashes.size)
    held = 0
    for word in range(hashes.size):
        key = max(hashes[word], np.uint64(1))
        slot = _slot(table, bits, key)
        if table[slot] == key:
            number = np.int64(table[slot + 1])
            scratch.counts[number] += 1
        else:
            number = np.int64(held)
            table[slot] = key
            table[slot + 1] = np.uint64(number)
            scratch.counts[number] = 1
            held += 1
            if _is_full(held, bits):
                table, bits = _grown(table, bits)
        scratch.grams[word] = number
        scratch.places[word] = word
    scratch.grams[hashes.size] = NONE
    return table


@compiled
def _number_n_grams(table: np.ndarray, scratch: Scratch, left: int) -> tuple[np.ndarray, int, int]:
    """Number the n-grams that consist of two repeated (n-1)-grams, and count each.

    Args:
        table: any table, whose content is lost.
        scratch: with the (n-1)-grams.
        left: how many places of repeated (n-1)-grams there are.

    Returns:
        The table, the number of places that are left, and how often the most frequent n-gram occurs.
    """
    grams, places, counts, _, _ = scratch
    table, bits = _emptied(table, left)
    kept = 0
    held = 0
    most = 0
    for at in range(left):
        place = places[at]
        following = grams[place + 1]
        if following == NONE:
            grams[place] = NONE
            continue
        key = mixed((np.uint64(grams[place]) << np.uint64(32) | np.uint64(following)) + np.uint64(1))
        slot = _slot(table, bits, key)
        if table[slot] == key:
            number = np.int64(table[slot + 1])
            counts[number] += 1
            most = max(most, counts[number])
        else:
            number = np.int64(held)
            table[slot] = key
            table[slot + 1] = np.uint64(number)
            counts[number] = 1
            held += 1
            if _is_full(held, bits):
                table, bits = _grown(table, bits)
        # The n-gram before has been looked at, so nothing needs the (n-1)-gram of this place any more.
        grams[place] = number
        places[kept] = place
        kept += 1
    return table, kept, most


@compiled
def _keep_repeated(scratch: Scratch, left: int) -> int:
    """Keep the places whose n-gram occurs twice or more; return their number."""
    grams, places, counts, _, _ = scratch
    kept = 0
    for at in range(left):
        place = places[at]
        if counts[grams[place]] < 2:
            grams[place] = NONE
        else:
            places[kept] = place
            kept += 1
    return kept


@compiled
def _most_frequent(scratch: Scratch, left: int, most: int, ends: np.ndarray, n: int) -> int:
    """Return the characters that the most frequent n-gram covers: of several, the one that covers most."""
    grams, places, counts, reached, covered = scratch
    for at in range(left):
        number = grams[places[at]]
        reached[number] = 0
        covered[number] = 0
    largest = 0
    for at in range(left):
        place = places[at]
        number = grams[place]
        if counts[number] == most:
            covered[number] += _between(ends, max(place, reached[number]), place + n)
            reached[number] = place + n
            largest = max(largest, covered[number])
    return largest


@compiled
def _repeated(scratch: Scratch, left: int, ends: np.ndarray, n: int) -> int:
    """Return the characters that all repeated n-grams cover."""
    covered = 0
    reached = 0
    for at in range(left):
        place = scratch.places[at]
        covered += _between(ends, max(place, reached), place + n)
        reached = place + n
    return covered


@compiled
def _between(ends: np.ndarray, first: int, last: int) -> int:
    """Return the characters of the words from ``first`` up to but without ``last``."""
    return ends[last - 1] - (ends[first - 1] if first else 0)


@compiled
def _slot(table: np.ndarray, bits: int, key: np.uint64) -> np.int64:
    """Return the place in the table with the key, or the free one where it belongs."""
    last = (2 << bits) - 2
    slot = np.int64(key >> np.uint64(64 - bits)) << 1
    while table[slot] != key and table[slot] != FREE:
        slot = (slot + 2) & last
    return slot


@compiled
def _is_full(held: int, bits: int) -> bool:
    return 2 * held > 1 << bits


@compiled
def _emptied(table: np.ndarray, entries: int) -> tuple[np.ndarray, int]:
    """Return an empty table for so many entries, and its bits: it may be too small if there are many."""
    bits = SMALLEST_BITS
    while bits < LARGEST_FIRST_BITS and 1 << bits < 2 * entries:
        bits += 1
    if table.size < 2 << bits:
        return new_table(bits), bits
    table[: 2 << bits] = FREE
    return table, bits


@compiled
def _grown(table: np.ndarray, bits: int) -> tuple[np.ndarray, int]:
    """Return the content of a table in one of four times its slots."""
    larger = new_table(bits + 2)
    for slot in range(0, 2 << bits, 2):
        if table[slot] != FREE:
            place = _slot(larger, bits + 2, table[slot])
            larger[place] = table[slot]
            larger[place + 1] = table[slot + 1]
    return larger, bits + 2
