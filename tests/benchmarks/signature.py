"""The signature kernel (112 permutations, word 5-grams) on one core, and under Spark beside an identity pass.

Under Spark a pass can't be faster than the kernel on its cores plus what it costs to bring text to Python and back, so
the budget is a share of the harmonic sum of both rates.

    python -m tests.benchmarks.signature [MEGABYTES, default 250]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import functions as F

from jobs.near.signing import sign
from tests.benchmarks.common import consume, prepared, report, seconds, session
from tests.benchmarks.kernels import corpus_texts, rate
from tests.benchmarks.near_dedup import documents_of
from udfs.annotators.minhash import MinhashSettings, open_minhash

BUDGET = {"kernel_mb_per_second": 80.0, "share_of_harmonic_sum": 0.9}


def main(megabytes: float = 250.0) -> bool:
    """Run, print, and say whether the budgets are kept."""
    minhash = MinhashSettings()
    texts = corpus_texts(60.0)
    kernel = open_minhash(minhash)
    mixed = rate(kernel, texts)
    plain = rate(kernel, texts.filter(pa.compute.string_is_ascii(texts)))
    spark = session()
    documents = documents_of(spark, prepared(spark, megabytes, ("ingest",)).warehouse).select("doc_id", "text")
    size = int(documents.agg(F.sum(F.octet_length("text"))).first()[0]) / 1e6  # type: ignore[index]
    cores = int(spark.sparkContext.defaultParallelism)

    def identity(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    held = documents.agg(F.collect_list("text").alias("all"))  # the very texts, for the bare kernel
    own = rate(kernel, pa.array(held.first()["all"], pa.large_string()))  # type: ignore[index]
    passes = {"identity": lambda: consume(documents.mapInArrow(identity, documents.schema)),
              "signing": lambda: consume(sign(documents, minhash))}  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in passes}
    for name in passes:
        passes[name]()
    for _ in range(5):
        for name, action in passes.items():
            times[name].append(seconds(action))
    took = {name: statistics.median(values) for name, values in times.items()}
    best = size / own / cores + took["identity"]
    value = {"kernel_mb_per_second": mixed, "share_of_harmonic_sum": round(best / took["signing"], 3)}
    within = all(value[name] >= limit for name, limit in BUDGET.items())
    report("signature", value, BUDGET, within, ascii_mb_per_second=plain, generated_text_mb_per_second=own,
           seconds={name: round(s, 2) for name, s in took.items()}, megabytes=round(size), cores=cores)  # fmt: skip
    spark.stop()
    return within


if __name__ == "__main__":
    sys.exit(0 if main(*(float(a) for a in sys.argv[1:2])) else 1)
