"""The five sources of the demo corpus: how many documents, how long, in which languages, and what their records carry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from jobs.demo_corpus.vocabulary import CHINESE, ENGLISH, GERMAN, LANGUAGES, RUSSIAN

LENGTH_BITS = 12
"""Lengths are drawn from 2^12 quantiles."""

LANGUAGE_BITS = 10
"""Languages are drawn with 10 bits, so shares hold to 0.1 %."""


@dataclass(frozen=True)
class Source:
    """One source of the demo corpus.

    Attributes:
        name: its name, the folder of its files, and the prefix of its document ids.
        priority: 1 is the best; the first key of the survivor rule [source_priority, doc_id].
        share: its share of all records.
        languages: (position in ``LANGUAGES``, share of the source's documents); the shares sum to 1.
        style: "prose" (lengths in words) or "code" (lengths in lines).
        median: median length, in words or lines, of a log-normal law.
        spread: the law's sigma, the standard deviation of the logarithm of the length.
        longest: lengths are cut here.
        domains: hosts of its URLs.
        compressed: whether its files are gzip.
        batch: documents composed at once; sized so that the arrays of a batch stay in a core's cache.
    """

    name: str
    priority: int
    share: float
    languages: tuple[tuple[int, float], ...]
    style: str
    median: float
    spread: float
    longest: int
    domains: tuple[str, ...]
    compressed: bool
    batch: int


def _hosts(stem: str, count: int, ending: str = "example") -> tuple[str, ...]:
    return tuple(f"{stem}-{number}.{ending}" for number in range(1, count + 1))


SOURCES: tuple[Source, ...] = (
    Source(
        name="web",
        priority=5,
        share=0.50,
        languages=((ENGLISH, 0.6), (GERMAN, 0.15), (RUSSIAN, 0.15), (CHINESE, 0.1)),
        style="prose",
        median=200,
        spread=0.7,
        longest=20_000,
        domains=(*_hosts("news", 12), *_hosts("blog", 8), *_hosts("shop", 4, "test")),
        compressed=False,
        batch=512,
    ),
    Source(
        name="books",
        priority=2,
        share=0.02,
        languages=((ENGLISH, 0.7), (GERMAN, 0.2), (RUSSIAN, 0.1)),
        style="prose",
        median=3_300,
        spread=0.5,
        longest=20_000,
        domains=_hosts("library", 3),
        compressed=False,
        batch=32,
    ),
    Source(
        name="forum",
        priority=4,
        share=0.30,
        languages=((ENGLISH, 0.5), (GERMAN, 0.2), (RUSSIAN, 0.2), (CHINESE, 0.1)),
        style="prose",
        median=32,
        spread=0.4,
        longest=20_000,
        domains=_hosts("board", 6),
        compressed=True,
        batch=2_048,
    ),
    Source(
        name="code",
        priority=3,
        share=0.10,
        languages=((ENGLISH, 1.0),),
        style="code",
        median=15,
        spread=0.65,
        longest=5_000,
        domains=_hosts("git", 3, "test"),
        compressed=False,
        batch=1_024,
    ),
    Source(
        name="reference",
        priority=1,
        share=0.08,
        languages=((ENGLISH, 0.55), (GERMAN, 0.15), (RUSSIAN, 0.15), (CHINESE, 0.15)),
        style="prose",
        median=460,
        spread=0.5,
        longest=20_000,
        domains=_hosts("wiki", 4),
        compressed=False,
        batch=256,
    ),
)
SOURCE_NAMES: tuple[str, ...] = tuple(source.name for source in SOURCES)
WEB, BOOKS, FORUM, CODE, REFERENCE = range(5)
"""Positions in ``SOURCES``: sources travel as these small integers."""

SOURCE_PRIORITIES: dict[str, int] = {source.name: source.priority for source in SOURCES}
"""Source name -> priority; the survivor rule of the demo corpus is [source_priority, doc_id]."""

# With these floors a text has at least 60 characters, the limit of the first quality rule: a word of an alphabetic language
# and what follows it are two characters or more, a Chinese word is one or more, a line of code ten or more.
_SHORTEST_WORDS = tuple(60 if language.space == "" else 30 for language in LANGUAGES)
_SHORTEST_LINES = 6


def shortest(source: Source, language: int) -> int:
    """The least length of an ordinary document of a source, in words or lines."""
    return _SHORTEST_LINES if source.style == "code" else _SHORTEST_WORDS[language]


def length_table(source: Source, language: int, scale: float = 1.0) -> NDArray[np.int64]:
    """2^12 equally likely lengths, in words or lines, of a source's documents in one language.

    They are the quantiles of a log-normal law, length = ``scale`` * median * exp(sigma * z), z the normal quantile at the
    middle of each of 2^12 equal steps of probability, cut to [``shortest``, ``scale`` * longest].
    """
    least, most = shortest(source, language), round(max(scale, 1.0) * source.longest)
    lengths = np.rint(scale * source.median * _factors(source.spread)).astype(np.int64)
    return np.clip(lengths, least, most)


@lru_cache
def _factors(spread: float) -> NDArray[np.float64]:
    law, steps = NormalDist(), 1 << LENGTH_BITS
    return np.array([math.exp(spread * law.inv_cdf((step + 0.5) / steps)) for step in range(steps)])


def language_table(source: Source) -> NDArray[np.int64]:
    """2^10 equally likely positions in ``LANGUAGES``: a uniform 10-bit number looked up here follows the source's shares."""
    edges = np.cumsum([0.0, *(share for _, share in source.languages)])
    counts = np.diff(np.rint(edges * (1 << LANGUAGE_BITS)).astype(np.int64))
    return np.repeat([language for language, _ in source.languages], counts)


def split_documents(documents: int) -> list[int]:
    """How many of ``documents`` records each source gets, in the order of ``SOURCES``: largest remainders, sum exact."""
    exact = [source.share * documents for source in SOURCES]
    counts = [math.floor(value + 1e-9) for value in exact]
    by_remainder = sorted(range(len(SOURCES)), key=lambda at: (counts[at] - exact[at], at))
    for at in by_remainder[: documents - sum(counts)]:
        counts[at] += 1
    return counts
