"""The plan of a corpus: how many records, in which blocks, and which planted units each block holds.

The corpus is a sequence of blocks; file n of every source is made of the blocks n * B to n * B + B - 1. A block holds its share of
every source's records and of every kind of planted unit, and depends on the plan and its own number alone. So blocks can be
made in any order, by any number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.demo_corpus.composing import Composer
from jobs.demo_corpus.copies import BigGroup, ExactGroup, group_size
from jobs.demo_corpus.evaluation import WAYS, ContaminatedDocument, EvaluationItem
from jobs.demo_corpus.letters import Letters, Pages
from jobs.demo_corpus.lexicon import lexicon_of
from jobs.demo_corpus.near_copies import NearChain, NearCluster, cluster_size
from jobs.demo_corpus.oddities import (
    BROKEN_VARIETIES,
    EMPTY_TEXTS,
    LONG_TOKEN,
    ODD_VARIETIES,
    BlockedByDomain,
    BlockedById,
    BrokenLine,
    EmptyText,
    LongToken,
    OddDocument,
    ShortText,
    SymbolSoup,
)
from jobs.demo_corpus.planted import LengthTables, PlantedUnit, Quota
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.records import surroundings
from jobs.demo_corpus.settings import (
    LEAST_DOCUMENTS,
    LEAST_DOCUMENTS_PER_FILE,
    MOST_DOCUMENTS,
    DemoSettings,
    DemoSettingsError,
)
from jobs.demo_corpus.sources import SOURCES, split_documents

BLOCK_DOCUMENTS = 16_384
"""About as many records are in a block; its planted texts are held in memory together."""

_MOST_PLANTED = 0.9

# Units of every kind in the smallest corpora, so that each kind and each of its varieties occurs.
_LEAST_UNITS: Mapping[str, int] = {
    "exact": 10,
    "big": 12,
    "near": 8,
    "chain": 1,
    "letters": 12,
    "pages": 12,
    "short": 3,
    "soup": 3,
    "empty": len(EMPTY_TEXTS),
    "broken": 2 * BROKEN_VARIETIES,
    "odd": 2 * len(ODD_VARIETIES),
    "blocked_domain": 3,
    "blocked_id": 3,
    "contaminated": 3 * len(WAYS),
}
_CHAIN_RECORDS = 3
_SHARE_IN_CHAINS = 0.05


@dataclass(frozen=True)
class Plan:
    """Everything that the bytes of a corpus depend on.

    Attributes:
        seed: of all draws.
        settings: the knobs.
        documents: records of all sources: lines, planted and broken ones included.
        scale: factor on all lengths.
        blocks: blocks of the corpus, a multiple of the files per source.
        units: planted units of each kind.
        planted: records that those units hold.
    """

    seed: int
    settings: DemoSettings
    documents: int
    scale: float
    blocks: int
    units: Mapping[str, int]
    planted: int

    @property
    def blocks_per_file(self) -> int:
        """Blocks of each file."""
        return self.blocks // self.settings.files_per_source

    def first_records(self, block: int) -> list[int]:
        """For each source the number of its first record in a block; those of the next block end it."""
        return [total * block // self.blocks for total in split_documents(self.documents)]

    def block_units(self, block: int, draws: Draws, quota: Quota, items: list[EvaluationItem]) -> list[PlantedUnit]:
        """The planted units of a block, their records assigned to sources within ``quota``."""
        ranges = {
            kind: range(count * block // self.blocks, count * (block + 1) // self.blocks)
            for kind, count in self.units.items()
        }
        units: list[PlantedUnit] = []

        def each(kind: str, make: Callable[[int], PlantedUnit]) -> None:
            units.extend(make(number) for number in ranges[kind])

        each("exact", lambda number: ExactGroup(number, draws, quota))
        each("near", lambda number: NearCluster(number, draws, quota))
        each("chain", lambda number: NearChain(number, draws, quota))
        big, letters, pages = ranges["big"], ranges["letters"], ranges["pages"]
        units.append(BigGroup(self.seed, big.start, len(big), draws, quota))
        families = self.settings.template_families
        units.append(Letters(self.seed, letters.start, len(letters), families, quota))
        units.append(Pages(self.seed, pages.start, len(pages), quota))
        each("short", lambda number: ShortText(number, draws, quota))
        each("soup", lambda number: SymbolSoup(number, draws, quota))
        each("long_token", lambda number: LongToken(number, draws, quota))
        each("empty", lambda number: EmptyText(number, draws, quota))
        each("broken", lambda number: BrokenLine(number, draws, quota))
        each("odd", lambda number: OddDocument(number, draws, quota))
        each("blocked_domain", lambda number: BlockedByDomain(number, draws, quota))
        each("blocked_id", lambda number: BlockedById(number, draws, quota))
        each("contaminated", lambda number: ContaminatedDocument(number, draws, quota, items))
        return units


def make_plan(seed: int, settings: DemoSettings, documents: int | None, megabytes: float | None) -> Plan:
    """The plan of a corpus of so many documents, or of about so many megabytes (10^6 bytes) of uncompressed JSON lines.

    Raises:
        DemoSettingsError: if both or neither are given, if there would be too few or too many documents, or too many planted.
    """
    if (documents is None) == (megabytes is None):
        raise DemoSettingsError("give either documents or megabytes, not both or neither")
    composer = Composer(lexicon_of(seed))
    scale = 1.0 if settings.mean_bytes is None else _scale_for(composer, settings.mean_bytes)
    if documents is None:
        documents = _documents_for(composer, scale, settings, float(megabytes or 0))
    least = max(LEAST_DOCUMENTS, LEAST_DOCUMENTS_PER_FILE * settings.files_per_source)
    if not least <= documents <= MOST_DOCUMENTS:
        size = f" (from megabytes={megabytes})" if megabytes is not None else ""
        raise DemoSettingsError(
            f"{documents} documents{size} with files_per_source={settings.files_per_source}: "
            f"the corpus must have {least} to {MOST_DOCUMENTS}; ask for another size or for fewer files"
        )
    units = _units(settings, documents)
    planted = _planted_records(units)
    if planted > _MOST_PLANTED * documents:
        raise DemoSettingsError(
            f"{planted} of {documents} records would be planted, the limit is {_MOST_PLANTED:.0%}: lower the shares"
        )
    per_file = math.ceil(documents / settings.files_per_source)
    blocks = settings.files_per_source * math.ceil(per_file / BLOCK_DOCUMENTS)
    return Plan(seed, settings, documents, scale, blocks, units, planted)


def _units(settings: DemoSettings, documents: int) -> dict[str, int]:
    near = settings.near_copy_share * documents
    wanted = {
        "exact": settings.exact_copy_share * documents / (sum(map(group_size, range(5))) / 5),
        "big": settings.big_copy_share * documents,
        "near": near * (1 - _SHARE_IN_CHAINS) / (sum(map(cluster_size, range(4))) / 4),
        "chain": near * _SHARE_IN_CHAINS / _CHAIN_RECORDS,
        "letters": settings.template_share * documents,
        "pages": settings.near_page_share * documents,
        "short": settings.junk_share * documents / 2,
        "soup": settings.junk_share * documents / 2,
        "empty": settings.empty_share * documents,
        "broken": settings.broken_share * documents,
        "odd": settings.odd_share * documents,
        "blocked_domain": settings.takedown_share * documents,
        "blocked_id": settings.takedown_share * documents,
        "contaminated": settings.contaminated_share * documents,
    }
    units = {kind: max(round(count), _LEAST_UNITS[kind]) if count else 0 for kind, count in wanted.items()}
    units["long_token"] = 0 if not settings.junk_share else 1 if documents < 10_000 else 2
    return units


def _planted_records(units: Mapping[str, int]) -> int:
    records = sum(count for kind, count in units.items() if kind not in ("exact", "near", "chain"))
    records += sum(map(group_size, range(units["exact"])))
    records += sum(map(cluster_size, range(units["near"])))
    return records + _CHAIN_RECORDS * units["chain"]


def mean_text_bytes(composer: Composer, scale: float) -> list[tuple[float, float]]:
    """For each source the expected bytes of an ordinary text: as it stands in JSON, and as UTF-8 text."""
    lengths, means = LengthTables(scale), []
    for at, source in enumerate(SOURCES):
        json_bytes = text_bytes = 0.0
        for language, share in source.languages:
            in_json, as_text = composer.mean_bytes(at, language)
            mean_length = float(lengths.of(at, language).mean())
            json_bytes += share * mean_length * in_json
            text_bytes += share * mean_length * as_text
        means.append((json_bytes, text_bytes))
    return means


def _scale_for(composer: Composer, mean_bytes: int) -> float:
    """The factor on all lengths that gives the wanted mean, by bisection: the mean grows with the factor."""
    low, high = 2.0**-6, 2.0**8
    for _ in range(30):
        middle = math.sqrt(low * high)
        means = mean_text_bytes(composer, middle)
        mean = sum(source.share * text for source, (_, text) in zip(SOURCES, means, strict=True))
        low, high = (middle, high) if mean < mean_bytes else (low, middle)
    # Rounded, so that the last bits of a sum on another machine can't reach the lengths.
    return round(high, 4)


def _documents_for(composer: Composer, scale: float, settings: DemoSettings, megabytes: float) -> int:
    """How many records have about the given size; letters and pages have their own lengths."""
    mean = 0.0
    for at, (json_bytes, _) in enumerate(mean_text_bytes(composer, scale)):
        samples = np.zeros(16, dtype=np.int64)
        lead, tail = surroundings(composer.lexicon, Draws(0, "sample"), at, samples, samples)
        around = composer.lexicon.lengths[lead].sum() + composer.lexicon.lengths[tail].sum()
        mean += SOURCES[at].share * (json_bytes + float(around) / len(samples))
    word, _ = composer.mean_bytes(0, 0)
    letters, pages = settings.template_share, settings.near_page_share
    mean = mean * (1 - letters - pages) + letters * (184 * word + 150) + pages * (352 * word + 150)
    long_tokens = LONG_TOKEN * (2 if settings.junk_share else 0)
    return max(round((megabytes * 1e6 - long_tokens) / mean), 0)
