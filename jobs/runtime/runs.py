"""Run records: an intent before the work, one row per job and run after it.

The intent pins the versions of the inputs, so that a run that was killed and is started again reads what it read the
first time. When the job ends, its row is replaced, in one commit: there is never a second row for a run.
"""

from __future__ import annotations

import datetime
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.errors import SettingsError
from jobs.runtime.failures import conflict_of, translate
from jobs.runtime.tables import (
    TableRef,
    check_version,
    ensure_table,
    is_missing,
    latest_version,
    retry_conflicts,
    sql_string,
)
from schemas.tables import RUNS

RUN_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.:+\-]{0,127}"


@dataclass(frozen=True)
class Count:
    """Documents, tokens and bytes of one source with one outcome (``in``, ``kept``, ``dropped``, ``quarantined`` ...)."""

    source: str
    outcome: str
    reason: str
    documents: int
    tokens: int | None = None
    bytes: int | None = None


@dataclass
class RunRecord:
    """One row of ``runs``. Field for field the contract's columns; see there for their meaning."""

    run_id: str
    job: str
    step: str
    policy: str
    status: str
    code_version: str
    settings: str
    settings_sha256: str
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)
    documents_in: int | None = None
    documents_kept: int | None = None
    documents_dropped: int | None = None
    documents_quarantined: int | None = None
    digest: str | None = None
    notes: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None
    bytes: int | None = None
    cores: int | None = None
    documents_per_core_second: float | None = None
    gb_per_core_hour: float | None = None
    started_at: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(datetime.UTC))
    finished_at: datetime.datetime | None = None
    error: str | None = None
    exit_code: int | None = None

    def take(self, counts: Sequence[Count]) -> None:
        """Store counts and the totals that follow from them."""
        self.counts = [asdict(count) for count in sorted(counts, key=lambda c: (c.source, c.outcome, c.reason))]
        for outcome, name in (
            ("in", "documents_in"),
            ("kept", "documents_kept"),
            ("dropped", "documents_dropped"),
            ("quarantined", "documents_quarantined"),
        ):
            setattr(self, name, sum(c.documents for c in counts if c.outcome == outcome))
        known = [c.bytes for c in counts if c.outcome == "in" and c.bytes is not None]
        self.bytes = sum(known) if known else None

    def finish(self, status: str, exit_code: int, error: str | None = None) -> None:
        """Close the record: seconds and rates from its own start."""
        self.status, self.exit_code, self.error = status, exit_code, error
        self.finished_at = datetime.datetime.now(datetime.UTC)
        self.seconds = round((self.finished_at - self.started_at).total_seconds(), 3)
        if self.cores and self.seconds > 0:
            if self.documents_in:
                self.documents_per_core_second = self.documents_in / self.seconds / self.cores
            if self.bytes:
                self.gb_per_core_hour = self.bytes / 1e9 / (self.seconds / 3600) / self.cores


def new_run_id() -> str:
    """A run id for people who give none: UTC time and a few random digits (no result depends on it)."""
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def check_run_id(run_id: str) -> str:
    """The run id, if it can be one.

    Raises:
        SettingsError: naming what is allowed. A scheduler's template that was not filled in (``{{...}}``) is one.
    """
    if not re.fullmatch(RUN_ID_PATTERN, run_id):
        raise SettingsError(
            f"run id '{run_id}' can't be used: 1 to 128 letters, digits and _ . : + -, starting with a letter or digit"
            + ("; it looks like a scheduler's template that was not filled in" if "{{" in run_id else "")
        )
    return run_id


