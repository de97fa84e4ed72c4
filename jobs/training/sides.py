"""What stands on which side of the split: units that stay whole go to training or to the held-out side, by hash.

The drawn documents are at hand here, so groups are joined exactly: documents with equal texts, and where it is known
those of one near-duplicate group, are one unit, however these overlap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from udfs.components import components

SEPARATOR = "\u001f"
Name = TypeVar("Name", str, bytes)


def with_groups(chosen: DataFrame, decisions: DataFrame | None, steps: Sequence[str]) -> DataFrame:
    """The drawn rows with ``group``: the document that stays for each in the end, as the table and id it stands under.

    Args:
        chosen: Drawn rows, stored (they are read once per step).
        decisions: Of one policy; None if nothing is known.
        steps: The deduplicating steps, in order. What one step keeps, a later one may drop for another document.
    """
    here = F.concat_ws(SEPARATOR, "held_in", "doc_id")
    grouped = chosen.withColumn("group", here)
    if decisions is None:
        return grouped
    for step in steps:
        kept = decisions.where((F.col("step") == step) & F.col("kept_id").isNotNull()).select(
            F.concat_ws(SEPARATOR, F.lit(""), "doc_id").alias("group"),
            F.concat_ws(SEPARATOR, F.coalesce("kept_in", F.lit("")), "kept_id").alias("kept"),
        )
        # Decisions can be as many as documents, the drawn ones are few: so these go to where those are.
        mine = kept.join(F.broadcast(grouped.select("group").distinct()), ["group"], "left_semi")
        grouped = grouped.join(mine, ["group"], "left").withColumn("group", F.coalesce("kept", "group")).drop("kept")
    return grouped


def units(texts: Sequence[bytes], groups: Sequence[str] | None) -> list[str]:
    """The name of each row's unit; rows of one unit stand on one side.

    Args:
        texts: n hashes of texts; equal ones belong to one unit.
        groups: n groups, see ``with_groups``; equal ones belong to one unit. None: by text alone.

    Returns:
        n names: the smallest group of the unit, or without groups the hash of the text in hex.
    """
    if groups is None:
        return [text.hex() for text in texts]
    names = sorted(set(groups))
    if len(names) == len(groups) and len(set(texts)) == len(texts):
        return list(groups)  # nothing to join
    # Groups are numbered in the order of their names, so a component's smallest node is its smallest group.
    by_group = _numbered(groups, names)
    by_text = _numbered(texts, sorted(set(texts))) + len(names)
    nodes, labels = components(by_group, by_text)
    smallest = labels[np.searchsorted(nodes, by_group)]
    return [names[number] for number in smallest.tolist()]


def share_of(purpose: str, seed: int, name: str) -> float:
    """A number in [0, 1) from a purpose, the seed and a unit's name."""
    digest = hashlib.sha256(SEPARATOR.join((f"train_classifier.{purpose}", str(seed), name)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def held_out(names: Sequence[str], seed: int, share: float) -> np.ndarray:
    """Which rows are held out: bool[n]. A unit that is held out stays so whatever else is added."""
    return np.array([share_of("side", seed, name) < share for name in names], np.bool_)


def folds(names: Sequence[str], seed: int, count: int) -> np.ndarray:
    """The fold of each row, 0 to ``count - 1``: int64[n]; a unit lies in one fold."""
    return np.array([int(share_of("fold", seed, name) * count) for name in names], np.int64)


def _numbered(values: Sequence[Name], names: Sequence[Name]) -> np.ndarray:
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([numbers[value] for value in values], np.int64)
