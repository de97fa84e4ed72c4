"""norm_v1: the kernel equals the plain-Python reference on every plane, and is a fixed point of itself."""

from __future__ import annotations

import hashlib
import time
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.normalise import norm_v1 as reference
from tests.unit.characters import MIXED_TEXT, PLANES, in_contexts
from udfs.normalise import norm_v1, norm_v1_keys


def kernel(texts: list[str | None]) -> list[str | None]:
    return norm_v1(pa.array(texts, pa.string())).to_pylist()


@pytest.mark.parametrize("plane", PLANES)
def test_equals_the_reference_on_every_code_point_alone_and_between_others(plane: range) -> None:
    texts = in_contexts(plane)
    got = kernel(texts)
    wrong = [(t, g, reference(t)) for t, g in zip(texts, got, strict=True) if g != reference(t)]
    assert not wrong, [(ascii(t), ascii(g), ascii(r)) for t, g, r in wrong[:5]]


@given(st.lists(MIXED_TEXT, max_size=8))
@settings(max_examples=300, deadline=None)
def test_equals_the_reference_and_is_idempotent_on_mixed_texts(texts: list[str]) -> None:
    got = kernel(texts)
    assert got == [reference(t) for t in texts]
    assert kernel(got) == got


def test_composed_and_decomposed_accents_are_one_text_and_missing_ones_another() -> None:
    """O-NRM-01."""
    a, b, c = kernel(["Le café est", unicodedata.normalize("NFD", "Le café est"), "Le cafe est"])
    assert a == b == unicodedata.normalize("NFC", a or "")
    assert a != c


def test_superscripts_and_fractions_stay_what_they_are() -> None:
    """O-NRM-02: compatibility folding would merge texts that say different things."""
    assert len(set(kernel(["r² and 2⁵", "r2 and 25", "½ cup", "1⁄2 cup"]))) == 4


def test_joiners_stay_and_zero_width_spaces_go() -> None:
    """O-NRM-03."""
    persian, glued, emoji, hidden = kernel(
        ["می\u200cروم", "میروم", "👨\u200d👩\u200d👧", "pass\u200bword re\u00adset \ufeffguide"]
    )
    assert "\u200c" in (persian or "") and persian != glued
    assert emoji == "👨\u200d👩\u200d👧"
    assert hidden == "password reset guide"


def test_every_kind_of_white_space_is_one_space_and_blank_texts_have_no_key() -> None:
    """O-NRM-04."""
    spellings = ["River level report for May", "\u00a0River\u2003level report\u3000for May\u202f",
                 "River\tlevel\u2009report for\u00a0May\n", "  River level  report for May"]  # fmt: skip
    assert set(kernel(spellings)) == {"river level report for may"}
    keys = norm_v1_keys(pa.array(["\u00a0\u3000\u2003", "\u200b\ufeff", "\u2028\u0085", "", None, "x"])).to_pylist()
    assert keys == [None] * 5 + [hashlib.sha256(b"x").digest()]


def test_one_token_of_300_000_characters_is_linear() -> None:
    """O-NRM-05."""
    texts = pa.array(["ab3/" * 75_000, "É\u0301ab3" * 75_000])
    norm_v1(texts)
    start = time.perf_counter()
    norm_v1_keys(texts)
    assert time.perf_counter() - start < 1.0


def test_nulls_slices_chunks_and_empty_columns() -> None:
    texts = ["A  b", None, "ÄÖ", "", "Σίσυφοσ ΣΑΣ", "i\u0307 İ", None, "plain"]
    whole = pa.array(texts)
    expected = [None if t is None else reference(t) for t in texts]
    assert norm_v1(whole).to_pylist() == expected
    assert norm_v1(whole.slice(2, 4)).to_pylist() == expected[2:6]
    assert norm_v1(whole.cast(pa.large_string())).to_pylist() == expected
    assert norm_v1(pa.chunked_array([whole.slice(0, 3), whole.slice(3)])).to_pylist() == expected
    assert norm_v1(pa.array([], pa.string())).to_pylist() == []
    assert norm_v1(pa.array([None, None], pa.string())).to_pylist() == [None, None]


def test_lower_case_that_takes_more_bytes_than_upper_case_fits() -> None:
    text = "\u023a" * 1000  # 2 bytes each, 3 in lower case
    assert kernel([text, "a", text]) == [reference(text), "a", reference(text)]


def test_keys_are_the_hash_of_the_normalised_bytes() -> None:
    texts = ["Ab c", "e\u0301", "中文 Text"]
    assert norm_v1_keys(pa.array(texts)).to_pylist() == [hashlib.sha256(reference(t).encode()).digest() for t in texts]


def test_malformed_bytes_neither_crash_nor_read_past_the_end() -> None:
    broken = pa.array([b"ok \xff\xfe", b"\xe4\xb8", b"\xf0\x9f\x98", b"fine"], pa.binary())
    decoded = [reference(b.decode("utf-8", errors="replace")) for b in broken.to_pylist()]
    assert norm_v1(broken).to_pylist() == decoded
