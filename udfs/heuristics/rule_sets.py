"""The published quality rules as data: ready conditions over the annotator ``heuristics``.

A document stays if every rule of a set keeps it. The numbers are the papers', and what is equal to one stays or goes as
the paper says: Gopher removes what is above or below a threshold, FineWeb also what is equal to it. Shares are compared
as they are stored, in whole millionths.
"""

from __future__ import annotations

from dataclasses import dataclass

GOPHER = "Rae et al. 2021, arXiv 2112.11446, appendix A.1.1"
GOPHER_TABLE = "Rae et al. 2021, arXiv 2112.11446, appendix A.1.1, table A1"
C4 = "Raffel et al. 2020, JMLR 21(140), section 2.2"
FINEWEB = "Penedo et al. 2024, arXiv 2406.17557, section 3.6"


@dataclass(frozen=True)
class PublishedRule:
    """One rule.

    Attributes:
        name: Its name, the reason in ``decisions``.
        keep: An SQL condition, with ``{column}`` for the annotator's column.
        source: Paper and section.
        meaning: What stays, and what is to be known about it.
    """

    name: str
    keep: str
    source: str
    meaning: str


def _repetition(field: str, most: str, what: str) -> PublishedRule:
    return PublishedRule(
        f"gopher_{field}", f"{{column}}.{field} <= {most}", GOPHER_TABLE, f"{what}: a share of {most} at most"
    )


_GOPHER_RULES = (
    PublishedRule(
        "gopher_words",
        "{column}.gopher_words BETWEEN 50 AND 100000",
        GOPHER,
        "50 to 100,000 words (words without a letter, mark or number aren't counted)",
    ),
    PublishedRule(
        "gopher_mean_word_length",
        "{column}.mean_word_length BETWEEN 3 AND 10",
        GOPHER,
        "words of 3 to 10 characters on average",
    ),
    PublishedRule("gopher_hash_ratio", "{column}.hash_ratio <= 0.1", GOPHER, "at most one # for 10 words"),
    PublishedRule(
        "gopher_ellipsis_ratio", "{column}.ellipsis_ratio <= 0.1", GOPHER, "at most one ellipsis for 10 words"
    ),
    PublishedRule(
        "gopher_bullet_lines", "{column}.bullet_lines <= 0.9", GOPHER, "at most 90% of the lines start with a bullet"
    ),
    PublishedRule(
        "gopher_ellipsis_lines", "{column}.ellipsis_lines <= 0.3", GOPHER, "at most 30% of the lines end in an ellipsis"
    ),
    PublishedRule(
        "gopher_alphabetic_words", "{column}.alphabetic_words >= 0.8", GOPHER, "at least 80% of the words have a letter"
    ),
    PublishedRule(
        "gopher_stop_words",
        "{column}.stop_words >= 2",
        GOPHER,
        "at least two of the stop words occur; the eight of the paper are English, other languages need other ones",
    ),
    _repetition("duplicate_lines", "0.3", "lines that repeat an earlier line"),
    _repetition("duplicate_paragraphs", "0.3", "paragraphs that repeat an earlier paragraph"),
    _repetition("duplicate_line_characters", "0.2", "characters in lines that repeat an earlier line"),
    _repetition("duplicate_paragraph_characters", "0.2", "characters in paragraphs that repeat an earlier paragraph"),
    _repetition("top_2_gram", "0.2", "characters in the most frequent pair of words"),
    _repetition("top_3_gram", "0.18", "characters in the most frequent 3-gram of words"),
    _repetition("top_4_gram", "0.16", "characters in the most frequent 4-gram of words"),
    _repetition("duplicate_5_grams", "0.15", "characters in 5-grams of words that occur more than once"),
    _repetition("duplicate_6_grams", "0.14", "characters in 6-grams of words that occur more than once"),
    _repetition("duplicate_7_grams", "0.13", "characters in 7-grams of words that occur more than once"),
    _repetition("duplicate_8_grams", "0.12", "characters in 8-grams of words that occur more than once"),
    _repetition("duplicate_9_grams", "0.11", "characters in 9-grams of words that occur more than once"),
    _repetition("duplicate_10_grams", "0.1", "characters in 10-grams of words that occur more than once"),
)

_C4_RULES = (
    PublishedRule(
        "c4_sentences",
        "{column}.c4_sentences >= 5",
        C4,
        "at least 5 sentences in the lines that C4 keeps. The paper takes the other lines out; here the text stays as "
        "it is. The paper's version 4 on arXiv and the released code want 3 sentences, in lines of 5 words "
        "(the annotator's setting c4_line_words)",
    ),
    PublishedRule("c4_lorem_ipsum", "NOT {column}.lorem_ipsum", C4, "'lorem ipsum' doesn't occur, in either case"),
    PublishedRule(
        "c4_curly_bracket",
        "NOT {column}.curly_bracket",
        C4,
        "no opening curly bracket occurs: natural text has none, code has many",
    ),
)

_FINEWEB_RULES = (
    PublishedRule(
        "fineweb_lines_ending_in_punctuation",
        "{column}.lines_ending_in_punctuation > 0.12",
        FINEWEB,
        "more than 12% of the lines end in a character that is Sentence_Terminal. This is the first of FineWeb's own "
        "three rules; FineWeb applies Gopher's rules before them, and those of C4 but the one about terminal "
        "punctuation, for which a rule on c4_sentences_any_ending stands instead of c4_sentences",
    ),
    PublishedRule(
        "fineweb_duplicate_line_characters",
        "{column}.duplicate_line_characters < 0.1",
        FINEWEB,
        "less than 10% of the characters are in lines that repeat an earlier line. The code that made FineWeb "
        "(datatrove) has 1% as its default",
    ),
    PublishedRule(
        "fineweb_short_lines",
        "{column}.short_lines < 0.67",
        FINEWEB,
        "less than 67% of the lines have fewer than 30 characters (datatrove counts those of 30 too)",
    ),
)

RULE_SETS: dict[str, tuple[PublishedRule, ...]] = {
    "gopher": _GOPHER_RULES,
    "c4": _C4_RULES,
    "fineweb": _FINEWEB_RULES,
}
"""The rules of each paper, in the order in which a document's reason is looked for."""
