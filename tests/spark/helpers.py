"""Run jobs on small inputs and look at what they wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jobs.registry import JOBS, pipeline
from jobs.runtime.job import Result, run_job
from jobs.runtime.tables import Pinned, TableRef, latest_version
from jobs.settings import Settings

CASES = Path(__file__).parents[1] / "cases"


def lay_out(folder: Path, rows: Iterable[Mapping[str, Any] | bytes | str], name: str = "part-0000.jsonl") -> Path:
    """Write rows as JSON lines (bytes and strings as they are); returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for row in rows:
        lines.append(row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row)).encode())
    (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
    return folder


def case_rows(case: str) -> list[dict[str, Any]]:
    """A case's input with its recipes carried out."""
    rows = []
    for line in (CASES / f"{case}.jsonl").read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        row = json.loads(line)
        if row.get("recipe") == "repeat":
            row = {"id": row["id"], "source": row.get("source", "s1"), "text": row["unit"] * row["times"]}
        rows.append(row)
    return rows


def expected(case: str) -> dict[str, Any]:
    """What a case says must come out."""
    found: dict[str, Any] = json.loads((CASES / f"{case}.expected.json").read_text(encoding="utf-8"))["expected"]
    return found


def table(spark: SparkSession, settings: Settings, name: str) -> DataFrame:
    """A table of the warehouse at its newest version."""
    ref = TableRef.in_warehouse(settings.warehouse, name)
    return Pinned(name, ref, version_of(spark, settings, name)).read(spark)


def version_of(spark: SparkSession, settings: Settings, name: str) -> int:
    """The newest version of a table."""
    version = latest_version(spark, TableRef.in_warehouse(settings.warehouse, name))
    assert version is not None, f"table {name} does not exist"
    return version


def run(spark: SparkSession, settings: Settings, job: str, run_id: str = "r1", step: str = "") -> Result:
    """One job."""
    return run_job(spark, JOBS[job], settings, run_id, step, quiet=True)


def run_until(spark: SparkSession, settings: Settings, last: str, run_id: str = "r1") -> list[Result]:
    """The pipeline up to a job or step."""
    results = []
    for job, step in pipeline(settings):
        results.append(run_job(spark, job, settings, run_id, step, quiet=True))
        if last in (job.name, step):
            return results
    raise AssertionError(f"the pipeline has no {last}")


def ids(frame: DataFrame) -> list[str]:
    """Sorted ids."""
    return sorted(str(row[0]) for row in frame.select("doc_id").collect())


def settings_in(home: Path, **values: Any) -> Settings:
    """Settings with a warehouse under a folder."""
    from jobs.runtime.layers import Layer, resolve

    return resolve(Settings, [Layer("test", {"warehouse": str(home / "warehouse"), **values})]).settings


def read_files(
    spark: SparkSession, paths: Path | list[Path], source: str = "s", **given: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Documents and rejects that one source's files give, in the order of files and lines; nothing is stored.

    As in the job, it is checked that every file was read, once.
    """
    from pyspark.sql import functions as F

    from jobs.ingest import read_source
    from jobs.ingesting.checking import check_reading
    from jobs.ingesting.files import list_files
    from jobs.ingesting.reading import numbered
    from jobs.ingesting.settings import IngestSettings

    places = [str(path) for path in (paths if isinstance(paths, list) else [paths])]
    settings = IngestSettings(paths=places, **given)
    listing = list_files(spark, settings.paths, settings.format, settings.pattern)
    raw = read_source(spark, listing, source, settings).withColumn("entry", F.lit(source))
    if settings.format != "parquet":
        check_reading(raw, {source: (settings.format, listing.must_be_seen(settings.format, True))})
    rows = [row.asDict(recursive=True) for row in numbered(raw)[0].orderBy("file", "record").collect()]
    return [row for row in rows if row["reason"] is None], [row for row in rows if row["reason"] is not None]
