"""Files to rows of raw records, in parallel, with the line or row number of every record."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType, TimestampType

from udfs.record_batches import LINES_MARK, SPARK_SCHEMA, file_reader, line_reader, row_reader
from udfs.records import RecordRules

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
    """Parquet files as raw records, one per row."""
    table = spark.read.options(**NO_GLOB).option("mergeSchema", "true").parquet(*uris)
    rows = table.select(
        F.col("_metadata.file_path").alias("#file"),
        (F.col("_metadata.row_index") + 1).alias("#position"),
        *_plain(table),
    )
    return rows.mapInArrow(row_reader(rules, source_pattern), SPARK_SCHEMA)


def read_delta(
    spark: SparkSession, address: str, version: int, rules: RecordRules, source_pattern: str | None
) -> DataFrame:
    """A Delta table at a version as raw records; the position is the row's place in its file."""
    reader = spark.read.format("delta").option("versionAsOf", version)
    table = reader.load(address) if "/" in address else reader.table(address)
    rows = table.select(
        F.col("_metadata.file_path").alias("#file"),
        (F.col("_metadata.row_index") + 1).alias("#position"),
        *_plain(table),
    )
    return rows.mapInArrow(row_reader(rules, source_pattern), SPARK_SCHEMA)


def numbered(raw: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Raw records with ``record``, their line in the whole file; and the table of lines per stretch.

    A file is read in stretches; a line's number is its position in the stretch and the lines of all earlier ones.
    The table of stretches is small (one row per 128 MB) and is broadcast.
    """
    stretches = raw.where(F.col("reason") == LINES_MARK).select(
        "file", "stretch", "source", F.col("position").alias("lines"), F.col("detail").cast("bigint").alias("blank")
    )
    earlier = Window.partitionBy("file").orderBy("stretch").rowsBetween(Window.unboundedPreceding, -1)
    offsets = stretches.select("file", "stretch", F.coalesce(F.sum("lines").over(earlier), F.lit(0)).alias("offset"))
    records = (
        raw.where(F.col("reason").isNull() | (F.col("reason") != LINES_MARK))
        .join(F.broadcast(offsets), ["file", "stretch"], "left")
        .withColumn("record", F.col("position") + F.coalesce(F.col("offset"), F.lit(0)))
        .drop("offset", "position", "stretch")
    )
    return records, stretches


def _plain(table: DataFrame) -> list[Column]:
    """A table's columns in types that travel as they are; nested ones as JSON, marked by their name."""
    columns = []
    for entry in table.schema.fields:
        column = F.col(f"`{entry.name}`")
        if isinstance(entry.dataType, (StructType, ArrayType, MapType)):
            columns.append(F.to_json(column).alias(f"json:{entry.name}"))
        elif isinstance(entry.dataType, (StringType, BinaryType, TimestampType)):
            columns.append(column.alias(entry.name))
        elif entry.dataType.simpleString().startswith(("decimal", "date", "interval", "timestamp_ntz")):
            columns.append(column.cast("string").alias(entry.name))
        else:
            columns.append(column.alias(entry.name))
    return columns
