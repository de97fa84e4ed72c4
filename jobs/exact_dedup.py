"""exact_dedup: of documents whose normalised text is equal, one survives; empty ones are dropped as ``empty``.

Tables: reads ``documents`` (text only if the key was not annotated), ``annotations``, ``decisions``, and the tables of
``against``; writes its slice of ``decisions``.

Deterministic: the key is SHA-256 of the text after a named normalisation, the survivor is the best by the survivor
rule, which is a total order. Empty texts are not duplicates of each other.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.deciding.against import AgainstSettings, Elsewhere, against_inputs, elsewhere
from jobs.deciding.step import Candidates, decide, decisions_of, step_inputs
from jobs.deciding.survivor import DOCUMENT_COLUMNS, PRIORITY, annotators_in, rank_order, survivor_depends_on, terms
from jobs.runtime.errors import InputContractError, SettingsError
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import NAME, SettingsModel, SourceSettings
from udfs.text_keys import norm_v1_key_batches

if TYPE_CHECKING:
    from jobs.settings import Settings


class ExactDedupSettings(SettingsModel):
    """Settings of one exact_dedup step."""

    kind: Literal["exact_dedup"] = Field("exact_dedup", description="Which decider")
    name: str = Field("exact_dedup", pattern=NAME, description="Name of the step")
    normalisation: Literal["none", "norm_v1"] = Field("norm_v1", description="What is done to the text before hashing")
    keep: Literal["best", "none"] = Field("best", description="best: the survivor stays; none: every copy is dropped")
    fields: list[str] = Field(
        default_factory=lambda: ["text"],
        min_length=1,
        description="What the key is made of: text, documents columns (url), attributes (attributes.title)",
    )
    empty: Literal["drop", "keep"] = Field("drop", description="Documents with an empty key: drop as `empty`, or keep")
    against: list[AgainstSettings] = Field(
        default_factory=list, description="Documents of elsewhere; whatever has the same key as one of them is dropped"
    )

    @model_validator(mode="after")
    def _tables_have_texts_only(self) -> ExactDedupSettings:
        if self.fields != ["text"] and any(entry.table is not None for entry in self.against):
            raise ValueError("against: a table has ids and texts only; with other fields than [text], name a warehouse")
        return self


def exact_duplicates(
    keyed: DataFrame,
    details: DataFrame | None,
    settings: ExactDedupSettings,
    survivor: Sequence[str],
    sources: Mapping[str, SourceSettings],
) -> DataFrame:
    """Decisions about exact duplicates and empty documents.

    Args:
        keyed: ``doc_id``, ``key`` (binary; NULL: empty), and perhaps more columns: one row per document.
        details: ``doc_id``, ``source``, ``batch`` and what the survivor rule names; None if ``keyed`` has all of these.
        settings: Of the step.
        survivor: The survivor rule.
        sources: The source registry.

    One shuffle by key. Where details are needed, only documents whose key occurs twice or more, and empty ones, meet
    them: on a corpus with few duplicates the wide join is small. A key of a million copies is one sorted run, linear.
    """
    # Empty documents are no group: each has a place of its own.
    group = ("key", "alone")
    members = keyed.withColumn("alone", F.when(F.col("key").isNull(), F.col("doc_id")))
    if details is not None:
        size = Window.partitionBy(*group)
        members = members.withColumn("group_size", F.count(F.lit(1)).over(size))
        members = members.where((F.col("group_size") > 1) | F.col("key").isNull())
        members = members.join(details.drop(*(set(members.columns) - {"doc_id"})), ["doc_id"])
    ordered = Window.partitionBy(*group).orderBy(*rank_order(members, survivor, sources))
    whole = ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ranked = members.withColumns(
        {
            "place": F.row_number().over(ordered),
            "best": F.first("doc_id").over(ordered),
            "group_size": F.count(F.lit(1)).over(whole),
        }
    )
    empty = F.col("key").isNull()
    superfluous = (F.col("group_size") if settings.keep == "none" else F.col("place")) > 1
    dropped = F.when(empty, settings.empty == "drop").otherwise(superfluous)
    return decisions_of(
        ranked.where(dropped),
        reason=F.when(empty, "empty").otherwise("exact_duplicate"),
        method=f"sha256:{settings.normalisation}",
        kept_id=None if settings.keep == "none" else F.when(~empty, F.col("best")),
        similarity=F.when(~empty, 1.0),
        group_size=F.when(~empty, F.col("group_size")),
    )


def duplicates_of_elsewhere(keyed: DataFrame, outside: DataFrame, settings: ExactDedupSettings) -> DataFrame:
    """Decisions about documents whose key a document of elsewhere has.

    Args:
        keyed: ``doc_id``, ``source``, ``batch``, ``key`` of the candidates.
        outside: ``key``, ``kept_id``, ``kept_in``, one row per key.
        settings: Of the step.
    """
    found = keyed.join(outside, ["key"])
    size = F.count(F.lit(1)).over(Window.partitionBy("key")) + 1
    return decisions_of(
        found.withColumn("group_size", size),
        reason=F.lit("exact_duplicate"),
        method=f"sha256:{settings.normalisation}",
        kept_id=F.col("kept_id"),
        kept_in=F.col("kept_in"),
        similarity=F.lit(1.0),
        group_size=F.col("group_size"),
    )


def keys_of_elsewhere(
    context: Context, sets: Sequence[Elsewhere], settings: ExactDedupSettings, wanted: DataFrame
) -> DataFrame:
    """``key``, ``kept_id``, ``kept_in``: of each wanted key, the first document in the order of the sets and their ids.

    Of a warehouse, the documents that its selection keeps. There is one set at least.

    Raises:
        InputContractError: if a warehouse's selection keeps nothing under the policy.
    """
    found: list[DataFrame] = []
    for entry in sets:
        frame = entry.documents
        given = entry.settings
        if given.warehouse is not None:
            selection = context.inputs[given.beside("selection").address].read(context.spark)
            kept = selection.where((F.col("policy") == given.policy) & F.col("kept")).select("doc_id")
            if kept.isEmpty():
                raise InputContractError(
                    f"against: the selection of {given.warehouse} keeps no document under policy '{given.policy}'",
                    remedy="Name its policy, or run: weir select",
                )
            frame = frame.join(kept, ["doc_id"], "left_semi")
        keyed = keys_of_texts(frame, settings).select(
            "key",
            F.struct(F.lit(entry.number).alias("number"), "doc_id", F.lit(entry.held_in).alias("held_in")).alias(
                "first"
            ),
        )
        found.append(keyed)
    near = functools.reduce(DataFrame.unionByName, found).join(wanted.select("key").distinct(), ["key"], "left_semi")
    first = near.groupBy("key").agg(F.min("first").alias("first"))
    return first.select("key", F.col("first.doc_id").alias("kept_id"), F.col("first.held_in").alias("kept_in"))


def details_needed(keyed: DataFrame, details: DataFrame, survivor: Sequence[str]) -> DataFrame | None:
    """The details, or None where the keys' own columns are all that the rule and the decisions need."""
    needed = {"source", "batch", *_columns_of(survivor)}
    return None if needed <= set(keyed.columns) else details


