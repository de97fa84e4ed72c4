"""heuristics: each value equals its published definition, the kernel the reference, and each rule the paper's number."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.reference.heuristics import compared, is_letter
from tests.reference.heuristics import heuristics as reference
from tests.unit.code_points import PLANES, ascii_texts, broken_bytes, is_uniform, mixed_texts, plane_characters
from udfs.annotators.heuristics import HEURISTICS, HeuristicsSettings, open_heuristics
from udfs.heuristics.measures import text_heuristics
from udfs.heuristics.rule_sets import RULE_SETS, PublishedRule
from udfs.heuristics.stop_words import stop_word_table

KERNEL = open_heuristics(HeuristicsSettings())
COUNTS = {name for name, sql_type, _ in HEURISTICS.fields if sql_type == "BIGINT"}
FLAGS = {name for name, sql_type, _ in HEURISTICS.fields if sql_type == "BOOLEAN"}
RULES = {rule.name: rule for rules in RULE_SETS.values() for rule in rules}

FRAGMENTS = (
    *("the", "The", "of", "(and)", '"That,"', "cat", "x", "3", "é", "漢字", "-", "--", "*", "•", "‣x", "#", "##x"),
    *(".", "!", "?", "...", "....", "…", ". ", "? ", '."', ".’", "!)", "。", "।", "'", "”", "{", "}", "'s"),
    *("javascript", "JavaScript", "java script", "Terms of Use", "terms of\nuse", "privacy policy", "cookie policy"),
    *(
        "uses cookies",
        "use of cookies",
        "use cookies",
        "cookies",
        "lorem ipsum",
        "LOREM IPSUM",
        "ipsum",
        "coo\u212aies",
    ),
    *(" ", " ", " ", "\n", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u2028", "\n \n", "w" * 30, "y" * 1001),
)
pieces = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join)
few_words = st.lists(st.sampled_from(("a", "b", "a", "cc", "a\n", "b\n\n", "cc\n")), max_size=120).map(" ".join)
"""Texts of so few words that everything repeats: lines, paragraphs and n-grams, overlapping too."""


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Let no test's clock run while kernels are compiled."""
    KERNEL(pa.array(["the é."]))


def kernel(texts: Sequence[str | None]) -> list[dict[str, Any] | None]:
    return KERNEL(pa.array(texts, pa.string())).to_pylist()


def of(text: str, field: str) -> Any:
    (values,) = kernel([text])
    assert values is not None
    return values[field]


@pytest.mark.parametrize("plane", PLANES)
def test_every_code_point_equals_the_reference(plane: int) -> None:
    """As a word, at both ends of one, at the end of a line, and as its start. One of 64 of those that are all alike."""
    characters = [c for place, c in enumerate(plane_characters(plane)) if not is_uniform(c) or place % 64 == 0]
    chunks = [characters[start : start + 32] for start in range(0, len(characters), 32)]
    texts = ["\n".join(f"{c}the{c} x. {c} y{c}" for c in chunk) for chunk in chunks]
    wrong = [(ascii(t), g) for t, g in zip(texts, kernel(texts), strict=True) if g != reference(t)]
    assert not wrong, wrong[:2]


@given(st.lists(st.one_of(mixed_texts, ascii_texts, pieces, few_words, st.none()), max_size=4))
@settings(max_examples=400, deadline=None)
def test_random_texts_equal_the_reference(texts: list[str | None]) -> None:
    assert kernel(texts) == [None if text is None else reference(text) for text in texts]


