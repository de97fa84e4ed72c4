"""text_statistics: the kernel equals the plain-Python reference everywhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.statistics import text_statistics as reference
from tests.unit.code_points import PLANES, ascii_texts, broken_bytes, mixed_texts, plane_characters
from udfs.statistics import text_statistics


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Let no test's clock run while kernels are compiled."""
    text_statistics(pa.array(["é"]))


def kernel(texts: Sequence[str | None]) -> list[dict[str, Any] | None]:
    return text_statistics(pa.array(texts, pa.string())).to_pylist()


@pytest.mark.parametrize("plane", PLANES)
def test_every_code_point_equals_the_reference(plane: int) -> None:
    texts = [f"x{character}" for character in plane_characters(plane)]
    wrong = [(ascii(t), g) for t, g in zip(texts, kernel(texts), strict=True) if g != reference(t)]
    assert not wrong, wrong[:5]


@given(st.lists(st.one_of(mixed_texts, ascii_texts, st.none()), max_size=6))
@settings(max_examples=300, deadline=None)
def test_random_texts_equal_the_reference(texts: list[str | None]) -> None:
    assert kernel(texts) == [None if text is None else reference(text) for text in texts]


@given(st.lists(broken_bytes, max_size=4))
@settings(max_examples=200, deadline=None)
def test_bytes_that_are_not_utf8_count_as_replacement_characters(values: list[bytes]) -> None:
    got = text_statistics(pa.array(values, pa.binary())).to_pylist()
    expected = [reference(value.decode("utf-8", "replace")) for value in values]
    assert got == [{**row, "bytes": len(value)} for row, value in zip(expected, values, strict=True)]


def test_an_example_counted_by_hand() -> None:
    assert kernel(["Ab 1.\nC\n"]) == [
        {
            "bytes": 8,
            "characters": 8,
            "words": 3,
            "lines": 2,
            "longest_word": 2,
            "letters": 0.375,
            "digits": 0.125,
            "white_space": 0.375,
            "symbols": 0.125,
            "upper_case": 0.666667,
        }
    ]


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("a\r\nb\r\n", 2)]
)
def test_an_unended_line_counts_as_a_line(text: str, lines: int) -> None:
    (got,) = kernel([text])
    assert got is not None and got["lines"] == lines


def test_empty_and_null_texts_have_declared_outcomes() -> None:
    empty, null, digits = kernel(["", None, "123"])
    shares = ("letters", "digits", "white_space", "symbols", "upper_case")
    assert null is None
    assert empty is not None and all(empty[name] is None for name in shares)
    assert all(value == 0 for name, value in empty.items() if name not in shares)
    assert digits is not None and digits["upper_case"] == 0.0


@pytest.mark.parametrize(("part", "whole"), [(1, 3), (2, 3), (1, 2_000_000), (3, 2_000_000), (1, 7)])
def test_shares_are_the_nearest_millionths_and_ties_go_to_the_even_one(part: int, whole: int) -> None:
    text = "1" * part + "a" * (whole - part)
    (got,) = kernel([text])
    assert got is not None and got["digits"] == reference(text)["digits"]


def test_long_documents_do_not_overflow_the_counters() -> None:
    text = "A" * 100_000 + " é" * 5_000
    start = time.process_time()
    (got,) = kernel([text])
    assert time.process_time() - start < 0.5
    assert got == reference(text)


def test_slices_and_chunks() -> None:
    whole = pa.array(["x", "Ab é", None, "y z"], pa.large_string())
    expected = [reference("x"), reference("Ab é"), None, reference("y z")]
    assert text_statistics(whole.slice(1, 2)).to_pylist() == expected[1:3]
    assert text_statistics(pa.chunked_array([whole.slice(0, 1), whole.slice(1)])).to_pylist() == expected
    assert len(text_statistics(pa.array([], pa.string()))) == 0
