"""Deciding: how documents rank, which rules they fail, which may be used, and that no step builds on stale ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.deciding.annotated import fields_in, float_fields, names_in
from jobs.deciding.survivor import rank_order
from jobs.eligibility import EligibilitySettings, ineligible, listed
from jobs.quality_filter import Rule, quality_decisions
from jobs.runtime.errors import InputContractError, SettingsError, UnreadableInput
from jobs.runtime.models import SourceSettings
from jobs.settings import Settings
from tests.spark.helpers import ids, lay_out, run, run_until, settings_in, table

NAN = float("nan")

# --- the survivor rule

RANKED = "doc_id STRING, source STRING, characters BIGINT, quality STRUCT<score: DOUBLE, label: STRING>"


def order_of(frame: DataFrame, rule: list[str], **priorities: int) -> list[str]:
    sources = {name: SourceSettings(priority=value) for name, value in priorities.items()}
    return [r["doc_id"] for r in frame.orderBy(*rank_order(frame, rule, sources)).collect()]


def test_null_and_nan_rank_last_whichever_way_a_term_points(spark: SparkSession) -> None:
    rows = [
        ("null", "s", 1, (None, "x")),
        ("nan", "s", 1, (NAN, "x")),
        ("low", "s", 1, (-1.0, "x")),
        ("high", "s", 1, (2.0, "x")),
    ]
    frame = spark.createDataFrame([*rows, ("none", "s", 1, None)], RANKED)
    assert order_of(frame, ["quality.score"]) == ["low", "high", "nan", "none", "null"]
    assert order_of(frame, ["-quality.score"]) == ["high", "low", "nan", "none", "null"]


def test_infinite_scores_rank_before_unknown_ones(spark: SparkSession) -> None:
    rows = [("minus", "s", 1, (float("-inf"), "x")), ("plus", "s", 1, (float("inf"), "x")), ("nan", "s", 1, (NAN, "x"))]
    frame = spark.createDataFrame(rows, RANKED)
    assert order_of(frame, ["-quality.score"]) == ["plus", "minus", "nan"]


def test_priority_comes_from_the_registry_and_is_100_for_others(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(s, s, 1, None) for s in ("last", "other", "first")], RANKED)
    assert order_of(frame, ["source_priority"], first=99, last=101) == ["first", "other", "last"]
    assert order_of(frame, ["-source_priority"], first=99, last=101) == ["last", "other", "first"]


def test_ties_are_broken_by_id_in_byte_order(spark: SparkSession) -> None:
    """Not by a locale: B before a before \u00e4; and 10 before 9, for ids are strings."""
    frame = spark.createDataFrame([(n, "s", 1, None) for n in ("\u00e4", "a", "B", "10", "9")], RANKED)
    assert order_of(frame, ["characters"]) == ["10", "9", "B", "a", "\u00e4"]
    assert order_of(frame, ["-doc_id"]) == ["\u00e4", "a", "B", "9", "10"]


def test_a_name_that_documents_do_not_have_is_said(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], RANKED)
    with pytest.raises(SettingsError, match=r"there is no 'quality\.missing'"):
        rank_order(frame, ["quality.missing"], {})


# --- quality rules

SCORED = (
    "doc_id STRING, source STRING, batch STRING, language STRING, attributes MAP<STRING, STRING>, "
    "quality STRUCT<score: DOUBLE, label: STRING>, words BIGINT"
)


def scored(spark: SparkSession) -> DataFrame:
    rows: list[tuple[Any, ...]] = [
        ("good", "s", "b", "en", {"k": "v"}, (0.9, "x"), 50),
        ("low", "s", "b", "en", {}, (0.1, "x"), 50),
        ("nan", "s", "b", "en", {}, (NAN, "x"), 50),
        ("null", "s", "b", "en", {}, (None, "x"), 50),
        ("nothing", "s", "b", None, {}, None, None),
        ("short", "s", "b", "de", {}, (0.1, "x"), 5),
    ]
    return spark.createDataFrame(rows, SCORED)


def reasons(frame: DataFrame, *rules: Rule) -> dict[str, str]:
    return {r["doc_id"]: r["reason"] for r in quality_decisions(frame, list(rules)).collect()}


def test_null_and_nan_have_reasons_of_their_own(spark: SparkSession) -> None:
    """Spark sorts NaN above every number: a bare >= would keep it."""
    rule = {"name": "score", "keep": "quality.score >= 0.5"}
    want = {"low": "score", "nan": "score_nan", "null": "score_null", "nothing": "score_null", "short": "score"}
    assert reasons(scored(spark), Rule(**rule)) == want
    assert reasons(scored(spark), Rule(**rule, on_nan="keep")) == {k: v for k, v in want.items() if k != "nan"}
    kept = {k: v for k, v in want.items() if k not in ("null", "nothing")}
    assert reasons(scored(spark), Rule(**rule, on_null="keep")) == kept


def test_the_first_failing_rule_gives_the_reason_and_all_are_listed_with_values(spark: SparkSession) -> None:
    rules = [
        Rule(name="long", keep="words >= 10"),
        Rule(name="score", keep="quality.score >= 0.5"),
        Rule(name="english", keep="language = 'en'"),
    ]
    decided = {r["doc_id"]: r for r in quality_decisions(scored(spark), rules).collect()}
    assert {d: r["reason"] for d, r in decided.items()} == {
        "low": "score", "nan": "score_nan", "null": "score_null", "nothing": "long_null", "short": "long",
    }  # fmt: skip
    failing = [(f["rule"], json.loads(f["value"]), f["limit"]) for f in decided["short"]["failing"]]
    assert failing == [
        ("long", {"words": 5}, "words >= 10"),
        ("score", {"quality.score": 0.1}, "quality.score >= 0.5"),
        ("english", {"language": "de"}, "language = 'en'"),
    ]
    assert [f["rule"] for f in decided["nothing"]["failing"]] == ["long_null", "score_null", "english_null"]
    assert json.loads(decided["nothing"]["failing"][1]["value"]) == {"quality.score": None}
    assert decided["low"]["kept_id"] is None and decided["low"]["proven"] and decided["low"]["method"] == "rule"


def test_rules_may_use_any_expression_over_what_is_there(spark: SparkSession) -> None:
    """Strings that spell a column's name, quotes, maps, NOT and BETWEEN."""
    frame = scored(spark)
    assert set(reasons(frame, Rule(name="r", keep="attributes['k'] = 'v'"))) == {
        "low",
        "nan",
        "null",
        "nothing",
        "short",
    }
    assert set(reasons(frame, Rule(name="r", keep="NOT (language <=> 'de')"))) == {"short"}
    assert set(reasons(frame, Rule(name="r", keep="words BETWEEN 10 AND 99"))) == {"nothing", "short"}
    assert set(reasons(frame, Rule(name="r", keep="concat('quality.score', \"it''s\") <> 'x'"))) == set()
    assert set(reasons(frame, Rule(name="r", keep="true"))) == set()
    assert len(reasons(frame, Rule(name="r", keep="false"))) == 6


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ("words >=", "can't be used"),
        ("wrods >= 10", "can't be used"),
        ("words + 1", "gives bigint, not true or false"),
        ("count(*) > 1", "can't be used"),
        ("row_number() OVER (ORDER BY doc_id) > 1", "can't be used"),
        ("rand() < 0.5", "the same every time"),
        ("words > 10 AND random(7) < 0.5", "the same every time"),
        ("current_date() > DATE'2024-01-01'", "the same every time"),
    ],
)
def test_a_condition_that_can_not_decide_a_document_by_itself_is_a_mistake_in_the_settings(
    spark: SparkSession, keep: str, said: str
) -> None:
    """All are said at once; what is drawn by chance or depends on the hour would not give the same ids twice."""
    with pytest.raises(SettingsError) as caught:
        quality_decisions(scored(spark), [Rule(name="first", keep=keep), Rule(name="second", keep="no_such > 1")])
    assert len(caught.value.problems) == 2 and "'first'" in caught.value.problems[0]
    assert said in caught.value.problems[0]