@given(pieces, st.lists(st.sampled_from(("é", "cat", "x", "漢字", "s", "the")), min_size=1), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_settings_reach_the_kernel(text: str, stop_words: list[str], line_words: int) -> None:
    run = open_heuristics(HeuristicsSettings(stop_words=tuple(stop_words), c4_line_words=line_words))
    assert run(pa.array([text])).to_pylist() == [reference(text, stop_words, line_words)]


@given(st.lists(broken_bytes, max_size=4))
@settings(max_examples=100, deadline=None)
def test_bytes_that_are_not_utf8_count_as_replacement_characters(values: list[bytes]) -> None:
    expected = [reference(value.decode("utf-8", "replace")) for value in values]
    binaries = pa.array(values, pa.binary())
    assert KERNEL(binaries).to_pylist() == expected
    assert KERNEL(binaries.view(pa.string())).to_pylist() == expected


def test_every_letter_with_another_lower_case_is_found_as_a_stop_word() -> None:
    letters = [c for plane in (0, 1) for c in plane_characters(plane) if is_letter(c) and compared(c) != c]
    stops = stop_word_table([compared(letter) for letter in letters])
    found = text_heuristics(pa.array(letters), stops, 3).field("stop_words").to_pylist()
    assert len(letters) > 1000
    assert [letter for letter, count in zip(letters, found, strict=True) if count != 1] == []


EXAMPLES: list[tuple[str, str, Any]] = [
    ("words", "a -- b\n#", 4),
    ("gopher_words", "a -- b\n#", 2),
    ("mean_word_length", "The cat -- sleeps", 4.0),  # (3 + 3 + 6) / 3
    ("mean_word_length", "é漢 e", 1.5),  # (2 + 1) / 2 code points
    ("hash_ratio", "# one ## two #x", 0.8),  # (1 + 2 + 1) / 5 words
    ("ellipsis_ratio", "wait... what… well ......", 1.0),  # (1 + 1 + 2) / 4 words
    ("bullet_lines", "• a\n- b\n* c\n-5 d\n  ‣e\n\nplain", 0.666667),  # all but -5 and plain: 4 / 6 lines
    ("ellipsis_lines", "a...\nb… \nc\nd..", 0.5),  # 2 / 4 lines
    ("alphabetic_words", "one 2 3rd -- é", 0.6),  # one, 3rd, é: 3 / 5 words
    ("stop_words", 'The "cat" (and) THE dog with, them', 3),  # the, and, with
    ("duplicate_lines", "a\nb\na \nb\nc", 0.4),  # the second a and b: 2 / 5 lines
    ("duplicate_line_characters", "abc\nde\n abc\r\nfgh", 0.272727),  # 3 / (3 + 2 + 3 + 3)
    ("duplicate_line_characters", "a b\na b", 0.5),  # the space within a line counts: 3 / 6
    ("duplicate_paragraphs", "ab\ncd\n\nx\n\n\nab\r\ncd\n \nab", 0.25),  # the second ab cd: 1 / 4
    ("duplicate_paragraphs", "ab\ncd\n\ncd\nab", 0.0),  # other lines come first
    ("duplicate_paragraph_characters", "ab\ncd\n\nx\n\n\nab\r\ncd\n \nab", 0.363636),  # 4 / (4 + 1 + 4 + 2)
    ("top_2_gram", "a bc a bc a bc d", 0.9),  # "a bc" three times: 9 / 10 characters
    ("top_2_gram", "x x x x", 1.0),  # three times, overlapping: all 4 / 4, not 6 / 4
    ("top_2_gram", "aa b aa b c ddd c ddd", 0.571429),  # "aa b" 6 and "c ddd" 8 of 14, both twice
    ("top_2_gram", "a b c d", 0.0),  # none occurs twice
    ("top_3_gram", "a b c d a b c e", 0.75),  # "a b c" twice: 6 / 8
    ("top_4_gram", "a b c d e a b c d f", 0.8),  # "a b c d" twice: 8 / 10
    ("duplicate_5_grams", "a b c d e f a b c d e g", 0.833333),  # "a b c d e" twice: 10 / 12
    ("duplicate_5_grams", "a b c d e f x a b c d e f", 0.923077),  # two of them, overlapping: 12 / 13, not 20 / 13
    ("duplicate_6_grams", "a b c d e f x a b c d e f", 0.923077),
    ("duplicate_7_grams", "a b c d e f x a b c d e f", 0.0),
    ("duplicate_10_grams", "z " * 11, 1.0),
    ("duplicate_10_grams", "z " * 10, 0.0),  # it occurs once
    ("c4_sentences", "One is here. Two is here! Three?\nNone of this", 3),
    ("c4_sentences", "It ends (so it does.) Here: 3.5 ends nothing.", 2),
    ("c4_sentences", "He waits . . . and goes.", 2),
    ("c4_sentences", "He said “Go now.” Then (so they say!) he left.", 3),
    ("c4_sentences_any_ending", "One is here. Two is here! Three?\nNone of this", 4),
    ("lorem_ipsum", "A text.\nLorem Ipsum dolor", True),
    ("lorem_ipsum", "lorem\nipsum", False),
    ("curly_bracket", "if (x) {", True),
    ("curly_bracket", "}", False),
    ("lines_ending_in_punctuation", 'One.\nTwo? \n三。\nहिन्दी।\nFive\n"Six."', 0.666667),  # 4 / 6 lines
    ("short_lines", f"{'x' * 29}\n{'x' * 30}\n  {'x' * 28}  \n\n{'y' * 40}", 0.5),  # 2 / 4 lines
    ("line_feeds_per_word", "a\nb\n\nc\n", 1.333333),  # 4 / 3
]


@pytest.mark.parametrize(("field", "text", "value"), EXAMPLES)
def test_examples_counted_by_hand(field: str, text: str, value: Any) -> None:
    assert of(text, field) == value


def test_every_field_has_an_example() -> None:
    shown = {field for field, _, _ in EXAMPLES} | {"c4_lines_kept", "duplicate_8_grams", "duplicate_9_grams"}
    assert shown == {name for name, _, _ in HEURISTICS.fields}


@pytest.mark.parametrize("n", range(5, 11))
def test_a_repeated_n_gram_covers_its_characters(n: int) -> None:
    words = [chr(ord("a") + i) for i in range(n)]
    (got,) = kernel([" ".join([*words, "-", *words])])
    assert got is not None
    assert got[f"duplicate_{n}_grams"] == round(2 * n / (2 * n + 1), 6)
    assert got.get(f"duplicate_{n + 1}_grams", 0.0) == 0.0


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("One two three.", True),
        ("One two three", False),
        ("One two.", False),
        ('She said "go on"', True),
        ("She said “go on”", True),
        ("Is it so?", True),
        ("To be continued...", False),
        ("To be continued…", False),
        ("Please enable JavaScript here.", False),
        ("Read our Privacy Policy first.", False),
        ("We say how we use cookies.", False),
        ("We bake our cookies here.", True),
        ("It starts with lorem ipsum.", True),  # that is a matter of the page
        (f"A {'x' * 1000} word.", True),
        (f"A {'x' * 1001} word.", False),
    ],
)
def test_the_lines_that_c4_keeps(line: str, kept: bool) -> None:
    assert of(line, "c4_lines_kept") == float(kept)
    assert of(f"{line}\nThis line is kept.\nThis isn't", "c4_lines_kept") == round((1 + kept) / 3, 6)


