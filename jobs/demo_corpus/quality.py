"""The quality rules of the demo corpus: every ordinary document meets them, every junk document breaks exactly one.

They are SQL expressions over a struct ``statistics`` with the fields bytes, characters, words, lines, longest_word (counts),
letters, digits, white_space, symbols and upper_case (fractions of the characters, 0 to 1). Words are maximal runs of
characters that are not white space, so a Chinese text is a few very long words; the rules count characters instead.
"""

from __future__ import annotations

SHORTEST_TEXT = 60
"""Characters. Ordinary documents have at least this many by construction (``sources.shortest``)."""

LEAST_LETTERS = 0.3
"""Fraction of the characters that are letters. Prose has about 0.8, code about 0.6, symbol soup 0."""

LONGEST_WORD = 50_000
"""Characters. The longest word of ordinary documents is a Chinese paragraph of some thousand characters."""

QUALITY_RULES: tuple[tuple[str, str], ...] = (
    ("too_short", f"statistics.characters >= {SHORTEST_TEXT}"),
    ("symbol_soup", f"statistics.letters >= {LEAST_LETTERS}"),
    ("long_token", f"statistics.longest_word <= {LONGEST_WORD}"),
)
"""(name, the expression that a kept document satisfies). The name is what the truth table expects as the drop's reason."""
