"""Proof that a delivery was read whole: every listed file, and every line, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.runtime.errors import ReconciliationError, UnreadableInput
from udfs.record_batches import LINES_MARK

LACKING = ("text_missing", "id_missing")
ENOUGH_RECORDS = 10
"""Fewer records than this may all be without a text by accident."""


def check_reading(stored: DataFrame, expected: Mapping[str, tuple[str, int]]) -> None:
    """Every listed file was read, and once; every line that is not blank became a row.

    Args:
        stored: Raw records with their ``entry`` of the setting ``ingest``.
        expected: Entry -> (format, files that must have been seen).

    Raises:
        ReconciliationError: naming each entry of which something was read twice or lost. Nothing was written.
        UnreadableInput: naming each entry of which files gave nothing, or of which not one record has the field that
            the settings name for the text or the id.
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
            F.sum(F.col("reason").isin(*LACKING).cast("int")).alias("lacking"),
            F.min(F.when(F.col("reason").isin(*LACKING), F.col("detail"))).alias("what"),
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
    _check_fields(found.values())


def _check_fields(rows: Iterable[Row]) -> None:
    """A field's name that is mistyped would reject record after record, and the run go on without the source."""
    mistaken = [
        f"source '{row['entry']}': {row['what']}"
        for row in rows
        if not row["mark"] and row["rows"] >= ENOUGH_RECORDS and row["lacking"] == row["rows"]
    ]
    if mistaken:
        raise UnreadableInput(
            "not one record has the field that the setting 'columns' names:",
            sorted(mistaken),
            "Correct ingest.SOURCE.columns.text or ingest.SOURCE.columns.doc_id. Nothing was written.",
        )
