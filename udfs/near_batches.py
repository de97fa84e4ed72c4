"""The stages of near_dedup that run on Arrow batches: signing, buckets, groups, and the walk that decides.

For ``mapInArrow``. Each stage but signing takes in its whole partition before it gives anything out; partitions are
sized by the job. None of it depends on the order of rows within a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from udfs.components import bucket_edges, components
from udfs.minhash import signature_array, signatures
from udfs.shingle_store import ShingleStore
from udfs.survivors import KEPT, Walk, walk

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

EDGES = "left_node BIGINT, right_node BIGINT"
LABELS = "node BIGINT, label BIGINT"
WALKED = (
    "held_in STRING, doc_id STRING, source STRING, batch STRING, label BIGINT, position BIGINT, "
    "kept_id STRING, kept_in STRING, kept_position BIGINT, similarity DOUBLE, shared_bands INT, group_size BIGINT, "
    "copy BOOLEAN, fixed BOOLEAN, protected BOOLEAN, compared BIGINT, capped BOOLEAN, "
    "bands ARRAY<BIGINT>, rejected ARRAY<BIGINT>"
)
ROWS_PER_BATCH = 10_000


@dataclass(frozen=True)
class Comparing:
    """How candidates are compared; see ``udfs.survivors.walk``."""

    threshold: float
    method: str
    cap: int
    slack: float
    shingle_words: int
    bands: int
    permutations: int


def sign_batches(shingle_words: int, bands: int, rows: int, seed: int) -> Stage:
    """(any columns, text) to (these columns, the struct ``minhash``)."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *others, texts = batch.columns
            signed = signature_array(signatures(texts, words=shingle_words, bands=bands, rows=rows, seed=seed))
            yield pa.RecordBatch.from_arrays([*others, signed], names=[*batch.schema.names[:-1], "minhash"])

    return run


def edge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Memberships (key, node) to edges: a bucket's smallest node with each other one.

    A node that stands in a bucket more than once (documents with the same words) has an edge with itself. All of a
    key's memberships must be in one partition.
    """
    keys, nodes = _columns(batches, "key", "node")
    order = np.lexsort((nodes, keys))
    keys, nodes = keys[order], nodes[order]
    again = (keys[1:] == keys[:-1]) & (nodes[1:] == nodes[:-1])
    repeated = np.unique(nodes[1:][again])
    single = np.concatenate([[True], ~again]) if keys.size else np.empty(0, np.bool_)
    left, right = bucket_edges(keys[single], nodes[single])
    left, right = np.concatenate([left, repeated]), np.concatenate([right, repeated])
    yield from _cut([pa.array(left), pa.array(right)], ["left_node", "right_node"])


def label_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All edges, in one partition, to the label of each node: the smallest node of its group."""
    nodes, labels = components(*_columns(batches, "left_node", "right_node"))
    yield from _cut([pa.array(nodes), pa.array(labels)], ["node", "label"])


