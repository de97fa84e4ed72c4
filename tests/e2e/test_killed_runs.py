"""kill -9, then the same run id again: the same tables as without the kill, each written once, one record per job."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.e2e.dying import data_files
from tests.e2e.helpers import (
    CASES,
    HOME,
    digests,
    finish,
    is_table,
    rows_of,
    script,
    start,
    transactions,
    versions,
    weir,
    write_lines,
    write_settings,
)

DATA_TABLES = (
    "documents", "rejects", "annotations", "decisions", "near_dedup_index", "selection", "validations",
)  # fmt: skip
COMMITS = {"decisions": 2}
"""How often a run commits to a table: once, but for the two steps that decide."""
KILLS = [
    ("ingest", "scratch"), ("ingest", "documents"), ("ingest", "record"),
    ("annotate", "annotations"), ("exact-dedup", "decisions"), ("exact-dedup", "record"),
    ("near-dedup", "scratch/walked"), ("near-dedup", "near_dedup_index"),
    ("select", "selection"), ("validate", "validations"), ("validate", "record"),
]  # fmt: skip
"""Every writer in the middle of its work, between its stages, and between its last commit and its record.

The runtime writes the record for all jobs: one that merges, one that replaces a slice and one that adds must do.
"""

BROKEN = [b"{", b'{"id": "n1"}', b"[]", b"7", b'{"id": "n2", "text": 5}', b'{"text": "no id"}', b"\xff"] * 2


def settings_in(home: Path) -> Path:
    """20 documents of which 6 are duplicates (case O-JOB-02), two that are nearly alike, and lines that are rejected."""
    data = home / "data"
    data.mkdir(parents=True)
    shutil.copyfile(CASES / "O-JOB-02.jsonl", data / "a.jsonl")
    words = [f"word{i}" for i in range(60)]
    write_lines(data / "near.jsonl", [{"id": f"near{last}", "text": " ".join([*words, last])} for last in "ab"])
    (data / "broken.jsonl").write_bytes(b"\n".join(BROKEN))
    return write_settings(
        home / "weir.yaml",
        {
            "warehouse": str(home / "warehouse"),
            "ingest": {"s1": {"paths": [str(data)], "columns": {"doc_id": "id"}, "duplicate_ids": "keep_latest"}},
            "survivor": ["arrival", "doc_id"],
            "decide": [{"exact_dedup": {}}, {"near_dedup": {}}],
            "validate": {"coverage": {"floor": {"documents": 1}}},
        },
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose warehouse holds run r1, never killed."""
    home = tmp_path_factory.mktemp("undisturbed")
    weir("run", settings_in(home), "--run-id", "r1").expect(0)
    return home


def content(warehouse: Path) -> dict[str, list[str]]:
    """The rows of every data table but for the times at which they were written."""
    found = {}
    for table in DATA_TABLES:
        rows = rows_of(warehouse, table)
        for row in rows:
            row.pop("file", None)
            row.pop("validated_at", None)
            row.pop("documents_version", None)
        found[table] = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
    return found


def read_by_others(warehouse: Path, table: str) -> int:
    """How many rows somebody sees who reads the table now."""
    return len(rows_of(warehouse, table)) if is_table(warehouse / table) else 0


def test_a_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been(undisturbed: Path, tmp_path: Path) -> None:
    """O-JOB-02: one run id, killed at every point in turn; each attempt goes on where the last one died."""
    file = settings_in(tmp_path)
    warehouse = tmp_path / "warehouse"
    whole = {table: len(rows) for table, rows in content(undisturbed / "warehouse").items()}
    assert all(count >= 4 for count in whole.values()), whole
    assert [r["doc_id"] for r in rows_of(undisturbed / "warehouse", "decisions") if r["step"] == "near_dedup"] == [
        "nearb"
    ]
    for table in ("runs", "documents"):  # what a driver leaves that dies while it creates a table
        log = warehouse / table / "_delta_log"
        log.mkdir(parents=True)
        (log / ".00000000000000000000.json.3f1c.tmp").write_text("{")
    first = "ingest"
    for job, point in KILLS:
        done = script("dying.py", file, "r1", job, point, first)
        first = job
        assert done.code == -signal.SIGKILL, (job, point, done.stderr[-3000:])
        records = {r["job"]: r["status"] for r in rows_of(warehouse, "runs", "job", "status")}
        assert records[job.replace("-", "_")] == "started", (job, point, records)
        if point in DATA_TABLES:
            assert data_files(str(warehouse / point)), f"{point}: no file had been written when the driver died"
            assert read_by_others(warehouse, point) == 0, f"{point}: uncommitted rows can be read"
        else:
            assert data_files(str(warehouse / "scratch")) or point == "record"
        if (job, point) == ("ingest", "scratch"):
            assert "documents" not in versions(warehouse)
    last = weir("run", file, "--run-id", "r1", "--json").expect(0)
    assert last.json["status"] == "done"

    assert content(warehouse) == content(undisturbed / "warehouse")
    assert digests(warehouse) == digests(undisturbed / "warehouse")
    for table in DATA_TABLES:
        written = transactions(warehouse, table)
        assert len(written) == COMMITS.get(table, 1) and all("/r1/" in key for key in written), (table, written)
    for table in versions(warehouse):
        assert DeltaTable(str(warehouse / table)).metadata().configuration["weir.contract"] == table, table
    records = rows_of(warehouse, "runs")
    assert sorted((r["run_id"], r["job"], r["step"], r["status"]) for r in records) == [
        ("r1", "annotate", "", "done"), ("r1", "exact_dedup", "exact_dedup", "done"), ("r1", "ingest", "", "done"),
        ("r1", "near_dedup", "near_dedup", "done"), ("r1", "select", "", "done"), ("r1", "validate", "", "done"),
    ]  # fmt: skip
    select = next(r for r in records if r["job"] == "select")
    assert (select["documents_in"], select["documents_kept"], select["documents_dropped"]) == (22, 15, 7)
    original = {(r["job"], r["step"]): r for r in rows_of(undisturbed / "warehouse", "runs")}
    for record in records:
        for name in ("counts", "documents_in", "documents_kept", "documents_dropped", "documents_quarantined",
                     "bytes"):  # fmt: skip
            assert record[name] == original[record["job"], record["step"]][name], (record["job"], name)
    assert not (warehouse / "scratch").exists()


