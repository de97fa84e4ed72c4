"""Contexts to look with: a step's inputs as a run would read them, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from jobs.runtime.errors import InputContractError
from jobs.runtime.job import Context, Job, pin_inputs
from jobs.runtime.progress import Progress
from jobs.runtime.runs import RunTable
from jobs.runtime.scratch import Scratch

if TYPE_CHECKING:
    from jobs.settings import Settings


def looking_context(spark: SparkSession, settings: Settings, job: Job, step: str) -> Context:
    """A context on what a step's newest finished run read.

    Raises:
        InputContractError: if no run of the step has finished under this policy.
    """
    record = RunTable(spark, settings.warehouse).latest_done(job.record_name, step, settings.policy)
    if record is None:
        raise InputContractError(
            f"step '{step}' has not decided yet under policy '{settings.policy}'",
            remedy="Run it first: weir run, or weir " + job.name,
        )
    return _context(spark, settings, job, step, record.inputs)


def previewing_context(spark: SparkSession, settings: Settings, job: Job, step: str) -> Context:
    """A context on what a run of the step would read if it began now."""
    return _context(spark, settings, job, step, None)


def _context(
    spark: SparkSession, settings: Settings, job: Job, step: str, recorded: list[dict[str, object]] | None
) -> Context:
    inputs = pin_inputs(spark, job, settings, step, recorded)
    scratch = Scratch(spark, settings.warehouse, "", job.record_name)
    runs = RunTable(spark, settings.warehouse)
    return Context(spark, settings, job, step, "", "", inputs, scratch, Progress(job.name), runs)
