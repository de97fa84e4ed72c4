"""Arrow text columns as NumPy buffers, and back: what every kernel takes and gives.

A text column is three arrays: ``values`` (uint8, the UTF-8 bytes of all documents), ``offsets`` (int64, one more than
there are documents; document d is ``values[offsets[d]:offsets[d + 1]]``) and ``valid`` (bool, one per document).
Nothing is copied but what Arrow stores otherwise: 32-bit offsets, packed validity bits, chunks.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

Texts: TypeAlias = pa.Array | pa.ChunkedArray
"""A column of strings or binaries, with 32-bit or 64-bit offsets, sliced or chunked; also a column of nulls."""

LARGEST_32_BIT = 2**31 - 1
"""Bytes that an Arrow ``string`` array can hold: its offsets are int32."""


class TextBuffers(NamedTuple):
    """The bytes of n documents.

    ``values`` uint8, read-only; ``offsets`` int64[n + 1], rising, not necessarily from 0 (a slice); ``valid`` bool[n].
    The bytes between a null document's offsets mean nothing.
    """

    values: np.ndarray
    offsets: np.ndarray
    valid: np.ndarray


def text_buffers(texts: Texts) -> TextBuffers:
    """Return the buffers of a text column, without copying its bytes unless it has several chunks.

    Raises:
        TypeError: the column holds neither strings nor binaries.
    """
    array = _one_array(texts)
    count = len(array)
    if pa.types.is_null(array.type):
        return TextBuffers(_bytes_of(None), np.zeros(count + 1, np.int64), np.zeros(count, np.bool_))
    _, offset_buffer, value_buffer = array.buffers()
    values = _bytes_of(value_buffer)
    if count == 0:  # then Arrow allows a missing offset buffer
        return TextBuffers(values, np.zeros(1, np.int64), np.zeros(0, np.bool_))
    offset_type = np.int64 if is_large(array.type) else np.int32
    offsets = np.frombuffer(offset_buffer, offset_type, count + 1, array.offset * np.dtype(offset_type).itemsize)
    # The kernels are compiled for one kind of array, so copies of offsets are marked read-only like views of them.
    offsets = offsets.astype(np.int64, copy=False)
    offsets.flags.writeable = False
    return TextBuffers(values, offsets, _valid(array))


def text_array(
    values: np.ndarray, offsets: np.ndarray, valid: np.ndarray | None = None, *, like: pa.DataType | None = None
) -> pa.Array:
    """Return a string array over ``values`` (uint8, not copied) and ``offsets`` (n + 1 integers from 0).

    The type is ``string``, or ``large_string`` if ``like`` is a type with 64-bit offsets or the bytes don't fit into
    32-bit ones. ``valid`` bool[n] says which documents aren't null (all, if missing). The bytes must be valid UTF-8.
    """
    large = (like is not None and is_large(like)) or int(offsets[-1]) > LARGEST_32_BIT
    width = np.int64 if large else np.int32
    array_type = pa.LargeStringArray if large else pa.StringArray
    bitmap, nulls = _bitmap(valid)
    return array_type.from_buffers(
        len(offsets) - 1,
        pa.py_buffer(np.ascontiguousarray(offsets, width)),
        pa.py_buffer(values),
        bitmap,
        nulls,
    )


def fixed_binary_array(values: bytes | np.ndarray, width: int, valid: np.ndarray) -> pa.Array:
    """Return an array of binaries of ``width`` bytes: ``values`` holds n × width bytes, ``valid`` (bool[n]) the nulls."""
    bitmap, nulls = _bitmap(valid)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(valid), [bitmap, pa.py_buffer(values)], nulls)


def is_large(data_type: pa.DataType) -> bool:
    """Say whether a string or binary type has 64-bit offsets."""
    return bool(pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type))


def _one_array(texts: Texts) -> pa.Array:
    data_type = texts.type
    known = (pa.types.is_string, pa.types.is_binary, pa.types.is_null)
    if not is_large(data_type) and not any(check(data_type) for check in known):
        raise TypeError(f"a column of strings or binaries is needed, not {data_type}")
    if not isinstance(texts, pa.ChunkedArray):
        return texts
    if texts.num_chunks == 1:
        return texts.chunk(0)
    if not is_large(data_type) and not pa.types.is_null(data_type) and texts.nbytes > LARGEST_32_BIT:
        texts = texts.cast(pa.large_string() if pa.types.is_string(data_type) else pa.large_binary())
    if texts.num_chunks == 0:
        return pa.array([], texts.type)
    return pa.concat_arrays(texts.chunks)


def _bytes_of(buffer: pa.Buffer | None) -> np.ndarray:
    values = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)
    values.flags.writeable = False
    return values


def _valid(array: pa.Array) -> np.ndarray:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    # A new array each time: what NumPy makes of Arrow booleans may or may not be writeable.
    return np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _bitmap(valid: np.ndarray | None) -> tuple[pa.Buffer | None, int]:
    if valid is None or bool(valid.all()):
        return None, 0
    packed = np.packbits(valid, bitorder="little")
    return pa.py_buffer(packed), int(len(valid) - np.count_nonzero(valid))
