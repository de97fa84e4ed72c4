"""The places of a document's counts in its row, which the kernels of this package fill (int64[COUNTED])."""

from __future__ import annotations

(
    WORDS,
    WORD_CHARACTERS,
    GOPHER_WORDS,
    GOPHER_CHARACTERS,
    HASHES,
    ELLIPSES,
    ALPHABETIC_WORDS,
    STOP_WORDS,
    LINE_FEEDS,
    LINES,
    LINE_CHARACTERS,
    BULLET_LINES,
    ELLIPSIS_LINES,
    TERMINATED_LINES,
    SHORT_LINES,
    C4_LINES,
    C4_SENTENCES,
    C4_SENTENCES_ANY_ENDING,
    LOREM_IPSUM,
    CURLY_BRACKET,
    PARAGRAPHS,
    DUPLICATE_LINES,
    DUPLICATE_LINE_CHARACTERS,
    DUPLICATE_PARAGRAPHS,
    DUPLICATE_PARAGRAPH_CHARACTERS,
    TOP_2_GRAM,
) = range(26)
"""TOP_2_GRAM and the places after it hold characters in n-grams: the most frequent one for n from 2 to 4, all that
occur more than once for n from 5 to 10."""

MOST_FREQUENT_UP_TO = 4
LONGEST_N_GRAM = 10
COUNTED = TOP_2_GRAM + LONGEST_N_GRAM - 1
