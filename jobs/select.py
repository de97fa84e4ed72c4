"""select: every document with its fate, from the decisions of all steps in their order.

Tables: reads ``documents``, ``decisions``, ``annotations*`` (tokens); writes its policy's slice of ``selection``.

Checks that all decisions were made for the same version of documents with the present settings; that every
duplicate's kept twin survived that step; and that everything adds up. Counts duplicates whose twin a later step
dropped (``orphaned``).

Deterministic: depends on the decisions alone.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.deciding.annotated import annotator_tables, check_annotated, with_annotations
from jobs.deciding.step import check_steps, step_inputs
from jobs.runtime.errors import GateFailed, ReconciliationError
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import SettingsModel
from jobs.runtime.runs import Count
from jobs.runtime.stages import counts_by
from jobs.runtime.tables import sql_string
from schemas.tables import SELECTION

if TYPE_CHECKING:
    from jobs.settings import Settings


class SelectSettings(SettingsModel):
    """Settings of select."""

    max_orphaned: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Largest share of duplicates whose kept twin a later step dropped; above it, exit 3",
    )


def first_decisions(decisions: DataFrame, steps: Sequence[str]) -> DataFrame:
    """The earliest step's decision about each document: ``doc_id``, ``step``, ``reason``, ``kept_id``, ``kept_in``,
    ``position`` (of the step, from 0)."""
    position = F.lit(None).cast("int")
    for number, step in enumerate(steps):
        position = F.when(F.col("step") == step, F.lit(number)).otherwise(position)
    placed = decisions.withColumn("position", position).where(F.col("position").isNotNull())
    values = F.struct("step", "reason", "kept_id", "kept_in", "group_size", "position")
    first = F.min_by(values, F.col("position")).alias("first")
    return placed.groupBy("doc_id").agg(first).select("doc_id", "first.*")


def selected(documents: DataFrame, first: DataFrame, decisions: DataFrame) -> DataFrame:
    """Every document once, with its fate.

    Args:
        documents: ``doc_id``, ``source``, ``batch``, ``characters``, ``bytes``, ``language``, ``tokens``; no text.
        first: See ``first_decisions``.
        decisions: All decisions of the policy's steps, for the sizes of duplicate groups.

    A group is counted here, over all decisions that name its kept document: a step that decides about new arrivals only
    doesn't write the older rows again. A survivor's group size is that of its largest group in any step.
    """
    twin = ("step", "kept_id", "kept_in")
    sizes = (
        decisions.where(F.col("kept_id").isNotNull())
        .withColumn("kept_in", F.coalesce("kept_in", F.lit("")))
        .groupBy(*twin)
        .agg((F.count(F.lit(1)) + 1).alias("counted"))
    )
    mine = first.withColumn("place", F.coalesce("kept_in", F.lit("")))
    dropped = mine.join(sizes.withColumnRenamed("kept_in", "place"), ["step", "kept_id", "place"], "left").drop("place")
    groups = (
        sizes.where(F.col("kept_in") == "")
        .groupBy(F.col("kept_id").alias("doc_id"))
        .agg(F.max("counted").alias("kept_group_size"))
    )
    joined = documents.join(dropped, ["doc_id"], "left").join(groups, ["doc_id"], "left")
    size = F.coalesce("counted", "group_size", "kept_group_size", F.lit(1))
    narrow = joined.withColumns({"kept": F.col("step").isNull(), "group_size": size})
    return narrow.drop("counted", "kept_group_size", "position")


def twins(first: DataFrame) -> DataFrame:
    """Duplicates with the fate of their kept twin: ``position`` of the drop, ``twin_position`` (NULL: it is kept).

    Twins that stand in another table are not decided on here, and left out.
    """
    mine = F.col("kept_id").isNotNull() & F.col("kept_in").isNull()
    duplicates = first.where(mine).select("doc_id", "kept_id", "position")
    fate = first.select(F.col("doc_id").alias("kept_id"), F.col("position").alias("twin_position"))
    return duplicates.join(fate, ["kept_id"], "left")


def run(context: Context) -> Outcome:
    """Check the decisions, join them, store the selection."""
    settings, spark = context.settings, context.spark
    steps = [step.name for step in settings.decide]
    check_steps(context, steps)
    documents = context.read("documents").drop("text")
    places = annotator_tables(spark, context.inputs, settings.annotator_identities())
    tokens = F.lit(None).cast("bigint")
    if "tokens" in places:
        identities = settings.annotator_identities()
        check_annotated(context.runs, context.version("documents"), identities, ["tokens"])
        documents = with_annotations(spark, documents, context.inputs, places, identities, ["tokens"])
        tokens = F.col("tokens.count")
    narrow = documents.select("doc_id", "source", "batch", "characters", "bytes", "language", tokens.alias("tokens"))
    # Decisions of a step that the settings no longer have may still be in the table.
    decisions = _decisions(context).where(F.col("step").isin(steps))
    first = context.scratch.materialize(first_decisions(decisions, steps), "first_decisions")
    orphaned, duplicates = _check_twins(first)
    frame = selected(narrow, first, decisions).withColumns(
        {
            "documents_version": F.lit(context.version("documents")).cast("bigint"),
            "run_id": F.lit(context.run_id),
            "policy": F.lit(settings.policy),
        }
    )
    policy = f"policy = {sql_string(settings.policy)}"
    with context.progress.stage("joining decisions"):
        written = context.write(frame.select(*SELECTION.column_names), "selection", replace_where=policy)
    mine = written.pinned().read(spark).where(policy)
    counts = _counts(context, mine, "tokens" in places)
    digest = context.digest(mine.select("doc_id", "kept"), "doc_id", F.col("kept"))
    notes = {"orphaned": str(orphaned), "duplicates": str(duplicates)}
    limit = settings.select.max_orphaned
    if limit is not None and duplicates and orphaned / duplicates > limit:
        raise GateFailed(
            f"{orphaned:,} of {duplicates:,} duplicates ({orphaned / duplicates:.1%}) lost their kept twin to a later step; "
            f"the limit select.max_orphaned is {limit:.1%}. Put the filters that drop the twins before the deduplication."
        )
    if orphaned:
        context.progress.say(
            f"{orphaned:,} of {duplicates:,} duplicates lost their kept twin to a later step (orphaned)"
        )
    return Outcome(counts, digest, notes)


def _decisions(context: Context) -> DataFrame:
    if context.has("decisions"):
        return context.read("decisions").where(F.col("policy") == context.settings.policy)
    from schemas.tables import DECISIONS

    return context.spark.createDataFrame([], DECISIONS.struct_type())


def _check_twins(first: DataFrame) -> tuple[int, int]:
    """How many duplicates are orphaned, and how many there are.

    Raises:
        ReconciliationError: if a kept twin did not survive the step that named it.
    """
    pairs = twins(first)
    row = pairs.agg(
        F.count(F.lit(1)),
        F.coalesce(F.sum((F.col("twin_position") > F.col("position")).cast("bigint")), F.lit(0)),
        F.coalesce(F.sum((F.col("twin_position") <= F.col("position")).cast("bigint")), F.lit(0)),
    ).first()
    duplicates, orphaned, broken = (int(value) for value in row) if row is not None else (0, 0, 0)
    if broken:
        examples = pairs.where(F.col("twin_position") <= F.col("position")).orderBy("doc_id").limit(5).collect()
        raise ReconciliationError(
            f"{broken:,} duplicate(s) name a twin that did not survive the step: "
            + ", ".join(f"{r['doc_id']} -> {r['kept_id']}" for r in examples)
        )
    return orphaned, duplicates


def _counts(context: Context, selection: DataFrame, with_tokens: bool) -> list[Count]:
    base = context.read("documents").select("source", "bytes")
    total = counts_by(base, outcome=F.lit("in"), reason=F.lit(""), size=F.col("bytes"))
    outcome = F.when(F.col("kept"), "kept").otherwise(F.lit("dropped"))
    reason = F.when(F.col("kept"), F.lit("")).otherwise(F.concat_ws(": ", "step", "reason"))
    tokens = F.col("tokens") if with_tokens else None
    return [*total, *counts_by(selection, outcome=outcome, reason=reason, tokens=tokens, size=F.col("bytes"))]


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    return {
        "steps": [s.model_dump(mode="json") for s in settings.decide],
        "select": settings.select.model_dump(mode="json"),
        "tokens": settings.annotator_identities().get("tokens"),
    }


JOB = Job(
    name="select",
    summary="decisions -> selection: every document with its fate",
    inputs=step_inputs,
    depends_on=_depends_on,
    run=run,
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("select"))
