"""fasttext: a text's probability of the positive label, by a fastText classifier (Joulin et al. 2016, arXiv 1607.01759)."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from jobs.runtime.errors import SettingsError
from udfs.annotators.base import Annotator, Kernel
from udfs.annotators.classifier import FIELDS, ClassifierSettings, Scoring, check_labels, completed, what_it_depends_on
from udfs.fasttext_models import ALL, label_names, labels_and_probabilities, load_fasttext
from udfs.model_files import loaded, sha256_of


class FastTextSettings(ClassifierSettings):
    """Settings of a fastText classifier."""

    kind: Literal["fasttext"] = Field("fasttext", description="Which annotator")


@functools.lru_cache(maxsize=16)
def labels_of(path: str, sha256: str) -> tuple[str, ...]:
    """The labels of a model file; the model isn't kept.

    Raises:
        SettingsError: if the file is no fastText classifier.
    """
    try:
        model = load_fasttext(path)
        model.f.predict("a\n", 1, 0.0, "strict")  # word vectors have labels too, but refuse to predict
        return tuple(label_names(model))
    except (ValueError, RuntimeError) as error:
        raise SettingsError(f"{path} is no fastText classifier: {error}") from None


def resolve_fasttext(settings: FastTextSettings) -> FastTextSettings:
    """Complete settings, checked against the model's labels.

    Raises:
        SettingsError: if the file is no fastText classifier, or the positive label is not one of its labels.
    """
    found = FastTextSettings(**completed(settings).model_dump())
    check_labels(settings.model, found.positive, labels_of(found.model, sha256_of(found.model)))
    return found


def open_fasttext(settings: FastTextSettings) -> Kernel:
    """The kernel of one task, on resolved settings."""
    model = loaded("fasttext", settings.model, load_fasttext)
    positive = settings.positive

    def kernel(texts: pa.Array) -> pa.StructArray:
        scoring = Scoring(settings, texts)
        labels, probabilities = labels_and_probabilities(model, scoring.texts, most=ALL)
        # A label that fastText leaves out has no probability worth a digit.
        score = [
            float(row[names.index(positive)]) if positive in names else 0.0
            for names, row in zip(labels, probabilities, strict=True)
        ]
        best = np.array([row[0] for row in probabilities])
        return scoring.result(np.array(score), [names[0] for names in labels], best)

    return kernel


FASTTEXT = Annotator(
    kind="fasttext",
    version=1,
    settings=FastTextSettings,
    fields=FIELDS,
    open=open_fasttext,
    resources=what_it_depends_on,
    resolve=resolve_fasttext,
    files=lambda settings: (settings.model,),
    places=frozenset({"model"}),
)
