"""Random draws that depend on the seed, the purpose and the position alone, never on global state, order or process.

A stream is the raw 64-bit output of Philox4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)
under a 128-bit key taken from SHA-256 of (seed, purpose, position). NumPy keeps the raw output of a bit generator stable
across its versions, which it does not promise for the distributions built on it, so those are made here from integers.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_BUFFERED = 256


class Draws:
    """One independent stream of random numbers, named by a seed, a purpose and any integers that say where it is used."""

    def __init__(self, seed: int, purpose: str, *position: int) -> None:
        name = "|".join([str(seed), purpose, *map(str, position)])
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little")
        self._generator = np.random.Philox(key=key)
        self._buffer: list[int] = []

    def words64(self, count: int) -> NDArray[np.uint64]:
        """``count`` uniform 64-bit words."""
        return np.asarray(self._generator.random_raw(count), dtype="<u8")

    def words32(self, count: int) -> NDArray[np.uint32]:
        """``count`` uniform 32-bit words, two from each 64-bit word, the low half first on every machine."""
        return self.words64((count + 1) // 2).view("<u4")[:count]

    def below(self, limit: int, count: int) -> NDArray[np.int64]:
        """``count`` integers in [0, ``limit``), ``limit`` <= 2^31; the bias is below ``limit`` / 2^32."""
        scaled = (self.words32(count).astype(np.uint64) * np.uint64(limit)) >> np.uint64(32)
        return scaled.astype(np.int64)

    def one(self, limit: int) -> int:
        """One integer in [0, ``limit``), as a Python int, cheap enough for loops; ``limit`` <= 2^31."""
        if not self._buffer:
            self._buffer = self.words32(_BUFFERED).tolist()
        return (self._buffer.pop() * limit) >> 32

    def between(self, low: float, high: float) -> float:
        """One number in [``low``, ``high``), in steps of 2^-20 of the range."""
        return low + (high - low) * self.one(1 << 20) / (1 << 20)

    def distinct(self, limit: int, count: int) -> list[int]:
        """``count`` different integers in [0, ``limit``), in increasing order.

        Raises:
            ValueError: if there are fewer than ``count`` integers to choose from.
        """
        if count > limit:
            raise ValueError(f"cannot choose {count} different integers below {limit}")
        order = np.argsort(self.words64(limit), kind="stable")[:count]
        return sorted(order.tolist())
