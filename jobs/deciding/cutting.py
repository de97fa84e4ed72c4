"""The exact cut: of each stratum, the documents that come first in an order, up to a quota, without sorting the corpus.

Documents are ordered by ``first``, then ``second``, then ``doc_id``. A stratum's cut is the first document that is left
out; what comes before it is taken. It is found by looking closer and closer: the range of an axis is divided into bins,
whole bins before the cut are passed over by their sums, and the bin that holds the cut is divided again, until so few
documents are left in it that they can be sorted (mixture notes 4.2: bottom-k by a two-pass threshold).

Only sums over strata and bins reach the driver. The result depends on the rows alone, and is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

SORTED_AT_ONCE = 1_000_000
"""Documents, in all strata together, that are few enough to be sorted."""

SPLITTERS = 31
LARGEST = 1.7976931348623157e308

AXES = ("first", "second")
CUTS = "stratum STRING, cut_first DOUBLE, cut_second DOUBLE, cut_doc_id STRING"


@dataclass(frozen=True)
class _Range:
    """Where a stratum's cut is: in these bounds of an axis, after so much more weight."""

    axis: int
    low: float
    high: float
    left: int


def exact_cuts(
    frame: DataFrame, quotas: Mapping[str, int], *, sorted_at_once: int = SORTED_AT_ONCE, bins: int | None = None
) -> DataFrame:
    """The first document of each stratum that its quota leaves out.

    Args:
        frame: ``stratum`` STRING, ``first`` and ``second`` DOUBLE, ascending, ``doc_id`` STRING, ``weight`` BIGINT; no
            NULL and no NaN. It is read several times: materialise it.
        quotas: Of each stratum, in the unit of ``weight``: the longest beginning whose weights add up to no more. A
            stratum that isn't named has the quota 0.
        sorted_at_once: Rows that are sorted instead of being divided further.
        bins: Of a stratum in one step; default: by the number of documents.

    Returns:
        ``stratum``, ``cut_first``, ``cut_second``, ``cut_doc_id``: a row for each stratum that is cut. Strata without a
        row are taken whole. See ``before_cut``.
    """
    spark = frame.sparkSession
    bounded = frame.withColumns({axis: F.greatest(F.lit(-LARGEST), F.least(F.lit(LARGEST), axis)) for axis in AXES})
    rows = bounded.groupBy("stratum").agg(
        F.count(F.lit(1)).alias("documents"),
        F.sum("weight").alias("weight"),
        F.min(AXES[0]).alias("low"),
        F.max(AXES[0]).alias("high"),
    )
    ranges, total = {}, 0
    for row in rows.collect():
        quota = max(quotas.get(row["stratum"], 0), 0)
        if quota < row["weight"]:
            ranges[row["stratum"]] = _Range(0, row["low"], row["high"], quota)
            total += row["documents"]
    number = bins or 2 ** max(6, math.ceil(math.log2(max(total, 1) / 1e6)) if total > 1e6 else 6)
    active, steps = bounded, 0
    while ranges:
        active = _within(spark, bounded, ranges)
        if total <= sorted_at_once or all(found.axis == len(AXES) for found in ranges.values()):
            break
        splitters = _splitters(active) if steps % 2 else None
        ranges, total = _closer(active, ranges, number, splitters)
        steps += 1
    return _sorted_cuts(active, ranges, spark)


def before_cut(
    frame: DataFrame, cuts: DataFrame, *, stratum: str = "stratum", first: str = "first", second: str = "second"
) -> DataFrame:
    """``frame`` with ``taken``: whether a document comes before its stratum's cut; true where there is no cut.

    Args:
        frame: ``doc_id``, and the columns that the other arguments name.
        cuts: See ``exact_cuts``.
        stratum: Column of the stratum; NULL: of none, so it is taken.
        first: Column of the first axis.
        second: Column of the second axis.
    """
    one, two = (F.greatest(F.lit(-LARGEST), F.least(F.lit(LARGEST), F.col(name))) for name in (first, second))
    before = (one < F.col("cut_first")) | (
        (one == F.col("cut_first"))
        & ((two < F.col("cut_second")) | ((two == F.col("cut_second")) & (F.col("doc_id") < F.col("cut_doc_id"))))
    )
    joined = frame.join(F.broadcast(cuts.withColumnRenamed("stratum", stratum)), [stratum], "left")
    taken = F.coalesce(before, F.col("cut_doc_id").isNull())
    return joined.withColumn("taken", taken).drop("cut_first", "cut_second", "cut_doc_id")


