"""The base of every settings model, and the sections that all jobs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""What a step, an annotator or a policy may be called: it becomes a column, a partition or a part of a table's name."""


class SettingsModel(BaseModel):
    """Frozen; unknown names are refused; every field carries a description, from which README's table is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)


class SourceSettings(SettingsModel):
    """One entry of the source registry: what travels with every document of a source."""

    priority: int = Field(100, description="Smaller is better: `source_priority` in the survivor rule")
    licence: str | None = Field(None, description="Licence of the source, for example CC-BY-4.0")
    use: Literal["allowed", "evaluation_only", "forbidden"] = Field(
        "allowed", description="Conditions of use; only documents of allowed sources pass the eligibility step"
    )


class SparkSettings(SettingsModel):
    """How a session is built where none is active. Ignored, but for the version check, where one is."""

    master: str | None = Field(None, description="Spark master; default: spark-submit's own, else local[*]")
    remote: str | None = Field(None, description="Spark Connect address (sc://...) or local[N]; instead of master")
    driver_memory: str | None = Field(
        None, description="Heap of a local session, for example 6g; default: a quarter of the memory, 2g to 16g"
    )
    java_home: str | None = Field(None, description="A Java 17 or 21; default: found by itself")
    jars: str | None = Field(None, description="Folder with Delta's jars; default: fetched once from Maven packages")
    scratch: str | None = Field(
        None, description="Where intermediate data goes (folder or URI); default: scratch/ in the warehouse"
    )
    scratch_format: Literal["parquet", "delta"] = Field(
        "parquet", description="delta where only a catalog or a volume is writable"
    )
    text_rows_per_batch: int = Field(
        64, ge=1, le=4096, description="Rows that a Parquet scan of text reads at a time: long documents fill the heap"
    )
    conf: dict[str, str] = Field(default_factory=dict, description="Further Spark configuration, as it is")

    @field_validator("conf", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        """``--set spark.conf.spark.sql.shuffle.partitions=8`` arrives as mappings within mappings, and as a number."""
        return dict(_leaves(value)) if isinstance(value, dict) else value


def _leaves(values: Mapping[Any, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        elif isinstance(value, bool):
            yield name, str(value).lower()
        else:
            yield name, str(value) if isinstance(value, (int, float)) else value
