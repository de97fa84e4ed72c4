"""norm_v1: the named normalisation under exact keys, and the keys themselves.

``norm_v1`` of a text is, in this order:

1. U+200B (zero-width space), U+FEFF (byte order mark) and U+00AD (soft hyphen) are removed. U+200C and U+200D stay:
   they tell Persian words apart and join emoji.
2. Lower case: the full mapping of ``str.lower``, a capital sigma at the end of a word becoming the final one.
3. Normalization Form C.
4. Every run of white space becomes one space, and the ends are trimmed. White space is what ``str.split`` takes for
   it: the property White_Space, and U+001C to U+001F.

Removing comes first, because a soft hyphen between a letter and its accent keeps them from composing, and NFC after
lower case, because that may take a character apart (U+0130). Then the result is *idempotent*: lower case works code
point by code point (but for the capital sigma, which is gone after it), twice the same as once, and gives equivalent
results for canonically equivalent texts; so the lower case of a result is equivalent to it, and NFC brings it back. No
removed character and no capital sigma can come from steps 2 to 4. In Python with Unicode 14 it is
``" ".join(unicodedata.normalize("NFC", removed(text).lower()).split())``.

Unicode is pinned (``unicode_tables``), so that a key doesn't depend on a worker's Python. Malformed bytes in a binary
column read as U+FFFD.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pyarrow as pa

from udfs.arrow_text import Texts, fixed_binary_array, text_array, text_buffers
from udfs.compiled import compiled
from udfs.mapping import SCRATCH_CODES, append_document
from udfs.unicode_tables import (
    DELTA,
    FAST,
    REMOVED,
    ROW,
    SINGLE,
    CompositionTables,
    MappingTables,
    composition_tables,
    entry,
    lookup,
    lower_case_tables,
)
from udfs.utf8 import decode

KEY_BYTES = 32
SPACE = 0x20
BLOCK = 32
"""Bytes that are looked at together for white space that must change."""


def norm_v1(texts: Texts) -> pa.Array:
    """Normalise each text by ``norm_v1``.

    Args:
        texts: n strings (or binaries that hold UTF-8), nulls allowed, sliced or chunked.

    Returns:
        n strings: ``string``, or ``large_string`` if the input has 64-bit offsets or the result needs them. Null
        stays null.
    """
    buffers = text_buffers(texts)
    values, offsets = _normalised(*buffers, lower_case_tables(), composition_tables())
    return text_array(values[: offsets[-1]], offsets, buffers.valid, like=texts.type)


def norm_v1_keys(texts: Texts) -> pa.Array:
    """Return the key of exact duplicates: SHA-256 of the UTF-8 bytes of ``norm_v1``.

    Returns:
        n binaries of 32 bytes; null where the text is null, and where nothing is left of it.
    """
    buffers = text_buffers(texts)
    values, offsets = _normalised(*buffers, lower_case_tables(), composition_tables())
    view = memoryview(values)
    sha256 = hashlib.sha256
    bounds = offsets.tolist()
    keys = b"".join([sha256(view[first:last]).digest() for first, last in itertools.pairwise(bounds)])
    return fixed_binary_array(keys, KEY_BYTES, np.diff(offsets) > 0)


def is_blank(texts: Texts) -> pa.Array:
    """Say of each text whether nothing is left of it under ``norm_v1``.

    Returns:
        n booleans; null where the text is null.
    """
    buffers = text_buffers(texts)
    blank = _blank(*buffers, lower_case_tables())
    return pa.array(blank, pa.bool_(), mask=~buffers.valid)


@compiled
def _normalised(
    values: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    mapping: MappingTables,
    composition: CompositionTables,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes (a buffer that may be longer than needed) and the offsets of the normalised documents."""
    count = valid.size
    size = offsets[count] - offsets[0]
    # Lower case and NFC rarely lengthen a text, and if so, by little: the buffer grows when it must.
    out = np.empty(size + size // 32 + 64, np.uint8)
    out_offsets = np.zeros(count + 1, np.int64)
    scratch = np.empty(SCRATCH_CODES, np.int32)
    written = 0
    for document in range(count):
        if valid[document]:
            first = written
            out, written = append_document(
                values, offsets[document], offsets[document + 1], out, first, mapping, composition, scratch
            )
            written = _collapse_spaces(out, first, written)
        out_offsets[document + 1] = written
    return out, out_offsets


@compiled
def _collapse_spaces(out: np.ndarray, start: int, end: int) -> int:
    """Turn runs of white space in ``out[start:end]`` into one space, trim, and return the new end.

    White space outside ASCII has been mapped to U+0020 before.
    """
    text = out[start:end]
    kept = 0
    before = np.uint8(SPACE)
    done = 0
    while done < text.size:
        if done + BLOCK <= text.size:
            # Nearly all blocks hold single spaces and no other white space, and are moved as they are.
            block = text[done : done + BLOCK]
            other = np.uint8((block[0] < SPACE) | ((block[0] == SPACE) & (before == SPACE)))
            for index in range(1, BLOCK):
                other |= np.uint8((block[index] < SPACE) | ((block[index] == SPACE) & (block[index - 1] == SPACE)))
            if not other:
                moved = text[kept : kept + BLOCK]
                for index in range(BLOCK):
                    moved[index] = block[index]
                before = block[BLOCK - 1]
                done += BLOCK
                kept += BLOCK
                continue
        stop = min(text.size, done + BLOCK)
        while done < stop:
            byte = text[done]
            if (np.uint8(byte - np.uint8(9)) < 5) | (np.uint8(byte - np.uint8(28)) < 4):
                byte = np.uint8(SPACE)
            # Written always, kept sometimes: there is no branch, because where a word ends can't be foreseen.
            text[kept] = byte
            kept += (byte != SPACE) | (before != SPACE)
            before = byte
            done += 1
    if kept and before == SPACE:
        kept -= 1
    return start + kept


@compiled
def _blank(values: np.ndarray, offsets: np.ndarray, valid: np.ndarray, mapping: MappingTables) -> np.ndarray:
    """Return for each document whether all its characters are white space or removed (False for null ones)."""
    blank = np.zeros(valid.size, np.bool_)
    for document in range(valid.size):
        if not valid[document]:
            continue
        position = offsets[document]
        end = offsets[document + 1]
        seen = False
        while position < end and not seen:
            code, length = decode(values, position, end)
            row = ROW * lookup(mapping.records, code)
            flags = entry(mapping, row)
            space = flags & FAST and flags & SINGLE and code + entry(mapping, row + DELTA) == SPACE
            seen = not (flags & REMOVED or space)
            position += length
        blank[document] = not seen
    return blank
