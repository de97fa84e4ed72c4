"""quality_filter: the best share of each stratum, draws, where, unscored texts, presets, samples for people to read."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.deciding.draws import draw, draw_bits
from jobs.quality.judging import judged, purpose, share_of
from jobs.quality.sampling import audit_sample
from jobs.quality.settings import QualityFilterSettings
from jobs.quality_filter import Rule, quality_decisions
from jobs.runtime.errors import SettingsError
from jobs.settings import Settings
from tests.spark.helpers import lay_out, run, run_until, settings_in, table

NAN = float("nan")
SCHEMA = (
    "doc_id STRING, source STRING, batch STRING, quality STRUCT<score: DOUBLE, unscored: STRING>, "
    "tokens STRUCT<count: BIGINT>, language STRUCT<code: STRING, unscored: STRING>"
)


def row(doc_id: str, source: str, score: float | None, tokens: int = 10, code: str | None = "en") -> tuple[Any, ...]:
    unscored = "no_text_to_score" if code is None else None
    return (doc_id, source, "b", (score, unscored), (tokens,), (code, unscored))


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]], partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA).repartition(partitions)


def reasons(frame: DataFrame, *rules: Rule, seed: int = 0) -> dict[str, str]:
    return {r["doc_id"]: r["reason"] for r in quality_decisions(frame, list(rules), seed=seed).collect()}


def best(share: float, **more: Any) -> Rule:
    return Rule(**{"name": "best", "keep_best": share, "by": "quality.score", **more})


# --- the best share


def corpus() -> list[tuple[Any, ...]]:
    """Two sources, two languages; scores of a few values, so that most are tied."""
    numbers = random.Random(4)
    return [
        row(
            f"d{n:03}",
            "wiki" if n % 3 else "web",
            numbers.choice([0.1, 0.5, 0.5, 0.9]),
            code=numbers.choice(["en", "de"]),
        )
        for n in range(200)
    ]


def test_the_best_share_is_exact_in_every_stratum_and_ties_go_by_the_draw(spark: SparkSession) -> None:
    rows = corpus()
    rule = best(0.3, per=["source", "language.code"])
    frame = frame_of(spark, rows)
    draws = {r[0]: r[1] for r in frame.select("doc_id", draw_bits(purpose("quality_filter", rule), 0)).collect()}
    dropped = reasons(frame, rule)
    strata = sorted({(r[1], r[5][0]) for r in rows})
    assert len(strata) == 4
    for stratum in strata:
        members = [r for r in rows if (r[1], r[5][0]) == stratum]
        ranked = sorted(members, key=lambda r: (-r[3][0], draws[r[0]], r[0]))
        kept = share_of(0.3, len(members), "documents")
        assert {r[0] for r in members if r[0] not in dropped} == {r[0] for r in ranked[:kept]}, stratum
    assert set(dropped.values()) == {"best"}


def test_the_same_documents_for_1_3_and_8_partitions_and_any_order(spark: SparkSession) -> None:
    rows = corpus()
    rules = [best(0.25, per=["source"]), Rule(name="chance", keep_probability="0.5 + quality.score / 2")]
    found = []
    for partitions in (1, 3, 8):
        random.Random(partitions).shuffle(rows)
        found.append(reasons(frame_of(spark, rows, partitions), *rules))
    assert found[0] == found[1] == found[2]
    assert found[0] != reasons(frame_of(spark, rows), *rules, seed=1)


@pytest.mark.parametrize(
    ("share", "total", "want"), [(0.5, 5, 2), (0.5, 7, 4), (0.1, 25, 2), (0.3, 10, 3), (0.29, 100, 29), (0.2, 0, 0)]
)
def test_shares_are_rounded_half_to_even_in_exact_arithmetic(share: float, total: int, want: int) -> None:
    """0.29 x 100 is 28.999999999999996 in floating point."""
    assert share_of(share, total, "documents") == want


def test_a_share_of_tokens_keeps_the_longest_beginning_that_fits(spark: SparkSession) -> None:
    """100 tokens, 0.5: 30 + 20 = 50 fit; the next, of 1 token, does not, nor any after it."""
    rows = [row(n, "s", s, t) for n, s, t in [("a", 0.9, 30), ("b", 0.8, 20), ("c", 0.7, 1), ("d", 0.6, 49)]]
    assert sorted(reasons(frame_of(spark, rows), best(0.5, unit="tokens"))) == ["c", "d"]
    assert sorted(reasons(frame_of(spark, rows), best(0.51, unit="tokens"))) == ["d"]
    assert sorted(reasons(frame_of(spark, rows), best(0.29, unit="tokens"))) == ["a", "b", "c", "d"]


def test_only_documents_with_a_value_are_ranked(spark: SparkSession) -> None:
    rows = [row("high", "s", 0.9), row("low", "s", 0.1), row("null", "s", None), row("nan", "s", NAN)]
    rows.append(row("blank", "s", None, code=None))
    frame = frame_of(spark, rows)
    want = {"low": "best", "null": "best_null", "nan": "best_nan", "blank": "no_text_to_score"}
    assert reasons(frame, best(0.5)) == want
    assert reasons(frame, best(0.5, on_null="keep", on_nan="keep")) == {"low": "best"}


def test_less_can_be_better_and_strata_may_be_null(spark: SparkSession) -> None:
    rows = [row("a", "s", 0.9, code=None), row("b", "s", 0.1, code=None), row("c", "s", 0.5), row("d", "s", 0.6)]
    assert sorted(reasons(frame_of(spark, rows), best(0.5, by="-quality.score", per=["language.code"]))) == ["a", "d"]


def test_a_ranking_sees_only_what_earlier_rules_keep(spark: SparkSession) -> None:
    rows = [
        row("junk", "s", 0.99, code="xx"),
        row("a", "s", 0.9),
        row("b", "s", 0.8),
        row("c", "s", 0.7),
        row("d", "s", 0.6),
    ]
    language = Rule(name="english", keep="language.code = 'en'")
    assert reasons(frame_of(spark, rows), language, best(0.5)) == {"junk": "english", "c": "best", "d": "best"}
    assert reasons(frame_of(spark, rows), best(0.4), language) == {
        "junk": "english", "b": "best", "c": "best", "d": "best",
    }  # fmt: skip


def test_evidence_names_the_rules_values_and_limits(spark: SparkSession) -> None:
    rows = [row("a", "s", 0.9), row("b", "s", 0.25)]
    (found,) = quality_decisions(frame_of(spark, rows), [best(0.5, per=["source"])]).collect()
    (entry,) = found["failing"]
    assert json.loads(entry["value"]) == {"quality.score": 0.25, "source": "s"}
    assert entry["limit"] == "best 0.5 of documents by quality.score per source, here from 0.25"


# --- where, and draws


def test_a_rule_is_for_the_documents_that_its_condition_names(spark: SparkSession) -> None:
    rows = [row("web", "web", 0.1), row("wiki", "wiki", 0.1), row("null", "web", None, code=None)]
    rule = Rule(name="score", keep="quality.score >= 0.5", where="source = 'web' AND language.code = 'en'")
    assert reasons(frame_of(spark, rows), rule) == {"web": "score"}
    tied = best(0.5, where="source = 'web'", on_null="keep")
    assert reasons(frame_of(spark, [*rows, row("web2", "web", 0.2)]), tied) == {"web": "best"}


def test_documents_are_kept_with_their_probability(spark: SparkSession) -> None:
    rows = [row(f"d{n}", "s", [0.0, 0.25, 1.0, 7.0][n % 4]) for n in range(4000)]
    rule = Rule(name="chance", keep_probability="quality.score")
    frame = frame_of(spark, rows)
    outcome = judged(frame, [rule]).select("doc_id", "quality.score", "#reason", "#drawn", "#failing").collect()
    kept = [sum(r["#reason"] is None for r in outcome if r["score"] == score) for score in (0.0, 0.25, 1.0, 7.0)]
    assert (kept[0], kept[2], kept[3]) == (0, 1000, 1000)  # a probability above 1 is 1
    assert 190 < kept[1] < 310
    draws = {r[0]: r[1] for r in frame.select("doc_id", draw("quality_filter/quality_filter/chance", 0)).collect()}
    for r in outcome:
        (drawn,) = r["#drawn"]
        assert (drawn["rule"], drawn["draw"]) == ("chance", draws[r["doc_id"]])
        assert drawn["probability"] == min(r["score"], 1.0) and (r["#reason"] is None) == (
            drawn["draw"] < drawn["probability"]
        )
    dropped = next(r for r in outcome if r["#reason"])
    assert set(json.loads(dropped["#failing"][0]["value"])) == {"quality.score", "probability", "draw"}


def test_probabilities_that_are_unknown(spark: SparkSession) -> None:
    rows = [row("null", "s", None), row("nan", "s", NAN), row("blank", "s", None, code=None)]
    rule = Rule(name="chance", keep_probability="quality.score")
    assert reasons(frame_of(spark, rows), rule) == {
        "null": "chance_null", "nan": "chance_nan", "blank": "no_text_to_score",
    }  # fmt: skip
    assert all(not r["#drawn"] for r in judged(frame_of(spark, rows), [rule]).collect())


# --- settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "needs one of keep, keep_best and keep_probability; it has none"),
        ({"keep": "a", "keep_probability": "b"}, "it has keep, keep_probability"),
        ({"keep_best": 0.5}, "keep_best and by go together"),
        ({"keep": "a", "per": ["source"]}, "per and unit are for keep_best"),
        ({"keep_best": 1.0, "by": "x"}, "less than 1"),
    ],
)
def test_rules_that_contradict_themselves(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Rule(name="r", **values)


def test_steps_without_rules_and_names_that_stand_twice() -> None:
    with pytest.raises(ValidationError, match="needs rules or presets"):
        QualityFilterSettings()
    with pytest.raises(ValidationError, match=r"used twice: c4_lorem_ipsum"):
        QualityFilterSettings(presets=["c4"], rules=[Rule(name="c4_lorem_ipsum", keep="true")])


def test_sql_that_cannot_be_used_is_named(spark: SparkSession) -> None:
    frame = frame_of(spark, [row("a", "s", 0.1)])
    for rule, message in [
        (best(0.5, by="source"), "rule 'best', by: 'source' gives string, not a number"),
        (best(0.5, per=["missing"]), "rule 'best', per: 'missing' can't be used"),
        (best(0.5, by="rand()"), "rand does not give the same every time"),
        (best(0.5, by="sum(quality.score)"), "rule 'best', by"),
        (Rule(name="r", keep="true", where="quality.score"), "rule 'r', where: 'quality.score' gives double"),
        (Rule(name="r", keep_probability="language.code"), "not a number"),
    ]:
        with pytest.raises(SettingsError) as found:
            quality_decisions(frame, [rule])
        assert message in str(found.value)


# --- samples for people to read


def test_samples_are_fixed_in_size_and_the_same_for_any_layout(spark: SparkSession) -> None:
    rows = [row(f"d{n}", "web" if n < 60 else "wiki", n % 10 / 10, code=["en", "de"][n % 2]) for n in range(63)]
    rules = [Rule(name="english", keep="language.code = 'en'"), Rule(name="score", keep="quality.score >= 0.5")]
    found = []
    for partitions in (1, 8):
        outcome = judged(frame_of(spark, rows, partitions), rules)
        found.append(sorted(map(tuple, audit_sample(outcome, 4, step="q", seed=0).collect())))
    assert found[0] == found[1]
    counts: dict[tuple[str, ...], int] = {}
    for _, source, _, rule, side, value, limit in found[0]:
        counts[source, rule, side] = counts.get((source, rule, side), 0) + 1
        assert (value is None) == (limit is None) == (side == "kept")
    assert counts == {
        ("web", "", "kept"): 4, ("web", "english", "dropped"): 4, ("web", "score", "dropped"): 4,
        ("wiki", "english", "dropped"): 1, ("wiki", "score", "dropped"): 3,
    }  # fmt: skip


# --- the job


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """exact_dedup, then Gopher's rules and the best half: the second step ranks only survivors."""
    home: Path = tmp_path_factory.mktemp("quality")
    lines = [{"id": f"d{n}", "source": "s", "text": f"word{n} " * (60 + n)} for n in range(6)]
    lines += [{"id": "copy", "source": "s", "text": lines[5]["text"]}, {"id": "braces", "source": "s", "text": "{" * 9}]
    settings = settings_in(
        home,
        ingest={"all": {"paths": [str(lay_out(home / "in", lines))], "columns": {"doc_id": "id", "source": "source"}}},
        annotate={"tokens": {}, "statistics": {}, "heuristics": {}},
        decide=[
            "exact_dedup",
            {"quality_filter": {"name": "code", "presets": ["c4"], "audit": 0, "rules": [
                {"name": "few", "keep": "statistics.words >= 2"}]}},
            {"quality_filter": {"name": "best", "audit": 1, "rules": [
                {"name": "half", "keep_best": 0.5, "by": "statistics.words", "unit": "tokens"},
                {"name": "chance", "keep_probability": "0.999999"}]}},
        ],
    )  # fmt: skip
    run_until(spark, settings, "best")
    return settings


