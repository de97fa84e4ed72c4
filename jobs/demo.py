"""``weir demo``: the demo corpus from its seed to the gates, and what came out beside what was planted.

``weir demo-corpus`` writes the corpus alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.demo_corpus import DemoSettings, generate, read_metadata
from jobs.runtime.cli import load_settings
from jobs.runtime.display import print_table
from jobs.runtime.errors import GateFailed, ReconciliationError
from jobs.runtime.funnel import print_funnel
from jobs.runtime.job import run_job
from jobs.runtime.runs import new_run_id
from jobs.runtime.session import get_session, stop_own_session
from jobs.runtime.tables import Pinned, TableRef

if TYPE_CHECKING:
    from jobs.settings import Settings

DEFAULT_DOCUMENTS = 10_000


def write_corpus(options: argparse.Namespace) -> int:
    """The command ``weir demo-corpus``."""
    corpus = generate(
        Path(options.folder),
        documents=None if options.megabytes else options.documents or DEFAULT_DOCUMENTS,
        megabytes=options.megabytes,
        seed=options.seed,
        workers=options.workers,
        settings=DemoSettings(files_per_source=options.files_per_source),
    )
    rate = corpus.total_bytes / 1e6 / max(corpus.seconds, 1e-9)
    sys.stdout.write(
        f"{corpus.documents:,} records, {corpus.total_bytes / 1e6:,.1f} MB in {corpus.seconds:.1f} s ({rate:.0f} MB/s), "
        f"seed {options.seed}; what is planted in it: {corpus.truth_path}\n"
    )
    if options.json:
        summary = {"documents": corpus.documents, "bytes": corpus.total_bytes, "seconds": round(corpus.seconds, 3)}
        sys.stdout.write(json.dumps({"status": "done", "exit_code": 0, **summary}) + "\n")
    return 0


def run_demo(options: argparse.Namespace) -> int:
    """The command ``weir demo``."""
    folder = Path(options.folder)
    corpus_folder, warehouse = folder / "corpus", folder / "warehouse"
    for stale in (corpus_folder, warehouse):
        if stale.exists():
            shutil.rmtree(stale)
    corpus = generate(corpus_folder, documents=options.documents, seed=options.seed)
    sys.stdout.write(
        f"demo corpus: {corpus.documents:,} records, {corpus.total_bytes / 1e6:,.1f} MB, seed {options.seed}, {corpus_folder}\n"
    )
    sys.stdout.flush()
    settings = demo_settings(corpus_folder, warehouse)
    spark = get_session(settings.spark)
    try:
        from jobs.registry import pipeline

        run_id = new_run_id()
        results = [run_job(spark, job, settings, run_id, step) for job, step in pipeline(settings)]
        print_funnel([result.record for result in results])
        sys.stdout.write("\nplanted, and what became of it:\n")
        rows, wrong = compare(spark, settings, corpus_folder)
    finally:
        stop_own_session(spark)
    columns = ["source", "planted to be", "records", "came out so", "exact"]
    print_table("", columns, rows, right=("records", "came out so"))
    blocked = next((r.blocked for r in results if r.blocked), None)
    if not blocked and not wrong:
        sys.stdout.write(
            f"\nall exact. Look around: weir show selection --set warehouse={warehouse} --where \"reason = 'empty'\"\n"
        )
    if options.json:
        status = {"status": "blocked" if blocked else "done", "exit_code": 3 if blocked else 0, "run_id": run_id}
        sys.stdout.write(json.dumps({**status, "wrong": wrong}) + "\n")
    if blocked:
        raise GateFailed(blocked)
    if wrong:
        raise ReconciliationError(f"{wrong:,} planted record(s) did not come out as planted")
    return 0


def demo_settings(corpus: Path, warehouse: Path) -> Settings:
    """``conf/demo.yaml`` for a corpus in a folder of its own."""
    import importlib.resources

    file = importlib.resources.files("conf") / "demo.yaml"
    assignments = [f"warehouse={json.dumps(str(warehouse))}"]
    for source in read_metadata(corpus / "truth.parquet")["sources"]:
        assignments.append(f"ingest.{source}.paths={json.dumps([str(corpus / source)])}")
    lists = corpus / "lists"
    assignments.append(f"decide.0.eligibility.blocked_domain_lists={json.dumps([str(lists / 'blocked_domains.txt')])}")
    assignments.append(f"decide.0.eligibility.blocked_id_lists={json.dumps([str(lists / 'takedown_ids.txt')])}")
    return load_settings([str(file)], assignments).settings


def outcomes(spark: SparkSession, settings: Settings) -> tuple[DataFrame, DataFrame]:
    """What became of records: by document id (with the id kept instead), and of rejects by file name and line."""

    def table(name: str) -> DataFrame:
        ref = TableRef.in_warehouse(settings.warehouse, name)
        from jobs.runtime.tables import latest_version

        return Pinned(name, ref, latest_version(spark, ref) or 0).read(spark)

    selection = table("selection").where(F.col("policy") == settings.policy)
    dropped = F.concat(F.lit("drop:"), F.col("reason"))
    by_id = selection.select(
        "doc_id", "source", F.when(F.col("kept"), "keep").otherwise(dropped).alias("outcome"), "kept_id"
    )
    file = F.element_at(F.split("file", "/"), -1)
    by_place = table("rejects").select(
        F.concat_ws("/", "source", file).alias("file"),
        F.col("record").alias("line"),
        "source",
        F.concat(F.lit("reject:"), F.col("reason")).alias("outcome"),
    )
    return by_id, by_place


def compare(spark: SparkSession, settings: Settings, corpus: Path) -> tuple[list[list[Any]], int]:
    """Rows (source, expected, records, matching, exact) over all records of the corpus, and the number that differ.

    Every planted record is compared by itself, an exact copy also with the id that it must have been dropped for; of
    the others, which are all to be kept, the number per source.
    """
    truth = spark.read.parquet(str((corpus / "truth.parquet").absolute()))
    has_near_dedup = any(step.kind == "near_dedup" for step in settings.decide)
    expected = F.col("expected")
    if not has_near_dedup:
        expected = F.when(expected == "drop:near_duplicate", "keep").otherwise(expected)
    planted = truth.withColumn("wanted", expected)
    by_id, by_place = outcomes(spark, settings)
    documents = planted.where(~F.col("wanted").startswith("reject:")).join(
        by_id.withColumnRenamed("source", "found_source"), ["doc_id"], "left"
    )
    twin_right = (F.col("wanted") != "drop:exact_duplicate") | (F.col("kept_id") == F.col("original_id"))
    rejects = planted.where(F.col("wanted").startswith("reject:")).join(
        by_place.drop("source"), ["file", "line"], "left"
    )
    right = F.coalesce((F.col("outcome") == F.col("wanted")) & twin_right, F.lit(False))
    judged = documents.select("source", "wanted", right.alias("right")).unionByName(
        rejects.select("source", "wanted", F.coalesce(F.col("outcome") == F.col("wanted"), F.lit(False)).alias("right"))
    )
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for source, wanted, number, fine in (
        judged.groupBy("source", "wanted").agg(F.count(F.lit(1)), F.sum(F.col("right").cast("int"))).collect()
    ):
        counts[source, wanted] = [int(number), int(fine)]
    grouped = by_id.where(F.col("outcome") == "keep").groupBy("source").count().collect()
    kept: dict[str, int] = {str(row[0]): int(row[1]) for row in grouped}
    for source, totals in read_metadata(corpus / "truth.parquet")["sources"].items():
        ordinary = int(totals["records"]) - int(totals["planted"])
        planted_kept, planted_fine = counts[source, "keep"]
        counts[source, "keep"] = [planted_kept + ordinary, min(kept.get(source, 0), planted_fine + ordinary)]
    rows: list[list[Any]] = []
    wrong = 0
    for (source, wanted), (number, fine) in sorted(counts.items()):
        wrong += number - fine
        rows.append([source, wanted, number, fine, "yes" if number == fine else "NO"])
    surplus = sum(kept.values()) - sum(n for (_, wanted), (n, _) in counts.items() if wanted == "keep")
    return rows, wrong + abs(surplus)
