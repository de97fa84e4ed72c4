"""A job: what it is called, what it reads, and how it is run, recorded, resumed and checked.

``run_job`` is the only way in, whether from the command line, spark-submit, a notebook or a scheduler.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession

from jobs import __version__
from jobs.runtime import session as sessions
from jobs.runtime.digest import content_digest
from jobs.runtime.errors import ReconciliationError, RetryLater, RunRefused, WeirError
from jobs.runtime.failures import reason_of, translate
from jobs.runtime.inputs import Input, pinned_before, pinned_now
from jobs.runtime.layers import canonical_json, fingerprint
from jobs.runtime.progress import Progress
from jobs.runtime.runs import Count, RunRecord, RunTable, check_run_id
from jobs.runtime.scratch import Scratch
from jobs.runtime.tables import Pinned, TableRef, Written, ensure_table, list_tables, write_table
from schemas.contract import Column, Contract
from schemas.tables import contract_of

if TYPE_CHECKING:
    from jobs.settings import Settings

ATTEMPT = "attempt"
"""The note of a record that has not ended: which process works on it."""


@dataclass(frozen=True)
class Job:
    """The declaration of a job, as the registry lists it.

    Attributes:
        name: As on the command line (``exact-dedup``) and, with underscores, in ``runs``.
        summary: One line for ``weir --help``.
        inputs: Which tables it reads, by settings, step and the names of the annotation tables that exist.
        depends_on: The settings that its result depends on; their hash guards a repeated run id.
        run: Does the work on a context and returns what it counted.
        steps: The names of the job's steps in the settings (decide steps); one empty name for other jobs.
    """

    name: str
    summary: str
    inputs: Callable[[Settings, str, Sequence[str]], Sequence[Input]]
    depends_on: Callable[[Settings, str], Mapping[str, Any]]
    run: Callable[[Context], Outcome]
    steps: Callable[[Settings], Sequence[str]] = field(default=lambda settings: ("",))

    @property
    def record_name(self) -> str:
        """The job's name in ``runs``."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Outcome:
    """What a job reports: counts (with one ``in`` per source), a digest of its output, and remarks."""

    counts: Sequence[Count]
    digest: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    blocked: str | None = None
    """Why a gate failed; the run is recorded as done, then the process exits 3."""


@dataclass(frozen=True)
class Result:
    """What the caller of ``run_job`` gets."""

    record: RunRecord
    already_done: bool = False
    blocked: str | None = None


@dataclass
class Context:
    """What a running job works with."""

    spark: SparkSession
    settings: Settings
    job: Job
    step: str
    run_id: str
    transaction: str
    inputs: dict[str, Pinned]
    scratch: Scratch
    progress: Progress
    runs: RunTable
    outputs: list[Written] = field(default_factory=list)
    ensured: set[str] = field(default_factory=set)
    repin: Callable[[], None] = field(default=lambda: None)

    def ref(self, table: str) -> TableRef:
        """The address of a table of the warehouse."""
        return TableRef.in_warehouse(self.settings.warehouse, table)

    def has(self, table: str) -> bool:
        """Whether an optional input exists."""
        return table in self.inputs

    def read(self, table: str) -> DataFrame:
        """An input at its pinned version."""
        return self.inputs[table].read(self.spark)

    def version(self, table: str) -> int:
        """The pinned version of an input."""
        return self.inputs[table].version

    def ensure(self, table: str, extra: tuple[Column, ...] = (), properties: dict[str, str] | None = None) -> None:
        """Create an output table if it is missing."""
        if table not in self.ensured:
            ensure_table(self.spark, table, self.ref(table), contract_of(table), extra, properties)
            self.ensured.add(table)

    def write(self, frame: DataFrame, table: str, replace_where: str | None = None) -> Written:
        """Write to an output table, once per run id; says so where an earlier attempt had done it."""
        contract: Contract = contract_of(table)
        self.ensure(table)
        written = write_table(
            self.spark,
            frame,
            table,
            self.ref(table),
            contract,
            transaction=self.transaction,
            ordinal=len(self.outputs) + 1,
            metadata=self.facts(),
            replace_where=replace_where,
        )
        self.wrote(written)
        return written

    def wrote(self, written: Written) -> None:
        """Note an output; ``write`` does so by itself."""
        self.outputs.append(written)
        if written.skipped:
            self.progress.say(
                f"{written.name}: already committed by run {self.run_id} (version {written.version}); not written again"
            )

    def facts(self) -> dict[str, object]:
        """What every commit says of the run that made it."""
        return {
            "suite": "corpus-weir",
            "version": __version__,
            "job": self.job.record_name,
            "step": self.step,
            "run_id": self.run_id,
            "inputs": {name: pinned.version for name, pinned in self.inputs.items()},
        }

    def digest(self, frame: DataFrame, key: str, *others: SparkColumn) -> str:
        """A digest of an output's rows that doesn't depend on their layout."""
        with self.progress.stage("taking the digest"):
            return content_digest(frame, key, *others)


