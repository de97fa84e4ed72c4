"""What each rule and each threshold of a quality_filter step would keep, on a sample, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.quality.judging import judged, share_of
from jobs.quality.settings import Rule
from jobs.quality.thresholds import Threshold, thresholds_of

ROWS = 9
"""Thresholds that are shown beside the present one: those that 10, 20 ... 90 % of the values meet."""

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Kept:
    """What is kept of a source (``(all)``: of all): documents and tokens of the sample, and what there were of them.

    ``tokens`` and ``of_tokens`` are None where tokens aren't counted.
    """

    source: str
    documents: int
    of_documents: int
    tokens: int | None
    of_tokens: int | None


@dataclass(frozen=True)
class RuleKept:
    """What one rule keeps by itself (one that ranks: of what the rules before it keep).

    ``only``: documents that no other rule drops. ``unknown``: documents whose value is NULL or NaN, and ``unknown_kept``
    how many of them the rule keeps.
    """

    rule: str
    limit: str
    kept: list[Kept]
    only: int
    unknown: int
    unknown_kept: int


@dataclass(frozen=True)
class Choice:
    """What the whole step would keep, were a threshold ``at`` this number; ``present``: it is the one in the settings."""

    at: float
    present: bool
    kept: list[Kept]


@dataclass(frozen=True)
class Choices:
    """One threshold: the value that is compared, how (``>=`` ..., or ``best share``), and what other numbers would do."""

    rule: str
    value: str
    operator: str
    choices: list[Choice]


@dataclass(frozen=True)
class Preview:
    """All that is shown of a step. Numbers are of the sample; ``scale`` times as many are estimated of the whole."""

    step: str
    candidates: int
    sampled: int
    all_rules: list[Kept]
    rules: list[RuleKept]
    thresholds: list[Choices]

    @property
    def scale(self) -> float:
        """Candidates for each document of the sample."""
        return self.candidates / self.sampled if self.sampled else 1.0


ALL = "(all)"


def preview(sample: DataFrame, rules: Sequence[Rule], *, step: str, seed: int, candidates: int) -> Preview:
    """Judge a sample and work out what other thresholds would do.

    The sample comes to the driver, a few numbers per document: it must be bounded by the caller. Its documents draw as they
    do in the step. A rule that ranks after the one whose threshold is moved is taken as it stands.

    Args:
        sample: ``doc_id``, ``source``, ``batch`` and whatever the rules name; tokens are ``tokens.count``, if there.
        rules: Of the step, in order.
        step: Name of the step.
        seed: Of draws.
        candidates: Documents that the sample was drawn from.

    Raises:
        SettingsError: for SQL that can't be used, see ``check_conditions``.
    """
    outcomes = judged(sample, rules, step=step, seed=seed)
    thresholds = [threshold for rule in rules for threshold in thresholds_of(rule)]
    ranking = [rule for rule in rules if rule.keep_best is not None]
    columns = _columns(outcomes, rules, thresholds, ranking)
    rows = outcomes.orderBy("doc_id").select(*[value.alias(name) for name, value in columns.items()]).toArrow()
    values = {name: rows.column(name) for name in rows.column_names}
    number = rows.num_rows
    sources = np.array(values["source"].to_pylist(), dtype=object)
    tokens = None
    if "tokens" in values:
        tokens = np.array([count or 0 for count in values["tokens"].to_pylist()], dtype=np.int64)
    passed = np.ones((len(rules), number), dtype=bool)
    reasons = values["reasons"].to_pylist()
    for place in range(len(rules)):
        passed[place] = [entry[place] is None for entry in reasons]
    counted = _Counted(sources, tokens)
    found = []
    for place, rule in enumerate(rules):
        others = _all(np.delete(passed, place, axis=0))
        unknown = _truth(values[f"unknown{place}"])
        found.append(
            RuleKept(rule.name, rule.limit, counted.kept(passed[place]), int((others & ~passed[place]).sum()),
                     int(unknown.sum()), int((unknown & passed[place]).sum()))
        )  # fmt: skip
    names = [rule.name for rule in rules]
    choices = []
    for place, threshold in enumerate(thresholds):
        mine = names.index(threshold.rule)
        others = _all(np.delete(passed, mine, axis=0))
        # Where the rule isn't for a document, or its outcome is unknown, no number changes anything.
        open_to = _truth(values[f"applies{mine}"]) & ~_truth(values[f"unknown{mine}"])
        choices.append(_choices(threshold, place, values, passed[mine], others, open_to, counted))
    for rule in ranking:
        mine = names.index(rule.name)
        others = _all(np.delete(passed, mine, axis=0))
        before = _all(passed[:mine])
        choices.append(_shares(rule, mine, values, passed[mine], others, before, counted))
    return Preview(step, candidates, number, counted.kept(_all(passed)), found, choices)


def _columns(
    outcomes: DataFrame, rules: Sequence[Rule], thresholds: Sequence[Threshold], ranking: Sequence[Rule]
) -> Mapping[str, Column]:
    columns: dict[str, Column] = {"source": F.col("source"), "reasons": F.col("#reasons")}
    if "tokens" in outcomes.columns:
        columns["tokens"] = F.col("tokens.count")
    for place, rule in enumerate(rules):
        columns[f"unknown{place}"] = F.element_at("#unknown", place + 1)
        columns[f"applies{place}"] = F.coalesce(F.expr(rule.where), F.lit(False)) if rule.where else F.lit(True)
    for place, threshold in enumerate(thresholds):
        columns[f"value{place}"] = F.expr(threshold.value).cast("double")
        columns[f"met{place}"] = F.coalesce(F.expr(threshold.if_met), F.lit(False))
        columns[f"missed{place}"] = F.coalesce(F.expr(threshold.if_missed), F.lit(False))
    for rule in ranking:
        place = list(rules).index(rule)
        columns[f"by{place}"] = F.expr(str(rule.by)).cast("double")
        strata = [F.expr(text).alias(text) for text in rule.per] or [F.lit("").alias("all")]
        columns[f"stratum{place}"] = F.to_json(F.struct(*strata), {"ignoreNullFields": "false"})
    return columns


@dataclass(frozen=True)
class _Counted:
    sources: npt.NDArray[np.object_]
    tokens: npt.NDArray[np.int64] | None

    def kept(self, kept: Mask) -> list[Kept]:
        """All, then each source by name."""
        places: list[tuple[str, Mask]] = [(ALL, np.ones(len(kept), dtype=bool))]
        places += [(str(name), self.sources == name) for name in sorted(set(self.sources.tolist()))]
        rows = []
        for name, inside in places:
            both = kept & inside
            tokens = None if self.tokens is None else int(self.tokens[both].sum())
            of_tokens = None if self.tokens is None else int(self.tokens[inside].sum())
            rows.append(Kept(name, int(both.sum()), int(inside.sum()), tokens, of_tokens))
        return rows


def _choices(
    threshold: Threshold,
    place: int,
    values: Mapping[str, Any],
    now: Mask,
    others: Mask,
    open_to: Mask,
    counted: _Counted,
) -> Choices:
    """Other numbers for a comparison: quantiles of the values of documents that the other rules keep."""
    value = _numbers(values[f"value{place}"])
    met, missed = _truth(values[f"met{place}"]), _truth(values[f"missed{place}"])
    inside = value[open_to & others & ~np.isnan(value)]
    upward = threshold.operator in (">=", ">")
    numbers = {threshold.number}
    if len(inside):
        shares = np.arange(1, ROWS + 1) / (ROWS + 1)
        numbers |= {float(q) for q in np.quantile(inside, 1 - shares if upward else shares, method="nearest")}
    rows = []
    for number in sorted(numbers, reverse=not upward):
        outcome = np.where(_compare(value, threshold.operator, number), met, missed)
        kept = others & np.where(open_to, outcome, now)
        rows.append(Choice(number, number == threshold.number, counted.kept(kept)))
    return Choices(threshold.rule, threshold.value, threshold.operator, rows)


def _shares(
    rule: Rule, place: int, values: Mapping[str, Any], now: Mask, others: Mask, before: Mask, counted: _Counted
) -> Choices:
    """Other shares for a rule that keeps the best."""
    value = _numbers(values[f"by{place}"])
    ranked = before & _truth(values[f"applies{place}"]) & ~_truth(values[f"unknown{place}"])
    strata = np.array(values[f"stratum{place}"].to_pylist(), dtype=object)
    in_tokens = rule.unit == "tokens" and counted.tokens is not None
    present = float(rule.keep_best or 0)
    rows = []
    for share in sorted({present, *(round(n / (ROWS + 1), 3) for n in range(1, ROWS + 1))}, reverse=True):
        if share == present:
            rows.append(Choice(share, True, counted.kept(others & now)))
            continue
        taken = ~ranked & now
        for stratum in set(strata[ranked].tolist()):
            members = np.flatnonzero(ranked & (strata == stratum))
            order = members[np.argsort(-value[members], kind="stable")]
            if in_tokens and counted.tokens is not None:
                cumulated = np.cumsum(counted.tokens[order])
                number = int(np.searchsorted(cumulated, share_of(share, int(cumulated[-1]), "tokens"), side="right"))
            else:
                number = share_of(share, len(order), "documents")
            taken[order[:number]] = True
        rows.append(Choice(share, False, counted.kept(others & taken)))
    return Choices(rule.name, str(rule.by), "best share", rows)


def _all(passed: Mask) -> Mask:
    """Of rules by documents: the documents that all the rules keep."""
    found: Mask = np.logical_and.reduce(passed, axis=0)
    return found


def _compare(value: Numbers, operator: str, number: float) -> Mask:
    with np.errstate(invalid="ignore"):
        result: Mask = {">=": value >= number, ">": value > number, "<=": value <= number, "<": value < number}[
            operator
        ]
    return result


def _numbers(column: Any) -> Numbers:
    """A column as numbers, NULL as NaN."""
    return np.array([np.nan if value is None else value for value in column.to_pylist()], dtype=np.float64)


def _truth(column: Any) -> Mask:
    return np.array([bool(value) for value in column.to_pylist()], dtype=bool)
