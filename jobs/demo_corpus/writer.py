"""Writes one file of each source: ordinary documents composed in batches, with the planted records between them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jobs.demo_corpus.composing import Composer
from jobs.demo_corpus.copies import BLOCKED_ID
from jobs.demo_corpus.evaluation import EvaluationItem, evaluation_items
from jobs.demo_corpus.lexicon import lexicon_of
from jobs.demo_corpus.plan import Plan
from jobs.demo_corpus.planted import Form, LengthTables, PlantedRecord, Quota, Workshop
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.records import LEAD, TAILS, surroundings
from jobs.demo_corpus.sources import LANGUAGE_BITS, LENGTH_BITS, SOURCES, language_table
from jobs.demo_corpus.truth import TRUTH_SCHEMA, truth_rows

_GZIP_LEVEL = 1
_WRITE_BUFFER = 1 << 20
_LANGUAGE_MASK = np.uint64((1 << LANGUAGE_BITS) - 1)
_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)


@dataclass(frozen=True)
class PartResult:
    """What was written: for each source the records, planted ones among them, and bytes of JSON lines before compression."""

    records: list[int]
    planted: list[int]
    bytes: list[int]
    blocked_ids: list[str]
    truth: pa.Table


def part_name(source: int, part: int) -> str:
    """The name of a file, relative to the corpus folder."""
    ending = ".jsonl.gz" if SOURCES[source].compressed else ".jsonl"
    return f"{SOURCES[source].name}/part-{part:04d}{ending}"


def write_part(folder: Path, plan: Plan, part: int, truth: bool) -> PartResult:
    """Writes file number ``part`` of every source; their folders exist. The bytes depend on ``plan`` and ``part`` alone.

    Args:
        folder: the corpus folder.
        plan: the corpus.
        part: number of the file, from 0.
        truth: whether to collect the rows of the truth table.
    """
    return _PartWriter(plan, part, truth).write(folder)


class _PartWriter:
    def __init__(self, plan: Plan, part: int, truth: bool) -> None:
        self._plan, self._part, self._truth = plan, part, truth
        self._composer = Composer(lexicon_of(plan.seed))
        self._lengths = LengthTables(plan.scale)
        self._languages = [language_table(source) for source in SOURCES]
        self._items: list[EvaluationItem] = []
        if plan.units["contaminated"]:
            self._items = evaluation_items(self._composer, plan.seed, plan.settings.evaluation_items)
        self._files = [part_name(source, part) for source in range(len(SOURCES))]
        self._lines = [0] * len(SOURCES)
        self._bytes = [0] * len(SOURCES)
        self._planted = [0] * len(SOURCES)
        self._blocked_ids: list[str] = []
        self._rows: list[pa.Table] = []

    def write(self, folder: Path) -> PartResult:
        first = self._part * self._plan.blocks_per_file
        with ExitStack() as stack:
            outputs = [self._open(stack, folder, source) for source in range(len(SOURCES))]
            for block in range(first, first + self._plan.blocks_per_file):
                self._write_block(outputs, block)
        table = pa.concat_tables(self._rows) if self._rows else TRUTH_SCHEMA.empty_table()
        return PartResult(self._lines, self._planted, self._bytes, self._blocked_ids, table)

    def _open(self, stack: ExitStack, folder: Path, source: int) -> IO[bytes]:
        raw = stack.enter_context((folder / self._files[source]).open("wb", buffering=_WRITE_BUFFER))
        if not SOURCES[source].compressed:
            return raw
        # No name and no time in the header, so that equal content is equal bytes (under the same zlib).
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=raw, mtime=0)
        return stack.enter_context(cast(IO[bytes], packed))

    def _write_block(self, outputs: list[IO[bytes]], block: int) -> None:
        firsts, ends = self._plan.first_records(block), self._plan.first_records(block + 1)
        counts = [end - first for first, end in zip(firsts, ends, strict=True)]
        draws = Draws(self._plan.seed, "planted", block)
        units = self._plan.block_units(block, draws, Quota(counts), self._items)
        by_source: list[list[PlantedRecord]] = [[] for _ in SOURCES]
        for unit in units:
            for record in unit.members:
                by_source[record.source].append(record)
        places = [draws.distinct(count, len(own)) for count, own in zip(counts, by_source, strict=True)]
        for source, own in enumerate(by_source):
            # A shuffle, so that the members of a group aren't in the order in which they were planned.
            order = np.argsort(draws.words64(len(own)), kind="stable").tolist()
            for at, place in zip(order, places[source], strict=True):
                own[at].index = firsts[source] + place
                own[at].line = self._lines[source] + place + 1
            own.sort(key=lambda record: record.index)
        workshop = Workshop(self._composer, self._lengths, draws)
        requests = [unit.requests() for unit in units]
        texts = iter(workshop.compose([request for of_unit in requests for request in of_unit]))
        for unit, of_unit in zip(units, requests, strict=True):
            unit.write([next(texts) for _ in of_unit], workshop)
        for source, own in enumerate(by_source):
            lines = self._planted_lines(source, own, draws)
            before = [record.index - firsts[source] - at for at, record in enumerate(own)]
            ordinary = np.setdiff1d(np.arange(counts[source]), places[source]) + firsts[source]
            for piece in self._woven(source, block, ordinary, lines, before):
                outputs[source].write(piece)
                self._bytes[source] += len(piece)
            self._lines[source] += counts[source]
            self._planted[source] += len(own)
            self._blocked_ids += [record.doc_id for record in own if record.kind == BLOCKED_ID]
            if self._truth:
                self._rows.append(truth_rows(own, self._files))

    def _planted_lines(self, source: int, records: list[PlantedRecord], draws: Draws) -> list[bytes]:
        if not records:
            return []
        indices = np.array([record.index for record in records])
        languages = np.array([record.language for record in records])
        domains = [record.domain for record in records]
        lexicon = self._composer.lexicon
        lead, tail = surroundings(lexicon, draws, source, indices, languages, domains)
        data, starts = lexicon.render(np.column_stack([lead, tail]).ravel())
        bounds = starts[:: LEAD + TAILS[source]].tolist()
        middles = starts[LEAD :: LEAD + TAILS[source]].tolist()
        lines = []
        for at, record in enumerate(records):
            before = bytes(data[bounds[at] : middles[at]])
            lines.append(_line(record, before, bytes(data[middles[at] : bounds[at + 1]])))
        return lines

    def _woven(
        self, source: int, block: int, ordinary: NDArray[np.int64], planted: list[bytes], before: list[int]
    ) -> Iterator[bytes | memoryview]:
        """The ordinary documents with those numbers; planted line k comes before ordinary document ``before[k]``."""
        batch, done = SOURCES[source].batch, 0
        for first in range(0, len(ordinary), batch):
            data, bounds = self._batch(source, block, ordinary[first : first + batch])
            written = 0
            while done < len(planted) and before[done] < first + batch:
                # Beyond the last document the place is the end.
                bound = int(bounds[min(before[done] - first, len(bounds) - 1)])
                if bound > written:
                    yield data[written:bound]
                    written = bound
                yield planted[done]
                done += 1
            yield data[written : int(bounds[-1])]
        yield from planted[done:]

    def _batch(self, source: int, block: int, indices: NDArray[np.int64]) -> tuple[memoryview, NDArray[np.int32]]:
        """The JSON lines of ordinary documents, and where each begins."""
        draws = Draws(self._plan.seed, SOURCES[source].name, block, int(indices[0]))
        random = draws.words64(len(indices))
        languages = self._languages[source][(random & _LANGUAGE_MASK).astype(np.int64)]
        steps = ((random >> np.uint64(LANGUAGE_BITS)) & _LENGTH_MASK).astype(np.int64)
        lengths = np.empty(len(indices), dtype=np.int64)
        for language, _ in SOURCES[source].languages:
            own = languages == language
            lengths[own] = self._lengths.of(source, language)[steps[own]]
        lead, tail = surroundings(self._composer.lexicon, draws, source, indices, languages)
        composed = self._composer.compose(draws, source, languages, lengths, LEAD, TAILS[source])
        composed.fill(lead, tail)
        data, starts = self._composer.lexicon.render(composed.numbers)
        return data, starts[composed.starts]


def _line(record: PlantedRecord, before: bytes, after: bytes) -> bytes:
    """The line of a planted record; ``before`` ends with the quote that opens the text, ``after`` starts with its end."""
    whole = before + record.text + after
    match record.form:
        case Form.NULL_TEXT:
            return before[:-1] + b"null" + after[1:]
        case Form.NO_TEXT:
            return before.removesuffix(b',"text":"') + after[1:]
        case Form.BARE_TEXT:
            return before[:-1] + record.text + after[1:]
        case Form.CUT:
            return whole[: len(before) + len(record.text) // 2] + b"\n"
        case Form.GLUED:
            second = whole.replace(record.doc_id.encode(), record.doc_id.encode() + b"-glued", 1)
            return whole.rstrip(b"\n") + second
        case Form.BARE_LINE:
            return record.text + b"\n"
        case _:
            return whole
