"""near_dedup: of documents that are verified-similar, the best by the survivor rule stays.

Tables: reads ``documents`` (the text of candidates; of all documents if no ``minhash`` annotator was computed),
``annotations``, ``decisions``, ``near_dedup_index``, and the tables of ``against``; writes its slice of ``decisions``
and of ``near_dedup_index``.

The outcome is defined, not an accident of the execution. In the order of the survivor rule a document is dropped if it
is verified-similar to a kept document that shares a bucket with it; in each bucket it is compared with the M
best-ranked kept members. The result is the lexicographically first maximal independent set of the verified graph, so
there is only one, whatever the partitions, retries or cluster; every dropped document has its kept twin, and a chain of
neighbours never swallows documents that differ. Two joins prove each result before it is written.

How: bands are exploded into buckets; what shares a bucket is connected, and connected groups are found; a group's texts
come together in one task, which walks it in rank order. So text is read for candidates only, each pair is compared
at most once and only with a kept document, and there are no rounds.

Increments: where the survivor rule begins with ``arrival``, only what has arrived since the last run is decided on; its
documents are compared with each other and with what was kept before, from the index. The ids of kept and dropped
documents equal those of a full run. Nothing of the earlier decisions is written again.

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

from jobs.deciding.against import AgainstSettings, against_inputs, elsewhere
from jobs.deciding.step import candidates_of, check_nobody_added, decisions_of, step_inputs, store_decisions
from jobs.deciding.survivor import arrival_first, ordered, survivor_depends_on
from jobs.near.candidates import Materialize, components_of, edges_of, groups_of, node_of
from jobs.near.checking import check_survivors
from jobs.near.index import INDEX, earlier_run, elsewhere_signed, kept_signatures, notes_of, texts_of, write_index
from jobs.near.reporting import alarms, facts_of
from jobs.near.signing import Ranking, decided_before, signed_documents, touched
from jobs.runtime.errors import SettingsError
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import NAME, SettingsModel
from udfs.annotators.minhash import MINHASH, MinhashSettings
from udfs.lsh import s_curve
from udfs.near_batches import WALKED, Comparing, walk_batches

if TYPE_CHECKING:
    from jobs.settings import Settings

BYTES_PER_TASK = 64 * 2**20
"""Text that one task of the walk takes in, about; a group is never cut."""
BROADCAST_ROWS = 1_000_000
"""Up to so many candidates, their ids go to where the text is (about 100 MB); above, text is shuffled by id."""


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
    clusters: Literal["greedy", "components"] = Field(
        "greedy",
        description="components: of all that hang together by shared buckets one stays, as other tools do; unproven",
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
    against: list[AgainstSettings] = Field(
        default_factory=list,
        description="Documents of elsewhere to compare with; they rank first and are never dropped",
    )
    index: Literal["auto", "write", "none"] = Field(
        "auto", description="Store what is kept in near_dedup_index; auto: if the survivor rule begins with arrival"
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
        signed: See ``jobs.near.signing``. Read several times.
        texts: ``held_in``, ``batch``, ``doc_id``, ``text``, of the same documents at least.
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
    size = involved.where("leading").agg(F.count(F.lit(1)), F.sum("bytes")).first()
    leading, text_bytes = (int(size[0]), int(size[1] or 0)) if size is not None else (0, 0)
    if settings.clusters == "components":
        walked = materialize(components_of(involved), "walked")
        method, proven = "components", False
    else:
        grouped = involved.drop("bytes")
        if settings.verify != "signature":
            grouped = _with_texts(grouped, texts, broadcast=leading <= BROADCAST_ROWS)
        tasks = max(1, -(-text_bytes // BYTES_PER_TASK))
        spread = max(tasks, int(signed.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))
        stage = walk_batches(comparing)
        walked = materialize(grouped.repartition(spread, "label").mapInArrow(stage, WALKED), "walked")
        check_survivors(walked, threshold)
        proven = settings.verify != "signature"
        method = f"{settings.verify}>={threshold:g}" if proven else f"minhash:{bands * rows}>={threshold:g}"
    decisions = decisions_of(
        walked.where(F.col("kept_id").isNotNull()),
        reason=F.lit("near_duplicate"),
        method=method,
        kept_id=F.col("kept_id"),
        kept_in=F.nullif("kept_in", F.lit("")),
        similarity=F.col("similarity"),
        group_size=F.col("group_size"),
        shared_bands=F.col("shared_bands"),
        proven=proven,
    )
    curve = ", ".join(f"{at}: {value:.3f}" for at, value in s_curve(bands, rows).items())
    notes = {
        "signature": f"{bands} bands x {rows} rows, {minhash.shingle_words} words, threshold {threshold:g}",
        "p_candidate": curve,
        "edges": str(number),
        **facts_of(walked, leading),
    }
    return NearDuplicates(decisions, walked, notes)


def _involved(known: DataFrame, labels: DataFrame) -> DataFrame:
    """Documents that share a bucket with another, with their place in their group.

    ``leading`` ones are compared: of those with the same words the best, and the best protected one, since it stays
    where the other may be dropped. All others share the fate of the best.
    """
    ranks = sorted((c for c in known.columns if c.startswith("rank_")), key=lambda name: int(name.split("_")[1]))
    order = [ordered(F.col(name), name.endswith("_desc")) for name in ranks]
    same = ("label", "minhash.fingerprint")
    joined = known.join(labels, ["node"])
    ranked = joined.withColumns(
        {
            "position": F.row_number().over(Window.partitionBy("label").orderBy(*order)).cast("bigint"),
            "place": F.row_number().over(Window.partitionBy(*same).orderBy(*order)),
            "own_place": F.row_number().over(Window.partitionBy(*same, "protected").orderBy(*order)),
        }
    )
    leading = (F.col("place") == 1) | (F.col("protected") & (F.col("own_place") == 1))
    return ranked.withColumn("leading", leading).select(
        "held_in", "doc_id", "source", "batch", "bytes", "label", "position", "leading",
        "fixed", "protected", F.col("minhash.fingerprint").alias("fingerprint"),
        F.when(F.col("leading"), F.col("minhash.bands")).alias("bands"),
        F.when(F.col("leading"), F.col("minhash.sketch")).alias("sketch"),
    )  # fmt: skip


def _with_texts(involved: DataFrame, texts: DataFrame, broadcast: bool) -> DataFrame:
    """The text of each leading document; the others need none."""
    leading = involved.where("leading")
    # By batch too: so that only the partitions with candidates are read.
    read = texts.join(F.broadcast(leading) if broadcast else leading, ["held_in", "batch", "doc_id"])
    copies = involved.where("NOT leading").withColumn("text", F.lit(None).cast("string"))
    return read.unionByName(copies)


def run(context: Context) -> Outcome:
    """Decide for the step that the context names."""
    settings, materialize = context.settings, context.scratch.materialize
    step: NearDedupSettings = settings.step(context.step)
    minhash = minhash_of(settings, step)
    candidates = candidates_of(context)
    if step.minhash not in candidates.has and step.minhash in settings.annotate:
        raise SettingsError(
            f"annotator '{step.minhash}' has not been computed with the present settings; run: weir annotate"
        )
    sets = elsewhere(context, step.against)
    ranking = Ranking(settings.survivor, settings.sources, step.protected, len(sets))
    earlier, why = None, "components of earlier arrivals may grow together"
    if step.clusters == "greedy":
        earlier, why = earlier_run(context, candidates)
    since = earlier.version if earlier is not None else None
    with context.progress.stage("signing"):
        signed = signed_documents(candidates, step.minhash, minhash, ranking, materialize, since)
        older = [] if earlier is None else [decided_before(candidates, touched(earlier.index, signed), ranking)]
        older += elsewhere_signed(context, sets, minhash, signed, materialize)
    compared = signed.drop("text_sha256")
    for number, frame in enumerate(older):
        compared = compared.unionByName(materialize(frame, f"older_{number}"))
    with context.progress.stage("comparing"):
        texts = texts_of(candidates.with_text, sets)
        found = near_duplicates(compared, texts, step, minhash, materialize)
    if earlier is not None:
        for name in ("decisions", INDEX):
            check_nobody_added(context, name)
    outcome = store_decisions(context, candidates, found.decisions, add=earlier is not None)
    if writes_index(settings, step):
        write_index(context, kept_signatures(signed, found.decisions, minhash), add=earlier is not None)
    elif context.has(INDEX):  # what an earlier run left would no longer fit the decisions
        write_index(context, kept_signatures(signed.limit(0), found.decisions, minhash), add=False)
    facts = {**found.notes, **notes_of(earlier, why)}
    blocked = None
    if said := alarms(outcome.counts, step.max_share_removed):
        facts["alarm"] = f"near-duplicates are more than {step.max_share_removed:.0%} of a source: {'; '.join(said)}"
        context.progress.say(facts["alarm"])
        blocked = facts["alarm"] if step.on_alarm == "fail" else None
    return Outcome(outcome.counts, outcome.digest, {**outcome.notes, **facts}, blocked=blocked)


def writes_index(settings: Settings, step: NearDedupSettings) -> bool:
    """Whether what is kept is stored."""
    return step.index == "write" or (step.index == "auto" and arrival_first(settings.survivor))


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


def _inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    mine: NearDedupSettings = settings.step(step)
    return [
        *step_inputs(settings, step, annotations),
        Input(INDEX, optional=True),
        *against_inputs(settings, mine.against, beside=INDEX),
    ]


JOB = Job(
    name="near-dedup",
    summary="decide: one survivor of verified near-duplicates",
    inputs=_inputs,
    depends_on=_depends_on,
    run=run,
    steps=lambda settings: settings.steps_of("near_dedup"),
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("near-dedup"))
