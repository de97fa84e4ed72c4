"""Suites in our own words: what is expected of a frame, before Great Expectations is loaded.

A suite can be built, compared and printed without a JVM and without importing Great Expectations, which
takes seconds. ``expectations.checkpoint.run_suite`` turns it into the library's objects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Severity = Literal["critical", "warning", "info"]
SEVERITIES: tuple[str, ...] = get_args(Severity)

ROW_FLOOR = "expect_table_row_count_to_be_between"
UNIQUE_KEY = "expect_key_to_be_unique"
NO_NULL_OR_NAN = "expect_column_to_have_no_null_or_nan"
SUMS_TO_MATCH = "expect_sums_to_match"
SLICE_COVERAGE = "expect_slice_coverage"


@dataclass(frozen=True)
class Expectation:
    """One expectation: the type that is evaluated, its arguments, and the sentence that a reader sees.

    Raises:
        ValueError: unknown severity, or an argument that JSON can't hold (the limits of a gate are stored).
    """

    type: str
    """Type name in snake case, as registered with Great Expectations."""
    arguments: Mapping[str, Any]
    """Keyword arguments of that type; JSON values only."""
    description: str
    """What is expected, as a sentence."""
    column: str | None = None
    """The one column that the expectation is about, if there is one."""
    severity: Severity = "critical"
    """``critical`` blocks a release when it fails; the others only when they can't be evaluated."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity is {self.severity!r}; it must be one of {', '.join(SEVERITIES)}")
        try:
            json.dumps(dict(self.arguments), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the arguments of {self.type} must be JSON values: {error}") from error

    @property
    def limit(self) -> str:
        """The arguments as a JSON object with sorted keys, so that equal limits are equal strings."""
        return json.dumps(dict(self.arguments), sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class Suite:
    """A named list of expectations that hold for one frame.

    Every suite has a critical floor of at least one row: "no NULL", "unique" and "in range" all hold on an
    empty table, so without the floor a job that lost everything would pass.

    Raises:
        ValueError: no name, no row floor, or the same expectation twice (Great Expectations would keep one).
    """

    name: str
    expectations: tuple[Expectation, ...]

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a suite needs a name")
        seen: set[tuple[str, str]] = set()
        for expectation in self.expectations:
            identity = (expectation.type, expectation.limit)
            if identity in seen:
                raise ValueError(f"suite {self.name!r} holds {expectation.type} twice with {expectation.limit}")
            seen.add(identity)
        if not any(_is_row_floor(expectation) for expectation in self.expectations):
            raise ValueError(
                f"suite {self.name!r} has no critical floor of at least one row, so an empty table could pass; "
                "begin it with row_floor()"
            )


def _is_row_floor(expectation: Expectation) -> bool:
    return (
        expectation.type == ROW_FLOOR
        and expectation.severity == "critical"
        and (expectation.arguments.get("min_value") or 0) >= 1
    )


def row_floor(minimum: int = 1) -> Expectation:
    """The frame has at least ``minimum`` rows (one or more). Critical always.

    Raises:
        ValueError: ``minimum`` is below 1.
    """
    if minimum < 1:
        raise ValueError(f"a row floor of {minimum} can't fail; it must be 1 or more")
    return Expectation(
        type=ROW_FLOOR,
        arguments={"min_value": minimum},
        description=f"The frame has at least {minimum:,} row{'' if minimum == 1 else 's'}.",
    )


def unique_key(columns: Sequence[str], *, severity: Severity = "critical") -> Expectation:
    """No two rows share the values of ``columns`` (rows with a NULL in them are left to ``no_null_or_nan``).

    Raises:
        ValueError: no columns.
    """
    if not columns:
        raise ValueError("a key needs at least one column")
    arguments = {"columns": list(columns)}
    return Expectation(
        type=UNIQUE_KEY,
        arguments=arguments,
        description=unique_key_sentence(arguments),
        column=columns[0] if len(columns) == 1 else None,
        severity=severity,
    )


def unique_key_sentence(arguments: Mapping[str, Any]) -> str:
    """The sentence of ``expect_key_to_be_unique``."""
    columns = list(arguments["columns"])
    return f"Every {' + '.join(columns)} occurs once."


def no_null_or_nan(column: str, *, severity: Severity = "critical") -> Expectation:
    """``column`` holds a value in every row: neither NULL nor, in a floating-point column, NaN."""
    arguments = {"column": column}
    return Expectation(
        type=NO_NULL_OR_NAN,
        arguments=arguments,
        description=no_null_or_nan_sentence(arguments),
        column=column,
        severity=severity,
    )


def no_null_or_nan_sentence(arguments: Mapping[str, Any]) -> str:
    """The sentence of ``expect_column_to_have_no_null_or_nan``."""
    return f"{arguments['column']} is never NULL and never NaN."
