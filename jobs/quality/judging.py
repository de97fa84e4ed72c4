"""Which rules a document fails, with the values that it failed with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.deciding.annotated import evidence, fields_in, float_fields
from jobs.deciding.conditions import check_conditions, check_values
from jobs.deciding.cutting import before_cut, exact_cuts
from jobs.deciding.draws import draw, draw_bits
from jobs.deciding.step import FAILING
from jobs.quality.settings import Rule

DRAWN = "ARRAY<STRUCT<rule: STRING, probability: DOUBLE, draw: DOUBLE>>"
Store = Callable[[DataFrame, str], DataFrame]
"""Computes a frame once and gives back one that reads it; the name tells frames apart."""


def judged(
    candidates: DataFrame,
    rules: Sequence[Rule],
    *,
    step: str = "quality_filter",
    seed: int = 0,
    store: Store | None = None,
) -> DataFrame:
    """Every candidate with the rules that it fails.

    A ``keep_best`` rule ranks the documents that no rule before it drops; of N with a value it keeps k = share x N,
    rounded half to even, or with ``unit: tokens`` the longest beginning whose tokens are at most the share of theirs.
    Equal values are ordered by a draw, then by id.

    Args:
        candidates: ``doc_id``, ``source``, ``batch`` and whatever the rules name (``tokens.count`` for unit tokens).
        rules: In order.
        step: Name of the step, which draws go by.
        seed: Of draws.
        store: What computes an intermediate frame once; by default nothing is stored, and all is computed several times.

    Returns:
        The candidates with ``#reason`` (of the first rule that fails; NULL: kept), ``#failing`` (all of them, with
        values and limits), ``#drawn`` (probability and draw by each keep_probability rule), and by the rules' places
        ``#reasons`` (NULL: the rule keeps it) and ``#unknown`` (whether the rule is for it, but its value NULL or NaN).

    Raises:
        SettingsError: for SQL that can't be used, see ``check_conditions``.
    """
    _check(candidates, rules)
    keep = store or (lambda frame, name: frame)
    frame = candidates
    given = list(candidates.columns)
    reasons: list[str] = []
    drawn: list[Column] = []
    unknown: list[Column] = []
    for number, rule in enumerate(rules):
        column = f"#reason{number}"
        applies = F.coalesce(F.expr(rule.where), F.lit(False)) if rule.where else F.lit(True)
        unknown.append(applies & F.coalesce(_unknown(candidates, rule), F.lit(True)))
        limit: Column = F.lit(rule.limit)
        if rule.keep_best is not None:
            ranked = applies & ~F.coalesce(_unknown(candidates, rule), F.lit(True))
            for earlier in reasons:
                ranked = ranked & F.col(earlier).isNull()
            frame = _with_cut(frame, rule, ranked, step, seed, functools.partial(_stored, keep, f"ranked{number}"))
            outcome: Column = F.col("#taken")
            limit = F.concat(
                limit, F.coalesce(F.concat(F.lit(", here from "), F.col("#from").cast("string")), F.lit(""))
            )
        elif rule.keep_probability is not None:
            probability = F.greatest(F.lit(0.0), F.least(F.lit(1.0), F.expr(rule.keep_probability).cast("double")))
            number_drawn = draw(purpose(step, rule), seed)
            outcome = number_drawn < probability
            known = applies & ~F.coalesce(_unknown(candidates, rule), F.lit(True))
            entry = F.struct(
                F.lit(rule.name).alias("rule"), probability.alias("probability"), number_drawn.alias("draw")
            )
            drawn.append(F.when(known, entry))
        else:
            outcome = F.expr(str(rule.keep))
        reason = _reason(candidates, rule, outcome)
        frame = frame.withColumns({column: F.when(applies, reason), f"#limit{number}": limit}).drop("#taken", "#from")
        reasons.append(column)
    failing = [
        F.when(
            F.col(column).isNotNull(),
            F.struct(F.col(column).alias("rule"), _values(candidates, rule, step, seed).alias("value"),
                     F.col(f"#limit{number}").alias("limit")),
        )
        for number, (column, rule) in enumerate(zip(reasons, rules, strict=True))
    ]  # fmt: skip
    return frame.select(
        *[F.col(f"`{name}`") for name in given],
        F.coalesce(*[F.col(column) for column in reasons], F.lit(None).cast("string")).alias("#reason"),
        F.array_compact(F.array(*failing)).cast(FAILING).alias("#failing"),
        (F.array_compact(F.array(*drawn)) if drawn else F.array()).cast(DRAWN).alias("#drawn"),
        F.array(*[F.col(column) for column in reasons]).alias("#reasons"),
        F.array(*unknown).alias("#unknown"),
    )


def _stored(store: Store, name: str, frame: DataFrame) -> DataFrame:
    return store(frame, name)


def purpose(step: str, rule: Rule) -> str:
    """What a rule's draws are for: no other rule, step or job draws the same."""
    return f"quality_filter/{step}/{rule.name}"


