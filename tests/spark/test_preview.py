"""weir quality-filter --preview: the numbers are those of a plain computation, and nothing is written."""

from __future__ import annotations

import io
import json
import random
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.preview import PreviewOptions, as_values, check_options, epochs, preview_step, print_preview
from jobs.quality.judging import share_of
from jobs.quality.previewing import ALL, Choice, Kept, Preview, preview
from jobs.quality.settings import Rule
from jobs.runtime.errors import InputContractError, SettingsError
from jobs.settings import Settings
from tests.spark.helpers import lay_out, run, run_until, settings_in

NAN = float("nan")
SCHEMA = "doc_id STRING, source STRING, batch STRING, q STRUCT<score: DOUBLE>, tokens STRUCT<count: BIGINT>"


def corpus() -> list[tuple[Any, ...]]:
    """400 documents of two sources; every tenth has no score, every eleventh one that is no number."""
    numbers = random.Random(1)
    rows = []
    for n in range(400):
        score = None if n % 10 == 0 else NAN if n % 11 == 0 else round(numbers.random(), 3)
        rows.append((f"d{n:03}", "web" if n % 3 else "wiki", "b", (score,), (numbers.randrange(1, 100),)))
    return rows


def known(row: tuple[Any, ...]) -> bool:
    return row[3][0] is not None and row[3][0] == row[3][0]


def made(spark: SparkSession, rows: list[tuple[Any, ...]], *rules: Rule, partitions: int = 2) -> Preview:
    frame = spark.createDataFrame(rows, SCHEMA).repartition(partitions)
    return preview(frame, list(rules), step="s", seed=0, candidates=len(rows))


def whole(choice: Choice) -> tuple[int, int | None]:
    return choice.kept[0].documents, choice.kept[0].tokens


SCORE = Rule(name="score", keep="q.score >= 0.5")
SHORT = Rule(name="short", keep="tokens.count < 60", where="source = 'web'")
BEST = Rule(name="best", keep_best=0.4, by="q.score", per=["source"])


def test_each_threshold_keeps_what_a_plain_count_says(spark: SparkSession) -> None:
    """Another rule's drops stay dropped, unknown scores stay dropped, and the rule with where leaves wiki alone."""
    rows = corpus()
    found = made(spark, rows, SCORE, SHORT)
    score, short = found.thresholds
    assert (score.value, score.operator, short.value, short.operator) == ("q.score", ">=", "tokens.count", "<")
    assert len(score.choices) == 10 and [c.at for c in score.choices] == sorted(c.at for c in score.choices)
    for choice in score.choices:
        kept = [r for r in rows if known(r) and r[3][0] >= choice.at and (r[1] == "wiki" or r[4][0] < 60)]
        assert whole(choice) == (len(kept), sum(r[4][0] for r in kept)), choice.at
        assert {k.source: k.documents for k in choice.kept[1:]} == {
            name: sum(r[1] == name for r in kept) for name in ("web", "wiki")
        }
    for choice in short.choices:
        kept = [r for r in rows if known(r) and r[3][0] >= 0.5 and (r[1] == "wiki" or r[4][0] < choice.at)]
        assert whole(choice) == (len(kept), sum(r[4][0] for r in kept)), choice.at
    assert [c.at for c in score.choices if c.present] == [0.5] and [c.at for c in short.choices if c.present] == [60.0]
    now = next(c for c in score.choices if c.present)
    assert now.kept == found.all_rules  # the present threshold is the step as it is


def test_what_each_rule_keeps_and_what_becomes_of_unknown_values(spark: SparkSession) -> None:
    rows = corpus()
    unknown = sum(not known(r) for r in rows)
    found = made(spark, rows, SCORE, SHORT)
    score, short = found.rules
    assert score.kept[0].documents == sum(known(r) and r[3][0] >= 0.5 for r in rows)
    assert (score.unknown, score.unknown_kept, short.unknown) == (unknown, 0, 0)
    long = [r for r in rows if r[1] == "web" and r[4][0] >= 60]
    assert short.kept[0].documents == len(rows) - len(long)
    assert short.only == sum(known(r) and r[3][0] >= 0.5 for r in long)
    lenient = made(spark, rows, Rule(name="score", keep="q.score >= 0.5", on_null="keep", on_nan="keep"))
    assert (lenient.rules[0].unknown, lenient.rules[0].unknown_kept) == (unknown, unknown)
    for choice in lenient.thresholds[0].choices:
        assert whole(choice)[0] == sum(not known(r) or r[3][0] >= choice.at for r in rows)


def test_other_shares_of_a_ranking_rule(spark: SparkSession) -> None:
    """By stratum, of documents with a score that the rule before keeps; scores are distinct enough to count by."""
    rows = [(*r[:3], (n / 1000 if known(r) else r[3][0],), r[4]) for n, r in enumerate(corpus())]
    found = made(spark, rows, SHORT, BEST)
    (best,) = [entry for entry in found.thresholds if entry.rule == "best"]
    assert (best.operator, best.value) == ("best share", "q.score")
    assert [c.at for c in best.choices] == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    for choice in best.choices:
        kept = 0
        for source in ("web", "wiki"):
            ranked = [r for r in rows if r[1] == source and known(r) and (source == "wiki" or r[4][0] < 60)]
            kept += share_of(choice.at, len(ranked), "documents")
        assert whole(choice)[0] == kept, choice.at
    assert next(c for c in best.choices if c.present).kept == found.all_rules


