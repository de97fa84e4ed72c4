"""``weir explain DOC_ID``: why a document was dropped or kept, with the documents that it was compared with.

Reads the decisions as they are, and works out anew, from the same inputs, which documents share a bucket with this one
and how similar they are. Writes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.deciding.against import Elsewhere, elsewhere
from jobs.deciding.step import candidates_of
from jobs.deciding.survivor import ordered
from jobs.near.index import elsewhere_signed, texts_of
from jobs.near.signing import Ranking, sign, signed_documents
from jobs.near_dedup import NearDedupSettings, minhash_of
from jobs.registry import job_of_step
from jobs.runtime.display import print_table
from jobs.runtime.errors import InputContractError
from jobs.runtime.job import Context
from jobs.runtime.looking import looking_context
from jobs.runtime.session import JOB_CONF, configured, get_session, stop_own_session
from jobs.runtime.tables import Pinned, TableRef, latest_version
from udfs.lsh import s_curve
from udfs.minhash import estimate
from udfs.shingles import shared, shingle_sets
from udfs.words import word_hashes_v1

if TYPE_CHECKING:
    from jobs.settings import Settings

EXAMPLES = 5
TEXT = 200


@dataclass(frozen=True)
class Candidate:
    """A document that shares a bucket with the explained one.

    ``rank``: before or after it; ``held_in``: the table it stands in, empty for this warehouse; ``fate``: of it, in the
    step.
    """

    doc_id: str
    held_in: str
    source: str
    rank: str
    shared_bands: int
    similarity: float
    fate: str


@dataclass(frozen=True)
class Comparison:
    """What a near_dedup step had to compare: ``candidates`` best rank first, of ``total`` that there are."""

    step: str
    verdict: str
    signature: str
    total: int
    candidates: list[Candidate]


def print_explanation(settings: Settings, doc_id: str, limit: int, as_json: bool) -> int:
    """Print why a document was dropped or kept; returns the exit code.

    Raises:
        InputContractError: if there is no such document.
    """
    spark = get_session(settings.spark)
    try:
        with configured(spark, JOB_CONF):
            found = explanation(spark, settings, doc_id, limit)
    finally:
        stop_own_session(spark)
    if as_json:
        sys.stdout.write(json.dumps(found, default=str, ensure_ascii=False) + "\n")
        return 0
    document = found["document"]
    sys.stdout.write(
        f"{document['doc_id']}: source {document['source']}, batch {document['batch']}, "
        f"{document['characters']:,} characters\n  {document['begins']}\n\n"
    )
    print_table("", ["step", "what became of it"], [[s["step"], s["said"]] for s in found["steps"]])
    for comparison in found["comparisons"]:
        sys.stdout.write(f"\n{comparison['step']}: {comparison['verdict']}\n  {comparison['signature']}\n")
        if comparison["candidates"]:
            rows = [
                [
                    c["rank"],
                    c["doc_id"],
                    c["held_in"] or "-",
                    c["source"],
                    c["shared_bands"],
                    c["similarity"],
                    c["fate"],
                ]
                for c in comparison["candidates"]
            ]
            names = ["rank", "candidate", "in", "source", "bands", "similarity", "fate in this step"]
            print_table("", names, rows, right=names[4:6])
            if comparison["total"] > len(rows):
                sys.stdout.write(f"{len(rows):,} of {comparison['total']:,} shown; more with --limit\n")
    return 0


def explanation(spark: SparkSession, settings: Settings, doc_id: str, limit: int) -> dict[str, Any]:
    """The facts: ``document``, ``steps`` (what each did with it, in order), ``comparisons`` of near_dedup steps."""
    documents = _newest(spark, settings, "documents")
    row = None if documents is None else documents.where(F.col("doc_id") == doc_id).first()
    if row is None:
        raise InputContractError(
            f"there is no document '{doc_id}' in {settings.warehouse}",
            remedy="weir show documents lists ids; a rejected record is in: weir show rejects",
        )
    document = {name: row[name] for name in ("doc_id", "source", "batch", "arrival", "characters", "bytes", "url")}
    text = str(row["text"])
    document["begins"] = text[:TEXT] + ("…" if len(text) > TEXT else "")
    decisions = _newest(spark, settings, "decisions")
    mine: dict[str, dict[str, Any]] = {}
    twins: dict[str, list[str]] = {}
    if decisions is not None:
        decisions = decisions.where(F.col("policy") == settings.policy)
        mine = {r["step"]: r.asDict(recursive=True) for r in decisions.where(F.col("doc_id") == doc_id).collect()}
        gone = decisions.where((F.col("kept_id") == doc_id) & F.col("kept_in").isNull()).groupBy("step")
        for group in gone.agg(F.count(F.lit(1)).alias("n"), F.min("doc_id"), F.max("doc_id")).collect():
            twins[group["step"]] = [f"{group['n']:,}", *dict.fromkeys([group[2], group[3]])]
    steps, ended = [], False
    comparisons = []
    for step in settings.decide:
        said = "did not see it" if ended else _said(mine.get(step.name), twins.get(step.name))
        steps.append({"step": step.name, "said": said, "decision": mine.get(step.name)})
        if isinstance(step, NearDedupSettings) and not ended:
            comparisons.append(asdict(compared(spark, settings, step, doc_id, text, limit, mine.get(step.name))))
        ended = ended or step.name in mine
    return {"document": document, "steps": steps, "comparisons": comparisons}


def compared(
    spark: SparkSession,
    settings: Settings,
    step: NearDedupSettings,
    doc_id: str,
    text: str,
    limit: int,
    decision: Mapping[str, Any] | None,
) -> Comparison:
    """The candidates of a document in a near_dedup step, at the versions that the step's last run read.

    Raises:
        InputContractError: if the step has not decided yet.
    """
    job = job_of_step(settings, step.name)
    context = looking_context(spark, settings, job, step.name)
    minhash = minhash_of(settings, step)
    bands, rows = minhash.shape
    curve = ", ".join(f"{at}: {value:.3f}" for at, value in s_curve(bands, rows).items())
    signature = f"{bands} bands x {rows} rows of {minhash.shingle_words} words; P(candidate) at {curve}"
    threshold = step.threshold if step.threshold is not None else minhash.threshold
    own = sign(spark.createDataFrame([(text,)], "text STRING"), minhash).select("minhash.*").first()
    if own is None or not own["shingles"]:
        return Comparison(step.name, "kept: it has no words, so it takes no part", signature, 0, [])
    sets = elsewhere(context, step.against)
    near = _sharing(context, step, sets, doc_id, list(own["bands"]))
    total = near.where(F.col("doc_id") != doc_id).count()
    named = F.lit(False)
    if decision is not None and decision["kept_id"] is not None:
        named = (F.col("doc_id") == decision["kept_id"]) & (F.col("held_in") == (decision["kept_in"] or ""))
    itself = (F.col("doc_id") == doc_id) & (F.col("held_in") == "")
    shown = near.orderBy(itself.desc(), named.desc(), F.col("shared").desc(), "held_in", "doc_id").limit(limit + 1)
    ranks = [name for name in near.columns if name.startswith("rank_")]
    found = shown.orderBy(*[ordered(F.col(name), name.endswith("_desc")) for name in ranks]).collect()
    at = next((i for i, r in enumerate(found) if r["doc_id"] == doc_id and not r["held_in"]), None)
    if at is None:
        return Comparison(step.name, "was no candidate when the step decided", signature, 0, [])
    similarities = _similarities(context, step, sets, found, text)
    fates = _fates(context, [r["doc_id"] for r in found if not r["held_in"]])
    candidates = [
        Candidate(
            r["doc_id"], r["held_in"], r["source"], "before" if i < at else "after", r["shared"], similarities[i],
            "stays" if r["held_in"] or r["doc_id"] not in fates else f"dropped for {fates[r['doc_id']]}",
        )
        for i, r in enumerate(found) if i != at
    ]  # fmt: skip
    verdict = _verdict(decision, candidates, threshold, bool(found[at]["protected"]), step.max_compared)
    return Comparison(step.name, verdict, signature, total, candidates)


def _sharing(
    context: Context, step: NearDedupSettings, sets: Sequence[Elsewhere], doc_id: str, bands: Sequence[int]
) -> DataFrame:
    """Documents that share a bucket, and the explained one: as in ``jobs.near.signing``, with ``shared``."""
    minhash = minhash_of(context.settings, step)
    candidates = candidates_of(context)
    ranking = Ranking(context.settings.survivor, context.settings.sources, step.protected, len(sets))
    if step.minhash not in candidates.has:
        context.progress.say("no signatures were annotated, so all text is signed to find the candidates")
    lazily = lambda frame, name: frame  # noqa: E731
    signed = signed_documents(candidates, step.minhash, minhash, ranking, lazily).drop("text_sha256")
    mine = F.array(*[F.lit(key) for key in bands])
    itself = signed.where(F.col("doc_id") == doc_id)
    for frame in elsewhere_signed(context, sets, minhash, itself, lazily):
        signed = signed.unionByName(frame)
    shared_bands = F.size(F.array_intersect("minhash.bands", mine))
    return signed.withColumn("shared", shared_bands).where((F.col("minhash.shingles") > 0) & (F.col("shared") > 0))


def _similarities(
    context: Context, step: NearDedupSettings, sets: Sequence[Elsewhere], found: Sequence[Any], text: str
) -> list[float]:
    """Of each found document to the explained one, by the step's own measure."""
    minhash = minhash_of(context.settings, step)
    if step.verify == "signature":
        mine = next(r["minhash"]["sketch"] for r in found if r["shared"] == len(r["minhash"]["bands"]))
        return [estimate(bytes(r["minhash"]["sketch"]), bytes(mine)) for r in found]
    texts = texts_of(context.read("documents"), sets)
    wanted = texts.where(F.col("doc_id").isin([r["doc_id"] for r in found])).collect()
    by_id = {(r["held_in"], r["doc_id"]): r["text"] for r in wanted}
    values = [by_id.get((r["held_in"], r["doc_id"]), "") for r in found]
    shingles, ends = shingle_sets(*word_hashes_v1(pa.array([*values, text])), minhash.shingle_words)
    mine_set = shingles[ends[-2] : ends[-1]]
    similarities = []
    for number in range(len(found)):
        other = shingles[ends[number] : ends[number + 1]]
        common = int(shared(other, mine_set))
        whole = mine_set.size if step.verify == "containment" else mine_set.size + other.size - common
        similarities.append(common / whole if whole else 0.0)
    return similarities


