"""Documents for people to read: a fixed number by rule, source and side, the same ones each time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.deciding.cutting import before_cut, exact_cuts
from jobs.deciding.draws import draw_bits


def audit_sample(judged: DataFrame, number: int, *, step: str, seed: int) -> DataFrame:
    """``number`` documents, or all that there are, of each source that each rule drops, and that no rule drops.

    Args:
        judged: ``doc_id``, ``source``, ``batch``, ``#reason``, ``#failing``, see ``judging.judged``; read several times.
        number: Of documents.
        step: Name of the step, which draws go by.
        seed: Of draws.

    Returns:
        ``doc_id``, ``source``, ``batch``, ``rule`` (empty for kept documents), ``side``, ``value``, ``limit``.
    """
    nothing = F.lit(None).cast("string")
    dropped = judged.where(F.col("#reason").isNotNull()).select(
        "doc_id", "source", "batch", F.explode("#failing").alias("found")
    )
    dropped = dropped.select(
        "doc_id", "source", "batch", F.col("found.rule").alias("rule"), F.lit("dropped").alias("side"),
        F.col("found.value").alias("value"), F.col("found.limit").alias("limit"),
    )  # fmt: skip
    kept = judged.where(F.col("#reason").isNull()).select(
        "doc_id", "source", "batch", F.lit("").alias("rule"), F.lit("kept").alias("side"), nothing.alias("value"),
        nothing.alias("limit"),
    )  # fmt: skip
    both = dropped.unionByName(kept).withColumns(
        {
            "stratum": F.to_json(F.struct("rule", "source", "side")),
            # A document may stand in several strata; its draws there have nothing to do with each other.
            "first": draw_bits(f"audit/{step}", seed, F.concat_ws("\u0000", "rule", "doc_id")),
            "second": F.lit(0.0),
        }
    )
    narrow = both.select("stratum", "first", "second", "doc_id", F.lit(1).cast("bigint").alias("weight"))
    strata = [row["stratum"] for row in narrow.select("stratum").distinct().collect()]
    chosen = before_cut(both, exact_cuts(narrow, dict.fromkeys(strata, number))).where("taken")
    return chosen.select("doc_id", "source", "batch", "rule", "side", "value", "limit")
