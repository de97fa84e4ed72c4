"""Shingles, MinHash and the survivors, in plain Python from their definitions."""

from __future__ import annotations

from collections.abc import Sequence

MASK = 2**64 - 1


def mixed(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ value >> 33


def shingle_hashes(words: Sequence[int], n: int) -> list[int]:
    """Hashes of the n-grams of hashed words; all words as one where there are fewer than n."""

    def polynomial(gram: Sequence[int], state: int) -> int:
        for word in gram:
            state = (state * 0x9E3779B97F4A7C15 + word) & MASK
        return mixed(state)

    if not words:
        return []
    if len(words) < n:
        return [polynomial(words, 0xD1B54A32D192ED03)]
    return [polynomial(words[i : i + n], 0) for i in range(len(words) - n + 1)]


def permutations(count: int, seed: int) -> list[tuple[int, int]]:
    """Odd multipliers and addends from SplitMix64."""
    state = (seed * 0x2545F4914F6CDD1D + 0x1234567) & MASK
    values = []
    for _ in range(2 * count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        values.append(z ^ z >> 31)
    return [(values[2 * k] | 1, values[2 * k + 1]) for k in range(count)]


def minima(shingles: Sequence[int], count: int, seed: int) -> list[int]:
    return [min((a * (x >> 32) + b & MASK) >> 32 for x in shingles) for a, b in permutations(count, seed)]


def band_keys(values: Sequence[int], bands: int, rows: int) -> list[int]:
    """Keys as signed 64-bit numbers."""
    keys = []
    for band in range(bands):
        key = (band + 1) * 0xFF51AFD7ED558CCD & MASK
        for value in values[band * rows : (band + 1) * rows]:
            key = mixed(key ^ value)
        keys.append(key - 2**64 if key >= 2**63 else key)
    return keys


def jaccard(left: set[object], right: set[object]) -> float:
    return len(left & right) / len(left | right)


def survivors(
    sets: Sequence[set[object]], buckets: Sequence[Sequence[object]], threshold: float, cap: int
) -> list[int | None]:
    """For documents in rank order: the kept document for which each is dropped, or None.

    ``buckets`` holds each document's band keys; in each bucket a document is compared with the ``cap`` best kept ones.
    """
    kept: dict[object, list[int]] = {}
    outcome: list[int | None] = []
    for document, mine in enumerate(buckets):
        candidates = sorted({member for key in mine for member in kept.get(key, [])[:cap]})
        twin = next((c for c in candidates if jaccard(sets[c], sets[document]) >= threshold), None)
        outcome.append(twin)
        if twin is None:
            for key in set(mine):
                kept.setdefault(key, []).append(document)
    return outcome
