"""Every byte sequence that the corpus is made of, in one Arrow array, and the tables from which words are drawn.

A document is a sequence of piece numbers; one ``take`` over the array turns a whole batch of documents into the bytes of
their JSON lines, without a Python string per document. That is where the generator's speed comes from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.demo_corpus.sources import SOURCES
from jobs.demo_corpus.vocabulary import (
    LANGUAGES,
    VOCABULARY_SIZE,
    build_words,
    favoured_ranks,
    sampling_ranks,
)

PLAIN, CAPITAL, COMMA, STOP, PARAGRAPH, END = range(6)
"""The six forms in which every word is stored: before a space; capitalised before a space; before a comma; before a full
stop; at the end of a paragraph; at the end of a text. A word's form has piece number (its first piece) + (the form)."""

FORMS = 6
INTEGERS = 2_000
DAYS = 365
MINUTES = 1_440

_FIRST_DAY = date(2025, 1, 1)
_IDENTIFIERS = 16_384


def json_escaped(text: str) -> bytes:
    """A text as it stands between the quotes of a JSON string in UTF-8; lone surrogates become ``\\u`` escapes."""
    quoted = json.dumps(text, ensure_ascii=False)
    try:
        return quoted[1:-1].encode()
    except UnicodeEncodeError:
        return json.dumps(text)[1:-1].encode()


def json_unescaped(escaped: bytes) -> str:
    """The text of a JSON string without its quotes: the inverse of ``json_escaped``."""
    text: str = json.loads(b'"' + escaped + b'"')
    return text


