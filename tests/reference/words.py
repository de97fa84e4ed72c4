"""words_v1 in plain Python: what the kernel must equal (on the code points that Unicode 14 assigns)."""

from __future__ import annotations

import unicodedata

from udfs.unicode_ranges import DEFAULT_IGNORABLE, UNSPACED, members

IGNORABLE = members(DEFAULT_IGNORABLE)
WITHOUT_SPACES = members(UNSPACED)


def folded(text: str) -> str:
    """Return the text without default-ignorables, case-folded, in NFKC."""
    text = "".join(character for character in text if ord(character) not in IGNORABLE)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())


def words_v1(text: str) -> list[str]:
    """Return the words of a text."""
    words: list[str] = []
    joins = ""  # the major categories whose characters would go on with the last word
    for character in folded(text):
        category = unicodedata.category(character)
        unspaced = (category[0] == "L" or category == "Nl") and ord(character) in WITHOUT_SPACES
        if category[0] not in "LMN":
            joins = ""
        elif category[0] in joins and not unspaced:
            words[-1] += character
        else:
            words.append(character)
            joins = "M" if unspaced else "LMN"
    return words
