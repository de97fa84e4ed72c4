"""The JSON records around the texts: ids, URLs, languages and the attributes of each source.

A record is one line: ``{"id": ..., "text": ..., "url": ..., "lang": ..., <attributes of the source>}``, without spaces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jobs.demo_corpus.lexicon import DAYS, MINUTES, Lexicon
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.sources import SOURCES
from jobs.demo_corpus.vocabulary import LANGUAGE_CODES

BLOCKED_DOMAINS: tuple[str, ...] = ("spam-1.example", "spam-2.example", "casino-3.test")
"""Hosts on the demo corpus's block list."""

DECOY_DOMAIN = "notspam-1.example"
"""A host that ends like a blocked one, is another, and must not be blocked."""

LEAD = 5
"""Pieces before each text."""

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "web": ("fetched_at",),
    "books": ("year",),
    "forum": ("thread", "votes"),
    "code": ("repository",),
    "reference": ("revision",),
}
"""Source name -> the fields that its records have beside id, text, url and lang."""


def document_id(source: int, index: int) -> str:
    """The id of the record with a number in its source, counted from 0: ``web-000000123``."""
    return f"{SOURCES[source].name}-{index:09d}"


TAILS: tuple[int, ...] = (10, 9, 11, 9, 9)
"""Pieces after each text, by source."""


def surroundings(
    lexicon: Lexicon,
    draws: Draws,
    source: int,
    indices: NDArray[np.int64],
    languages: NDArray[np.int64],
    domains: Sequence[str] = (),
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The pieces before and after the texts of some records of a source: two matrices, one row a record.

    Args:
        lexicon: where the pieces are.
        draws: decides hosts and attributes.
        source: position in ``SOURCES``.
        indices: the records' numbers in the source, below 10^9.
        languages: their languages, positions in ``LANGUAGES``.
        domains: a host for each record, "" for one of the source's own; none given means "" for all.
    """
    spec, count = SOURCES[source], len(indices)
    random = draws.words64(2 * count).reshape(count, 2)

    def constant(content: str) -> NDArray[np.int64]:
        return np.full(count, lexicon.piece(content), dtype=np.int64)

    def chosen(first: int, choices: int, shift: int) -> NDArray[np.int64]:
        return first + ((random[:, 1] >> np.uint64(shift)) % np.uint64(choices)).astype(np.int64)

    thousands = lexicon.digits + indices // 1_000 % 1_000
    units = lexicon.digits + indices % 1_000
    lead = [
        constant(f'{{"id":"{spec.name}-'),
        lexicon.digits + indices // 1_000_000,
        thousands,
        units,
        constant('","text":"'),
    ]
    hosts = np.array([lexicon.piece(host + "/") for host in spec.domains], dtype=np.int64)
    host = hosts[(random[:, 0] % np.uint64(len(hosts))).astype(np.int64)]
    for at, domain in enumerate(domains):
        if domain:
            host[at] = lexicon.piece(domain + "/")
    codes = np.array([lexicon.piece(f'","lang":"{code}"') for code in LANGUAGE_CODES], dtype=np.int64)
    tail = [constant('","url":"https://'), host, thousands, units, codes[languages]]
    if spec.name == "web":
        tail += [
            constant(',"fetched_at":"'),
            chosen(lexicon.days, DAYS, 0),
            chosen(lexicon.minutes, MINUTES, 32),
            constant('"'),
        ]
    elif spec.name == "books":
        tail += [constant(',"year":'), chosen(lexicon.integers + 1_800, 200, 0), constant("")]
    elif spec.name == "forum":
        tail += [
            constant(',"thread":"t-'),
            chosen(lexicon.digits, 1_000, 0),
            constant('","votes":'),
            chosen(lexicon.integers, 500, 32),
            constant(""),
        ]
    elif spec.name == "code":
        tail += [constant(',"repository":"repo-'), chosen(lexicon.integers, 2_000, 0), constant('"')]
    else:
        tail += [constant(',"revision":'), chosen(lexicon.integers, 2_000, 0), constant("")]
    tail.append(constant("}\n"))
    return np.column_stack(lead).astype(np.int32), np.column_stack(tail).astype(np.int32)
