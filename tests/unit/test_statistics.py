"""text_statistics: the kernel equals the plain-Python reference."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.statistics import text_statistics as reference
from tests.unit.characters import MIXED_TEXT, PLANES, in_contexts
from udfs.statistics import text_statistics


@pytest.mark.parametrize("plane", PLANES)
def test_equals_the_reference_on_every_code_point(plane: range) -> None:
    texts = in_contexts(plane)
    got = text_statistics(pa.array(texts, pa.string())).to_pylist()
    wrong = [(ascii(t), g, reference(t)) for t, g in zip(texts, got, strict=True) if g != reference(t)]
    assert not wrong, wrong[:3]


@given(st.lists(MIXED_TEXT, max_size=8))
@settings(max_examples=200, deadline=None)
def test_equals_the_reference_on_mixed_texts(texts: list[str]) -> None:
    assert text_statistics(pa.array(texts, pa.string())).to_pylist() == [reference(t) for t in texts]


def test_lines_words_and_shares_of_an_example() -> None:
    (got,) = text_statistics(pa.array(["Ab 1.\nC\n"])).to_pylist()
    assert got == {
        "bytes": 8, "characters": 8, "words": 3, "lines": 2, "longest_word": 2, "letters": 0.375, "digits": 0.125,
        "white_space": 0.375, "symbols": 0.125, "upper_case": 0.666667,
    }  # fmt: skip


def test_empty_and_null_texts_have_declared_outcomes() -> None:
    empty, null = text_statistics(pa.array(["", None])).to_pylist()
    assert empty["characters"] == 0 and empty["letters"] is None and empty["upper_case"] is None
    assert null is None
