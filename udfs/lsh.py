"""Locality-sensitive hashing: which pairs b bands of r rows make candidates, and which (b, r) a threshold needs.

P(candidate | J) = 1 - (1 - J^r)^b ("Mining of Massive Datasets", section 3.4.2): 14 bands × 8 rows give
P(0.8) = 0.924, P(0.5) = 0.053.
"""

from __future__ import annotations

CURVE_AT = (0.5, 0.6, 0.7, 0.8, 0.9)


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """P(two documents of this Jaccard similarity share a band)."""
    return float(1.0 - (1.0 - similarity**rows) ** bands)


def s_curve(bands: int, rows: int) -> dict[float, float]:
    """P(candidate) at 0.5, 0.6, 0.7, 0.8 and 0.9."""
    return {similarity: candidate_probability(similarity, bands, rows) for similarity in CURVE_AT}


def solve(threshold: float, permutations: int, recall: float) -> tuple[int, int] | None:
    """The (bands, rows) with the most rows, so the fewest false candidates, that find pairs at the threshold.

    Args:
        threshold: Jaccard similarity from which documents are near-duplicates.
        permutations: K; b × r is at most this.
        recall: P(candidate | J = threshold) that must be reached.

    Returns:
        (b, r), or None if no number of rows reaches the recall with so few permutations.
    """
    for rows in range(permutations, 0, -1):
        bands = permutations // rows
        if candidate_probability(threshold, bands, rows) >= recall:
            return bands, rows
    return None
