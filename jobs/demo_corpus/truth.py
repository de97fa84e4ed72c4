"""The truth table: one row for every planted record, with what a pipeline must do with it.

The expectations hold for ingest and then, in this order, eligibility (block lists), exact_dedup under ``norm_v1``, quality_filter with
``quality.QUALITY_RULES`` and near_dedup at a Jaccard similarity of 0.8, with the survivor rule [source_priority, doc_id].
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.demo_corpus import copies, letters
from jobs.demo_corpus.planted import KEEP, Form, PlantedRecord
from jobs.demo_corpus.sources import SOURCE_NAMES, SOURCE_PRIORITIES

TRUTH_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.string(), metadata={"comment": "NULL for a broken line that has no one record"}),
        pa.field("source", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False, metadata={"comment": "what was planted"}),
        pa.field("group", pa.string(), metadata={"comment": "the group of copies, or the evaluation item"}),
        pa.field("original_id", pa.string(), metadata={"comment": "the record that this one is a copy of"}),
        pa.field("jaccard", pa.float64(), metadata={"comment": "exact word-5-gram Jaccard to original_id"}),
        pa.field(
            "expected",
            pa.string(),
            nullable=False,
            metadata={"comment": "keep, reject:REASON or drop:REASON"},
        ),
        pa.field("detail", pa.string(), metadata={"comment": "the variety of the kind"}),
        pa.field("file", pa.string(), nullable=False, metadata={"comment": "relative to the corpus folder"}),
        pa.field("line", pa.int64(), nullable=False, metadata={"comment": "counted from 1"}),
    ]
)
"""Columns of the truth table. The parquet file's schema metadata holds, under the key ``demo_corpus``, a JSON object with the
seed, the totals of each source (records, planted, bytes) and what the expectations rest on."""

METADATA_KEY = b"demo_corpus"

_NO_ID = (Form.CUT, Form.GLUED, Form.BARE_LINE)


def truth_rows(records: Sequence[PlantedRecord], files: Sequence[str]) -> pa.Table:
    """The rows of some planted records whose places are known; ``files`` names the file of each source."""
    columns: dict[str, list[Any]] = {
        "doc_id": [None if record.form in _NO_ID else record.doc_id for record in records],
        "source": [SOURCE_NAMES[record.source] for record in records],
        "kind": [record.kind for record in records],
        "group": [record.group or None for record in records],
        "original_id": [record.original.doc_id if record.original else None for record in records],
        "jaccard": [record.jaccard for record in records],
        "expected": [record.expected for record in records],
        "detail": [record.detail or None for record in records],
        "file": [files[record.source] for record in records],
        "line": [record.line for record in records],
    }
    return pa.table(columns, schema=TRUTH_SCHEMA)


def with_survivors(table: pa.Table) -> pa.Table:
    """The table of the whole corpus, where the groups that lie in all its parts have their survivor and its id.

    Those are the big group of exact copies and the group of pages: the member that is first by priority, then id, is kept.
    """
    kept_kinds = {copies.BIG_GROUP: copies.ORIGINAL, letters.PAGE_GROUP: letters.PAGE}
    for group, kept_kind in kept_kinds.items():
        inside = pc.fill_null(pc.equal(table["group"], group), False)
        members = table.filter(inside)
        if not len(members):
            continue
        pairs = zip(members["source"].to_pylist(), members["doc_id"].to_pylist(), strict=True)
        _, survivor = min((SOURCE_PRIORITIES[source], doc_id) for source, doc_id in pairs)
        survives = pc.fill_null(pc.equal(table["doc_id"], survivor), False)
        copy = pc.and_(inside, pc.invert(survives))
        table = _replaced(table, "original_id", copy, survivor)
        table = _replaced(table, "expected", survives, KEEP)
        table = _replaced(table, "kind", survives, kept_kind)
    return table


def _replaced(table: pa.Table, column: str, where: pa.ChunkedArray, value: str) -> pa.Table:
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(at), pc.if_else(where, pa.scalar(value), table[column]))


def write_truth(table: pa.Table, path: Path, metadata: Mapping[str, Any]) -> None:
    """Writes the truth table, sorted by file and line, with ``metadata`` as JSON in its schema."""
    described = TRUTH_SCHEMA.with_metadata({METADATA_KEY: json.dumps(metadata, sort_keys=True)})
    ordered = table.sort_by([("file", "ascending"), ("line", "ascending")])
    pq.write_table(ordered.cast(described), path, compression="zstd")


def read_metadata(truth_path: Path) -> dict[str, Any]:
    """The JSON object in the truth table's schema metadata."""
    found: dict[str, Any] = json.loads(pq.read_schema(truth_path).metadata[METADATA_KEY])
    return found


def expected_outcomes(truth_path: Path) -> pa.Table:
    """How many records of each source must end how: columns source, expected, records, sorted by the first two.

    The records that are not planted are in it: all of them are kept. So ``records`` sums to the records of the corpus.
    """
    planted = pq.read_table(truth_path, columns=["source", "expected"])
    counted = planted.group_by(["source", "expected"]).aggregate([([], "count_all")]).to_pydict()
    totals: dict[tuple[str, str], int] = dict(
        zip(zip(counted["source"], counted["expected"], strict=True), counted["count_all"], strict=True)
    )
    for source, of_source in read_metadata(truth_path)["sources"].items():
        ordinary = of_source["records"] - of_source["planted"]
        totals[source, KEEP] = totals.get((source, KEEP), 0) + ordinary
    keys = sorted(totals)
    return pa.table(
        {
            "source": pa.array([source for source, _ in keys], pa.string()),
            "expected": pa.array([expected for _, expected in keys], pa.string()),
            "records": pa.array([totals[key] for key in keys], pa.int64()),
        }
    )