def test_a_killed_second_delivery_leaves_the_first_in_view_until_it_is_whole(undisturbed: Path, tmp_path: Path) -> None:
    """New and changed documents: the merge, the completion of annotations and the replaced selection, each killed."""
    file = settings_in(tmp_path)
    warehouse = tmp_path / "warehouse"
    shutil.copytree(undisturbed / "warehouse", warehouse)
    shutil.rmtree(tmp_path / "data")
    more = [{"id": f"e{i}", "text": f"another delivery, document {i}, about rivers and weirs"} for i in range(8)]
    write_lines(tmp_path / "data" / "b.jsonl", [*more, {"id": "d0", "text": "document d0 has another text now"}])
    quiet = tmp_path / "quiet"
    shutil.copytree(warehouse, quiet / "warehouse")
    weir("run", file, "--run-id", "r2", "--set", f"warehouse={quiet / 'warehouse'}").expect(0)

    def selected() -> list[dict[str, Any]]:
        rows = rows_of(warehouse, "selection", "doc_id", "kept", "run_id")
        return sorted(rows, key=lambda r: str(r["doc_id"]))

    before = selected()
    for job, point in [("ingest", "record"), ("select", "selection")]:
        done = script("dying.py", file, "r2", job, point)
        assert done.code == -signal.SIGKILL, (job, point, done.stderr[-3000:])
        assert selected() == before, "a reader sees half of the second run"
    weir("run", file, "--run-id", "r2", "--json").expect(0)
    assert content(warehouse) == content(quiet / "warehouse")
    assert digests(warehouse, "r2") == digests(quiet / "warehouse", "r2")
    assert len(selected()) == 30
    for table in DATA_TABLES:
        written = transactions(warehouse, table)
        assert len(written) == len(set(written)) == 2 * COMMITS.get(table, 1), (table, written)


def test_a_finished_run_id_writes_nothing_and_says_so(undisturbed: Path, tmp_path: Path) -> None:
    """O-JOB-01, by a process of its own."""
    warehouse = undisturbed / "warehouse"
    before = versions(warehouse)
    again = weir("run", undisturbed / "weir.yaml", "--run-id", "r1", "--json").expect(0)
    assert again.json["status"] == "already done" and again.json["exit_code"] == 0
    assert {job["status"] for job in again.json["jobs"]} == {"already done"}
    assert again.last_line == "run r1 was already done; nothing was written"
    assert versions(warehouse) == before


def test_a_run_id_cannot_be_used_again_for_something_else(undisturbed: Path) -> None:
    """The same id with other settings would be taken for a repetition, and its work silently left out."""
    before = versions(undisturbed / "warehouse")
    refused = weir(
        "exact-dedup", undisturbed / "weir.yaml", "--run-id", "r1", "--set", "survivor=[-characters, doc_id]", "--json"
    ).expect(2)
    assert "run id 'r1' was used for exact-dedup before with other settings" in refused.json["error"]
    assert versions(undisturbed / "warehouse") == before


def test_ctrl_c_ends_with_130_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    """A person's interruption is no crash: no traceback, scratch data gone, and the same run id goes on."""
    file = settings_in(tmp_path)
    process = start([str(HOME / "tests" / "e2e" / "interrupted.py"), str(file)])
    done = finish(process).expect(130)
    assert "run it again with the same run id to go on" in done.last_line
    assert not (tmp_path / "warehouse" / "scratch").exists()
    weir("ingest", file, "--run-id", "r1").expect(0)
    assert len(rows_of(tmp_path / "warehouse", "documents")) == 22
