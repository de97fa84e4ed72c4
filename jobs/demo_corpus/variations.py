"""Ways to write a text differently that the normalisation ``norm_v1`` undoes.

``norm_v1`` is NFC, lower case, every run of Unicode white space to one space, ends trimmed, and zero-width space, byte order
mark and soft hyphen removed. Each variation here uses one of its steps.
"""

from __future__ import annotations

import string
import unicodedata

BYTE_EQUAL, CASE, WHITE_SPACE, NFD, ZERO_WIDTH = "byte_equal", "case", "white_space", "nfd", "zero_width"
VARIATIONS: tuple[str, ...] = (BYTE_EQUAL, CASE, WHITE_SPACE, ZERO_WIDTH, NFD)

# Only letters whose upper case is one character and goes back to them: not ß, whose upper case is SS.
_UPPER = {ord(letter): letter.upper() for letter in string.ascii_lowercase + "äöüабвгдежзийклмнопрстуфхцчшщъыьэюяё"}

# White_Space characters of Unicode that Python, Java and SQL functions disagree about, beside the ones they all know.
_SPACES = ("  ", "\t", "\u00a0", "\n", "\u2003", "\u3000", "\r\n", "\u2009 ", "\u202f")
_INVISIBLE = ("\u200b", "\ufeff", "\u00ad")

_EVERY = 7


def vary(text: str, variation: str, turn: int = 0) -> tuple[str, str]:
    """A text that is equal to ``text`` under ``norm_v1``, and the name of the variation that was applied.

    Args:
        text: a text in NFC, without leading or trailing white space.
        variation: one of ``VARIATIONS``; where it would change nothing (a text without accents has no other NFD), white
            space is varied instead.
        turn: lets two copies differ in where they are changed.
    """
    changed = text
    if variation == CASE:
        changed = text.translate(_UPPER)
    elif variation == NFD:
        changed = unicodedata.normalize("NFD", text)
    elif variation == ZERO_WIDTH:
        changed = _between_letters(text, turn)
    elif variation == BYTE_EQUAL:
        return text, BYTE_EQUAL
    if changed == text:
        return _spaced(text, turn), WHITE_SPACE
    return changed, variation


def _spaced(text: str, turn: int) -> str:
    words = text.split(" ")
    pieces = [_SPACES[turn % len(_SPACES)]]
    for at, word in enumerate(words):
        space = _SPACES[(at // _EVERY + turn) % len(_SPACES)] if at % _EVERY == turn % _EVERY else " "
        pieces += [word, space]
    return "".join(pieces)


def _between_letters(text: str, turn: int) -> str:
    words = text.split(" ")
    for at in range(turn % _EVERY if len(words) > _EVERY else 0, len(words), _EVERY):
        word = words[at]
        if len(word) >= 2 and word[:2].isalpha():
            words[at] = word[:1] + _INVISIBLE[(at // _EVERY + turn) % len(_INVISIBLE)] + word[1:]
    return " ".join(words)