def walk_batches(comparing: Comparing) -> Stage:
    """Documents of whole groups to what becomes of them (``WALKED``).

    Takes ``held_in``, ``doc_id``, ``source``, ``batch``, ``label``, ``position`` (rank within the group, from 1),
    ``fixed`` and ``protected`` (never dropped), ``fingerprint``, ``leading`` (the best of those with the same words, and
    perhaps its best protected one), and for the leading ones ``bands``, ``sketch`` and ``text``.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        with ShingleStore(comparing.shingle_words) as store:
            for batch in batches:
                if not batch.num_rows:
                    continue
                if comparing.method != "signature":
                    # Of a text only its shingles are kept, and these on disk where they are many.
                    store.add(batch.filter(batch.column("leading")).column("text"))
                    batch = batch.drop_columns(["text"])
                held.append(batch)
            if not held:
                return
            table = pa.Table.from_batches(held)
            order = np.lexsort((_numbers(table, "position"), _numbers(table, "label")))
            arrived = _flags(table, "leading")
            table = table.take(pa.array(order))
            first = _flags(table, "leading")
            # Where the shingles of each leading document are: they came in another order.
            number = np.cumsum(arrived) - 1
            walked = _walked(table.filter(pa.array(first)), comparing, store, number[order[first]])
            yield from _judged(table, first, table.filter(pa.array(first)), walked)

    return run


def _walked(leading: pa.Table, comparing: Comparing, store: ShingleStore, arrival: np.ndarray) -> Walk:
    keys = _flat(leading.column("bands")).reshape(-1, comparing.bands)
    sketches = _fixed(leading.column("sketch"), comparing.permutations)
    if comparing.method == "signature":
        sets, starts, ends = np.empty(0, np.uint64), *np.zeros((2, leading.num_rows), np.int64)
    else:
        sets, offsets = store.sets()
        starts, ends = offsets[arrival], offsets[arrival + 1]
    return walk(
        keys, sketches, sets, starts, ends,
        threshold=comparing.threshold, method=comparing.method, cap=comparing.cap, slack=comparing.slack,
        protected=_flags(leading, "protected") | _flags(leading, "fixed"),
    )  # fmt: skip


def _judged(table: pa.Table, first: np.ndarray, leading: pa.Table, walked: Walk) -> Iterator[pa.RecordBatch]:
    """Rows of ``WALKED``: what was found for the leading documents, and for the copies of each."""
    rows = np.flatnonzero(first)
    prints = pa.chunked_array(table.column("fingerprint")).combine_chunks().dictionary_encode()
    codes = prints.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    # Two documents of one fingerprint have one node, so one label; the best comes first and leads the others.
    leader = np.full(len(prints.dictionary), -1, np.int64)
    leader[codes[rows[::-1]]] = np.arange(rows.size)[::-1]
    mine = leader[codes]
    mine[rows] = np.arange(rows.size)
    if (mine < 0).any():  # the leading document's text is gone: the job counts such ones, and refuses
        present = pa.array(mine >= 0)
        yield from _judged(table.filter(present), first[mine >= 0], leading, walked)
        return
    copies = ~first
    twins = walked.twins[mine]
    similarities = walked.similarities[mine]
    bands = walked.bands[mine]
    protected, fixed = _flags(table, "protected"), _flags(table, "fixed")
    stays = copies & (protected | fixed)
    of_kept = copies & (twins == KEPT) & ~stays
    twins[of_kept] = mine[of_kept]
    similarities[of_kept] = 1.0
    bands[of_kept] = len(leading.column("bands")[0]) if leading.num_rows else 0
    twins[stays] = KEPT
    kept = twins == KEPT
    sizes = np.bincount(twins[~kept], minlength=rows.size) + 1
    ids, positions = leading.column("doc_id").combine_chunks(), leading.column("position").to_numpy()
    target = pa.array(np.where(kept, 0, twins), mask=kept)
    proven = kept & first
    proof = pa.array(np.where(proven, mine, 0), mask=~proven)
    arrays = [
        table.column("held_in"),
        table.column("doc_id"),
        table.column("source"),
        table.column("batch"),
        table.column("label"),
        table.column("position"),
        ids.take(target),
        leading.column("held_in").combine_chunks().take(target),
        pa.array(positions).take(target),
        pa.array(np.where(kept, 0.0, similarities), mask=kept),
        pa.array(bands.astype(np.int32), mask=kept),
        pa.array(sizes[np.where(kept, mine, twins)]),
        pa.array(copies),
        pa.array(fixed),
        pa.array(protected),
        pa.array(np.where(copies, 0, walked.compared[mine])),
        pa.array(walked.capped[mine] & first),
        leading.column("bands").combine_chunks().take(proof),
        _positions(_lists(walked, rows.size), positions).take(proof),
    ]
    names = [part.split()[0] for part in WALKED.split(", ")]
    yield from _cut(arrays, names)


def _lists(walked: Walk, documents: int) -> pa.ListArray:
    """The better documents that each was compared with in vain."""
    order = np.argsort(walked.rejected[:, 1], kind="stable")
    counts = np.bincount(walked.rejected[:, 1], minlength=documents)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(walked.rejected[order, 0]))


def _positions(rejected: pa.ListArray, positions: np.ndarray) -> pa.ListArray:
    return pa.ListArray.from_arrays(rejected.offsets, pa.array(positions[rejected.values.to_numpy()]))


def _columns(batches: Iterable[pa.RecordBatch], *names: str) -> list[np.ndarray]:
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return [np.empty(0, np.int64) for _ in names]
    table = pa.Table.from_batches(held)
    return [_numbers(table, name) for name in names]


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table.column(name).to_numpy(), np.int64)


def _flags(table: pa.Table, name: str) -> np.ndarray:
    return np.array(table.column(name).to_numpy(), np.bool_)


def _flat(lists: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(lists.combine_chunks().flatten().to_numpy(zero_copy_only=False), np.int64)


def _fixed(values: pa.ChunkedArray, width: int) -> np.ndarray:
    array = values.combine_chunks().cast(pa.binary(width))
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    held = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.empty(0, np.uint8)
    return np.ascontiguousarray(held[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width))


def _cut(arrays: list[pa.Array | pa.ChunkedArray], names: list[str]) -> Iterator[pa.RecordBatch]:
    yield from pa.table(arrays, names=names).to_batches(max_chunksize=ROWS_PER_BATCH)
