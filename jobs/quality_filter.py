"""quality_filter: named rules over annotations and documents columns decide which documents stay.

Tables: reads ``documents``, ``annotations*``, ``decisions``; writes its slice of ``decisions``.

A rule says what to keep, as an SQL condition (``statistics.words >= 20``). NULL and NaN have outcomes of their own:
Spark sorts NaN above every number, so a bare ``>=`` would keep it.

Deterministic: each decision depends on the document's own values.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.deciding.annotated import evidence, fields_in, float_fields, names_in
from jobs.deciding.conditions import check_conditions
from jobs.deciding.step import FAILING, Candidates, decide, decisions_of, step_inputs
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import NAME, SettingsModel

if TYPE_CHECKING:
    from jobs.settings import Settings


class Rule(SettingsModel):
    """One rule: what to keep, and what becomes of documents for which that can't be said."""

    name: str = Field(pattern=NAME, description="Name of the rule; it is the reason in `decisions`")
    keep: str = Field(min_length=1, description="SQL condition over annotations and documents columns")
    on_null: Literal["drop", "keep"] = Field(
        "drop", description="When the condition is NULL: drop as NAME_null, or keep"
    )
    on_nan: Literal["drop", "keep"] = Field(
        "drop", description="When a value it names is NaN: drop as NAME_nan, or keep"
    )


class QualityFilterSettings(SettingsModel):
    """Settings of one quality_filter step."""

    kind: Literal["quality_filter"] = Field("quality_filter", description="Which decider")
    name: str = Field("quality_filter", pattern=NAME, description="Name of the step")
    rules: list[Rule] = Field(
        min_length=1, description="Rules, in the order in which a document's reason is looked for"
    )

    @field_validator("rules")
    @classmethod
    def _unique(cls, rules: list[Rule]) -> list[Rule]:
        names = [rule.name for rule in rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"rule name(s) used twice: {', '.join(twice)}")
        return rules


def quality_decisions(candidates: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Decisions about the documents that fail a rule, with all failing rules and the values they failed with.

    Args:
        candidates: ``doc_id``, ``source``, ``batch`` and whatever the rules name.
        rules: In order; the first that fails gives the reason.

    Raises:
        SettingsError: for conditions that can't be used, see ``check_conditions``.
    """
    check_conditions(candidates, [(f"rule '{rule.name}'", rule.keep) for rule in rules])
    fails: list[Column] = []
    reasons: list[Column] = []
    for rule in rules:
        condition = F.expr(rule.keep)
        floats = float_fields(candidates, rule.keep)
        nan = F.lit(False)
        for path in floats:
            nan = nan | F.coalesce(F.isnan(F.col(path)), F.lit(False))
        reason = (
            F.when(nan, F.lit(f"{rule.name}_nan") if rule.on_nan == "drop" else F.lit(None))
            .when(condition.isNull(), F.lit(f"{rule.name}_null") if rule.on_null == "drop" else F.lit(None))
            .when(~condition, F.lit(rule.name))
        )
        reasons.append(reason)
        entry = F.struct(
            reason.alias("rule"),
            evidence(candidates, fields_in(candidates, rule.keep)).alias("value"),
            F.lit(rule.keep).alias("limit"),
        )
        fails.append(F.when(reason.isNotNull(), entry))
    judged = candidates.withColumns(
        {
            "#reason": F.coalesce(*reasons, F.lit(None).cast("string")),
            "#failing": F.array_compact(F.array(*fails)).cast(FAILING),
        }
    )
    return decisions_of(
        judged.where(F.col("#reason").isNotNull()), reason=F.col("#reason"), method="rule", failing=F.col("#failing")
    )


def _annotators(settings: Settings, rules: Sequence[Rule]) -> list[str]:
    named = {name for rule in rules for name in names_in(rule.keep)}
    return sorted(named & set(settings.annotator_identities()))


def run(context: Context) -> Outcome:
    """Decide for the step that the context names."""
    step: QualityFilterSettings = context.settings.step(context.step)

    def decider(candidates: Candidates) -> DataFrame:
        needed = _annotators(context.settings, step.rules)
        return quality_decisions(candidates.annotated(needed) if needed else candidates.documents, step.rules)

    return decide(context, decider)


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    own: QualityFilterSettings = settings.step(step)
    needed = _annotators(settings, own.rules)
    return {
        "decide": own.model_dump(mode="json"),
        "before": settings.steps_before(step),
        "annotators": {name: settings.annotator_identities()[name] for name in needed},
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
