"""norm_v1 and its keys: the kernel equals the plain-Python reference everywhere, and is a fixed point of itself."""

from __future__ import annotations

import hashlib
import time
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.normalise import norm_v1 as reference
from tests.reference.normalise import norm_v1_key as reference_key
from tests.unit.code_points import (
    PLANES,
    ascii_texts,
    broken_bytes,
    mixed_texts,
    plane_texts,
    unassigned_characters,
)
from udfs.normalise import is_blank, norm_v1, norm_v1_keys


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Let no test's clock run while kernels are compiled."""
    norm_v1_keys(pa.array(["É\u0301"]))


def kernel(texts: list[str]) -> list[str]:
    return norm_v1(pa.array(texts, pa.string())).to_pylist()


@pytest.mark.parametrize("plane", PLANES)
def test_every_code_point_in_every_context_equals_the_reference_and_stays(plane: int) -> None:
    texts = plane_texts(plane)
    expected = [reference(text) for text in texts]
    got = kernel(texts)
    wrong = [(ascii(t), ascii(g), ascii(e)) for t, g, e in zip(texts, got, expected, strict=True) if g != e]
    assert not wrong, wrong[:5]
    again = kernel(got)
    assert again == got, "norm_v1 of a result must be the result"


def test_code_points_assigned_after_unicode_14_stay_as_they_are_under_any_python() -> None:
    characters = unassigned_characters()
    assert len(characters) > 20_000
    assert kernel(["A" + character for character in characters]) == ["a" + character for character in characters]


@given(st.lists(st.one_of(mixed_texts, ascii_texts), max_size=6))
@settings(max_examples=300, deadline=None)
def test_random_texts_equal_the_reference_and_stay(texts: list[str]) -> None:
    got = kernel(texts)
    assert got == [reference(text) for text in texts]
    assert kernel(got) == got
    assert norm_v1_keys(pa.array(texts, pa.string())).to_pylist() == [reference_key(text) for text in texts]
    assert is_blank(pa.array(texts, pa.string())).to_pylist() == [text == "" for text in got]


@given(mixed_texts)
@settings(max_examples=300, deadline=None)
def test_canonically_equivalent_texts_have_one_key(text: str) -> None:
    forms = [text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)]
    assert len(set(kernel(forms))) == 1


@given(st.lists(broken_bytes, max_size=4))
@settings(max_examples=300, deadline=None)
def test_bytes_that_are_not_utf8_read_as_replacement_characters(values: list[bytes]) -> None:
    got = norm_v1(pa.array(values, pa.binary())).to_pylist()
    assert got == [reference(value.decode("utf-8", "replace")) for value in values]


def test_o_nrm_01_composed_and_decomposed_accents_are_one_text_and_missing_ones_another() -> None:
    composed, decomposed, missing = kernel(
        ["Le café est très animé.", unicodedata.normalize("NFD", "Le café est très animé."), "Le cafe est tres anime."]
    )
    assert composed == decomposed == "le café est très animé."
    assert unicodedata.is_normalized("NFC", composed)
    assert missing == "le cafe est tres anime."


def test_o_nrm_02_superscripts_and_fractions_keep_their_meaning() -> None:
    texts = ["r² and 2⁵ is 32", "r2 and 25 is 32", "add ½ cup", "add 1⁄2 cup"]
    assert kernel(texts) == texts


def test_o_nrm_03_joiners_stay_and_zero_width_spaces_go() -> None:
    persian, emoji = "من می\u200cروم.", "our family 👨\u200d👩\u200d👧 trip"
    assert kernel([persian, emoji]) == [persian, emoji]
    assert kernel(["pass\u200bword re\u00adset \ufeffguide"]) == ["password reset guide"]


