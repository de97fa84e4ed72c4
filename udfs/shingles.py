"""Shingles: the n-grams of words that near-duplicate detection compares, as 64-bit hashes.

A document of w >= n words has w - n + 1 shingles; one of fewer words is one shingle, all its words; an empty one has
none. The hash of a shingle is a polynomial in the words' hashes, h(1)·P^(n-1) + ... + h(n) modulo 2^64 with an odd P,
so that a document is walked once whatever n is, then mixed (the finaliser of MurmurHash3, a bijection). In scripts
written without spaces a word is a character (``udfs.words``), so shingles are n-grams of characters there.

Deterministic: it depends on the words and n alone.
"""

from __future__ import annotations

import numpy as np

from udfs.compiled import compiled

POLYNOMIAL = np.uint64(0x9E3779B97F4A7C15)
SHORT = np.uint64(0xD1B54A32D192ED03)
"""Start of the polynomial of a document shorter than n: its shingle is none of any n-gram of a longer one."""
MIX_1, MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
CHAIN_1, CHAIN_2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


@compiled
def mixed(value: np.uint64) -> np.uint64:
    """Mix 64 bits: every bit of the value changes about half of the result's."""
    value ^= value >> np.uint64(33)
    value *= MIX_1
    value ^= value >> np.uint64(33)
    value *= MIX_2
    value ^= value >> np.uint64(33)
    return value


@compiled
def shingle_count(words: int, n: int) -> int:
    """How many shingles (with repeats) a document of so many words has."""
    if words == 0:
        return 0
    return words - n + 1 if words > n else 1


@compiled
def shingle_hashes(words: np.ndarray, n: int, out: np.ndarray) -> int:
    """Write the hashes of a document's shingles, in their order and with repeats.

    Args:
        words: uint64[w], the hashes of the words.
        n: words in a shingle, 1 or more.
        out: uint64[], with room for ``shingle_count(w, n)`` values.

    Returns:
        How many were written.
    """
    count = words.size
    if count == 0:
        return 0
    if count < n:
        state = SHORT
        for word in range(count):
            state = state * POLYNOMIAL + words[word]
        out[0] = mixed(state)
        return 1
    leading = np.uint64(1)
    state = np.uint64(0)
    for word in range(n):
        state = state * POLYNOMIAL + words[word]
        if word:
            leading *= POLYNOMIAL
    out[0] = mixed(state)
    for word in range(n, count):
        state = (state - words[word - n] * leading) * POLYNOMIAL + words[word]
        out[word - n + 1] = mixed(state)
    return count - n + 1


@compiled
def fingerprint(words: np.ndarray) -> tuple[np.uint64, np.uint64]:
    """128 bits of the whole word sequence: equal for equal words in equal order; else with probability 2^-128."""
    first = np.uint64(words.size)
    second = ~np.uint64(words.size)
    for word in words:
        first = (first ^ (word * CHAIN_1)) * CHAIN_2
        first ^= first >> np.uint64(29)
        second = (second + (word ^ (word >> np.uint64(31)))) * MIX_2
        second ^= second >> np.uint64(32)
    return mixed(first), mixed(second ^ CHAIN_1)


@compiled
def shingle_sets(hashes: np.ndarray, document_offsets: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The set of each document's shingles, sorted.

    Args:
        hashes: uint64[], the hashes of all documents' words.
        document_offsets: int64[d + 1], where each document's words start.
        n: words in a shingle.

    Returns:
        uint64[] of all sets (perhaps longer than used), and int64[d + 1]: where each document's set starts.
    """
    documents = document_offsets.size - 1
    room = 0
    for document in range(documents):
        room += shingle_count(document_offsets[document + 1] - document_offsets[document], n)
    sets = np.empty(room, np.uint64)
    offsets = np.zeros(documents + 1, np.int64)
    used = 0
    for document in range(documents):
        words = hashes[document_offsets[document] : document_offsets[document + 1]]
        count = shingle_hashes(words, n, sets[used:])
        mine = sets[used : used + count]
        mine.sort()
        kept = 0
        for at in range(count):
            if at == 0 or mine[at] != mine[kept - 1]:
                mine[kept] = mine[at]
                kept += 1
        used += kept
        offsets[document + 1] = used
    return sets, offsets


@compiled
def shared(left: np.ndarray, right: np.ndarray) -> int:
    """How many values two sorted sets have in common."""
    common = 0
    i = 0
    j = 0
    while i < left.size and j < right.size:
        a = left[i]
        b = right[j]
        common += a == b
        i += a <= b
        j += b <= a
    return common
