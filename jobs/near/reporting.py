"""What a run of near_dedup has to say: facts about candidates and groups, and alarms."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.runtime.errors import InputContractError
from jobs.runtime.runs import Count

SHOWN_GROUPS = 5


def facts_of(walked: DataFrame, leading: int) -> dict[str, str]:
    """Facts for the run record.

    Args:
        walked: Every candidate and what became of it.
        leading: How many of them had to have a text.

    Raises:
        InputContractError: if some had none.
    """
    row = walked.agg(
        F.count(F.lit(1)).alias("candidates"),
        F.count(F.when(F.col("fixed"), 1)).alias("decided_before"),
        F.sum(F.col("copy").cast("int")).alias("same_words"),
        F.sum("compared").alias("pairs_compared"),
        F.sum(F.col("capped").cast("int")).alias("hit_the_cap"),
        F.max("group_size").alias("largest_group"),
        F.max("position").alias("largest_component"),
        F.min("similarity").alias("lowest_similarity"),
    ).first()
    facts = {name: str(value if value is not None else 0) for name, value in row.asDict().items()} if row else {}
    lost = leading - (int(facts["candidates"]) - int(facts["same_words"]))
    if lost:
        raise InputContractError(
            f"{lost:,} document(s) have a signature in an index, but their text is not where it was; nothing was written",
            remedy="The documents table of one of 'against' has lost documents since its index was made: decide there again.",
        )
    groups = walked.where(F.col("kept_id").isNotNull()).groupBy("kept_id", "kept_in")
    largest = groups.agg(F.count(F.lit(1)).alias("dropped"), F.min("doc_id").alias("example"))
    shown = largest.orderBy(F.col("dropped").desc(), "kept_id", "kept_in").limit(SHOWN_GROUPS).collect()
    # Ids in pairs, so that a person can look at both texts: weir show documents --where "doc_id IN (...)"
    facts["largest_groups"] = "; ".join(f"{r['kept_id']} for {r['dropped']:,}, such as {r['example']}" for r in shown)
    return facts


def alarms(counts: Sequence[Count], limit: float) -> list[str]:
    """Sources of which a larger share than the limit was dropped."""
    came = {c.source: c.documents for c in counts if c.outcome == "in"}
    gone: dict[str, int] = {}
    for count in counts:
        if count.outcome == "dropped":
            gone[count.source] = gone.get(count.source, 0) + count.documents
    return [
        f"{number:,} of {came[source]:,} documents of source '{source}' ({number / came[source]:.1%})"
        for source, number in sorted(gone.items())
        if number > limit * came[source]
    ]
