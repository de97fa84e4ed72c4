"""near_dedup, whole and verified, beside an unverified MinHash in Python on the same text with the same K, b, r.

The time is from the documents table to decisions in Parquet: signing all texts, candidates, verification, proof. The
baseline is what public Spark scripts do, written anew here: shingles, permutations and band keys by a Python function
over an RDD, a group-by per band key, star edges; nothing verified and nothing written.

    python -m tests.benchmarks.near_dedup [--megabytes 1000] [--template-share 0.3] [--baseline-share 0.25]
    python -m tests.benchmarks.near_dedup --warehouse FOLDER     # real text that `weir ingest` has taken in
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.deciding.step import Candidates
from jobs.near_dedup import NearDedupSettings, NearDuplicates, near_duplicates, signed_documents
from jobs.runtime.scratch import Scratch
from jobs.runtime.tables import Pinned, TableRef, latest_version
from tests.benchmarks.common import prepared, report, session
from udfs.annotators.minhash import MinhashSettings

BUDGET = {"gb_per_core_hour": {"real": 30.0, "generated": 20.0}, "ratio_to_unverified_rdd": 4.0}
SURVIVOR = ("source_priority", "doc_id")
PRIME = np.uint64((1 << 61) - 1)


def main(arguments: list[str]) -> bool:
    """Run, print, and say whether the budgets are kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=1000.0)
    parser.add_argument("--template-share", type=float, default=0.0)
    parser.add_argument("--warehouse", help="real text: a warehouse with a documents table")
    parser.add_argument("--baseline-share", type=float, default=0.25, help="of the documents, for the slow baseline")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args(arguments)
    spark = session()
    if options.warehouse:
        warehouse, kind = options.warehouse, "real"
    else:
        warehouse, kind = prepared(spark, options.megabytes, ("ingest",), options.template_share).warehouse, "generated"
    ref = TableRef.in_warehouse(warehouse, "documents")
    documents = Pinned("documents", ref, latest_version(spark, ref) or 0).read(spark)
    first = documents.agg(F.sum("bytes"), F.count(F.lit(1))).first()
    size, number = int(first[0]), int(first[1])
    cores = int(spark.sparkContext.defaultParallelism)
    minhash = MinhashSettings()

    seconds, stages, found = [], {}, None
    for round_number in range(options.rounds + 1):  # the first is cold: kernels, JVM
        stages = {}
        start = time.perf_counter()
        found = run(spark, documents, minhash, Scratch(spark, warehouse, f"benchmark{round_number}", "near"), stages)
        seconds.append(time.perf_counter() - start)
    best = min(seconds[1:]) if options.rounds else seconds[0]
    rate = size / 1e9 / (best / 3600) / cores

    part = documents.where(F.abs(F.xxhash64("doc_id")) % 1000 < int(options.baseline_share * 1000)).select(
        "doc_id", "text"
    )
    part_bytes = int(part.agg(F.sum(F.octet_length("text"))).first()[0] or 0)  # type: ignore[index]
    start = time.perf_counter()
    edges = unverified(part, *minhash.shape)
    baseline = time.perf_counter() - start
    baseline_rate = part_bytes / 1e9 / (baseline / 3600) / cores
    value = {"gb_per_core_hour": round(rate, 1), "ratio_to_unverified_rdd": round(rate / baseline_rate, 1)}
    budget = {
        "gb_per_core_hour": BUDGET["gb_per_core_hour"][kind],  # type: ignore[index]
        "ratio_to_unverified_rdd": BUDGET["ratio_to_unverified_rdd"],
    }
    within = all(value[name] >= budget[name] for name in value)
    report(
        "near_dedup", value, budget, within, text=kind, bytes=size, documents=number, cores=cores,
        seconds=[round(s, 1) for s in seconds], stages={name: round(s, 2) for name, s in stages.items()},
        documents_per_second_per_core=round(number / best / cores),
        baseline={"seconds": round(baseline, 1), "bytes": part_bytes, "edges": edges,
                  "gb_per_core_hour": round(baseline_rate, 1)},
        notes=found.notes if found else {},
    )  # fmt: skip
    spark.stop()
    return within


def run(
    spark: SparkSession, documents: DataFrame, minhash: MinhashSettings, scratch: Scratch, stages: dict[str, float]
) -> NearDuplicates:
    """The whole step; ``stages`` takes the seconds of each intermediate result."""
    last = [time.perf_counter()]

    def materialize(frame: DataFrame, name: str) -> DataFrame:
        stored = scratch.materialize(frame, name)
        now = time.perf_counter()
        stages[name], last[0] = now - last[0], now
        return stored

    candidates = Candidates(
        documents.drop("text"), documents, lambda names: documents, lambda name: documents, frozenset()
    )
    step = NearDedupSettings()
    signed = signed_documents(candidates, step, minhash, SURVIVOR, {}, materialize)
    found = near_duplicates(signed, documents.select("doc_id", "text"), step, minhash, materialize)
    materialize(found.decisions, "proof_and_decisions")
    return found


def unverified(texts: DataFrame, bands: int, rows: int) -> int:
    """Star edges of MinHash buckets by Python functions over an RDD."""
    draw = np.random.default_rng(1)
    a = draw.integers(1, 1 << 61, bands * rows, dtype=np.uint64)
    b = draw.integers(0, 1 << 61, bands * rows, dtype=np.uint64)
    split = re.compile(r"\W+")

    def keys(row: Any) -> Iterator[tuple[tuple[int, bytes], str]]:
        words = [word for word in split.split(row[1].lower()) if word]
        grams = {" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))}
        hashes = np.array([int.from_bytes(hashlib.sha1(g.encode()).digest()[:4], "little") for g in grams], np.uint64)
        minima = (((hashes[:, None] * a + b) % PRIME) & np.uint64(0xFFFFFFFF)).min(axis=0).astype(np.uint32)
        for band in range(bands):
            yield (band, minima[band * rows : (band + 1) * rows].tobytes()), row[0]

    def star(bucket: Any) -> Iterator[tuple[str, str]]:
        members = sorted(bucket[1])
        for member in members[1:]:
            yield members[0], member

    make: Callable[..., Any] = texts.rdd.flatMap
    return int(make(keys).groupByKey().flatMap(star).distinct().count())


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
