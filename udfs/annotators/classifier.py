"""What both classifier annotators share: their settings, how these are completed from a model's card, their columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from jobs.runtime.errors import SettingsError
from udfs.annotators.base import AnnotatorSettings
from udfs.classifying import as_scores, can_be_scored, prepared, scattered, unscored

CARD = "card.json"
CHARACTERS = 100_000
"""Code points that are read of a text where neither settings nor a card say it."""

FIELDS = (
    ("score", "DOUBLE", "probability of the positive label, 0 to 1; NULL for a text without letters"),
    ("label", "STRING", "most probable label"),
    ("probability", "DOUBLE", "its probability"),
    ("unscored", "STRING", "why there is no score: no_text_to_score"),
)


class ClassifierSettings(AnnotatorSettings):
    """Settings of a classifier."""

    model: str = Field(description="The folder that `weir train-classifier` made, or the path of a model file")
    positive: str | None = Field(None, description="Label whose probability is the score; default: the card's")
    fold_case: bool | None = Field(None, description="Read a lower-case copy; default: the card's, else no")
    characters: int | Literal["all"] | None = Field(
        None, description="Read so many characters from the text's beginning; default: the card's, else 100000"
    )

    @field_validator("model")
    @classmethod
    def _exists(cls, value: str) -> str:
        if not (Path(value) / CARD).is_file() and not Path(value).is_file():
            raise ValueError(f"neither a file nor a folder with a {CARD}")
        return value

    @field_validator("characters")
    @classmethod
    def _some(cls, value: int | str | None) -> int | str | None:
        if isinstance(value, int) and value < 1:
            raise ValueError("at least 1, or all")
        return value

    @property
    def limit(self) -> int | None:
        """Code points to read; None: all."""
        return None if self.characters == "all" else int(self.characters or CHARACTERS)


def card_of(model: str) -> dict[str, Any]:
    """The card in a model's folder; empty for a bare file.

    Raises:
        SettingsError: if it can't be read.
    """
    file = Path(model) / CARD
    if not file.is_file():
        return {}
    try:
        card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        _ = card["model"], card["sha256"], card["kind"]
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(f"{file} is no card of a model: {type(error).__name__}: {error}") from None
    return card


def model_file(settings: ClassifierSettings) -> str:
    """The path of the model's file.

    Raises:
        SettingsError: if the card is about another kind of model, or about another file than lies beside it.
    """
    from udfs.model_files import sha256_of

    card = card_of(settings.model)
    if not card:
        return settings.model
    if card["kind"] != settings.kind:
        raise SettingsError(f"{settings.model} holds a model of kind {card['kind']}, not {settings.kind}")
    path = str(Path(settings.model) / str(card["model"]))
    try:
        found = sha256_of(path)
    except OSError as error:
        raise SettingsError(f"the model that {Path(settings.model) / CARD} is about can't be read: {error}") from None
    if found != card["sha256"]:
        raise SettingsError(
            f"{path} is not the model that its card is about (sha-256 {found[:16]}, the card says {str(card['sha256'])[:16]}). "
            "Train it again, or name the model file itself with its `positive` label."
        )
    return path


def completed(settings: ClassifierSettings) -> ClassifierSettings:
    """Settings with the path of the file and everything that the card says in their place; the model isn't loaded."""
    card = card_of(settings.model)
    preparation = card.get("preparation", {})
    positive = settings.positive if settings.positive is not None else card.get("positive")
    characters = settings.characters if settings.characters is not None else preparation.get("characters", CHARACTERS)
    fold_case = settings.fold_case if settings.fold_case is not None else bool(preparation.get("fold_case", False))
    return settings.model_copy(
        update={
            "model": model_file(settings),
            "positive": positive,
            "fold_case": fold_case,
            "characters": "all" if characters is None else characters,
        }
    )


def check_labels(model: str, positive: str | None, labels: Sequence[str]) -> None:
    """A score needs a label to be the probability of.

    Raises:
        SettingsError: for a model with one label, or no positive label, or one that the model doesn't know.
    """
    known = ", ".join(labels[:20]) + (" ..." if len(labels) > 20 else "")
    if len(labels) < 2:
        raise SettingsError(f"the model {model} knows only one label ({known}): it can't tell documents apart")
    if positive is None:
        raise SettingsError(f"the model {model} needs `positive`, the label whose probability is the score: {known}")
    if positive not in labels:
        raise SettingsError(f"the model {model} has no label '{positive}'; it has: {known}")


def what_it_depends_on(settings: ClassifierSettings) -> str:
    """What a score depends on beside the settings as given: the model's hash, and what its card says."""
    from udfs.model_files import sha256_of

    resolved = completed(settings)
    return f"{sha256_of(resolved.model)} {resolved.positive} {resolved.fold_case} {resolved.characters}"


class Scoring:
    """Which texts of a batch are scored, and their results put back in place."""

    def __init__(self, settings: ClassifierSettings, texts: pa.Array) -> None:
        copies = prepared(texts, fold_case=bool(settings.fold_case), characters=settings.limit)
        self.mask = can_be_scored(copies)
        self.texts: list[str] = copies.filter(self.mask).to_pylist()

    def result(self, score: np.ndarray, label: Sequence[str], probability: np.ndarray) -> pa.StructArray:
        """n structs (see ``FIELDS``) from the values of the scored texts."""
        columns = [
            pa.array(as_scores(score), pa.float64()),
            pa.array(label, pa.string()),
            pa.array(as_scores(probability), pa.float64()),
        ]
        placed = [scattered(self.mask, column) for column in columns]
        return pa.StructArray.from_arrays([*placed, unscored(self.mask)], names=[name for name, _, _ in FIELDS])
