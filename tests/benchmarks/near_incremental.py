"""near_dedup on a delivery of 1 % more documents, beside a full run, both as jobs: with index, counts and run record.

python -m tests.benchmarks.near_incremental [MEGABYTES, default 1000]
"""

from __future__ import annotations

import shutil
import sys
import time

from pyspark.sql import functions as F

from jobs.registry import JOBS
from jobs.runtime.job import run_job
from jobs.runtime.layers import Layer, resolve
from jobs.runtime.tables import TableRef, ensure_table, write_table
from jobs.settings import Settings
from schemas.tables import DOCUMENTS
from tests.benchmarks.common import DATA, prepared, report, session
from tests.benchmarks.near_dedup import documents_of, share_of

SHARE = 0.01
FIXED = 30.0
"""Seconds that may be spent whatever the size."""


def main(megabytes: float = 1000.0) -> bool:
    """Run, print, and say whether the increment is cheap, and its outcome that of a full run."""
    spark = session()
    documents = documents_of(spark, prepared(spark, megabytes, ("ingest",)).warehouse)
    home = DATA / "increment"
    shutil.rmtree(home, ignore_errors=True)
    settings = resolve(Settings, [Layer("benchmark", {
        "warehouse": str(home), "survivor": ["arrival", "doc_id"], "decide": [{"near_dedup": {}}]})]).settings  # fmt: skip
    ref = TableRef.in_warehouse(settings.warehouse, "documents")
    ensure_table(spark, "documents", ref, DOCUMENTS)
    counts, seconds = [], {}
    for arrival, mine in ((1, share_of("new") >= SHARE), (2, share_of("new") < SHARE)):
        rows = documents.where(mine).withColumns(
            {"arrival": F.lit(arrival).cast("bigint"), "batch": F.lit(f"day-{arrival}")}
        )
        counts.append(write_table(spark, rows, "documents", ref, DOCUMENTS, transaction=f"day-{arrival}", ordinal=1,
                                  metadata={}).rows)  # fmt: skip
        names = ["cold", "full"] if arrival == 1 else ["full", "again"]
        for policy in names:
            start = time.perf_counter()
            mine_settings = settings.model_copy(update={"policy": policy})
            record = run_job(
                spark, JOBS["near-dedup"], mine_settings, f"{policy}-{arrival}", "near_dedup", quiet=True
            ).record
            seconds[f"{policy}, day {arrival}"] = round(time.perf_counter() - start, 1)
            if (arrival, policy) == (2, "full"):
                assert record.notes["decided"] == "new arrivals only", record.notes
    decisions = spark.read.format("delta").load(str(home / "decisions"))
    sides = [decisions.where(F.col("policy") == p).select("doc_id") for p in ("full", "again")]
    differ = sides[0].exceptAll(sides[1]).count() + sides[1].exceptAll(sides[0]).count()
    value, full = seconds["full, day 2"], seconds["full, day 1"]
    budget = round(0.1 * full + FIXED, 1)
    within = value <= budget and differ == 0
    report("near_incremental", value, budget, within, unit="seconds", documents=counts, seconds=seconds,
           ids_that_differ=differ, dropped=sides[0].count())  # fmt: skip
    spark.stop()
    return within


if __name__ == "__main__":
    sys.exit(0 if main(*(float(a) for a in sys.argv[1:2])) else 1)
