"""From signatures to groups: which documents share a bucket, and so must be judged together."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from udfs.near_batches import EDGES, LABELS, WALKED, edge_batches, label_batches

Materialize = Callable[[DataFrame, str], DataFrame]


def node_of(fingerprint: Column) -> Column:
    """A document as a number: the first 64 bits of its fingerprint, the same for the same words.

    It is no identity: two documents that share it by chance are judged together, which changes nothing.
    """
    return F.conv(F.hex(F.substring(fingerprint, 1, 8)), 16, -10).cast("bigint")


def memberships(signed: DataFrame) -> DataFrame:
    """(key, node) of every band of every document. ``signed`` has ``node`` and ``minhash``."""
    return signed.select(F.explode("minhash.bands").alias("key"), "node")


def edges_of(signed: DataFrame) -> DataFrame:
    """(left_node, right_node): what connects each bucket's members; linear in the memberships."""
    return memberships(signed).repartition("key").mapInArrow(edge_batches, EDGES)


def groups_of(edges: DataFrame, number: int, one_task: int, materialize: Materialize) -> DataFrame:
    """(node, label) of every node in an edge: the smallest node that can be reached from it.

    Args:
        edges: ``left_node``, ``right_node``.
        number: How many there are.
        one_task: Up to so many, one task does it in memory (32 bytes an edge); above, DataFrames do it in rounds.
        materialize: Breaks the lineage of a round.
    """
    if number <= one_task:
        return edges.repartition(1).mapInArrow(label_batches, LABELS)
    return groups_in_rounds(edges, materialize)


def components_of(involved: DataFrame) -> DataFrame:
    """What single linkage makes of the groups: the best document of each stays, all others go, nothing is compared.

    For comparison with tools that do so. Documents go that are like no document that stays, at the far end of a chain.

    Args:
        involved: Documents with ``label``, ``position``, ``leading``, ``fixed``, ``protected``.

    Returns:
        Rows as those of the walk, without similarities.
    """
    ranked = Window.partitionBy("label").orderBy("position")
    group = Window.partitionBy("label")
    goes = (F.col("position") > 1) & ~F.col("fixed") & ~F.col("protected")
    best = {"kept_id": F.first("doc_id").over(ranked), "kept_in": F.first("held_in").over(ranked)}
    size = F.count(F.when(goes, 1)).over(group) + 1
    values = {
        **{name: F.when(goes, value) for name, value in best.items()},
        "kept_position": F.when(goes, F.lit(1)),
        "similarity": F.lit(None),
        "shared_bands": F.lit(None),
        "group_size": F.when(goes | (F.col("position") == 1), size).otherwise(1),
        "copy": ~F.col("leading"),
        "compared": F.lit(0),
        "capped": F.lit(False),
        "rejected": F.lit(None),
    }
    made = involved.withColumns(values)
    columns = [part.split() for part in WALKED.split(", ")]
    return made.select(*[F.col(name).cast(kind).alias(name) for name, kind in columns])


def groups_in_rounds(edges: DataFrame, materialize: Materialize) -> DataFrame:
    """The same by alternating large-star and small-star rounds.

    Kiveris and others, "Connected Components in MapReduce and Beyond" (2014), algorithm 1: O(log² n) rounds. Ends when
    a round changes no edge.
    """
    alone = edges.where(F.col("left_node") == F.col("right_node")).select(F.col("left_node").alias("node")).distinct()
    current = edges.where(F.col("left_node") != F.col("right_node")).select(
        F.greatest("left_node", "right_node").alias("u"), F.least("left_node", "right_node").alias("v")
    )
    current = materialize(current.distinct(), "round_0")
    number = 0
    while True:
        number += 1
        both = current.unionByName(current.select(F.col("v").alias("u"), F.col("u").alias("v")))
        smallest = both.groupBy("u").agg(F.least(F.min("v"), F.col("u")).alias("m"))
        large = (
            both.where(F.col("v") > F.col("u"))
            .join(smallest, ["u"])
            .select(F.col("v").alias("u"), F.col("m").alias("v"))
        )
        large = large.where(F.col("u") != F.col("v")).distinct()
        least = large.groupBy("u").agg(F.min("v").alias("m"))
        small = (
            large.join(least, ["u"])
            .select(F.col("v").alias("u"), F.col("m").alias("v"))
            .unionByName(least.select("u", F.col("m").alias("v")))
            .where(F.col("u") != F.col("v"))
            .distinct()
        )
        found = materialize(small, f"round_{number}")
        unchanged = found.join(current, ["u", "v"], "left_semi").count()
        if unchanged == found.count() == current.count():
            break
        current = found
    roots = current.select(F.col("v").alias("node")).distinct()
    labels = current.select(F.col("u").alias("node"), F.col("v").alias("label")).unionByName(
        roots.select("node", F.col("node").alias("label"))
    )
    single = alone.join(labels, ["node"], "left_anti").select("node", F.col("node").alias("label"))
    return labels.unionByName(single)
