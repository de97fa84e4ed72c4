"""Shingle sets of many documents: in memory while they are few, in a file on the worker's disk where they are many."""

from __future__ import annotations

import os
import tempfile
from typing import IO

import numpy as np
import pyarrow as pa

from udfs.shingles import shingle_sets
from udfs.words import word_hashes_v1

IN_MEMORY = 512 * 2**20
"""Bytes of shingles (8 a shingle) that are held in memory; more go to a file, and the system pages them in."""


class ShingleStore:
    """Takes texts in, batch by batch, and gives all their shingle sets out; a context, which removes its file.

    Args:
        words: Words in a shingle.
        in_memory: Bytes from which on a file is used.
    """

    def __init__(self, words: int, in_memory: int = IN_MEMORY) -> None:
        self.words = words
        self.in_memory = in_memory
        self._held: list[np.ndarray] = []
        self._bytes = 0
        self._total = 0
        self._ends: list[np.ndarray] = [np.zeros(1, np.int64)]
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ShingleStore:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        self._held.clear()

    def add(self, texts: pa.Array | pa.ChunkedArray) -> None:
        """The next texts; none may be NULL."""
        sets, offsets = shingle_sets(*word_hashes_v1(texts), self.words)
        sets = sets[: offsets[-1]]
        self._ends.append(offsets[1:] + self._total)
        self._total += sets.size
        self._held.append(sets)
        self._bytes += sets.nbytes
        if self._bytes > self.in_memory:
            self._spill()

    def sets(self) -> tuple[np.ndarray, np.ndarray]:
        """All sets one after the other, each sorted (uint64[]), and their offsets (int64[d + 1])."""
        offsets = np.concatenate(self._ends)
        if self._file is None:
            return np.concatenate([*self._held, np.empty(0, np.uint64)]), offsets
        self._spill()
        self._file.flush()
        if offsets[-1] == 0:  # an empty file can't be mapped
            return np.empty(0, np.uint64), offsets
        return np.asarray(np.memmap(self._file, np.uint64, "r+")), offsets

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=_local_folder())  # noqa: SIM115 (closed by __exit__)
        for sets in self._held:
            sets.tofile(self._file)
        self._held.clear()
        self._bytes = 0


def _local_folder() -> str | None:
    """Where Spark's own spills go, if that is known and can be written."""
    for place in os.environ.get("SPARK_LOCAL_DIRS", "").split(","):
        if place and os.access(place, os.W_OK):
            return place
    return None
