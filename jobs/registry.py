"""All jobs, in the order in which a pipeline runs them, and those outside of it. A new one is a module of its own and one line here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobs import annotate, eligibility, exact_dedup, ingest, near_dedup, quality_filter, train_classifier, validate
from jobs import select as selection
from jobs.runtime.job import Job

if TYPE_CHECKING:
    from jobs.settings import Settings

BEFORE_DECIDING = (ingest.JOB, annotate.JOB)
DECIDERS: dict[str, Job] = {
    "eligibility": eligibility.JOB,
    "quality_filter": quality_filter.JOB,
    "exact_dedup": exact_dedup.JOB,
    "near_dedup": near_dedup.JOB,
}
AFTER_DECIDING = (selection.JOB, validate.JOB)
OUTSIDE = (train_classifier.JOB,)
"""What a run leaves out: a model is trained when somebody asks for it."""
JOBS: dict[str, Job] = {job.name: job for job in (*BEFORE_DECIDING, *DECIDERS.values(), *AFTER_DECIDING, *OUTSIDE)}


def job_of_step(settings: Settings, step: str) -> Job:
    """The job that decides a step of the settings."""
    return DECIDERS[settings.step(step).kind]


def pipeline(settings: Settings) -> Iterator[tuple[Job, str]]:
    """Jobs and steps of a whole run, in order."""
    for job in BEFORE_DECIDING:
        yield job, ""
    for step in settings.decide:
        yield DECIDERS[step.kind], step.name
    for job in AFTER_DECIDING:
        yield job, ""
