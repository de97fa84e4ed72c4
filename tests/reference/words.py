"""words_v1 in plain Python: what the kernel must equal."""

import unicodedata

from udfs.unicode_ranges import DEFAULT_IGNORABLE, UNSPACED, holds


def folded(text: str) -> str:
    while True:
        kept = "".join(c for c in text if not holds(DEFAULT_IGNORABLE, ord(c)))
        result = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", kept).casefold())
        if result == text:
            return result
        text = result


def words_v1(text: str) -> list[str]:
    words: list[str] = []
    state = "between"
    for character in folded(text):
        category = unicodedata.category(character)
        if category[0] == "M" and state != "between":
            words[-1] += character
        elif category[0] in "LMN":
            alone = (category[0] == "L" or category == "Nl") and holds(UNSPACED, ord(character))
            if alone or state != "run":
                words.append(character)
            else:
                words[-1] += character
            state = "alone" if alone else "run"
        else:
            state = "between"
    return words
