"""words_v1: the one word stream that shingles, MinHash and contamination n-grams are made of.

The words of a text are found in two steps:

1. *Folding.* Default-ignorable characters are removed, then the text is decomposed (NFKD), case-folded (full folding, as
   ``str.casefold``) and composed (NFKC). It is the Unicode Standard's toNFKC_Casefold, applied to decomposed text, so that canonically
   equivalent texts fold alike even around the iota subscript.
2. *Cutting.* A word is a maximal run of letters, marks and numbers (general categories L*, M* and N*); everything else
   separates: white space, punctuation, underscore, symbols, emoji, unassigned code points. In scripts written
   without spaces (``unicode_ranges.UNSPACED``: Chinese characters, Kana, Bopomofo, Thai, Lao, Khmer, Myanmar ...; not Hangul)
   each letter is a word, and the marks after it, such as vowel signs and tone marks, belong to it.

Numbers other than decimal digits (Nl, No) count, because NFKC has turned most of them into digits and letters anyway (⑦, ½, Ⅳ):
what remains are numerals such as the Ethiopic ones, and a text with other numbers is another text. ½ becomes 1⁄2, whose slash
separates: the words 1 and 2. Digits of unspaced scripts form runs like all digits.

The words are stable: joined by spaces and cut again, they are the same words. So a comma, a soft hyphen, another case or width
changes no word. Unicode is pinned (``unicode_tables``); malformed bytes read as U+FFFD, a symbol, and separate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from udfs.arrow_text import Texts, text_buffers
from udfs.compiled import compiled
from udfs.composition import SCRATCH_CODES, map_and_compose, with_room
from udfs.unicode_tables import (
    DIGIT,
    GENERAL,
    LETTER,
    MARK_CLASS,
    NUMBER,
    UNSPACED_BIT,
    ClassTables,
    CompositionTables,
    MappingTables,
    class_of,
    class_tables,
    composition_tables,
    folding_tables,
)
from udfs.utf8 import decode
from udfs.xxhash64 import xxhash64

BYTES_PER_WORD = 6
"""First guess at a corpus' bytes for each word; the buffer grows where words are shorter."""

OUTSIDE, IN_RUN, AFTER_UNSPACED = range(3)
"""Where the cutting stands: between words, in a run, behind a letter of an unspaced script (only marks may follow)."""


@dataclass(frozen=True)
class WordStream:
    """The words of n documents.

    ``values`` (uint8) holds the folded words one after the other, with nothing between. Word w is
    ``values[word_offsets[w]:word_offsets[w + 1]]`` (int64, one more than there are words), and document d has the words
    ``document_offsets[d]`` up to ``document_offsets[d + 1]`` (int64[n + 1]). A null document has no words.
    """

    values: np.ndarray
    word_offsets: np.ndarray
    document_offsets: np.ndarray

    def to_arrow(self) -> pa.LargeListArray:
        """Return the words as an Arrow array of n lists of strings, without copying."""
        words = pa.LargeStringArray.from_buffers(
            len(self.word_offsets) - 1, pa.py_buffer(self.word_offsets), pa.py_buffer(self.values)
        )
        return pa.LargeListArray.from_arrays(pa.array(self.document_offsets, pa.int64()), words)


def words_v1(texts: Texts) -> WordStream:
    """Cut texts into words.

    Args:
        texts: n strings (or binaries that hold UTF-8), nulls allowed, sliced or chunked.
    """
    buffers = text_buffers(texts)
    values, word_offsets, document_offsets = _words(
        buffers.values,
        buffers.offsets,
        buffers.valid,
        folding_tables(),
        composition_tables(),
        class_tables(),
        _ascii_word_bytes(),
    )
    count = document_offsets[-1]
    return WordStream(values[: word_offsets[count]], word_offsets[: count + 1], document_offsets)