def test_names_in_an_expression_are_told_from_words_in_its_strings(spark: SparkSession) -> None:
    expression = "quality.score >= 0.5 AND `words` > 3 AND language <> 'quality.label words'"
    assert names_in(expression) == {"quality", "score", "AND", "words", "language"}
    frame = scored(spark)
    assert float_fields(frame, expression) == ["quality.score"]
    assert fields_in(frame, expression) == ["language", "quality.score", "words"]
    assert float_fields(frame, "quality . `score` > 1 OR other.score > 1") == ["quality.score"]
    assert float_fields(frame, "quality.scores > 1") == []


# --- eligibility

OPEN = "doc_id STRING, source STRING, batch STRING, url STRING, language STRING, attributes MAP<STRING, STRING>"


def judge(
    spark: SparkSession, rows: list[tuple[Any, ...]], sources: dict[str, str] | None = None, **given: Any
) -> dict[str, Any]:
    settings = EligibilitySettings(**given)
    frame = spark.createDataFrame([(*row, *[None] * (6 - len(row))) for row in rows], OPEN)
    domains = listed(spark, settings.blocked_domains, settings.blocked_domain_lists, "domain")
    blocked = listed(spark, settings.blocked_ids, settings.blocked_id_lists, "doc_id")
    registry = {name: SourceSettings(use=use) for name, use in (sources or {}).items()}  # type: ignore[arg-type]
    decided = ineligible(frame, settings, registry, domains, blocked).collect()
    assert len({r["doc_id"] for r in decided}) == len(decided)
    return {r["doc_id"]: r for r in decided}