def test_presets_drop_by_published_rules(spark: SparkSession, done: Settings) -> None:
    rows = table(spark, done, "decisions").where("step = 'code'").collect()
    found = {r["doc_id"]: {entry["rule"] for entry in r["failing"]} for r in rows}
    assert found["braces"] == {"c4_sentences", "c4_curly_bracket", "few"}
    assert all("c4_sentences" in failing for failing in found.values())


def test_a_later_step_ranks_only_survivors(spark: SparkSession, done: Settings) -> None:
    """All that C4's sentences leave: nothing. So the best half of nothing is nothing, and every document adds up."""
    assert table(spark, done, "decisions").where("step = 'best'").count() == 0
    assert table(spark, done, "draws").count() == 0
    samples = table(spark, done, "audit_samples")
    assert {r["step"] for r in samples.select("step").distinct().collect()} <= {"best"}


def test_draws_and_samples_are_replaced_with_their_step(spark: SparkSession, done: Settings) -> None:
    values = done.model_dump(mode="json", by_alias=True)
    values["decide"][1]["presets"] = []
    again = settings_in(Path(done.warehouse).parent, **{k: v for k, v in values.items() if k != "warehouse"})
    run_until(spark, again, "best", "r2")
    for run_id in ("r2", "r3"):
        run(spark, again, "quality-filter", run_id, "best")
        kept = 6 - table(spark, again, "decisions").where("step = 'best' AND reason = 'half'").count()
        draws = table(spark, again, "draws").collect()
        assert {r["run_id"] for r in draws} == {run_id} and len(draws) == 6
        assert all(r["probability"] == 0.999999 for r in draws)
        assert kept == 2  # the two longest texts have at most half of the tokens
        samples = table(spark, again, "audit_samples").where(F.col("step") == "best")
        assert sorted((r["rule"], r["side"]) for r in samples.collect()) == [("", "kept"), ("half", "dropped")]
