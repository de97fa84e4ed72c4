"""Counting tokens (cl100k_base) under Spark on real text: MB/s per core, from a Parquet table of documents.

The text is what every machine with Python has, its sources and those of its packages; or a warehouse's documents.

    python -m tests.benchmarks.tokens [--warehouse FOLDER] [--megabytes 300]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import sysconfig
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.annotate import annotate
from tests.benchmarks.common import DATA, consume, report, seconds, session
from tests.benchmarks.near_dedup import documents_of
from udfs.annotators.tokens import TokensSettings

BUDGET = 40.0


def main(arguments: list[str]) -> bool:
    """Run, print, and say whether the budget is kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", help="a warehouse with a documents table")
    parser.add_argument("--megabytes", type=float, default=300.0)
    options = parser.parse_args(arguments)
    spark = session()
    documents = documents_of(spark, options.warehouse) if options.warehouse else sources(spark, options.megabytes)
    size = int(documents.agg(F.sum(F.octet_length("text"))).first()[0]) / 1e6  # type: ignore[index]
    cores = int(spark.sparkContext.defaultParallelism)
    counted = annotate(documents, [("tokens", TokensSettings())])
    consume(counted)
    took = statistics.median(seconds(lambda: consume(counted)) for _ in range(3))
    total = int(counted.agg(F.sum("tokens.count")).first()[0])  # type: ignore[index]
    value = round(size / took / cores, 1)
    report("tokens", value, BUDGET, value >= BUDGET, unit="MB/s per core", megabytes=round(size), tokens=total,
           seconds=round(took, 2), cores=cores)  # fmt: skip
    spark.stop()
    return value >= BUDGET


def sources(spark: SparkSession, megabytes: float) -> DataFrame:
    """About so many MB of Python sources as documents."""
    target = DATA / f"sources-{megabytes:g}"
    if not target.exists():
        places = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
        files = sorted({file for place in places for file in place.rglob("*.py")})
        texts: list[tuple[str, str]] = []
        held = number = 0
        while held < megabytes * 1e6:  # again and again, where there is too little
            for file in files:
                text = file.read_bytes().decode("utf-8", "replace")
                if len(text) < 1_000_000 and held < megabytes * 1e6:
                    texts.append((f"{number:07d}", text))
                    held, number = held + len(text), number + 1
                if len(texts) == 1000 or (texts and held >= megabytes * 1e6):
                    rows = spark.createDataFrame(texts, "doc_id STRING, text STRING")
                    rows.coalesce(1).write.mode("append").parquet(str(target))
                    texts.clear()
    frame = spark.read.parquet(str(target))
    return frame.withColumns(
        {"source": F.lit("python"), "batch": F.lit("b"), "text_sha256": F.unhex(F.sha2("text", 256))}
    )


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
