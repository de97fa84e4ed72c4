"""Word 5-grams and their Jaccard similarity, in plain Python: the definition that the planted similarities follow."""

from __future__ import annotations

import re

SHINGLE_WORDS = 5

_WORD = re.compile(r"[^\W_]+")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are: maximal runs of letters and digits."""
    return [match.span() for match in _WORD.finditer(text)]


def words_of(text: str) -> list[str]:
    """The words of a text after case folding. On ASCII text this is the same as any fuller Unicode definition."""
    return _WORD.findall(text.casefold())


def shingles_of(words: list[str]) -> set[tuple[str, ...]]:
    """The set of word 5-grams; a text of fewer than five words is one shingle, an empty one has none."""
    if len(words) < SHINGLE_WORDS:
        return {tuple(words)} if words else set()
    return set(zip(*(words[first:] for first in range(SHINGLE_WORDS)), strict=False))


def jaccard(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> float:
    """|left ∩ right| / |left ∪ right|, and 0 for two empty sets."""
    common = len(left & right)
    union = len(left) + len(right) - common
    return common / union if union else 0.0
