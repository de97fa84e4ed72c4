"""What a near_dedup step kept, stored with signatures, so that later arrivals are compared without signing it again.

Decisions about earlier documents stand if a full run would repeat them: the survivor rule puts earlier arrivals first,
the step decided with the same settings and the same tables of elsewhere, and just what it decided on is there still.
Otherwise the step decides anew about everything, and says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.deciding.against import Elsewhere
from jobs.deciding.step import Candidates, place_of, slice_of, stamped
from jobs.deciding.survivor import arrival_first
from jobs.near.candidates import Materialize
from jobs.near.signing import from_elsewhere, sign, touched
from jobs.runtime.errors import InputContractError
from jobs.runtime.job import Context, dependencies_of
from jobs.runtime.layers import fingerprint
from schemas.tables import NEAR_DEDUP_INDEX
from udfs.annotators.minhash import MINHASH, MinhashSettings

INDEX = NEAR_DEDUP_INDEX.name


@dataclass(frozen=True)
class Earlier:
    """What an earlier run left: the ``index`` of what it kept, and the documents ``version`` that it decided on."""

    index: DataFrame
    version: int


def earlier_run(context: Context, candidates: Candidates) -> tuple[Earlier | None, str]:
    """The run to go on from, or None and why everything is decided anew."""
    if not arrival_first(context.settings.survivor):
        return None, "the survivor rule doesn't begin with arrival"
    record = context.runs.latest_done(context.job.record_name, context.step, context.settings.policy)
    if record is None or not context.has(INDEX) or not context.has("decisions"):
        return None, "no earlier run left an index"
    if record.settings_sha256 != fingerprint(dependencies_of(context.job, context.settings, context.step)):
        return None, f"run {record.run_id} decided with other settings"
    then = {str(entry["name"]): int(entry["version"]) for entry in record.inputs}
    now = {name: pinned.version for name, pinned in context.inputs.items() if pinned.name == pinned.ref.address}
    changed = sorted(name for name in now if then.get(name) != now[name])
    if changed:
        return None, f"what it is compared with has changed: {', '.join(changed)}"
    index = context.read(INDEX).where(slice_of(context))
    version = then["documents"]
    decided = index.select("doc_id").unionByName(context.read("decisions").where(slice_of(context)).select("doc_id"))
    problems = differences(candidates.documents.select("doc_id", "arrival"), decided, version)
    if problems:
        listed = ", ".join(f"{number:,} document(s) {what}" for what, number in problems.items())
        return None, f"since run {record.run_id}: {listed}"
    return Earlier(index, version), f"decisions of run {record.run_id} about version {version} of documents stand"


def differences(candidates: DataFrame, decided: DataFrame, version: int) -> dict[str, int]:
    """Why earlier decisions can't stand, with the number of documents; empty if they can.

    Args:
        candidates: ``doc_id``, ``arrival`` of the documents to decide on now.
        decided: ``doc_id`` of every document that was decided on, kept or dropped.
        version: Of documents, at that time: what has arrived since has a larger ``arrival``.
    """
    times = decided.groupBy("doc_id").agg(F.count(F.lit(1)).alias("times"))
    both = candidates.withColumn("here", F.lit(True)).join(times, ["doc_id"], "full")
    here, known, later = F.col("here").isNotNull(), F.col("times").isNotNull(), F.col("arrival") > version
    reasons = {
        "are no candidates any more": ~here,
        "that are older became candidates": here & ~known & ~later,
        "were replaced": here & known & later,
        "were decided on in part": F.col("times") > 1,
    }
    counts = [F.count(F.when(condition, 1)).alias(what) for what, condition in reasons.items()]
    row = both.agg(*counts).first()
    return {what: int(number) for what, number in (row.asDict() if row is not None else {}).items() if number}


def kept_signatures(signed: DataFrame, dropped: DataFrame, minhash: MinhashSettings) -> DataFrame:
    """Rows for the index: what was signed and not dropped.

    Args:
        signed: See ``signed_documents``.
        dropped: ``doc_id`` of the step's decisions.
        minhash: How signatures were made.
    """
    kept = signed.join(dropped.select("doc_id"), ["doc_id"], "left_anti")
    return kept.withColumn("signature", F.lit(MINHASH.identity(minhash)))


def write_index(context: Context, kept: DataFrame, add: bool) -> None:
    """Store the step's rows: ``add`` leaves the earlier ones as they are."""
    rows = stamped(context, kept).select(*NEAR_DEDUP_INDEX.column_names)
    with context.progress.stage("storing the index"):
        context.write(rows, INDEX, replace_where=place_of(context, add))


def elsewhere_signed(
    context: Context, sets: Sequence[Elsewhere], minhash: MinhashSettings, signed: DataFrame, materialize: Materialize
) -> list[DataFrame]:
    """Of each set of documents from elsewhere, those that share a bucket with any of ``signed``.

    Raises:
        InputContractError: if an index is empty for the policy and step, or its signatures were made otherwise.
    """
    found = []
    for entry in sets:
        if entry.settings.warehouse is not None:
            rows = _index_of(context, entry, minhash)
        else:
            texts = entry.documents.select("doc_id", F.octet_length("text").cast("bigint").alias("bytes"), "text")
            rows = materialize(sign(texts, minhash), f"elsewhere_{entry.number}")
            rows = rows.withColumns({"source": F.lit(""), "batch": F.lit("")})
        near = touched(rows.where(F.col("minhash.shingles") > 0), signed)
        found.append(from_elsewhere(near, entry.held_in, entry.number, signed))
    return found


def _index_of(context: Context, entry: Elsewhere, minhash: MinhashSettings) -> DataFrame:
    given = entry.settings
    address = given.beside(INDEX).address
    index = context.inputs[address].read(context.spark)
    mine = index.where((F.col("policy") == given.policy) & (F.col("step") == given.step))
    made = [str(row[0]) for row in mine.select("signature").distinct().collect()]
    wanted = MINHASH.identity(minhash)
    if not made:
        there = sorted(f"{r['policy']}/{r['step']}" for r in index.select("policy", "step").distinct().collect())
        raise InputContractError(
            f"against: {address} has no documents of policy '{given.policy}', step '{given.step}'",
            remedy=f"It has: {', '.join(there) or 'nothing'}; name one with policy and step.",
        )
    if made != [wanted]:
        raise InputContractError(
            f"against: the signatures in {address} were made with other settings ({', '.join(made)}; here: {wanted})",
            remedy="Use the same minhash settings, or name its documents as a table, to have them signed anew.",
        )
    return mine.select("doc_id", "source", "batch", "bytes", "minhash")


def texts_of(own: DataFrame, sets: Sequence[Elsewhere]) -> DataFrame:
    """``held_in``, ``batch``, ``doc_id``, ``text`` of this warehouse's documents and of those elsewhere."""
    texts = own.select(F.lit("").alias("held_in"), "batch", "doc_id", "text")
    for entry in sets:
        frame = entry.documents
        batch = F.col("batch") if "batch" in frame.columns and entry.settings.warehouse is not None else F.lit("")
        texts = texts.unionByName(
            frame.select(F.lit(entry.held_in).alias("held_in"), batch.alias("batch"), "doc_id", "text")
        )
    return texts


def notes_of(earlier: Earlier | None, why: str) -> Mapping[str, str]:
    """What the run record says of it."""
    return {"decided": "new arrivals only" if earlier else "everything", "because": why}
