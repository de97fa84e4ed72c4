"""train_classifier: a text classifier from good examples and the rest, or from a judge's labels, for annotate to apply.

Outside the pipeline: ``weir run`` doesn't run it. Tables: reads ``documents``; ``decisions`` for near-duplicates,
``annotations*`` for conditions that name annotators, and a target table or a table of labels. Writes no table but a
folder: the model, ``card.json``, ``calibration.svg``, ``label_issues.jsonl``.

Deterministic: documents are drawn, ordered and split by hashes of their ids, one thread trains, and the card holds no
time. The same tables at the same versions and the same settings give the same files, byte for byte.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.deciding.annotated import annotator_tables, check_annotated, names_in, with_annotations
from jobs.deciding.conditions import check_conditions
from jobs.runtime.errors import InputContractError, SettingsError
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.layers import fingerprint
from jobs.runtime.runs import Count
from jobs.runtime.stages import counts_by
from jobs.training.card import Facts, Rows, fill_folder
from jobs.training.drawing import drawn, quotas
from jobs.training.examples import (
    by_conditions,
    by_labels,
    by_target,
    label_rows,
    target_rows,
    target_source,
    without_contradictions,
    without_disallowed,
    without_target,
)
from jobs.training.folder import check_free, folder_of, new_folder
from jobs.training.settings import ClassifierTraining, FastTextClassifier, SklearnClassifier
from jobs.training.sides import folds, held_out, units, with_groups
from udfs.annotators.registry import ANNOTATORS
from udfs.classifying import can_be_scored, prepared
from udfs.training import unusable_labels

if TYPE_CHECKING:
    from jobs.settings import Settings

TRAINING_VERSION = 1
"""Raised whenever the same inputs and settings would give another model."""
DEDUPLICATING = ("exact_dedup", "near_dedup")

Classifier = FastTextClassifier | SklearnClassifier


@dataclass(frozen=True)
class Judged:
    """Judged rows (see ``jobs.training.examples``), stored; what texts they have; counts worth knowing."""

    rows: DataFrame
    texts: DataFrame
    more: Mapping[str, int]


def judged(context: Context, mine: Classifier) -> Judged:
    """Every document, and every row of a target table, with its label or the reason why it trains nothing.

    Raises:
        SettingsError: for conditions that can't be used, or annotators that were not computed.
        InputContractError: for a target table or labels that can't be used.
    """
    documents = context.read("documents")
    texts = documents.select(F.lit("").alias("held_in"), "doc_id", "text")
    narrow = documents.drop("text")
    outside = mine.outside
    more: dict[str, int] = {}
    if mine.labels is not None and outside is not None:
        labels = label_rows(context.inputs[outside.address].read(context.spark), mine.labels)
        more["labels_null"] = labels.where(F.col("label").isNull()).count()
        more["labels_without_document"] = labels.join(narrow.select("doc_id"), ["doc_id"], "left_anti").count()
        found = by_labels(narrow, labels)
    else:
        annotated = _annotated(context, mine, narrow)
        check_conditions(annotated, [(f"train.{context.step}.{name}", sql) for name, sql in mine.conditions])
        conditions = dict(mine.conditions)
        negative = conditions.get("negatives.where")
        if mine.positives is not None and outside is not None:
            target = target_rows(context.inputs[outside.address].read(context.spark), mine.positives)
            found = by_target(annotated, target, outside.address, negative)
            held = target.where(F.col("text").isNotNull())
            texts = texts.unionByName(held.select(F.lit(outside.address).alias("held_in"), "doc_id", "text"))
        else:
            found = by_conditions(annotated, conditions["positives.where"], negative)
    found = without_disallowed(found, context.settings.sources)
    found = without_target(found) if mine.positive_unlabelled else without_contradictions(found)
    return Judged(context.scratch.materialize(found, "judged"), texts, more)


def collected(frame: DataFrame, texts: DataFrame, characters: int) -> pa.Table:
    """The drawn rows with the beginnings of their texts, on the driver, in the order of ``place``.

    They are as many as the settings allow at most; the rows of one partition at a time come over.
    """
    short = texts.select("held_in", "doc_id", F.substring("text", 1, characters).alias("text"))
    # Texts are many, the drawn rows few.
    joined = short.join(F.broadcast(frame), ["held_in", "doc_id"])
    names = ("held_in", "doc_id", "source", "bytes", "text_sha256", "label", "group", "place", "text")
    types = (
        pa.string(), pa.string(), pa.string(), pa.int64(), pa.binary(), pa.string(), pa.string(), pa.float64(),
        pa.large_string(),
    )  # fmt: skip
    columns: list[list[Any]] = [[] for _ in names]
    for row in joined.select(*names).toLocalIterator():
        for column, value in zip(columns, row, strict=True):
            column.append(bytes(value) if isinstance(value, bytearray) else value)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    table = pa.table(dict(zip(names, arrays, strict=True)))
    return table.sort_by([("place", "ascending"), ("doc_id", "ascending"), ("held_in", "ascending")])


def check_classes(labels: Iterable[str], mine: Classifier, where: str) -> None:
    """There must be the positive label and another one.

    Raises:
        SettingsError: if the positive label is none of them.
        InputContractError: if there is only one label, or none.
    """
    known = sorted(set(labels))
    shown = ", ".join(known[:20]) or "none"
    if mine.labels is not None and known and mine.positive_label not in known:
        raise SettingsError(f"positive: no document has the label '{mine.positive_label}'; there are: {shown}")
    if len(known) < 2:
        raise InputContractError(
            f"{where}: a classifier needs documents of two labels at least; there are: {shown}",
            remedy="weir show documents, and the settings positives, negatives or labels, say what there is.",
        )
    unusable = unusable_labels(known) if mine.kind == "fasttext" else []
    if unusable:
        raise InputContractError(
            f"{where}: fastText can't have labels with white space: {', '.join(repr(label) for label in unusable[:5])}",
            remedy="Name them otherwise in the table, or take kind: sklearn.",
        )


def check_sides(labels: Sequence[str], out: Sequence[bool], unit: str) -> None:
    """Both sides must have every label.

    Raises:
        InputContractError: naming the side and the label that it lacks.
    """
    every = set(labels)
    for side, name in ((False, "training"), (True, "held-out")):
        lacking = sorted(every - {label for label, mine in zip(labels, out, strict=True) if bool(mine) == side})
        if lacking:
            raise InputContractError(
                f"the {name} side has no document of label '{lacking[0]}' ({labels.count(lacking[0]):,} documents, split by hash "
                f"of: {unit})",
                remedy="Give more documents, or another held_out or seed.",
            )


def run(context: Context) -> Outcome:
    """Train the classifier that the context's step names, unless its folder holds it already."""
    settings, name = context.settings, context.step
    mine: Classifier = settings.train[name]
    folder = folder_of(settings.warehouse, name, mine.folder)
    tables = {table: pinned.version for table, pinned in context.inputs.items()}
    depends = _depends_on(settings, name)
    identity = fingerprint({"version": TRAINING_VERSION, "seed": settings.seed, "tables": tables, **depends})
    card = check_free(folder, identity, mine.replace)
    if card is not None:
        return Outcome([], str(card["sha256"]), {"model": f"{folder} holds it already, trained from the same inputs"})
    with context.progress.stage("labelling"):
        found = judged(context, mine)
        counts = _counts_in(context, mine)
        usable = found.rows.where("reason IS NULL").groupBy("label").count().collect()
    sizes = {str(row["label"]): int(row["count"]) for row in usable}
    check_classes(sizes, mine, f"train.{name}")
    with context.progress.stage("drawing"):
        chosen = drawn(found.rows, settings.seed, quotas(sizes, mine.maximum, mine.balanced))
        chosen = context.scratch.materialize(chosen, "chosen")
        steps, unit = _known_groups(context, mine)
        decisions = None
        if steps:
            decisions = context.read("decisions").where(F.col("policy") == settings.policy)
        counts += _counts_left(found.rows, chosen)
        table = collected(with_groups(chosen, decisions, steps), found.texts, mine.characters)
    copies = prepared(table["text"], fold_case=mine.fold_case, characters=mine.characters)
    scored = can_be_scored(copies)
    counts += _counts_drawn(table, scored)
    table, copies = table.filter(scored), copies.filter(scored)
    labels = table["label"].to_pylist()
    check_classes(labels, mine, f"train.{name}: of the documents with any letter")
    names = units(table["text_sha256"].to_pylist(), table["group"].to_pylist() if steps else None)
    out = held_out(names, settings.seed, mine.held_out)
    check_sides(labels, out.tolist(), unit)
    rows = Rows(
        table["text"].combine_chunks(), copies, labels, table["doc_id"].to_pylist(), out,
        folds(names, settings.seed, max(mine.folds, 1)),
    )  # fmt: skip
    dropped: Counter[str] = Counter()
    for count in counts:
        dropped.update({count.reason: count.documents} if count.outcome == "dropped" else {})
    facts = Facts(name, identity, tables, dropped, unit, settings.seed, found.more)
    with new_folder(folder, f"{context.run_id}\0{name}", mine.replace) as partial:
        card = fill_folder(partial, rows, facts, mine, context.progress.stage)
    return Outcome(counts, str(card["sha256"]), _notes(card, str(folder), mine, context))


