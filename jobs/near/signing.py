"""Signatures with what ranks their documents: of this warehouse, of its index, and of elsewhere.

Every frame made here has the columns ``held_in`` (the address of the table that the document stands in; empty: this
warehouse), ``doc_id``, ``source``, ``batch``, ``bytes``, ``fixed`` (decided before, or elsewhere: it stays), ``protected``,
``rank_0_asc``, ``rank_1_asc`` ... (best first) and ``minhash``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.deciding.conditions import check_conditions
from jobs.deciding.step import Candidates
from jobs.deciding.survivor import annotators_in, arrival_first, rank_values
from jobs.near.candidates import Materialize, memberships, node_of
from jobs.runtime.models import SourceSettings
from udfs.annotators.minhash import MinhashSettings
from udfs.near_batches import sign_batches

SIGNATURE = T.StructType(
    [
        T.StructField("shingles", T.LongType()),
        T.StructField("fingerprint", T.BinaryType()),
        T.StructField("bands", T.ArrayType(T.LongType())),
        T.StructField("sketch", T.BinaryType()),
    ]
)
IDENTITY = ("doc_id", "source", "batch", "bytes")


@dataclass(frozen=True)
class Ranking:
    """What ranks documents.

    Attributes:
        survivor: The survivor rule.
        sources: The source registry.
        protected: SQL conditions; documents that meet one are never dropped. They rank before all others, but behind
            earlier arrivals if the rule begins with ``arrival``: what was decided before can't be overtaken.
        elsewhere: How many sets of documents from elsewhere rank before this warehouse's.
    """

    survivor: Sequence[str]
    sources: Mapping[str, SourceSettings]
    protected: Sequence[str] = ()
    elsewhere: int = 0

    @property
    def annotators(self) -> list[str]:
        """The annotators that the rule needs."""
        return sorted(annotators_in(self.survivor))

    def on(self, frame: DataFrame, fixed: bool = False) -> DataFrame:
        """The frame with ``held_in``, ``fixed``, ``protected`` and the rank columns.

        Raises:
            SettingsError: for conditions or names that can't be used.
        """
        check_conditions(frame, [("near_dedup's protected", condition) for condition in self.protected])
        protected = F.lit(False)
        for condition in self.protected:
            protected = protected | F.coalesce(F.expr(condition), F.lit(False))
        values = rank_values(frame, self.survivor, self.sources)
        shield: tuple[Column, bool] = (F.when(protected, 0).otherwise(1), False)
        values.insert(1 if arrival_first(self.survivor) else 0, shield)
        values = [(F.lit(self.elsewhere), False), *values, (F.col("doc_id"), False)]
        ranks = {f"rank_{at}_{'desc' if descending else 'asc'}": value for at, (value, descending) in enumerate(values)}
        return frame.withColumns(
            {"held_in": F.lit(""), "fixed": F.lit(fixed), "protected": F.coalesce(protected, F.lit(False)), **ranks}
        )


def signed_documents(
    candidates: Candidates,
    annotator: str,
    minhash: MinhashSettings,
    ranking: Ranking,
    materialize: Materialize,
    newer_than: int | None = None,
) -> DataFrame:
    """Candidates with signatures as annotated, else computed here; also ``text_sha256``.

    Args:
        candidates: Of the step.
        annotator: Name of the minhash annotator.
        minhash: How signatures are made.
        ranking: See there.
        materialize: Stores the result, which is read several times.
        newer_than: Only documents whose ``arrival`` is above this.
    """
    needed = ranking.annotators
    arrived = F.lit(True) if newer_than is None else F.col("arrival") > newer_than
    if annotator in candidates.has:
        ranked = ranking.on(candidates.annotated([*needed, annotator]).where(arrived))
        minima = F.struct(*[F.col(f"{annotator}.{field.name}") for field in SIGNATURE.fields])
        narrow = ranked.select(*_carried(ranked), "text_sha256", minima.alias("minhash"))
        return materialize(narrow, "signed")
    carried = candidates.with_text.where(arrived)
    if needed:
        values = candidates.annotated(needed).where(arrived).select("doc_id", *needed)
        carried = carried.join(values, ["doc_id"])
    ranked = ranking.on(carried)
    return materialize(sign(ranked.select(*_carried(ranked), "text_sha256", "text"), minhash), "signed")


def sign(texts: DataFrame, minhash: MinhashSettings) -> DataFrame:
    """Any columns and, last, ``text``: with ``minhash`` in its place."""
    bands, rows = minhash.shape
    schema = T.StructType([*texts.schema.fields[:-1], T.StructField("minhash", SIGNATURE)])
    return texts.mapInArrow(sign_batches(minhash.shingle_words, bands, rows, minhash.seed), schema)


def touched(older: DataFrame, newer: DataFrame) -> DataFrame:
    """The rows of ``older`` that share a bucket with any of ``newer``; both have ``minhash``."""
    older = older.withColumn("node", node_of(F.col("minhash.fingerprint")))
    newer = newer.withColumn("node", node_of(F.col("minhash.fingerprint")))
    keys = memberships(newer).select("key").distinct()
    nodes = memberships(older).join(keys, ["key"], "left_semi").select("node").distinct()
    return older.join(nodes, ["node"], "left_semi").drop("node")


def decided_before(candidates: Candidates, index: DataFrame, ranking: Ranking) -> DataFrame:
    """Documents of this warehouse that an earlier run kept, ranked by what they are now."""
    frame = candidates.annotated(ranking.annotators) if ranking.annotators else candidates.documents
    ranked = ranking.on(frame, fixed=True)
    return ranked.join(index.select("doc_id", "minhash"), ["doc_id"]).select(*_carried(ranked), "minhash")


def from_elsewhere(frame: DataFrame, held_in: str, number: int, like: DataFrame) -> DataFrame:
    """Documents that stand in another table, as rows like those of this warehouse; before them in rank, never dropped.

    Args:
        frame: ``doc_id``, ``source``, ``batch``, ``bytes``, ``minhash``.
        held_in: Address of the table.
        number: Its place among the sets that are compared with.
        like: A frame of ``signed_documents``.
    """
    ranks = [name for name in like.columns if name.startswith("rank_")]
    values = {name: F.lit(None).cast(like.schema[name].dataType) for name in ranks}
    values[ranks[0]] = F.lit(number)
    values[ranks[-1]] = F.col("doc_id")
    made = frame.withColumns(
        {"held_in": F.lit(held_in), "fixed": F.lit(True), "protected": F.lit(False), **values},
    )
    return made.select(*_carried(made), "minhash")


def _carried(frame: DataFrame) -> list[str]:
    ranks = sorted((c for c in frame.columns if c.startswith("rank_")), key=lambda name: int(name.split("_")[1]))
    return ["held_in", *IDENTITY, "fixed", "protected", *ranks]
