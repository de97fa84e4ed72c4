"""UTF-8 inside kernels: one code point from bytes, and back.

Malformed bytes never stop a kernel and never make it read past the end: they read as U+FFFD, one for each maximal
part of a sequence (Unicode 14.0, section 3.9, "U+FFFD Substitution of Maximal Subparts"), exactly as
``bytes.decode("utf-8", "replace")`` reads them.
"""

from __future__ import annotations

import numpy as np

from udfs.compiled import compiled

REPLACEMENT = 0xFFFD
LONGEST = 4
"""Bytes of the longest encoded code point."""


@compiled
def decode(values: np.ndarray, position: int, end: int) -> tuple[int, int]:
    """Read the code point that starts at ``position``.

    Args:
        values: uint8[n], the bytes.
        position: where to read, below ``end``.
        end: the first index that must not be read.

    Returns:
        The code point (a scalar value, never a surrogate) and the number of bytes that it takes, 1 to 4.
    """
    first = np.int64(values[position])
    if first < 0x80:
        return first, 1
    if first < 0xC2 or first > 0xF4:
        return REPLACEMENT, 1
    # The bounds of the second byte exclude overlong forms, surrogates and what lies above U+10FFFF (table 3-7).
    low = 0x80
    high = 0xBF
    if first < 0xE0:
        length = 2
        code = first & 0x1F
    elif first < 0xF0:
        length = 3
        code = first & 0x0F
        if first == 0xE0:
            low = 0xA0
        elif first == 0xED:
            high = 0x9F
    else:
        length = 4
        code = first & 0x07
        if first == 0xF0:
            low = 0x90
        elif first == 0xF4:
            high = 0x8F
    for step in range(1, length):
        if position + step >= end:
            return REPLACEMENT, step
        byte = np.int64(values[position + step])
        if byte < low or byte > high:
            return REPLACEMENT, step
        code = (code << 6) | (byte & 0x3F)
        low = 0x80
        high = 0xBF
    return code, length


@compiled
def encode(out: np.ndarray, position: int, code: int) -> int:
    """Write a code point (not a surrogate) at ``position`` of ``out`` (uint8), and return the position after it."""
    if code < 0x80:
        out[position] = code
        return position + 1
    if code < 0x800:
        out[position] = 0xC0 | (code >> 6)
        out[position + 1] = 0x80 | (code & 0x3F)
        return position + 2
    if code < 0x10000:
        out[position] = 0xE0 | (code >> 12)
        out[position + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[position + 2] = 0x80 | (code & 0x3F)
        return position + 3
    out[position] = 0xF0 | (code >> 18)
    out[position + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[position + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[position + 3] = 0x80 | (code & 0x3F)
    return position + 4


@compiled
def encoded_length(code: int) -> int:
    """Return the number of bytes of a code point, 1 to 4."""
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    if code < 0x10000:
        return 3
    return 4
