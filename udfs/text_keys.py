"""The keys of exact deduplication under Spark, for texts that were not annotated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from udfs.normalise import norm_v1, norm_v1_keys


def norm_v1_key_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: (any columns, text) to (these columns, key); the key is NULL where nothing is left of the text."""
    for batch in batches:
        *others, texts = batch.columns
        key = norm_v1_keys(texts).cast(pa.binary())
        yield pa.RecordBatch.from_arrays([*others, key], names=[*batch.schema.names[:-1], "key"])


def norm_v1_column(column: Column) -> Column:
    """``norm_v1`` of a string column; NULL stays NULL."""

    def normalise(texts: pa.Array) -> pa.Array:
        return norm_v1(texts).cast(pa.string())

    wrapped: Any = F.arrow_udf(normalise, "string")  # type: ignore[call-overload]
    result: Column = wrapped(column)
    return result
