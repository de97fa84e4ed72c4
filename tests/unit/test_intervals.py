"""Wilson's interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.intervals import wilson


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (1, 10, 0.017876, 0.404150), (50, 100, 0.403832, 0.596168)],
)
def test_known_intervals(hits: int, trials: int, low: float, high: float) -> None:
    """0 of 10: z² / (n + z²) = 3.841459 / 13.841459 = 0.277533."""
    assert wilson(hits, trials) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


def test_without_trials_nothing_is_known() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 500), st.data())
def test_the_share_lies_inside_and_more_trials_narrow_it(trials: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, trials))
    low, high = wilson(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1
    wider = wilson(hits * 4, trials * 4)
    assert wider[1] - wider[0] < high - low
