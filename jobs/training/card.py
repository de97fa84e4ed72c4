"""The model's folder filled: the fitted model, its metrics on what it has not seen, its doubtful labels, its card.

Nothing here depends on when or by which run: equal inputs and settings give equal bytes in every file.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jobs.training.folder import CARD
from jobs.training.settings import FastTextClassifier, SklearnClassifier
from udfs.calibration_plot import calibration_svg
from udfs.classifier_metrics import at_keep_rates, average_precision, brier, calibration, roc_auc
from udfs.classifying import as_scores
from udfs.label_noise import LabelNoise, label_noise
from udfs.skops_files import types_to_trust
from udfs.training import model_name, out_of_fold, probabilities, train

KEEP_RATES = (0.05, 0.1, 0.2, 0.5)
SHOWN = 500
"""Characters of a doubtful row's text."""
DECIMALS = 6
FASTTEXTS = ("fasttext-numpy2", "fasttext", "fasttext-wheel", "fasttext-numpy2-wheel")
"""Distributions of fastText; it has no version of its own."""
PLOT, ISSUES = "calibration.svg", "label_issues.jsonl"
PU_MEANING = (
    "The negatives are documents of which nobody has said that they are positive, and some of them are. So precision and the "
    "shares of positives are lower bounds, and recall is that of the known positives; ROC-AUC and average precision are lower "
    "bounds where the known positives are a fair sample of all."
)
LABELLED_MEANING = "Every document has a label that was given to it; the metrics are only as good as the labels."

Classifier = FastTextClassifier | SklearnClassifier


@dataclass(frozen=True)
class Rows:
    """The drawn documents in the order in which they train.

    ``texts`` as stored, cut; ``prepared`` as the classifier reads them; ``labels``; ``ids`` (document ids);
    ``held_out`` bool[n]; ``folds`` int64[n], of all rows.
    """

    texts: pa.Array
    prepared: pa.Array
    labels: list[str]
    ids: list[str]
    held_out: np.ndarray
    folds: np.ndarray

    def side(self, held_out: bool) -> tuple[pa.Array, list[str]]:
        """Prepared texts and labels of one side."""
        mask = self.held_out == held_out
        return self.prepared.filter(pa.array(mask)), [
            label for label, mine in zip(self.labels, mask, strict=True) if mine
        ]


@dataclass(frozen=True)
class Facts:
    """What the card says of where the rows come from.

    ``name`` of the classifier; ``identity`` of inputs and settings; ``tables`` and the versions read; ``dropped``:
    documents by reason; ``unit`` of the split, in words; ``seed`` of the draws; ``more``: counts worth knowing.
    """

    name: str
    identity: str
    tables: Mapping[str, int]
    dropped: Mapping[str, int]
    unit: str
    seed: int
    more: Mapping[str, int]


def fill_folder(
    folder: Path, rows: Rows, facts: Facts, classifier: Classifier, stage: Callable[[str], Any]
) -> dict[str, Any]:
    """Train on the rows that aren't held out, measure on those that are, write everything; returns the card.

    Args:
        folder: Empty.
        rows: Both sides have every label.
        facts: For the card.
        classifier: Settings.
        stage: Context manager that shows what is being done.
    """
    texts, labels = rows.side(held_out=False)
    file = folder / model_name(classifier)
    with stage("training"):
        training = train(texts, labels, classifier, file)
    with stage("measuring on held-out documents"):
        names, metrics = _metrics(rows, classifier, file)
    noise = None
    if classifier.folds:
        with stage("looking for doubtful labels"):
            noise = _doubtful(folder / ISSUES, rows, classifier)
    known = "positive_unlabelled" if classifier.positive_unlabelled else "labelled"
    card = {
        "name": facts.name,
        "identity": facts.identity,
        "kind": classifier.kind,
        "model": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "bytes": file.stat().st_size,
        "labels": names,
        "positive": classifier.positive_label,
        "preparation": {"fold_case": classifier.fold_case, "characters": classifier.characters},
        "settings": classifier.model_dump(mode="json", exclude={"folder", "replace"}),
        "seed": facts.seed,
        "inputs": {
            "tables": dict(facts.tables),
            "rows": _counts(rows),
            "dropped": dict(facts.dropped),
            **dict(facts.more),
        },
        "labels_are": known,
        "split": {"unit": facts.unit, "held_out": classifier.held_out},
        "training": training,
        "score": _score_meaning(rows, classifier.positive_label),
        "metrics": {known: {**metrics, "meaning": PU_MEANING if classifier.positive_unlabelled else LABELLED_MEANING}},
        "label_noise": noise,
        "types_to_trust": types_to_trust(file) if classifier.kind == "sklearn" else [],
        "versions": versions(classifier),
    }
    rounded = rounded_floats(card)
    said = f"{facts.name}: {metrics['documents']:,} held-out documents"
    found = "share of known positives (positive-unlabelled)" if classifier.positive_unlabelled else "share of positives"
    plot = calibration_svg(metrics["calibration"], said, f"Brier score {metrics['brier']:.4f}", found)
    (folder / PLOT).write_text(plot, encoding="utf-8")
    (folder / CARD).write_text(
        json.dumps(rounded, sort_keys=True, indent=2, ensure_ascii=False, default=asdict) + "\n", encoding="utf-8"
    )
    return dict(rounded)


