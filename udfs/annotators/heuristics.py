"""heuristics: the values behind the published quality rules of Gopher, C4 and FineWeb.

Sources: *Gopher* is Rae et al. 2021, arXiv 2112.11446, appendix A.1.1 with table A1; *C4* is Raffel et al. 2020,
JMLR 21(140), section 2.2; *FineWeb* is Penedo et al. 2024, arXiv 2406.17557, section 3.6. The rules themselves are in
``udfs.heuristics.rule_sets``. Where the papers don't say what a word, a line or a duplicate is, it is declared here and
in ``udfs.heuristics.reading``:

- A word is a run of characters that aren't white space. Words are equal if their bytes are, case and punctuation
  included, and characters are code points.
- Gopher's number of words and their mean length leave out words without a letter, mark or number (a lone dash).
  Everything else is a share of all words.
- A line is the text between two line feeds, without the white space at its ends; blank lines are none. A paragraph is
  a run of lines without a blank one between. Its characters are those of its lines.
- A line or paragraph is a duplicate if an equal one stands before it: the first is none. Of n-grams that occur more than
  once all occurrences count, for Gopher counts the characters within them. No character counts twice.
- The characters of n-grams are a share of the characters of all words, without white space, so 1 is possible.

C4 was made by taking lines out of pages. Here no text is ever changed: a document is judged as a whole, by what its
lines would be. Of C4's rules the list of bad words isn't shipped, and what is about the whole corpus (three-sentence
spans that occur twice) or language is the business of other jobs. That a line with a word of over 1000 characters goes
is in C4's released code, not in the paper.

The version of the paper in JMLR asks for lines of 3 words and pages of 5 sentences; the version 4 on arXiv
(1910.10683), like the released code, for lines of 5 words and pages of 3 sentences: set ``c4_line_words`` to 5 for that.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

import pyarrow as pa
from pydantic import Field, field_validator

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.heuristics.measures import text_heuristics
from udfs.heuristics.stop_words import stop_word_table

ENGLISH_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""The eight words of Gopher's rule."""


class HeuristicsSettings(AnnotatorSettings):
    """Settings of the heuristics annotator."""

    kind: Literal["heuristics"] = Field("heuristics", description="Which annotator")
    stop_words: tuple[str, ...] = Field(
        ENGLISH_STOP_WORDS, min_length=1, description="Words of which Gopher wants two, in lower case"
    )
    c4_line_words: int = Field(
        3, ge=1, description="Words that a line must have for C4: 3 in JMLR, 5 in the paper's version 4 on arXiv"
    )

    @field_validator("stop_words")
    @classmethod
    def _comparable(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            if word.split() != [word]:
                raise ValueError(f"{word!r} is not one word: stop words are neither empty nor with white space")
            if word != word.lower():
                raise ValueError(
                    f"{word!r} could never be found: stop words are compared in lower case, write {word.lower()!r}"
                )
            if not all(_is_wordy(end) for end in (word[0], word[-1])):
                raise ValueError(
                    f"{word!r} could never be found: what is no letter or number at the ends of a word is left out"
                )
        return words


def _is_wordy(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def open_heuristics(settings: HeuristicsSettings) -> Kernel:
    """The kernel of one task."""
    stops = stop_word_table(settings.stop_words)

    def kernel(texts: pa.Array) -> pa.StructArray:
        return text_heuristics(texts, stops, settings.c4_line_words)

    return kernel


_N_GRAMS = (
    *((f"top_{n}_gram", "DOUBLE", f"share of characters in the most frequent {n}-gram") for n in (2, 3, 4)),
    *((f"duplicate_{n}_grams", "DOUBLE", f"share of characters in repeated {n}-grams") for n in range(5, 11)),
)

HEURISTICS = Annotator(
    kind="heuristics",
    version=1,
    settings=HeuristicsSettings,
    fields=(
        ("words", "BIGINT", "runs of characters that aren't white space; all shares are NULL without any"),
        ("gopher_words", "BIGINT", "Gopher A.1.1: words with a letter, mark or number"),
        ("mean_word_length", "DOUBLE", "characters per such word; NULL if there is none"),
        ("hash_ratio", "DOUBLE", "# per word"),
        ("ellipsis_ratio", "DOUBLE", "... and … per word"),
        ("bullet_lines", "DOUBLE", "share of lines that start with • ‣ ⁃ ▪ ● ◦, or with - or * and white space"),
        ("ellipsis_lines", "DOUBLE", "share of lines that end in ... or …"),
        ("alphabetic_words", "DOUBLE", "share of words with a letter"),
        ("stop_words", "BIGINT", "how many of the setting's stop words occur"),
        ("duplicate_lines", "DOUBLE", "Gopher table A1: share of lines that repeat an earlier one"),
        ("duplicate_line_characters", "DOUBLE", "share of characters in such lines (for FineWeb too)"),
        ("duplicate_paragraphs", "DOUBLE", "share of paragraphs that repeat an earlier one"),
        ("duplicate_paragraph_characters", "DOUBLE", "share of characters in such paragraphs"),
        *_N_GRAMS,
        (
            "c4_lines_kept",
            "DOUBLE",
            "C4: share of lines with enough words, none over 1000 characters, ending in . ! ? or a quotation mark but no "
            "ellipsis, without javascript and policy phrases",
        ),
        ("c4_sentences", "BIGINT", "sentences in such lines"),
        ("c4_sentences_any_ending", "BIGINT", "the same, whatever the lines end in (FineWeb's use of C4)"),
        ("lorem_ipsum", "BOOLEAN", "whether 'lorem ipsum' occurs"),
        ("curly_bracket", "BOOLEAN", "whether { occurs"),
        ("lines_ending_in_punctuation", "DOUBLE", "FineWeb 3.6: share of lines that end in a Sentence_Terminal"),
        ("short_lines", "DOUBLE", "share of lines of fewer than 30 characters"),
        ("line_feeds_per_word", "DOUBLE", "line feeds per word"),
    ),
    open=open_heuristics,
)
