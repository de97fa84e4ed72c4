"""validate: the gates. Great Expectations suites over narrow frames; a failure or an error inside one blocks, exit 3.

Tables: reads ``documents``, ``selection``; writes ``validations``, one row per expectation, before it says no.

Suites: integrity (unique ids, no NULL or NaN, rows and bytes per source as in documents) and coverage (floors per
slice in documents and tokens; the slices come from the input and the settings, so that one that vanished counts 0).

Deterministic: depends on the tables and the settings.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.coverage import Floor, coverage_suite
from expectations.integrity import ExpectedTotals, GroupTotals, integrity_suite
from expectations.results import ExpectationResult
from expectations.slices import Slice
from expectations.suite import Suite, row_floor
from jobs.runtime.errors import InputContractError
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import SettingsModel
from schemas.tables import VALIDATIONS

if TYPE_CHECKING:
    from jobs.settings import Settings

SLICE_COLUMNS = ("source", "language")
SLICES_MOST = 10_000
"""A floor per slice is for slices that people name; this many rows come to the driver at the most."""


class FloorSettings(SettingsModel):
    """A floor: the least that a slice must keep."""

    documents: int = Field(0, ge=0, description="Distinct documents")
    tokens: int = Field(0, ge=0, description="Tokens of distinct documents")


class CoverageSettings(SettingsModel):
    """Floors per slice of what is kept."""

    per: list[str] = Field(default_factory=lambda: ["source"], min_length=1, description="Columns that make a slice")
    floor: FloorSettings = Field(default_factory=lambda: FloorSettings(documents=1), description="Floor of every slice")
    floors: dict[str, FloorSettings] = Field(
        default_factory=dict,
        description="Floors of single slices by value; several columns joined by /; NULL is <null>",
    )

    @field_validator("per")
    @classmethod
    def _known(cls, per: list[str]) -> list[str]:
        unknown = [name for name in per if name not in SLICE_COLUMNS]
        if unknown:
            raise ValueError(f"can't slice by {', '.join(unknown)}; known: {', '.join(SLICE_COLUMNS)}")
        return per


class ValidateSettings(SettingsModel):
    """The gates."""

    coverage: CoverageSettings = Field(default_factory=CoverageSettings, description="Floors per slice")


def integrity_of(documents: DataFrame, with_tokens: bool) -> Suite:
    """The integrity suite of a selection, its totals taken from the documents that went in."""
    rows = documents.groupBy("source").agg(F.count(F.lit(1)), F.sum("bytes")).collect()
    groups = tuple(
        GroupTotals((str(r[0]),), int(r[1]), {"bytes": int(r[2])}) for r in sorted(rows, key=lambda r: str(r[0]))
    )
    numeric = ["characters", "bytes", "group_size", *(["tokens"] if with_tokens else [])]
    return integrity_suite(
        key=("doc_id",),
        required=("source", "kept"),
        numeric=numeric,
        totals=(ExpectedTotals(("source",), groups),) if groups else (),
    )


def coverage_of(
    documents: DataFrame, settings: CoverageSettings, expected_sources: Sequence[str], with_tokens: bool
) -> Suite:
    """The coverage suite: its slices are those of the input, the registry's allowed sources, and those with own floors."""
    rows = documents.select(*settings.per).distinct().limit(SLICES_MOST + 1).collect()
    if len(rows) > SLICES_MOST:
        raise InputContractError(
            f"validate.coverage.per {settings.per} makes more than {SLICES_MOST:,} slices",
            remedy="Slice by fewer columns.",
        )
    planned = {tuple(None if v is None else str(v) for v in row) for row in rows}
    if settings.per == ["source"]:
        planned |= {(source,) for source in expected_sources}
    width = len(settings.per)
    overrides: dict[Slice, Floor] = {}
    for label, floor in settings.floors.items():
        values: tuple[str | None, ...] = tuple(
            None if part == "<null>" else part for part in label.split("/", width - 1)
        )
        overrides[values] = Floor(documents=floor.documents, tokens=floor.tokens)
        planned.add(values)
    if not planned:  # no documents, and none expected by name: the row floor says so
        return Suite("coverage", (row_floor(),))
    common = Floor(documents=settings.floor.documents, tokens=settings.floor.tokens)
    if not any(f.documents or f.tokens for f in (common, *overrides.values())):
        return integrity_suite(key=("doc_id",), required=tuple(settings.per[:1]), name="coverage")
    return coverage_suite(
        per=settings.per,
        planned=sorted(planned, key=str),
        floor=common,
        overrides=overrides,
        token_column="tokens" if with_tokens else None,
    )


