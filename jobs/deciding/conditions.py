"""SQL conditions in the settings: each must decide a document by itself, and alike every time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from jobs.deciding.annotated import without_strings
from jobs.runtime.errors import SettingsError

_UNSTEADY = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|now|curdate|unix_timestamp|monotonically_increasing_id|"
    r"spark_partition_id|input_file_name|input_file_block_start|input_file_block_length)\s*\("
    r"|\b(current_date|current_timestamp|current_time|localtimestamp)\b",
    re.IGNORECASE,
)
"""What gives another value the next time, or on another layout of the same rows."""


def check_conditions(frame: DataFrame, conditions: Sequence[tuple[str, str]]) -> None:
    """Refuse conditions that can't be used; all problems at once.

    Args:
        frame: Has the columns that conditions may name.
        conditions: (what it is called in the message, SQL).

    Raises:
        SettingsError: for what is no valid SQL, names unknown columns, looks at other rows (aggregates, windows),
            gives no boolean, or would not be the same every time.
    """
    problems = []
    for label, condition in conditions:
        unsteady = _unsteady(condition)
        if unsteady:
            problems.append(f"{label}: '{condition}' can't be used: {unsteady} does not give the same every time")
            continue
        try:
            kind = frame.select(F.expr(condition).alias("outcome")).schema.fields[0].dataType.simpleString()
            if kind != "boolean":
                problems.append(f"{label}: '{condition}' gives {kind}, not true or false")
            else:
                frame.where(F.expr(condition)).schema  # noqa: B018 - a filter may not look at other rows
        except PySparkException as error:
            problems.append(f"{label}: '{condition}' can't be used: {str(error).splitlines()[0]}")
    if problems:
        raise SettingsError(problems)


def check_values(frame: DataFrame, values: Sequence[tuple[str, str]], *, numeric: bool) -> None:
    """Refuse SQL for a value of each row that can't be used; all problems at once.

    Args:
        frame: Has the columns that the SQL may name.
        values: (what it is called in the message, SQL).
        numeric: Whether it must give a number.

    Raises:
        SettingsError: see ``check_conditions``; also for what gives no number where one is needed.
    """
    problems = []
    for label, value in values:
        unsteady = _unsteady(value)
        if unsteady:
            problems.append(f"{label}: '{value}' can't be used: {unsteady} does not give the same every time")
            continue
        try:
            kind = frame.select(F.expr(value).alias("value")).schema.fields[0].dataType
            frame.where(F.expr(value).isNotNull()).schema  # noqa: B018 - a filter may not look at other rows
            if numeric and not isinstance(kind, NumericType):
                problems.append(f"{label}: '{value}' gives {kind.simpleString()}, not a number")
        except PySparkException as error:
            problems.append(f"{label}: '{value}' can't be used: {str(error).splitlines()[0]}")
    if problems:
        raise SettingsError(problems)


def _unsteady(expression: str) -> str | None:
    found = _UNSTEADY.search(without_strings(expression))
    return (found.group(1) or found.group(2)) if found else None
