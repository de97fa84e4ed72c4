"""The survivor rule as text: its terms, what they need, and that it ends in a total order."""

from __future__ import annotations

import pytest

from jobs.deciding.annotated import names_in
from jobs.deciding.survivor import DEFAULT, DOCUMENT_COLUMNS, PRIORITY, UNLISTED_PRIORITY, annotators_in, terms
from jobs.runtime.errors import SettingsError


def test_the_id_ends_every_rule() -> None:
    """Without it two documents could rank alike, and which one stays would depend on the cluster."""
    assert terms(["source_priority"]) == [("source_priority", False), ("doc_id", False)]
    assert terms(["source_priority", "doc_id"]) == [("source_priority", False), ("doc_id", False)]
    assert terms(["-doc_id", "bytes"]) == [("doc_id", True), ("bytes", False)]
    assert terms([]) == [("doc_id", False)]


def test_a_minus_turns_a_term_round() -> None:
    assert terms(["-statistics.letters", " -fetched_at "])[:2] == [("statistics.letters", True), ("fetched_at", True)]


@pytest.mark.parametrize(
    "term", ["", " ", "-", "--a", "a b", "- a", "1a", "a.", ".a", "a..b", "a-b", "a;b", "a, b", "a()"]
)
def test_a_term_that_is_no_name_is_quoted_in_the_message(term: str) -> None:
    with pytest.raises(SettingsError, match="should be a name or -name") as caught:
        terms([term])
    assert f"'{term}'" in str(caught.value)


def test_the_annotators_that_a_rule_needs() -> None:
    rule = ["source_priority", "-quality.score", "statistics.words", "statistics.letters", "bytes", "-url", "doc_id"]
    assert annotators_in(rule) == {"quality", "statistics"}
    assert annotators_in(DEFAULT) == set()
    assert annotators_in(sorted(DOCUMENT_COLUMNS)) == set()
    assert PRIORITY not in DOCUMENT_COLUMNS


def test_sources_that_are_not_listed_rank_behind_most() -> None:
    assert UNLISTED_PRIORITY == 100


# --- names in an expression


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("statistics.words > 5", {"statistics", "words"}),
        ("`statistics`.`words` > 5", {"statistics", "words"}),
        ("url like '%tokens%'", {"url", "like"}),
        ("url = 'it''s tokens' and bytes > 1", {"url", "and", "bytes"}),
        ("url = 'back\\'slash tokens'", {"url"}),
        ('url = "tokens"', {"url"}),
        ("tokens.count BETWEEN 1 AND 5", {"tokens", "count", "BETWEEN", "AND"}),
        ("5 > 3", set()),
    ],
)
def test_names_in_an_expression_leave_out_what_is_quoted(expression: str, names: set[str]) -> None:
    """By these names it is decided which annotation tables are read."""
    assert names_in(expression) == names