BLOCKED_URLS = [
    "https://bad.example/", "http://bad.example", "https://www.bad.example/x", "https://a.b.bad.example:8080/x?y=z", "HTTPS://BAD.EXAMPLE/",
    "https://bad.example./", "https://user:secret@bad.example/", "//bad.example/x", "bad.example/x", "bad.example", " https://bad.example",
    "bad.example:8080/x", "ftp://bad.example#frag", "https://bad.example?query", "https://good.example@bad.example/",
    "https://ads.tracker.example/",
]  # fmt: skip
OPEN_URLS = [
    "https://notbad.example/", "https://bad.example.org/", "https://example/bad.example", "https://good.example/?u=https://bad.example",
    "https://good.example/#bad.example", "https://tracker.example/", "https://bad.example@good.example/", "", "not an url", None,
    "https://good.example:443/bad.example/", "mailto:someone@good.example", "example",
]  # fmt: skip


def test_a_blocked_domain_blocks_its_subdomains_and_nothing_that_only_looks_like_it(spark: SparkSession) -> None:
    rows = [(f"b{n}", "s", "b", url) for n, url in enumerate(BLOCKED_URLS)]
    rows += [(f"o{n}", "s", "b", url) for n, url in enumerate(OPEN_URLS)]  # type: ignore[misc]
    decided = judge(spark, rows, blocked_domains=["Bad.Example", ".ads.tracker.example."])  # type: ignore[arg-type]
    assert [url for n, url in enumerate(BLOCKED_URLS) if f"b{n}" not in decided] == []
    assert [url for n, url in enumerate(OPEN_URLS) if f"o{n}" in decided] == []
    assert {r["reason"] for r in decided.values()} == {"blocked_domain"}
    assert decided["b2"]["failing"][0]["value"] == "bad.example"