def test_the_same_for_1_3_and_8_partitions(spark: SparkSession) -> None:
    rules = (SCORE, BEST, Rule(name="chance", keep_probability="0.5"))
    rows = corpus()
    previews = []
    for partitions in (1, 3, 8):
        random.Random(partitions).shuffle(rows)
        previews.append(made(spark, rows, *rules, partitions=partitions))
    assert previews[0] == previews[1] == previews[2]
    assert 0 < previews[0].rules[2].kept[0].documents < 400


def test_without_documents_and_without_tokens(spark: SparkSession) -> None:
    empty = made(spark, [], SCORE, BEST)
    assert empty.all_rules == [Kept(ALL, 0, 0, 0, 0)] and empty.scale == 1.0
    frame = spark.createDataFrame(corpus(), SCHEMA).drop("tokens")
    found = preview(frame, [SCORE], step="s", seed=0, candidates=400)
    assert found.all_rules[0].tokens is None and epochs(found.all_rules[0], 1.0, 10) is None
    out = io.StringIO()
    with redirect_stdout(out):
        print_preview(found, None)
    assert "Tokens are not counted" in out.getvalue()


def test_epochs_come_from_the_budget_and_the_whole() -> None:
    """A sample of a tenth keeps 50 tokens, so the whole about 500; 2,000 tokens read these 4 times."""
    kept = Kept("web", 5, 10, 50, 100)
    assert epochs(kept, 10.0, 2000) == 4.0
    assert epochs(kept, 10.0, None) is None and epochs(Kept("web", 0, 10, 0, 100), 10.0, 2000) is None
    values = as_values(Preview("s", 100, 10, [kept], [], []), 2000)
    assert values["all_rules"][0]["epochs"] == 4.0 and values["scale"] == 10.0
    json.dumps(values)


# --- the command


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """300 documents, 100 of which the first step drops as copies; the step to preview has never run."""
    home = tmp_path_factory.mktemp("preview")
    rows = [{"id": f"d{n}", "text": " ".join(["word"] * (n % 200) + ["end"]) + f" {n % 200}"} for n in range(300)]
    settings = settings_in(
        home,
        ingest={"web": {"paths": [str(lay_out(home / "web", rows))], "columns": {"doc_id": "id"}}},
        annotate={"tokens": {}, "statistics": {}, "exact_key": {}},
        decide=[
            {"exact_dedup": {}},
            {"quality_filter": {"name": "basics", "rules": [{"name": "words", "keep": "statistics.words >= 52"}]}},
        ],
    )
    run_until(spark, settings, "annotate")
    return settings


def files(settings: Settings) -> dict[str, int]:
    return {str(file): file.stat().st_mtime_ns for file in Path(settings.warehouse).rglob("*") if file.is_file()}


def test_the_earlier_steps_come_first_and_nothing_is_written(spark: SparkSession, warehouse: Settings) -> None:
    with pytest.raises(InputContractError, match="step 'exact_dedup' has not been decided"):
        preview_step(spark, warehouse, "basics", 1000)
    run(spark, warehouse, "exact-dedup", step="exact_dedup")
    before = files(warehouse)
    found = as_values(preview_step(spark, warehouse, "basics", 1000), 100_000)
    assert (found["candidates"], found["sampled"]) == (200, 200)
    # n "word", one "end" and a number: n + 2 words, of which at least 52 are in 150 of 200 documents
    assert found["all_rules"][0]["documents"] == 150 and found["all_rules"][0]["epochs"] > 1
    assert files(warehouse) == before


def test_a_sample_is_scaled_and_the_same_each_time(spark: SparkSession, warehouse: Settings) -> None:
    run(spark, warehouse, "exact-dedup", step="exact_dedup")
    found = preview_step(spark, warehouse, "basics", 80)
    assert found.candidates == 200 and 50 < found.sampled < 115
    assert found == preview_step(spark, warehouse, "basics", 80)
    share = found.all_rules[0].documents / found.sampled
    assert 0.6 < share < 0.9
    out = io.StringIO()
    with redirect_stdout(out):
        print_preview(found, None)
    assert "a sample of" in out.getvalue() and "no best threshold without the budget" in out.getvalue()
    assert f"{round(found.all_rules[0].documents * found.scale)}" in out.getvalue()


def test_the_preview_is_what_the_step_then_keeps(spark: SparkSession, warehouse: Settings) -> None:
    run(spark, warehouse, "exact-dedup", step="exact_dedup")
    found = preview_step(spark, warehouse, "basics", 1000)
    result = run(spark, warehouse, "quality-filter", step="basics")
    assert result.record.documents_kept == found.all_rules[0].documents
    frame = spark.read.format("delta").load(str(Path(warehouse.warehouse) / "runs"))
    assert frame.where(F.col("job").contains("preview")).count() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (PreviewOptions(0), "--sample is 0; it must be from 1 to 2,000,000"),
        (PreviewOptions(10, 0), "--budget-tokens is 0; it must be at least 1"),
    ],
)
def test_numbers_that_make_no_sense(warehouse: Settings, options: PreviewOptions, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_options(options, warehouse)


def test_a_budget_needs_counted_tokens(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, annotate={"statistics": {}, "exact_key": {}})
    with pytest.raises(SettingsError, match="no annotator called tokens"):
        check_options(PreviewOptions(10, 5), settings)
