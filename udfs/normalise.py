"""``norm_v1``: the normalisation of exact keys.

U+200B, U+FEFF and U+00AD removed; lower case; NFC; every run of Unicode white space one space, ends trimmed; in this
order, again until nothing changes. Joiners (U+200C, U+200D) stay: they carry meaning. Accents stay.

Documents of characters that map one to one and never combine go through a compiled kernel; others through Python's C
routines. Both are pinned to Unicode 14 (see ``udfs.characters``), and equal on every document.
"""

from __future__ import annotations

import hashlib
import unicodedata

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from udfs.arrow_text import fixed_binary_array, text_array, text_buffers
from udfs.characters import COMPLEX, REMOVED, SPACE, character_tables, unassigned
from udfs.compiled import compiled
from udfs.unicode_ranges import REMOVED_BY_NORM_V1
from udfs.utf8 import decode, encode

LONGEST_GROWTH = 3
"""No character's lower case takes more than this many times its bytes of UTF-8 (U+023A: 2 to 3 bytes; ASCII: 1 to 1)."""
_REMOVED = {code: None for first, last in REMOVED_BY_NORM_V1 for code in range(first, last + 1)}


def norm_v1(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Each text normalised, as a string array of the same length; NULL stays NULL.

    Deterministic: depends on the text alone. ``norm_v1(norm_v1(x)) == norm_v1(x)``. Linear in the bytes.
    """
    values, offsets, valid = _normalised(texts)
    return text_array(values, offsets, valid)


def norm_v1_keys(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """SHA-256 of each normalised text's UTF-8 bytes (32 bytes); NULL for NULL and for what normalises to nothing."""
    values, offsets, valid = _normalised(texts)
    present = valid & (np.diff(offsets) > 0)
    digests = bytearray(32 * len(present))
    view = memoryview(values)
    bounds = offsets.tolist()
    sha256 = hashlib.sha256
    for index in np.flatnonzero(present).tolist():
        digests[32 * index : 32 * index + 32] = sha256(view[bounds[index] : bounds[index + 1]]).digest()
    return fixed_binary_array(bytes(digests), 32, present)


def norm_v1_text(text: str) -> str:
    """``norm_v1`` of one text by Python's own routines, code points beyond Unicode 14 left alone."""
    while True:
        parts = unassigned().split(text.translate(_REMOVED))
        # Odd parts are the runs that were split at.
        parts[::2] = [unicodedata.normalize("NFC", part.lower()) for part in parts[::2]]
        result = " ".join("".join(parts).split())
        if result == text:
            return result
        text = result


def _normalised(texts: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """Bytes, offsets (from 0) and validity of the normalised texts."""
    values, offsets, valid = text_buffers(texts)
    tables = character_tables()
    size = int(offsets[-1] - offsets[0]) if len(offsets) else 0
    out = np.empty(size + LONGEST_GROWTH * 4, np.uint8)
    ends, done, position = np.zeros(len(valid), np.int64), 0, 0
    complex_at: list[int] = []
    starts = np.zeros(len(valid), np.int64)
    # The buffer is as long as the input: where lower case is longer than the text, it grows and the kernel goes on.
    while True:
        done, position, full = _normalise_simple(
            values, offsets, valid, tables.lower_kind, tables.lower_map, out, starts, ends, done, position
        )
        if not full:
            break
        longest = int(offsets[done + 1] - offsets[done])
        out = np.concatenate([out[:position], np.empty(len(out) - position + LONGEST_GROWTH * longest + 16, np.uint8)])
    complex_at = np.flatnonzero(ends < 0).tolist()
    if not complex_at:
        new_offsets = np.zeros(len(valid) + 1, np.int64)
        new_offsets[1:] = ends
        return out[:position], new_offsets, valid
    return _with_complex(values, offsets, valid, out, starts, ends, complex_at)


def _with_complex(
    values: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    valid: NDArray[np.bool_],
    out: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    complex_at: list[int],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """Put the documents that the kernel left out, normalised by Python, between those that it did."""
    view = memoryview(values)
    pieces: list[bytes | memoryview] = []
    lengths = np.where(ends >= 0, ends - starts, 0)
    whole = memoryview(out)
    before = 0
    for index in complex_at:
        text = bytes(view[offsets[index] : offsets[index + 1]]).decode("utf-8", errors="replace")
        encoded = norm_v1_text(text).encode("utf-8")
        pieces += [whole[before : starts[index]], encoded]
        before = int(starts[index])
        lengths[index] = len(encoded)
    last = int(ends[ends >= 0].max()) if (ends >= 0).any() else 0
    pieces.append(whole[before : max(before, last)])
    joined = np.frombuffer(b"".join(pieces), np.uint8)
    new_offsets = np.zeros(len(valid) + 1, np.int64)
    np.cumsum(lengths, out=new_offsets[1:])
    return joined, new_offsets, valid


@compiled
def _continues(byte):  # type: ignore[no-untyped-def]
    return byte & 0xC0 == 0x80


@compiled
def _normalise_simple(values, offsets, valid, kinds, maps, out, starts, ends, first, position):  # type: ignore[no-untyped-def]
    """Normalise documents from ``first`` on into ``out``; a document with a COMPLEX character gets end -1.

    Returns the number of documents done, the position in ``out``, and whether it stopped because ``out`` is full.
    """
    for document in range(first, len(valid)):
        starts[document] = position
        if not valid[document]:
            ends[document] = position
            continue
        begin, end = offsets[document], offsets[document + 1]
        if position + (end - begin) + 8 > len(out):
            return document, position, True
        place = begin
        at = position
        pending = False
        fine = True
        while place < end:
            byte = values[place]
            if byte < 0x80:
                place += 1
                if byte == 0x20 or (0x09 <= byte <= 0x0D) or (0x1C <= byte <= 0x1F):
                    pending = at > position
                    continue
                if pending:
                    out[at] = 0x20
                    at += 1
                    pending = False
                if 0x41 <= byte <= 0x5A:
                    byte += 32
                out[at] = byte
                at += 1
                continue
            if (
                0xE4 < byte < 0xE9
                and end - place > 2
                and _continues(values[place + 1])
                and _continues(values[place + 2])
            ):
                # U+5000 to U+8FFF, most of Han: nothing there has a case or combines, the bytes stay as they are.
                if pending:
                    out[at] = 0x20
                    at += 1
                    pending = False
                out[at] = byte
                out[at + 1] = values[place + 1]
                out[at + 2] = values[place + 2]
                at += 3
                place += 3
                continue
            code, length = decode(values, place, end)
            place += length
            kind = kinds[code]
            if kind == SPACE:
                pending = at > position
                continue
            if kind == REMOVED:
                continue
            if kind == COMPLEX:
                fine = False
                break
            if at + (end - place) + 8 > len(out):
                return document, position, True
            if pending:
                out[at] = 0x20
                at += 1
                pending = False
            at = encode(out, at, np.int64(maps[code]))
        if fine:
            position = at
            ends[document] = position
        else:
            ends[document] = -1
    return len(valid), position, False
