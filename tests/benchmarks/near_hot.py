"""near_dedup where pairs would be quadratic: equal documents, and form letters just below the threshold.

A million equal documents must leave one; 100,000 letters at 0.68 against a threshold of 0.7 must all stay, with the number
that hit the cap reported, alone and in a larger corpus. A quarter of each shows how the time grows.

    python -m tests.benchmarks.near_hot [EQUAL, default 1000000] [LETTERS, default 100000] [MEGABYTES beside, default 250]
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.scratch import Scratch
from tests.benchmarks.common import DATA, PeakMemory, prepared, report, session
from tests.benchmarks.near_dedup import documents_of, run
from udfs.annotators.minhash import MinhashSettings

BUDGET = {"equal": 4.6, "letters": 4.6}
CORE, TAIL = 89, 20
"""85 shingles that all letters share and 20 of each one's own: J = 85 / 125 = 0.68."""


def main(equal: int = 1_000_000, letters: int = 100_000, megabytes: float = 250.0) -> bool:
    """Run, print, and say whether the time grows with the documents."""
    spark = session()
    minhash = MinhashSettings(threshold=0.7)
    beside = documents_of(spark, prepared(spark, megabytes, ("ingest",)).warehouse).select(
        "doc_id", "source", "batch", "bytes", "text_sha256", "text"
    )
    took: dict[str, Any] = {}

    def measure(name: str, frame: DataFrame) -> dict[str, str]:
        home = DATA / "hot"
        shutil.rmtree(home, ignore_errors=True)
        frame.write.parquet(str(home / "documents"))
        documents = spark.read.parquet(str(home / "documents"))
        scratch = Scratch(spark, str(home), name, "near")
        start = time.perf_counter()
        found = run(spark, documents, minhash, scratch, {})
        took[name] = round(time.perf_counter() - start, 1)
        notes = {**found.notes, "dropped": str(found.decisions.count())}
        scratch.clean()
        return notes

    same = " ".join(f"word{i}" for i in range(60))
    measure("warm up", made(spark, 1000, F.lit(same)))
    with PeakMemory() as memory:
        measure("equal, a quarter", made(spark, equal // 4, F.lit(same)))
        copies = measure("equal", made(spark, equal, F.lit(same)))
        measure("letters, a quarter", made(spark, letters // 4, letter()))
        alone = measure("letters", made(spark, letters, letter()))
        measure("the corpus without letters", beside)
        among = measure("the corpus with letters", beside.unionByName(made(spark, letters, letter())))
    value = {name: round(took[name] / took[f"{name}, a quarter"], 2) for name in BUDGET}
    right = int(copies["dropped"]) == equal - 1 and int(alone["dropped"]) == 0
    within = right and all(value[name] <= limit for name, limit in BUDGET.items())
    report("near_hot", value, BUDGET, within, seconds=took, equal=equal, letters=letters,
           equal_dropped=int(copies["dropped"]), letters_dropped=int(alone["dropped"]),
           letters_that_hit_the_cap=int(alone["hit_the_cap"]), compared=int(alone["pairs_compared"]),
           in_corpus={k: among[k] for k in ("hit_the_cap", "pairs_compared", "largest_component", "dropped")},
           peak_memory_gb=round(memory.peak / 1e9, 2))  # fmt: skip
    spark.stop()
    return within


def letter() -> Any:
    """A form letter's text, by the number ``id``."""
    core = " ".join(f"form{i}" for i in range(CORE))
    tail = F.expr(f"array_join(transform(sequence(1, {TAIL}), j -> concat('own', id, 'x', j)), ' ')")
    return F.concat_ws(" ", F.lit(core), tail)


def made(spark: SparkSession, number: int, text: Any) -> DataFrame:
    """Documents numbered from 0."""
    rows = spark.range(number).select(F.format_string("hot%09d", "id").alias("doc_id"), text.alias("text"))
    return rows.select(
        "doc_id", F.lit("hot").alias("source"), F.lit("b").alias("batch"),
        F.octet_length("text").cast("bigint").alias("bytes"), F.unhex(F.sha2("text", 256)).alias("text_sha256"), "text",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(0 if main(*(int(a) for a in sys.argv[1:4])) else 1)
