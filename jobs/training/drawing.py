"""Which of the labelled documents are taken: the first of each label in the order of a hash of their ids.

Exact, and the same whatever the layout. Documents that are added later change only as many of the drawn ones as come
before the last of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.deciding.cutting import before_cut, exact_cuts
from jobs.deciding.draws import draw_bits

DRAW, PLACE = "train_classifier.draw", "train_classifier.place"
"""Purposes of the draws. Every classifier of a warehouse has the same ones, so that they can be compared."""


def quotas(counts: Mapping[str, int], maximum: int, balanced: bool) -> dict[str, int]:
    """How many documents of each label are drawn, from how many there are."""
    most = min(maximum, *counts.values()) if balanced and counts else maximum
    return {label: min(count, most) for label, count in counts.items()}


def drawn(judged: DataFrame, seed: int, wanted: Mapping[str, int]) -> DataFrame:
    """As many rows of each label as wanted, of those without a reason, with ``place``: a hash independent of the draw.

    ``place`` orders the drawn rows. The draw's own hash would put all of a label of which few were drawn before the
    others, and training in such an order learns the last label only.

    Args:
        judged: Stored rows, see ``jobs.training.examples``.
        seed: Of the draws.
        wanted: How many of each label.
    """
    usable = judged.where(F.col("reason").isNull()).drop("reason")
    ordered = usable.withColumns(
        {
            "stratum": F.col("label"),
            "first": draw_bits(DRAW, seed),
            "second": F.lit(0.0),
            "weight": F.lit(1).cast("bigint"),
        }
    )
    narrow = ordered.select("stratum", "first", "second", "doc_id", "weight")
    taken = before_cut(ordered, exact_cuts(narrow, wanted)).where("taken")
    return taken.drop("stratum", "first", "second", "weight", "taken").withColumn("place", draw_bits(PLACE, seed))