def test_empty_blank_and_null_texts_have_declared_outcomes() -> None:
    *without_words, null = kernel(["", " \n\n\u00a0", None])
    assert null is None
    for values in without_words:
        assert values is not None
        assert {name: values[name] for name in COUNTS} == dict.fromkeys(COUNTS, 0)
        assert {name: values[name] for name in FLAGS} == dict.fromkeys(FLAGS, False)
        assert all(value is None for name, value in values.items() if name not in COUNTS | FLAGS)
    (dashes,) = kernel(["-- --"])
    assert dashes is not None and dashes["mean_word_length"] is None and dashes["alphabetic_words"] == 0.0


def test_slices_chunks_and_neighbours_change_nothing() -> None:
    texts = ["x", "the a b a b a b", None, "The\n\nthe\n\n" * 3000, "", "é…\né…", "a b a b"]
    texts += ["we use coo", "kies for java", "script and lorem i", "psum."]  # what neighbours say together counts not
    expected = [None if text is None else reference(text) for text in texts]
    whole = pa.array(texts, pa.large_string())
    assert KERNEL(whole).to_pylist() == expected
    assert KERNEL(whole.slice(1, 8)).to_pylist() == expected[1:9]
    assert KERNEL(pa.chunked_array([whole.slice(4), whole.slice(0, 4)])).to_pylist() == expected[4:] + expected[:4]
    assert [row for text in texts for row in kernel([text])] == expected
    assert len(KERNEL(pa.array([], pa.string()))) == 0
    assert KERNEL(pa.array([None], pa.null())).to_pylist() == [None]


def test_many_different_words_are_counted_as_few_are() -> None:
    """Tables grow with what they hold: 30,000 words, of which the first 1,000 come again at the end."""
    words = [f"{number:05}" for number in range(30_000)]
    (got,) = kernel([" ".join([*words, "-----", *words[:1000]])])
    assert got is not None and got["words"] == 31_001
    assert got["duplicate_5_grams"] == got["duplicate_10_grams"] == round(2000 / 31_001, 6)
    assert got["top_2_gram"] == round(4 / 31_001, 6)


@pytest.mark.parametrize("word", ["a ", "a\n", "a\n\n"])
def test_one_word_a_million_times_takes_time_in_proportion(word: str) -> None:
    seconds = []
    for times in (250_000, 1_000_000):
        texts = pa.array([word * times])
        start = time.process_time()
        (got,) = KERNEL(texts).to_pylist()
        seconds.append(time.process_time() - start)
        assert got["words"] == times and got["top_4_gram"] == got["duplicate_10_grams"] == 1.0
    assert seconds[1] < 8 * max(seconds[0], 0.05)


def test_the_declared_fields_are_the_struct() -> None:
    arrow = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}
    struct = KERNEL(pa.array(["a"])).type
    assert [(f.name, f.type) for f in struct] == [(name, arrow[sql_type]) for name, sql_type, _ in HEURISTICS.fields]


