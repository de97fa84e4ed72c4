"""``materialize``: the one seam where a frame's lineage is broken, and the scratch data that this leaves behind.

Parquet files by default; Delta tables where only a catalog is writable. Everything of a run lies under one folder that
is removed when the job ends, and before a killed run is started again.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from jobs.runtime.failures import translate
from jobs.runtime.session import delete_folder
from jobs.runtime.tables import TableRef, is_catalog, list_tables


@dataclass
class Scratch:
    """Intermediate data of one job of one run.

    Attributes:
        spark: The session.
        warehouse: Where ``scratch/`` is, unless a location is given.
        run_id: The run.
        job: The job, and its step if it has some.
        location: Folder, URI or schema to use in place of the warehouse.
        file_format: Of the data in folders.
        attempt: Keeps two processes apart that were given the same run id at the same time; each has a folder of its
            own in the run's.
    """

    spark: SparkSession
    warehouse: str
    run_id: str
    job: str
    location: str | None = None
    file_format: str = "parquet"
    attempt: str = ""

    @property
    def folder(self) -> str:
        """The run's folder (path or URI) of intermediate data."""
        safe = re.sub(r"[^A-Za-z0-9_.\-]", "_", f"{self.run_id}-{self.job}")
        # Two run ids may become equal when made safe for a file name: a hash keeps them apart.
        unique = hashlib.sha256(f"{self.run_id}\0{self.job}".encode()).hexdigest()[:8]
        root = self.location or self.warehouse
        return TableRef.in_warehouse(root, f"scratch/{safe}-{unique}").address

    @property
    def _own_folder(self) -> str:
        return f"{self.folder}/{self.attempt}" if self.attempt else self.folder

    @property
    def _table_prefix(self) -> str:
        """Of the names of the run's tables in a catalog, which has no folders."""
        return f"scratch_{hashlib.sha256(f'{self.run_id}{chr(0)}{self.job}'.encode()).hexdigest()[:16]}_"

    @property
    def _own_prefix(self) -> str:
        return f"{self._table_prefix}{self.attempt}_" if self.attempt else self._table_prefix

    @property
    def in_catalog(self) -> bool:
        """Whether scratch data must go into tables of the catalog."""
        return is_catalog(self.location or self.warehouse)

    def materialize(self, frame: DataFrame, name: str) -> DataFrame:
        """Compute a frame once, store it, and give back a frame that reads the stored rows.

        Raises:
            ScratchFull, NotPermitted: if it can't be written.
        """
        try:
            if self.in_catalog:
                ref = TableRef.in_warehouse(self.location or self.warehouse, f"{self._own_prefix}{name}")
                frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(ref.address)
                return self.spark.table(ref.address)
            target = f"{self._own_folder}/{name}"
            frame.write.format(self.file_format).mode("overwrite").save(target)
            return self.spark.read.format(self.file_format).load(target)
        except PySparkException as error:
            raise translate(error, f"writing scratch data '{name}' ({self.folder})") from None
        except Exception as error:
            raise translate(error, f"writing scratch data '{name}' ({self.folder})") from error

    def clean(self, only_own: bool = False) -> None:
        """Remove everything that this job of this run has left, or only what this attempt has."""
        if self.in_catalog:
            place = self.location or self.warehouse
            for name in list_tables(self.spark, place, self._own_prefix if only_own else self._table_prefix):
                self.spark.sql(f"DROP TABLE IF EXISTS {TableRef.in_warehouse(place, name).identifier}")
        elif only_own and self.attempt:
            delete_folder(self.spark, self._own_folder, empty_parents=2)
        else:
            delete_folder(self.spark, self.folder)