def word_hashes_v1(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """Return the XXH64 (seed 0) of each word's UTF-8 bytes.

    Returns:
        uint64[words], and int64[n + 1]: document d has the hashes from the d-th of these numbers up to the next.
    """
    stream = words_v1(texts)
    return _hashes(stream.values, stream.word_offsets), stream.document_offsets


def words_of(text: str) -> list[str]:
    """Return the words of one text. For small things: a corpus goes through ``words_v1``."""
    words: list[str] = words_v1(pa.array([text], pa.string())).to_arrow()[0].as_py()
    return words


def _ascii_word_bytes() -> np.ndarray:
    """Say of each byte value whether it is an ASCII letter or digit (bool[256])."""
    return np.array([chr(byte).isalnum() and byte < 0x80 for byte in range(256)], np.bool_)


@compiled
def _words(
    values: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    mapping: MappingTables,
    composition: CompositionTables,
    classes: ClassTables,
    ascii_word: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``WordStream``'s arrays; the first two may be longer than needed."""
    count = valid.size
    size = offsets[count] - offsets[0]
    out = np.empty(size + size // 32 + 64, np.uint8)
    word_offsets = np.empty(size // BYTES_PER_WORD + 64, np.int64)
    document_offsets = np.zeros(count + 1, np.int64)
    scratch = np.empty(SCRATCH_CODES, np.int32)
    words = 0
    written = 0
    for document in range(count):
        if valid[document]:
            start = offsets[document]
            end = offsets[document + 1]
            first = written
            position = start
            while position < end:
                position, written, room = map_and_compose(
                    values, start, position, end, out, written, mapping, composition, scratch
                )
                if position < end:
                    out = with_room(out, written, room)
            folded = written
            here = first
            written = first
            state = OUTSIDE
            while here < folded:
                here, written, words, state = _cut(
                    out, here, folded, written, word_offsets, words, state, classes, ascii_word
                )
                if here < folded:
                    word_offsets = with_room(word_offsets, words, 1)
        document_offsets[document + 1] = words
    if words == word_offsets.size:
        word_offsets = with_room(word_offsets, words, 1)
    word_offsets[words] = written
    return out, word_offsets, document_offsets


@compiled
def _cut(
    out: np.ndarray,
    here: int,
    end: int,
    written: int,
    word_offsets: np.ndarray,
    words: int,
    state: int,
    classes: ClassTables,
    ascii_word: np.ndarray,
) -> tuple[int, int, int, int]:
    """Cut the folded text ``out[here:end]`` and move its words together, from ``out[written]`` on.

    Stops at the start of a word for which ``word_offsets`` has no room.

    Returns:
        Where to go on, how much of ``out`` holds words, the number of words, and the state of the cutting.
    """
    while here < end:
        byte = out[here]
        if byte < 0x80:
            if not ascii_word[byte]:
                state = OUTSIDE
                here += 1
                continue
            if state != IN_RUN:
                if words == word_offsets.size:
                    return here, written, words, state
                word_offsets[words] = written
                words += 1
                state = IN_RUN
            # A word byte is written before the next is read: `written` never overtakes `here`.
            while here < end and ascii_word[out[here]]:
                out[written] = out[here]
                written += 1
                here += 1
            continue
        code, length = decode(out, here, end)
        bits = class_of(classes, code)
        general = bits & GENERAL
        if general == MARK_CLASS:
            starts = state == OUTSIDE
            following = AFTER_UNSPACED if state == AFTER_UNSPACED else IN_RUN
        elif bits & UNSPACED_BIT:
            starts = True
            following = AFTER_UNSPACED
        elif general in (LETTER, DIGIT, NUMBER):
            starts = state != IN_RUN
            following = IN_RUN
        else:
            state = OUTSIDE
            here += length
            continue
        if starts:
            if words == word_offsets.size:
                return here, written, words, state
            word_offsets[words] = written
            words += 1
        state = following
        for step in range(length):
            out[written + step] = out[here + step]
        written += length
        here += length
    return here, written, words, state


@compiled
def _hashes(values: np.ndarray, word_offsets: np.ndarray) -> np.ndarray:
    """Return the hash of each word (uint64)."""
    hashes = np.empty(word_offsets.size - 1, np.uint64)
    for word in range(hashes.size):
        hashes[word] = xxhash64(values, word_offsets[word], word_offsets[word + 1])
    return hashes
