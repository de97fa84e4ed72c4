"""Metrics of a classifier against numbers worked out by hand, and against scikit-learn's on random scores with ties."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from udfs.calibration_plot import calibration_svg
from udfs.classifier_metrics import at_keep_rates, average_precision, brier, calibration, roc_auc
from udfs.label_noise import Doubted, label_noise

SCORES = np.array([0.9, 0.8, 0.7, 0.7, 0.4, 0.2])
POSITIVE = np.array([True, False, True, False, True, False])


def test_by_hand() -> None:
    # Of the 9 pairs of a positive and a negative, 0.9 wins 3; 0.7 wins 1, ties 1, loses 1; 0.4 wins 1: 5.5 in all.
    assert roc_auc(SCORES, POSITIVE) == pytest.approx(5.5 / 9)
    # Steps at 0.9 (recall 1/3, precision 1/1), at 0.7 (1/3, 2/4), at 0.4 (1/3, 3/5); that at 0.8 finds nothing.
    assert average_precision(SCORES, POSITIVE) == pytest.approx((1 + 2 / 4 + 3 / 5) / 3)
    assert brier(SCORES, POSITIVE) == pytest.approx((0.01 + 0.64 + 0.09 + 0.49 + 0.36 + 0.04) / 6)


def test_what_is_kept() -> None:
    """2.5 of 5 are rounded to the even 2; 0.5 of 5 to none, of which nothing can be said; ties go by the order given."""
    scores, positive = np.array([0.9, 0.5, 0.5, 0.5, 0.1]), np.array([False, True, False, True, False])
    kept = at_keep_rates(scores, positive, np.array([4, 3, 2, 1, 0]), (0.1, 0.5, 0.6, 1.0))
    assert [(k.documents, k.threshold, k.precision, k.recall) for k in kept] == [
        (0, None, None, None), (2, 0.5, 1 / 2, 1 / 2), (3, 0.5, 1 / 3, 1 / 2), (5, 0.1, 2 / 5, 1.0),
    ]  # fmt: skip
    (other,) = at_keep_rates(scores, positive, np.array([0, 1, 2, 3, 4]), (0.6,))
    assert (other.documents, other.precision, other.recall) == (3, 1 / 3, 1 / 2)
    (first,) = at_keep_rates(scores, positive, np.array([0, 2, 1, 3, 4]), (0.4,))
    assert first.precision == 0.0


def test_calibration_bins() -> None:
    """A score on a border belongs to the upper bin, 1 to the last; empty bins have no values."""
    table = calibration(np.array([0.0, 0.1, 0.3, 0.7, 0.95, 1.0]), np.array([True, False, False, True, True, False]))
    assert [entry.documents for entry in table] == [1, 1, 0, 1, 0, 0, 0, 1, 0, 2]
    assert (table[9].mean_score, table[9].share_positive) == (pytest.approx(0.975), 0.5)
    assert (table[0].mean_score, table[0].share_positive, table[2].mean_score) == (0.0, 1.0, None)
    assert (table[3].low, table[3].high) == (0.3, 0.4)
    for wrong in (np.array([1.1]), np.array([-0.1]), np.array([np.nan])):
        with pytest.raises(ValueError, match="between 0 and 1"):
            calibration(wrong, np.array([True]))


def test_as_scikit_learn_has_it() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(5)
    for size in (2, 7, 300):
        scores = draw.integers(0, 20, size) / 20
        positive = draw.random(size) < 0.3
        positive[:2] = [True, False]
        assert roc_auc(scores, positive) == pytest.approx(metrics.roc_auc_score(positive, scores))
        assert average_precision(scores, positive) == pytest.approx(metrics.average_precision_score(positive, scores))
        assert brier(scores, positive) == pytest.approx(metrics.brier_score_loss(positive, scores))


def test_what_can_not_be_measured() -> None:
    for scores, positive, says in [
        (SCORES, np.ones(6, np.bool_), "only one is there"),
        (SCORES, np.zeros(6, np.bool_), "only one is there"),
        (SCORES, POSITIVE[:5], "6 scores, but 5 labels"),
        (np.array([np.nan, 1.0]), np.array([True, False]), "NaN"),
    ]:
        for measure in (roc_auc, average_precision):
            with pytest.raises(ValueError, match=says):
                measure(scores, positive)


def test_doubtful_labels_by_hand() -> None:
    """Thresholds are the mean of each class' probability among its own rows: 2/3 and 0.5833. Rows 0 and 1 count for class 0;
    row 2 for class 1, though it is labelled 0; row 3 for class 1; rows 4 and 5 for none. The diagonal is at least 1."""
    first = np.array([0.9, 0.8, 0.3, 0.2, 0.6, 0.45])
    found = label_noise(np.array([0, 0, 0, 1, 1, 1]), np.column_stack([first, 1 - first]))
    assert found.joint == [[2, 1], [0, 1]] and found.doubted == [Doubted(2, 1)]
    rounded = np.column_stack([first, 1 - first]) * 1.00001 + np.array([1e-5, -1e-5])  # as fastText has them
    rounded[0] = [1.0000054, -1e-9]
    assert label_noise(np.array([0, 0, 0, 1, 1, 1]), rounded).doubted == [Doubted(2, 1)]
    with pytest.raises(ValueError, match="no row is labelled as class 1 of 2"):
        label_noise(np.zeros(6, np.int64), np.column_stack([first, 1 - first]))


def test_doubtful_labels_come_least_probable_first() -> None:
    draw = np.random.default_rng(1)
    truth = np.arange(300) % 2
    first = np.clip(np.where(truth == 0, 0.9, 0.1) + draw.normal(0, 0.05, 300), 0.01, 0.99)
    given = truth.copy()
    given[[10, 21, 32, 43]] ^= 1
    found = label_noise(given, np.column_stack([first, 1 - first]))
    assert {doubt.row for doubt in found.doubted} == {10, 21, 32, 43}
    probabilities = [first[d.row] if given[d.row] == 0 else 1 - first[d.row] for d in found.doubted]
    assert probabilities == sorted(probabilities) and all(d.suggested == truth[d.row] for d in found.doubted)


def test_the_diagram_shows_each_bin_once() -> None:
    """Well-formed by itself, a point per bin with documents where it belongs, text escaped, equal bytes for equal input."""
    table = calibration(np.array([0.05, 0.25, 0.25, 1.0]), np.array([False, True, False, True]))
    svg = calibration_svg(table, "a <b> & c", "below")
    assert svg == calibration_svg(table, "a <b> & c", "below")
    root = ElementTree.fromstring(svg)
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert [(c.get("cx"), c.get("cy")) for c in circles] == [("90.0", "470.0"), ("170.0", "270.0"), ("470.0", "70.0")]
    said = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert said[2] == "2 documents, mean score 0.250, share of positives 0.500"
    bars = [float(e.get("height", 0)) for e in root.iter() if e.tag.endswith("rect") and e.get("fill") == "#9db9d9"]
    assert bars == [20.0, 40.0, 20.0]
    assert any(e.text == "a <b> & c" for e in root.iter()) and "http" not in svg.replace(
        "http://www.w3.org/2000/svg", ""
    )
    ElementTree.fromstring(calibration_svg([], "nothing", ""))
