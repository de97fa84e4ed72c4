"""Text classifiers trained from prepared texts and their labels to a file: fastText or scikit-learn.

Pure, no Spark. One thread and a seed: on one machine with the same library versions, the same rows in the same order
give the same file, byte for byte. The caller prepares the texts with ``classifying.prepared``, as the annotators do
when they score.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from jobs.runtime.errors import SettingsError
from jobs.runtime.models import SettingsModel
from udfs.fasttext_models import ALL, label_names, labels_and_probabilities, load_fasttext
from udfs.fasttext_training import FastTextTraining, train_fasttext, unusable_labels
from udfs.skops_files import load_trusted, write_skops

__all__ = [
    "FastTextTraining",
    "SklearnTraining",
    "Training",
    "model_name",
    "out_of_fold",
    "probabilities",
    "train",
    "unusable_labels",
]

SCORED_AT_ONCE = 4096
"""Texts that are scored in one call."""


class SklearnTraining(SettingsModel):
    """How a scikit-learn classifier is trained: hashed word n-grams, then logistic regression or a random forest."""

    features: Literal["hashing", "tfidf"] = Field(
        "hashing", description="Counts of hashed word n-grams, or these weighted by inverse document frequency"
    )
    ngrams: tuple[int, int] = Field((1, 2), description="Shortest and longest run of words")
    number_of_features: int = Field(2**18, ge=1, le=2**30, description="Buckets that n-grams are hashed into")
    classifier: Literal["logistic_regression", "random_forest"] = Field(
        "logistic_regression",
        description="random_forest: readers of its file must trust a type, see types_to_trust in card.json",
    )
    regularisation: float = Field(1.0, gt=0, description="logistic_regression: inverse strength of the L2 penalty (C)")
    iterations: int = Field(1000, ge=1, description="logistic_regression: at most so many steps")
    trees: int = Field(100, ge=1, le=10_000, description="random_forest: how many trees")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the training")


Training = FastTextTraining | SklearnTraining


def train(texts: pa.Array, labels: Sequence[str], training: Training, file: Path) -> dict[str, int | bool]:
    """Train on rows in the given order and store the model.

    Args:
        texts: n prepared strings (no nulls, no line feeds).
        labels: n labels; at least two different ones.
        training: How.
        file: To be written.

    Returns:
        What is worth knowing of the training, by name, for the model's card.

    Raises:
        SettingsError: if the training itself fails for its settings: it diverges, or no word is left.
        ValueError: for labels that are all the same, or that fastText can't store (``unusable_labels``).
    """
    if len(texts) != len(labels) or len(set(labels)) < 2:
        raise ValueError(f"{len(texts)} texts with {len(labels)} labels, {len(set(labels))} of them different")
    if isinstance(training, FastTextTraining):
        return {"words": train_fasttext(texts, labels, training, file)}
    return _train_sklearn(texts, labels, training, file)


def model_name(training: Training) -> str:
    """What the model's file is called."""
    if isinstance(training, SklearnTraining):
        return "model.skops"
    return "model.ftz" if training.quantise else "model.bin"


def probabilities(texts: pa.Array, training: Training, file: Path) -> tuple[list[str], np.ndarray]:
    """The labels in the model's own order, and n x K probabilities, from a model that this process has just written.

    As the annotators see them, but not rounded.
    """
    if isinstance(training, FastTextTraining):
        model = load_fasttext(str(file))
        names = label_names(model)
        places = {name: place for place, name in enumerate(names)}
        found = np.zeros((len(texts), len(names)))
        for start in range(0, len(texts), SCORED_AT_ONCE):
            some = texts.slice(start, SCORED_AT_ONCE).to_pylist()
            for row, (labels, values) in enumerate(zip(*labels_and_probabilities(model, some, most=ALL), strict=True)):
                found[start + row, [places[label] for label in labels]] = values
        return names, found
    pipeline = load_trusted(file)
    names = [str(label) for label in pipeline.classes_]
    parts = [
        np.asarray(pipeline.predict_proba(texts.slice(start, SCORED_AT_ONCE).to_pylist()), np.float64)
        for start in range(0, len(texts), SCORED_AT_ONCE)
    ]
    return names, np.concatenate(parts) if parts else np.zeros((0, len(names)))


def out_of_fold(
    texts: pa.Array, labels: Sequence[str], folds: np.ndarray, training: Training
) -> tuple[list[str], np.ndarray] | None:
    """Each row's probabilities by a model that was trained on the rows of all other folds.

    Args:
        texts: n prepared strings.
        labels: n labels.
        folds: int64[n], the fold of each row.
        training: How.

    Returns:
        The K labels, sorted, and n x K probabilities; None if the rows outside of some fold lack a label.
    """
    names = sorted(set(labels))
    given = np.array(labels, dtype=object)
    found = np.zeros((len(labels), len(names)))
    for fold in np.unique(folds):
        inside = folds == fold
        if set(given[~inside].tolist()) != set(names):
            return None
        with tempfile.TemporaryDirectory(prefix="weir-fold-") as folder:
            file = Path(folder) / model_name(training)
            train(texts.filter(pa.array(~inside)), given[~inside].tolist(), training, file)
            order, values = probabilities(texts.filter(pa.array(inside)), training, file)
        found[np.ix_(inside, [names.index(name) for name in order])] = values
    return names, found


def _train_sklearn(
    texts: pa.Array, labels: Sequence[str], training: SklearnTraining, file: Path
) -> dict[str, int | bool]:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    pipeline = _pipeline(training)
    # What BLAS adds up in several threads, it adds up in another order every time.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*failed to converge")  # the card says so
        try:
            pipeline.fit(texts.to_pylist(), np.array(labels, dtype=str))
        except ValueError as error:
            raise SettingsError(f"scikit-learn can't be trained with these settings: {error}") from None
    # The vectoriser remembers, by its address in memory, for which stop words it has warned.
    vars(pipeline.named_steps["counts"]).pop("_stop_words_id", None)
    write_skops(pipeline, file)
    if training.classifier == "random_forest":
        return {"trees": training.trees}
    needed = int(max(pipeline.named_steps["classifier"].n_iter_))
    return {"iterations": needed, "converged": needed < training.iterations}


def _pipeline(training: SklearnTraining) -> Any:
    """From prepared texts to probabilities. Case is the preparation's affair, and words of one letter are words too."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    # No vocabulary is built: of the word pairs of 200,000 documents it would hold tens of millions.
    steps: list[tuple[str, Any]] = [
        (
            "counts",
            HashingVectorizer(
                lowercase=False,
                token_pattern=r"(?u)\b\w+\b",
                ngram_range=training.ngrams,
                n_features=training.number_of_features,
                alternate_sign=False,
                norm="l2" if training.features == "hashing" else None,
            ),
        )
    ]
    if training.features == "tfidf":
        steps.append(("weights", TfidfTransformer(sublinear_tf=True)))
    if training.classifier == "random_forest":
        steps.append(
            ("classifier", RandomForestClassifier(n_estimators=training.trees, n_jobs=1, random_state=training.seed))
        )
    else:
        steps.append(
            (
                "classifier",
                LogisticRegression(C=training.regularisation, max_iter=training.iterations, random_state=training.seed),
            )
        )
    return Pipeline(steps)
