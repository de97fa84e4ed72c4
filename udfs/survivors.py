"""The survivors of near-duplicate detection: the greedy walk that defines them, on a group of documents.

Documents are walked in the order of the survivor rule. One is dropped if it is verified-similar to a kept document
that shares a bucket with it; else it is kept. In each bucket it is compared with the M best-ranked kept members. The
result is the lexicographically first maximal independent set of the graph of verified pairs, so there is only one.

Only pairs with a kept document are ever compared, each at most once: no rounds, and no pair of two dropped documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.compiled import compiled
from udfs.shingles import shared

KEPT = -1
JACCARD, CONTAINMENT, SIGNATURE = range(3)
METHODS = {"jaccard": JACCARD, "containment": CONTAINMENT, "signature": SIGNATURE}


class Walk(NamedTuple):
    """What became of d documents.

    ``twins`` int64[d]: the kept document for which it was dropped, or -1 (kept). ``similarities`` float64[d]: to the twin.
    ``bands`` int64[d]: how many bands it shares with the twin. ``capped`` bool[d]: a bucket held more kept members than
    it was compared with. ``compared`` int64[d]: how many documents it was compared with; ``rejected`` int64[c, 2]: the
    pairs (better, worse) that were compared and not similar, of those worse ones that are kept and did not hit the cap.
    """

    twins: np.ndarray
    similarities: np.ndarray
    bands: np.ndarray
    capped: np.ndarray
    compared: np.ndarray
    rejected: np.ndarray


def walk(
    keys: np.ndarray,
    sketches: np.ndarray,
    sets: np.ndarray,
    set_starts: np.ndarray,
    set_ends: np.ndarray,
    *,
    threshold: float,
    method: str = "jaccard",
    cap: int,
    slack: float,
    protected: np.ndarray | None = None,
) -> Walk:
    """Walk documents that are sorted by the survivor rule, best first.

    Args:
        keys: int64[d, b], band keys.
        sketches: uint8[d, K].
        sets: uint64[], sorted shingle sets, in any order (empty for ``signature``); may be a mapped file.
        set_starts: int64[d], where each document's set begins.
        set_ends: int64[d], and ends.
        threshold: documents at least so similar are near-duplicates.
        method: ``jaccard`` |A∩B| / |A∪B|, ``containment`` |A∩B| / |worse-ranked|, ``signature`` the sketches' estimate.
        cap: M, kept members of a bucket that a document is compared with.
        slack: pairs whose sketches estimate less than threshold - slack are not compared exactly.
        protected: bool[d], documents that are kept whatever they are similar to.
    """
    documents = keys.shape[0]
    if protected is None:
        protected = np.zeros(documents, np.bool_)
    _, inverse = np.unique(keys, return_inverse=True)
    buckets = np.ascontiguousarray(inverse.reshape(keys.shape), np.int64)
    return Walk(
        *_walk(
            buckets,
            int(buckets.max()) + 1 if documents else 0,
            sketches,
            sets,
            set_starts,
            set_ends,
            float(threshold),
            METHODS[method],
            int(cap),
            float(slack),
            protected,
        )
    )


@compiled
def _walk(
    buckets: np.ndarray,
    bucket_count: int,
    sketches: np.ndarray,
    sets: np.ndarray,
    set_starts: np.ndarray,
    set_ends: np.ndarray,
    threshold: float,
    method: int,
    cap: int,
    slack: float,
    protected: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Do the work of ``walk``. Each bucket's kept members are a linked list in rank order."""
    documents, bands = buckets.shape
    twins = np.full(documents, KEPT, np.int64)
    similarities = np.zeros(documents, np.float64)
    matched = np.zeros(documents, np.int64)
    capped = np.zeros(documents, np.bool_)
    compared = np.zeros(documents, np.int64)
    heads = np.full(bucket_count, -1, np.int64)
    tails = np.full(bucket_count, -1, np.int64)
    sizes = np.zeros(bucket_count, np.int64)
    following = np.full(documents * bands, -1, np.int64)
    seen = np.full(documents, -1, np.int64)
    candidates = np.empty(bands * cap, np.int64)
    rejected = np.empty((1024, 2), np.int64)
    rejections = 0
    for document in range(documents):
        number = 0
        before = rejections
        for band in range(bands):
            bucket = buckets[document, band]
            if sizes[bucket] > cap:
                capped[document] = True
            entry = heads[bucket]
            while entry >= 0:
                member = entry // bands
                if seen[member] != document:
                    seen[member] = document
                    candidates[number] = member
                    number += 1
                entry = following[entry]
        if number and not protected[document]:
            ranked = candidates[:number]
            ranked.sort()
            mine = sets[set_starts[document] : set_ends[document]]
            for member in ranked:
                compared[document] += 1
                similarity = _estimate(sketches[member], sketches[document])
                similar = similarity >= threshold
                if method != SIGNATURE:
                    similar = False
                    if method == CONTAINMENT or similarity >= threshold - slack:
                        theirs = sets[set_starts[member] : set_ends[member]]
                        common = shared(theirs, mine)
                        whole = mine.size if method == CONTAINMENT else mine.size + theirs.size - common
                        similarity = common / whole
                        # In whole numbers: 0.8 is no binary fraction, and 4 of 5 must count as 0.8.
                        similar = common >= threshold * whole - 1e-9
                if similar:
                    twins[document] = member
                    similarities[document] = similarity
                    for band in range(bands):
                        matched[document] += buckets[document, band] == buckets[member, band]
                    break
                if rejections == rejected.shape[0]:
                    larger = np.empty((2 * rejections, 2), np.int64)
                    larger[:rejections] = rejected
                    rejected = larger
                rejected[rejections, 0] = member
                rejected[rejections, 1] = document
                rejections += 1
        if twins[document] != KEPT or capped[document]:
            rejections = before  # only what is kept needs proof, and those that hit the cap have none
        if twins[document] == KEPT:
            for band in range(bands):
                bucket = buckets[document, band]
                sizes[bucket] += 1
                if sizes[bucket] > cap:
                    continue
                entry = document * bands + band
                if heads[bucket] < 0:
                    heads[bucket] = entry
                else:
                    following[tails[bucket]] = entry
                tails[bucket] = entry
    return twins, similarities, matched, capped, compared, rejected[:rejections].copy()


@compiled
def _estimate(left: np.ndarray, right: np.ndarray) -> float:
    """Jaccard similarity as two sketches estimate it; a byte is equal by chance once in 256 times."""
    equal = 0
    for at in range(left.size):
        equal += left[at] == right[at]
    return max(0.0, (equal / left.size - 1 / 256) / (1 - 1 / 256))