def test_lists_are_read_with_comments_blank_lines_and_whatever_an_editor_leaves(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A byte order mark before the first entry, carriage returns, spaces, and a name that Spark would pass over."""
    file = tmp_path / "_blocked [1].txt"
    file.write_bytes(
        b"\xef\xbb\xbffirst.example\r\n# a comment\r\n  \r\n  # another\n second.example  \n*.third.example\nhttps://Last.Example:80/x"
    )
    found = listed(spark, ["Inline.Example"], [str(file)], "domain")
    assert sorted(r[0] for r in found.collect()) == [
        "first.example",
        "inline.example",
        "last.example",
        "second.example",
        "third.example",
    ]
    (tmp_path / "empty.txt").write_bytes(b"")
    assert listed(spark, [], [str(tmp_path / "empty.txt")], "doc_id").collect() == []
    with pytest.raises(UnreadableInput, match=r"no\.txt"):
        listed(spark, [], [str(tmp_path / "no.txt")], "doc_id")


def test_ids_are_blocked_as_they_are_spelled(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("7\nAbC\n7\n", encoding="utf-8")
    rows = [(name, "s", "b") for name in ("7", "07", "AbC", "abc", "x")]
    decided = judge(spark, rows, blocked_ids=["x"], blocked_id_lists=[str(tmp_path / "ids.txt")])
    assert {d: r["reason"] for d, r in decided.items()} == {"7": "blocked_id", "AbC": "blocked_id", "x": "blocked_id"}


def test_the_use_of_a_source_comes_first_and_all_causes_are_listed(spark: SparkSession) -> None:
    rows = [("a", "eval", "b", "https://bad.example"), ("b", "no", "b"), ("c", "free", "b"), ("d", "unlisted", "b")]
    sources = {"eval": "evaluation_only", "no": "forbidden", "free": "allowed"}
    decided = judge(spark, rows, sources, blocked_domains=["bad.example"], blocked_ids=["a"])
    assert {d: r["reason"] for d, r in decided.items()} == {"a": "use_evaluation_only", "b": "use_forbidden"}
    assert [f["rule"] for f in decided["a"]["failing"]] == ["use_evaluation_only", "blocked_id", "blocked_domain"]


def test_a_condition_that_is_null_is_not_met(spark: SparkSession) -> None:
    rows = [
        ("mit", "s", "b", None, "en", {"licence": "MIT"}),
        ("gpl", "s", "b", None, "en", {"licence": "GPL"}),
        ("none", "s", "b", None, "en", {}),
    ]
    decided = judge(spark, rows, conditions=[{"name": "licence", "keep": "attributes['licence'] = 'MIT'"}])
    assert {d: r["reason"] for d, r in decided.items()} == {"gpl": "licence", "none": "licence"}


@pytest.mark.parametrize("keep", ["attributes[", "no_such = 1", "rand() < 0.5", "length(url)"])
def test_an_eligibility_condition_that_can_not_be_used_is_a_mistake_in_the_settings(
    spark: SparkSession, keep: str
) -> None:
    with pytest.raises(SettingsError, match="condition 'c'"):
        judge(spark, [("a", "s", "b")], conditions=[{"name": "c", "keep": keep}])


# --- steps that build on each other


@pytest.fixture(scope="module")
def takedown_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("takedown")
    rows = [
        {"id": "a", "text": "The same text."},
        {"id": "b", "text": "The  same text."},
        {"id": "c", "text": "Another."},
    ]
    lay_out(home / "in", rows)
    (home / "takedowns.txt").write_text("# none yet\n", encoding="utf-8")
    return home


def takedown_settings(home: Path, **more: Any) -> Settings:
    values: dict[str, Any] = {
        "annotate": {"exact_key": {}},
        "ingest": {"web": {"paths": [str(home / "in")], "columns": {"doc_id": "id"}}},
        "decide": [{"eligibility": {"blocked_id_lists": [str(home / "takedowns.txt")]}}, "exact_dedup"],
    }
    return settings_in(home, **{**values, **more})


def fates(spark: SparkSession, settings: Settings) -> dict[str, tuple[str | None, str | None]]:
    rows = table(spark, settings, "selection").where(f"policy = '{settings.policy}'").collect()
    return {r["doc_id"]: (r["reason"], r["kept_id"]) for r in rows}


def test_a_takedown_drops_the_document_and_brings_back_what_it_had_suppressed(
    spark: SparkSession, takedown_home: Path
) -> None:
    """The next step refuses to build on decisions made with the shorter list; deciding again in order brings b back."""
    settings = takedown_settings(takedown_home)
    run_until(spark, settings, "select", "r1")
    assert fates(spark, settings) == {"a": (None, None), "b": ("exact_duplicate", "a"), "c": (None, None)}

    (takedown_home / "takedowns.txt").write_text("a\n", encoding="utf-8")
    for job, step in (("exact-dedup", "exact_dedup"), ("select", "")):
        with pytest.raises(InputContractError, match="step 'eligibility' was decided with other settings"):
            run(spark, settings, job, "r2", step)
    run(spark, settings, "eligibility", "r3", "eligibility")
    run(spark, settings, "exact-dedup", "r3", "exact_dedup")
    run(spark, settings, "select", "r3")
    assert fates(spark, settings) == {"a": ("blocked_id", None), "b": (None, None), "c": (None, None)}
    assert table(spark, settings, "decisions").count() == 1

    # Another document: what was decided without it is not built upon, and annotations are asked for first.
    lay_out(takedown_home / "in", [{"id": "d", "text": "A third."}], "2.jsonl")
    run(spark, settings, "ingest", "r4")
    with pytest.raises(InputContractError, match="step 'eligibility' decided on version"):
        run(spark, settings, "exact-dedup", "r4", "exact_dedup")
    run(spark, settings, "eligibility", "r4", "eligibility")
    with pytest.raises(InputContractError, match="not been annotated with: exact_key"):
        run(spark, settings, "exact-dedup", "r5", "exact_dedup")


def test_a_step_that_was_never_decided_is_named(spark: SparkSession, tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path,
        annotate={"exact_key": {}},
        ingest={"web": {"paths": [str(lay_out(tmp_path / "in", [{"text": "a"}]))]}},
        decide=["eligibility", {"exact_dedup": {"name": "exact"}}],
    )
    run(spark, settings, "ingest")
    with pytest.raises(InputContractError, match="step 'eligibility' has not been decided"):
        run(spark, settings, "exact-dedup", "r1", "exact")
    with pytest.raises(InputContractError) as caught:
        run(spark, settings, "select")
    assert caught.value.differences == ["step 'eligibility' has not been decided", "step 'exact' has not been decided"]


def test_policies_stand_side_by_side_and_a_policys_steps_see_only_their_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second policy drops what the first kept; both stay in the tables, each whole."""
    folder = lay_out(tmp_path / "in", [{"id": n, "text": f"text {n}", "n": n} for n in range(4)])
    common: dict[str, Any] = {
        "annotate": {"exact_key": {}},
        "ingest": {"web": {"paths": [str(folder)], "columns": {"doc_id": "id"}}},
    }

    def policy(name: str, limit: int) -> Settings:
        rule = {"name": "n", "keep": f"int(attributes['n']) < {limit}"}
        return settings_in(tmp_path, **common, policy=name, decide=[{"quality_filter": {"rules": [rule]}}])

    strict, loose = policy("strict", 1), policy("loose", 3)
    run_until(spark, strict, "select", "r1")
    for job, step in (("quality-filter", "quality_filter"), ("select", "")):
        run(spark, loose, job, "r2", step)
    assert [d for d, (reason, _) in sorted(fates(spark, strict).items()) if reason is None] == ["0"]
    assert [d for d, (reason, _) in sorted(fates(spark, loose).items()) if reason is None] == ["0", "1", "2"]
    decided = table(spark, strict, "decisions")
    assert ids(decided.where("policy = 'strict'")) == ["1", "2", "3"] and ids(decided.where("policy = 'loose'")) == [
        "3"
    ]