def _columns_of(survivor: Sequence[str]) -> set[str]:
    return {name for name, _ in terms(survivor) if name != PRIORITY}


def keys(candidates: Candidates, settings: ExactDedupSettings, survivor: Sequence[str]) -> DataFrame:
    """``doc_id`` and ``key`` of every candidate, by the cheapest way there is, with what columns come for free.

    ``none`` over the text is the hash that ingest stored; ``norm_v1`` is read where annotate has written it; else the
    text is read and hashed, and the columns of the survivor rule pass by.
    """
    carried = sorted({"source", "batch"} | (_columns_of(survivor) & DOCUMENT_COLUMNS) - {"doc_id"})
    if settings.fields == ["text"]:
        if settings.normalisation == "none":
            key = F.when(F.col("bytes") > 0, F.col("text_sha256"))
            return candidates.documents.select("*", key.alias("key"))
        if "exact_key" in candidates.has:
            return candidates.annotation("exact_key").select(
                "doc_id", "source", "batch", F.col("exact_key.key").alias("key")
            )
    return keys_of_texts(candidates.with_text, settings, carried)


def keys_of_texts(frame: DataFrame, settings: ExactDedupSettings, carried: Sequence[str] = ()) -> DataFrame:
    """``doc_id``, the columns to carry and ``key`` of documents with ``text`` and whatever fields the key is made of."""
    if settings.fields != ["text"]:
        return _field_keys(frame, settings, carried)
    texts = frame.select("doc_id", *carried, "text")
    if settings.normalisation == "none":
        key = F.when(F.octet_length("text") > 0, F.unhex(F.sha2("text", 256)))
        return texts.select("doc_id", *carried, key.alias("key"))
    schema = T.StructType([*texts.schema.fields[:-1], T.StructField("key", T.BinaryType())])
    return texts.mapInArrow(norm_v1_key_batches, schema)


