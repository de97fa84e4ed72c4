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
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.ingesting import reading
from jobs.ingesting.files import Listing, list_files
from jobs.ingesting.hidden import read_hidden
from jobs.ingesting.identity import PLACE, TELLING_APART, content_id, number_occurrences, place_id
from jobs.ingesting.writing import commit_documents, commit_rejects
from jobs.runtime.errors import DuplicateIds, ReconciliationError, RetryLater, UnreadableInput
from jobs.runtime.job import Context, Input, Job, Outcome
from jobs.runtime.models import SettingsModel
from jobs.runtime.runs import Count
from jobs.runtime.stages import counts_by, with_totals_in
from jobs.runtime.tables import TableRef, latest_version
from udfs.record_batches import LINES_MARK
from udfs.records import Mapped, RecordRules

if TYPE_CHECKING:
    from jobs.settings import Settings

CONFLICT_ATTEMPTS = 5
EXAMPLES = 5


class ColumnMapping(SettingsModel):
    """Which field of a record becomes which column; a dot leads into nested objects (``meta.url``)."""

    doc_id: str | None = Field(None, description="Field with the id; default: ids are made (see `ids`)")
    text: str = Field("text", description="Field with the text")
    source: str | None = Field(None, description="Field with the source's name; default: the name in the settings")
    url: str | None = Field(None, description="Field with the URL")
    language: str | None = Field(None, description="Field with the language as the supplier gave it")
    fetched_at: str | None = Field(
        None, description="Field with a time stamp: ISO 8601 (no offset: UTC) or epoch seconds"
    )
    origin: str | None = Field(None, description="Field that says human or generated")
    generator: str | None = Field(None, description="Field that names the generator")
    generation: str | None = Field(None, description="Field with the number of generations from human text")


class IngestSettings(SettingsModel):
    """Where one source's files are and how they are read."""

    paths: list[str] = Field(min_length=1, description="Files, folders (with all subfolders), globs or URIs")
    format: Literal["jsonl", "parquet", "delta", "text"] = Field(
        "jsonl", description="jsonl (also .gz .bz2 .zst), parquet, delta, or text (a file is a document)"
    )
    pattern: str | None = Field(None, description="File names to take from folders, for example *.md")
    columns: ColumnMapping = Field(default_factory=ColumnMapping, description="Which field becomes which column")
    types: dict[str, Literal["string", "integer", "number", "boolean", "timestamp"]] = Field(
        default_factory=dict, description="Types of further fields; a value that doesn't fit rejects the record"
    )
    source_pattern: str | None = Field(
        None, description="Regular expression over the file's path; its first group is the source, exactly as spelled"
    )
    ids: Literal["given", "content", "place"] | None = Field(
        None, description="given: columns.doc_id; content: from source, text and occurrence; place: from file and line"
    )
    duplicate_ids: Literal["error", "keep_latest"] = Field(
        "error", description="A given id twice: stop, or keep the latest fetched_at (then the smallest hash)"
    )
    batch: str | None = Field(None, description="Batch of what this run takes in; default: the setting `batch`")
    hidden_files: Literal["read", "error", "skip"] = Field(
        "read",
        description="Names that Spark can't read (_ or . first, colons, brackets): read all the same, stop, or skip",
    )
    encoding: str = Field("utf-8", description="Encoding of text and JSONL files")
    encoding_errors: Literal["reject", "replace"] = Field(
        "reject", description="Bytes that are not valid in it: reject the record, or replace them by U+FFFD and note it"
    )
    max_bytes: int = Field(
        100_000_000, ge=1, le=500_000_000, description="Longest text in bytes; longer ones are rejected"
    )
    raw_characters: int = Field(2000, ge=0, le=1_000_000, description="How much of a rejected record is stored")

    @model_validator(mode="after")
    def _check(self) -> IngestSettings:
        import codecs
        import re

        if self.ids == "given" and self.columns.doc_id is None:
            raise ValueError("ids: given needs columns.doc_id, the field that holds the id")
        if self.columns.doc_id is not None and self.ids in ("content", "place"):
            raise ValueError(
                f"ids: {self.ids} contradicts columns.doc_id: {self.columns.doc_id}; leave out one of them"
            )
        if self.duplicate_ids == "keep_latest" and self.identity == "content":
            raise ValueError("duplicate_ids: keep_latest needs given or place ids; content ids can't repeat")
        if self.format == "text" and (self.columns != ColumnMapping() or self.types):
            raise ValueError("format: text has no fields, so columns and types can't be set")
        if self.source_pattern is not None and self.columns.source is not None:
            raise ValueError("source_pattern and columns.source both give the source; leave out one of them")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f"encoding '{self.encoding}' is not known") from None
        if self.format == "jsonl" and "\n{".encode(self.encoding) != b"\n{":
            raise ValueError(
                f"encoding '{self.encoding}' can't be cut into lines, for a line feed is not one byte in it; "
                "convert the files to UTF-8"
            )
        if self.source_pattern is not None:
            try:
                re.compile(self.source_pattern)
            except re.error as error:
                raise ValueError(f"source_pattern is no regular expression: {error}") from None
        return self

    @property
    def identity(self) -> str:
        """How ids come about, with the default filled in."""
        return self.ids or ("given" if self.columns.doc_id is not None else "content")

    def rules(self, source: str) -> RecordRules:
        """How the kernel reads a record."""
        return RecordRules(
            source=source,
            mapped=Mapped(**self.columns.model_dump()),
            types=dict(self.types),
            max_bytes=self.max_bytes,
            encoding=self.encoding,
            replace_bad_bytes=self.encoding_errors == "replace",
            raw_characters=self.raw_characters,
        )


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