def run(context: Context) -> Outcome:
    """Evaluate both suites, store every result, then say whether anything blocks."""
    from expectations.checkpoint import run_suite

    settings = context.settings
    documents = context.read("documents").select("doc_id", "source", "language", "bytes")
    selection = context.read("selection").where(F.col("policy") == settings.policy)
    versions = {int(row[0]) for row in selection.select("documents_version").distinct().limit(2).collect()}
    if versions and versions != {context.version("documents")}:
        raise InputContractError(
            f"the selection of policy '{settings.policy}' was made for version {sorted(versions)} of documents, "
            f"this run reads version {context.version('documents')}",
            remedy="Run the deciding steps and select again; 'weir run' does it.",
        )
    with_tokens = "tokens" in settings.annotate
    excluded = {name for name, source in settings.sources.items() if source.use != "allowed"}
    allowed = documents.where(~F.col("source").isin(sorted(excluded))) if excluded else documents
    expected = sorted(set(settings.sources) - excluded)
    frames = {
        "integrity": selection.select("doc_id", "source", "kept", "characters", "bytes", "tokens", "group_size"),
        "coverage": selection.where("kept").select("doc_id", "source", "language", "tokens"),
    }
    suites = [
        integrity_of(documents, with_tokens),
        coverage_of(allowed, settings.validate_.coverage, expected, with_tokens),
    ]
    results: list[ExpectationResult] = []
    for suite in suites:
        with context.progress.stage(f"suite {suite.name}"):
            results.extend(run_suite(frames[suite.name], suite, run_id=context.run_id))
    context.write(_rows(context, results), "validations")
    blocking = [r for r in results if r.blocks]
    for result in results:
        if not result.success:
            context.progress.say(f"{'BLOCKS' if result.blocks else 'warns '} {result.suite}: {message_of(result)}")
    notes = {suite.name: f"{sum(r.success for r in results if r.suite == suite.name)} of {len(suite.expectations)} met"
             for suite in suites}  # fmt: skip
    blocked = None
    if blocking:
        blocked = f"{len(blocking)} expectation(s) block: " + "; ".join(f"{r.suite}: {message_of(r)}" for r in blocking)
    return Outcome([], None, notes, blocked)


def message_of(result: ExpectationResult) -> str:
    """One sentence about a result: what was expected, and what was found or went wrong."""
    found = f"could not be evaluated: {result.exception}" if result.errored else (result.observed or "not met")
    return f"{result.description} Found: {found}"


def _rows(context: Context, results: Sequence[ExpectationResult]) -> DataFrame:
    now = datetime.datetime.now(datetime.UTC)
    rows = []
    for position, result in enumerate(results):
        rows.append(
            (
                context.run_id,
                context.settings.policy,
                result.suite,
                position,
                result.expectation,
                result.description,
                "selection",
                context.version("selection"),
                result.severity,
                result.success,
                result.errored,
                result.blocks,
                result.observed,
                result.limit,
                result.details,
                result.exception,
                now,
            )
        )
    return context.spark.createDataFrame(rows, VALIDATIONS.struct_type()).coalesce(1)


def _inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    return [Input("documents"), Input("selection")]


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    return {
        "validate": settings.validate_.model_dump(mode="json"),
        "use": {name: source.use for name, source in settings.sources.items()},
        "tokens": "tokens" in settings.annotate,
    }


JOB = Job(
    name="validate",
    summary="gates: integrity and coverage suites; exit 3 if one blocks",
    inputs=_inputs,
    depends_on=_depends_on,
    run=run,
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("validate"))
