"""Documents of elsewhere that the candidates of a deduplication are compared with: another warehouse, or any table.

They are never dropped from and never written to; a candidate that is like one of them is dropped for it, and the
decision names the document and the table that it stands in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.errors import InputContractError, SettingsError
from jobs.runtime.inputs import Input
from jobs.runtime.job import Context
from jobs.runtime.models import SettingsModel
from jobs.runtime.tables import TableRef

if TYPE_CHECKING:
    from jobs.settings import Settings


class AgainstSettings(SettingsModel):
    """One set of documents to compare with: what a warehouse kept, or all rows of a Delta table."""

    warehouse: str | None = Field(
        None, description="Another warehouse: what it kept (exact_dedup: its selection; near_dedup: its index)"
    )
    policy: str = Field("default", description="Whose decisions count in that warehouse")
    step: str = Field("near_dedup", description="The step in that warehouse whose index is read, for near_dedup")
    table: str | None = Field(None, description="Or a Delta table (name, folder, URI) with ids and texts")
    doc_id: str = Field("doc_id", description="Column of that table with the id")
    text: str = Field("text", description="Column of that table with the text")

    @model_validator(mode="after")
    def _one_of_both(self) -> AgainstSettings:
        if (self.warehouse is None) == (self.table is None):
            raise ValueError("give either warehouse or table")
        return self

    @property
    def documents(self) -> TableRef:
        """Where the texts stand; decisions name it as ``kept_in``."""
        if self.warehouse is not None:
            return TableRef.in_warehouse(self.warehouse, "documents")
        place = str(self.table)
        if "/" not in place and not os.path.isdir(place):
            return TableRef(place, True)
        return TableRef(place.rstrip("/") if "://" in place else os.path.abspath(place), False)

    def beside(self, table: str) -> TableRef:
        """Another table of the same warehouse."""
        return TableRef.in_warehouse(str(self.warehouse), table)


@dataclass(frozen=True)
class Elsewhere:
    """The documents of one entry: ``doc_id``, ``text``, and for a warehouse every documents column."""

    number: int
    settings: AgainstSettings
    documents: DataFrame

    @property
    def held_in(self) -> str:
        """The address of the table with the texts."""
        return self.settings.documents.address


def against_inputs(settings: Settings, against: Sequence[AgainstSettings], beside: str) -> list[Input]:
    """The tables that the entries need, to be read at one version each.

    Args:
        settings: All settings.
        against: The entries.
        beside: The table of a warehouse that says what it kept.

    Raises:
        SettingsError: for an entry that names this warehouse's own documents.
    """
    own = TableRef.in_warehouse(settings.warehouse, "documents")
    inputs = []
    for entry in against:
        if entry.documents == own:
            raise SettingsError(
                f"against: '{entry.warehouse or entry.table}' is this warehouse itself: every document would be a duplicate "
                "of itself. Documents that came earlier rank first by: survivor: [arrival, ...]"
            )
        inputs.append(Input.outside(entry.documents, "documents" if entry.warehouse is not None else None))
        if entry.warehouse is not None:
            inputs.append(Input.outside(entry.beside(beside), beside))
    return list({wanted.name: wanted for wanted in inputs}.values())


def elsewhere(context: Context, against: Sequence[AgainstSettings]) -> list[Elsewhere]:
    """The documents of every entry, at their pinned versions.

    Raises:
        InputContractError: if a table lacks the columns that the settings name, they are not strings, or ids repeat.
    """
    return [Elsewhere(number, entry, _documents(context.spark, context, entry)) for number, entry in enumerate(against)]


def _documents(spark: SparkSession, context: Context, entry: AgainstSettings) -> DataFrame:
    frame = context.inputs[entry.documents.address].read(spark)
    if entry.warehouse is not None:
        return frame
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    problems = [
        f"column '{name}' {'is ' + kinds[name] if name in kinds else 'is not there'}; it should be a string"
        for name in (entry.doc_id, entry.text)
        if kinds.get(name) != "string"
    ]
    if problems:
        raise InputContractError(
            f"against: table '{entry.table}' can't be compared with:",
            problems,
            f"Name its columns with doc_id and text; it has: {', '.join(sorted(kinds))}.",
        )
    named = frame.where(F.col(entry.text).isNotNull()).select(
        F.col(entry.doc_id).alias("doc_id"), F.col(entry.text).alias("text")
    )
    wrong = named.groupBy("doc_id").count().where(F.col("doc_id").isNull() | (F.col("count") > 1))
    if examples := wrong.orderBy("doc_id").limit(5).collect():
        raise InputContractError(
            f"against: the ids of table '{entry.table}' ({entry.doc_id}) must be unique and not NULL:",
            [f"{row['doc_id']!r}: {row['count']:,} rows" for row in examples],
            "Name another column with doc_id; decisions name these documents.",
        )
    return named