def _annotated(context: Context, mine: Classifier, narrow: DataFrame) -> DataFrame:
    """Documents with the annotators that the conditions name; these must have seen the documents that are read."""
    needed = _annotators(context.settings, mine)
    if not needed:
        return narrow
    identities = _identities(context.settings, mine)
    places = annotator_tables(context.spark, context.inputs, identities)
    joined = with_annotations(context.spark, narrow, context.inputs, places, identities, needed)
    check_annotated(context.runs, context.version("documents"), identities, needed)
    return joined


def _annotators(settings: Settings, mine: ClassifierTraining) -> list[str]:
    named = {name for _, sql in mine.conditions for name in names_in(sql)}
    return sorted(named & set(settings.annotate))


def _identities(settings: Settings, mine: ClassifierTraining) -> dict[str, str]:
    """Only of annotators that are named: another one may well be the classifier that is to be trained here."""
    named = {name: settings.annotate[name] for name in _annotators(settings, mine)}
    return {name: ANNOTATORS[given.kind].identity(given) for name, given in named.items()}


def _known_groups(context: Context, mine: ClassifierTraining) -> tuple[list[str], str]:
    """The deduplicating steps whose decisions say what belongs together, and the unit of the split in words."""
    steps = _deduplicating(context.settings) if mine.group == "near_dup" else []
    near = context.settings.steps_of("near_dedup")
    known = [step for step in near if context.runs.latest_done("near_dedup", step, context.settings.policy) is not None]
    if steps and known and context.has("decisions"):
        return steps, f"near-duplicate group (decisions of {', '.join(steps)}) and equal text"
    if mine.group == "near_dup":
        context.progress.say("no near-duplicates have been decided; equal texts stay on one side, near-copies may not")
    return [], "equal text"


