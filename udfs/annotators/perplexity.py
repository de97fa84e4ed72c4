"""perplexity: how surprising an n-gram language model finds a text (CCNet: Wenzek et al. 2019, arXiv 1911.00359, 3.3).

Models are KenLM's, ARPA or binary, over words as ``words_v1`` cuts them (lower case, no punctuation) or over what stands
between white space. The package ``kenlm`` comes as source and needs a compiler, so it is an extra: corpus-weir[perplexity].
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from jobs.runtime.errors import SettingsError
from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.classifying import SCORE_DECIMALS, can_be_scored, scattered, unscored
from udfs.model_files import loaded, sha256_of
from udfs.words import words_v1

INSTALL = "it needs the package kenlm, which is compiled when it is installed: pip install 'corpus-weir[perplexity]'"


class PerplexitySettings(AnnotatorSettings):
    """Settings of the perplexity annotator."""

    kind: Literal["perplexity"] = Field("perplexity", description="Which annotator")
    model: str = Field(description="Path of a KenLM model, ARPA or binary")
    words: Literal["words_v1", "white_space"] = Field(
        "words_v1",
        description="What the model's words are: words_v1, or runs of anything but white space, as they stand",
    )
    characters: int | None = Field(
        100_000, ge=1, description="Read so many characters from the text's beginning; null: all"
    )

    @field_validator("model")
    @classmethod
    def _exists(cls, value: str) -> str:
        if not Path(value).is_file():
            raise ValueError("no such file")
        return value


def load_kenlm(path: str) -> Any:
    """A KenLM model, mapped into memory where it is binary.

    Raises:
        OSError: if the file is none.
    """
    import kenlm

    return kenlm.Model(path)


def resolve_perplexity(settings: PerplexitySettings) -> PerplexitySettings:
    """The settings as they are, if the model can be read.

    Raises:
        SettingsError: if kenlm is not installed, or the file is no model of its.
    """
    if importlib.util.find_spec("kenlm") is None:
        raise SettingsError(f"the annotator perplexity can't be used here: {INSTALL}")
    try:
        load_kenlm(settings.model)
    except OSError as error:
        raise SettingsError(f"the model {settings.model} is no KenLM model: {error}") from None
    return settings


def open_perplexity(settings: PerplexitySettings) -> Kernel:
    """The kernel of one task."""
    model = loaded("kenlm", settings.model, load_kenlm)

    def kernel(texts: pa.Array) -> pa.StructArray:
        return perplexities(model, texts, words=settings.words, characters=settings.characters)

    return kernel


def perplexities(model: Any, texts: pa.Array, *, words: str, characters: int | None) -> pa.StructArray:
    """Perplexity of each line's words, the end of the line among them, over the whole text.

    perplexity = 10^(-log10 P / (words + lines)), where P is the product of the lines' probabilities, each with the
    mark for the line's end. A line is what stands between line feeds and has words.

    Args:
        model: Has ``full_scores(line)``, which gives (log10 probability, n-gram length, unknown) for each word and the
            line's end.
        texts: n strings, without nulls.
        words: ``words_v1`` or ``white_space``.
        characters: Code points to read.

    Returns:
        n structs: ``perplexity`` (six decimals), ``words``, ``unknown`` (words that the model doesn't know); NULL for a
        text without letters, for which ``unscored`` says why.
    """

    cut = texts if characters is None else pc.utf8_slice_codeunits(texts.cast(pa.large_string()), 0, characters)
    mask = can_be_scored(cut)
    found: list[tuple[float, int, int]] = []
    for text in cut.filter(mask).to_pylist():
        total, count, unknown, ends = 0.0, 0, 0, 0
        for line in _lines(text, words):
            for logarithm, _, is_unknown in model.full_scores(line):
                total += logarithm
                unknown += bool(is_unknown)
                count += 1
            ends += 1
        found.append((10.0 ** (-total / count) if count else float("nan"), count - ends, unknown))
    values = np.round(np.array([row[0] for row in found], np.float64), SCORE_DECIMALS)
    columns = [
        pa.array(values, pa.float64(), from_pandas=True),
        pa.array([row[1] for row in found], pa.int64()),
        pa.array([row[2] for row in found], pa.int64()),
    ]
    placed = [scattered(mask, column) for column in columns]
    return pa.StructArray.from_arrays([*placed, unscored(mask)], names=["perplexity", "words", "unknown", "unscored"])


def _lines(text: str, words: str) -> list[str]:
    lines = text.split("\n")
    if words == "white_space":
        return [line for line in lines if line.split()]
    stream = words_v1(pa.array(lines, pa.large_string()))
    return [" ".join(found) for found in (stream.of(number) for number in range(len(lines))) if found]


PERPLEXITY = Annotator(
    kind="perplexity",
    version=1,
    settings=PerplexitySettings,
    fields=(
        ("perplexity", "DOUBLE", "10^(-log10 P / (words + lines)); NULL for a text without letters"),
        ("words", "BIGINT", "words that were read"),
        ("unknown", "BIGINT", "of these, words that the model doesn't know"),
        ("unscored", "STRING", "why there is no perplexity: no_text_to_score"),
    ),
    open=open_perplexity,
    resources=lambda settings: sha256_of(settings.model),
    resolve=resolve_perplexity,
    files=lambda settings: (settings.model,),
    places=frozenset({"model"}),
)