@pytest.mark.parametrize("words", [(), ("",), ("a b",), ("The",), ("l'",), (" the",)])
def test_stop_words_that_could_never_be_found_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        HeuristicsSettings(stop_words=words)


PUBLISHED: dict[str, tuple[str, tuple[float, ...], tuple[float, ...]]] = {
    # rule: its field, values that stay and values that go, on both sides of the published number
    "gopher_words": ("gopher_words", (50, 100_000), (49, 100_001)),
    "gopher_mean_word_length": ("mean_word_length", (3, 10), (2.999999, 10.000001)),
    "gopher_hash_ratio": ("hash_ratio", (0.1,), (0.100001,)),
    "gopher_ellipsis_ratio": ("ellipsis_ratio", (0.1,), (0.100001,)),
    "gopher_bullet_lines": ("bullet_lines", (0.9,), (0.900001,)),
    "gopher_ellipsis_lines": ("ellipsis_lines", (0.3,), (0.300001,)),
    "gopher_alphabetic_words": ("alphabetic_words", (0.8,), (0.799999,)),
    "gopher_stop_words": ("stop_words", (2,), (1,)),
    "gopher_duplicate_lines": ("duplicate_lines", (0.3,), (0.300001,)),
    "gopher_duplicate_paragraphs": ("duplicate_paragraphs", (0.3,), (0.300001,)),
    "gopher_duplicate_line_characters": ("duplicate_line_characters", (0.2,), (0.200001,)),
    "gopher_duplicate_paragraph_characters": ("duplicate_paragraph_characters", (0.2,), (0.200001,)),
    "gopher_top_2_gram": ("top_2_gram", (0.2,), (0.200001,)),
    "gopher_top_3_gram": ("top_3_gram", (0.18,), (0.180001,)),
    "gopher_top_4_gram": ("top_4_gram", (0.16,), (0.160001,)),
    "gopher_duplicate_5_grams": ("duplicate_5_grams", (0.15,), (0.150001,)),
    "gopher_duplicate_6_grams": ("duplicate_6_grams", (0.14,), (0.140001,)),
    "gopher_duplicate_7_grams": ("duplicate_7_grams", (0.13,), (0.130001,)),
    "gopher_duplicate_8_grams": ("duplicate_8_grams", (0.12,), (0.120001,)),
    "gopher_duplicate_9_grams": ("duplicate_9_grams", (0.11,), (0.110001,)),
    "gopher_duplicate_10_grams": ("duplicate_10_grams", (0.1,), (0.100001,)),
    "c4_sentences": ("c4_sentences", (5,), (4,)),
    "c4_lorem_ipsum": ("lorem_ipsum", (False,), (True,)),
    "c4_curly_bracket": ("curly_bracket", (False,), (True,)),
    "fineweb_lines_ending_in_punctuation": ("lines_ending_in_punctuation", (0.120001,), (0.12,)),
    "fineweb_duplicate_line_characters": ("duplicate_line_characters", (0.099999,), (0.1,)),
    "fineweb_short_lines": ("short_lines", (0.669999,), (0.67,)),
}


def keeps(rule: PublishedRule, field: str, value: float | None) -> int | None:
    """Evaluate a rule's condition on one value, as SQL does."""
    query = f"SELECT {rule.keep.format(column='h')} FROM (SELECT ? AS {field}) AS h"
    outcome: int | None = sqlite3.connect(":memory:").execute(query, (value,)).fetchone()[0]
    return outcome


@pytest.mark.parametrize("name", PUBLISHED)
def test_rules_have_the_published_numbers(name: str) -> None:
    field, stays, goes = PUBLISHED[name]
    assert [keeps(RULES[name], field, value) for value in stays] == [1] * len(stays)
    assert [keeps(RULES[name], field, value) for value in goes] == [0] * len(goes)
    assert keeps(RULES[name], field, None) is None


def test_rules_name_their_set_their_source_and_a_field() -> None:
    assert list(RULES) == list(PUBLISHED) and list(RULE_SETS) == ["gopher", "c4", "fineweb"]
    fields = {name for name, _, _ in HEURISTICS.fields}
    papers = {"gopher": "arXiv 2112.11446", "c4": "JMLR 21(140), section 2.2", "fineweb": "2406.17557, section 3.6"}
    for key, rules in RULE_SETS.items():
        for rule in rules:
            assert rule.name.startswith(f"{key}_") and papers[key] in rule.source and rule.meaning
            assert set(re.findall(r"\{column\}\.(\w+)", rule.keep)) <= fields
