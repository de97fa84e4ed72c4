"""Sets of code points of Unicode 14.0 that Python's ``unicodedata`` doesn't know, and the letters they are used for.

Sources: the Unicode Character Database, version 14.0.0, files PropList.txt, DerivedCoreProperties.txt, Scripts.txt,
ScriptExtensions.txt and LineBreak.txt. Ranges are inclusive.
"""

from __future__ import annotations

Ranges = tuple[tuple[int, int], ...]

WHITE_SPACE: Ranges = (
    (0x0009, 0x000D),
    # U+001C to U+001F (file, group, record and unit separator) lack White_Space, but str.split() and str.isspace() take
    # them as white space. Here they are too: then "words" counted by any Python code agree with the kernels.
    (0x001C, 0x001F),
    (0x0020, 0x0020),
    (0x0085, 0x0085),
    (0x00A0, 0x00A0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
"""White_Space (PropList.txt), and U+001C to U+001F."""

REMOVED_BY_NORM_V1: Ranges = ((0x00AD, 0x00AD), (0x200B, 0x200B), (0xFEFF, 0xFEFF))
"""Soft hyphen, zero-width space, byte order mark. The joiners U+200C and U+200D carry meaning, and stay."""

DEFAULT_IGNORABLE: Ranges = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Default_Ignorable_Code_Point (DerivedCoreProperties.txt). It covers code points that aren't assigned yet."""

UNSPACED: Ranges = (
    # Line_Break=SA (LineBreak.txt): scripts of South East Asia whose words a dictionary must find.
    (0x0E01, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x197F),  # Tai Le
    (0x1980, 0x19DF),  # New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0xA9E0, 0xA9FF),  # Myanmar Extended-B
    (0xAA60, 0xAA7F),  # Myanmar Extended-A
    (0xAA80, 0xAADF),  # Tai Viet
    (0x11700, 0x1174F),  # Ahom
    # Written without spaces although Line_Break says otherwise.
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1B00, 0x1B7F),  # Balinese
    (0xA980, 0xA9DF),  # Javanese
    # Hiragana, Katakana, Bopomofo and Han (Scripts.txt), with the iteration, closing and prolonged sound marks that
    # they share (ScriptExtensions.txt). Half-width Katakana needs no entry: NFKC has made it full-width.
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3038, 0x303C),
    (0x3041, 0x30FF),
    (0x3105, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x16FE0, 0x16FE3),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
    # The other ideographic scripts (Ideographic=Yes, PropList.txt): Tangut, Khitan and Nushu.
    (0x17000, 0x18D08),
    (0x1B170, 0x1B2FB),
)
"""Where the letters (categories L* and Nl) of scripts written without spaces lie. Hangul isn't among them."""


def members(ranges: Ranges) -> frozenset[int]:
    """Return the code points of the ranges."""
    return frozenset(code for first, last in ranges for code in range(first, last + 1))


def holds(ranges: Ranges, code: int) -> bool:
    """Say whether a code point lies in one of the ranges."""
    return any(first <= code <= last for first, last in ranges)