class Lexicon:
    """The pieces and sampling tables of one seed.

    Attributes:
        pieces: all byte sequences, as they stand in a JSON line.
        lengths: their lengths in bytes.
        digits: first of the 1,000 pieces "000" to "999".
        integers: first of the pieces "0", "1" ... "1999".
        days, minutes: first of the 365 dates ("2025-01-01T") and of the 1,440 times of a day ("00:00:00Z").
        sampling: for each (source, language) that occurs, 2^18 equally likely pieces (words in plain form), one table after
            the other; ``sampling_table`` says which.
        identifiers: 2^18 equally likely pieces, names as they occur in code.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._arrays: list[pa.Array] = []
        self._size = 0
        self._named: dict[bytes, int] = {}
        self.words: list[pa.Array] = [build_words(seed, language) for language in LANGUAGES]
        self._first_word = [self._add_forms(number) for number in range(len(LANGUAGES))]
        self.digits = self._add([f"{number:03d}" for number in range(1_000)])
        self.integers = self._add([str(number) for number in range(INTEGERS)])
        days = [(_FIRST_DAY + timedelta(days=number)).isoformat() + "T" for number in range(DAYS)]
        self.days = self._add(days)
        times = [f"{number // 60:02d}:{number % 60:02d}:00Z" for number in range(MINUTES)]
        self.minutes = self._add(times)
        self._tables: dict[tuple[int, int], int] = {}
        self.sampling = self._sampling()
        self.identifiers = self._add_identifiers()
        self._frozen: tuple[pa.Array, NDArray[np.int32]] | None = None

    @property
    def pieces(self) -> pa.Array:
        """All pieces named so far; see the class."""
        return self._freeze()[0]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The length of each piece in bytes."""
        return self._freeze()[1]

    def piece(self, content: bytes | str) -> int:
        """The number of a piece with this content, added if it is new."""
        key = content.encode() if isinstance(content, str) else content
        if key not in self._named:
            self._named[key] = self._add_array(pa.array([key], type=pa.binary()))
            self._frozen = None
        return self._named[key]

    def word(self, language: int, rank: int) -> str:
        """The word of a language that has a given rank, 0 for the most frequent."""
        text: str = self.words[language][rank].as_py()
        return text

    def word_piece(self, language: int, rank: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pieces of words in plain form; add a form for another."""
        return self._first_word[language] + rank * FORMS

    def sampling_table(self, source: int, language: int) -> int:
        """Which table of ``sampling`` holds a source's words of a language: table t is entries [t * 2^18, (t + 1) * 2^18).

        Raises:
            KeyError: if the source has no documents in that language.
        """
        return self._tables[source, language]

    def render(self, numbers: NDArray[np.int32]) -> tuple[memoryview, NDArray[np.int32]]:
        """The bytes of a sequence of pieces, and where each piece starts in them (one entry more than pieces).

        Raises:
            ValueError: if the bytes would not fit 32-bit offsets.
        """
        taken = pc.take(self.pieces, pa.array(numbers), boundscheck=False)
        if isinstance(taken, pa.ChunkedArray):
            raise ValueError("a batch of more than 2 GiB: compose fewer documents at once")
        _, offsets, data = taken.buffers()
        starts = np.frombuffer(offsets, dtype=np.int32, count=len(numbers) + 1)
        return memoryview(data if data is not None else b""), starts

    def _freeze(self) -> tuple[pa.Array, NDArray[np.int32]]:
        if self._frozen is None:
            pieces = pa.concat_arrays(self._arrays)
            self._arrays = [pieces]
            self._frozen = pieces, pc.binary_length(pieces).to_numpy()
        return self._frozen

    def _add(self, contents: Sequence[str]) -> int:
        return self._add_array(pa.array(contents, type=pa.string()).cast(pa.binary()))

    def _add_array(self, contents: pa.Array) -> int:
        first = self._size
        self._arrays.append(contents)
        self._size += len(contents)
        return first

    def _add_forms(self, number: int) -> int:
        language, words = LANGUAGES[number], self.words[number]
        forms = [words, pc.utf8_capitalize(words), words, words, words, words]
        followers = [
            language.space,
            language.space,
            language.comma,
            language.stop,
            language.paragraph,
            language.end,
        ]
        written = pa.concat_arrays(
            [
                pc.binary_join_element_wise(form, pa.scalar(json_escaped(follower).decode()), "")
                for form, follower in zip(forms, followers, strict=True)
            ]
        )
        # A word's forms stand side by side, frequent words first: what is drawn often stays in the processor's cache.
        together = np.arange(FORMS * VOCABULARY_SIZE).reshape(FORMS, VOCABULARY_SIZE).T.ravel()
        return self._add_array(written.take(pa.array(together)).cast(pa.binary()))

    def _sampling(self) -> NDArray[np.int32]:
        ranks = sampling_ranks(VOCABULARY_SIZE)
        tables: list[NDArray[np.int32]] = []
        for at, source in enumerate(SOURCES):
            favoured = favoured_ranks(self.seed, source.name)[ranks]
            for language, _ in source.languages:
                self._tables[at, language] = len(tables)
                tables.append(self.word_piece(language, favoured).astype(np.int32))
        return np.concatenate(tables)

    def _add_identifiers(self) -> NDArray[np.int32]:
        english = self.words[0].slice(1_000, 2 * _IDENTIFIERS)
        first, second = english.slice(0, _IDENTIFIERS), english.slice(_IDENTIFIERS - 1_000)
        second = pa.concat_arrays([second, english]).slice(0, _IDENTIFIERS)
        snake = pc.binary_join_element_wise(first, second, "_")
        camel = pc.binary_join_element_wise(first, pc.utf8_capitalize(second), "")
        kind = np.arange(_IDENTIFIERS) % 3
        names = pc.if_else(pa.array(kind == 0), first, pc.if_else(pa.array(kind == 1), snake, camel))
        return (self._add_array(names.cast(pa.binary())) + sampling_ranks(_IDENTIFIERS)).astype(np.int32)


@lru_cache(maxsize=2)
def lexicon_of(seed: int) -> Lexicon:
    """The lexicon of a seed, kept for the next call: building one takes some tenths of a second."""
    return Lexicon(seed)
