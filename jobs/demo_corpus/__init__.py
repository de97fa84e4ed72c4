"""The demo corpus: a seeded generator of raw text in any size, with planted cases and a table of what must become of them.

    generate(folder, documents=10_000, seed=1)

writes ``SOURCE/part-0000.jsonl`` and so on for five sources, ``truth.parquet``, ``eval/items.jsonl``,
``lists/blocked_domains.txt`` and ``lists/takedown_ids.txt``. All of it is invented and ours: nothing is downloaded.

Deterministic: the same seed, size and settings give the same bytes, whatever the number of processes, the hash seed and the
machine (compressed files: under the same zlib). Two ordinary documents share no word 5-gram except by rare chance.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa

from jobs.demo_corpus.composing import Composer
from jobs.demo_corpus.evaluation import evaluation_items, evaluation_lines
from jobs.demo_corpus.lexicon import lexicon_of
from jobs.demo_corpus.plan import Plan, make_plan
from jobs.demo_corpus.planted import NEAR_THRESHOLD
from jobs.demo_corpus.quality import QUALITY_RULES
from jobs.demo_corpus.records import BLOCKED_DOMAINS
from jobs.demo_corpus.settings import DemoFolderError, DemoSettings, DemoSettingsError
from jobs.demo_corpus.sources import SOURCE_NAMES, SOURCE_PRIORITIES
from jobs.demo_corpus.truth import expected_outcomes, read_metadata, with_survivors, write_truth
from jobs.demo_corpus.writer import PartResult, write_part

__all__ = [
    "QUALITY_RULES",
    "SOURCE_NAMES",
    "SOURCE_PRIORITIES",
    "DemoCorpus",
    "DemoFolderError",
    "DemoSettings",
    "DemoSettingsError",
    "expected_outcomes",
    "generate",
    "read_metadata",
]


@dataclass(frozen=True)
class DemoCorpus:
    """What was written.

    Attributes:
        folder: the corpus folder.
        records: lines of each source, planted and broken ones included.
        planted: planted lines of each source.
        bytes: bytes of each source's lines, before compression.
        seconds: how long it took.
        truth_path: the truth table, or None if it wasn't asked for.
        evaluation_path: the evaluation set.
        blocked_domains_path, takedown_ids_path: the block lists, one entry a line.
    """

    folder: Path
    records: dict[str, int]
    planted: dict[str, int]
    bytes: dict[str, int]
    seconds: float
    truth_path: Path | None
    evaluation_path: Path
    blocked_domains_path: Path
    takedown_ids_path: Path

    @property
    def documents(self) -> int:
        """Lines of all sources."""
        return sum(self.records.values())

    @property
    def total_bytes(self) -> int:
        """Bytes of all lines, before compression."""
        return sum(self.bytes.values())


def generate(
    folder: Path,
    *,
    documents: int | None = None,
    megabytes: float | None = None,
    seed: int = 0,
    workers: int = 1,
    truth: bool = True,
    settings: DemoSettings | None = None,
) -> DemoCorpus:
    """Writes a demo corpus into a folder, which is made if need be and must hold no earlier corpus.

    Args:
        folder: where to write.
        documents: records in all, 1,000 or more (100 a file or more).
        megabytes: instead of ``documents``, about how many 10^6 bytes of uncompressed JSON lines.
        seed: of all draws; also of the vocabularies.
        workers: processes; each writes whole files, so more than ``settings.files_per_source`` don't help. They are started with
            ``spawn``: a script that asks for more than one needs an ``if __name__ == "__main__"`` guard.
        truth: whether to write the truth table.
        settings: shares of the planted kinds, lengths and files.

    Raises:
        DemoSettingsError: if the corpus can't be made as asked for.
        DemoFolderError: if the folder already holds files of a corpus.
    """
    started = time.perf_counter()
    settings = settings or DemoSettings()
    if workers < 1:
        raise DemoSettingsError(f"workers is {workers}, but must be at least 1")
    plan = make_plan(seed, settings, documents, megabytes)
    folder = Path(folder)
    _prepare(folder)
    parts = _write_parts(folder, plan, min(workers, settings.files_per_source), truth)
    records, planted, sizes = (
        {name: sum(getattr(part, what)[at] for part in parts) for at, name in enumerate(SOURCE_NAMES)}
        for what in ("records", "planted", "bytes")
    )
    evaluation_path = folder / "eval" / "items.jsonl"
    items = evaluation_items(Composer(lexicon_of(seed)), seed, settings.evaluation_items)
    evaluation_path.write_bytes(evaluation_lines(items))
    domains_path, ids_path = folder / "lists" / "blocked_domains.txt", folder / "lists" / "takedown_ids.txt"
    domains_path.write_bytes("".join(f"{domain}\n" for domain in BLOCKED_DOMAINS).encode())
    blocked_ids = sorted(doc_id for part in parts for doc_id in part.blocked_ids)
    ids_path.write_bytes("".join(f"{doc_id}\n" for doc_id in blocked_ids).encode())
    truth_path = folder / "truth.parquet" if truth else None
    if truth_path is not None:
        metadata = {
            "seed": seed,
            "settings": asdict(settings),
            "documents": plan.documents,
            "sources": {
                name: {"records": records[name], "planted": planted[name], "bytes": sizes[name]}
                for name in SOURCE_NAMES
            },
            "source_priorities": SOURCE_PRIORITIES,
            "survivor": ["source_priority", "doc_id"],
            "decide": ["eligibility", "exact_dedup", "quality_filter", "near_dedup"],
            "quality_rules": [list(rule) for rule in QUALITY_RULES],
            "near_threshold": NEAR_THRESHOLD,
        }
        write_truth(with_survivors(pa.concat_tables(part.truth for part in parts)), truth_path, metadata)
    return DemoCorpus(
        folder=folder,
        records=records,
        planted=planted,
        bytes=sizes,
        seconds=time.perf_counter() - started,
        truth_path=truth_path,
        evaluation_path=evaluation_path,
        blocked_domains_path=domains_path,
        takedown_ids_path=ids_path,
    )


def _prepare(folder: Path) -> None:
    names = (*SOURCE_NAMES, "eval", "lists")
    found = [name for name in (*names, "truth.parquet") if (folder / name).exists()]
    if found:
        raise DemoFolderError(
            f"{folder} already holds {', '.join(found)}: a new corpus would mix with the old one. "
            "Remove them or choose another folder"
        )
    for name in names:
        (folder / name).mkdir(parents=True)


def _write_parts(folder: Path, plan: Plan, workers: int, truth: bool) -> list[PartResult]:
    numbers = range(plan.settings.files_per_source)
    if workers == 1:
        return [write_part(folder, plan, part, truth) for part in numbers]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(write_part, folder, plan, part, truth) for part in numbers]
        return [future.result() for future in futures]
