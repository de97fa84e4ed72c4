"""The funnel of a run: how many documents and tokens went in, what became of them, by source and reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.runtime.display import print_table
from jobs.runtime.runs import RunRecord

Row = tuple[str, str, str, int, int | None]


def funnel_rows(records: Sequence[RunRecord]) -> list[Row]:
    """(stage, source, reason, documents, tokens) of a pipeline's records, in the order of the jobs.

    ``in`` and rejects come from ingest, drops from the deciding steps, what is kept from select.
    """
    rows: list[Row] = []
    for record in records:
        if record.job == "ingest":
            rows += _rows(record, "in", "read")
            rows += _rows(record, "quarantined", "rejected")
            rows += _rows(record, "dropped", "not new")
        elif record.job == "select":
            rows += _rows(record, "kept", "kept")
        elif record.step:
            rows += _rows(record, "dropped", f"dropped by {record.step}")
    return rows


def print_funnel(records: Sequence[RunRecord]) -> None:
    """The funnel as a table, with totals."""
    rows = funnel_rows(records)
    shown: list[list[Any]] = []
    for stage in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == stage]
        shown += [[stage if i == 0 else "", row[1], row[2] or "", row[3], row[4]] for i, row in enumerate(mine)]
        if len(mine) > 1:
            shown.append(["", "all", "", sum(r[3] for r in mine), _sum([r[4] for r in mine])])
    print_table("", ["stage", "source", "reason", "documents", "tokens"], shown, right=("documents", "tokens"))


def _rows(record: RunRecord, outcome: str, stage: str) -> list[Row]:
    return [
        (stage, c["source"], c["reason"], c["documents"], c["tokens"]) for c in record.counts if c["outcome"] == outcome
    ]


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
