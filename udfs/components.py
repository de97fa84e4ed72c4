"""Which documents must be judged together: connected groups of documents that share a bucket.

Works on nodes (int64, any numbers). Two different documents with one number would only make a group larger.
"""

from __future__ import annotations

import numpy as np

from udfs.compiled import compiled


def bucket_edges(keys: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges that connect the members of each bucket: from its smallest node to every other one.

    A bucket of m members has m - 1 edges; one of a single member has none.

    Args:
        keys: int64[m], the band key of each membership.
        nodes: int64[m], the document.
    """
    order = np.lexsort((nodes, keys))
    keys, nodes = keys[order], nodes[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if keys.size else np.empty(0, np.int64)
    sizes = np.diff(np.append(starts, keys.size))
    firsts = np.repeat(nodes[starts], sizes)
    real = firsts != nodes
    return firsts[real], nodes[real]


def components(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes that occur in edges, and the label of each: the smallest node of its connected group.

    Args:
        left: int64[e], one end of each edge.
        right: int64[e], the other.
    """
    nodes, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    parents = np.arange(nodes.size, dtype=np.int64)
    _unite(parents, places[: left.size].astype(np.int64), places[left.size :].astype(np.int64))
    return nodes, nodes[parents]


@compiled
def _unite(parents: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Union-find with path halving; afterwards each entry is the smallest of its group."""
    for edge in range(left.size):
        a = left[edge]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        b = right[edge]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        if a < b:
            parents[b] = a
        else:
            parents[a] = b
    for node in range(parents.size):
        parents[node] = parents[parents[node]]  # parents are smaller, so theirs are final already
