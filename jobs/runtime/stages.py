"""Small helpers that jobs share: counting by source and outcome."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.runtime.runs import Count


def counts_by(
    frame: DataFrame,
    *,
    outcome: Column,
    reason: Column,
    source: str = "source",
    tokens: Column | None = None,
    size: Column | None = None,
) -> list[Count]:
    """Documents, tokens and bytes by (source, outcome, reason): one small row per combination comes to the driver."""
    nothing = F.lit(None).cast("bigint")
    rows = (
        frame.groupBy(F.col(source).alias("source"), outcome.alias("outcome"), reason.alias("reason"))
        .agg(
            F.count(F.lit(1)).alias("documents"),
            F.sum(tokens if tokens is not None else nothing).alias("tokens"),
            F.sum(size if size is not None else nothing).alias("bytes"),
        )
        .collect()
    )
    return [Count(str(r[0]), str(r[1]), str(r[2]), int(r[3]), _whole(r[4]), _whole(r[5])) for r in rows]


def with_totals_in(counts: Sequence[Count]) -> list[Count]:
    """The counts, and for each source one ``in`` that is the sum of what became of it.

    Only for outcomes that were read off the job's input itself, where nothing else could be ``in``.
    """
    totals = []
    for source in sorted({count.source for count in counts}):
        mine = [count for count in counts if count.source == source]
        totals.append(
            Count(
                source,
                "in",
                "",
                sum(c.documents for c in mine),
                _sum([c.tokens for c in mine]),
                _sum([c.bytes for c in mine]),
            )
        )
    return [*totals, *counts]


def _whole(value: object) -> int | None:
    return None if value is None else int(str(value))


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
