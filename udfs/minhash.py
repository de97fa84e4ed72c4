"""MinHash signatures: K permuted minima of a document's shingles, cut into b bands of r rows (LSH).

Broder, "On the resemblance and containment of documents" (1997): for a random permutation the minima of two sets are
equal with a probability of their Jaccard similarity J. Permutation k is multiply-shift (Dietzfelbinger and others,
"A reliable randomized algorithm for the closest-pair problem", 1997, section 2): the upper 32 bits of a(k)·x + b(k)
modulo 2^64, over x, the upper 32 bits of a shingle's mixed hash; a(k) is odd. The product is never cut below 64 bits.

Two documents share a band with probability J^r, and are candidates if they share any: P = 1 - (1 - J^r)^b
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", section 3.4.2).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from udfs.arrow_text import Texts
from udfs.compiled import compiled
from udfs.shingles import MIX_1, fingerprint, mixed, shingle_count, shingle_hashes
from udfs.words import word_hashes_v1

BLOCK = 512
"""Shingles for which the permutations are computed together: they fit into the processor's first cache."""

VECTOR = 16
"""Shingles that compiled code takes at once, at most; BLOCK is a multiple of it."""

MASK = 2**64 - 1
SIGN = np.int64(-(2**63))
LARGEST = np.int64(2**63 - 1)


class Permutations(NamedTuple):
    """K permutations: odd multipliers and addends, uint64[K] each."""

    multipliers: np.ndarray
    addends: np.ndarray


class Signatures(NamedTuple):
    """Signatures of d documents; those without a word (NULL ones too) have no shingles and zeros everywhere else.

    ``shingles`` int64[d], with repeats; ``fingerprints`` uint64[d, 2]; ``bands`` int64[d, b], a key for each band, that
    is different for different bands; ``sketches`` uint8[d, K], one byte of each minimum.
    """

    shingles: np.ndarray
    fingerprints: np.ndarray
    bands: np.ndarray
    sketches: np.ndarray


@functools.cache
def permutations(count: int, seed: int = 0) -> Permutations:
    """The first ``count`` permutations of a seed, from SplitMix64 (Steele, Lea, Flood, 2014)."""
    state = (seed * 0x2545F4914F6CDD1D + 0x1234567) & MASK
    drawn = []
    for _ in range(2 * count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        value = state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
        drawn.append(value ^ (value >> 31))
    pairs = np.array(drawn, np.uint64).reshape(count, 2)
    found = Permutations(pairs[:, 0] | np.uint64(1), np.ascontiguousarray(pairs[:, 1]))
    for array in found:
        array.flags.writeable = False
    return found


def signatures(texts: Texts, *, words: int, bands: int, rows: int, seed: int = 0) -> Signatures:
    """Sign texts.

    Args:
        texts: d strings, nulls allowed.
        words: words in a shingle.
        bands: b.
        rows: r; there are b × r permutations.
        seed: of the permutations.
    """
    hashes, document_offsets = word_hashes_v1(texts)
    return Signatures(*_sign(hashes, document_offsets, words, bands, rows, *permutations(bands * rows, seed)))


def signature_array(signed: Signatures) -> pa.StructArray:
    """Signatures as an Arrow struct: shingles, fingerprint (16 bytes), bands, sketch; NULLs for documents without words."""
    count, bands = signed.bands.shape
    empty = pa.array(signed.shingles == 0)
    valid = signed.shingles > 0
    fingerprints = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), count, [None, pa.py_buffer(np.ascontiguousarray(signed.fingerprints))]
    ).cast(pa.binary())
    offsets = np.concatenate([[0], np.cumsum(np.where(valid, bands, 0))]).astype(np.int32)
    keys = pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(np.ascontiguousarray(signed.bands[valid]).reshape(-1)), mask=empty
    )
    width = signed.sketches.shape[1]
    sketches = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), count, [None, pa.py_buffer(np.ascontiguousarray(signed.sketches))]
    ).cast(pa.binary())
    nothing = pa.scalar(None, pa.binary())
    return pa.StructArray.from_arrays(
        [
            pa.array(signed.shingles),
            pa.compute.if_else(empty, nothing, fingerprints),
            keys,
            pa.compute.if_else(empty, nothing, sketches),
        ],
        names=["shingles", "fingerprint", "bands", "sketch"],
    )


def estimate(left: bytes, right: bytes) -> float:
    """Jaccard similarity as two sketches estimate it: the share of equal bytes, less those equal by chance (1/256)."""
    equal = float(np.mean(np.frombuffer(left, np.uint8) == np.frombuffer(right, np.uint8)))
    return max(0.0, (equal - 1 / 256) / (1 - 1 / 256))


@compiled
def _sign(
    hashes: np.ndarray,
    document_offsets: np.ndarray,
    words: int,
    bands: int,
    rows: int,
    multipliers: np.ndarray,
    addends: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of ``Signatures``."""
    documents = document_offsets.size - 1
    count = multipliers.size
    shingles = np.zeros(documents, np.int64)
    fingerprints = np.zeros((documents, 2), np.uint64)
    keys = np.zeros((documents, bands), np.int64)
    sketches = np.zeros((documents, count), np.uint8)
    longest = 1
    for document in range(documents):
        longest = max(longest, document_offsets[document + 1] - document_offsets[document])
    held = np.empty(min(longest, BLOCK + words), np.uint64)
    block = np.empty(BLOCK, np.int64)
    minima = np.empty(count, np.int64)
    for document in range(documents):
        first = document_offsets[document]
        total = document_offsets[document + 1] - first
        number = shingle_count(total, words)
        shingles[document] = number
        if number == 0:
            continue
        fingerprints[document] = fingerprint(hashes[first : first + total])
        minima[:] = LARGEST
        done = 0
        while done < number:
            # A block of shingles is made of as many words and n - 1 more.
            many = min(BLOCK, number - done)
            stop = first + (total if number == 1 else done + many + words - 1)
            shingle_hashes(hashes[first + done : stop], words, held)
            for at in range(many):
                block[at] = np.int64(held[at] >> np.uint64(32))
            # Filled up with a shingle that is there already: whole vectors, without a slow rest.
            full = -(-many // VECTOR) * VECTOR
            block[many:full] = block[0]
            _lower(block[:full], multipliers, addends, minima)
            done += many
        for at in range(count):  # of the smallest values the upper 32 bits, with the sign turned back
            minima[at] = ((minima[at] ^ SIGN) >> 32) & 0xFFFFFFFF
        for band in range(bands):
            key = np.uint64(band + 1) * MIX_1
            for row in range(rows):
                key = mixed(key ^ np.uint64(minima[band * rows + row]))
            keys[document, band] = np.int64(key)
        for at in range(count):
            sketches[document, at] = np.uint8(minima[at] & 0xFF)
    return shingles, fingerprints, keys, sketches


@compiled
def _lower(block: np.ndarray, multipliers: np.ndarray, addends: np.ndarray, minima: np.ndarray) -> None:
    """Lower each permutation's smallest value by those of a block of shingles (their upper 32 bits).

    The smallest upper half is the upper half of the smallest value, so it is cut once per document, not per shingle.
    Values are compared with their sign bit turned, for processors that compare signed numbers only.
    """
    for at in range(minima.size):
        multiplier = np.int64(multipliers[at])
        addend = np.int64(addends[at]) ^ SIGN
        best = minima[at]
        for x in block:
            best = min(best, multiplier * x + addend)  # wraps modulo 2^64
        minima[at] = best
