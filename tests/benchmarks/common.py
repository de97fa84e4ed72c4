"""What benchmarks share: a demo corpus of a given size in documents, a session, paired timings, one JSON line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jobs.demo import demo_settings
from jobs.demo_corpus import DemoSettings, generate
from jobs.registry import JOBS
from jobs.runtime.job import run_job
from jobs.runtime.models import SparkSettings
from jobs.runtime.session import JOB_CONF, get_session
from jobs.settings import Settings

DATA = Path(__file__).parent / "data"


def session() -> SparkSession:
    """A local session as a user gets it, with the configuration that jobs set."""
    spark = get_session(SparkSettings(driver_memory="6g"))
    for name, value in {**JOB_CONF, "spark.sql.parquet.columnarReaderBatchSize": "64"}.items():
        spark.conf.set(name, value)
    return spark


def prepared(
    spark: SparkSession,
    megabytes: float,
    jobs: tuple[str, ...] = ("ingest", "annotate"),
    template_share: float = 0.0,
) -> Settings:
    """A demo corpus of about that size (seed 0), taken in and annotated; kept for the next benchmark.

    Args:
        spark: The session.
        megabytes: Of JSON lines.
        jobs: What is run on it.
        template_share: Pages that are all nearly the same page.
    """
    home = DATA / (f"demo-{megabytes:g}" + (f"-{template_share:g}" if template_share else ""))
    corpus, warehouse = home / "corpus", home / "warehouse"
    if not (home / "ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        generate(corpus, megabytes=megabytes, seed=0, workers=2, settings=DemoSettings(near_page_share=template_share))
    settings = demo_settings(corpus, warehouse)
    for name in jobs:
        run_job(spark, JOBS[name], settings, "benchmark", quiet=True)
    (home / "ready").touch()
    return settings


class PeakMemory:
    """The most memory that this process and all that it has started held together, in bytes; ``peak`` is the result.

    Resident sets are read from /proc four times a second; memory that workers share with their parent counts once in
    each, so it is an upper bound.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            self.peak = max(self.peak, _resident(os.getpid()))


def _resident(root: int) -> int:
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)], pages[int(entry.name)] = int(fields[1]), int(fields[21])
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += pages.get(process, 0)
        waiting += [child for child, parent in parents.items() if parent == process]
    return total * os.sysconf("SC_PAGE_SIZE")


def shuffled_bytes(spark: SparkSession) -> int:
    """Bytes that the session's tasks have written for shuffles so far."""
    store = spark.sparkContext._jsc.sc().statusStore()  # type: ignore[union-attr]
    executors = store.executorList(False)
    return sum(int(executors.apply(at).totalShuffleWrite()) for at in range(executors.size()))


def seconds(action: Callable[[], Any]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def consume(frame: DataFrame) -> None:
    """Compute every row of a frame and throw it away."""
    frame.write.format("noop").mode("overwrite").save()


def paired(base: Callable[[], Any], others: dict[str, Callable[[], Any]], rounds: int = 3) -> dict[str, Any]:
    """Base and others in turn, round after round, so that a machine whose speed drifts is fair to all.

    Returns the medians in seconds, and for each of the others the median of its ratios to the base of the same round.
    """
    base()
    for action in others.values():
        action()
    times: dict[str, list[float]] = {"base": [], **{name: [] for name in others}}
    for _ in range(rounds):
        times["base"].append(seconds(base))
        for name, action in others.items():
            times[name].append(seconds(action))
    ratios = {n: statistics.median(t / b for t, b in zip(times[n], times["base"], strict=True)) for n in others}
    return {"seconds": {n: round(statistics.median(t), 2) for n, t in times.items()}, "ratios": ratios}


def report(benchmark: str, value: Any, budget: Any, within: bool, **more: Any) -> dict[str, Any]:
    """Print the benchmark's one JSON line, last on standard output."""
    line = {"benchmark": benchmark, "value": value, "budget": budget, "within": within, **more}
    print(json.dumps(line), flush=True)
    return line