def run_job(
    spark: SparkSession,
    job: Job,
    settings: Settings,
    run_id: str,
    step: str = "",
    *,
    quiet: bool = False,
    before_finish: Callable[[], None] | None = None,
) -> Result:
    """Run a job once per run id.

    A finished run is not run again; a killed or failed one goes on with the inputs that it pinned.

    Args:
        spark: The session.
        job: The declaration.
        settings: All settings.
        run_id: Identity of the run: the same id, job and step never write twice.
        step: For decide jobs, the step's name.
        quiet: No progress on standard error.
        before_finish: Called between the last commit and the run record (tests kill the process there).

    Raises:
        RunRefused: if the run id was used with other settings.
        WeirError: whatever the job raises, after it was recorded.
    """
    check_run_id(run_id)
    dependencies = dependencies_of(job, settings, step)
    sha = fingerprint(dependencies)
    runs = RunTable(spark, settings.warehouse)
    progress = Progress(job.name if not step or step == job.record_name else f"{job.name} {step}", quiet)
    with sessions.configured(spark, _conf_for(settings)):
        record = runs.find(run_id, job.record_name, step)
        if record is not None and record.settings_sha256 != sha:
            raise RunRefused(
                f"run id '{run_id}' was used for {job.name} before with other settings "
                f"(sha-256 {record.settings_sha256[:12]}, now {sha[:12]}). Use a new run id, or the old settings: "
                f"weir runs --run-id {run_id} --settings"
            )
        if record is not None and record.status == "done":
            progress.say(f"run {run_id} is already done; nothing written")
            return Result(record, already_done=True)
        fresh = record is None
        if record is None:
            record = RunRecord(
                run_id,
                job.record_name,
                step,
                settings.policy,
                "started",
                __version__,
                canonical_json(dependencies),
                sha,
            )
        keep_pins = not fresh and (record.status == "started" or bool(record.outputs))
        inputs = pin_inputs(spark, job, settings, step, record.inputs if keep_pins else None)
        record.inputs = [{"name": name, "version": pinned.version} for name, pinned in inputs.items()]
        record.cores = sessions.session_cores(spark)
        attempt = secrets.token_hex(8)  # names no output and decides nothing but who cleans up
        record.status, record.error, record.notes = "started", None, {ATTEMPT: attempt}
        if fresh:
            runs.begin(record)
        else:
            runs.replace(record)
            progress.say(f"run {run_id} was started before and did not finish; going on with what it pinned")
        scratch = Scratch(
            spark,
            settings.warehouse,
            run_id,
            f"{job.record_name}-{step}",
            settings.spark.scratch,
            settings.spark.scratch_format,
            attempt,
        )
        if not fresh:
            scratch.clean()
        context = Context(
            spark,
            settings,
            job,
            step,
            run_id,
            f"weir/{job.record_name}/{step}/{run_id}/{sha[:16]}",
            inputs,
            scratch,
            progress,
            runs,
        )

        def repin() -> None:
            context.inputs.clear()
            context.inputs.update(pin_inputs(spark, job, settings, step, None))
            record.inputs = [{"name": name, "version": pinned.version} for name, pinned in context.inputs.items()]
            runs.replace(record)

        context.repin = repin
        start = time.monotonic()
        superseded = False
        try:
            outcome = job.run(context)
            reconcile(job.record_name, outcome.counts)
            if before_finish is not None:
                before_finish()
            if any(written.skipped for written in context.outputs):
                other = _other_attempt(runs, record, attempt)
                if other is not None and other.status == "done":
                    superseded = True
                    return Result(other, already_done=True)
            record.take(outcome.counts)
            record.outputs = [{"name": w.name, "version": w.version, "rows": w.rows} for w in context.outputs]
            record.digest, record.notes = outcome.digest, {k: str(v) for k, v in outcome.notes.items()}
            record.finish("done", 3 if outcome.blocked else 0, outcome.blocked)
            runs.replace(record)
            progress.say(_headline(record, time.monotonic() - start))
            return Result(record, blocked=outcome.blocked)
        except Exception as error:
            other = _other_attempt(runs, record, attempt)
            superseded = other is not None
            if other is not None and other.status == "done":
                progress.say(f"run {run_id} was finished by another process meanwhile")
                return Result(other, already_done=True)
            if other is not None:
                raise RetryLater(
                    f"{job.name}: run {run_id} was started by another process at the same time, which goes on with it. "
                    "Nothing is written twice; run it again with the same run id to see how it ended."
                ) from error
            ours = translate(error, f"job {job.name}")
            record.outputs = [{"name": w.name, "version": w.version, "rows": w.rows} for w in context.outputs]
            message = str(ours) if isinstance(ours, WeirError) else reason_of(ours)
            record.finish("failed", ours.exit_code if isinstance(ours, WeirError) else 1, message[:4000])
            runs.replace(record)
            if ours is error:
                raise
            raise ours from error
        finally:
            scratch.clean(only_own=superseded)


