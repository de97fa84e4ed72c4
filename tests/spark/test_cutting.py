"""The exact cut equals a sort, whatever the bins, the layout and the values; draws are uniform and the same everywhere."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.deciding.cutting import before_cut, exact_cuts
from jobs.deciding.draws import draw, draw_bits

SCHEMA = "stratum STRING, first DOUBLE, second DOUBLE, doc_id STRING, weight BIGINT"
Row = tuple[str, float, float, str, int]


def rows_of(kind: str, number: int, seed: int = 1) -> list[Row]:
    random_numbers = random.Random(seed)
    values: dict[str, Any] = {
        "spread": lambda: random_numbers.random(),
        "tied": lambda: random_numbers.choice([0.1, 0.2, 0.3]),
        "one value": lambda: 0.5,
        "wide": lambda: random_numbers.choice([-1.0, 1.0]) * 10.0 ** random_numbers.randint(-300, 308),
        "infinite": lambda: random_numbers.choice([float("-inf"), float("inf"), 0.0, -0.0, 5e-324]),
    }
    second = {"one value": lambda: 7.0}.get(kind, lambda: float(random_numbers.randrange(50)))
    return [
        (random_numbers.choice("aab"), values[kind](), second(), f"d{n}", random_numbers.choice([0, 1, 3, 10]))
        for n in range(number)
    ]


def taken_by_sorting(rows: list[Row], quotas: dict[str, int]) -> set[str]:
    taken = set()
    for stratum in {row[0] for row in rows}:
        so_far = 0
        for row in sorted((r for r in rows if r[0] == stratum), key=lambda r: (r[1], r[2], r[3])):
            so_far += row[4]
            if so_far > quotas.get(stratum, 0):
                break
            taken.add(row[3])
    return taken


def taken(frame: DataFrame, quotas: dict[str, int], **how: int) -> set[str]:
    return {r["doc_id"] for r in before_cut(frame, exact_cuts(frame, quotas, **how)).where("taken").collect()}


@pytest.mark.parametrize("kind", ["spread", "tied", "one value", "wide", "infinite"])
def test_the_cut_equals_a_sort(spark: SparkSession, kind: str) -> None:
    rows = rows_of(kind, 300)
    frame = spark.createDataFrame(rows, SCHEMA)
    for quotas in ({"a": 200, "b": 17}, {"a": 0, "b": 10_000}):
        want = taken_by_sorting(rows, quotas)
        assert taken(frame, quotas) == want, quotas
        assert taken(frame, quotas, sorted_at_once=5, bins=4) == want, quotas


def test_the_cut_does_not_depend_on_the_layout(spark: SparkSession) -> None:
    rows = rows_of("tied", 400, seed=3)
    want = taken_by_sorting(rows, {"a": 300, "b": 50})
    for partitions in (1, 3, 8):
        random.Random(partitions).shuffle(rows)
        frame = spark.createDataFrame(rows, SCHEMA).repartition(partitions)
        assert taken(frame, {"a": 300, "b": 50}, sorted_at_once=10, bins=8) == want


def test_a_larger_quota_takes_the_same_and_more(spark: SparkSession) -> None:
    frame = spark.createDataFrame(rows_of("spread", 200), SCHEMA)
    found = [taken(frame, {"a": quota, "b": quota}) for quota in (10, 60, 200)]
    assert found[0] < found[1] < found[2]


def test_no_rows_and_no_quota(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    assert taken(frame, {"a": 5}) == set()
    rows: list[Row] = [("a", 1.0, 1.0, "x", 1)]
    assert taken(spark.createDataFrame(rows, SCHEMA), {}) == set()


def test_draws_are_fixed_uniform_and_differ_by_purpose(spark: SparkSession) -> None:
    """The numbers themselves are a contract: another Spark or JVM must draw the same documents."""
    frame = spark.range(20_000).select(F.concat(F.lit("d"), F.col("id").cast("string")).alias("doc_id"))
    found = frame.select("doc_id", draw("p", 0).alias("one"), draw("q", 0).alias("two"), draw("p", 1).alias("three"))
    row = found.agg(
        F.avg("one"), F.min("one"), F.max("one"), F.corr("one", "two"), F.corr("one", "three"), F.countDistinct("one")
    ).collect()[0]
    assert row[0] == pytest.approx(0.5, abs=0.01) and 0 <= row[1] < 0.001 and 0.999 < row[2] < 1
    assert abs(row[3]) < 0.03 and abs(row[4]) < 0.03 and row[5] == 20_000
    fixed = frame.where("doc_id = 'd7'").select(draw_bits("p", 0)).collect()[0][0]
    assert fixed == 125143916972353.0
