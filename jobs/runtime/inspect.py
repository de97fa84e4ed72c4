"""``weir runs`` and ``weir show``: tables as people read them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from jobs.runtime.display import print_record, print_table
from jobs.runtime.errors import SettingsError, TableMissing
from jobs.runtime.runs import RunTable
from jobs.runtime.session import JOB_CONF, configured, get_session, stop_own_session
from jobs.runtime.tables import Pinned, TableRef, latest_version, list_tables

if TYPE_CHECKING:
    from jobs.settings import Settings

SIDE_BY_SIDE = 8
"""Tables with more columns than this are shown a line per column."""


def print_runs(settings: Settings, run_id: str | None, limit: int, with_settings: bool, as_json: bool) -> int:
    """The newest run records."""
    spark = get_session(settings.spark)
    try:
        with configured(spark, JOB_CONF):
            runs = RunTable(spark, settings.warehouse)
            if not runs.exists():
                raise TableMissing(
                    f"no run was recorded in {runs.ref.address}", remedy="Name the warehouse: --set warehouse=..."
                )
            frame = runs.frame()
            if run_id is not None:
                frame = frame.where(F.col("run_id") == run_id)
            rows = frame.orderBy(F.col("started_at").desc(), "run_id", "job", "step").limit(limit).collect()
    finally:
        stop_own_session(spark)
    if as_json:
        sys.stdout.write(json.dumps([r.asDict(recursive=True) for r in rows], default=str) + "\n")
        return 0
    columns = [
        "started (UTC)",
        "run",
        "job",
        "step",
        "status",
        "in",
        "kept",
        "dropped",
        "rejected",
        "seconds",
        "GB/core-h",
        "error",
    ]
    shown = [
        [r.started_at, r.run_id, r.job, r.step, r.status, r.documents_in, r.documents_kept, r.documents_dropped,
         r.documents_quarantined, r.seconds, r.gb_per_core_hour, r.error]
        for r in rows
    ]  # fmt: skip
    print_table("", columns, shown, right=columns[5:11])
    if with_settings:
        for row in rows:
            sys.stdout.write(f"\n{row.run_id} {row.job} {row.step}\n{json.dumps(json.loads(row.settings), indent=2)}\n")
    return 0


def print_table_rows(
    settings: Settings,
    table: str,
    where: str | None,
    columns: str | None,
    limit: int,
    version: int | None,
    as_json: bool,
) -> int:
    """Rows of a table of the warehouse, in the order of its first column so that they come out the same again."""
    spark = get_session(settings.spark)
    try:
        with configured(spark, JOB_CONF):
            ref = TableRef.in_warehouse(settings.warehouse, table)
            newest = latest_version(spark, ref)
            if newest is None:
                known = list_tables(spark, settings.warehouse, "")
                raise TableMissing(
                    f"there is no table '{table}' in {settings.warehouse}",
                    remedy=f"It has: {', '.join(n for n in known if n != 'scratch') or 'no tables yet'}.",
                )
            frame = Pinned(table, ref, newest if version is None else version).read(spark)
            try:
                if where:
                    frame = frame.where(where)
                if columns:
                    frame = frame.selectExpr(*_split(columns))
                rows: list[Any] = frame.orderBy(frame.columns[0]).limit(limit).collect()
            except PySparkException as error:
                raise SettingsError(f"--where or --columns can't be used: {str(error).splitlines()[0]}") from None
            names = frame.columns
    finally:
        stop_own_session(spark)
    if as_json:
        sys.stdout.write(json.dumps([r.asDict(recursive=True) for r in rows], default=str, ensure_ascii=False) + "\n")
    elif len(names) <= SIDE_BY_SIDE:
        print_table("", names, [list(row) for row in rows])
    else:
        for number, row in enumerate(rows, 1):
            sys.stdout.write(f"row {number}\n")
            print_record(row.asDict(recursive=True))
    if not as_json:
        sys.stdout.write(f"{len(rows):,} row(s) of {table}, version {newest if version is None else version}\n")
    return 0


def _split(columns: str) -> list[str]:
    """Split at commas that are not inside parentheses, brackets or quotes."""
    parts, depth, current, quote = [], 0, "", ""
    for character in columns:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        else:
            depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [part for part in (*parts, current.strip()) if part]
