"""Ids of documents: given by the user, or made from content or place, and never by the order of arrival.

Content ids: sha-256 over the source, the text's sha-256 and the number of the occurrence among identical texts of the
source. So a source gives the same set of ids however it is cut into files, in whatever order these are read.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

PLACE = ("entry", "file", "record")
"""What a record of a delivery is known by; two entries of the setting ``ingest`` may read the same file."""
TELLING_APART = ("url", "language", "fetched_at", "origin", "generator", "generation")
"""Columns in which identical texts may differ: they decide which copy is the first, before the place does."""
ID_DIGITS = 32
"""128 bits: P(any two of 10^10 documents share an id) = 1.5e-19 (birthday bound n^2 / 2^129)."""


def content_id(source: Column, text_sha256: Column, occurrence: Column) -> Column:
    """The id of the n-th (from 0) occurrence of a text in a source."""
    return _hash("content", source, F.hex(text_sha256), occurrence.cast("string"))


def place_id(source: Column, file: Column, record: Column) -> Column:
    """The id of a record by where it stands."""
    return _hash("place", source, file, record.cast("string"))


def number_occurrences(records: DataFrame, existing: DataFrame | None) -> DataFrame:
    """For records with content ids: which occurrence each is, and whether it is in the table already.

    Args:
        records: ``entry``, ``file``, ``record``, ``source``, ``text_sha256``, and what tells identical texts apart
            (``TELLING_APART``, ``attributes_text``); narrow: no text.
        existing: ``source``, ``text_sha256``, ``file`` of the documents table, or None.

    Returns:
        ``entry``, ``file``, ``record``, ``occurrence`` (from 0), ``present``; only rows that are present or whose occurrence is
        not 0, so that a corpus without repeats gives an empty frame.

    A file that is read again brings back what it brought before: of its n copies of a text, as many as the table
    holds from this file are present. What remains is numbered on from the table's total, in an order that the copies'
    own fields define.
    """
    in_file = Window.partitionBy("source", "text_sha256", "file").orderBy("record", "entry")
    ranked = records.withColumn("in_file", F.row_number().over(in_file))
    if existing is None:
        counted = ranked.withColumn("total_before", F.lit(0)).withColumn("file_before", F.lit(0))
    else:
        relevant = existing.join(F.broadcast(records.select("source").distinct()), ["source"], "left_semi")
        per_file = relevant.groupBy("source", "text_sha256", "file").agg(F.count(F.lit(1)).alias("file_before"))
        total = per_file.groupBy("source", "text_sha256").agg(F.sum("file_before").alias("total_before"))
        counted = (
            ranked.join(total, ["source", "text_sha256"], "left")
            .join(per_file, ["source", "text_sha256", "file"], "left")
            .fillna(0, ["total_before", "file_before"])
        )
    judged = counted.withColumn("present", F.col("in_file") <= F.col("file_before"))
    among_new = Window.partitionBy("source", "text_sha256", "present").orderBy(
        *(F.col(name).asc_nulls_first() for name in TELLING_APART), "attributes_text", "file", "record", "entry"
    )
    numbered = judged.withColumn("occurrence", F.col("total_before") + F.row_number().over(among_new) - 1)
    return numbered.where(F.col("present") | (F.col("occurrence") > 0)).select(*PLACE, "occurrence", "present")


def _hash(kind: str, *parts: Column) -> Column:
    # The unit separator: the last two parts are hex digits, a URI or a number and can't hold it, so that no two
    # lists of parts give one string, whatever the source is called.
    return F.substring(F.sha2(F.concat_ws("\u001f", F.lit(f"{kind}-1"), *parts), 256), 1, ID_DIGITS)