def _fates(context: Context, doc_ids: Sequence[str]) -> dict[str, str]:
    decisions = _newest(context.spark, context.settings, "decisions")
    if decisions is None:
        return {}
    mine = (F.col("policy") == context.settings.policy) & (F.col("step") == context.step)
    rows = decisions.where(mine & F.col("doc_id").isin(list(doc_ids))).select("doc_id", "kept_id").collect()
    return {r["doc_id"]: r["kept_id"] for r in rows}


def _said(decision: Mapping[str, Any] | None, twins: Sequence[str] | None) -> str:
    if decision is None:
        return "passed" if twins is None else f"passed, and stays for {twins[0]}: {', '.join(twins[1:])}"
    said = f"dropped: {decision['reason']}"
    for rule in decision["failing"]:
        said += f"; {rule['rule']}: {rule['value']}, limit {rule['limit']}"
    if decision["kept_id"] is not None:
        place = f" in {decision['kept_in']}" if decision["kept_in"] else ""
        how = "not compared" if decision["similarity"] is None else f"similarity {decision['similarity']:.4g}"
        said += f"; {decision['kept_id']}{place} stays, {how} ({decision['method']})"
    return said


def _verdict(
    decision: Mapping[str, Any] | None, candidates: Sequence[Candidate], threshold: float, protected: bool, cap: int
) -> str:
    if decision is not None and decision["similarity"] is None:
        return f"dropped unproven: it hangs together with {decision['kept_id']}, which ranks first of them all"
    if decision is not None:
        how = "" if decision["proven"] else ", an estimate"
        return (
            f"dropped, since {decision['kept_id']} ranks before it, stays, shares {decision['shared_bands']} band(s) with it "
            f"and is similar by {decision['similarity']:.4g}{how}; the threshold is {threshold:g}"
        )
    if protected:
        return "kept: it is protected, whatever it is similar to"
    if not candidates:
        return "kept: no other document shares a bucket with it"
    rivals = [c for c in candidates if c.rank == "before" and c.fate == "stays"]
    if not rivals:
        return "kept: of the documents that share a bucket with it, none that ranks before it stays"
    best = max(c.similarity for c in rivals)
    if best >= threshold:  # compared with the M best-ranked of a bucket, and this one was not among them
        return f"kept unproven: its buckets hold more than {cap} documents, which is as many as are compared"
    return (
        f"kept: of the documents before it that stay, the most similar has {best:.4g}; the threshold is {threshold:g}"
    )


def _newest(spark: SparkSession, settings: Settings, name: str) -> DataFrame | None:
    ref = TableRef.in_warehouse(settings.warehouse, name)
    version = latest_version(spark, ref)
    return None if version is None else Pinned(name, ref, version).read(spark)
