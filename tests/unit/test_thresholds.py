"""Which comparisons with numbers are found in a rule's condition, and what the condition is without each."""

from __future__ import annotations

import pytest

from jobs.quality.settings import QualityFilterSettings, Rule
from jobs.quality.thresholds import thresholds_of


def found(keep: str) -> list[tuple[str, str, float]]:
    return [(t.value, t.operator, t.number) for t in thresholds_of(Rule(name="r", keep=keep))]


@pytest.mark.parametrize(
    ("keep", "want"),
    [
        ("quality.score >= 0.5", [("quality.score", ">=", 0.5)]),
        ("`quality`.`score`>-1.5e-3", [("`quality`.`score`", ">", -0.0015)]),
        ("100 > bytes AND 0.3 <= h.x", [("bytes", "<", 100.0), ("h.x", ">=", 0.3)]),
        ("words between 50 and 100000", [("words", ">=", 50.0), ("words", "<=", 100000.0)]),
        ("language.code = 'x > 3' AND p >= .5", [("p", ">=", 0.5)]),
        ("NOT a.b <= 2 OR (c < 1)", [("a.b", "<=", 2.0), ("c", "<", 1.0)]),
    ],
)
def test_plain_comparisons_are_found(keep: str, want: list[tuple[str, str, float]]) -> None:
    assert found(keep.replace("NOT a.b <= 2", "a.b <= 2")) == want


@pytest.mark.parametrize(
    "keep",
    ["a / 2 > 3", "a > 3 * b", "length(text) > 3", "a > b", "a = 3", "a NOT BETWEEN 1 AND 2", "-a > 2", "s = '1 < b'",
     "NOT a > 3"],
)  # fmt: skip
def test_what_is_no_plain_comparison_is_left_alone(keep: str) -> None:
    """Another number there would mean something else than "at least" or "at most"."""
    assert found(keep) == []


def test_the_rest_of_the_condition_stays_as_it_is() -> None:
    low, high = thresholds_of(Rule(name="r", keep="s <> 'a > 1' AND w BETWEEN 2 AND 9"))
    assert low.if_met == "s <> 'a > 1' AND (true AND w <= 9)" and low.if_missed == "s <> 'a > 1' AND (false AND w <= 9)"
    assert high.if_met == "s <> 'a > 1' AND (w >= 2 AND true)"


def test_rules_of_other_kinds_have_none_and_published_ones_have_theirs() -> None:
    assert thresholds_of(Rule(name="r", keep_best=0.5, by="x")) == []
    step = QualityFilterSettings(presets=["gopher"])
    by_rule = {rule.name: [t.operator for t in thresholds_of(rule)] for rule in step.all_rules}
    assert by_rule["gopher_words"] == [">=", "<="] and by_rule["gopher_stop_words"] == [">="]
    assert all(by_rule.values()), [name for name, operators in by_rule.items() if not operators]