class RunTable:
    """The ``runs`` table of a warehouse."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self.spark = spark
        self.ref = TableRef.in_warehouse(warehouse, RUNS.name)
        self._exists = False

    def exists(self) -> bool:
        """Whether any run was ever recorded here."""
        self._exists = self._exists or latest_version(self.spark, self.ref) is not None
        return self._exists

    def frame(self) -> DataFrame:
        """All records."""
        reader = self.spark.read.format("delta")
        return reader.table(self.ref.address) if self.ref.is_name else reader.load(self.ref.address)

    def find(self, run_id: str, job: str, step: str) -> RunRecord | None:
        """The record of a run, if there is one."""
        try:
            row = self.frame().where(self._is(run_id, job, step)).first()
        except PySparkException as error:
            if not is_missing(error):
                raise translate(error, f"reading table 'runs' ({self.ref.address})") from None
            return None
        self._exists = True
        return None if row is None else _record(row)

    def latest_done(self, job: str, step: str, policy: str) -> RunRecord | None:
        """The newest finished run of a job's step under a policy."""
        if not self.exists():
            return None
        row = (
            self.frame()
            .where(
                (F.col("job") == job)
                & (F.col("step") == step)
                & (F.col("policy") == policy)
                & (F.col("status") == "done")
            )
            .orderBy(F.col("finished_at").desc(), F.col("run_id"))
            .first()
        )
        return None if row is None else _record(row)

    def done(self, job: str) -> list[tuple[str, dict[str, int]]]:
        """Settings (JSON) and input versions of all finished runs of a job."""
        if not self.exists():
            return []
        rows = (
            self.frame()
            .where((F.col("job") == job) & (F.col("status") == "done"))
            .select("settings", "inputs")
            .collect()
        )
        return [(str(row[0]), {str(i["name"]): int(i["version"]) for i in row[1]}) for row in rows]

    def begin(self, record: RunRecord) -> None:
        """Write the intent. The same run started twice at once leaves one row."""
        if self._exists:
            check_version(self.spark, RUNS.name, self.ref, RUNS)
        else:
            ensure_table(self.spark, RUNS.name, self.ref, RUNS)
            self._exists = True
        key = f"intent/{record.run_id}/{record.job}/{record.step}"

        def append() -> None:
            writer = self._rows(record).write.format("delta").mode("append")
            writer = writer.option("txnAppId", key).option("txnVersion", "1")
            self._save(writer, key)

        try:
            retry_conflicts(append, "recording the start of the run")
        except Exception as error:
            if conflict_of(error) is None:
                raise

    def replace(self, record: RunRecord) -> None:
        """Replace the run's row, in one commit."""
        condition = " AND ".join(
            f"{name} = {sql_string(value)}"
            for name, value in (("run_id", record.run_id), ("job", record.job), ("step", record.step))
        )

        def overwrite() -> None:
            writer = self._rows(record).write.format("delta").mode("overwrite").option("replaceWhere", condition)
            self._save(writer, f"record/{record.run_id}/{record.job}/{record.step}/{record.status}")

        retry_conflicts(overwrite, "recording the run", attempts=12)

    def _save(self, writer: Any, key: str) -> None:
        writer = writer.option("userMetadata", json.dumps({"transaction": key}))
        try:
            if self.ref.is_name:
                writer.saveAsTable(self.ref.address)
            else:
                writer.save(self.ref.address)
        except Exception as error:
            if conflict_of(error) is not None:
                raise  # retried by the caller
            raise translate(error, f"writing table 'runs' ({self.ref.address})") from None

    def _rows(self, record: RunRecord) -> DataFrame:
        values = [getattr(record, name) for name in RUNS.column_names]
        return self.spark.createDataFrame([tuple(values)], RUNS.struct_type()).coalesce(1)

    @staticmethod
    def _is(run_id: str, job: str, step: str) -> Any:
        return (F.col("run_id") == run_id) & (F.col("job") == job) & (F.col("step") == step)


def _record(row: Row) -> RunRecord:
    values: Mapping[str, Any] = row.asDict(recursive=True)
    times = {name: _utc(values[name]) for name in ("started_at", "finished_at")}
    return RunRecord(**{name: times.get(name, values[name]) for name in RUNS.column_names})


def _utc(stamp: datetime.datetime | None) -> datetime.datetime | None:
    """Spark hands out naive local times; make them comparable again."""
    return None if stamp is None else stamp.astimezone(datetime.UTC)
