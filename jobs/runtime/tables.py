"""Tables: where they are, at which version they are read, and how they are written so that a retry changes nothing.

A write carries ``txnAppId``/``txnVersion`` (Delta's idempotent writes) and a short JSON in ``userMetadata``. Delta
skips a repeated transaction without a word, also if its data would differ, so the history is asked first whether the
run has committed already, and a skip is said.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from jobs.runtime.errors import InputContractError, SettingsError, TableMissing, TableVersionError
from jobs.runtime.failures import conflict_of, translate
from jobs.runtime.session import list_folders
from schemas.contract import Column, Contract

Result = TypeVar("Result")
_NAME = re.compile(r"[A-Za-z_][\w\-]*(\.[A-Za-z_][\w\-]*){0,2}")
CREATE_ATTEMPTS = 6


@dataclass(frozen=True)
class TableRef:
    """The address of a table: a catalog name (``catalog.schema.table``) or a folder (path or object-store URI)."""

    address: str
    is_name: bool

    @classmethod
    def in_warehouse(cls, warehouse: str, table: str) -> TableRef:
        """``warehouse`` is a folder, a URI, or ``schema`` / ``catalog.schema``; the table stands in it.

        A plain word is taken for a folder; a schema is written ``schema.`` or ``catalog.schema``.
        """
        if not warehouse.strip():
            raise SettingsError("setting 'warehouse' is empty; give a folder, an object-store URI or catalog.schema")
        if is_catalog(warehouse):
            return cls(f"{warehouse.rstrip('.')}.{table}", True)
        if re.match(r"^[a-z][a-z0-9+.\-]*:/", warehouse):
            return cls(f"{warehouse.rstrip('/')}/{table}", False)
        return cls(str(Path(warehouse).expanduser().absolute() / table), False)

    @property
    def identifier(self) -> str:
        """The table as SQL names it."""
        if self.is_name:
            return ".".join(f"`{part}`" for part in self.address.split("."))
        return f"delta.`{self.address.replace('`', '``')}`"


def is_catalog(warehouse: str) -> bool:
    """Whether the setting ``warehouse`` names a schema rather than a folder."""
    if "/" in warehouse or warehouse.startswith((".", "~")):
        return False
    return "." in warehouse and _NAME.fullmatch(warehouse.rstrip(".")) is not None


@dataclass(frozen=True)
class Commit:
    """What the history says of one commit."""

    version: int
    metadata: str
    rows: int


@dataclass(frozen=True)
class Pinned:
    """A table at a version: everything that a run reads, it reads from here."""

    name: str
    ref: TableRef
    version: int

    def read(self, spark: SparkSession) -> DataFrame:
        """The table as of the version.

        Raises:
            TableMissing: if the version has been vacuumed away.
        """
        reader = spark.read.format("delta").option("versionAsOf", self.version)
        try:
            return reader.table(self.ref.address) if self.ref.is_name else reader.load(self.ref.address)
        except PySparkException as error:
            raise translate(
                error, f"reading version {self.version} of table '{self.name}' ({self.ref.address})"
            ) from None


@dataclass(frozen=True)
class Written:
    """What a write did: ``skipped`` means that an earlier attempt of the same run had committed it."""

    name: str
    ref: TableRef
    version: int
    rows: int
    skipped: bool

    def pinned(self) -> Pinned:
        """The table as this write left it."""
        return Pinned(self.name, self.ref, self.version)


def latest_version(spark: SparkSession, ref: TableRef) -> int | None:
    """The newest version of a Delta table, or None where there is no table.

    Raises:
        InputContractError: if something that is not a Delta table is in its place.
    """
    try:
        row = spark.sql(f"DESCRIBE HISTORY {ref.identifier} LIMIT 1").select("version").first()
    except PySparkException as error:
        if is_missing(error):
            if not ref.is_name and _folder_in_use(ref.address):
                raise InputContractError(
                    f"'{ref.address}' holds files, but no Delta table",
                    remedy="Name another warehouse, or move these files away.",
                ) from None
            return None
        raise translate(error, f"reading the history of {ref.address}") from None
    return None if row is None else int(row[0])


def pin(spark: SparkSession, name: str, ref: TableRef, contract: Contract | None, version: int | None = None) -> Pinned:
    """Resolve a table to its newest (or the given) version and check it against its contract, if it has one.

    Raises:
        TableMissing: if there is no such table.
        TableVersionError: if it was written with another version of the contract.
        InputContractError: listing every column that differs.
    """
    newest = latest_version(spark, ref) if version is None else version
    if newest is None:
        if name == ref.address:
            raise TableMissing(f"there is no Delta table at {name}", remedy="Check the address in the settings.")
        raise TableMissing(
            f"table '{name}' does not exist at {ref.address}", remedy=f"Run the job that writes '{name}' first."
        )
    pinned = Pinned(name, ref, newest)
    if contract is None:
        return pinned
    properties = table_properties(spark, ref)
    difference = contract.version_difference(properties)
    if difference:
        raise TableVersionError(
            f"table '{name}' ({ref.address}) can't be read: {difference}",
            remedy="Use the release of corpus-weir that wrote it, or write it anew into another warehouse.",
        )
    differences = contract.differences(pinned.read(spark).schema)
    if differences:
        raise InputContractError(
            f"table '{name}' ({ref.address}, version {newest}) breaks its contract in {len(differences)} place(s):",
            differences,
            f"The contract '{contract.name}', version {contract.version}, is in schemas/tables.py.",
        )
    return pinned


def table_properties(spark: SparkSession, ref: TableRef) -> dict[str, str]:
    """The table's own properties."""
    row = spark.sql(f"DESCRIBE DETAIL {ref.identifier}").select("properties").first()
    return dict(row[0] or {}) if row is not None else {}


