"""Composing texts as sequences of piece numbers: prose word by word, code line by line, a batch of documents at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.demo_corpus.lexicon import CAPITAL, COMMA, END, PARAGRAPH, PLAIN, STOP, Lexicon, json_escaped
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.sources import SOURCES
from jobs.demo_corpus.vocabulary import SAMPLING_BITS

_FORM_BITS = 32 - SAMPLING_BITS
_FORM_MASK = (1 << _FORM_BITS) - 1

# One number below 2^14 decides what follows a word: 1/16 a comma, 1/14 a full stop, every eighth of those a new paragraph.
_COMMAS = (1 << _FORM_BITS) // 16
_STOPS = (1 << _FORM_BITS) // 14
_PARAGRAPHS = _STOPS // 8


def _form_table() -> NDArray[np.uint8]:
    table = np.full(1 << _FORM_BITS, PLAIN, dtype=np.uint8)
    table[:_COMMAS] = COMMA
    table[_COMMAS : _COMMAS + _STOPS] = STOP
    table[_COMMAS : _COMMAS + _PARAGRAPHS] = PARAGRAPH
    return table


_FORM_OF = _form_table()

CODE_LINES: tuple[str, ...] = (
    "def {i}({i}, {i}):\n",
    "    {i} = {i}({i}, {n})\n",
    "    {i} = {i}.{i}[{i}]\n",
    "    {i}, {i} = {i}({i})\n",
    "    if {i} > {i}:\n        {i} = {i}\n",
    "    if not {i}.{i}:\n        return {i}\n",
    "    for {i} in {i}({i}):\n        {i}.{i}({i})\n",
    "    while {i} != {i}:\n        {i} += {i}\n",
    '    {i}["{i}"] = {i} * {n}\n',
    '    {i} = "{i} {i} {i}"\n',
    "    # {i} {i} {i} {i} {i}\n",
    "    with {i}({i}) as {i}:\n        {i} = {i}.{i}()\n",
    "    return {i}({i}) or {i}\n",
    "\nclass {i}({i}):\n    {i}: {i}\n",
    "from {i}.{i} import {i}, {i}\n",
    "    {i} = [{i} for {i} in {i}]\n",
    "\t{i} = ({i} && {i}) || {i}; // {i} {i}\n",
    "    {i} = {{{i}: {i}, {i}: {n}}}\n",
)
"""Shapes of a line of code, equally likely: ``{i}`` is a name, ``{n}`` a number. Some are two lines long."""

_NAME, _NUMBER = -1, -2


@dataclass(frozen=True)
class Composed:
    """A batch of documents as pieces: document d is ``numbers[starts[d]:starts[d + 1]]``.

    Each starts with ``lead`` and ends with ``tail`` pieces that the caller fills in.
    """

    numbers: NDArray[np.int32]
    starts: NDArray[np.int64]

    def fill(self, lead: NDArray[np.int32], tail: NDArray[np.int32]) -> None:
        """Writes the given pieces, one row a document, before and after each text."""
        first, last = self.starts[:-1, None], self.starts[1:, None]
        self.numbers[first + np.arange(lead.shape[1])] = lead
        self.numbers[last - tail.shape[1] + np.arange(tail.shape[1])] = tail


class Composer:
    """Composes texts with the words of one lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        parsed = [self._parse(line) for line in CODE_LINES]
        self._line_pieces = np.array([number for line in parsed for number in line], dtype=np.int32)
        self._line_counts = np.array([len(line) for line in parsed], dtype=np.int64)
        self._line_starts = np.cumsum(self._line_counts) - self._line_counts

    def compose(
        self,
        draws: Draws,
        source: int,
        languages: NDArray[np.int64],
        lengths: NDArray[np.int64],
        lead: int = 0,
        tail: int = 0,
    ) -> Composed:
        """Texts in a source's style, one for each entry of ``languages`` and ``lengths`` (in words or lines, at least 2),
        with room for ``lead`` and ``tail`` pieces around each."""
        if SOURCES[source].style == "code":
            return self._code(draws, lengths, lead, tail)
        tables = np.array(
            [self.lexicon.sampling_table(source, language) for language in np.unique(languages)],
            dtype=np.uint32,
        )
        at = np.searchsorted(np.unique(languages), languages)
        return self._prose(draws, tables[at], lengths, lead, tail)

    def mean_bytes(self, source: int, language: int) -> tuple[float, float]:
        """Expected bytes of a word, or of a line of code: in JSON, and as text, where a new line is one byte, not two."""
        lexicon = self.lexicon
        if SOURCES[source].style == "code":
            names = float(lexicon.lengths[lexicon.identifiers].mean())
            fixed = self._line_pieces[self._line_pieces >= 0]
            slots = np.count_nonzero(self._line_pieces == _NAME) * names
            slots += 3 * np.count_nonzero(self._line_pieces == _NUMBER)
            total = float(lexicon.lengths[fixed].sum() + slots)
            escapes = sum(len(json_escaped(line)) - len(line) for line in CODE_LINES)
            return total / len(CODE_LINES), (total - escapes) / len(CODE_LINES)
        table = lexicon.sampling_table(source, language) << SAMPLING_BITS
        words = lexicon.sampling[table : table + (1 << SAMPLING_BITS)].astype(np.int64)
        form_shares = np.bincount(_FORM_OF, minlength=END + 1) / len(_FORM_OF)
        total = sum(
            float(share * lexicon.lengths[words + form].mean()) for form, share in enumerate(form_shares) if share
        )
        return total, total - 2 * float(form_shares[PARAGRAPH])

    def _prose(
        self, draws: Draws, tables: NDArray[np.uint32], lengths: NDArray[np.int64], lead: int, tail: int
    ) -> Composed:
        counts = lengths + (lead + tail)
        starts = np.concatenate([[0], np.cumsum(counts)])
        random = draws.words32(int(starts[-1]))
        forms = _FORM_OF[random & np.uint32(_FORM_MASK)]
        # The word after a full stop is capitalised, and can't itself end a sentence.
        forms[starts[:-1] + lead] = CAPITAL
        forms[1:][forms[:-1] >= STOP] = CAPITAL
        forms[starts[1:] - (tail + 1)] = END
        random >>= np.uint32(_FORM_BITS)
        random += np.repeat(tables << np.uint32(SAMPLING_BITS), counts)
        numbers = self.lexicon.sampling[random]
        numbers += forms
        return Composed(numbers, starts)

    def _code(self, draws: Draws, lengths: NDArray[np.int64], lead: int, tail: int) -> Composed:
        lines = draws.below(len(CODE_LINES), int(lengths.sum()))
        counts = self._line_counts[lines]
        ends = np.cumsum(counts)
        total = int(ends[-1])
        within = np.arange(total) - np.repeat(ends - counts, counts)
        pieces = self._line_pieces[np.repeat(self._line_starts[lines], counts) + within]
        random = draws.words32(total)
        names = pieces == _NAME
        pieces[names] = self.lexicon.identifiers[random[names] >> np.uint32(_FORM_BITS)]
        numerals = pieces == _NUMBER
        pieces[numerals] = self.lexicon.digits + (random[numerals] % np.uint32(1_000)).astype(np.int32)
        text_ends = np.concatenate([[0], ends[np.cumsum(lengths) - 1]])
        text_counts = np.diff(text_ends)
        starts = np.concatenate([[0], np.cumsum(text_counts + (lead + tail))])
        numbers = np.zeros(int(starts[-1]), dtype=np.int32)
        numbers[np.arange(total) + np.repeat(starts[:-1] + lead - text_ends[:-1], text_counts)] = pieces
        return Composed(numbers, starts)

    def _parse(self, line: str) -> list[int]:
        numbers = []
        for part in re.split(r"(\{i\}|\{n\})", line):
            if part == "{i}":
                numbers.append(_NAME)
            elif part == "{n}":
                numbers.append(_NUMBER)
            elif part:
                numbers.append(self.lexicon.piece(json_escaped(part.replace("{{", "{").replace("}}", "}"))))
        return numbers
