"""Real processes of the command line, and tables read without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

HOME = Path(__file__).parents[2]
CASES = HOME / "tests" / "cases"
SMALL_SPARK = {
    "master": "local[2]",
    "driver_memory": "1g",
    # These processes live for seconds: generating each query's code costs more than it saves (a fifth of the time).
    "conf": {
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
}
QUICK_JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""Nor does it pay to compile Java's code well: that takes more processor time than the pipeline does."""

SECONDS = 600


@dataclass(frozen=True)
class Done:
    """A process that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """The last line on standard output."""
        found: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return found

    @property
    def last_line(self) -> str:
        """The last line on standard error."""
        return self.stderr.rstrip().splitlines()[-1]

    def expect(self, code: int) -> Done:
        """Itself, if it ended with the exit code; Python's traceback is no way to tell a user anything."""
        assert self.code == code, f"exit code {self.code}\n{self.stdout[-1500:]}\n{self.stderr[-3000:]}"
        assert "Traceback (most recent call last)" not in self.stderr
        return self


def start(
    arguments: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """A process of this Python; it finds the package, and no settings of whoever runs the tests."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "SPARK_", "PYSPARK_"))}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd or HOME,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, **QUICK_JAVA, "PYTHONPATH": str(HOME), **(environment or {})},
    )


def finish(process: subprocess.Popen[str], seconds: float = SECONDS) -> Done:
    """Wait for a process; one that takes too long is ended."""
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        raise AssertionError(f"still running after {seconds} s:\n{stdout[-1500:]}\n{stderr[-3000:]}") from None
    return Done(process.returncode, stdout, stderr)


def weir(*arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> Done:
    """``weir`` with these arguments."""
    return finish(start(["-m", "jobs.runtime.cli", *map(str, arguments)], cwd, environment))


def script(name: str, *arguments: str | Path) -> Done:
    """One of the driver scripts that lie beside this file."""
    return finish(start([str(Path(__file__).with_name(name)), *map(str, arguments)]))


def write_settings(file: Path, values: Mapping[str, Any]) -> Path:
    """A settings file, with a small Spark session unless it names one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"spark": SMALL_SPARK, **values}), encoding="utf-8")
    return file


def write_lines(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A JSONL file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def rows_of(warehouse: Path, table: str, *columns: str) -> list[dict[str, Any]]:
    """A table's rows, read by another Delta reader than Spark."""
    frame = DeltaTable(str(warehouse / table)).to_pyarrow_table(columns=list(columns) or None)
    found: list[dict[str, Any]] = frame.to_pylist()
    return found


def is_table(folder: Path) -> bool:
    """Whether anything was ever committed there."""
    return any((folder / "_delta_log").glob("0*.json"))


def versions(warehouse: Path) -> dict[str, int]:
    """Every table of a warehouse with its version."""
    folders = sorted(folder for folder in warehouse.iterdir() if is_table(folder))
    return {folder.name: DeltaTable(str(folder)).version() for folder in folders}


def transactions(warehouse: Path, table: str) -> list[str]:
    """The transaction keys of a table's data commits, oldest first."""
    found = []
    for commit in reversed(DeltaTable(str(warehouse / table)).history()):
        if commit.get("userMetadata"):
            found.append(str(json.loads(commit["userMetadata"])["transaction"]))
    return found


def digests(warehouse: Path, run_id: str | None = None) -> dict[tuple[str, str], str | None]:
    """The content digest that each job and step recorded."""
    records = rows_of(warehouse, "runs", "run_id", "job", "step", "digest")
    return {(r["job"], r["step"]): r["digest"] for r in records if run_id in (None, r["run_id"])}
