"""Every document with its label, or the reason why it has none: pure functions over DataFrames without text.

Judged rows have ``held_in`` (the address of the table the text stands in; empty for this warehouse's documents),
``doc_id``, ``source``, ``bytes``, ``text_sha256``, ``label`` and ``reason``. A row with a reason trains nothing. One row
per document and per row of a target table, so that what became of each can be counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.runtime.errors import DuplicateIds, InputContractError
from jobs.runtime.models import SourceSettings
from jobs.training.settings import NEGATIVE, POSITIVE, Labels, Positives

JUDGED = ("held_in", "doc_id", "source", "bytes", "text_sha256", "label", "reason")
MOST_LABELS = 100
"""More different labels than these are taken for a wrong column."""
EXAMPLES = 5
_LABEL_TYPES = frozenset({"string", "boolean", "tinyint", "smallint", "int", "bigint"})


def by_conditions(documents: DataFrame, positive: str, negative: str | None) -> DataFrame:
    """Documents judged by conditions; a condition that is NULL is not met.

    Args:
        documents: With whatever the conditions name.
        positive: SQL; documents that meet it are positive.
        negative: SQL; documents that meet it are negative. None: all that don't meet ``positive``.
    """
    good = F.coalesce(F.expr(positive), F.lit(False))
    bad = ~good if negative is None else F.coalesce(F.expr(negative), F.lit(False))
    label = F.when(good & ~bad, POSITIVE).when(bad & ~good, NEGATIVE)
    reason = F.when(good & bad, "both_classes").when(~good & ~bad, "not_labelled")
    return _judged(documents, label, reason)


def by_target(documents: DataFrame, target: DataFrame, address: str, negative: str | None) -> DataFrame:
    """The rows of a target table, all positive, and the documents as negatives.

    Args:
        documents: With whatever the condition names.
        target: ``doc_id``, ``text``, see ``target_rows``; a row without text trains nothing.
        address: Of the target table.
        negative: SQL; documents that meet it are negative. None: all.
    """
    bad = F.lit(True) if negative is None else F.coalesce(F.expr(negative), F.lit(False))
    raw = _judged(documents, F.when(bad, NEGATIVE), F.when(~bad, "not_labelled"))
    good = target.select(
        F.lit(address).alias("held_in"),
        "doc_id",
        F.lit(target_source(address)).alias("source"),
        F.coalesce(F.octet_length("text"), F.lit(0)).cast("bigint").alias("bytes"),
        F.unhex(F.sha2("text", 256)).alias("text_sha256"),
        F.lit(POSITIVE).alias("label"),
        F.when(F.col("text").isNull(), "no_text").alias("reason"),
    )
    return raw.unionByName(good)


def by_labels(documents: DataFrame, labels: DataFrame) -> DataFrame:
    """Documents judged by a table of labels.

    Args:
        documents: Without text.
        labels: ``doc_id``, ``label``, see ``label_rows``.
    """
    found = labels.withColumn("labelled", F.lit(True))
    joined = documents.join(found, ["doc_id"], "left")
    reason = F.when(F.col("labelled").isNull(), "not_labelled").when(F.col("label").isNull(), "label_null")
    return _judged(joined, F.col("label"), reason)


def without_disallowed(judged: DataFrame, sources: Mapping[str, SourceSettings]) -> DataFrame:
    """Documents of sources that may not be used train nothing; the reasons are those of the eligibility step."""
    use = F.lit("allowed")
    for name, source in sorted(sources.items()):
        use = F.when(F.col("source") == name, F.lit(source.use)).otherwise(use)
    barred = (F.col("held_in") == "") & (use != "allowed") & (F.col("reason").isNull())
    return judged.withColumn("reason", F.when(barred, F.concat(F.lit("use_"), use)).otherwise(F.col("reason")))


def without_target(judged: DataFrame) -> DataFrame:
    """Negatives that are positives after all, by id or by equal text, train nothing: reason ``in_target``.

    Held against all positives, those too that train nothing themselves.
    """
    good = judged.where(F.col("label") == POSITIVE)
    ids = good.select("doc_id").distinct().withColumn("same_id", F.lit(True))
    texts = good.select("text_sha256").distinct().withColumn("same_text", F.lit(True))
    marked = judged.join(ids, ["doc_id"], "left").join(texts, ["text_sha256"], "left")
    same = F.col("same_id").isNotNull() | F.col("same_text").isNotNull()
    return _reasoned(marked, (F.col("label") == NEGATIVE) & same, "in_target")


def without_contradictions(judged: DataFrame) -> DataFrame:
    """Equal texts (or ids) with different labels train nothing: reason ``both_classes``."""
    usable = judged.where(F.col("reason").isNull())
    marked = judged
    for key in ("doc_id", "text_sha256"):
        torn = usable.groupBy(key).agg(F.min("label").alias("least"), F.max("label").alias("most"))
        torn = torn.where(F.col("least") != F.col("most")).select(key, F.lit(True).alias(f"torn_{key}"))
        marked = marked.join(torn, [key], "left")
    return _reasoned(marked, F.col("torn_doc_id").isNotNull() | F.col("torn_text_sha256").isNotNull(), "both_classes")


def target_rows(table: DataFrame, positives: Positives) -> DataFrame:
    """``doc_id`` and ``text`` of a target table.

    Raises:
        InputContractError: if it lacks the columns, or they are no strings.
        DuplicateIds: if ids repeat or are missing.
    """
    kinds = _kinds(table)
    _check_columns("positives", str(positives.table), kinds, {positives.doc_id: {"string"}, positives.text: {"string"}})
    rows = table.select(F.col(positives.doc_id).alias("doc_id"), F.col(positives.text).alias("text"))
    wrong = rows.groupBy("doc_id").count().where(F.col("doc_id").isNull() | (F.col("count") > 1))
    if examples := wrong.orderBy("doc_id").limit(EXAMPLES).collect():
        raise DuplicateIds(
            f"positives: the ids of table '{positives.table}' ({positives.doc_id}) must be unique and not NULL:",
            [f"{row['doc_id']!r}: {row['count']:,} rows" for row in examples],
            "Name another column with doc_id.",
        )
    return rows


def label_rows(table: DataFrame, labels: Labels) -> DataFrame:
    """``doc_id`` and ``label``, one row per document that a table of labels names; NULL where no row of it has a label.

    Raises:
        InputContractError: if it lacks the columns, they are of other types, a document has two different labels, or
            the labels are too many to be labels.
        DuplicateIds: if an id is missing.
    """
    kinds = _kinds(table)
    _check_columns("labels", labels.table, kinds, {labels.doc_id: {"string"}, labels.label: set(_LABEL_TYPES)})
    rows = table.select(F.col(labels.doc_id).alias("doc_id"), F.col(labels.label).cast("string").alias("label"))
    if nameless := rows.where(F.col("doc_id").isNull()).count():
        raise DuplicateIds(
            f"labels: {nameless:,} row(s) of table '{labels.table}' have no document id ({labels.doc_id} is NULL)",
            remedy="Correct the table, or name another column with doc_id.",
        )
    found = rows.groupBy("doc_id").agg(
        F.min("label").alias("label"), F.max("label").alias("other"), F.countDistinct("label").alias("labels")
    )
    torn = found.where(F.col("labels") > 1)
    if examples := torn.orderBy("doc_id").limit(EXAMPLES).collect():
        raise InputContractError(
            f"labels: {torn.count():,} document(s) of table '{labels.table}' have several labels that differ:",
            [f"{row['doc_id']!r}: '{row['label']}' and '{row['other']}'" for row in examples],
            "Decide for one of them each, or leave these documents out.",
        )
    different = rows.where(F.col("label").isNotNull()).select("label").distinct().limit(MOST_LABELS + 1)
    if different.count() > MOST_LABELS:
        raise InputContractError(
            f"labels: column '{labels.label}' of table '{labels.table}' holds more than {MOST_LABELS} different labels",
            remedy="Name the column that holds the labels with `label`.",
        )
    return found.select("doc_id", "label")


def target_source(address: str) -> str:
    """What the rows of a target table are counted under, in place of a source."""
    return f"target:{address}"


def _judged(documents: DataFrame, label: Column, reason: Column) -> DataFrame:
    return documents.select(
        F.lit("").alias("held_in"),
        "doc_id",
        "source",
        "bytes",
        "text_sha256",
        label.alias("label"),
        reason.cast("string").alias("reason"),
    )


def _reasoned(marked: DataFrame, condition: Column, reason: str) -> DataFrame:
    applies = condition & F.col("reason").isNull()
    return marked.withColumn("reason", F.when(applies, reason).otherwise(F.col("reason"))).select(*JUDGED)


def _kinds(table: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in table.schema.fields}


def _check_columns(what: str, table: str, kinds: Mapping[str, str], wanted: Mapping[str, set[str]]) -> None:
    problems = [
        f"column '{name}' {'is ' + kinds[name] if name in kinds else 'is not there'}; "
        f"it should be {'a string' if types == {'string'} else 'a string, a whole number or a boolean'}"
        for name, types in wanted.items()
        if kinds.get(name) not in types
    ]
    if problems:
        raise InputContractError(
            f"{what}: table '{table}' can't be used:", problems, f"It has: {', '.join(sorted(kinds))}."
        )
