"""words_v1 and its hashes: the kernel equals the plain-Python reference everywhere, and its words are stable."""

from __future__ import annotations

import time
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.words import words_v1 as reference
from tests.unit.code_points import (
    PLANES,
    ascii_texts,
    broken_bytes,
    mixed_texts,
    plane_texts,
    unassigned_characters,
)
from udfs.words import word_hashes_v1, words_of, words_v1
from udfs.xxhash64 import xxhash64


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Let no test's clock run while kernels are compiled."""
    words_v1(pa.array(["É\u0301"]))
    word_hashes_v1(pa.array(["É\u0301"]))


def kernel(texts: list[str]) -> list[list[str]]:
    return words_v1(pa.array(texts, pa.string())).to_arrow().to_pylist()


def hash_of(data: bytes) -> int:
    return int(xxhash64(np.frombuffer(data + b"beyond", np.uint8).copy(), 0, len(data)))


@pytest.mark.parametrize("plane", PLANES)
def test_every_code_point_in_every_context_equals_the_reference_and_is_stable(plane: int) -> None:
    texts = plane_texts(plane)
    expected = [reference(text) for text in texts]
    got = kernel(texts)
    wrong = [(ascii(t), ascii(g), ascii(e)) for t, g, e in zip(texts, got, expected, strict=True) if g != e]
    assert not wrong, wrong[:5]
    assert kernel([" ".join(words) for words in got]) == got, "the words of joined words must be the words"


def test_code_points_assigned_after_unicode_14_separate_words_under_any_python() -> None:
    characters = unassigned_characters()
    got = kernel([f"a{character}b" for character in characters])
    ignorable = [c for c, words in zip(characters, got, strict=True) if words == ["ab"]]
    assert all(words == ["a", "b"] for words in got if words != ["ab"])
    assert all(0xE0000 <= ord(character) <= 0xE0FFF for character in ignorable)


@given(st.lists(st.one_of(mixed_texts, ascii_texts), max_size=6))
@settings(max_examples=300, deadline=None)
def test_random_texts_equal_the_reference_and_are_stable(texts: list[str]) -> None:
    got = kernel(texts)
    assert got == [reference(text) for text in texts]
    assert kernel([" ".join(words) for words in got]) == got


@given(mixed_texts)
@settings(max_examples=300, deadline=None)
def test_equivalent_texts_have_the_same_words(text: str) -> None:
    first, *others = kernel([unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")])
    assert all(words == first for words in others)


@given(st.lists(broken_bytes, max_size=4))
@settings(max_examples=300, deadline=None)
def test_bytes_that_are_not_utf8_read_as_replacement_characters(values: list[bytes]) -> None:
    got = words_v1(pa.array(values, pa.binary())).to_arrow().to_pylist()
    assert got == [reference(value.decode("utf-8", "replace")) for value in values]


def test_the_published_examples() -> None:
    assert words_of("Café_42 naïve—don't ½") == ["café", "42", "naïve", "don", "t", "1", "2"]
    assert words_of("数据选择 data-mix Straße") == ["数", "据", "选", "择", "data", "mix", "strasse"]


def test_one_added_comma_or_another_case_or_width_changes_no_word() -> None:
    text = "The quick brown fox jumps over the lazy dog"
    assert words_of(text.replace("fox ", "fox, ")) == words_of(text)
    assert words_of(text.upper()) == words_of(text)
    assert words_of("".join(chr(ord(c) + 0xFEE0) if c != " " else c for c in text)) == words_of(text)
    assert words_of("soft\u00adhyphen and joi\u200dner") == ["softhyphen", "and", "joiner"]


def test_scripts_without_spaces_give_a_word_for_each_letter_and_its_marks() -> None:
    assert words_of("ที่นี่") == ["ที่", "นี่"]
    assert words_of("မြန်မာ") == ["မြ", "န်", "မာ"]
    assert words_of("ｶﾞラーメン") == ["ガ", "ラ", "ー", "メ", "ン"]
    assert words_of("A漢字B12") == ["a", "漢", "字", "b12"]
    assert words_of("ก๑๒") == ["ก", "๑๒"], "digits of such a script are a run"
    assert words_of("한국어는 쉽다") == ["한국어는", "쉽다"], "Korean has spaces"


def test_marks_are_kept_and_stay_with_their_letters() -> None:
    assert words_of("हिन्दी में") == ["हिन्दी", "में"]
    assert words_of("naïve") != words_of("naive")


def test_o_ing_03_line_separators_do_not_glue_words() -> None:
    text = "one\u2028two\u0085three\u2029four\u000bfive\u000csix"
    assert words_of(text) == ["one", "two", "three", "four", "five", "six"]


def test_a_token_of_300_000_characters_and_a_flood_of_marks_take_well_under_a_second() -> None:
    texts = pa.array(["x+/9" * 75_000, "A" + "\u0301\u0323" * 100_000])
    start = time.process_time()
    stream = words_v1(texts)
    word_hashes_v1(texts)
    assert time.process_time() - start < 1.0
    assert np.diff(stream.document_offsets).tolist() == [75_001, 1]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a ", 50_000),
        ("数", 30_000),
        ("㌀", 9_000),
        ("ﷺ", 2_000),
        ("é1 数 b", 9_999),
        ("a\u0344 ", 3_000),
        ("x", 100_000),
    ],
)
def test_buffers_grow_for_many_words_and_for_long_ones(text: str, count: int) -> None:
    (got,) = kernel([text * count])
    assert got == reference(text * count)
    hashes, offsets = word_hashes_v1(pa.array([text * count]))
    hash_of_word = {word: hash_of(word.encode()) for word in set(got)}
    assert hashes.tolist() == [hash_of_word[word] for word in got]
    assert offsets.tolist() == [0, len(got)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
        (b"The quick brown fox jumps over the lazy dog", 0x0B242D361FDA71BC),
    ],
)
def test_word_hashes_are_xxh64_of_the_published_vectors(data: bytes, expected: int) -> None:
    assert hash_of(data) == expected


@given(st.lists(st.one_of(mixed_texts, st.none()), max_size=6))
@settings(max_examples=100, deadline=None)
def test_hashes_are_those_of_the_words_in_their_order(texts: list[str | None]) -> None:
    array = pa.array(texts, pa.string())
    hashes, offsets = word_hashes_v1(array)
    stream = words_v1(array)
    assert offsets.tolist() == stream.document_offsets.tolist()
    words = [word for document in range(len(texts)) for word in stream.of(document)]
    assert hashes.tolist() == [hash_of(word.encode()) for word in words]
    assert hashes.dtype == np.uint64


def test_nulls_slices_chunks_and_empty_columns() -> None:
    texts = ["a b", None, "É\u0301x c", "", "数x"]
    expected = [[] if text is None else reference(text) for text in texts]
    for data_type in (pa.string(), pa.large_string()):
        whole = pa.array(texts, data_type)
        assert words_v1(whole.slice(1, 3)).to_arrow().to_pylist() == expected[1:4]
        chunked = pa.chunked_array([whole.slice(0, 2), whole.slice(2)])
        assert words_v1(chunked).to_arrow().to_pylist() == expected
    empty = words_v1(pa.array([], pa.string()))
    assert (empty.values.size, empty.word_offsets.tolist(), empty.document_offsets.tolist()) == (0, [0], [0])
    assert word_hashes_v1(pa.nulls(2))[1].tolist() == [0, 0, 0]
