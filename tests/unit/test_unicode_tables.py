"""The pinned Unicode tables are what Unicode 14.0.0 says, and small."""

from __future__ import annotations

import unicodedata
from importlib import resources

import numpy as np
import pytest

from tests.unit.code_points import TANGUT, is_assigned
from udfs import unicode_build
from udfs.unicode_ranges import DEFAULT_IGNORABLE, UNSPACED, WHITE_SPACE, members
from udfs.unicode_tables import (
    FILE_NAME,
    PAGE_BITS,
    PAGE_SIZE,
    PAGES,
    UNIDATA_VERSION,
    UNSPACED_BIT,
    UPPER_CASE_BIT,
    WHITE_SPACE_BIT,
    class_table,
)

UNSPACED_NAMES = (
    "AHOM LETTER", "BALINESE LETTER", "BOPOMOFO", "CJK COMPATIBILITY IDEOGRAPH", "CJK UNIFIED IDEOGRAPH", "HANGZHOU NUMERAL",
    "HENTAIGANA", "HIRAGANA", "IDEOGRAPHIC", "JAVANESE", "KATAKANA", "KHITAN", "KHMER", "LAO", "MASU MARK", "MYANMAR",
    "NEW TAI LUE", "NUSHU", "OLD CHINESE", "TAI LE", "TAI THAM", "TAI VIET", "TANGUT ITERATION", "THAI", "TIBETAN",
    "VERTICAL IDEOGRAPHIC", "VERTICAL KANA",
)  # fmt: skip


def all_classes() -> np.ndarray:
    table = class_table()
    return table[PAGES + (table[:PAGES].astype(np.int64)[:, None] << PAGE_BITS) + np.arange(PAGE_SIZE)].ravel()


def test_the_stored_tables_are_what_building_them_gives_or_building_is_refused() -> None:
    if unicodedata.unidata_version != UNIDATA_VERSION:
        with pytest.raises(ValueError, match=r"Python 3\.11"):
            unicode_build.build_tables()
        return
    with resources.files("udfs").joinpath(FILE_NAME).open("rb") as file, np.load(file) as stored:
        built = unicode_build.build_tables()
        assert sorted(stored.files) == sorted(built)
        for name, array in built.items():
            assert stored[name].dtype == array.dtype, name
            assert np.array_equal(stored[name], array), name


def test_another_unicode_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unicode_build.unicodedata, "unidata_version", "15.1.0")
    with pytest.raises(ValueError, match=r"15\.1\.0.*Python 3\.11"):
        unicode_build.build_tables()


def test_the_file_is_small() -> None:
    assert len(resources.files("udfs").joinpath(FILE_NAME).read_bytes()) < 300_000


def test_white_space_is_what_str_split_takes_for_it() -> None:
    assert members(WHITE_SPACE) == {code for code in range(0x110000) if chr(code).isspace()}
    assert set(np.flatnonzero(all_classes() & WHITE_SPACE_BIT).tolist()) == members(WHITE_SPACE)


def test_upper_case_is_category_lu() -> None:
    upper = {code for code in range(0x110000) if unicodedata.category(chr(code)) == "Lu" and is_assigned(code)}
    assert set(np.flatnonzero(all_classes() & UPPER_CASE_BIT).tolist()) == upper


def test_default_ignorables_are_4174_and_none_is_seen() -> None:
    """DerivedCoreProperties.txt of Unicode 14.0 ends their list with this total."""
    ignorable = members(DEFAULT_IGNORABLE)
    assert len(ignorable) == 4174
    categories = {unicodedata.category(chr(code)) for code in ignorable if is_assigned(code)}
    assert categories == {"Cf", "Mn", "Lo"}


def test_unspaced_letters_are_those_whose_names_begin_with_such_a_script() -> None:
    """The ranges are wide blocks; the names of the characters are a second opinion about what lies in them."""
    named = {
        code
        for code in range(0x110000)
        if is_assigned(code)
        and code not in TANGUT
        and (unicodedata.category(chr(code))[0] == "L" or unicodedata.category(chr(code)) == "Nl")
        and unicodedata.name(chr(code), "").startswith(UNSPACED_NAMES)
    }
    unspaced = set(np.flatnonzero(all_classes() & UNSPACED_BIT).tolist())
    assert unspaced - set(TANGUT) == named
    assert all(code in unspaced for code in TANGUT if unicodedata.category(chr(code)) == "Lo" and is_assigned(code))
    assert not members(UNSPACED) & set(range(0xAC00, 0xD7A4)), "Korean has spaces"
