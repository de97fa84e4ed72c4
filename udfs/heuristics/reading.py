"""One walk over a text: its words, lines and paragraphs, and all that can be counted on the way.

- A *word* is a maximal run of characters that aren't white space, as in ``len(text.split())``.
- A *line* is what stands between two U+000A, without the white space at its ends (so a U+000D is no part of it). Lines
  without a word are blank, and are no lines for any count.
- A *paragraph* is a maximal run of lines without a blank one between.
- A line ends in what its last word ends in, and a phrase occurs in it whatever stands before and after the phrase.
- A line is cut into *sentences* after each word that ends in . ! or ?, closing quotes and brackets after that aside.
  What is left without a letter, mark or number is no sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.compiled import compiled
from udfs.heuristics.characters import (
    ALPHABETIC,
    BULLETS,
    CLOSING,
    CLOSING_QUOTES,
    CURLY,
    DOT,
    ELLIPSIS,
    ENDING,
    FIRST_PHRASE,
    HASH,
    INTERRUPTING,
    NON_ASCII,
    WHITE,
    WORDY,
)
from udfs.heuristics.characters import LOREM_IPSUM as LOREM_IPSUM_PHRASE
from udfs.heuristics.counted import (
    ALPHABETIC_WORDS,
    BULLET_LINES,
    C4_LINES,
    C4_SENTENCES,
    C4_SENTENCES_ANY_ENDING,
    CURLY_BRACKET,
    ELLIPSES,
    ELLIPSIS_LINES,
    GOPHER_CHARACTERS,
    GOPHER_WORDS,
    HASHES,
    LINE_CHARACTERS,
    LINE_FEEDS,
    LINES,
    LOREM_IPSUM,
    PARAGRAPHS,
    SHORT_LINES,
    STOP_WORDS,
    TERMINATED_LINES,
    WORD_CHARACTERS,
    WORDS,
)
from udfs.heuristics.stop_words import NOWHERE, StopWords, bare, bare_ascii, may_be_stop_word, stop_word
from udfs.mapping import lower_ascii
from udfs.shingles import mixed
from udfs.unicode_tables import WHITE_SPACE_BIT, lookup
from udfs.utf8 import LONGEST, decode
from udfs.xxhash64 import xxhash64

LINE_FEED, EXCLAMATION_MARK, FULL_STOP, QUESTION_MARK, HYPHEN, ASTERISK = b"\n!.?-*"
C4_ENDINGS = (*b".!?\"'", *CLOSING_QUOTES)
"""A line that ends in one of these ends in terminal punctuation for C4, unless it ends in an ellipsis."""
SHORT_LINE = 30
"""A line of fewer characters is short."""
LONG_WORD = 1000
"""C4 keeps no line with a word of more characters."""


class Tables(NamedTuple):
    """What the walk looks up: the tables of ``characters``, and the classes of ``unicode_tables``."""

    classes: np.ndarray
    marks: np.ndarray
    phrases: np.ndarray
    terminals: np.ndarray


class Hashed(NamedTuple):
    """Words, lines or paragraphs of a document: their hashes (uint64) and a number of characters (int64).

    A word's number is that of the characters of all words up to and with it, a line's or paragraph's is its own.
    """

    hashes: np.ndarray
    characters: np.ndarray


@compiled
def room_for(count: int) -> Hashed:
    """Return arrays for so many entries."""
    return Hashed(np.empty(count, np.uint64), np.empty(count, np.int64))


@compiled
def count_words(values: np.ndarray, start: int, end: int, tables: Tables) -> tuple[int, int]:
    """Return the number of words of a document, and a number that its lines don't exceed."""
    classes, marks, _, _ = tables
    words = 0
    feeds = 0
    inside = False
    position = start
    while position < end:
        byte = np.int64(values[position])
        if byte < 0x80:
            white = marks[byte] & WHITE != 0
            position += 1
        else:
            code, length = decode(values, position, end)
            white = lookup(classes, code) & WHITE_SPACE_BIT != 0
            position += length
        # Without a branch: where a word ends is what a processor can't foresee.
        words += white & inside
        inside = not white
        feeds += byte == LINE_FEED
    words += inside
    return words, min(words, feeds + 1)


