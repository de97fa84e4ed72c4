"""near_dedup: of documents that are verified-similar, the best by the survivor rule stays.

Tables: reads ``documents`` (the text of candidates; of all documents if no ``minhash`` annotator was computed),
``annotations``, ``decisions``; writes its slice of ``decisions``.

The outcome is defined, not an accident of the execution. In the order of the survivor rule a document is dropped if it
is verified-similar to a kept document that shares a bucket with it; in each bucket it is compared with the M
best-ranked kept members. The result is the lexicographically first maximal independent set of the verified graph, so
there is only one, whatever the partitions, retries or cluster; every dropped document has its kept twin, and a chain of
neighbours never swallows documents that differ. Two joins prove each result before it is written.

How: bands are exploded into buckets; what shares a bucket is connected, and connected groups are found; a group's texts
come together in one task, which walks it in rank order. So text is read for candidates only, each pair is compared
at most once and only with a kept document, and there are no rounds.

Deterministic: signatures depend on the text and the settings, groups only decide what is judged together.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.deciding.conditions import check_conditions
from jobs.deciding.step import Candidates, decide, decisions_of, step_inputs
from jobs.deciding.survivor import annotators_in, ordered, rank_values, survivor_depends_on
from jobs.near.candidates import Materialize, edges_of, groups_of, node_of
from jobs.near.checking import check_survivors
from jobs.runtime.errors import SettingsError
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import NAME, SettingsModel, SourceSettings
from jobs.runtime.runs import Count
from udfs.annotators.minhash import MINHASH, MinhashSettings
from udfs.lsh import s_curve
from udfs.near_batches import WALKED, Comparing, sign_batches, walk_batches

if TYPE_CHECKING:
    from jobs.settings import Settings

SHOWN_GROUPS = 5
BYTES_PER_TASK = 64 * 2**20
"""Text that one task of the walk takes in, about; a group is never cut."""
BROADCAST_ROWS = 1_000_000
"""Up to so many candidates, their ids go to where the text is (about 100 MB); above, text is shuffled by id."""
SIGNATURE = T.StructType(
    [
        T.StructField("shingles", T.LongType()),
        T.StructField("fingerprint", T.BinaryType()),
        T.StructField("bands", T.ArrayType(T.LongType())),
        T.StructField("sketch", T.BinaryType()),
    ]
)


class NearDedupSettings(SettingsModel):
    """Settings of one near_dedup step."""

    kind: Literal["near_dedup"] = Field("near_dedup", description="Which decider")
    name: str = Field("near_dedup", pattern=NAME, description="Name of the step")
    minhash: str = Field(
        "minhash", pattern=NAME, description="The annotator with the signatures; computed here if 'annotate' has none"
    )
    threshold: float | None = Field(
        None, gt=0, le=1, description="Similarity from which a document is dropped; default: the signatures' threshold"
    )
    verify: Literal["jaccard", "containment", "signature"] = Field(
        "jaccard",
        description="jaccard of the shingle sets; containment: share of the worse one's; signature: estimate, unproven",
    )
    max_compared: int = Field(
        64, ge=1, le=10_000, description="M: kept members of a bucket that a document is compared with"
    )
    slack: float = Field(
        0.2, ge=0, le=1, description="Candidates whose sketches estimate less than threshold - slack aren't verified"
    )
    protected: list[str] = Field(
        default_factory=list, description="SQL conditions; documents that meet one are never dropped and rank first"
    )
    max_share_removed: float = Field(
        0.5, gt=0, le=1, description="Alarm: the largest share of a source's documents that may be dropped"
    )
    on_alarm: Literal["warn", "fail"] = Field("warn", description="warn: say so; fail: exit 3, decisions are stored")
    one_task_edges: int = Field(
        50_000_000, ge=0, description="Up to so many edges, one task finds the groups; above, DataFrames do in rounds"
    )


@dataclass(frozen=True)
class NearDuplicates:
    """The result: ``decisions`` (see ``decisions_of``), ``walked`` (every candidate and what became of it), facts."""

    decisions: DataFrame
    walked: DataFrame
    notes: dict[str, str]


def near_duplicates(
    signed: DataFrame,
    texts: DataFrame,
    settings: NearDedupSettings,
    minhash: MinhashSettings,
    materialize: Materialize,
) -> NearDuplicates:
    """Decisions about near-duplicates.

    Args:
        signed: ``doc_id``, ``source``, ``batch``, ``bytes``, ``minhash``, ``protected``, and ``rank_0_asc``,
            ``rank_1_desc`` ...: the survivor rule's values, see ``with_ranks``. Read several times.
        texts: ``doc_id``, ``text``.
        settings: Of the step.
        minhash: How the signatures were made.
        materialize: Stores an intermediate result.

    Raises:
        ReconciliationError: if the result doesn't pass its own proof.
    """
    bands, rows = minhash.shape
    threshold = settings.threshold if settings.threshold is not None else minhash.threshold
    comparing = Comparing(
        threshold, settings.verify, settings.max_compared, settings.slack, minhash.shingle_words, bands, bands * rows
    )
    known = signed.where(F.col("minhash.shingles") > 0).withColumn("node", node_of(F.col("minhash.fingerprint")))
    edges = materialize(edges_of(known), "edges")
    number = edges.count()
    labels = materialize(groups_of(edges, number, settings.one_task_edges, materialize), "groups")
    involved = materialize(_involved(known, labels), "involved")
    size = involved.where(F.col("place") == 1).agg(F.count(F.lit(1)), F.sum("bytes")).first()
    leading, text_bytes = (int(size[0]), int(size[1] or 0)) if size is not None else (0, 0)
    grouped = involved.drop("bytes")
    if settings.verify != "signature":
        grouped = _with_texts(grouped, texts, broadcast=leading <= BROADCAST_ROWS)
    tasks = max(1, -(-text_bytes // BYTES_PER_TASK))
    spread = max(tasks, int(signed.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))
    walked = materialize(grouped.repartition(spread, "label").mapInArrow(walk_batches(comparing), WALKED), "walked")
    check_survivors(walked, threshold)
    method = settings.verify if settings.verify != "signature" else f"minhash:{bands * rows}"
    decisions = decisions_of(
        walked.where(F.col("kept_id").isNotNull()),
        reason=F.lit("near_duplicate"),
        method=f"{method}>={threshold:g}",
        kept_id=F.col("kept_id"),
        similarity=F.col("similarity"),
        group_size=F.col("group_size"),
        shared_bands=F.col("shared_bands"),
        proven=settings.verify != "signature",
    )
    curve = ", ".join(f"{at}: {value:.3f}" for at, value in s_curve(bands, rows).items())
    notes = {
        "signature": f"{bands} bands x {rows} rows, {minhash.shingle_words} words, threshold {threshold:g}",
        "p_candidate": curve,
        "edges": str(number),
        **_facts(walked),
    }
    return NearDuplicates(decisions, walked, notes)


def with_ranks(
    frame: DataFrame, survivor: Sequence[str], sources: Mapping[str, SourceSettings], conditions: Sequence[str] = ()
) -> DataFrame:
    """A frame with the survivor rule's values as columns ``rank_0_asc``, ``rank_1_desc`` ..., best first.

    ``protected`` says whether a document meets any of the conditions; those that do rank before all others.

    Raises:
        SettingsError: for conditions that can't be used, see ``check_conditions``.
    """
    check_conditions(frame, [("near_dedup's protected", condition) for condition in conditions])
    protected = F.lit(False)
    for condition in conditions:
        protected = protected | F.coalesce(F.expr(condition), F.lit(False))
    values = [(F.when(protected, 0).otherwise(1), False), *rank_values(frame, survivor, sources)]
    ranks = {f"rank_{at}_{'desc' if descending else 'asc'}": value for at, (value, descending) in enumerate(values)}
    return frame.withColumns({**ranks, "protected": protected})


def _involved(known: DataFrame, labels: DataFrame) -> DataFrame:
    """Documents that share a bucket with another: their place in their group, and among those with the same words."""
    ranks = sorted((c for c in known.columns if c.startswith("rank_")), key=lambda name: int(name.split("_")[1]))
    order = [ordered(F.col(name), name.endswith("_desc")) for name in ranks]
    joined = known.join(labels, ["node"])
    ranked = joined.withColumns(
        {
            "position": F.row_number().over(Window.partitionBy("label").orderBy(*order)).cast("bigint"),
            "place": F.row_number()
            .over(Window.partitionBy("label", "minhash.fingerprint").orderBy(*order))
            .cast("bigint"),
        }
    )
    first = F.col("place") == 1
    return ranked.select(
        "doc_id", "source", "batch", "bytes", "label", "position", "place",
        "protected", F.col("minhash.fingerprint").alias("fingerprint"),
        F.when(first, F.col("minhash.bands")).alias("bands"),
        F.when(first, F.col("minhash.sketch")).alias("sketch"),
    )  # fmt: skip


def _with_texts(involved: DataFrame, texts: DataFrame, broadcast: bool) -> DataFrame:
    """The text of each leading document; copies of it need none."""
    leading = involved.where(F.col("place") == 1)
    read = texts.join(F.broadcast(leading) if broadcast else leading, ["doc_id"])
    copies = involved.where(F.col("place") > 1).withColumn("text", F.lit(None).cast("string"))
    return read.unionByName(copies)


def _facts(walked: DataFrame) -> dict[str, str]:
    row = walked.agg(
        F.count(F.lit(1)).alias("candidates"),
        F.sum(F.col("copy").cast("int")).alias("same_words"),
        F.sum("compared").alias("pairs_compared"),
        F.sum(F.col("capped").cast("int")).alias("hit_the_cap"),
        F.max("group_size").alias("largest_group"),
        F.max("position").alias("largest_component"),
        F.min("similarity").alias("lowest_similarity"),
    ).first()
    facts = {name: str(value if value is not None else 0) for name, value in row.asDict().items()} if row else {}
    groups = walked.where(F.col("kept_id").isNotNull()).groupBy("kept_id")
    largest = groups.agg(F.count(F.lit(1)).alias("dropped"), F.min("doc_id").alias("example"))
    shown = largest.orderBy(F.col("dropped").desc(), "kept_id").limit(SHOWN_GROUPS).collect()
    # Ids in pairs, so that a person can look at both texts: weir show documents --where "doc_id IN (...)"
    facts["largest_groups"] = "; ".join(f"{r['kept_id']} for {r['dropped']:,}, such as {r['example']}" for r in shown)
    return facts


def alarms(counts: Sequence[Count], limit: float) -> list[str]:
    """Sources of which a larger share than the limit was dropped."""
    came = {c.source: c.documents for c in counts if c.outcome == "in"}
    gone: dict[str, int] = {}
    for count in counts:
        if count.outcome == "dropped":
            gone[count.source] = gone.get(count.source, 0) + count.documents
    return [
        f"{number:,} of {came[source]:,} documents of source '{source}' ({number / came[source]:.1%})"
        for source, number in sorted(gone.items())
        if number > limit * came[source]
    ]


def signed_documents(
    candidates: Candidates,
    settings: NearDedupSettings,
    minhash: MinhashSettings,
    survivor: Sequence[str],
    sources: Mapping[str, SourceSettings],
    materialize: Materialize,
) -> DataFrame:
    """What ``near_duplicates`` takes: signatures as annotated, else computed here, with the survivor rule's values."""
    needed = sorted(annotators_in(survivor))
    name = settings.minhash
    if name in candidates.has:
        frame = candidates.annotated([*needed, name])
        ranked = with_ranks(frame, survivor, sources, settings.protected)
        narrow = ranked.select("doc_id", "source", "batch", "bytes", *_ranks(ranked), F.col(name).alias("minhash"))
        return materialize(narrow.where(F.col("minhash.shingles") > 0), "signed")
    carried = candidates.with_text
    if needed:
        values = candidates.annotated(needed).select("doc_id", *needed)
        carried = carried.join(values, ["doc_id"])
    ranked = with_ranks(carried, survivor, sources, settings.protected)
    texts = ranked.select("doc_id", "source", "batch", "bytes", *_ranks(ranked), "text")
    bands, rows = minhash.shape
    schema = T.StructType([*texts.schema.fields[:-1], T.StructField("minhash", SIGNATURE)])
    return materialize(
        texts.mapInArrow(sign_batches(minhash.shingle_words, bands, rows, minhash.seed), schema), "signed"
    )


