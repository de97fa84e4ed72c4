"""text_statistics in plain Python: what the kernel must equal. Needs Unicode 14.0 to be equal on all code points."""

from __future__ import annotations

import unicodedata
from collections import Counter
from fractions import Fraction


def text_statistics(text: str) -> dict[str, int | float | None]:
    """Return the counts and shares of one text."""
    categories = Counter(unicodedata.category(character) for character in text)
    majors = Counter(unicodedata.category(character)[0] for character in text)
    words = text.split()
    shares = {
        "letters": share(majors["L"] + majors["M"], len(text)),
        "digits": share(categories["Nd"], len(text)),
        "white_space": share(sum(map(str.isspace, text)), len(text)),
        "symbols": share(majors["P"] + majors["S"], len(text)),
        "upper_case": share(categories["Lu"], majors["L"]) if majors["L"] else 0.0,
    }
    return {
        "bytes": len(text.encode()),
        "characters": len(text),
        "words": len(words),
        "lines": text.count("\n") + (text != "" and not text.endswith("\n")),
        "longest_word": max(map(len, words), default=0),
        **(shares if text else dict.fromkeys(shares, None)),
    }


def share(part: int, whole: int) -> float:
    """Return part / whole, rounded to six decimals, half to even."""
    return float(round(Fraction(part, max(whole, 1)), 6))
