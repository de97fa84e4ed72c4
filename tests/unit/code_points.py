"""Texts for the kernels' tests: every code point of Unicode 14 where it could go wrong, and random texts that often do."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

from udfs.unicode_tables import PAGE_BITS, PAGE_SIZE, PAGES, UNASSIGNED, class_table

PLANES = range(17)

TANGUT = range(0x17000, 0x18D09)
"""Tangut characters, whose names not every Python knows."""

CONTEXTS = (
    "{}",
    "x{}y",
    "X{}Σ",  # what the capital sigma sees before it
    "AΣ{}b",  # and after it
    "e{}\u0301",  # between a letter and its accent
    "{}\u0323\u0307",  # before marks that may compose with it, or move
    "α\u0345{}\u0316",  # about the iota subscript, which is a mark first and a letter later
    "\u1100{}",  # behind a leading consonant of Hangul
    "{0}{0}",
    "漢{} {}x",
)
UNIFORM_CONTEXTS = ("x{}Y",)
"""For the ideographs, Hangul syllables and private characters, of which there are 240,000 and no two kinds."""


def is_assigned(code: int) -> bool:
    """Say whether Unicode 14 assigns the code point: of later ones only later Pythons know something."""
    table = class_table()
    page = int(table[code >> PAGE_BITS])
    return int(table[PAGES + page * PAGE_SIZE + code % PAGE_SIZE]) != UNASSIGNED


def is_uniform(character: str) -> bool:
    """Say whether the character is one of many that behave alike."""
    if ord(character) in TANGUT or unicodedata.category(character) == "Co":
        return True
    return unicodedata.name(character, "").startswith(("CJK UNIFIED", "HANGUL SYLLABLE"))


def plane_characters(plane: int) -> list[str]:
    """Return the assigned characters of a plane."""
    codes = range(plane << 16, (plane + 1) << 16)
    return [chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF and is_assigned(code)]


def plane_texts(plane: int) -> list[str]:
    """Return texts with each assigned character of a plane, in contexts."""
    texts = []
    for character in plane_characters(plane):
        contexts = UNIFORM_CONTEXTS if is_uniform(character) else CONTEXTS
        texts += [context.format(character, character) for context in contexts]
    return texts


def unassigned_characters() -> list[str]:
    """Return one in 31 of the characters that Unicode 14 doesn't assign."""
    return [chr(code) for code in range(0, 0x110000, 31) if not is_assigned(code)]


TROUBLE = (
    "aAeEiIoOzZ09_-.,'"
    "\u0300\u0301\u0302\u0307\u0308\u030a\u0316\u0323\u0327\u0328\u0338\u0340\u0343\u0344\u0345\u0358"  # marks
    "éÉÅ\u212b\u212a\u2126ÇạṩṤǖ\u1e9b\u1e63"  # composed, and singletons
    "ΣσςΑαΩωᾳᾼΰΐ'’·:\u02bc"  # sigma and its neighbours, the iota subscript
    "İıßẞŉǰﬁﬃǅ\u03f4\u13a0\uab70"  # case that changes lengths
    "\u1100\u1112\u1161\u1175\u11a7\u11a8\u11c2가각힣\u1160\u3164ﾡￂ"  # Hangul
    "\u00ad\u200b\u200c\u200d\ufeff\u034f\u2060\ufe0f\U000e0041\u180e"  # removed or ignorable
    " \t\n\r\x1c\x1f\u0085\u00a0\u1680\u2000\u2001\u2028\u3000"  # white space
    "\u0958\u0915\u093c\u094d\u09c7\u09be\u0dd9\u0dcf\u0ddc\u0b47\u0b3e"  # exclusions, letters that combine back
    "\u0e01\u0e33\u0e48\u0e51\u0f71\u0f72\u0f73\u0f81\u1025\u102e"  # unspaced scripts
    "漢字〇カ\u3099\u309aｶﾞーの\uf900\U0002f800"  # East Asia
    "½²①Ⅳ…㌀ﷺ⁄\u1369"  # what NFKC takes apart, and a numeral that it doesn't
    "\U0001d15e\U0001d165\U000110a5\U000110ba😀🏽\U0001e900𐐀\U0010ffff\ue000"  # beyond the first plane
)

_assigned = st.integers(0, 0x10FFFF).filter(lambda code: not 0xD800 <= code <= 0xDFFF and is_assigned(code)).map(chr)

mixed_texts = st.lists(st.one_of(st.sampled_from(TROUBLE), st.sampled_from(TROUBLE), _assigned), max_size=40).map(
    "".join
)
"""Texts weighted towards what combines, folds, is ignored or separates."""

ascii_texts = st.text(st.sampled_from(" \t\n_.,aZq09"), max_size=300)
"""Texts long enough for the kernels' blocks, with runs of white space."""

broken_bytes = st.lists(
    st.one_of(
        st.sampled_from(
            [
                b"\xc3",
                b"\xe2\x82",
                b"\xf0\x9f\x98",
                b"\x80",
                b"\xff",
                b"\xc0\xaf",
                b"\xed\xa0\x80",
                b"\xe0\x80\x80",
                b"\xf0\x80\x80\x80",
                b"\xf4\x90\x80\x80",
            ]
        ),
        st.sampled_from(["a", "Σ", "é", "漢", "😀", " ", "\u0301", "\u00ad"]).map(str.encode),
        st.binary(max_size=4),
    ),
    max_size=15,
).map(b"".join)
"""Bytes that often aren't UTF-8."""
