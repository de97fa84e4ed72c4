"""How good a binary classifier is, from scores and labels: ranking, what is found when the best share is kept, calibration.

Pure functions over n scores (float64, larger means more positive) and n labels (bool, true means positive). Nothing is
drawn: equal scores are handled by definition, or by an order that the caller gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BINS = 10
"""Bins of the calibration table, all of one width."""


@dataclass(frozen=True)
class Kept:
    """What is found among the best ``keep`` of n documents.

    ``documents``: how many these are; ``threshold``: the smallest score among them; ``precision``: share of positives
    among them; ``recall``: share of all positives that are among them. The last three are None for no documents.
    """

    keep: float
    documents: int
    threshold: float | None
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Bin:
    """The documents whose scores lie in [``low``, ``high``), the last bin with its end: mean score and share of positives.

    Both are None in an empty bin.
    """

    low: float
    high: float
    documents: int
    mean_score: float | None
    share_positive: float | None


def roc_auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The probability that a positive scores above a negative, ties counting one half.

    By ranks: (sum of the positives' ranks - p (p + 1) / 2) / (p n), equal scores sharing their mean rank (the
    Mann-Whitney statistic; Hanley and McNeil 1982).

    Raises:
        ValueError: without both classes, or for scores that are no numbers.
    """
    scores, positive = _checked(scores, positive)
    _, places, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    ranks = (ends - (sizes - 1) / 2)[places]
    positives = int(positive.sum())
    negatives = positive.size - positives
    return float((ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def average_precision(scores: np.ndarray, positive: np.ndarray) -> float:
    """The area under the precision-recall curve as a sum: of precision, weighted by the step in recall it comes with.

    One step for each distinct score from the largest on, so that the order within ties plays no part; nothing is
    interpolated between the steps.

    Raises:
        ValueError: without both classes, or for scores that are no numbers.
    """
    scores, positive = _checked(scores, positive)
    _, places, sizes = np.unique(-scores, return_inverse=True, return_counts=True)
    found = np.bincount(places, weights=positive, minlength=sizes.size)
    precision = np.cumsum(found) / np.cumsum(sizes)
    return float((precision * found).sum() / positive.sum())


def at_keep_rates(scores: np.ndarray, positive: np.ndarray, order: np.ndarray, rates: tuple[float, ...]) -> list[Kept]:
    """Precision and recall when only the best share of the documents is kept, for each share.

    Args:
        scores: n scores.
        positive: n labels.
        order: n distinct values; of equal scores, those with the smaller ones are kept first.
        rates: Shares, 0 to 1. ``rate * n`` documents are kept, rounded to the nearest, halves to the even one.

    Raises:
        ValueError: without both classes, or for scores that are no numbers.
    """
    scores, positive = _checked(scores, positive)
    best_first = np.lexsort((order, -scores))
    found = np.cumsum(positive[best_first])
    rows = []
    for rate in rates:
        count = round(rate * scores.size)
        if count == 0:
            rows.append(Kept(rate, 0, None, None, None))
            continue
        hits = int(found[count - 1])
        threshold = float(scores[best_first[count - 1]])
        rows.append(Kept(rate, count, threshold, hits / count, hits / int(positive.sum())))
    return rows


def calibration(scores: np.ndarray, positive: np.ndarray, bins: int = BINS) -> list[Bin]:
    """Of the documents in each bin of scores: what was predicted, and what was found.

    Args:
        scores: n probabilities, 0 to 1.
        positive: n labels.
        bins: How many, of equal width; a score on a border belongs to the upper bin.

    Raises:
        ValueError: for scores outside of 0 to 1.
    """
    scores = np.asarray(scores, np.float64)
    positive = np.asarray(positive, np.bool_)
    if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
        raise ValueError("calibration is of probabilities: scores must lie between 0 and 1")
    borders = np.arange(bins + 1) / bins
    places = np.clip(np.searchsorted(borders, scores, side="right") - 1, 0, bins - 1)
    table = []
    for number in range(bins):
        mine = places == number
        count = int(mine.sum())
        mean = float(scores[mine].mean()) if count else None
        share = float(positive[mine].mean()) if count else None
        table.append(Bin(float(borders[number]), float(borders[number + 1]), count, mean, share))
    return table


def brier(scores: np.ndarray, positive: np.ndarray) -> float:
    """The mean squared difference between score and label (1 or 0); 0 is perfect (Brier 1950)."""
    return float(np.mean((np.asarray(scores, np.float64) - np.asarray(positive, np.float64)) ** 2))


def _checked(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = np.asarray(scores, np.float64)
    positive = np.asarray(positive, np.bool_)
    if scores.shape != positive.shape:
        raise ValueError(f"{scores.size} scores, but {positive.size} labels")
    if np.isnan(scores).any():
        raise ValueError("a score is NaN")
    if not positive.any() or positive.all():
        raise ValueError("ranking is measured between two classes; only one is there")
    return scores, positive
