"""What a table must look like: a contract is created as a Delta table and checked on every read and write.

Pure Python and ``pyspark.sql.types``: no session is needed to compare a schema with a contract.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql.types import DataType, StructField, StructType

from schemas.types import parse_type

PROPERTY_NAME = "weir.contract"
PROPERTY_VERSION = "weir.contract.version"
CONSTRAINT_PREFIX = "delta.constraints.weir_"


@dataclass(frozen=True)
class Column:
    """One column: name, SQL type (``BIGINT``, ``ARRAY<STRING>`` ...), whether NULL is allowed, and what it means."""

    name: str
    sql_type: str
    comment: str
    nullable: bool = False

    @cached_property
    def data_type(self) -> DataType:
        """The Spark type of the column."""
        return parse_type(self.sql_type)


@dataclass(frozen=True)
class Contract:
    """A table's columns, key, checks, partitioning and version.

    Attributes:
        name: The table's name in the warehouse.
        version: Raised with every change that an older reader would misread; a table of another version is refused.
        columns: Ordered. Keys come before wide columns, so that file statistics cover them.
        key: The columns that identify a row (unique over the table, checked by the integrity gate).
        checks: Named SQL conditions that every row meets; each becomes a Delta CHECK constraint.
        statistics: Columns that get file statistics; ``text`` never does.
        open_ended: Further struct columns are allowed (one per annotator).
    """

    name: str
    version: int
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)
    statistics: tuple[str, ...] = ()
    open_ended: bool = False

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def struct_type(self) -> StructType:
        """The schema that a frame for this table has."""
        return StructType([StructField(c.name, c.data_type, c.nullable, {"comment": c.comment}) for c in self.columns])

    def differences(self, schema: StructType) -> list[str]:
        """Everything in which ``schema`` differs from the contract, one sentence each; empty if nothing does.

        Nullability inside nested types is not compared (Spark widens it on reading), that of columns is left to
        the table's own NOT NULL constraints.
        """
        found = {f.name: f for f in schema.fields}
        rows = []
        for column in self.columns:
            if column.name not in found:
                rows.append(f"column '{column.name}' ({column.sql_type}) is missing")
            elif _shape(found[column.name].dataType) != _shape(column.data_type):
                is_type = found[column.name].dataType.simpleString()
                rows.append(f"column '{column.name}' is {is_type}, should be {column.data_type.simpleString()}")
        for name, entry in found.items():
            if name in self.column_names or (self.open_ended and isinstance(entry.dataType, StructType)):
                continue
            rows.append(f"column '{name}' ({entry.dataType.simpleString()}) is not part of the contract")
        return rows

    def version_difference(self, properties: dict[str, str]) -> str | None:
        """Why a table with these properties can't be used, or None. Tables written by others have no such property."""
        written = properties.get(PROPERTY_VERSION)
        if written is not None and written != str(self.version):
            return f"it was written with version {written} of the contract '{self.name}', this code has version {self.version}"
        name = properties.get(PROPERTY_NAME)
        if name is not None and name != self.name:
            return f"it holds the table '{name}', not '{self.name}'"
        return None

    def create_statement(
        self, identifier: str, extra: tuple[Column, ...] = (), properties: dict[str, str] | None = None
    ) -> str:
        """``CREATE TABLE IF NOT EXISTS`` for the table at ``identifier`` (already quoted)."""
        columns = ",\n  ".join(
            f"`{c.name}` {c.sql_type}{'' if c.nullable else ' NOT NULL'} COMMENT {_literal(c.comment)}"
            for c in (*self.columns, *extra)
        )
        settings = {
            PROPERTY_NAME: self.name,
            PROPERTY_VERSION: str(self.version),
            # As properties of CREATE TABLE the constraints come with the table in one commit; ALTER TABLE would add
            # a commit for each, and leave a window in which rows go unchecked.
            **{f"{CONSTRAINT_PREFIX}{name}": check for name, check in self.checks.items()},
            **({"delta.dataSkippingStatsColumns": ",".join(self.statistics)} if self.statistics else {}),
            **(properties or {}),
        }
        written = ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in settings.items())
        partitioned = (
            f"\nPARTITIONED BY ({', '.join(f'`{c}`' for c in self.partitioned_by)})" if self.partitioned_by else ""
        )
        return (
            f"CREATE TABLE IF NOT EXISTS {identifier} (\n  {columns}\n)\nUSING DELTA{partitioned}\n"
            f"COMMENT {_literal(self.comment)}\nTBLPROPERTIES ({written})"
        )


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _shape(data_type: DataType) -> str:
    """A type without its nullability, for comparison."""
    return data_type.simpleString()
