"""words_v1: the one word stream that shingles, MinHash and contamination n-grams are made of.

The words of a text are found in two steps:

1. *Folding.* Default-ignorable characters are removed, then the text is decomposed (NFKD), case-folded (full folding,
   as ``str.casefold``) and composed (NFKC). It is the Unicode Standard's toNFKC_Casefold, applied to decomposed text,
   so that canonically equivalent texts fold alike even around the iota subscript.
2. *Cutting.* A word is a maximal run of letters, marks and numbers (general categories L*, M* and N*); everything else
   separates: white space, punctuation, underscore, symbols, emoji, unassigned code points. In scripts written without
   spaces (``unicode_ranges.UNSPACED``: Chinese characters, Kana, Bopomofo, Thai, Lao, Khmer, Myanmar and others; not
   Hangul) each letter is a word, and the marks after it, such as vowel signs and tone marks, belong to it.

Numbers other than decimal digits (Nl, No) count, because NFKC has turned most of them into digits and letters anyway
(⑦, ², Ⅳ): what remains are numerals such as the Ethiopic ones, and a text with other numbers is another text. ½ becomes
1⁄2, whose slash separates: the words 1 and 2. Digits of unspaced scripts form runs like all digits.

The words are stable: joined by spaces and cut again, they are the same words. So a comma, a soft hyphen, another case
or width changes no word. Unicode is pinned (``unicode_tables``); malformed bytes read as U+FFFD, a symbol, and separate.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from udfs.arrow_text import Texts, text_buffers
from udfs.compiled import compiled
from udfs.mapping import SCRATCH_CODES, append_document, with_room
from udfs.unicode_tables import (
    DIGIT,
    GENERAL,
    LETTER,
    MARK_CLASS,
    NUMBER,
    UNSPACED_BIT,
    CompositionTables,
    MappingTables,
    class_table,
    composition_tables,
    folding_tables,
    lookup,
)
from udfs.utf8 import decode
from udfs.xxhash64 import xxhash64

BYTES_PER_WORD = 6
"""First guess at a corpus' bytes for each word; the buffer grows where words are shorter."""

BLOCK = 64
"""Bytes that are cut before the room for words is looked at again."""

WORDS_AT_ONCE = 4096
"""Words whose offsets are kept until they are hashed."""

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

    def of(self, document: int) -> list[str]:
        """Return the words of one document."""
        first, last = self.document_offsets[document], self.document_offsets[document + 1]
        bounds = self.word_offsets[first : last + 1].tolist()
        whole = self.values.data
        return [str(whole[a:b], "utf-8") for a, b in itertools.pairwise(bounds)]

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
    values, word_offsets, document_offsets = _words(
        *text_buffers(texts), folding_tables(), composition_tables(), class_table(), _ascii_word_bytes()
    )
    count = document_offsets[-1]
    return WordStream(values[: word_offsets[count]], word_offsets[: count + 1], document_offsets)


def word_hashes_v1(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """Return the XXH64 (seed 0) of each word's UTF-8 bytes.

    Returns:
        uint64[words], and int64[n + 1]: document d has the hashes from the d-th of these numbers up to the next.
    """
    hashes, document_offsets = _word_hashes(
        *text_buffers(texts), folding_tables(), composition_tables(), class_table(), _ascii_word_bytes()
    )
    return hashes[: document_offsets[-1]], document_offsets


def words_of(text: str) -> list[str]:
    """Return the words of one text. For small things: a corpus goes through ``words_v1``."""
    return words_v1(pa.array([text], pa.string())).of(0)


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
    classes: np.ndarray,
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
            here = written
            out, folded = append_document(
                values, offsets[document], offsets[document + 1], out, here, mapping, composition, scratch
            )
            state = OUTSIDE
            while here < folded:
                here, written, words, state = _cut(
                    out, here, folded, written, word_offsets, words, state, classes, ascii_word
                )
                if here < folded:
                    word_offsets = with_room(word_offsets, words, BLOCK)
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
    classes: np.ndarray,
    ascii_word: np.ndarray,
) -> tuple[int, int, int, int]:
    """Cut the folded text ``out[here:end]`` and move its words together, from ``out[written]`` on.

    Stops at the start of a word for which ``word_offsets`` has no room.

    Returns:
        Where to go on, how much of ``out`` holds words, the number of words, and the state of the cutting.
    """
    while here < end:
        if out[here] < 0x80:
            # At most every second byte starts a word.
            if words + BLOCK // 2 > word_offsets.size:
                return here, written, words, state
            here, written, words, state = _cut_ascii(
                out, here, min(end, here + BLOCK), written, word_offsets, words, state, ascii_word
            )
            continue
        code, length = decode(out, here, end)
        bits = lookup(classes, code)
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
def _cut_ascii(
    out: np.ndarray,
    here: int,
    end: int,
    written: int,
    word_offsets: np.ndarray,
    words: int,
    state: int,
    ascii_word: np.ndarray,
) -> tuple[int, int, int, int]:
    """Do the work of ``_cut`` up to the first byte that isn't ASCII; ``word_offsets`` must have room."""
    text = out[here:end]
    target = out[written : written + text.size]
    starts = word_offsets[words:]
    kept = 0
    found = 0
    in_word = state == IN_RUN
    done = 0
    while done < text.size:
        byte = text[done]
        if byte >= 0x80:
            break
        # Written always, kept sometimes: there is no branch, because where a word ends can't be foreseen. What is
        # written never overtakes what is read.
        is_word = ascii_word[byte]
        target[kept] = byte
        starts[found] = written + kept
        found += is_word & (not in_word)
        kept += is_word
        in_word = is_word
        done += 1
    return here + done, written + kept, words + found, IN_RUN if in_word else OUTSIDE


@compiled
def _word_hashes(
    values: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    mapping: MappingTables,
    composition: CompositionTables,
    classes: np.ndarray,
    ascii_word: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes (uint64, maybe more entries than needed) and the documents' offsets into them.

    Only one document's words are held at a time, and only some thousand of their offsets.
    """
    count = valid.size
    out = np.empty(1024, np.uint8)
    hashes = np.empty((offsets[count] - offsets[0]) // BYTES_PER_WORD + 64, np.uint64)
    document_offsets = np.zeros(count + 1, np.int64)
    scratch = np.empty(SCRATCH_CODES, np.int32)
    bounds = np.empty(WORDS_AT_ONCE + 1, np.int64)
    words = 0
    for document in range(count):
        if valid[document]:
            start = offsets[document]
            end = offsets[document + 1]
            if end - start > out.size:
                out = np.empty(end - start + (end - start) // 32, np.uint8)
            out, folded = append_document(values, start, end, out, 0, mapping, composition, scratch)
            here = 0
            written = 0
            found = 0
            state = OUTSIDE
            while here < folded:
                here, written, found, state = _cut(
                    out, here, folded, written, bounds[:WORDS_AT_ONCE], found, state, classes, ascii_word
                )
                bounds[found] = written
                # The last word may go on, unless this is the end.
                complete = found if here == folded else found - 1
                if words + complete > hashes.size:
                    hashes = with_room(hashes, words, complete)
                for word in range(complete):
                    hashes[words + word] = xxhash64(out, bounds[word], bounds[word + 1])
                words += complete
                bounds[0] = bounds[complete]
                found -= complete
        document_offsets[document + 1] = words
    return hashes, document_offsets