def identified(records: DataFrame, identity: str, existing: DataFrame | None) -> DataFrame:
    """Good records with ``doc_id`` and, for content ids, ``present``: whether the table has this occurrence already.

    Args:
        records: Good records of one ``identity``, with text.
        identity: ``given``, ``content`` or ``place``.
        existing: The documents table's ``source``, ``text_sha256``, ``file``, or None.
    """
    if identity == "given":
        return records.withColumn("present", F.lit(False))
    if identity == "place":
        return records.withColumn("doc_id", place_id(F.col("source"), F.col("file"), F.col("record"))).withColumn(
            "present", F.lit(False)
        )
    narrow = records.select(
        *PLACE, "source", "text_sha256", *TELLING_APART, F.to_json("attributes").alias("attributes_text")
    )
    numbers = number_occurrences(narrow, existing)
    joined = records.join(numbers, list(PLACE), "left")
    occurrence = F.coalesce(F.col("occurrence"), F.lit(0))
    return (
        joined.withColumn("doc_id", content_id(F.col("source"), F.col("text_sha256"), occurrence))
        .withColumn("present", F.coalesce(F.col("present"), F.lit(False)))
        .drop("occurrence")
    )


def judged(candidates: DataFrame, existing: DataFrame | None) -> DataFrame:
    """One row per candidate, narrow, with what becomes of it.

    ``fate``: ``new``; ``present`` (the table has this id with this text); ``changed`` (the table has this id with
    another text); ``repeated`` (the id was given before in this delivery). The first of a delivery is the one with the
    latest ``fetched_at`` (NULL last), then the smallest text hash, then file and line.
    """
    from pyspark.sql import Window

    order = Window.partitionBy("doc_id").orderBy(
        F.col("fetched_at").desc_nulls_last(), F.col("text_sha256"), F.col("file"), F.col("record"), F.col("entry")
    )
    narrow = candidates.select(*PLACE, "doc_id", "source", "text_sha256", "fetched_at", "present", "keep_latest")
    ranked = narrow.withColumn("place", F.row_number().over(order))
    if existing is None:
        return ranked.withColumn("fate", F.when(F.col("place") > 1, "repeated").otherwise(F.lit("new"))).withColumn(
            "old_batch", F.lit(None).cast("string")
        )
    before = existing.select(
        "doc_id",
        F.col("text_sha256").alias("old_sha256"),
        F.col("batch").alias("old_batch"),
        F.col("fetched_at").alias("old_fetched_at"),
    )
    older = (
        F.col("fetched_at").isNotNull()
        & F.col("old_fetched_at").isNotNull()
        & (F.col("fetched_at") < F.col("old_fetched_at"))
    )
    fate = (
        F.when(F.col("place") > 1, "repeated")
        .when(F.col("present") | (F.col("old_sha256") == F.col("text_sha256")), "present")
        .when(F.col("old_sha256").isNull(), "new")
        .when(F.col("keep_latest") & older, "outdated")
        .otherwise(F.lit("changed"))
    )
    return ranked.join(before, ["doc_id"], "left").withColumn("fate", fate)


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


