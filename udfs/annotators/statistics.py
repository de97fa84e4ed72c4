"""statistics: lengths and shares of character classes, from which simple quality rules are made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.statistics import text_statistics


class StatisticsSettings(AnnotatorSettings):
    """Settings of the statistics annotator: there is nothing to set."""

    kind: Literal["statistics"] = Field("statistics", description="Which annotator")


def open_statistics(settings: StatisticsSettings) -> Kernel:
    """The kernel of one task."""
    return text_statistics


STATISTICS = Annotator(
    kind="statistics",
    version=1,
    settings=StatisticsSettings,
    fields=(
        ("bytes", "BIGINT", "UTF-8 bytes"),
        ("characters", "BIGINT", "code points"),
        ("words", "BIGINT", "runs of characters that are not white space"),
        ("lines", "BIGINT", "lines"),
        ("longest_word", "BIGINT", "code points of the longest word"),
        ("letters", "DOUBLE", "share of characters that are letters or marks; NULL for an empty text"),
        ("digits", "DOUBLE", "share of characters that are digits"),
        ("white_space", "DOUBLE", "share of characters that are white space"),
        ("symbols", "DOUBLE", "share of characters that are punctuation or symbols"),
        ("upper_case", "DOUBLE", "share of letters that are upper case"),
    ),
    open=open_statistics,
)