def _ranks(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name.startswith("rank_") or name == "protected"]


def run(context: Context) -> Outcome:
    """Decide for the step that the context names."""
    settings = context.settings
    step: NearDedupSettings = settings.step(context.step)
    minhash = minhash_of(settings, step)
    facts: dict[str, str] = {}

    def decider(candidates: Candidates) -> DataFrame:
        if step.minhash not in candidates.has and step.minhash in settings.annotate:
            raise SettingsError(
                f"annotator '{step.minhash}' has not been computed with the present settings; run: weir annotate"
            )
        with context.progress.stage("signing"):
            signed = signed_documents(
                candidates, step, minhash, settings.survivor, settings.sources, context.scratch.materialize
            )
        with context.progress.stage("comparing"):
            found = near_duplicates(
                signed, candidates.with_text.select("doc_id", "text"), step, minhash, context.scratch.materialize
            )
        facts.update(found.notes)
        return found.decisions

    outcome = decide(context, decider)
    blocked = None
    if found := alarms(outcome.counts, step.max_share_removed):
        said = f"near-duplicates are more than {step.max_share_removed:.0%} of a source: {'; '.join(found)}"
        facts["alarm"] = said
        context.progress.say(said)
        blocked = said if step.on_alarm == "fail" else None
    return Outcome(outcome.counts, outcome.digest, {**outcome.notes, **facts}, blocked=blocked)


def minhash_of(settings: Settings, step: NearDedupSettings) -> MinhashSettings:
    """How signatures are made: as the annotator that the step names, else by the step's threshold.

    Raises:
        SettingsError: if the step names an annotator of another kind.
    """
    given = settings.annotate.get(step.minhash)
    if given is None:
        return MinhashSettings(**({} if step.threshold is None else {"threshold": step.threshold}))
    if not isinstance(given, MinhashSettings):
        raise SettingsError(f"decide.{step.name}.minhash names '{step.minhash}', an annotator of kind {given.kind}")
    return given


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    mine: NearDedupSettings = settings.step(step)
    return {
        "decide": mine.model_dump(mode="json", exclude={"one_task_edges"}),
        "minhash": MINHASH.identity(minhash_of(settings, mine)),
        "before": settings.steps_before(step),
        **survivor_depends_on(settings),
    }


JOB = Job(
    name="near-dedup",
    summary="decide: one survivor of verified near-duplicates",
    inputs=step_inputs,
    depends_on=_depends_on,
    run=run,
    steps=lambda settings: settings.steps_of("near_dedup"),
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("near-dedup"))
