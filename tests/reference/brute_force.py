"""All pairs of similar documents, by sets of word tuples and a sparse matrix product: no hashing of ours, no MinHash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from tests.reference.words import words_v1


def similar_pairs(texts: Sequence[str], threshold: float, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Pairs with a Jaccard similarity of at least the threshold.

    Returns:
        int64[p, 2], the smaller position first, in order; float64[p], their exact similarities.
    """
    known: dict[tuple[str, ...], int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        words = words_v1(text)
        grams = {tuple(words[at : at + n]) for at in range(max(1, len(words) - n + 1))} if words else set()
        columns += [known.setdefault(gram, len(known)) for gram in grams]
        ends.append(len(columns))
    sizes = np.diff(ends)
    matrix = csr_matrix((np.ones(len(columns), np.int32), columns, ends), shape=(len(texts), len(known)))
    pairs, values = [], []
    for start in range(0, len(texts), 500):
        common = (matrix[start : start + 500] @ matrix.T).tocoo()
        left, right = common.row.astype(np.int64) + start, common.col.astype(np.int64)
        similarity = common.data / (sizes[left] + sizes[right] - common.data)
        mine = (left < right) & (similarity >= threshold - 1e-12)
        pairs.append(np.column_stack([left[mine], right[mine]]))
        values.append(similarity[mine])
    found, similarities = np.concatenate(pairs), np.concatenate(values)
    order = np.lexsort((found[:, 1], found[:, 0]))
    return found[order], similarities[order]
