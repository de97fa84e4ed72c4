"""quality_filter: named rules over annotations and documents columns decide which documents stay.

Tables: reads ``documents``, ``annotations*``, ``decisions``; writes its slices of ``decisions``, of ``draws`` (rules with
a probability) and of ``audit_samples`` (documents for people to read).

A rule says what to keep: by an SQL condition (``statistics.words >= 20``), as the best share of each stratum, or with a
probability. NULL and NaN have outcomes of their own: Spark sorts NaN above every number, so a bare ``>=`` would keep it.

Deterministic: each decision depends on the values of the candidates alone; draws are by hash.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.deciding.annotated import names_in
from jobs.deciding.step import Candidates, candidates_of, decisions_of, slice_of, stamped, step_inputs, store_decisions
from jobs.quality.judging import judged
from jobs.quality.sampling import audit_sample
from jobs.quality.settings import QualityFilterSettings, Rule
from jobs.runtime.job import Context, Job, Outcome
from schemas.tables import AUDIT_SAMPLES, DRAWS

if TYPE_CHECKING:
    from jobs.settings import Settings

__all__ = ["JOB", "QualityFilterSettings", "Rule", "quality_decisions"]


def quality_decisions(
    candidates: DataFrame, rules: Sequence[Rule], *, step: str = "quality_filter", seed: int = 0
) -> DataFrame:
    """Decisions about the documents that fail a rule, with all failing rules and the values they failed with.

    Args:
        candidates: ``doc_id``, ``source``, ``batch`` and whatever the rules name.
        rules: In order; the first that fails gives the reason.
        step: Name of the step, which draws go by.
        seed: Of draws.

    Raises:
        SettingsError: for SQL that can't be used, see ``check_conditions``.
    """
    return decisions_from(judged(candidates, rules, step=step, seed=seed))


def decisions_from(outcomes: DataFrame) -> DataFrame:
    """Decisions from judged documents."""
    dropped = outcomes.where(F.col("#reason").isNotNull())
    return decisions_of(dropped, reason=F.col("#reason"), method="rule", failing=F.col("#failing"))


def candidates_for(candidates: Candidates, settings: Settings, rules: Sequence[Rule]) -> DataFrame:
    """The candidates with the annotations that the rules name."""
    needed = annotators_of(settings, rules)
    return candidates.annotated(needed) if needed else candidates.documents


def annotators_of(settings: Settings, rules: Sequence[Rule]) -> list[str]:
    """Names of the annotators that rules name."""
    named = {name for rule in rules for text in rule.expressions for name in names_in(text)}
    named |= {"tokens" for rule in rules if rule.unit == "tokens"}
    return sorted(named & set(settings.annotator_identities()))


def run(context: Context) -> Outcome:
    """Decide for the step that the context names."""
    step: QualityFilterSettings = context.settings.step(context.step)
    rules, seed = step.all_rules, context.settings.seed
    candidates = candidates_of(context)
    found = judged(
        candidates_for(candidates, context.settings, rules),
        rules,
        step=step.name,
        seed=seed,
        store=context.scratch.materialize,
    ).select("doc_id", "source", "batch", "#reason", "#failing", "#drawn")
    random = any(rule.keep_probability is not None for rule in rules)
    # What is read once need not be stored.
    outcomes = context.scratch.materialize(found, "judged") if random or step.audit else found
    done = store_decisions(context, candidates, decisions_from(outcomes))
    mine = slice_of(context)
    if random:
        rows = outcomes.select("doc_id", "source", "batch", F.explode("#drawn").alias("drawn"))
        rows = stamped(context, rows.select("doc_id", "source", "batch", "drawn.*"))
        with context.progress.stage("storing draws"):
            context.write(rows.select(*DRAWS.column_names), "draws", replace_where=mine)
    if step.audit:
        sample = stamped(context, audit_sample(outcomes, step.audit, step=step.name, seed=seed))
        with context.progress.stage("drawing documents to read"):
            context.write(sample.select(*AUDIT_SAMPLES.column_names), "audit_samples", replace_where=mine)
    return done


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    own: QualityFilterSettings = settings.step(step)
    needed = annotators_of(settings, own.all_rules)
    random = any(rule.keep is None for rule in own.all_rules) or own.audit
    return {
        "decide": own.model_dump(mode="json"),
        "rules": [rule.limit for rule in own.all_rules],  # a preset is another one if its numbers change
        "before": settings.steps_before(step),
        "annotators": {name: settings.annotator_identities()[name] for name in needed},
        **({"seed": settings.seed} if random else {}),
    }


JOB = Job(
    name="quality-filter",
    summary="decide: rules over annotations",
    inputs=step_inputs,
    depends_on=_depends_on,
    run=run,
    steps=lambda settings: settings.steps_of("quality_filter"),
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("quality-filter"))
