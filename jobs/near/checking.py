"""The proof of a result of near_dedup, by joins that know nothing of how it was found."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.runtime.errors import ReconciliationError


def broken_twins(walked: DataFrame, threshold: float) -> DataFrame:
    """Dropped documents without a kept twin that is better-ranked and at least as similar as the threshold."""
    kept = walked.where(F.col("kept_id").isNull()).select(
        F.col("doc_id").alias("kept_id"), F.col("held_in").alias("kept_in"),
        F.col("label").alias("kept_label"), F.col("position").alias("found_position"),
    )  # fmt: skip
    dropped = walked.where(F.col("kept_id").isNotNull())
    fine = (
        (F.col("kept_label") == F.col("label"))
        & (F.col("found_position") == F.col("kept_position"))
        & (F.col("kept_position") < F.col("position"))
        & (F.col("similarity") >= threshold)
    )
    return dropped.join(kept, ["kept_id", "kept_in"], "left").where(~F.coalesce(fine, F.lit(False)))


def unproven_pairs(walked: DataFrame) -> DataFrame:
    """Kept documents that share a bucket with a better kept one, but were not found to differ from it.

    Left out are documents that hit the cap, which are counted and kept without this proof, and protected and fixed ones,
    which are kept whatever they are like.
    """
    kept = walked.where(F.col("kept_id").isNull()).select(
        "label",
        "position",
        (F.col("capped") | F.col("protected") | F.col("fixed")).alias("exempt"),
        F.explode("bands").alias("key"),
    )
    worse = kept.where(~F.col("exempt")).select("label", "key", "position")
    better = kept.select("label", "key", F.col("position").alias("better"))
    pairs = worse.join(better, ["label", "key"]).where(F.col("better") < F.col("position"))
    differ = walked.select("label", "position", F.explode("rejected").alias("better"))
    return pairs.select("label", "position", "better").join(differ, ["label", "position", "better"], "left_anti")


def check_survivors(walked: DataFrame, threshold: float) -> None:
    """Both checks.

    Raises:
        ReconciliationError: if the result is not what its definition says. Nothing was written.
    """
    twins = broken_twins(walked, threshold)
    pairs = unproven_pairs(walked)
    broken = twins.select(F.lit("a dropped document has no kept twin").alias("what")).unionByName(
        pairs.select(F.lit("two kept documents were not compared").alias("what"))
    )
    found = {str(row[0]): int(row[1]) for row in broken.groupBy("what").count().collect()}
    if found:
        listed = "; ".join(f"{what}: {number:,}" for what, number in sorted(found.items()))
        raise ReconciliationError(f"near_dedup's result is not proven, nothing was written: {listed}")
