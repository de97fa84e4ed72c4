"""Letters made from a template, and pages made from one page: many records that share much of their text.

Letters of a family share fixed passages of 3 x 44 words between own passages of 52 words, so of a letter's 180 word
5-grams 3 x 40 are common to the family and 60 its own: any two letters have a Jaccard similarity of about
120 / (120 + 2 x 60) = 0.5, and none may be dropped at 0.8. Pages differ from one page of 352 words in at most three words, so any
two have at least (348 - 30) / (348 + 30) = 0.84, and all but the best-ranked are near-duplicates of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jobs.demo_corpus.composing import Composer
from jobs.demo_corpus.lexicon import END, STOP
from jobs.demo_corpus.near_copies import DROP_NEAR
from jobs.demo_corpus.planted import KEEP, PlantedRecord, PlantedUnit, Quota, Workshop
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.sources import REFERENCE, WEB
from jobs.demo_corpus.vocabulary import ENGLISH, VOCABULARY_SIZE

LETTER, PAGE = "letter", "near_page"
PAGE_GROUP = "near-page"
"""The one group of pages; it lies in all parts of the corpus."""

_FIXED = (44, 44, 44)
_OWN = (18, 16, 16)
_PAGE_WORDS = 350
_PAGE_EDITS = 2
_RARE = VOCABULARY_SIZE // 2


class Letters(PlantedUnit):
    """The block's share of the letters: those with numbers ``first`` and following."""

    def __init__(self, seed: int, first: int, count: int, families: int, quota: Quota) -> None:
        super().__init__()
        self._seed, self._first, self._families = seed, first, families
        for number in range(first, first + count):
            group = f"letter-{number % families:04d}"
            self.members.append(PlantedRecord(quota.take(WEB), LETTER, KEEP, group, "pairwise similarity about 0.5"))

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """Fixed passages by family, own passages by letter, and a number that no other letter has."""
        for family in range(self._families):
            own = [at for at in range(len(self.members)) if (self._first + at) % self._families == family]
            if not own:
                continue
            composer = workshop.composer
            fixed = _passages(composer, Draws(self._seed, "letters", family), REFERENCE, _FIXED, 1)
            varied = _passages(composer, workshop.draws, WEB, _OWN, len(own))
            columns = [_serial_numbers(composer, np.array(own) + self._first)]
            for passage, common in zip(varied, fixed, strict=True):
                columns += [passage, np.repeat(common, len(own), axis=0)]
            columns[-1][:, -1] += END - STOP
            _hand_out(composer, [self.members[at] for at in own], np.column_stack(columns))


class Pages(PlantedUnit):
    """The block's share of the pages that are all nearly the same page."""

    def __init__(self, seed: int, first: int, count: int, quota: Quota) -> None:
        super().__init__()
        self._seed, self._first = seed, first
        detail = "pairwise similarity at least 0.84"
        self.members = [PlantedRecord(quota.take(WEB), PAGE, DROP_NEAR, PAGE_GROUP, detail) for _ in range(count)]

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The page with a number of its own, and two words replaced. The truth table finds the survivor."""
        count = len(self.members)
        if not count:
            return
        composer, draws = workshop.composer, workshop.draws
        (page,) = _passages(composer, Draws(self._seed, "page"), WEB, (_PAGE_WORDS,), 1)
        pages = np.repeat(page, count, axis=0)
        places = draws.below(_PAGE_WORDS - 1, count * _PAGE_EDITS).reshape(count, _PAGE_EDITS)
        rare = _RARE + draws.below(VOCABULARY_SIZE - _RARE, count * _PAGE_EDITS).reshape(count, _PAGE_EDITS)
        pages[np.arange(count)[:, None], places] = composer.lexicon.word_piece(ENGLISH, rare)
        pages[:, -1] += END - STOP
        serial = _serial_numbers(composer, np.arange(count) + self._first)
        _hand_out(composer, self.members, np.column_stack([serial, pages]))


def _passages(
    composer: Composer, draws: Draws, source: int, lengths: tuple[int, ...], count: int
) -> list[NDArray[np.int32]]:
    """For each length, ``count`` passages of that many words: a matrix of pieces, each row ending in a full stop."""
    passages = []
    for length in lengths:
        languages = np.full(count, ENGLISH, dtype=np.int64)
        composed = composer.compose(draws, source, languages, np.full(count, length, dtype=np.int64))
        matrix = composed.numbers.reshape(count, length)
        matrix[:, -1] += STOP - END
        passages.append(matrix)
    return passages


def _serial_numbers(composer: Composer, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """Pieces of ``No 000000123. ``: two words, the second of which makes the text unlike any other."""
    lexicon = composer.lexicon
    columns = [
        np.full(len(numbers), lexicon.piece("No "), dtype=np.int64),
        lexicon.digits + numbers // 1_000_000,
        lexicon.digits + numbers // 1_000 % 1_000,
        lexicon.digits + numbers % 1_000,
        np.full(len(numbers), lexicon.piece(". "), dtype=np.int64),
    ]
    return np.column_stack(columns).astype(np.int32)


def _hand_out(composer: Composer, records: list[PlantedRecord], pieces: NDArray[np.int32]) -> None:
    data, starts = composer.lexicon.render(np.ascontiguousarray(pieces).ravel().astype(np.int32))
    bounds = starts[:: pieces.shape[1]].tolist()
    for at, record in enumerate(records):
        record.text = bytes(data[bounds[at] : bounds[at + 1]])
