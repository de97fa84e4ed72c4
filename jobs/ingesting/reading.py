"""Files to rows of raw records, in parallel, with the line or row number of every record."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType, TimestampType

from jobs.runtime.errors import InputContractError
from udfs.record_batches import LINES_MARK, SPARK_SCHEMA, file_reader, line_reader, row_reader
from udfs.record_types import RecordRules

NO_GLOB = {"__globPaths__": "false"}
"""Spark would take brackets and braces in a file's name for a pattern, and read other files or none."""


def read_lines(spark: SparkSession, uris: Sequence[str], rules: RecordRules, source_pattern: str | None) -> DataFrame:
    """JSONL files as raw records; lines end at a line feed and nowhere else."""
    lines = (
        spark.read.options(**NO_GLOB)
        .text(list(uris), lineSep="\n")
        .select(
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("stretch"),
            F.col("value").cast("binary").alias("line"),
        )
    )
    return lines.mapInArrow(line_reader(rules, source_pattern), SPARK_SCHEMA)


def read_texts(spark: SparkSession, uris: Sequence[str], rules: RecordRules, source_pattern: str | None) -> DataFrame:
    """Text files as raw records, one per file."""
    files = (
        spark.read.format("binaryFile")
        .options(**NO_GLOB)
        .load(list(uris))
        .select(F.col("_metadata.file_path").alias("file"), "content")
    )
    return files.mapInArrow(file_reader(rules, source_pattern), SPARK_SCHEMA)


def read_parquet(spark: SparkSession, uris: Sequence[str], rules: RecordRules, source_pattern: str | None) -> DataFrame:
    """Parquet files as raw records, one per row.

    Raises:
        InputContractError: if a column has one type in one file and another in the next.
    """
    try:
        table = spark.read.options(**NO_GLOB).option("mergeSchema", "true").parquet(*uris)
    except Exception as error:  # a plain Py4JJavaError on classic Spark, a PySparkException on Connect
        if "CANNOT_MERGE_SCHEMAS" not in str(error):
            raise
        raise InputContractError(
            f"source '{rules.source}': its Parquet files contradict each other: {_contradictions(spark, str(error))}",
            remedy="Write them with the same types, or take them in as two entries of the setting 'ingest'.",
        ) from None
    return _read_rows(table, rules, source_pattern)


def read_delta(
    spark: SparkSession, address: str, version: int, rules: RecordRules, source_pattern: str | None
) -> DataFrame:
    """A Delta table at a version as raw records; the position is the row's place in its file."""
    reader = spark.read.format("delta").option("versionAsOf", version)
    table = reader.load(address) if "/" in address else reader.table(address)
    return _read_rows(table, rules, source_pattern)


def _read_rows(table: DataFrame, rules: RecordRules, source_pattern: str | None) -> DataFrame:
    """The rows of a table of files. Delta gives no row numbers unless rows can be deleted inside a file (deletion
    vectors); then, as with lines, they are counted per stretch."""
    try:
        place = (F.col("_metadata.row_index") + 1).alias("#position")
        table.select(place).schema  # noqa: B018 - asks for the analysis, on Connect too
        counted = False
    except PySparkException:
        place, counted = F.col("_metadata.file_block_start").alias("#stretch"), True
    rows = table.select(F.col("_metadata.file_path").alias("#file"), place, *_plain(table, rules.mapped.text))
    return rows.mapInArrow(row_reader(rules, source_pattern, table.columns, counted), SPARK_SCHEMA)


def numbered(raw: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Raw records with ``record``, their line in the whole file; and the table of lines per stretch.

    The records carry their ``entry`` of the setting ``ingest``: two entries may read the same file.

    A file is read in stretches; a line's number is its position in the stretch and the lines of all earlier ones.
    The table of stretches is small (one row per 128 MB) and is broadcast.
    """
    stretches = raw.where(F.col("reason") == LINES_MARK).select(
        "entry", "file", "stretch", F.col("position").alias("lines"), F.col("detail").cast("bigint").alias("blank")
    )
    earlier = Window.partitionBy("entry", "file").orderBy("stretch").rowsBetween(Window.unboundedPreceding, -1)
    offsets = stretches.select(
        "entry", "file", "stretch", F.coalesce(F.sum("lines").over(earlier), F.lit(0)).alias("offset")
    )
    records = (
        raw.where(F.col("reason").isNull() | (F.col("reason") != LINES_MARK))
        .join(F.broadcast(offsets), ["entry", "file", "stretch"], "left")
        .withColumn("record", F.col("position") + F.coalesce(F.col("offset"), F.lit(0)))
        .drop("offset", "position", "stretch")
    )
    return records, stretches


def _plain(table: DataFrame, text: str) -> list[Column]:
    """A table's columns by their number, in types that travel as they are; nested ones as JSON, marked by their name.

    Numbered, for a name may hold dots, and ``mapInArrow`` would take these for fields of a struct.
    """
    columns = []
    for number, entry in enumerate(table.schema.fields):
        column = F.col("`" + entry.name.replace("`", "``") + "`")
        kind = entry.dataType
        if isinstance(kind, (StructType, ArrayType, MapType)):
            columns.append(F.to_json(column).alias(f"json:{number}"))
        elif isinstance(kind, (StringType, BinaryType, TimestampType)):
            columns.append(column.alias(str(number)))
        elif kind.simpleString().startswith(("decimal", "date", "interval", "timestamp_ntz")):
            columns.append(column.cast(_printed(kind, entry.name == text)).alias(str(number)))
        else:
            columns.append(column.alias(str(number)))
    return columns


def _printed(kind: DataType, is_text: bool) -> str:
    """Values that don't travel as they are go as strings; but printed ones in the text's column would pass for prose."""
    if not is_text or kind.simpleString().startswith("interval"):
        return "string"
    return "double" if kind.simpleString().startswith("decimal") else "timestamp"


def _contradictions(spark: SparkSession, message: str) -> str:
    """The columns on whose type the two schemas that Spark's message quotes don't agree."""
    quoted = re.findall(r'"(STRUCT<.*>)"', message)[:2]
    try:
        first, second = (spark.createDataFrame([], f"`it` {ddl}").schema.fields[0].dataType for ddl in quoted)
    except (ValueError, PySparkException):
        return "columns of the same name have different types"
    types = [{f.name: f.dataType.simpleString() for f in getattr(s, "fields", [])} for s in (first, second)]
    differing = sorted(name for name in types[0].keys() & types[1].keys() if types[0][name] != types[1][name])
    return "; ".join(f"column '{name}' is {types[0][name]} and {types[1][name]}" for name in differing)
