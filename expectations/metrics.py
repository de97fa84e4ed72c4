"""The metrics behind our expectations: each is one aggregate over a narrow frame, with a small result.

All of them use the DataFrame API on the frame itself, so they run on classic Spark and Spark Connect, and two
frames can't be confused (a SQL expectation goes through one temporary view per session). Integer sums are
64-bit and checked: an overflow is an error under either setting of ``spark.sql.ansi.enabled``.

Importing this module imports Great Expectations, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.metrics.metric_provider import metric_partial, metric_value
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from expectations.base import WeirMetric

NULL_AND_NAN_COUNTS = "weir.null_and_nan_counts"
REPEATED_KEYS = "weir.repeated_keys"
SLICE_COUNTS = "weir.slice_counts"
GROUP_TOTALS = "weir.group_totals"

MOST_GROUPS = 100_000
"""The most groups that are fetched from Spark. Slices are planned by people, so more means a wrong column."""


class NullAndNanCounts(WeirMetric):
    """``[rows with NULL, rows with NaN]`` of one column.

    An aggregate partial: Great Expectations computes those of all columns, and the row count, in one pass.
    """

    metric_name = NULL_AND_NAN_COUNTS
    value_keys = ("column",)

    @metric_partial(
        engine=SparkDFExecutionEngine,
        partial_fn_type=MetricPartialFunctionTypes.AGGREGATE_FN,
        domain_type=MetricDomainTypes.TABLE,
    )
    def _spark(
        cls,  # noqa: N805 - the library calls it with the class
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> tuple[Column, dict[str, Any], dict[str, Any]]:
        frame = _frame(execution_engine, metric_domain_kwargs)
        column, data_type = _column(frame, metric_value_kwargs["column"])
        # isnan() casts: on a string column it would fail, and integers and decimals have no NaN.
        is_fractional = isinstance(data_type, T.FloatType | T.DoubleType)
        nan = F.count_if(F.isnan(column)) if is_fractional else F.lit(0).cast("bigint")
        return F.array(F.count_if(column.isNull()), nan), metric_domain_kwargs, {}


class RepeatedKeys(WeirMetric):
    """``{keys, surplus, example, example_rows}``: keys in several rows, rows beyond the first of each, the worst.

    Rows with a NULL in the key are left out. The worst key is the one in most rows, the greatest among equals.
    """

    metric_name = REPEATED_KEYS
    value_keys = ("columns",)

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805 - the library calls it with the class
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> dict[str, Any]:
        frame = _frame(execution_engine, metric_domain_kwargs)
        keys = [f"key_{position}" for position in range(len(metric_value_kwargs["columns"]))]
        columns = [_column(frame, name)[0] for name in metric_value_kwargs["columns"]]
        repeated = (
            frame.select(*(column.alias(key) for column, key in zip(columns, keys, strict=True)))
            .dropna()
            .groupBy(*keys)
            .agg(F.count(F.lit(1)).alias("rows"))
            .where(F.col("rows") > 1)
        )
        found = repeated.agg(
            F.count(F.lit(1)).alias("keys"),
            F.coalesce(F.sum(F.col("rows") - 1), F.lit(0)).alias("surplus"),
            F.max(F.struct("rows", F.array(*(F.col(key).cast("string") for key in keys)).alias("key"))).alias("worst"),
        ).collect()[0]
        worst = found["worst"]
        return {
            "keys": found["keys"],
            "surplus": found["surplus"],
            "example": list(worst["key"]) if worst else None,
            "example_rows": worst["rows"] if worst else 0,
        }


class SliceCounts(WeirMetric):
    """``[{slice, documents, tokens}]`` of every slice that the frame has, sorted.

    A document that a slice holds in several rows counts once, with the smallest of its token counts, so that
    repeats can't meet a floor. Rows without a document id aren't counted.
    """

    metric_name = SLICE_COUNTS
    value_keys = ("slice_columns", "document_column", "token_column")

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805 - the library calls it with the class
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> list[dict[str, Any]]:
        frame = _frame(execution_engine, metric_domain_kwargs)
        slices, names = _group_columns(frame, metric_value_kwargs["slice_columns"])
        document, _ = _column(frame, metric_value_kwargs["document_column"])
        token_column = metric_value_kwargs["token_column"]
        tokens = F.lit(0) if token_column is None else _integer_column(frame, token_column)
        documents = (
            frame.select(*slices, document.alias("document"), tokens.cast("bigint").alias("tokens"))
            .where(F.col("document").isNotNull())
            .groupBy(*names, "document")
            .agg(F.min("tokens").alias("tokens"))
        )
        counts = documents.groupBy(*names).agg(F.count(F.lit(1)).alias("documents"), *_checked_sum("tokens", "tokens"))
        return [
            {
                "slice": [row[name] for name in names],
                "documents": row["documents"],
                "tokens": _sum(row, "tokens", token_column),
            }
            for row in _fetch(counts, metric_value_kwargs["slice_columns"], names)
        ]


class GroupTotals(WeirMetric):
    """``[{group, rows, sums}]`` of every group that the frame has, sorted; without columns, of the whole frame."""

    metric_name = GROUP_TOTALS
    value_keys = ("group_columns", "sum_columns")

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805 - the library calls it with the class
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> list[dict[str, Any]]:
        frame = _frame(execution_engine, metric_domain_kwargs)
        groups, names = _group_columns(frame, metric_value_kwargs["group_columns"])
        summed = [(f"sum_{position}", name) for position, name in enumerate(metric_value_kwargs["sum_columns"])]
        narrow = frame.select(
            *groups, *(_integer_column(frame, name).cast("bigint").alias(alias) for alias, name in summed)
        )
        totals = narrow.groupBy(*names).agg(
            F.count(F.lit(1)).alias("rows"),
            *(part for alias, _ in summed for part in _checked_sum(alias, alias)),
        )
        return [
            {
                "group": [row[name] for name in names],
                "rows": row["rows"],
                "sums": {name: _sum(row, alias, name) for alias, name in summed},
            }
            for row in _fetch(totals, metric_value_kwargs["group_columns"], names)
        ]


def _frame(execution_engine: SparkDFExecutionEngine, metric_domain_kwargs: dict[str, Any]) -> DataFrame:
    frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
    return frame


def _column(frame: DataFrame, name: str) -> tuple[Column, T.DataType]:
    """The column called ``name``, or the struct field at that dotted path, and its type.

    Raises:
        ValueError: there is none, or ``name`` is None.
    """
    fields = {field.name: field.dataType for field in frame.schema.fields}
    if name in fields:
        return F.col(_quoted(name)), fields[name]
    first, *path = str(name).split(".")
    data_type: T.DataType | None = fields.get(first)
    for part in path:
        inner = (
            {field.name: field.dataType for field in data_type.fields} if isinstance(data_type, T.StructType) else {}
        )
        data_type = inner.get(part)
    if data_type is None:
        raise ValueError(f"the frame has no column {name!r}; it has {', '.join(fields)}")
    return F.col(".".join(map(_quoted, [first, *path]))), data_type


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _integer_column(frame: DataFrame, name: str) -> Column:
    column, data_type = _column(frame, name)
    if not isinstance(data_type, T.IntegralType):
        raise ValueError(
            f"column {name!r} is {data_type.simpleString()}; sums are compared exactly, so it must be an integer "
            "type: cast it where the frame is built"
        )
    return column


def _group_columns(frame: DataFrame, columns: Sequence[str]) -> tuple[list[Column], list[str]]:
    """The grouping columns as strings, under names that can't collide with others."""
    names = [f"group_{position}" for position in range(len(columns))]
    return [
        _column(frame, column)[0].cast("string").alias(name) for column, name in zip(columns, names, strict=True)
    ], names


def _checked_sum(column: str, alias: str) -> tuple[Column, Column]:
    # try_sum is NULL after an overflow and for a group of NULLs only; the count tells them apart.
    return F.try_sum(column).alias(alias), F.count(column).alias(f"{alias}_values")


def _sum(row: Row, alias: str, name: str) -> int:
    if row[alias] is None and row[f"{alias}_values"] > 0:
        raise ValueError(f"the sum of {name!r} passes the largest 64-bit integer, 9,223,372,036,854,775,807")
    return int(row[alias] or 0)


def _fetch(grouped: DataFrame, columns: Sequence[str], names: Sequence[str]) -> list[Row]:
    rows = grouped.limit(MOST_GROUPS + 1).collect()
    if len(rows) > MOST_GROUPS:
        raise ValueError(
            f"{' + '.join(columns)} has more than {MOST_GROUPS:,} different values; "
            "group by columns with fewer values, such as the source"
        )
    return sorted(rows, key=lambda row: [(row[name] is None, row[name] or "") for name in names])