def commits(spark: SparkSession, ref: TableRef, limit: int | None = None) -> list[Commit]:
    """The table's commits, newest first."""
    statement = f"DESCRIBE HISTORY {ref.identifier}" + (f" LIMIT {limit}" if limit else "")
    rows = spark.sql(statement).select("version", "userMetadata", "operationMetrics").collect()
    return [Commit(int(v), m or "", int((metrics or {}).get("numOutputRows", 0) or 0)) for v, m, metrics in rows]


def find_commit(spark: SparkSession, ref: TableRef, key: str, newest: int | None = None) -> Commit | None:
    """The commit that carries a transaction key in its metadata, if it is in the history (its ``newest`` entries).

    The table's log may have been cleaned; Delta's own record of the transaction is the second line of defence.
    """
    for commit in commits(spark, ref, newest):
        if commit.metadata.startswith("{") and json.loads(commit.metadata).get("transaction") == key:
            return commit
    return None


def ensure_table(
    spark: SparkSession,
    name: str,
    ref: TableRef,
    contract: Contract,
    extra: tuple[Column, ...] = (),
    properties: dict[str, str] | None = None,
) -> int:
    """Create the table by its contract if it is missing; returns its version. Two creators at once both succeed."""
    version = latest_version(spark, ref)
    if version is not None:
        check_version(spark, name, ref, contract)
        return version
    if ref.is_name:
        schema = ref.address.rpartition(".")[0]
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(f'`{part}`' for part in schema.split('.'))}")

    def create() -> None:
        spark.sql(contract.create_statement(ref.identifier, extra, properties))

    try:
        retry_conflicts(create, f"creating table '{name}'")
    except PySparkException as error:
        if "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION" not in str(error):
            raise
    created = latest_version(spark, ref)
    if created is None:  # Delta takes any file in the table's folder for a table, and so creates none
        _await_first_commit(spark, name, ref)
        retry_conflicts(create, f"creating table '{name}'")
        created = latest_version(spark, ref)
    return created or 0


def check_version(spark: SparkSession, name: str, ref: TableRef, contract: Contract) -> None:
    """Refuse to write to a table that was created by another version of its contract.

    Raises:
        TableVersionError: naming both versions.
    """
    difference = contract.version_difference(table_properties(spark, ref))
    if difference:
        raise TableVersionError(
            f"table '{name}' ({ref.address}) can't be written: {difference}",
            remedy="Name another warehouse, or use the release of corpus-weir that wrote it.",
        )


def _await_first_commit(spark: SparkSession, name: str, ref: TableRef) -> None:
    """Another creator has made the log's folder: wait for its commit, or clear away what it left when it was killed.

    Raises:
        InputContractError: if something else is in the table's place.
    """
    for attempt in range(CREATE_ATTEMPTS):
        time.sleep(0.2 * (attempt + 1))
        if latest_version(spark, ref) is not None:
            return
    folder = Path(ref.address.removeprefix("file:"))
    log = folder / "_delta_log"
    # Without a commit nothing in the log was ever valid; the files whose names start with a dot are unfinished ones.
    if log.is_dir() and [*folder.iterdir()] == [log] and all(entry.name.startswith(".") for entry in log.iterdir()):
        shutil.rmtree(log)
        return
    raise InputContractError(
        f"table '{name}' can't be created: '{ref.address}' holds files, but no Delta table",
        remedy="Name another warehouse, or move these files away.",
    )


