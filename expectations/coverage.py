"""The coverage suite: every planned slice keeps its floor of documents and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expectations.slices import Slice, slice_label, slice_names, slice_values
from expectations.suite import SLICE_COVERAGE, Expectation, Severity, Suite, row_floor

SHOWN = 20
"""How many slices that nobody planned are listed in the details; all of them are counted."""
NAMED = 5
"""How many failing slices a sentence names before it says how many more there are."""


@dataclass(frozen=True)
class Floor:
    """The least that a slice must keep, in distinct documents and in their tokens.

    None means no floor in the common floor, and "as the common floor" in an override.

    Raises:
        ValueError: a negative floor.
    """

    documents: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for unit in ("documents", "tokens"):
            limit = getattr(self, unit)
            if limit is not None and limit < 0:
                raise ValueError(f"a floor of {limit} {unit} makes no sense; it must be 0 or more")


def coverage_suite(
    per: Sequence[str],
    planned: Iterable[Slice],
    floor: Floor,
    *,
    overrides: Mapping[Slice, Floor] | None = None,
    document_column: str = "doc_id",
    token_column: str | None = "tokens",
    minimum_rows: int = 1,
    severity: Severity = "critical",
    name: str = "coverage",
) -> Suite:
    """A row floor, and a floor of distinct documents and tokens for every planned slice.

    The slices come from the plan or from the job's input, never from the frame that is validated: a slice
    that lost all its rows forms no group there, and counts as 0 here.

    Args:
        per: the columns whose values make a slice, e.g. ``["source"]``.
        planned: the slices that must be there; one value per column of ``per``, None or ``<null>`` for NULL.
        floor: the floor of every slice.
        overrides: other floors for single slices; a slice that is only named here is planned too.
        document_column: the column that tells documents apart; a repeated document counts once in a slice.
        token_column: an integer column; None if the frame has none (then no floor may be in tokens).
        minimum_rows: the row floor of the whole frame.
        severity: of the slice floors; the row floor is always critical.
        name: the name of the suite.

    Raises:
        ValueError: no columns, no planned slices, a slice of the wrong width, a token floor without a token
            column, or floors that are all 0 (such a suite can't fail).
    """
    if not per:
        raise ValueError("coverage needs at least one column to slice by")
    floors = {tuple(slice_values(given, per)): floor for given in planned}
    for given, override in (overrides or {}).items():
        floors[tuple(slice_values(given, per))] = Floor(
            documents=floor.documents if override.documents is None else override.documents,
            tokens=floor.tokens if override.tokens is None else override.tokens,
        )
    if not floors:
        raise ValueError("coverage needs the list of planned slices; with none, every slice could vanish unnoticed")
    if not any(limit.documents or limit.tokens for limit in floors.values()):
        raise ValueError("every coverage floor is 0, so no slice could fail; set a floor in documents or tokens")
    if token_column is None and any(limit.tokens for limit in floors.values()):
        raise ValueError("there is a floor in tokens, but no token column; name the column that holds the tokens")
    arguments = {
        "slice_columns": list(per),
        "floors": [
            {"slice": list(values), "documents": limit.documents or 0, "tokens": limit.tokens or 0}
            for values, limit in floors.items()
        ],
        "document_column": document_column,
        "token_column": token_column,
    }
    coverage = Expectation(
        type=SLICE_COVERAGE,
        arguments=arguments,
        description=coverage_sentence(arguments),
        severity=severity,
    )
    return Suite(name, (row_floor(minimum_rows), coverage))


def coverage_violations(
    floors: Sequence[Mapping[str, Any]], counts: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Compares the counts of the slices found with the floors of the slices planned.

    Args:
        floors: ``{slice, documents, tokens}`` for each planned slice.
        counts: the same for each slice found; a planned slice that isn't in it counts 0.

    Returns:
        The violations ``{slice, documents, tokens, floor_documents, floor_tokens}`` in the order of the plan;
        and ``{slices, documents, tokens, first}`` of what was found outside the plan: how many slices, their
        documents and tokens, and the slices with most documents.
    """
    found = {tuple(count["slice"]): count for count in counts}
    violations = []
    for floor in floors:
        count = found.pop(tuple(floor["slice"]), {"documents": 0, "tokens": 0})
        if count["documents"] < floor["documents"] or count["tokens"] < floor["tokens"]:
            violations.append(
                {
                    "slice": slice_names(floor["slice"]),
                    "documents": count["documents"],
                    "tokens": count["tokens"],
                    "floor_documents": floor["documents"],
                    "floor_tokens": floor["tokens"],
                }
            )
    # Ties by name, so that the same data always gives the same report.
    surplus = sorted(found.values(), key=lambda count: (-count["documents"], slice_names(count["slice"])))
    unplanned = {
        "slices": len(surplus),
        "documents": sum(count["documents"] for count in surplus),
        "tokens": sum(count["tokens"] for count in surplus),
        "first": [{**count, "slice": slice_names(count["slice"])} for count in surplus[:SHOWN]],
    }
    return violations, unplanned


def coverage_sentence(arguments: Mapping[str, Any]) -> str:
    """The sentence of ``expect_slice_coverage``: the commonest floor, then the slices that have another."""
    floors = list(arguments["floors"])
    by_limit: dict[tuple[int, int], list[str]] = {}
    for floor in floors:
        by_limit.setdefault((floor["documents"], floor["tokens"]), []).append(slice_label(floor["slice"]))
    common, *others = sorted(by_limit.items(), key=lambda item: -len(item[1]))
    columns = " + ".join(arguments["slice_columns"])
    planned = "The planned slice" if len(floors) == 1 else f"Each of the {len(floors):,} planned slices"
    sentence = f"{planned} by {columns} has {_limit_words(*common[0])}"
    for limit, labels in others[:NAMED]:
        sentence += f"; {_listed(labels)}: {_limit_words(*limit)}"
    return sentence + ("; ..." if len(others) > NAMED else "") + "."


def coverage_observed(violations: Sequence[Mapping[str, Any]], planned: int) -> str:
    """What was found, in a sentence: which slices are below their floors, and by how much."""
    if not violations:
        return f"{planned:,} of {planned:,} planned slices reach the floor"
    found = []
    for violation in violations[:NAMED]:
        missing = [
            f"{violation[unit]:,} of {violation[f'floor_{unit}']:,} {unit}"
            for unit in ("documents", "tokens")
            if violation[unit] < violation[f"floor_{unit}"]
        ]
        found.append(f"{' / '.join(violation['slice'])} has {' and '.join(missing)}")
    more = len(violations) - NAMED
    tail = f"; and {more:,} more" if more > 0 else ""
    share = f"{len(violations):,} of {planned:,} planned slices"
    return f"{share} below the floor: {'; '.join(found)}{tail}"


def _limit_words(documents: int, tokens: int) -> str:
    limits = [f"{limit:,} {unit}" for limit, unit in ((documents, "documents"), (tokens, "tokens")) if limit]
    return f"at least {' and '.join(limits)}" if limits else "no floor"


def _listed(labels: Sequence[str]) -> str:
    more = len(labels) - NAMED
    return ", ".join(labels[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