def _field_keys(frame: DataFrame, settings: ExactDedupSettings, carried: Sequence[str]) -> DataFrame:
    """A key over several fields: each is marked as given or NULL and closed by its length, so none runs into the next.

    ``("ab", "c")`` and ``("a", "bc")``, ``("a", NULL)`` and ``("a", "")`` have different keys.
    """
    parts: list[Column] = []
    nothing = F.lit(True)
    for field in settings.fields:
        column = _field(frame, field)
        if settings.normalisation == "norm_v1":
            from udfs.text_keys import norm_v1_column

            column = norm_v1_column(column)
        parts.append(
            F.when(column.isNull(), F.lit("-")).otherwise(
                F.concat(F.lit("="), F.octet_length(column).cast("string"), F.lit(":"), column)
            )
        )
        nothing = nothing & (column.isNull() | (column == ""))
    digest = F.unhex(F.sha2(F.concat(*parts), 256))
    key = F.when(~nothing, digest) if settings.empty == "drop" else digest
    return frame.select("doc_id", *carried, key.alias("key"))


def _field(frame: DataFrame, field: str) -> Column:
    if field.startswith("attributes."):
        return F.try_element_at(F.col("attributes"), F.lit(field.removeprefix("attributes.")))
    if field not in frame.columns:
        raise SettingsError(
            f"exact_dedup: fields names '{field}', which documents don't have; use text, attributes.NAME or one of "
            f"{', '.join(sorted(set(frame.columns) - {'attributes', 'notes', 'text_sha256'}))}"
        )
    return F.col(field).cast("string")


def run(context: Context) -> Outcome:
    """Decide for the step that the context names."""
    settings = context.settings
    step: ExactDedupSettings = settings.step(context.step)

    def decider(candidates: Candidates) -> DataFrame:
        needed = sorted(annotators_in(settings.survivor))
        details = candidates.annotated(needed) if needed else candidates.documents
        keyed = keys(candidates, step, settings.survivor)
        found = None
        if step.against:
            keyed = context.scratch.materialize(keyed.drop("attributes", "notes"), "keys")
            outside = keys_of_elsewhere(context, elsewhere(context, step.against), step, keyed)
            outside = context.scratch.materialize(outside, "elsewhere")
            found = duplicates_of_elsewhere(keyed, outside, step)
            keyed = keyed.join(outside, ["key"], "left_anti")
        lacking = details_needed(keyed, details, settings.survivor)
        decisions = exact_duplicates(keyed, lacking, step, settings.survivor, settings.sources)
        return decisions if found is None else decisions.unionByName(found)

    return decide(context, decider)


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    return {
        "decide": settings.step(step).model_dump(mode="json"),
        "before": settings.steps_before(step),
        **survivor_depends_on(settings),
    }


def _inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    mine: ExactDedupSettings = settings.step(step)
    return [*step_inputs(settings, step, annotations), *against_inputs(settings, mine.against, beside="selection")]


JOB = Job(
    name="exact-dedup",
    summary="decide: one survivor per normalised text; empty texts",
    inputs=_inputs,
    depends_on=_depends_on,
    run=run,
    steps=lambda settings: settings.steps_of("exact_dedup"),
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("exact-dedup"))