def _deduplicating(settings: Settings) -> list[str]:
    return [step.name for step in settings.decide if step.kind in DEDUPLICATING]


def _counts_in(context: Context, mine: ClassifierTraining) -> list[Count]:
    """In: the documents, and the rows of a target table, counted on the tables themselves."""
    documents = context.read("documents").select("source", "bytes")
    counts = counts_by(documents, outcome=F.lit("in"), reason=F.lit(""), size=F.col("bytes"))
    outside = mine.outside
    if mine.positives is not None and outside is not None:
        rows = context.inputs[outside.address].read(context.spark)
        size = F.coalesce(F.octet_length(mine.positives.text), F.lit(0))
        sized = rows.select(F.lit(target_source(outside.address)).alias("source"), size.alias("bytes"))
        counts += counts_by(sized, outcome=F.lit("in"), reason=F.lit(""), size=F.col("bytes"))
    return counts


def _counts_left(rows: DataFrame, chosen: DataFrame) -> list[Count]:
    """Dropped: what has a reason, and what was not drawn."""
    left = rows.join(F.broadcast(chosen.select("held_in", "doc_id")), ["held_in", "doc_id"], "left_anti")
    return counts_by(
        left, outcome=F.lit("dropped"), reason=F.coalesce("reason", F.lit("not_drawn")), size=F.col("bytes")
    )


def _counts_drawn(table: pa.Table, scored: pa.BooleanArray) -> list[Count]:
    """Kept: what trains or is held out. Dropped: drawn documents without any letter, which no classifier scores."""
    sizes: Counter[tuple[str, str, str]] = Counter()
    documents: Counter[tuple[str, str, str]] = Counter()
    for source, size, usable in zip(
        table["source"].to_pylist(), table["bytes"].to_pylist(), scored.to_pylist(), strict=True
    ):
        key = (source, "kept", "") if usable else (source, "dropped", "no_text_to_score")
        documents[key] += 1
        sizes[key] += size
    return [Count(*key, documents[key], None, sizes[key]) for key in sorted(documents)]


def _notes(card: Mapping[str, Any], folder: str, mine: Classifier, context: Context) -> dict[str, str]:
    """The run record's remarks; the most telling ones are said aloud too."""
    (metrics,) = card["metrics"].values()
    labels = "positive-unlabelled" if mine.positive_unlabelled else "labelled"
    said = (
        f"ROC-AUC {metrics['roc_auc']:.4f}, average precision {metrics['average_precision']:.4f} on {metrics['documents']:,} "
        f"held-out documents ({labels})"
    )
    context.progress.say(f"{folder}: {said}")
    notes = {"model": folder, "sha256": str(card["sha256"]), "metrics": said, "split": str(card["split"]["unit"])}
    if card["types_to_trust"]:
        notes["trust"] = ", ".join(card["types_to_trust"])
        context.progress.say(f"its annotator needs: trusted: [{notes['trust']}]")
    return notes


def _inputs(settings: Settings, step: str, annotations: Sequence[str]) -> Sequence[Input]:
    mine: Classifier = settings.train[step]
    found = [Input("documents")]
    if mine.group == "near_dup" and settings.steps_of("near_dedup"):
        found.append(Input("decisions", optional=True))
    if _annotators(settings, mine):
        found += [Input(name, optional=True) for name in annotations]
    if mine.outside is not None:
        found.append(Input.outside(mine.outside, None))
    return found


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    mine: Classifier = settings.train[step]
    grouping = mine.group == "near_dup"
    return {
        "train": {step: mine.model_dump(mode="json", exclude={"folder", "replace"})},
        "use": {name: source.use for name, source in sorted(settings.sources.items())},
        "annotators": _identities(settings, mine),
        "groups": {"policy": settings.policy, "steps": _deduplicating(settings)} if grouping else {},
    }


JOB = Job(
    name="train-classifier",
    summary="a classifier for annotate, from good examples or a judge's labels",
    inputs=_inputs,
    depends_on=_depends_on,
    run=run,
    steps=lambda settings: sorted(settings.train),
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("train-classifier"))
