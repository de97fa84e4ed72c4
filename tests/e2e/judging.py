"""Annotators with models, for runs on a cluster and through Connect: their files must reach the executors."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import skops.io
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from jobs.settings import Settings
from tests.e2e.helpers import rows_of
from udfs.annotators.registry import ANNOTATORS
from udfs.classifying import SCORE_DECIMALS
from udfs.fasttext_training import FastTextTraining, train_fasttext

LABELS = {"plain": "the day was long and the road to the town went on", "odd": "click buy win money cheap now here"}

ANNOTATE = {
    "heuristics": {"kind": "heuristics"},
    "found_language": {"kind": "language"},
    "judged": {"kind": "fasttext", "model": "models/model.bin", "positive": "plain"},
    "judged_again": {"kind": "sklearn", "model": "models/model.skops", "positive": "plain"},
}
"""Paths are relative to the driver's folder: executors find no file there, only what is sent to them."""


def write_models(folder: Path) -> None:
    """A fastText and a scikit-learn model, in ``folder/models``."""
    home = folder / "models"
    home.mkdir(parents=True)
    texts, labels = list(LABELS.values()), list(LABELS)
    training = FastTextTraining(dimension=8, epochs=20, learning_rate=0.2, buckets=100)
    train_fasttext(pa.array(texts * 20), labels * 20, training, home / "model.bin")
    pipeline = make_pipeline(HashingVectorizer(n_features=256), LogisticRegression(C=100.0))
    skops.io.dump(pipeline.fit(texts, labels), home / "model.skops")


def assignments() -> list[str]:
    """Arguments that add the annotators to a run."""
    return [f"--set=annotate.{name}={json.dumps(value)}" for name, value in ANNOTATE.items()]


def differing(warehouse: Path, folder: Path) -> list[str]:
    """Annotators (and fields) whose stored values aren't those of their kernels, called here on the stored texts."""
    texts = {row["doc_id"]: row["text"] for row in rows_of(warehouse, "documents", "doc_id", "text")}
    stored = rows_of(warehouse, "annotations", "doc_id", *ANNOTATE)
    array = pa.array([texts[row["doc_id"]] for row in stored], pa.large_string())
    found = [] if len(stored) == len(texts) > 0 else [f"{len(stored)} of {len(texts)} documents"]
    for name, values in ANNOTATE.items():
        here = {k: str(folder / v) if k == "model" else v for k, v in values.items()}
        settings = Settings.model_validate({"annotate": {name: here}}).annotate[name]
        annotator = ANNOTATORS[settings.kind]
        kernel = annotator.open(annotator.resolve(settings))
        for row, expected in zip(stored, kernel(array).to_pylist(), strict=True):
            for field, value in expected.items():
                there = row[name][field]
                close = isinstance(value, float) and there is not None and abs(there - value) <= 10.0**-SCORE_DECIMALS
                if there != value and not close:
                    found.append(f"{name}.{field}: {there} instead of {value}")
    return found
