"""Two processes on one warehouse at the same moment: every document once, or a message that says to run it again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.helpers import CASES, finish, rows_of, start, transactions, weir, write_lines, write_settings

ROUNDS = 3


def delivery(home: Path, source: str) -> str:
    """Settings of one source of case O-JOB-04 with a warehouse for each round."""
    lines = (CASES / "O-JOB-04.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["source"] == source]
    data = write_lines(home / f"data_{source}" / "part.jsonl", rows)
    for number in range(ROUNDS):
        write_settings(
            home / f"{source}_{number}.json",
            {
                "warehouse": str(home / f"warehouse_{number}"),
                "ingest": {source: {"paths": [str(data.parent)], "columns": {"doc_id": "id"}}},
            },
        )
    return str(home / f"{source}_{{round}}.json")


def race(home: Path, runners: list[tuple[str, str]], rounds: int) -> list[list[dict[str, Any]]]:
    """Both (settings, run id) at once, round after round; what each said, by runner and round."""
    meeting = home / "meeting"
    meeting.mkdir()
    processes = [
        start([str(Path(__file__).with_name("racing.py")), str(rounds), settings, run_id, str(meeting), str(i), "1"])
        for i, (settings, run_id) in enumerate(runners)
    ]
    said = []
    for process in processes:
        done = finish(process).expect(0)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert len(lines) == rounds, done.stderr[-3000:]
        said.append(lines)
    return said


def test_two_sources_at_once_give_every_document_once(tmp_path: Path) -> None:
    """O-JOB-04: 100 rows after both, or one exits 75 and its repetition gives 100; never 150, never 50 in silence."""
    both = {source: delivery(tmp_path, source) for source in ("a", "b")}
    said = race(tmp_path, [(both["a"], "ra"), (both["b"], "rb")], ROUNDS)
    for number in range(ROUNDS):
        for source, outcomes in zip("ab", said, strict=True):
            outcome = outcomes[number]
            assert outcome["exit_code"] in (0, 75), outcome
            if outcome["exit_code"] == 75:
                assert "at the same time" in outcome["error"]
                weir("ingest", both[source].format(round=number), "--run-id", f"r{source}").expect(0)
        warehouse = tmp_path / f"warehouse_{number}"
        documents = rows_of(warehouse, "documents", "doc_id", "source", "ingest_run")
        assert Counter(d["source"] for d in documents) == {"a": 50, "b": 50}
        assert len({d["doc_id"] for d in documents}) == 100
        assert all(d["ingest_run"] == f"r{d['source']}" for d in documents)
        records = rows_of(warehouse, "runs")
        assert sorted((r["run_id"], r["status"], r["documents_in"], r["documents_kept"]) for r in records) == [
            ("ra", "done", 50, 50), ("rb", "done", 50, 50),
        ]  # fmt: skip
        assert not (warehouse / "scratch").exists()


def test_one_run_id_started_twice_at_once_writes_once(tmp_path: Path) -> None:
    """A scheduler that took a living task for dead starts it again: one of them writes, neither spoils the other."""
    settings = delivery(tmp_path, "a")
    said = race(tmp_path, [(settings, "same"), (settings, "same")], ROUNDS)
    for number in range(ROUNDS):
        codes = sorted(outcomes[number]["exit_code"] for outcomes in said)
        assert codes in ([0, 0], [0, 75]), [outcomes[number] for outcomes in said]
        warehouse = tmp_path / f"warehouse_{number}"
        assert len(rows_of(warehouse, "documents")) == 50
        assert len(transactions(warehouse, "documents")) == 1
        records = rows_of(warehouse, "runs")
        assert [(r["run_id"], r["status"], r["documents_in"], r["documents_kept"]) for r in records] == [
            ("same", "done", 50, 50)
        ]
        assert not (warehouse / "scratch").exists()