@compiled
def read_document(
    values: np.ndarray,
    start: int,
    end: int,
    tables: Tables,
    stops: StopWords,
    found: np.ndarray,
    document: int,
    c4_line_words: int,
    counts: np.ndarray,
    words: Hashed,
    lines: Hashed,
    paragraphs: Hashed,
) -> None:
    """Count what one document has, and note its words, lines and paragraphs.

    Args:
        values: the bytes, well-formed UTF-8.
        start: where the document starts,
        end: and where it has ended.
        tables: what is looked up.
        stops: the stop words.
        found: int64[slots of stops], the document in which each stop word was last found.
        document: the number of this one.
        c4_line_words: words that a line must have for C4.
        counts: int64[COUNTED], zeros, to be filled.
        words: room for the words, which are noted here.
        lines: room for the lines.
        paragraphs: room for the paragraphs.
    """
    word_hashes, word_ends = words
    classes, marks, phrases, terminals = tables
    slots, records, entries, edges, longest_stop, stop_count = stops
    stops_found = 0
    # Of the line that is being read: where it starts, where its last word starts and ends, its words and characters,
    # its complete sentences, the marks of the incomplete one, phrases, and whether it has a long word.
    line_start = word_start = word_end = start
    line_words = line_characters = sentences = incomplete = line_phrases = 0
    long_word = False
    paragraph = np.uint64(0)
    paragraph_characters = 0
    while True:
        position, next_end, feeds, between, characters, seen, last, hashes, ellipses = _next_word(
            values, start, word_end, end, classes, marks, phrases
        )
        counts[LINE_FEEDS] += feeds
        if line_words and (feeds or position == end):
            sentences += incomplete & WORDY != 0
            kept = line_words >= c4_line_words and not long_word and line_phrases & ~LOREM_IPSUM_PHRASE == 0
            counts[LOREM_IPSUM] |= line_phrases & LOREM_IPSUM_PHRASE != 0
            line_hash = xxhash64(values, line_start, word_end)
            lines.hashes[counts[LINES]] = line_hash
            lines.characters[counts[LINES]] = line_characters
            _count_line(values, word_start, word_end, terminals, line_characters, sentences, kept, counts)
            paragraph = mixed(paragraph + line_hash)
            paragraph_characters += line_characters
            line_words = line_characters = sentences = incomplete = line_phrases = 0
            long_word = False
            if feeds > 1 or position == end:
                paragraphs.hashes[counts[PARAGRAPHS]] = paragraph
                paragraphs.characters[counts[PARAGRAPHS]] = paragraph_characters
                counts[PARAGRAPHS] += 1
                paragraph = np.uint64(0)
                paragraph_characters = 0
        if position == end:
            counts[STOP_WORDS] = stops_found
            return
        word_start, word_end = position, next_end
        word_hashes[counts[WORDS]] = xxhash64(values, word_start, word_end)
        counts[WORD_CHARACTERS] += characters
        word_ends[counts[WORDS]] = counts[WORD_CHARACTERS]
        counts[WORDS] += 1
        counts[HASHES] += hashes
        counts[ELLIPSES] += ellipses
        counts[ALPHABETIC_WORDS] += seen & ALPHABETIC != 0
        counts[CURLY_BRACKET] |= seen & CURLY != 0
        if seen & WORDY:
            counts[GOPHER_WORDS] += 1
            counts[GOPHER_CHARACTERS] += characters
            if stops_found < stop_count:
                # Most words are known to be no stop words by their length and ends: the others cost a call.
                if seen & NON_ASCII:
                    bare_start, bare_end = bare(values, word_start, word_end, classes, marks)
                    is_candidate = bare_end - bare_start <= LONGEST * longest_stop
                else:
                    bare_start, bare_end = bare_ascii(values, word_start, word_end, marks)
                    is_candidate = may_be_stop_word(values, bare_start, bare_end, edges, longest_stop)
                if is_candidate:
                    slot = stop_word(values, bare_start, bare_end, slots, records, entries)
                    if slot != NOWHERE and found[slot] != document:
                        found[slot] = document
                        stops_found += 1
        if line_words == 0:
            line_start = word_start
            counts[BULLET_LINES] += _is_bullet(values, word_start, word_end)
            between = 0
        line_words += 1
        line_characters += between + characters
        line_phrases |= seen >> FIRST_PHRASE
        long_word |= characters > LONG_WORD
        incomplete |= seen
        may_end = last & (ENDING | CLOSING | NON_ASCII) and incomplete & WORDY
        if may_end and _ends_sentence(values, word_start, word_end, marks):
            sentences += 1
            incomplete = 0


