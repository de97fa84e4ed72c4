"""The tables that a job reads, and the versions at which it does: resolved once, or as an attempt before had resolved them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from jobs.runtime.tables import Pinned, TableRef, latest_version, pin
from schemas.tables import contract_of


@dataclass(frozen=True)
class Input:
    """A table that a job reads. An optional one may be missing; then the job is told so by its absence.

    A table outside of the warehouse has its own ``ref``, and ``of_contract`` names the contract it follows, if any.
    """

    name: str
    optional: bool = False
    ref: TableRef | None = None
    of_contract: str | None = None

    @classmethod
    def outside(cls, ref: TableRef, of_contract: str | None) -> Input:
        """A table somewhere else, called by its address."""
        return cls(ref.address, False, ref, of_contract)

    def pin(self, spark: SparkSession, warehouse: str, version: int | None = None) -> Pinned:
        """Resolve the version and check the contract."""
        if self.ref is not None:
            contract = None if self.of_contract is None else contract_of(self.of_contract)
            return pin(spark, self.name, self.ref, contract, version)
        return pin(spark, self.name, TableRef.in_warehouse(warehouse, self.name), contract_of(self.name), version)


def pinned_now(spark: SparkSession, warehouse: str, wanted: Sequence[Input]) -> dict[str, Pinned]:
    """Every table at its newest version, by name; optional ones that are missing are left out."""
    return {
        table.name: table.pin(spark, warehouse)
        for table in wanted
        if not (table.optional and latest_version(spark, TableRef.in_warehouse(warehouse, table.name)) is None)
    }


def pinned_before(
    spark: SparkSession, warehouse: str, wanted: Sequence[Input], recorded: Sequence[Mapping[str, Any]]
) -> dict[str, Pinned]:
    """The tables that a run record lists, at the versions that it names; ``wanted`` tells where those outside are."""
    outside = {table.name: table for table in wanted if table.ref is not None}
    names = {str(entry["name"]): int(entry["version"]) for entry in recorded}
    return {name: outside.get(name, Input(name)).pin(spark, warehouse, version) for name, version in names.items()}
