"""Confident learning (Northcutt, Jiang and Chuang 2021, arXiv 1911.00068): which labels a classifier has reason to doubt.

A row counts for a class if its probability of it reaches the class' mean probability among the rows labelled so. Where
the counted class is another than the label, the label may be wrong; how many of each are taken for wrong follows from
these counts (cleanlab, ``prune_by_noise_rate``). The probabilities must be of rows that the classifier was not fitted
on: about its own training rows a classifier is never in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Doubted:
    """A row whose label is doubted: its number, and the class that is most probable instead."""

    row: int
    suggested: int


@dataclass(frozen=True)
class LabelNoise:
    """``doubted`` rows, and ``joint[i][j]``: how many rows labelled i count for class j (the diagonal at least 1)."""

    doubted: list[Doubted]
    joint: list[list[int]]


def label_noise(labels: np.ndarray, probabilities: np.ndarray) -> LabelNoise:
    """Rows whose label is doubted, the least probable label first, then by row. Nothing is drawn.

    Args:
        labels: n class numbers from 0; each of the K classes occurs.
        probabilities: n x K, out of fold; rows that don't add up to 1 exactly, as fastText's, are made to.

    Raises:
        ValueError: if a class has no row.
    """
    from cleanlab.count import compute_confident_joint
    from cleanlab.filter import find_label_issues

    labels = np.asarray(labels, np.int64)
    classes = probabilities.shape[1]
    absent = sorted(set(range(classes)) - set(labels.tolist()))
    if absent:
        raise ValueError(f"no row is labelled as class {absent[0]} of {classes}")
    probabilities = np.clip(probabilities, 0.0, 1.0)  # fastText gives 1.0000054 and the like
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    joint = compute_confident_joint(labels, probabilities, calibrate=False)
    issues = np.flatnonzero(find_label_issues(labels, probabilities, n_jobs=1))
    given = probabilities[issues, labels[issues]]
    ranked = issues[np.lexsort((issues, given))]
    suggested = probabilities.argmax(axis=1)
    return LabelNoise(
        [Doubted(int(row), int(suggested[row])) for row in ranked], [[int(n) for n in row] for row in joint]
    )
