"""One deciding step from its inputs to its decisions: the same for every decider.

A step sees the survivors of the steps before it, and only if these decided on the same documents, with the settings
that hold now. It replaces its own slice of ``decisions`` and counts what it dropped against what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.deciding.annotated import annotator_tables, check_annotated, with_annotations
from jobs.runtime.errors import InputContractError, RetryLater
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Outcome
from jobs.runtime.runs import Count
from jobs.runtime.stages import counts_by
from jobs.runtime.tables import Pinned, latest_version, sql_string
from schemas.tables import DECISIONS

if TYPE_CHECKING:
    from jobs.settings import Settings

FAILING = "ARRAY<STRUCT<rule: STRING, value: STRING, limit: STRING>>"


@dataclass(frozen=True)
class Candidates:
    """What a decider works on.

    Attributes:
        documents: The survivors of the earlier steps, without text, with every documents column.
        with_text: The same, with text (read only if used).
        annotated: From names of annotators to the documents with these.
        annotation: From the name of one annotator to its column with ``doc_id``, ``source`` and ``batch``: no join.
        has: Names of the annotators that can be had.
        tokens: ``doc_id`` and ``tokens``, where they were counted.
    """

    documents: DataFrame
    with_text: DataFrame
    annotated: Callable[[Sequence[str]], DataFrame]
    annotation: Callable[[str], DataFrame]
    has: frozenset[str]
    tokens: DataFrame | None = None


def step_inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    """Every decider reads documents, the earlier decisions, and the annotations that exist."""
    return [
        Input("documents"),
        Input("decisions", optional=True),
        *(Input(name, optional=True) for name in annotations),
    ]


def decisions_of(
    frame: DataFrame,
    *,
    reason: Column,
    method: str,
    failing: Column | None = None,
    kept_id: Column | None = None,
    kept_in: Column | None = None,
    similarity: Column | None = None,
    group_size: Column | None = None,
    shared_bands: Column | None = None,
    proven: bool = True,
) -> DataFrame:
    """Rows of a frame with ``doc_id``, ``source``, ``batch`` as decisions, the evidence in its columns."""
    return frame.select(
        "doc_id",
        "source",
        "batch",
        reason.alias("reason"),
        (failing if failing is not None else F.array().cast(FAILING)).cast(FAILING).alias("failing"),
        (kept_id if kept_id is not None else F.lit(None).cast("string")).alias("kept_id"),
        (kept_in if kept_in is not None else F.lit(None).cast("string")).alias("kept_in"),
        (similarity if similarity is not None else F.lit(None)).cast("double").alias("similarity"),
        F.lit(method).alias("method"),
        F.lit(proven).alias("proven"),
        (group_size if group_size is not None else F.lit(None)).cast("bigint").alias("group_size"),
        (shared_bands if shared_bands is not None else F.lit(None)).cast("int").alias("shared_bands"),
    )


def decide(context: Context, decider: Callable[[Candidates], DataFrame]) -> Outcome:
    """Run a decider on the survivors of the earlier steps and store what it drops."""
    candidates = candidates_of(context)
    return store_decisions(context, candidates, decider(candidates))


def candidates_of(context: Context) -> Candidates:
    """The survivors of the earlier steps."""
    settings = context.settings
    check_earlier_steps(context)
    documents = context.read("documents")
    earlier = settings.steps_before(context.step)
    narrow = documents.drop("text")
    remaining: Callable[[DataFrame], DataFrame] = lambda frame: frame  # noqa: E731
    if earlier and context.has("decisions"):
        dropped = (
            context.read("decisions")
            .where((F.col("policy") == settings.policy) & F.col("step").isin(earlier))
            .select("doc_id")
        )
        remaining = lambda frame: frame.join(dropped, ["doc_id"], "left_anti")  # noqa: E731
    identities = settings.annotator_identities()
    places = annotator_tables(context.spark, context.inputs, identities)
    spark, inputs, version = context.spark, context.inputs, context.version("documents")

    def annotated(names: Sequence[str]) -> DataFrame:
        joined = with_annotations(spark, narrow, inputs, places, identities, names)
        check_annotated(context.runs, version, identities, names)
        return remaining(joined)

    def annotation(name: str) -> DataFrame:
        check_annotated(context.runs, version, identities, [name])
        return remaining(inputs[places[name]].read(spark).select("doc_id", "source", "batch", name))

    tokens = None
    if "tokens" in places:
        counted = inputs[places["tokens"]].read(spark)
        tokens = counted.select("doc_id", F.col("tokens.count").alias("tokens"))
    return Candidates(remaining(narrow), remaining(documents), annotated, annotation, frozenset(places), tokens)


def slice_of(context: Context) -> str:
    """The rows of this policy and step, as an SQL condition over partition columns."""
    return f"policy = {sql_string(context.settings.policy)} AND step = {sql_string(context.step)}"


def place_of(context: Context, add: bool) -> str:
    """What a write replaces: the whole slice, or to add to it, this run's own rows, of which there are none.

    A plain append would let two runs add the same documents; so the later one of them is told.
    """
    return slice_of(context) + (f" AND run_id = {sql_string(context.run_id)}" if add else "")


def stamped(context: Context, rows: DataFrame) -> DataFrame:
    """Rows with the policy, step, run and version of documents that they belong to."""
    return rows.withColumns(
        {
            "policy": F.lit(context.settings.policy),
            "step": F.lit(context.step),
            "documents_version": F.lit(context.version("documents")).cast("bigint"),
            "run_id": F.lit(context.run_id),
        }
    )


def check_nobody_added(context: Context, table: str) -> None:
    """What this run adds to must still be what it read, but for its own rows from an attempt before.

    Raises:
        RetryLater: if another run has added to the slice since.
    """
    ref = context.ref(table)
    newest = Pinned(table, ref, latest_version(context.spark, ref) or 0)
    others = f"{slice_of(context)} AND run_id <> {sql_string(context.run_id)}"
    read, now = (frame.where(others).count() for frame in (context.read(table), newest.read(context.spark)))
    if read != now:
        raise RetryLater(
            f"step '{context.step}': another run decided on new arrivals meanwhile ({table}: {now:,} rows, {read:,} when this "
            "run began). Nothing was written; run it again."
        )


def store_decisions(context: Context, candidates: Candidates, decisions: DataFrame, add: bool = False) -> Outcome:
    """Write decisions, count what was dropped against what was given, take the digest.

    Args:
        context: Of the job.
        candidates: What the step worked on.
        decisions: See ``decisions_of``.
        add: Keep the step's decisions that there are, and add these; otherwise they are replaced.
    """
    made = stamped(context, decisions)
    with context.progress.stage("deciding"):
        written = context.write(made.select(*DECISIONS.column_names), "decisions", replace_where=place_of(context, add))
    mine = written.pinned().read(context.spark).where(slice_of(context))
    with context.progress.stage("counting"):
        counts = _counts(candidates, mine)
    digest = context.digest(mine.select("doc_id", "reason", "kept_id"), "doc_id", F.col("reason"), F.col("kept_id"))
    return Outcome(counts, digest, {"earlier_steps": ", ".join(context.settings.steps_before(context.step))})


def check_earlier_steps(context: Context) -> None:
    """Every earlier step must have decided on the documents that this step sees, with the settings of now.

    Raises:
        InputContractError: naming each step that has not, and what to run.
    """
    check_steps(context, context.settings.steps_before(context.step))


def check_steps(context: Context, steps: Sequence[str]) -> None:
    """See ``check_earlier_steps``; ``select`` asks it of all steps."""
    from jobs.registry import job_of_step
    from jobs.runtime.job import dependencies_of
    from jobs.runtime.layers import fingerprint

    problems = []
    version = context.version("documents")
    for step in steps:
        job = job_of_step(context.settings, step)
        record = context.runs.latest_done(job.record_name, step, context.settings.policy)
        if record is None:
            problems.append(f"step '{step}' has not been decided")
            continue
        seen = {str(entry["name"]): int(entry["version"]) for entry in record.inputs}.get("documents")
        if seen != version:
            problems.append(f"step '{step}' decided on version {seen} of documents, this run reads version {version}")
        elif record.settings_sha256 != fingerprint(dependencies_of(job, context.settings, step)):
            problems.append(f"step '{step}' was decided with other settings (run {record.run_id})")
    if problems:
        raise InputContractError(
            f"{context.job.name}: the steps before it don't fit:",
            problems,
            "Decide them again, in order; 'weir run' does it.",
        )


def _counts(candidates: Candidates, mine: DataFrame) -> list[Count]:
    """In: counted on the survivors alone. Dropped: the decisions, each of which must be one of them."""
    base = candidates.documents.select("doc_id", "source", "bytes")
    tokens = None
    if candidates.tokens is not None:
        base, tokens = base.join(candidates.tokens, ["doc_id"], "left"), F.col("tokens")
    size = F.col("bytes")
    total = counts_by(base, outcome=F.lit("in"), reason=F.lit(""), tokens=tokens, size=size)
    judged = base.join(mine.select("doc_id", "reason"), ["doc_id"], "left")
    outcome = F.when(F.col("reason").isNull(), "kept").otherwise(F.lit("dropped"))
    split = counts_by(judged, outcome=outcome, reason=F.coalesce("reason", F.lit("")), tokens=tokens, size=size)
    found, written = sum(c.documents for c in split if c.outcome == "dropped"), mine.count()
    if found != written:
        raise InputContractError(f"{written:,} decisions, but only {found:,} of them are about documents of this step")
    return [*total, *split]