def test_o_nrm_04_every_kind_of_white_space_is_one_space_and_blank_texts_have_no_key() -> None:
    spellings = [
        "River level report for May",
        "\u00a0River\u2003level report\u3000for May\u202f",
        "River\tlevel\u2009report for\u00a0May\n",
        "  River level  report for May",
    ]
    keys = norm_v1_keys(pa.array(spellings)).to_pylist()
    assert keys == [hashlib.sha256(b"river level report for may").digest()] * 4
    blank = pa.array(["\u00a0\u3000\u2003", "\u200b\ufeff", "\u2028\u0085", "\x1c \u200b\t", ""])
    assert norm_v1_keys(blank).null_count == 5
    assert is_blank(blank).to_pylist() == [True] * 5


def test_o_nrm_05_a_token_of_300_000_characters_takes_well_under_a_second() -> None:
    texts = pa.array(["Inline image: " + "nvy8v7Bd8p5HePik/+ANR6" * 13_637, "É\u0301ab3" * 75_000])
    start = time.process_time()
    norm_v1_keys(texts)
    assert time.process_time() - start < 0.5


def test_a_flood_of_marks_on_one_letter_takes_linear_time() -> None:
    count = 200_000
    start = time.process_time()
    (got,) = kernel(["A" + "\u0301\u0323" * count])
    assert got == "ạ" + "\u0323" * (count - 1) + "\u0301" * count
    assert time.process_time() - start < 1.0


def test_a_flood_of_sigmas_and_case_ignorables_takes_linear_time() -> None:
    text = "AΣ" + "'" * 100_000 + "Σ'" * 100_000
    start = time.process_time()
    assert kernel([text]) == [reference(text)]
    assert time.process_time() - start < 1.0


def test_the_output_buffer_grows_where_the_result_is_longer_than_the_text() -> None:
    growing = ["\u023a" * 1000, "\U0001d160" * 3000, "\u0958" * 500, "İ" * 777, "a" * 200, "\u0344" * 1000]
    growing += ["a\u0344" * 1000, "xa\u0344" * 1000, "é" + "\u0344" * 200, "漢\u0301\u0323" * 100]
    assert kernel(growing) == [reference(text) for text in growing]
    for text in growing:
        assert kernel([text]) == [reference(text)]


def test_a_final_sigma_is_decided_by_the_text_around_it() -> None:
    assert kernel(["ΟΔΟΣ ΣΑΣ", "ΟΔΟΣ'", "ΑΣ\u0301Α", "Σ", "1Σ", "Α\u00adΣ"]) == [
        "οδος σας", "οδος'", "ασ\u0301α", "σ", "1σ", "ας"
    ]  # fmt: skip


def test_nulls_slices_chunks_and_both_offset_widths() -> None:
    texts = ["A  b", None, "ÄÖ", "", " Σ ", "i\u0307 İ", None, "plain"]
    expected = [None if text is None else reference(text) for text in texts]
    keys = [None if text is None else reference_key(text) for text in texts]
    for data_type in (pa.string(), pa.large_string()):
        whole = pa.array(texts, data_type)
        for start, length in ((0, 8), (1, 5), (3, 1), (8, 0)):
            part = whole.slice(start, length)
            assert norm_v1(part).type == data_type
            assert norm_v1(part).to_pylist() == expected[start : start + length]
            assert norm_v1_keys(part).to_pylist() == keys[start : start + length]
        chunked = pa.chunked_array([whole.slice(0, 3), whole.slice(3, 0), whole.slice(3)])
        assert norm_v1(chunked).to_pylist() == expected
    assert is_blank(pa.array(["", None, "x"])).to_pylist() == [True, None, False]
    assert norm_v1(pa.nulls(2)).to_pylist() == [None, None]
    assert norm_v1(pa.chunked_array([], pa.string())).to_pylist() == []
    assert norm_v1_keys(pa.array([], pa.string())).type == pa.binary(32)


def test_results_are_whole_arrow_arrays() -> None:
    texts = pa.array(["Ab", None, "\u0041\u030a", " "])
    for result in (norm_v1(texts), norm_v1_keys(texts), is_blank(texts)):
        result.validate(full=True)  # raises where offsets or bitmaps are wrong
        assert len(result) == len(texts)
