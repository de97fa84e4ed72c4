"""What becomes of each good record: its id, and whether the documents table has it already."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.ingesting.identity import PLACE, TELLING_APART, content_id, number_occurrences, place_id
from jobs.runtime.errors import DuplicateIds

EXAMPLES = 5


def identified(records: DataFrame, identity: str, existing: DataFrame | None) -> DataFrame:
    """Good records with ``doc_id`` and, for content ids, ``present``: whether the table has this occurrence already.

    Args:
        records: Good records of one ``identity``, with text.
        identity: ``given``, ``content`` or ``place``.
        existing: The documents table's ``source``, ``text_sha256``, ``file``, or None.
    """
    if identity == "given":
        return records.withColumn("present", F.lit(False))
    if identity == "place":
        return records.withColumn("doc_id", place_id(F.col("source"), F.col("file"), F.col("record"))).withColumn(
            "present", F.lit(False)
        )
    narrow = records.select(
        *PLACE, "source", "text_sha256", *TELLING_APART, F.to_json("attributes").alias("attributes_text")
    )
    numbers = number_occurrences(narrow, existing)
    joined = records.join(numbers, list(PLACE), "left")
    occurrence = F.coalesce(F.col("occurrence"), F.lit(0))
    return (
        joined.withColumn("doc_id", content_id(F.col("source"), F.col("text_sha256"), occurrence))
        .withColumn("present", F.coalesce(F.col("present"), F.lit(False)))
        .drop("occurrence")
    )


def judged(candidates: DataFrame, existing: DataFrame | None) -> DataFrame:
    """One row per candidate, narrow, with what becomes of it.

    ``fate``: ``new``; ``present`` (the table has this id with this text); ``changed`` (the table has this id with
    another text); ``outdated`` (the table's text was fetched later; one without a date is older than one with);
    ``repeated`` (the id was given before in this delivery). The first of a delivery is the one with the
    latest ``fetched_at`` (NULL last), then the smallest text hash, then file and line.
    """
    from pyspark.sql import Window

    order = Window.partitionBy("doc_id").orderBy(
        F.col("fetched_at").desc_nulls_last(), F.col("text_sha256"), F.col("file"), F.col("record"), F.col("entry")
    )
    narrow = candidates.select(*PLACE, "doc_id", "source", "text_sha256", "fetched_at", "present", "keep_latest")
    ranked = narrow.withColumn("place", F.row_number().over(order))
    if existing is None:
        return ranked.withColumn("fate", F.when(F.col("place") > 1, "repeated").otherwise(F.lit("new"))).withColumn(
            "old_batch", F.lit(None).cast("string")
        )
    before = existing.select(
        "doc_id",
        F.col("text_sha256").alias("old_sha256"),
        F.col("batch").alias("old_batch"),
        F.col("fetched_at").alias("old_fetched_at"),
    )
    # Of two without a date, or with the same one, the later delivery is the newer.
    older = F.col("old_fetched_at").isNotNull() & (
        F.col("fetched_at").isNull() | (F.col("fetched_at") < F.col("old_fetched_at"))
    )
    fate = (
        F.when(F.col("place") > 1, "repeated")
        .when(F.col("present") | (F.col("old_sha256") == F.col("text_sha256")), "present")
        .when(F.col("old_sha256").isNull(), "new")
        .when(F.col("keep_latest") & older, "outdated")
        .otherwise(F.lit("changed"))
    )
    return ranked.join(before, ["doc_id"], "left").withColumn("fate", fate)


def refuse_duplicates(narrow: DataFrame) -> None:
    """Stop where an id is not unique and its source doesn't say which document to keep.

    Raises:
        DuplicateIds: with their number and examples.
    """
    bad = narrow.where(F.col("fate").isin("repeated", "changed") & ~F.col("keep_latest"))
    examples = (
        bad.orderBy("doc_id", "file", "record").select("doc_id", "fate", "file", "record").limit(EXAMPLES).collect()
    )
    if not examples:
        return
    by_fate = {row[0]: row[1] for row in bad.groupBy("fate").count().collect()}
    raise DuplicateIds(
        f"{sum(by_fate.values()):,} record(s) carry an id that is not unique: "
        f"{by_fate.get('repeated', 0):,} repeat an id of this delivery, "
        f"{by_fate.get('changed', 0):,} have an id that the documents table holds with another text",
        [f"id '{r[0]}' ({'repeated' if r[1] == 'repeated' else 'other text'}): {r[2]} line {r[3]}" for r in examples],
        "Give unique ids, let ids be made (ids: content or place), or keep the latest of each id: duplicate_ids: keep_latest. "
        "Nothing was written.",
    )