def _check(candidates: DataFrame, rules: Sequence[Rule]) -> None:
    conditions = [(f"rule '{rule.name}'", rule.keep) for rule in rules if rule.keep is not None]
    conditions += [(f"rule '{rule.name}', where", rule.where) for rule in rules if rule.where is not None]
    numbers = [(f"rule '{rule.name}', by", rule.by) for rule in rules if rule.by is not None]
    numbers += [
        (f"rule '{rule.name}', keep_probability", rule.keep_probability)
        for rule in rules
        if rule.keep_probability is not None
    ]
    strata = [(f"rule '{rule.name}', per", value) for rule in rules for value in rule.per]
    check_conditions(candidates, conditions)
    check_values(candidates, numbers, numeric=True)
    check_values(candidates, strata, numeric=False)


def _expression(rule: Rule) -> str:
    """The SQL whose NULL or NaN makes the outcome unknown."""
    return str(rule.keep or rule.by or rule.keep_probability)


def _nan(candidates: DataFrame, rule: Rule) -> Column:
    """Whether a value that the rule names is NaN, or its number is."""
    found = F.lit(False)
    for path in float_fields(candidates, _expression(rule)):
        found = found | F.coalesce(F.isnan(F.col(path)), F.lit(False))
    if rule.keep is None:
        found = found | F.coalesce(F.isnan(F.expr(_expression(rule)).cast("double")), F.lit(False))
    return found


def _unknown(candidates: DataFrame, rule: Rule) -> Column:
    return _nan(candidates, rule) | F.expr(_expression(rule)).isNull()


def _reason(candidates: DataFrame, rule: Rule, outcome: Column) -> Column:
    null = F.lit(f"{rule.name}_null")
    # An annotator that judges says why it could not: a text without letters has no language and no score.
    said = [F.col(f"{name}.unscored") for name in _structs_with_unscored(candidates, _expression(rule))]
    nothing = F.lit(None).cast("string")
    unknown = F.expr(_expression(rule)).isNull()
    return (
        F.when(_nan(candidates, rule), F.lit(f"{rule.name}_nan") if rule.on_nan == "drop" else nothing)
        .when(unknown, F.coalesce(*said, null) if rule.on_null == "drop" else nothing)
        .when(~outcome, F.lit(rule.name))
    )


def _structs_with_unscored(candidates: DataFrame, expression: str) -> list[str]:
    named = {path.partition(".")[0] for path in fields_in(candidates, expression)}
    return [
        field.name
        for field in candidates.schema.fields
        if field.name in named and "unscored" in [inner.name for inner in getattr(field.dataType, "fields", [])]
    ]


def _values(candidates: DataFrame, rule: Rule, step: str, seed: int) -> Column:
    """The values that a rule looked at, as JSON."""
    paths = list(dict.fromkeys(path for text in rule.expressions for path in fields_in(candidates, text)))
    if rule.keep_probability is None:
        return evidence(candidates, paths)
    values = [F.col(path).alias(path) for path in paths]
    values += [
        F.expr(rule.keep_probability).cast("double").alias("probability"),
        draw(purpose(step, rule), seed).alias("draw"),
    ]
    return F.to_json(F.struct(*values), {"ignoreNullFields": "false"})


def _with_cut(
    frame: DataFrame, rule: Rule, ranked: Column, step: str, seed: int, store: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """``frame`` with ``#taken`` (true for documents that aren't ranked) and ``#from``, the value at the stratum's cut."""
    strata = (
        F.struct(*[F.expr(text).alias(text) for text in rule.per]) if rule.per else F.struct(F.lit("").alias("all"))
    )
    weight = F.col("tokens.count") if rule.unit == "tokens" else F.lit(1).cast("bigint")
    placed = frame.withColumns(
        {
            "#stratum": F.when(ranked, F.to_json(strata, {"ignoreNullFields": "false"})),
            "#first": -F.expr(str(rule.by)).cast("double"),
            "#second": draw_bits(purpose(step, rule), seed),
        }
    )
    narrow = store(
        placed.where(F.col("#stratum").isNotNull()).select(
            F.col("#stratum").alias("stratum"), F.col("#first").alias("first"), F.col("#second").alias("second"),
            "doc_id", weight.alias("weight"),
        )
    )  # fmt: skip
    totals = narrow.groupBy("stratum").agg(F.sum("weight").alias("total")).collect()
    quotas = {row["stratum"]: share_of(float(rule.keep_best or 0), int(row["total"]), rule.unit) for row in totals}
    cuts = exact_cuts(narrow, quotas)
    limits = cuts.select(F.col("stratum").alias("#stratum"), (-F.col("cut_first")).alias("#from"))
    found = before_cut(placed, cuts, stratum="#stratum", first="#first", second="#second")
    return (
        found.join(F.broadcast(limits), ["#stratum"], "left")
        .withColumnRenamed("taken", "#taken")
        .drop("#stratum", "#first", "#second")
    )


def share_of(share: float, total: int, unit: str) -> int:
    """How much a share is: documents rounded half to even, tokens rounded down."""
    exact = Decimal(str(share)) * total
    return int(exact.to_integral_value(ROUND_HALF_EVEN)) if unit == "documents" else int(exact)
