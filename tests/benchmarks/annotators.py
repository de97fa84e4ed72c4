"""One pass of four annotators against the kernels alone, and fastText through Arrow against a bare loop.

python -m tests.benchmarks.annotators [--warehouse FOLDER] [--megabytes 150]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.annotate import annotate
from tests.benchmarks.common import consume, report, seconds, session
from tests.benchmarks.near_dedup import documents_of
from tests.benchmarks.tokens import sources
from udfs.annotators.fasttext_classifier import FASTTEXT, FastTextSettings
from udfs.annotators.heuristics import HeuristicsSettings
from udfs.annotators.language import LanguageSettings
from udfs.annotators.one_pass import CARRIED
from udfs.annotators.registry import ANNOTATORS
from udfs.annotators.tokens import TokensSettings
from udfs.classifying import prepared
from udfs.fasttext_models import load_fasttext
from udfs.fasttext_training import FastTextTraining, train_fasttext

BUDGET = {"one_pass": 1.15, "fasttext_arrow": 0.8}
ROUNDS = 3
BATCH = 64
"""Documents, as Parquet is read in the session of `common`."""


def main(arguments: list[str]) -> bool:
    """Run, print, and say whether the budgets are kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", help="a warehouse with a documents table")
    parser.add_argument("--megabytes", type=float, default=150.0)
    options = parser.parse_args(arguments)
    spark = session()
    documents = documents_of(spark, options.warehouse) if options.warehouse else sources(spark, options.megabytes)
    size = int(documents.agg(F.sum(F.octet_length("text"))).first()[0]) / 1e6  # type: ignore[index]
    cores = int(spark.sparkContext.defaultParallelism)
    with tempfile.TemporaryDirectory() as folder:
        quality = FastTextSettings(model=str(small_model(documents, Path(folder))), positive="odd")
        wanted: list[tuple[str, Any]] = [
            ("tokens", TokensSettings()), ("language", LanguageSettings()), ("heuristics", HeuristicsSettings()),
            ("quality", quality),
        ]  # fmt: skip
        whole = annotate(documents, wanted)
        identity = documents.select(*CARRIED, "text").mapInArrow(carried, f"{CARRIED_TYPES}")
        passes: dict[str, Callable[[], None]] = {
            "four annotators": lambda: consume(whole), "identity": lambda: consume(identity),
            "kernels": lambda: consume(kernels_alone(spark, documents, wanted)),
        }  # fmt: skip
        for action in passes.values():
            action()
        taken: dict[str, list[float]] = {name: [] for name in passes}
        for _ in range(ROUNDS):
            for name, action in passes.items():
                taken[name].append(seconds(action))
        median = {name: statistics.median(values) for name, values in taken.items()}
        inside = kernel_seconds(spark, documents, wanted) / cores
        texts = pa.array([r[0] for r in documents.select("text").limit(3000).collect()], pa.large_string())
        arrow = fasttext_ratio(texts, quality)
        value = {
            "one_pass": round(median["four annotators"] / (inside + median["identity"]), 3),
            "fasttext_arrow": round(arrow, 3),
        }
        within = value["one_pass"] <= BUDGET["one_pass"] and value["fasttext_arrow"] >= BUDGET["fasttext_arrow"]
        report("annotators", value, BUDGET, within, megabytes=round(size), cores=cores,
               seconds={**{k: round(v, 2) for k, v in median.items()}, "kernels_inside": round(inside, 2)},
               mb_per_second_core=round(size / median["four annotators"] / cores, 1))  # fmt: skip
    spark.stop()
    return within


CARRIED_TYPES = "doc_id STRING, source STRING, text_sha256 BINARY, batch STRING"


def carried(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The pass without annotators: texts go to Python, what is carried comes back."""
    for batch in batches:
        yield batch.select(list(CARRIED))


def timed(wanted: list[tuple[str, Any]]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The kernels alone, timed on the batches that the pass sees; opening them counts too."""
    resolved = [(name, ANNOTATORS[settings.kind].resolve(settings)) for name, settings in wanted]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start = time.perf_counter()
        kernels = [ANNOTATORS[settings.kind].open(settings) for _, settings in resolved]
        spent = time.perf_counter() - start
        for batch in batches:
            start = time.perf_counter()
            for kernel in kernels:
                kernel(batch.column("text"))
            spent += time.perf_counter() - start
        yield pa.RecordBatch.from_arrays([pa.array([spent])], names=["seconds"])

    return run


def kernels_alone(spark: SparkSession, documents: DataFrame, wanted: list[tuple[str, Any]]) -> DataFrame:
    """A row per task: seconds in kernels."""
    return documents.select("text").mapInArrow(timed(wanted), "seconds DOUBLE")


def kernel_seconds(spark: SparkSession, documents: DataFrame, wanted: list[tuple[str, Any]]) -> float:
    """Seconds in kernels, of all tasks together; the median of several passes."""
    totals = [
        float(kernels_alone(spark, documents, wanted).agg(F.sum("seconds")).first()[0])  # type: ignore[index]
        for _ in range(ROUNDS)
    ]
    return statistics.median(totals)


def small_model(documents: DataFrame, folder: Path) -> Path:
    """A classifier with a model of usual size; what it tells apart doesn't matter here."""
    rows = documents.select("doc_id", F.substring("text", 1, 2000)).limit(400).collect()
    labels = ["odd" if sum(r[0].encode()) % 2 else "even" for r in rows]
    texts = prepared(pa.array([r[1] for r in rows]), fold_case=True, characters=None)
    train_fasttext(texts, labels, FastTextTraining(epochs=1), folder / "model.bin")
    return folder / "model.bin"


def fasttext_ratio(texts: pa.Array, settings: FastTextSettings) -> float:
    """Speed of the annotator's kernel on Arrow texts / speed of a bare loop of predict over the same texts as strings.

    The loop replaces line feeds, which fastText refuses, and lowers the case, for it is to give the same answers; it
    needs no more. The kernel gets its texts in batches, as Spark gives them.
    """
    resolved = FASTTEXT.resolve(settings)
    kernel = FASTTEXT.open(resolved)
    model: Any = load_fasttext(resolved.model)
    strings = [text[: resolved.limit] for text in texts.to_pylist()]
    batches = [texts.slice(start, BATCH) for start in range(0, len(texts), BATCH)]

    def loop() -> None:
        for text in strings:
            model.f.predict(text.replace("\n", " ").lower() + "\n", 2, 0.0, "strict")

    def through_arrow() -> None:
        for batch in batches:
            kernel(batch)

    ratios = []
    for _ in range(ROUNDS):
        ratios.append(seconds(loop) / seconds(through_arrow))
    return statistics.median(ratios)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