def write_table(
    spark: SparkSession,
    frame: DataFrame,
    name: str,
    ref: TableRef,
    contract: Contract,
    *,
    transaction: str,
    ordinal: int,
    metadata: dict[str, object],
    replace_where: str | None = None,
) -> Written:
    """Append a frame, or replace the rows of a slice with it, in one commit, once per ``(transaction, ordinal)``.

    Args:
        frame: Has the contract's columns (in any order), and further ones where the contract is open-ended.
        transaction: Identity of the run's writes (job, run id, settings); becomes ``txnAppId``.
        ordinal: Number of the write within the job; becomes ``txnVersion``.
        metadata: Facts for the commit's ``userMetadata``.
        replace_where: SQL condition over partition columns; every row of the frame must meet it.

    Raises:
        InputContractError: if the frame does not fit the contract.
        RetryLater: if another run changed the same slice meanwhile.
    """
    key = f"{transaction}#{ordinal}"
    done = find_commit(spark, ref, key)
    if done is not None:
        return Written(name, ref, done.version, done.rows, skipped=True)
    differences = contract.differences(frame.schema)
    if differences:
        raise InputContractError(f"what was to be written to '{name}' breaks its contract:", differences)
    ordered = [*contract.column_names, *(c for c in frame.columns if c not in contract.column_names)]
    writer = (
        frame.select(*ordered)
        .write.format("delta")
        .option("txnAppId", key)
        .option("txnVersion", "1")
        .option("userMetadata", json.dumps({"transaction": key, **metadata}, separators=(",", ":"), default=str))
    )
    writer = (
        writer.mode("append")
        if replace_where is None
        else writer.mode("overwrite").option("replaceWhere", replace_where)
    )

    def commit() -> None:
        if ref.is_name:
            writer.saveAsTable(ref.address)
        else:
            writer.save(ref.address)

    try:
        commit()
    except Exception as error:
        conflict = conflict_of(error)
        done = find_commit(spark, ref, key) if conflict is not None else None
        if done is not None:  # by another process with the same run id
            return Written(name, ref, done.version, done.rows, skipped=True)
        if conflict is None and not isinstance(error, PySparkException) and not hasattr(error, "java_exception"):
            raise
        raise translate(error, f"writing table '{name}' ({ref.address})") from None
    found = find_commit(spark, ref, key, newest=20) or find_commit(spark, ref, key)
    if found is None:
        # The history no longer tells (cleaned log) or Delta skipped the transaction: say which version is there.
        return Written(name, ref, latest_version(spark, ref) or 0, 0, skipped=True)
    return Written(name, ref, found.version, found.rows, skipped=False)


def retry_conflicts(action: Callable[[], Result], doing: str, attempts: int = CREATE_ATTEMPTS) -> Result:
    """Repeat a small idempotent action on Delta's conflicts, with growing random pauses."""
    for attempt in range(attempts):
        try:
            return action()
        except Exception as error:
            if conflict_of(error) is None or attempt == attempts - 1:
                raise translate(error, doing) from None
            time.sleep(random.uniform(0.05, 0.3) * (attempt + 1))  # the pause decides nothing but when
    raise AssertionError("unreachable")


def list_tables(spark: SparkSession, warehouse: str, prefix: str) -> list[str]:
    """Names of the warehouse's tables that start with a prefix, sorted."""
    if is_catalog(warehouse):
        schema = ".".join(f"`{part}`" for part in warehouse.rstrip(".").split("."))
        try:
            rows = spark.sql(f"SHOW TABLES IN {schema} LIKE {sql_string(prefix + '*')}").select("tableName").collect()
        except PySparkException as error:
            if is_missing(error):
                return []
            raise translate(error, f"listing the tables of {warehouse}") from None
        return sorted(str(row[0]) for row in rows)
    root = TableRef.in_warehouse(warehouse, "x").address.removesuffix("/x")
    return [name for name in list_folders(spark, root) if name.startswith(prefix)]


def sql_string(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def sql_in(column: str, values: Sequence[str]) -> str:
    """``column IN (...)`` over strings."""
    return f"{column} IN ({', '.join(sql_string(v) for v in sorted(values))})"


def is_missing(error: Exception) -> bool:
    """Whether Spark says that there is no such table, in any of its words for it."""
    text = str(error)
    return any(
        mark in text
        for mark in (
            "DELTA_TABLE_ONLY_OPERATION",
            "DELTA_MISSING_DELTA_TABLE",
            "DELTA_PATH_DOES_NOT_EXIST",
            "[PATH_NOT_FOUND]",
            "DELTA_TABLE_NOT_FOUND",
            "TABLE_OR_VIEW_NOT_FOUND",
            "SCHEMA_NOT_FOUND",
        )
    )


def _folder_in_use(address: str) -> bool:
    folder = Path(address.removeprefix("file:"))
    return folder.is_dir() and any(folder.iterdir()) and not (folder / "_delta_log").is_dir()
