"""What all planted records share: the record, the unit that creates some of them, and the sources they may take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from jobs.demo_corpus.composing import Composer
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.records import document_id
from jobs.demo_corpus.sources import FORUM, LENGTH_BITS, REFERENCE, SOURCES, WEB, length_table
from jobs.demo_corpus.vocabulary import ENGLISH

KEEP = "keep"
NEAR_THRESHOLD = 0.8
"""Jaccard similarity from which on the truth table expects a near-duplicate to be dropped."""


class Form(Enum):
    """How a planted record is written on its line."""

    RECORD = "a whole record"
    NULL_TEXT = "text is null"
    NO_TEXT = "no text field"
    BARE_TEXT = "text is not a string but the JSON value in `text`"
    CUT = "the line ends in the middle of the text"
    GLUED = "two records on one line"
    BARE_LINE = "the line is the JSON value in `text`, not an object"


@dataclass(slots=True, eq=False)
class PlantedRecord:
    """One planted line of the corpus.

    Attributes:
        source: position in ``SOURCES``.
        kind: what was planted; each record has exactly one kind.
        expected: what the pipeline must do with it, ``keep``, ``reject:<reason>`` or ``drop:<reason>``.
        group: the records that belong together have the same group.
        detail: more about the kind, for people and tests.
        original: the record that it is a copy of, or that survives in its stead.
        jaccard: its exact word-5-gram Jaccard similarity to ``original``.
        language: position in ``LANGUAGES``.
        text: the text as it stands between the quotes of a JSON string.
        domain: a host of its URL, "" for one of its source's.
        form: how the line is written.
        index: its number in its source; known only when the line's place is.
        line: its line in its file, counted from 1; likewise.
    """

    source: int
    kind: str
    expected: str = KEEP
    group: str = ""
    detail: str = ""
    original: PlantedRecord | None = None
    jaccard: float | None = None
    language: int = ENGLISH
    text: bytes = b""
    domain: str = ""
    form: Form = Form.RECORD
    index: int = -1
    line: int = 0

    @property
    def doc_id(self) -> str:
        """The id of the record."""
        return document_id(self.source, self.index)

    @property
    def rank(self) -> tuple[int, int]:
        """The survivor rule [source_priority, doc_id]; ids are of one length, so their numbers order as they do."""
        return SOURCES[self.source].priority, self.index


@dataclass(frozen=True)
class TextRequest:
    """A text to compose: whose style, which language, and bounds for a length drawn from the source's law."""

    source: int
    language: int = ENGLISH
    least: int = 0
    most: int = 1 << 30


class Quota:
    """How many more records each source can take in the block at hand."""

    def __init__(self, records: Sequence[int]) -> None:
        self._left = list(records)

    def take(self, wanted: int) -> int:
        """One place in the wanted source, or where that is full in the source with the most places left.

        Raises:
            ValueError: if no source has a place left.
        """
        source = wanted
        if self._left[wanted] == 0:
            source = max(range(len(self._left)), key=lambda at: (self._left[at], -at))
        if self._left[source] == 0:
            raise ValueError("more planted records than records in a block")
        self._left[source] -= 1
        return source


class LengthTables:
    """The length laws of all sources under one scale."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._tables = {
            (at, language): length_table(source, language, scale)
            for at, source in enumerate(SOURCES)
            for language, _ in source.languages
        }

    def of(self, source: int, language: int) -> NDArray[np.int64]:
        """2^12 equally likely lengths; see ``sources.length_table``."""
        return self._tables[source, language]


@dataclass(frozen=True)
class Workshop:
    """What the planted units make their texts with."""

    composer: Composer
    lengths: LengthTables
    draws: Draws

    def compose(self, requests: Sequence[TextRequest], draws: Draws | None = None) -> list[bytes]:
        """The requested texts, JSON-escaped, in the order of the requests; composed together, a source at a time."""
        draws = draws or self.draws
        texts: list[bytes] = [b""] * len(requests)
        for source in range(len(SOURCES)):
            own = [at for at, request in enumerate(requests) if request.source == source]
            if not own:
                continue
            steps = draws.below(1 << LENGTH_BITS, len(own)).tolist()
            languages, lengths = [], []
            for at, step in zip(own, steps, strict=True):
                request = requests[at]
                table = self.lengths.of(source, request.language)
                languages.append(request.language)
                lengths.append(min(max(int(table[step]), request.least), request.most))
            composed = self.composer.compose(draws, source, np.array(languages), np.array(lengths))
            data, offsets = self.composer.lexicon.render(composed.numbers)
            bounds = offsets[composed.starts].tolist()
            for number, at in enumerate(own):
                texts[at] = bytes(data[bounds[number] : bounds[number + 1]])
        return texts


class PlantedUnit(ABC):
    """Some planted records that belong together: a group of copies, or a single odd record.

    A unit first says in which sources it wants records (its constructor), and which texts it needs. Only when every record
    of the block has its id are the texts handed over, since the best-ranked member of a group has to be the original.
    """

    def __init__(self) -> None:
        self.members: list[PlantedRecord] = []

    def requests(self) -> list[TextRequest]:
        """The texts that the unit needs."""
        return []

    @abstractmethod
    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """Gives every member its text and what is true of it. ``texts`` are those of ``requests``."""

    def ranked(self) -> list[PlantedRecord]:
        """The members, the one that survives under the survivor rule first."""
        return sorted(self.members, key=lambda record: record.rank)


def any_source(draws: Draws) -> int:
    """A source for a single planted record: most go to the two large sources."""
    return (WEB, WEB, WEB, FORUM, FORUM, REFERENCE)[draws.one(6)]
