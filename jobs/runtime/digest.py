"""A digest of a table's content that doesn't depend on its layout: the proof that two runs gave the same documents."""

from __future__ import annotations

import hashlib

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

BUCKET_DIGITS = 3
"""Rows are bucketed by the first 3 hex digits of sha-256(key): 4,096 buckets, so at 10^9 rows a bucket sorts 250,000."""


def content_digest(frame: DataFrame, key: str, *others: Column) -> str:
    """SHA-256 (hex) over all rows in the order of their hashed keys.

    Equal for equal rows whatever the partitions, files or order; repeated rows count. At most 4,096 short rows come
    to the driver.

    Args:
        frame: The rows.
        key: A string column.
        others: Further columns that belong to a row's content, cast to string; NULL differs from an empty string.
    """
    parts = [F.col(key), *(F.coalesce(F.concat(F.lit("="), c.cast("string")), F.lit("-")) for c in others)]
    row = F.concat_ws("\u001f", *parts)
    buckets = (
        frame.select(F.substring(F.sha2(F.col(key), 256), 1, BUCKET_DIGITS).alias("bucket"), row.alias("row"))
        .groupBy("bucket")
        .agg(F.sha2(F.concat_ws("\n", F.array_sort(F.collect_list("row"))), 256).alias("digest"))
        .collect()
    )
    total = hashlib.sha256()
    for bucket, digest in sorted((str(b), str(d)) for b, d in buckets):
        total.update(f"{bucket}:{digest}\n".encode())
    return total.hexdigest()
