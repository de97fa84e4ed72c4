"""One Spark session for all tests of a process, with real Delta jars; everything else is a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several processes share the tests out file by file: what a file sets up is set up once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two cores, built by the code that users run."""
    from jobs.runtime.models import SparkSettings
    from jobs.runtime.session import get_session

    scratch = tmp_path_factory.mktemp("spark")
    session = get_session(
        SparkSettings(
            master="local[2]",
            driver_memory="3g",
            conf={
                "spark.sql.shuffle.partitions": "4",
                # Thousands of small queries, each run once: generating code for them takes a sixth of the time. Processes
                # that tests start as users do (the demo, spark-submit) generate it.
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
                "spark.local.dir": str(scratch),
                "spark.sql.warehouse.dir": str(scratch / "warehouse"),
                # A time zone that is not UTC, so that a job which forgets to set its own is found out.
                "spark.sql.session.timeZone": "America/New_York",
            },
        )
    )
    yield session
    session.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Any]:
    """Settings from a mapping, with a warehouse of the test's own."""
    from jobs.runtime.layers import Layer, resolve
    from jobs.settings import Settings

    def make(values: dict[str, Any] | None = None, **more: Any) -> Any:
        given = {"warehouse": str(tmp_path / "warehouse"), **(values or {}), **more}
        return resolve(Settings, [Layer("test", given)]).settings

    return make