def _other_attempt(runs: RunTable, record: RunRecord, attempt: str) -> RunRecord | None:
    """The run's record if another process has taken the run over, or finished it, since this one began."""
    with contextlib.suppress(Exception):  # the error that led here is the one to report
        found = runs.find(record.run_id, record.job, record.step)
        if found is not None and found.notes.get(ATTEMPT) != attempt:
            return found
    return None


def dependencies_of(job: Job, settings: Settings, step: str) -> dict[str, Any]:
    """The settings that a job's result depends on; their hash is the run's ``settings_sha256``."""
    return {"policy": settings.policy, "seed": settings.seed, "step": step, **job.depends_on(settings, step)}


def reconcile(job: str, counts: Sequence[Count]) -> None:
    """Per source: documents in = kept + dropped + quarantined; tokens likewise where they are known.

    Raises:
        ReconciliationError: naming every source where it doesn't add up.
    """
    problems = []
    for source in sorted({count.source for count in counts}):
        mine = [count for count in counts if count.source == source]
        for unit in ("documents", "tokens"):
            values = [
                (c.outcome, getattr(c, unit)) for c in mine if c.outcome in ("in", "kept", "dropped", "quarantined")
            ]
            if any(value is None for _, value in values):
                continue
            came = sum(value for outcome, value in values if outcome == "in")
            went = sum(value for outcome, value in values if outcome != "in")
            if came != went:
                problems.append(f"source '{source}': {came:,} {unit} in, but {went:,} kept, dropped or quarantined")
    if problems:
        raise ReconciliationError(f"{job} does not add up:\n" + "\n".join(f"  - {p}" for p in problems))


def pin_inputs(
    spark: SparkSession, job: Job, settings: Settings, step: str, recorded: Sequence[Mapping[str, Any]] | None
) -> dict[str, Pinned]:
    """The job's inputs at the versions that a record lists, or at the newest ones."""
    if recorded is not None:
        return pinned_before(spark, settings.warehouse, job.inputs(settings, step, []), recorded)
    annotations = list_tables(spark, settings.warehouse, "annotations")
    return pinned_now(spark, settings.warehouse, job.inputs(settings, step, annotations))


def _conf_for(settings: Settings) -> dict[str, str]:
    return {
        **sessions.JOB_CONF,
        # The vectorised reader holds a batch of rows in the heap: 4,096 long texts would kill the JVM.
        "spark.sql.parquet.columnarReaderBatchSize": str(settings.spark.text_rows_per_batch),
    }


def _headline(record: RunRecord, seconds: float) -> str:
    parts = []
    if record.documents_in:
        parts.append(f"{record.documents_in:,} in")
        parts.append(f"{record.documents_kept or 0:,} kept")
        if record.documents_dropped:
            parts.append(f"{record.documents_dropped:,} dropped")
        if record.documents_quarantined:
            parts.append(f"{record.documents_quarantined:,} rejected")
    elif record.notes:
        parts.append(", ".join(f"{name}: {said}" for name, said in sorted(record.notes.items())))
    return ", ".join([*parts, f"{seconds:.1f} s"])
