"""Texts for the kernels' tests: every code point of Unicode 14 in contexts where it could go wrong, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from udfs.characters import unassigned

PLANES = [range(start, start + 0x10000) for start in range(0, 0x110000, 0x10000)]
CONTEXTS = ("{}", "x{}y", "A{}", "{}\u0301", "가{}", "e{}\u0327 {}")


def assigned(code: int) -> bool:
    """Whether the code point is one of Unicode 14 (later Pythons know more), and not half a surrogate pair."""
    return not 0xD800 <= code <= 0xDFFF and not unassigned().fullmatch(chr(code))


def in_contexts(codes: range) -> list[str]:
    """Texts in which each code point stands alone, between letters, after a base, before a mark; planes that hold few
    characters get their unassigned ones in the first context only."""
    texts = [context.format(*[chr(code)] * 2) for code in codes if assigned(code) for context in CONTEXTS]
    return texts + [f"x{chr(code)}Y" for code in codes[::97] if not 0xD800 <= code <= 0xDFFF]


_TROUBLE = (
    "aZ éÉ\u0301\u0327\u0345\u0308\u0323ΣσςİıßẞŉǰΐÅK\u212b\u2126\u1e9b\u0323ﬁﬃ½²⅞ͅ\u00ad\u200b\u200c\u200d\ufeff\u2060\u034f\t\n\r"
    "\x1c\x1f\u0085\u00a0\u2028\u3000각ᄀ\u1161\u11a8\u0958\u0915\u093c\u0e01\u0e33\u0e48\u0f71\u0f72漢字ｶﾞカ\u3099龍\uf900😀👨🏽"
    "_-'.,;\u0130\u03f4\u1fb3\u1fbc\U0001d15e\U000e0041\U0001e921\u1c80\ua64a\u2163\u0660\u0031"
)
MIXED_TEXT = st.text(st.one_of(st.sampled_from(_TROUBLE), st.characters(exclude_categories=["Cs", "Cn"])), max_size=30)
"""Texts weighted towards what combines, folds, is ignored or separates."""