def _within(spark: SparkSession, frame: DataFrame, ranges: Mapping[str, _Range]) -> DataFrame:
    """The documents in their strata's ranges: an axis that is done has one value, which is its ``low``."""
    fixed = spark.createDataFrame(
        [(name, *_fixed(found)) for name, found in sorted(ranges.items())],
        "stratum STRING, first_low DOUBLE, first_high DOUBLE, second_low DOUBLE, second_high DOUBLE, axis INT, left BIGINT",
    )
    joined = frame.join(F.broadcast(fixed), ["stratum"])
    inside = F.col("first").between(F.col("first_low"), F.col("first_high")) & F.col("second").between(
        F.col("second_low"), F.col("second_high")
    )
    return joined.where(inside)


def _fixed(found: _Range) -> tuple[float, float, float, float, int, int]:
    lows, highs = found.low, found.high
    if isinstance(found, _Later):
        return found.first, found.first, lows, highs, found.axis, found.left
    return lows, highs, -math.inf, math.inf, found.axis, found.left


@dataclass(frozen=True)
class _Later(_Range):
    """A range on the second axis: all its documents have one value on the first."""

    first: float = 0.0


def _value() -> Column:
    """The axis that a stratum's range is on."""
    return F.when(F.col("axis") == 0, F.col("first")).otherwise(F.col("second"))


def _splitters(active: DataFrame) -> DataFrame:
    """Values that divide each stratum's documents into about equal parts; which ones doesn't change the result."""
    shares = [number / (SPLITTERS + 1) for number in range(1, SPLITTERS + 1)]
    return active.groupBy("stratum").agg(F.percentile_approx(_value(), shares).alias("splitters"))


def _closer(
    active: DataFrame, ranges: Mapping[str, _Range], bins: int, splitters: DataFrame | None
) -> tuple[dict[str, _Range], int]:
    """Divide each range into bins and find the one that holds the cut.

    Bins of equal width are quick, and good for draws. Where values crowd (scores over many orders of magnitude) they
    hardly divide anything, so every second step divides by the values themselves; each splitter is a bin of its own,
    so that one value which most documents share is found.
    """
    value = _value()
    if splitters is None:
        low = F.when(F.col("axis") == 0, F.col("first_low")).otherwise(F.col("second_low"))
        high = F.when(F.col("axis") == 0, F.col("first_high")).otherwise(F.col("second_high"))
        # Halves, for the width of a range can be more than a DOUBLE holds. Each step keeps the order, so bins do too.
        width = high / 2 - low / 2
        share = F.when(width > 0, (value / 2 - low / 2) / width).otherwise(F.lit(0.0))
        number = F.least(F.floor(share * bins), F.lit(bins - 1)).cast("int")
    else:
        active = active.join(F.broadcast(splitters), ["stratum"])
        below = F.size(F.filter("splitters", lambda splitter: splitter < value))
        number = 2 * below + F.array_contains("splitters", value).cast("int")
    placed = active.withColumns({"bin": number, "value": value})
    sums = placed.groupBy("stratum", "bin", "left").agg(
        F.count(F.lit(1)).alias("documents"),
        F.sum("weight").alias("weight"),
        F.min("value").alias("low"),
        F.max("value").alias("high"),
        F.min("second").alias("second_low"),
        F.max("second").alias("second_high"),
    )
    so_far = F.sum("weight").over(Window.partitionBy("stratum").orderBy("bin"))
    cut = sums.withColumn("so_far", so_far).where(
        (F.col("so_far") > F.col("left")) & (F.col("so_far") - F.col("weight") <= F.col("left"))
    )
    # A bin of weight 0 could stand at the same sum: the cut is in the one whose own weight passes the quota.
    found: dict[str, _Range] = {}
    total = 0
    for row in cut.collect():
        before = ranges[row["stratum"]]
        left = int(row["left"] - (row["so_far"] - row["weight"]))
        total += int(row["documents"])
        if before.axis == 0 and row["low"] == row["high"]:
            found[row["stratum"]] = _Later(1, row["second_low"], row["second_high"], left, row["low"])
        elif before.axis == 0:
            found[row["stratum"]] = _Range(0, row["low"], row["high"], left)
        else:
            axis = 2 if row["low"] == row["high"] else 1
            found[row["stratum"]] = replace(before, axis=axis, low=row["low"], high=row["high"], left=left)
    return found, total


def _sorted_cuts(active: DataFrame, ranges: Mapping[str, _Range], spark: SparkSession) -> DataFrame:
    if not ranges:
        return spark.createDataFrame([], CUTS)
    order = Window.partitionBy("stratum").orderBy("first", "second", "doc_id")
    cumulated = active.withColumn("so_far", F.sum("weight").over(order.rowsBetween(Window.unboundedPreceding, 0)))
    left_out = cumulated.where(F.col("so_far") > F.col("left"))
    first = F.min(F.struct("first", "second", "doc_id")).alias("cut")
    cuts = left_out.groupBy("stratum").agg(first)
    return cuts.select(
        "stratum",
        F.col("cut.first").alias("cut_first"),
        F.col("cut.second").alias("cut_second"),
        F.col("cut.doc_id").alias("cut_doc_id"),
    )
