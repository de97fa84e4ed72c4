"""Arrow buffers as NumPy arrays: nothing is copied or misread, whatever the column looks like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from udfs import arrow_text
from udfs.arrow_text import Texts, fixed_binary_array, text_array, text_buffers

TEXTS = ["one", None, "", "drei", "四"]
TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def documents(texts: Texts) -> list[bytes | None]:
    values, offsets, valid = text_buffers(texts)
    assert (values.dtype, offsets.dtype, valid.dtype) == (np.uint8, np.int64, np.bool_)
    assert len(offsets) == len(valid) + 1 == len(texts) + 1
    return [values[a:b].tobytes() if v else None for a, b, v in zip(offsets, offsets[1:], valid, strict=False)]


def encoded(texts: list[str | None]) -> list[bytes | None]:
    return [None if text is None else text.encode() for text in texts]


@pytest.mark.parametrize("data_type", TYPES)
def test_all_types_slices_and_chunks_give_their_documents(data_type: pa.DataType) -> None:
    whole = pa.array(encoded(TEXTS), pa.binary()).cast(data_type)
    assert documents(whole) == encoded(TEXTS)
    for start, length in ((0, 2), (1, 3), (3, 2), (4, 0), (5, 0)):
        assert documents(whole.slice(start, length)) == encoded(TEXTS[start : start + length])
    chunked = pa.chunked_array([whole.slice(3, 2), whole.slice(0, 0), whole.slice(0, 2)])
    assert documents(chunked) == encoded(TEXTS[3:] + TEXTS[:2])
    assert documents(pa.chunked_array([], data_type)) == []
    assert documents(pa.array([], data_type)) == []


def test_bytes_are_not_copied_and_cannot_be_written() -> None:
    texts = pa.array(["abc", "def"], pa.large_string())
    for column in (texts, texts.slice(1), pa.chunked_array([texts])):
        buffers = text_buffers(column)
        assert buffers.values.ctypes.data == texts.buffers()[2].address
        assert not buffers.values.flags.writeable
    assert text_buffers(texts).offsets.ctypes.data == texts.buffers()[1].address


def test_what_lies_under_a_null_is_not_a_document() -> None:
    bitmap = pa.py_buffer(bytes([0b101]))
    hidden = pa.StringArray.from_buffers(
        3, pa.py_buffer(np.array([0, 1, 3, 4], np.int32)), pa.py_buffer(b"aXXb"), bitmap
    )
    assert documents(hidden) == [b"a", None, b"b"]


def test_a_column_of_nulls_is_a_column_of_null_documents() -> None:
    assert documents(pa.nulls(3)) == [None, None, None]
    assert documents(pa.nulls(0)) == []


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.array([["a"]]), pa.chunked_array([[1.0]])])
def test_other_types_are_refused(column: Texts) -> None:
    with pytest.raises(TypeError, match="strings or binaries"):
        text_buffers(column)


def test_text_arrays_come_back_whole() -> None:
    values, offsets = np.frombuffer("ab四".encode(), np.uint8), np.array([0, 2, 2, 5])
    array = text_array(values, offsets, np.array([True, False, True]))
    array.validate(full=True)
    assert array.to_pylist() == ["ab", None, "四"]
    assert array.null_count == 1
    assert text_array(values, offsets).to_pylist() == ["ab", "", "四"]
    assert array.buffers()[2].address == values.ctypes.data
    assert text_array(values[:0], np.array([0])).to_pylist() == []


def test_offsets_are_64_bit_where_they_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_text, "LARGEST_32_BIT", 5)
    values = np.frombuffer(b"abcdef", np.uint8)
    assert text_array(values, np.array([0, 5])).type == pa.string()
    assert text_array(values, np.array([0, 6])).type == pa.large_string()
    assert text_array(values, np.array([0, 1]), like=pa.large_binary()).type == pa.large_string()
    long = pa.chunked_array([["abc"], ["def"]])
    assert documents(long) == [b"abc", b"def"], "chunks that don't fit together into a string column"


def test_fixed_binaries_come_back_whole() -> None:
    array = fixed_binary_array(b"aabbcc", 2, np.array([True, False, True]))
    array.validate(full=True)
    assert array.to_pylist() == [b"aa", None, b"cc"]
    assert fixed_binary_array(b"", 2, np.zeros(0, np.bool_)).to_pylist() == []
