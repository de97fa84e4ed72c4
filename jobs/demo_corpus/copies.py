"""Exact copies: groups of records whose texts are equal under ``norm_v1``, within a source and across sources."""

from __future__ import annotations

from jobs.demo_corpus.lexicon import json_escaped, json_unescaped
from jobs.demo_corpus.planted import PlantedRecord, PlantedUnit, Quota, TextRequest, Workshop
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.sources import BOOKS, CODE, FORUM, REFERENCE, SOURCES, WEB
from jobs.demo_corpus.variations import BYTE_EQUAL, NFD, VARIATIONS, vary
from jobs.demo_corpus.vocabulary import CHINESE, ENGLISH, GERMAN, RUSSIAN

ORIGINAL, COPY = "exact_original", "exact_copy"
DROP_COPY = "drop:exact_duplicate"
DROP_BLOCKED_ID = "drop:blocked_id"
BLOCKED_ID = "blocked_id"

BIG_GROUP = "exact-big"
"""The group that grows with the corpus and lies in all parts of it."""

_SIZES = (2, 3, 4, 5, 6)
_STYLES = (WEB, REFERENCE, WEB, FORUM, CODE, WEB, REFERENCE, WEB, FORUM, WEB)
_LANGUAGES = (ENGLISH, GERMAN, RUSSIAN, CHINESE)
_TAKEN_DOWN_EVERY = 20
_BOOKS_EVERY = 50


def group_size(number: int) -> int:
    """Members of the group with that number: 2 to 6 in turn."""
    return _SIZES[number % len(_SIZES)]


class ExactGroup(PlantedUnit):
    """Two to six records with one text. One survives: the best-ranked that is not taken down.

    In every twentieth group the best-ranked member is on the takedown list, so that the next one has to be kept instead.
    """

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__()
        self._number = number
        # Group sizes repeat every five groups, so the style moves on by one more each time it has come round.
        self._style = BOOKS if number % _BOOKS_EVERY == _BOOKS_EVERY - 1 else _STYLES[(number + number // 10) % 10]
        spoken = [language for language, _ in SOURCES[self._style].languages]
        wanted = _LANGUAGES[number % len(_LANGUAGES)]
        self._language = wanted if wanted in spoken else ENGLISH
        elsewhere = (CODE, WEB) if self._style == CODE else (self._style, WEB, FORUM, REFERENCE)
        homes = (self._style,) if number % 3 == 0 else elsewhere
        group = f"exact-{number:07d}"
        for _ in range(group_size(number)):
            source = quota.take(homes[draws.one(len(homes))])
            self.members.append(PlantedRecord(source, COPY, DROP_COPY, group, language=self._language))

    def requests(self) -> list[TextRequest]:
        """One text for the whole group."""
        return [TextRequest(self._style, self._language)]

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The text, in another variation for each copy; and who survives."""
        ranked = self.ranked()
        for record in ranked:
            record.text, record.detail = texts[0], BYTE_EQUAL
        if self._number % _TAKEN_DOWN_EVERY == 0:
            blocked = ranked.pop(0)
            blocked.kind, blocked.expected = BLOCKED_ID, DROP_BLOCKED_ID
            blocked.detail = "the best-ranked of a group of exact copies"
        survivor, copies = ranked[0], ranked[1:]
        survivor.kind, survivor.expected, survivor.detail = ORIGINAL, "keep", ""
        text = json_unescaped(texts[0])
        for turn, copy in enumerate(copies):
            variation = VARIATIONS[(self._number + turn) % len(VARIATIONS)]
            if turn == 0 and self._language in (GERMAN, RUSSIAN):
                variation = NFD
            copy.original = survivor
            if variation != BYTE_EQUAL:
                changed, copy.detail = vary(text, variation, turn)
                copy.text = json_escaped(changed)


class BigGroup(PlantedUnit):
    """The block's share of one text that occurs very often in the corpus.

    The members of other blocks aren't known here, so the truth table finds the survivor when all blocks are written.
    """

    def __init__(self, seed: int, first: int, count: int, draws: Draws, quota: Quota) -> None:
        super().__init__()
        self._seed, self._first = seed, first
        for _ in range(count):
            source = quota.take((WEB, WEB, FORUM)[draws.one(3)])
            self.members.append(PlantedRecord(source, COPY, DROP_COPY, BIG_GROUP))

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The same bytes for most members, a variation for every tenth."""
        if not self.members:
            return
        request = TextRequest(WEB, ENGLISH, least=150, most=300)
        (escaped,) = workshop.compose([request], Draws(self._seed, "big group of exact copies"))
        text = json_unescaped(escaped)
        for number, record in enumerate(self.members, self._first):
            record.text, record.detail = escaped, BYTE_EQUAL
            if number % 10 == 9:
                changed, record.detail = vary(text, VARIATIONS[1 + number // 10 % 3], number // 10)
                record.text = json_escaped(changed)
