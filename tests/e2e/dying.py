"""Run a pipeline and kill this very driver, Python and JVM, at a point: ``dying.py SETTINGS RUN_ID JOB POINT [FIRST]``.

FIRST: the job to begin with, where those before it are done (a driver's start is dear, and so is asking them all).

POINT ``record``: between the job's last commit and its run record. Any other word is a table's name, ``scratch`` or
``scratch/NAME``: in the middle of the write to it, when some of its data files are complete and nothing is committed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TASKS = 4


def main(file: str, run_id: str, job_name: str, point: str, first: str = "") -> None:
    from pyspark import SparkContext
    from pyspark.sql import DataFrameWriter

    from jobs.registry import pipeline
    from jobs.runtime.cli import load_settings
    from jobs.runtime.job import run_job
    from jobs.runtime.session import get_session

    settings = load_settings([file], []).settings
    spark = get_session(settings.spark)
    gateway: Any = SparkContext._gateway
    victims = (gateway.proc.pid, os.getpid())

    def die() -> None:
        for victim in victims:
            os.kill(victim, signal.SIGKILL)

    def noting(name: str) -> Callable[..., Any]:
        real = getattr(DataFrameWriter, name)

        def note(self: Any, *arguments: Any) -> Any:
            self.__dict__.setdefault("_calls", []).append((real, arguments))
            return real(self, *arguments)

        return note

    save = DataFrameWriter.save

    def save_and_die(self: Any, path: str) -> None:
        names = Path(path).parts
        where, _, stage = point.partition("/")
        if where != names[-1] and not (where == "scratch" and "scratch" in names and stage in ("", names[-1])):
            save(self, path)
            return
        before = data_files(path)

        def last_task_kills(batches: Iterator[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            task = TaskContext.get()
            yield from batches
            if task is not None and task.partitionId() == TASKS - 1:
                while not data_files(path) - before:
                    time.sleep(0.01)
                die()
                time.sleep(5)

        writer = self._df.repartition(TASKS).mapInArrow(last_task_kills, self._df.schema).write
        for method, arguments in self._calls:
            method(writer, *arguments)
        save(writer, path)

    def aim() -> None:
        for name in ("format", "mode", "option"):
            setattr(DataFrameWriter, name, noting(name))
        DataFrameWriter.save = save_and_die  # type: ignore[method-assign, assignment]

    jobs = list(pipeline(settings))
    names = [job.name for job, _ in jobs]
    for job, step in jobs[names.index(first) if first else 0 :]:
        mine = job.name == job_name
        if mine and point != "record":
            aim()
        run_job(
            spark, job, settings, run_id, step, quiet=True, before_finish=die if mine and point == "record" else None
        )


def data_files(folder: str) -> set[str]:
    """Complete Parquet files in a folder: they end in the format's mark."""
    found = set()
    for file in Path(folder).rglob("*.parquet"):
        content = file.read_bytes()
        if len(content) > 8 and content[-4:] == b"PAR1" and "_delta_log" not in file.parts:
            found.add(str(file))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
