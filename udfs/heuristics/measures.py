"""All heuristics of a text as one struct. What each value means stands with the annotator, ``annotators.heuristics``.

Shares are whole millionths of exact counts, rounded half to even, so they are the same everywhere. The characters of
words are their code points, and of lines and paragraphs those of their lines, with the white space inside of a line.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from udfs.arrow_text import Texts, text_buffers
from udfs.compiled import compiled
from udfs.heuristics import counted
from udfs.heuristics.characters import mark_table, phrase_table, terminal_bounds
from udfs.heuristics.counted import (
    COUNTED,
    DUPLICATE_LINE_CHARACTERS,
    DUPLICATE_LINES,
    DUPLICATE_PARAGRAPH_CHARACTERS,
    DUPLICATE_PARAGRAPHS,
    LINES,
    PARAGRAPHS,
    WORDS,
)
from udfs.heuristics.reading import Tables, count_words, read_document, room_for
from udfs.heuristics.repetition import count_n_grams, duplicates, new_scratch, new_table
from udfs.heuristics.stop_words import StopWords
from udfs.unicode_tables import class_table

MILLION = 1_000_000
"""Shares are whole millionths."""

FIRST_WORDS = 4096
"""Room for a document's words, lines and paragraphs at first."""

_GRAMS = {
    (f"top_{n}_gram" if n <= counted.MOST_FREQUENT_UP_TO else f"duplicate_{n}_grams"): (
        counted.TOP_2_GRAM + n - 2,
        counted.WORD_CHARACTERS,
    )
    for n in range(2, counted.LONGEST_N_GRAM + 1)
}

VALUES: dict[str, int | tuple[int, int]] = {
    "words": counted.WORDS,
    "gopher_words": counted.GOPHER_WORDS,
    "mean_word_length": (counted.GOPHER_CHARACTERS, counted.GOPHER_WORDS),
    "hash_ratio": (counted.HASHES, counted.WORDS),
    "ellipsis_ratio": (counted.ELLIPSES, counted.WORDS),
    "bullet_lines": (counted.BULLET_LINES, counted.LINES),
    "ellipsis_lines": (counted.ELLIPSIS_LINES, counted.LINES),
    "alphabetic_words": (counted.ALPHABETIC_WORDS, counted.WORDS),
    "stop_words": counted.STOP_WORDS,
    "duplicate_lines": (counted.DUPLICATE_LINES, counted.LINES),
    "duplicate_line_characters": (counted.DUPLICATE_LINE_CHARACTERS, counted.LINE_CHARACTERS),
    "duplicate_paragraphs": (counted.DUPLICATE_PARAGRAPHS, counted.PARAGRAPHS),
    "duplicate_paragraph_characters": (counted.DUPLICATE_PARAGRAPH_CHARACTERS, counted.LINE_CHARACTERS),
    **_GRAMS,
    "c4_lines_kept": (counted.C4_LINES, counted.LINES),
    "c4_sentences": counted.C4_SENTENCES,
    "c4_sentences_any_ending": counted.C4_SENTENCES_ANY_ENDING,
    "lorem_ipsum": counted.LOREM_IPSUM,
    "curly_bracket": counted.CURLY_BRACKET,
    "lines_ending_in_punctuation": (counted.TERMINATED_LINES, counted.LINES),
    "short_lines": (counted.SHORT_LINES, counted.LINES),
    "line_feeds_per_word": (counted.LINE_FEEDS, counted.WORDS),
}
"""The fields of the struct, in order: a count is a place in a document's row, a share is a part and its whole."""

YES_OR_NO = ("lorem_ipsum", "curly_bracket")


def text_heuristics(texts: Texts, stops: StopWords, c4_line_words: int) -> pa.StructArray:
    """Compute the heuristics of each text.

    Args:
        texts: n strings (or binaries that hold UTF-8), nulls allowed, sliced or chunked.
        stops: the stop words, from ``stop_word_table``.
        c4_line_words: words that a line must have for C4.

    Returns:
        n structs of ``VALUES``; null where the text is null. Counts are int64, what is yes or no is a bool, and shares
        are float64: null where the whole is 0, which for all but ``mean_word_length`` means that there are no words.
    """
    buffers = text_buffers(_well_formed(texts))
    tables = Tables(class_table(), mark_table(), phrase_table(), terminal_bounds())
    rows = _count(*buffers, tables, stops, c4_line_words)
    arrays = []
    for name, place in VALUES.items():
        if isinstance(place, tuple):
            part, whole = (np.ascontiguousarray(rows[:, column]) for column in place)
            arrays.append(pa.array(shares(part, whole), pa.float64(), mask=whole == 0))
        else:
            arrays.append(pa.array(rows[:, place] != 0 if name in YES_OR_NO else np.ascontiguousarray(rows[:, place])))
    return pa.StructArray.from_arrays(arrays, names=list(VALUES), mask=pa.array(~buffers.valid))


def shares(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return part / whole (int64[n] each) in millionths, rounded half to even; 0 where the whole is nothing."""
    divisor = np.maximum(whole, 1)
    millionths, rest = np.divmod(part * MILLION, divisor)
    up = (2 * rest > divisor) | ((2 * rest == divisor) & (millionths % 2 == 1))
    return np.asarray((millionths + up) / MILLION, np.float64)


def _well_formed(texts: Texts) -> Texts:
    """Return the texts as strings that are UTF-8, malformed bytes as U+FFFD: most are so already, which costs little."""
    try:
        is_binary = pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type)
        strings = texts.cast(pa.large_string()) if is_binary else texts
        strings.validate(full=True)
        return strings
    except pa.ArrowInvalid:
        values = texts.cast(pa.large_binary()).to_pylist()
        return pa.array([v if v is None else v.decode("utf-8", "replace") for v in values], pa.large_string())


@compiled
def _count(
    values: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    tables: Tables,
    stops: StopWords,
    c4_line_words: int,
) -> np.ndarray:
    """Return the counts of all documents (int64[n, COUNTED])."""
    rows = np.zeros((valid.size, COUNTED), np.int64)
    words, lines, paragraphs = room_for(FIRST_WORDS), room_for(FIRST_WORDS), room_for(FIRST_WORDS)
    found = np.full(stops.slots.size, -1, np.int64)
    scratch = new_scratch(FIRST_WORDS)
    table = new_table(1)
    for document in range(valid.size):
        if not valid[document]:
            continue
        row = rows[document]
        start, end = offsets[document], offsets[document + 1]
        most_words, most_lines = count_words(values, start, end, tables)
        if most_words > words.hashes.size:
            words = room_for(most_words)
            scratch = new_scratch(most_words)
        if most_lines > lines.hashes.size:
            lines, paragraphs = room_for(most_lines), room_for(most_lines)
        read_document(values, start, end, tables, stops, found, document, c4_line_words, row, words, lines, paragraphs)
        count = row[LINES]
        table, row[DUPLICATE_LINES], row[DUPLICATE_LINE_CHARACTERS] = duplicates(
            lines.hashes[:count], lines.characters[:count], table
        )
        count = row[PARAGRAPHS]
        table, row[DUPLICATE_PARAGRAPHS], row[DUPLICATE_PARAGRAPH_CHARACTERS] = duplicates(
            paragraphs.hashes[:count], paragraphs.characters[:count], table
        )
        count = row[WORDS]
        table = count_n_grams(words.hashes[:count], words.characters[:count], table, scratch, row)
    return rows