def rounded_floats(value: Any) -> Any:
    """Numbers to six decimals, however deep they lie; data classes become mappings."""
    if isinstance(value, float):
        return round(value, DECIMALS)
    if isinstance(value, Mapping):
        return {str(name): rounded_floats(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded_floats(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__"):
        return rounded_floats(asdict(value))
    return value


def versions(classifier: Classifier) -> dict[str, str]:
    """The versions of what a model's bytes and metrics depend on."""
    wanted = ["corpus-weir", "numpy", "pyarrow", "cleanlab"]
    wanted += ["scikit-learn", "scipy", "skops"] if classifier.kind == "sklearn" else ["numba", *FASTTEXTS]
    found = {"python": platform.python_version()}
    for name in wanted:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _metrics(rows: Rows, classifier: Classifier, file: Path) -> tuple[list[str], dict[str, Any]]:
    """The model's labels in its own order, and what it makes of the held-out rows, read from its file."""
    texts, labels = rows.side(held_out=True)
    names, values = probabilities(texts, classifier, file)
    scores = as_scores(values[:, names.index(classifier.positive_label)])
    positive = np.array([label == classifier.positive_label for label in labels])
    order = np.arange(len(labels))  # rows stand in the order of a hash: equal scores are kept in that order
    return names, {
        "documents": len(labels),
        "share_positive": float(positive.mean()),
        "roc_auc": roc_auc(scores, positive),
        "average_precision": average_precision(scores, positive),
        "brier": brier(scores, positive),
        "at_keep_rates": at_keep_rates(scores, positive, order, KEEP_RATES),
        "calibration": calibration(scores, positive),
    }


def _doubtful(file: Path, rows: Rows, classifier: Classifier) -> dict[str, Any]:
    """Write the training rows whose label is doubted, one a line; returns what the card says of them."""
    texts, labels = rows.side(held_out=False)
    training = np.flatnonzero(~rows.held_out)
    found = out_of_fold(texts, labels, rows.folds[training], classifier)
    if found is None:
        file.write_text("", encoding="utf-8")
        return {"rows": len(labels), "doubted": None, "why": "too few units: some fold holds all rows of a label"}
    names, values = found
    given = np.array([names.index(label) for label in labels], np.int64)
    noise = label_noise(given, values)
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for doubt in noise.doubted:
            row = int(training[doubt.row])
            entry = {
                "doc_id": rows.ids[row],
                "given": rows.labels[row],
                "suggested": names[doubt.suggested],
                "probability_of_given": round(float(values[doubt.row, given[doubt.row]]), DECIMALS),
                "text": str(rows.texts[row].as_py())[:SHOWN],
            }
            stream.write(json.dumps(entry, sort_keys=True, ensure_ascii=False) + "\n")
    return _noise_card(noise, names, labels, classifier.folds)


def _noise_card(noise: LabelNoise, names: Sequence[str], labels: Sequence[str], folds: int) -> dict[str, Any]:
    return {
        "rows": len(labels),
        "folds": folds,
        "doubted": len(noise.doubted),
        "counted": {
            given: {names[j]: count for j, count in enumerate(noise.joint[i])} for i, given in enumerate(names)
        },
        "meaning": "counted: rows by given label and by the label that they count for (out of fold, confident learning)",
    }


def _counts(rows: Rows) -> dict[str, dict[str, int]]:
    """Rows by label and side."""
    found = {label: {"training": 0, "held_out": 0} for label in sorted(set(rows.labels))}
    for label, out in zip(rows.labels, rows.held_out, strict=True):
        found[label]["held_out" if out else "training"] += 1
    return found


def _score_meaning(rows: Rows, positive: str) -> str:
    labels = rows.side(held_out=False)[1]
    share = sum(label == positive for label in labels) / len(labels)
    return (
        f"The probability of the label '{positive}' among documents of which {share:.1%} have it, as in training; "
        "where they are rarer, so are they among documents of one score."
    )
