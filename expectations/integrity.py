"""The integrity suite: rows are there, ids are unique, values are present, and everything adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from expectations.slices import Slice, slice_label, slice_names, slice_values
from expectations.suite import (
    SUMS_TO_MATCH,
    Expectation,
    Severity,
    Suite,
    no_null_or_nan,
    row_floor,
    unique_key,
)

SHOWN = 20
"""How many groups that nobody expected are listed in the details; all of them are counted."""
NAMED = 5
"""How many differences a sentence names before it says how many more there are."""


@dataclass(frozen=True)
class GroupTotals:
    """What a group of rows must add up to.

    Args:
        group: the values of the group's columns; an empty tuple for the whole frame.
        rows: the number of rows.
        sums: the sum of each named integer column. Python integers, so no total is too large.
    """

    group: Slice
    rows: int
    sums: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ExpectedTotals:
    """The totals of a frame by the values of ``per``, known from elsewhere: the job's input, the run record.

    A group that is found and isn't listed is a difference, and so is a listed group that isn't found, unless
    its totals are all 0.
    """

    per: tuple[str, ...]
    groups: tuple[GroupTotals, ...]


def integrity_suite(
    *,
    key: Sequence[str] = ("doc_id",),
    required: Sequence[str] = ("source",),
    numeric: Sequence[str] = (),
    totals: Sequence[ExpectedTotals] = (),
    minimum_rows: int = 1,
    severity: Severity = "critical",
    name: str = "integrity",
) -> Suite:
    """What holds for every per-document table.

    Args:
        key: the columns that identify a row; unique together, and none of them NULL.
        required: further columns that are never NULL.
        numeric: columns that are never NULL and never NaN.
        totals: what rows and sums of columns must come to, e.g. rows in = kept + dropped per source.
        minimum_rows: the row floor of the frame.
        severity: of everything but the row floor, which is always critical.
        name: the name of the suite.

    Raises:
        ValueError: no key, or totals as refused by ``sums_to_match``.
    """
    complete = dict.fromkeys([*key, *required, *numeric])
    return Suite(
        name,
        (
            row_floor(minimum_rows),
            unique_key(key, severity=severity),
            *(no_null_or_nan(column, severity=severity) for column in complete),
            *(sums_to_match(expected, severity=severity) for expected in totals),
        ),
    )


def sums_to_match(expected: ExpectedTotals, *, severity: Severity = "critical") -> Expectation:
    """The frame's rows and sums by group equal ``expected``, exactly.

    Raises:
        ValueError: a group of the wrong width, a group named twice, groups that don't sum the same columns,
            or no groups at all.
    """
    if not expected.groups:
        raise ValueError("expected totals need at least one group")
    columns = sorted(expected.groups[0].sums)
    groups: dict[tuple[str | None, ...], dict[str, Any]] = {}
    for totals in expected.groups:
        values = tuple(slice_values(totals.group, expected.per))
        if sorted(totals.sums) != columns:
            raise ValueError(
                f"the group {slice_label(values)} sums {sorted(totals.sums)}, the first one {columns}; "
                "all groups must sum the same columns"
            )
        if values in groups:
            raise ValueError(f"the group {slice_label(values)} is expected twice")
        groups[values] = {"group": list(values), "rows": totals.rows, "sums": dict(totals.sums)}
    arguments = {
        "group_columns": list(expected.per),
        "sum_columns": columns,
        "expected": list(groups.values()),
    }
    return Expectation(
        type=SUMS_TO_MATCH,
        arguments=arguments,
        description=sums_sentence(arguments),
        severity=severity,
    )


def sum_differences(
    expected: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], int]:
    """Compares totals found with totals expected.

    Args:
        expected: ``{group, rows, sums}`` for each group that is expected.
        found: the same for each group that the frame has; a group that is in neither list counts 0.

    Returns:
        The differences ``{group, measure, expected, observed}``, where the measure is ``rows`` or the column
        summed: those of the expected groups in their order, then those of the unexpected groups with most rows;
        and the number of unexpected groups.
    """
    by_group = {tuple(totals["group"]): totals for totals in found}
    differences = []
    for totals in expected:
        nothing = {"rows": 0, "sums": dict.fromkeys(totals["sums"], 0)}
        differences += _differences(totals["group"], totals, by_group.pop(tuple(totals["group"]), nothing))
    surplus = sorted(by_group.values(), key=lambda totals: (-totals["rows"], slice_names(totals["group"])))
    for totals in surplus[:SHOWN]:
        nothing = {"rows": 0, "sums": dict.fromkeys(totals["sums"], 0)}
        differences += _differences(totals["group"], nothing, totals)
    return differences, len(surplus)


def _differences(
    group: Sequence[str | None], expected: Mapping[str, Any], observed: Mapping[str, Any]
) -> list[dict[str, Any]]:
    measures = [("rows", expected["rows"], observed["rows"])]
    measures += [(column, limit, observed["sums"][column]) for column, limit in expected["sums"].items()]
    return [
        {"group": slice_names(group), "measure": measure, "expected": limit, "observed": value}
        for measure, limit, value in measures
        if limit != value
    ]


def sums_sentence(arguments: Mapping[str, Any]) -> str:
    """The sentence of ``expect_sums_to_match``."""
    measures = " and ".join(["rows", *(f"sum of {column}" for column in arguments["sum_columns"])])
    groups = list(arguments["expected"])
    if not arguments["group_columns"]:
        limits = [f"{groups[0]['rows']:,} rows"]
        limits += [f"{limit:,} {column}" for column, limit in groups[0]["sums"].items()]
        return f"The frame adds up to {' and '.join(limits)}."
    return (
        f"By {' + '.join(arguments['group_columns'])}, {measures} equal the totals expected "
        f"({len(groups):,} group{'' if len(groups) == 1 else 's'})."
    )


def sums_observed(differences: Sequence[Mapping[str, Any]], unexpected: int, expected: int) -> str:
    """What was found, in a sentence: which totals differ, and by how much."""
    if not differences:
        return f"{expected:,} of {expected:,} group totals match"
    found = [
        f"{' / '.join(difference['group']) or 'all rows'}: "
        f"{difference['measure']} {difference['observed']:,} instead of {difference['expected']:,}"
        for difference in differences[:NAMED]
    ]
    more = len(differences) - NAMED
    tail = f"; and {more:,} more" if more > 0 else ""
    groups = f" (groups that nobody expected: {unexpected:,})" if unexpected else ""
    return f"{'; '.join(found)}{tail}{groups}"
