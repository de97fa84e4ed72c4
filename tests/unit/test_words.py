"""words_v1: the kernel equals the plain-Python reference on every plane, and one comma changes no word."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.words import words_v1 as reference
from tests.unit.characters import MIXED_TEXT, PLANES, in_contexts
from udfs.words import words_of, words_v1


def kernel(texts: list[str | None]) -> list[list[str]]:
    found: list[list[str]] = words_v1(pa.array(texts, pa.string())).to_arrow().to_pylist()
    return found


@pytest.mark.parametrize("plane", PLANES)
def test_equals_the_reference_on_every_code_point_alone_and_between_others(plane: range) -> None:
    texts = in_contexts(plane)
    pairs = zip(texts, kernel(texts), strict=True)
    wrong = [(ascii(text), ascii(got), ascii(reference(text))) for text, got in pairs if got != reference(text)]
    assert not wrong, wrong[:5]


@given(st.lists(MIXED_TEXT, max_size=8))
@settings(max_examples=300, deadline=None)
def test_equals_the_reference_on_mixed_texts_and_words_of_words_are_the_words(texts: list[str]) -> None:
    got = kernel(texts)
    assert got == [reference(t) for t in texts]
    assert kernel([" ".join(words) for words in got]) == got


def test_worked_examples() -> None:
    assert words_of("Café_42 naïve—don't ½") == ["café", "42", "naïve", "don", "t", "1", "2"]
    assert words_of("数据选择 data-mix Straße") == ["数", "据", "选", "择", "data", "mix", "strasse"]
    assert words_of("ＦＵＬＬ width, soft\u00adhyphen") == ["full", "width", "softhyphen"]


def test_separators_inside_a_json_string_do_not_glue_words() -> None:
    """O-ING-03."""
    assert words_of("one\u2028two\u0085three\u2029four\u000bfive\u000csix") == [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
    ]


def test_one_added_comma_changes_no_word() -> None:
    text = " ".join(f"word{i}" for i in range(20))
    assert words_of(text) == words_of(text.replace("word7 ", "word7, "))


def test_marks_of_an_unspaced_script_stay_with_their_letter() -> None:
    assert words_of("ก\u0e31น") == ["ก\u0e31", "น"]
    assert words_of("หนึ่ง") == reference("หนึ่ง")


def test_nulls_slices_and_empty_columns() -> None:
    whole = pa.array(["a b", None, "É\u0301x c", "", "数x"])
    assert words_v1(whole.slice(1, 4)).to_arrow().to_pylist() == [[], reference("É\u0301x c"), [], ["数", "x"]]
    assert words_v1(pa.array([], pa.string())).document_offsets.tolist() == [0]


def test_many_words_and_long_documents_fit_the_buffers() -> None:
    texts = ["a " * 50_000, "数" * 30_000, "ﷺ" * 2_000, "x" * 100_000]
    assert [len(w) for w in kernel(texts)] == [50_000, 30_000, len(reference("ﷺ" * 2_000)), 1]