@compiled
def _next_word(
    values: np.ndarray,
    start: int,
    position: int,
    end: int,
    classes: np.ndarray,
    marks: np.ndarray,
    phrases: np.ndarray,
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Skip white space and read the word after it.

    Returns:
        Where the word starts (``end`` if there is none) and has ended; how many line feeds and characters of white space
        come before; the word's code points, the marks of all its characters (of phrases only those that are there) and
        of its last one; how many # and ellipses it has.
    """
    feeds = 0
    between = 0
    while position < end:
        byte = np.int64(values[position])
        if byte < 0x80:
            if marks[byte] & WHITE == 0:
                break
            feeds += byte == LINE_FEED
            position += 1
        else:
            code, length = decode(values, position, end)
            if lookup(classes, code) & WHITE_SPACE_BIT == 0:
                break
            position += length
        between += 1
    first = position
    last = 0
    continuing = 0
    seen = 0
    hashes = 0
    ellipses = 0
    while position < end:
        byte = np.int64(values[position])
        if byte < 0x80:
            mark = marks[byte]
            if mark & INTERRUPTING:
                if mark & WHITE:
                    break
                if mark & HASH:
                    hashes += 1
                elif mark & DOT:
                    dots = 1
                    while position + 1 < end and values[position + 1] == FULL_STOP:
                        position += 1
                        dots += 1
                    ellipses += dots // 3
                else:
                    mark = _with_phrases(values, start, position, end, mark, phrases)
            position += 1
        else:
            code, length = decode(values, position, end)
            bits = lookup(classes, code)
            if bits & WHITE_SPACE_BIT:
                break
            mark = marks[128 + bits]
            ellipses += code == ELLIPSIS
            continuing += length - 1
            position += length
        last = mark
        seen |= mark
    return first, position, feeds, between, position - first - continuing, seen, last, hashes, ellipses


@compiled
def _with_phrases(values: np.ndarray, start: int, position: int, end: int, mark: int, phrases: np.ndarray) -> int:
    """Return the mark without the bits of phrases that don't stand around their anchor at ``position``."""
    for number in range(phrases.shape[0]):
        bit = 1 << FIRST_PHRASE + number
        if mark & bit:
            row = phrases[number]
            length = np.int64(row[0])
            first = position - np.int64(row[1])
            same = first >= start and first + length <= end
            place = 0
            while same and place < length:
                same = lower_ascii(values[first + place]) == row[2 + place]
                place += 1
            if not same:
                mark &= ~bit
    return mark


@compiled
def _is_bullet(values: np.ndarray, start: int, end: int) -> bool:
    """Say whether a line whose first word is ``values[start:end]`` is a bullet line."""
    code, length = decode(values, start, end)
    if code in (HYPHEN, ASTERISK):
        return length == end - start
    return code in BULLETS


@compiled
def _ends_sentence(values: np.ndarray, start: int, end: int, marks: np.ndarray) -> bool:
    """Say whether a word ends in . ! or ?, maybe with closing marks after it."""
    while end > start:
        byte = np.int64(values[end - 1])
        if byte in (FULL_STOP, QUESTION_MARK, EXCLAMATION_MARK):
            return True
        if byte >= 0x80:
            if _last_code(values, start, end) not in CLOSING_QUOTES:
                return False
            end -= 3
        elif marks[byte] & CLOSING:
            end -= 1
        else:
            return False
    return False


@compiled
def _last_code(values: np.ndarray, start: int, end: int) -> int:
    """Return the last code point of a word."""
    last = end - 1
    while last > start and values[last] & 0xC0 == 0x80:
        last -= 1
    return decode(values, last, end)[0]


@compiled
def _count_line(
    values: np.ndarray,
    start: int,
    end: int,
    terminals: np.ndarray,
    characters: int,
    sentences: int,
    kept: bool,
    counts: np.ndarray,
) -> None:
    """Count a line whose last word is ``values[start:end]``, and which C4 keeps if its ending allows it too."""
    code = _last_code(values, start, end)
    counts[LINES] += 1
    counts[LINE_CHARACTERS] += characters
    counts[SHORT_LINES] += characters < SHORT_LINE
    counts[TERMINATED_LINES] += np.searchsorted(terminals, code, "right") & 1
    dots = code == FULL_STOP and end - start >= 3 and values[end - 2] == FULL_STOP and values[end - 3] == FULL_STOP
    counts[ELLIPSIS_LINES] += dots or code == ELLIPSIS
    if kept:
        counts[C4_SENTENCES_ANY_ENDING] += sentences
        if code in C4_ENDINGS and not dots:
            counts[C4_LINES] += 1
            counts[C4_SENTENCES] += sentences