def check_reading(stored: DataFrame, expected: Mapping[str, tuple[str, int]]) -> None:
    """Every listed file was read, and once; every line that is not blank became a row.

    Args:
        stored: Raw records with their ``entry`` of the setting ``ingest``.
        expected: Entry -> (format, files that must have been seen).

    Raises:
        ReconciliationError: naming each entry of which something was read twice or lost. Nothing was written.
        UnreadableInput: naming each entry of which files gave nothing.
    """
    mark = F.col("reason") == LINES_MARK
    place = F.struct("file", F.when(mark, F.col("stretch")).otherwise(F.lit(-1)).alias("stretch"))
    rows = (
        stored.withColumn("mark", F.coalesce(mark, F.lit(False)))
        .groupBy("entry", "mark")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.countDistinct(place).alias("places"),
            F.countDistinct("file").alias("files"),
            F.sum(F.when(F.col("mark"), F.col("position") - F.col("detail").cast("bigint"))).alias("lines"),
        )
        .collect()
    )
    found = {(r["entry"], r["mark"]): r for r in rows}
    problems, unread = [], []
    for entry, (file_format, files) in sorted(expected.items()):
        row = found.get((entry, file_format == "jsonl"))
        seen, places, whole = (row["files"], row["places"], row["rows"]) if row is not None else (0, 0, 0)
        if seen < files:
            unread.append(f"source '{entry}': {files:,} files with content are listed, {seen:,} of them gave rows")
        if file_format == "text" and seen > files:
            problems.append(f"source '{entry}': {files:,} files are listed, {seen:,} were read")
        if file_format in ("jsonl", "text") and places != whole:
            problems.append(f"source '{entry}': {whole - places:,} stretches or files were read twice")
        if file_format == "jsonl" and row is not None:
            records = found.get((entry, False))
            became = records["rows"] if records is not None else 0
            if became != row["lines"]:
                problems.append(f"source '{entry}': {row['lines']:,} lines with content, {became:,} records")
    if problems:
        raise ReconciliationError(
            "not everything was read once; nothing was written:\n" + "\n".join([*problems, *unread])
        )
    if unread:
        raise UnreadableInput(
            "files gave nothing: they were removed meanwhile, or are not what their ending says:",
            unread,
            "Look at the compressed ones first. Nothing was written.",
        )


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
            for ref, path in {_table_at(path): path for path in source.paths}.items():
                version = latest_version(spark, ref)
                if version is None:
                    raise UnreadableInput(f"source '{name}': no Delta table at '{path}'")
                versions.append(f"{path}@{version}")
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
        )  # fmt: skip
        documents = candidates.where(~F.col("present"))
    else:
        narrow = context.scratch.materialize(judged(candidates, existing), "judged")
        _refuse_duplicates(narrow)
        decided = narrow.select(*PLACE, "fate", "old_batch")
        joined = candidates.join(decided, list(PLACE))
        fates = joined.select("doc_id", "source", "file", "record", "bytes", "fate", "old_batch", "notes")
        documents = joined.where(F.col("fate").isin("new", "changed"))
    with context.progress.stage("storing rejects"):
        commit_rejects(context, rejects, fates)
    with context.progress.stage("storing documents"):
        commit_documents(context, documents)
    return _counts(fates, rejects, notes)


def _refuse_duplicates(narrow: DataFrame) -> None:
    bad = narrow.where(F.col("fate").isin("repeated", "changed") & ~F.col("keep_latest"))
    examples = (
        bad.orderBy("doc_id", "file", "record").select("doc_id", "fate", "file", "record").limit(EXAMPLES).collect()
    )
    if not examples:
        return
    by_fate = {row[0]: row[1] for row in bad.groupBy("fate").count().collect()}
    raise DuplicateIds(
        f"{sum(by_fate.values()):,} record(s) carry an id that is not unique: "
        f"{by_fate.get('repeated', 0):,} repeat an id of this delivery, "
        f"{by_fate.get('changed', 0):,} have an id that the documents table holds with another text",
        [f"id '{r[0]}' ({'repeated' if r[1] == 'repeated' else 'other text'}): {r[2]} line {r[3]}" for r in examples],
        "Give unique ids, let ids be made (ids: content or place), or keep the latest of each id: duplicate_ids: keep_latest. "
        "Nothing was written.",
    )


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
