"""Confidence intervals of shares."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""Standard normal quantile of 0.975."""


def wilson(hits: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a share (E. B. Wilson 1927, J. Am. Stat. Assoc. 22, 209-212).

    (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), with p = hits / n. It holds for small samples and for shares of 0
    and 1, where p ± z √(p(1-p)/n) would claim certainty.

    Args:
        hits: 0 to trials.
        trials: n; with 0 the interval is everything.
        z: Normal quantile: 1.96 for 95 %.
    """
    if trials == 0:
        return 0.0, 1.0
    share = hits / trials
    middle = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    whole = 1 + z * z / trials
    low = 0.0 if hits == 0 else (middle - half) / whole
    high = 1.0 if hits == trials else (middle + half) / whole
    return low, high
