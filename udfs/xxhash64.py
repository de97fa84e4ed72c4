"""XXH64 with seed 0, in a kernel: the 64-bit hash of words.

Written from the published description of the algorithm ("xxHash fast digest algorithm", XXH64). With seed 0 it gives the
same value on every machine and in every tool. It isn't a cryptographic hash: where one collision would do harm, compare
the words themselves.
"""

from __future__ import annotations

import numpy as np

from udfs.compiled import compiled

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = np.uint64(0x165667B19E3779F9)
PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)
# Lane k starts at seed + one of these; lane 4 at seed - PRIME_1, modulo 2^64.
LANE_1 = np.uint64((0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)
LANE_4 = np.uint64(-0x9E3779B185EBCA87 % 2**64)


@compiled
def xxhash64(values: np.ndarray, start: int, end: int) -> np.uint64:
    """Return XXH64 of ``values[start:end]`` (uint8) with seed 0. All arithmetic is modulo 2^64."""
    length = end - start
    position = start
    if length >= 32:
        first, second, third, fourth = LANE_1, PRIME_2, np.uint64(0), LANE_4
        while position + 32 <= end:
            first = _round(first, _word64(values, position))
            second = _round(second, _word64(values, position + 8))
            third = _round(third, _word64(values, position + 16))
            fourth = _round(fourth, _word64(values, position + 24))
            position += 32
        state = _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)
        state = _merged(_merged(_merged(_merged(state, first), second), third), fourth)
    else:
        state = PRIME_5
    state += np.uint64(length)
    while position + 8 <= end:
        state ^= _round(np.uint64(0), _word64(values, position))
        state = _rotated(state, 27) * PRIME_1 + PRIME_4
        position += 8
    if position + 4 <= end:
        state ^= _word32(values, position) * PRIME_1
        state = _rotated(state, 23) * PRIME_2 + PRIME_3
        position += 4
    while position < end:
        state ^= np.uint64(values[position]) * PRIME_5
        state = _rotated(state, 11) * PRIME_1
        position += 1
    state ^= state >> np.uint64(33)
    state *= PRIME_2
    state ^= state >> np.uint64(29)
    state *= PRIME_3
    state ^= state >> np.uint64(32)
    return state


@compiled
def _rotated(state: np.uint64, bits: int) -> np.uint64:
    return (state << np.uint64(bits)) | (state >> np.uint64(64 - bits))


@compiled
def _round(state: np.uint64, lane: np.uint64) -> np.uint64:
    return _rotated(state + lane * PRIME_2, 31) * PRIME_1


@compiled
def _merged(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ _round(np.uint64(0), lane)) * PRIME_1 + PRIME_4


@compiled
def _word32(values: np.ndarray, position: int) -> np.uint64:
    """Read four bytes, the least significant first, on machines of either byte order."""
    return (
        np.uint64(values[position])
        | np.uint64(values[position + 1]) << np.uint64(8)
        | np.uint64(values[position + 2]) << np.uint64(16)
        | np.uint64(values[position + 3]) << np.uint64(24)
    )


@compiled
def _word64(values: np.ndarray, position: int) -> np.uint64:
    return _word32(values, position) | _word32(values, position + 4) << np.uint64(32)
