"""annotate: everything that is computed per document, in one pass over the text.

Tables: reads ``documents``; writes ``annotations``, and ``annotations_*`` for annotators that were added later.

Which annotator stands in which table is written in the tables' properties, by identity (kind, version, hash of
settings and model). An annotator whose identity stands in no table is computed in one pass for all documents, into a
table of its own: the others' files stay as they are. New documents get every annotator that they lack. Documents
whose text has changed are annotated again.

Deterministic: each value depends on the text and the annotator's identity alone.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.errors import SettingsError
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.layers import canonical_json
from jobs.runtime.runs import Count
from jobs.runtime.session import send_files
from jobs.runtime.stages import counts_by
from jobs.runtime.tables import Pinned, TableRef, sql_in, table_properties
from schemas.contract import Column
from udfs.annotators.base import AnnotatorSettings
from udfs.annotators.one_pass import files_of, one_pass, output_schema
from udfs.annotators.registry import ANNOTATORS
from udfs.model_files import sent_name, sha256_of

if TYPE_CHECKING:
    from jobs.settings import Settings

MAIN = "annotations"
PROPERTY = "weir.annotator."
SETTINGS_PROPERTY = "weir.annotator_settings."


@dataclass(frozen=True)
class Group:
    """Annotators that stand in one table: column name -> identity, and column name -> settings as JSON has them."""

    table: str
    columns: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]]


def annotate(documents: DataFrame, wanted: Sequence[tuple[str, AnnotatorSettings]]) -> DataFrame:
    """``doc_id``, ``source``, ``text_sha256``, ``batch`` and a struct per annotator, of every document; text read once.

    Model files are sent to the executors, see ``udfs.model_files``.
    """
    resolved = [(name, ANNOTATORS[settings.kind].resolve(settings)) for name, settings in wanted]
    send_files(documents.sparkSession, {path: sent_name(path, sha256_of(path)) for path in files_of(resolved)})
    narrow = documents.select("doc_id", "source", "text_sha256", "batch", "text")
    return narrow.mapInArrow(one_pass(wanted), output_schema(wanted))


def identities(settings: Settings) -> dict[str, str]:
    """Column name -> identity of every annotator in the settings."""
    return {name: ANNOTATORS[s.kind].identity(s) for name, s in sorted(settings.annotate.items())}


def group_of(spark: SparkSession, table: str, ref: TableRef) -> Group:
    """What an annotation table says of itself."""
    properties = table_properties(spark, ref)
    columns = {k[len(PROPERTY) :]: v for k, v in properties.items() if k.startswith(PROPERTY)}
    settings = {
        k[len(SETTINGS_PROPERTY) :]: json.loads(v) for k, v in properties.items() if k.startswith(SETTINGS_PROPERTY)
    }
    return Group(table, columns, settings)


def settings_for(group: Group, given: Mapping[str, AnnotatorSettings]) -> list[tuple[str, AnnotatorSettings]]:
    """The settings of all of a table's annotators, whether the settings of now still name them or not.

    Raises:
        SettingsError: if one can't be computed as it was any more: its model is gone, or another, or its code is.
    """
    found, problems = [], []
    for name, identity in sorted(group.columns.items()):
        settings = given.get(name)  # its model may lie elsewhere today
        if settings is None or ANNOTATORS[settings.kind].identity(settings) != identity:
            values = group.settings[name]
            try:
                settings = ANNOTATORS[values["kind"]].settings.model_validate(values)
                if ANNOTATORS[settings.kind].identity(settings) != identity:
                    problems.append(f"{name}: its model or its code has changed since")
            except ValidationError as error:
                problems.append(f"{name}: {error.errors()[0]['loc'][-1]}: {error.errors()[0]['msg']}")
                continue
        found.append((name, settings))
    if problems:
        raise SettingsError(
            [
                f"table '{group.table}' can't be given new documents, for it was computed otherwise: {problem}. Annotate into "
                "another warehouse, or remove the table to have it computed anew"
                for problem in problems
            ]
        )
    return found


def table_for(new: Mapping[str, str], taken: Sequence[str]) -> str:
    """Where annotators that stand nowhere yet go: the main table if there is none, else a table named after them."""
    if MAIN not in taken:
        return MAIN
    sha = hashlib.sha256("\n".join(f"{k}={v}" for k, v in sorted(new.items())).encode()).hexdigest()[:8]
    return f"{MAIN}_{'_'.join(sorted(new))[:60]}_{sha}"


def missing(documents: DataFrame, annotated: DataFrame) -> DataFrame:
    """Documents that have no annotation of their present text."""
    known = annotated.select("doc_id", "text_sha256")
    return documents.join(known, ["doc_id", "text_sha256"], "left_anti")


def run(context: Context) -> Outcome:
    """Compute what is missing, group by group."""
    settings, spark = context.settings, context.spark
    if not settings.annotate:
        raise SettingsError(
            "the setting 'annotate' names no annotator; for example: annotate: {tokens: {}, statistics: {}}"
        )
    documents = context.read("documents")
    wanted = identities(settings)
    groups = [group_of(spark, name, context.ref(name)) for name in sorted(context.inputs) if name.startswith(MAIN)]
    notes: dict[str, str] = {}
    placed: dict[str, str] = {}
    for group in groups:
        mine = {name: identity for name, identity in group.columns.items() if wanted.get(name) == identity}
        placed.update(dict.fromkeys(mine, group.table))
        if mine:
            added = _complete(context, documents, group)
            notes[f"added.{group.table}"] = f"{added} rows for {', '.join(sorted(group.columns))}"
    new = {name: identity for name, identity in wanted.items() if name not in placed}
    if new:
        table = table_for(new, [g.table for g in groups])
        added = _create(context, documents, table, new)
        placed.update(dict.fromkeys(new, table))
        notes[f"added.{table}"] = f"{added} rows for {', '.join(sorted(new))}"
    notes |= {f"annotator.{name}": f"{wanted[name]} in {placed[name]}" for name in wanted}
    return Outcome(_counts(context, documents, placed), None, notes)


def _complete(context: Context, documents: DataFrame, group: Group) -> int:
    """Give documents that a group lacks the annotators of that group."""
    annotated = context.read(group.table)
    lacking = missing(documents, annotated)
    mine = settings_for(group, context.settings.annotate)
    stale = annotated.select("doc_id", "text_sha256", "batch").join(
        documents.select("doc_id", "text_sha256"), ["doc_id", "text_sha256"], "left_anti"
    )
    rewritten = sorted(str(row[0]) for row in stale.select("batch").distinct().collect())
    fresh = annotate(lacking, mine)
    with context.progress.stage(f"annotating what {group.table} lacks"):
        if not rewritten and lacking.isEmpty():  # nothing to add: the table's history stays as it is
            return 0
        if not rewritten:
            return context.write(fresh, group.table).rows
        kept = annotated.where(F.col("batch").isin(rewritten)).join(
            documents.select("doc_id", "text_sha256"), ["doc_id", "text_sha256"], "left_semi"
        )
        # Rows of rewritten batches and the new rows of all batches go in with one commit.
        batches = sorted({*rewritten, *(str(r[0]) for r in lacking.select("batch").distinct().collect())})
        others = annotated.where(F.col("batch").isin(batches) & ~F.col("batch").isin(rewritten))
        frame = kept.unionByName(others).unionByName(fresh)
        return context.write(frame, group.table, replace_where=sql_in("batch", batches)).rows


def _create(context: Context, documents: DataFrame, table: str, new: Mapping[str, str]) -> int:
    """A new table for annotators that stand nowhere yet."""
    wanted = [(name, context.settings.annotate[name]) for name in sorted(new)]
    extra = tuple(
        Column(name, ANNOTATORS[s.kind].sql_type(), ANNOTATORS[s.kind].comment(), nullable=False) for name, s in wanted
    )
    properties = {f"{PROPERTY}{name}": identity for name, identity in new.items()}
    properties |= {f"{SETTINGS_PROPERTY}{name}": canonical_json(s) for name, s in wanted}
    context.ensure(table, extra, properties)
    with context.progress.stage(f"computing {', '.join(sorted(new))}"):
        return context.write(annotate(documents, wanted), table).rows


def _counts(context: Context, documents: DataFrame, placed: Mapping[str, str]) -> list[Count]:
    """In: the documents. Kept: those that every group has, with tokens where they were counted."""
    tables = {w.name: w.pinned() for w in context.outputs}
    pins: dict[str, Pinned] = {**context.inputs, **tables}
    narrow = documents.select("doc_id", "source", "bytes", "text_sha256")
    joined = narrow
    for table in sorted(set(placed.values())):
        frame = pins[table].read(context.spark)
        columns = ["doc_id", "text_sha256"]
        if placed.get("tokens") == table:
            frame = frame.withColumn("token_count", F.col("tokens.count"))
            columns.append("token_count")
        joined = joined.join(frame.select(*columns), ["doc_id", "text_sha256"])
    tokens = F.col("token_count") if "tokens" in placed else None
    kept = counts_by(joined, outcome=F.lit("kept"), reason=F.lit(""), tokens=tokens, size=F.col("bytes"))
    total = counts_by(narrow, outcome=F.lit("in"), reason=F.lit(""), size=F.col("bytes"))
    return [*total, *kept]


def _inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    return [Input("documents"), *(Input(name, optional=True) for name in annotations)]


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    return {"annotate": identities(settings)}


JOB = Job(
    name="annotate",
    summary="documents -> annotations (tokens, statistics, keys ...), text read once",
    inputs=_inputs,
    depends_on=_depends_on,
    run=run,
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("annotate"))
