"""ingest: files and tables become documents; what can't become one goes to ``rejects`` with its reason.

Tables: writes ``documents`` and ``rejects``; reads both, so that taking the same files in again adds nothing.

Deterministic: which records are documents, their ids (from content, place or as given) and their fields depend on the
records alone, not on how they are cut into files (ids from place apart), read or ordered.

A record is never half-read, silently changed or lost: every line of every file is a document, a reject, blank, or
known already, and the job checks that these add up. Files that Spark would skip because of their name are read too.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.ingesting import reading
from jobs.ingesting.checking import check_reading
from jobs.ingesting.files import Listing, list_files
from jobs.ingesting.hidden import read_hidden
from jobs.ingesting.identity import PLACE
from jobs.ingesting.judging import EXAMPLES, identified, judged, refuse_duplicates
from jobs.ingesting.settings import IngestSettings
from jobs.ingesting.writing import commit_documents, commit_rejects
from jobs.runtime.errors import RetryLater, UnreadableInput
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.runs import Count
from jobs.runtime.stages import counts_by, with_totals_in
from jobs.runtime.tables import TableRef, latest_version

if TYPE_CHECKING:
    from jobs.settings import Settings

CONFLICT_ATTEMPTS = 5


def read_source(spark: SparkSession, listing: Listing, name: str, settings: IngestSettings) -> DataFrame:
    """All records of one source, good and bad, with the marks that number lines (see ``reading.numbered``)."""
    rules, pattern = settings.rules(name), settings.source_pattern
    readers = {"jsonl": reading.read_lines, "text": reading.read_texts, "parquet": reading.read_parquet}
    parts = []
    if listing.uris:
        parts.append(readers[settings.format](spark, listing.uris, rules, pattern))
    aside = [*listing.empty, *(listing.hidden if settings.hidden_files == "read" else ())]
    if aside:
        parts.append(read_hidden(spark, aside, settings.format, rules, pattern))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def run(context: Context) -> Outcome:
    """Read every source, store the rejects, add the new documents."""
    settings = context.settings
    notes: dict[str, str] = {}
    expected: dict[str, tuple[str, int]] = {}
    raws = list(_raw_records(context, notes, expected))
    raw = raws[0]
    for other in raws[1:]:
        raw = raw.unionByName(other)
    with context.progress.stage("reading files"):
        stored = context.scratch.materialize(raw, "records")
    check_reading(stored, expected)
    records, stretches = reading.numbered(stored)
    _note_blank_lines(stretches, notes)
    rejects = records.where(F.col("reason").isNotNull())
    good = records.where(F.col("reason").isNull())
    for attempt in range(CONFLICT_ATTEMPTS):
        try:
            counts = _commit(context, good, rejects, notes)
            break
        except RetryLater:
            # Nothing of the documents was committed: another run added some. Judge again with those in view.
            if attempt == CONFLICT_ATTEMPTS - 1:
                raise
            context.progress.say("another run added documents at the same time; trying again with these in view")
            context.outputs.clear()
            context.repin()
    documents = context.outputs[-1].pinned().read(context.spark).where(F.col("ingest_run") == context.run_id)
    digest = context.digest(documents.select("doc_id", "text_sha256"), "doc_id", F.hex("text_sha256"))
    undeclared = sorted({c.source for c in counts} - set(settings.sources)) if settings.sources else []
    if undeclared:
        notes["undeclared_sources"] = (
            f"not in the setting 'sources', so priority 100 and allowed: {', '.join(undeclared)}"
        )
    return Outcome(counts, digest, notes)


def _raw_records(context: Context, notes: dict[str, str], expected: dict[str, tuple[str, int]]) -> Iterator[DataFrame]:
    spark = context.spark
    for name, source in sorted(context.settings.ingest.items()):
        batch = source.batch or context.settings.batch
        extra = {
            "identity": F.lit(source.identity),
            "keep_latest": F.lit(source.duplicate_ids == "keep_latest"),
            "batch": F.lit(batch),
            "entry": F.lit(name),
        }
        if source.format == "delta":
            versions = []
            for ref in dict.fromkeys(map(_table_at, source.paths)):
                version = latest_version(spark, ref)
                if version is None:
                    raise UnreadableInput(f"source '{name}': no Delta table at '{ref.address}'")
                versions.append(f"{ref.address}@{version}")
                frame = reading.read_delta(spark, ref.address, version, source.rules(name), source.source_pattern)
                yield frame.withColumns(extra)
            notes[f"version_of.{name}"] = ", ".join(versions)
            continue
        listing = list_files(spark, source.paths, source.format, source.pattern)
        _report_listing(context, name, source, listing, notes)
        if listing.uris or listing.empty or (listing.hidden and source.hidden_files == "read"):
            if source.format != "parquet":
                expected[name] = (source.format, listing.must_be_seen(source.format, source.hidden_files == "read"))
            yield read_source(spark, listing, name, source).withColumns(extra)


def _table_at(path: str) -> TableRef:
    """A Delta table by its catalog name, folder or URI, spelled so that the same one named twice is read once."""
    if "/" not in path and not os.path.isdir(path):
        return TableRef(path, True)
    return TableRef(path.rstrip("/") if "://" in path else os.path.abspath(path), False)


def _report_listing(
    context: Context, name: str, source: IngestSettings, listing: Listing, notes: dict[str, str]
) -> None:
    if listing.hidden:
        shown = [os.path.basename(path) for path in listing.hidden]
        if source.hidden_files == "read" and source.format != "parquet":
            notes[f"hidden_files.{name}"] = f"{len(shown)} file(s) that Spark can't read by their names were read"
        elif source.hidden_files != "skip":
            raise UnreadableInput(
                f"source '{name}': Spark would not read {len(shown)} file(s), whose names start with _ or . or hold : [ ] {{ }}",
                shown[:EXAMPLES],
                f"Rename them, or leave them out on purpose: --set ingest.{name}.hidden_files=skip",
            )
        else:
            notes[f"skipped_files.{name}"] = ", ".join(shown[:1000])
            context.progress.say(f"source {name}: skipped {len(shown)} hidden file(s): {', '.join(shown[:EXAMPLES])}")
    notes[f"files.{name}"] = str(len(listing.uris))
    if listing.other:
        notes[f"other_files.{name}"] = f"{listing.other} file(s) of another kind were not read"
    context.progress.say(f"source {name}: {len(listing.uris):,} file(s), {listing.total_bytes / 1e6:,.1f} MB")


def _note_blank_lines(stretches: DataFrame, notes: dict[str, str]) -> None:
    row = stretches.agg(F.sum("blank")).first()
    if row is not None and row[0]:
        notes["blank_lines"] = str(row[0])


def _commit(context: Context, good: DataFrame, rejects: DataFrame, notes: dict[str, str]) -> list[Count]:
    existing = None
    if context.has("documents"):
        existing = context.read("documents").select("doc_id", "source", "text_sha256", "file", "batch", "fetched_at")
    identities = sorted({s.identity for s in context.settings.ingest.values()})
    parts = [identified(good.where(F.col("identity") == i), i, existing) for i in identities]
    candidates = parts[0]
    for part in parts[1:]:
        candidates = candidates.unionByName(part)
    if identities == ["content"]:
        # Made from content, ids can't repeat but by being there already: no second look at the ids is needed.
        fates = candidates.select(
            "doc_id", "source", "file", "record", "bytes",
            F.when(F.col("present"), "present").otherwise(F.lit("new")).alias("fate"),
            F.lit(None).cast("string").alias("old_batch"), "notes",
            F.lit("").alias("raw"), "text_sha256",
        )  # fmt: skip
        documents = candidates.where(~F.col("present"))
    else:
        narrow = context.scratch.materialize(judged(candidates, existing), "judged")
        refuse_duplicates(narrow)
        decided = narrow.select(*PLACE, "fate", "old_batch")
        joined = candidates.join(decided, list(PLACE))
        room = F.lit(0)
        for entry, source in sorted(context.settings.ingest.items()):
            room = F.when(F.col("entry") == entry, source.raw_characters).otherwise(room)
        fates = joined.select(
            "doc_id", "source", "file", "record", "bytes", "fate", "old_batch", "notes",
            F.substring("text", F.lit(1), room).alias("raw"), "text_sha256",
        )  # fmt: skip
        documents = joined.where(F.col("fate").isin("new", "changed"))
    with context.progress.stage("storing rejects"):
        commit_rejects(context, rejects, fates)
    with context.progress.stage("storing documents"):
        commit_documents(context, documents)
    return _counts(fates, rejects, notes)


def _counts(fates: DataFrame, rejects: DataFrame, notes: dict[str, str]) -> list[Count]:
    outcome = F.when(F.col("fate").isin("new", "changed"), "kept").when(F.col("fate") == "repeated", "quarantined")
    reasons = {
        "new": "",
        "changed": "changed",
        "present": "already_there",
        "outdated": "outdated",
        "repeated": "duplicate_id",
    }
    reason = F.coalesce(*[F.when(F.col("fate") == fate, F.lit(text)) for fate, text in reasons.items()])
    counts = counts_by(fates, outcome=outcome.otherwise(F.lit("dropped")), reason=reason, size=F.col("bytes"))
    counts += counts_by(rejects, outcome=F.lit("quarantined"), reason=F.col("reason"), size=F.lit(0))
    for note, number in fates.select(F.explode("notes").alias("note")).groupBy("note").count().collect():
        notes[f"repaired.{note}"] = str(number)
    return with_totals_in(counts)


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    return {
        "batch": settings.batch,
        "ingest": {name: source.model_dump(mode="json") for name, source in settings.ingest.items()},
    }


def _inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    if not settings.ingest:
        raise UnreadableInput(
            "the setting 'ingest' names no source",
            remedy="Say where the files are; 'weir init FOLDER' writes it for you.",
        )
    return [Input("documents", optional=True), Input("rejects", optional=True)]


JOB = Job(
    name="ingest",
    summary="files and tables -> documents, rejects",
    inputs=_inputs,
    depends_on=_depends_on,
    run=run,
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("ingest"))
