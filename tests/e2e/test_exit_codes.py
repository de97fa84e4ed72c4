"""O-JOB-06: what goes wrong ends with its own exit code and a sentence, never with 0 and never in a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.e2e.helpers import Done, rows_of, script, versions, weir, write_lines, write_settings

DOCUMENTS = [{"id": f"d{i}", "text": f"document {i} speaks of harbours, lanterns and a willow"} for i in range(3)]


def settings_in(home: Path, **more: object) -> Path:
    """Three documents and a floor of ten thousand."""
    data = write_lines(home / "data" / "a.jsonl", DOCUMENTS)
    return write_settings(
        home / "weir.yaml",
        {
            "warehouse": str(home / "warehouse"),
            "ingest": {"s1": {"paths": [str(data.parent)], "columns": {"doc_id": "id"}}},
            "validate": {"coverage": {"per": ["source"], "floor": {"documents": 10_000}}},
            **more,
        },
    )


@pytest.fixture(scope="module")
def failed_gate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A home with three documents, and its pipeline, which ends at a gate."""
    home = tmp_path_factory.mktemp("gate")
    return home, weir("run", settings_in(home), "--run-id", "r1", "--json")


def test_a_failing_gate_ends_with_3_and_says_which(failed_gate: tuple[Path, Done]) -> None:
    home, done = failed_gate
    done.expect(3)
    assert done.last_line.startswith("weir: gate failed: 1 expectation(s) block: coverage: ")
    assert "10,000" in done.last_line and "s1" in done.last_line
    assert done.json["status"] == "blocked" and done.json["exit_code"] == 3
    assert done.json["error"] in done.last_line
    assert [r["suite"] for r in rows_of(home / "warehouse", "validations") if r["blocks"]] == ["coverage"]


def test_a_gate_that_failed_fails_again_when_its_run_id_is_repeated(failed_gate: tuple[Path, Done]) -> None:
    """'Already done' must not open the gate: a scheduler that retries would go on to the release."""
    home, _ = failed_gate
    before = versions(home / "warehouse")
    again = weir("run", home / "weir.yaml", "--run-id", "r1", "--json").expect(3)
    assert again.last_line.startswith("weir: gate failed: 1 expectation(s) block: coverage: ")
    assert versions(home / "warehouse") == before


def test_unreadable_input_ends_with_4_and_nothing_is_written(tmp_path: Path) -> None:
    file = settings_in(tmp_path)
    done = weir("ingest", file, "--set", "ingest.s1.paths=[/no/such/path]", "--json").expect(4)
    assert "/no/such/path" in done.stderr and "/no/such/path" in done.json["error"]
    assert done.json["exit_code"] == 4 and done.json["status"] == "failed"
    assert set(versions(tmp_path / "warehouse")) <= {"runs"}
    assert [r["exit_code"] for r in rows_of(tmp_path / "warehouse", "runs")] == [4]


def test_an_exception_in_a_udf_ends_with_1_and_its_own_words(failed_gate: tuple[Path, Done]) -> None:
    """Python's message of a worker, not the JVM's stack around it; the stack is in the log that is named."""
    home, _ = failed_gate
    done = script("raising.py", "annotate", home / "weir.yaml", "--run-id", "r-udf", "--json",
                  "--set", "annotate={tokens: {tokenizer: o200k_base}}").expect(1)  # fmt: skip
    message = "ValueError: the scorer can't score 3 documents"
    assert message in done.last_line or message in done.stderr.rstrip().splitlines()[-2]
    assert message in done.json["error"] and done.json["exit_code"] == 1
    log = Path(done.last_line.rpartition(": ")[2])
    assert "raising.py" in log.read_text(encoding="utf-8")
    record = next(r for r in rows_of(home / "warehouse", "runs") if r["run_id"] == "r-udf")
    assert (record["status"], record["exit_code"]) == ("failed", 1) and message in record["error"]


def test_a_misspelt_setting_ends_with_2_and_the_nearest_name(tmp_path: Path) -> None:
    """The bad key of the case: ``treshold``."""
    file = settings_in(tmp_path, decide=[{"exact_dedup": {"treshold": 0.8}}])
    done = weir("run", file, "--json").expect(2)
    assert done.last_line == done.stderr.strip()
    assert "unknown setting 'decide.0.exact_dedup.treshold'" in done.last_line
    assert done.json["exit_code"] == 2
    assert not (tmp_path / "warehouse").exists()


def test_a_missing_settings_file_ends_with_2(tmp_path: Path) -> None:
    done = weir("run", tmp_path / "nowhere.yaml", "--json").expect(2)
    assert "nowhere.yaml' does not exist" in done.last_line and done.json["exit_code"] == 2
    assert weir("frobnicate").expect(2).last_line.startswith("weir: argument COMMAND: invalid choice: 'frobnicate'")


def test_a_java_of_another_version_ends_with_2_before_anything_starts(tmp_path: Path) -> None:
    java = tmp_path / "jdk-11"
    (java / "bin").mkdir(parents=True)
    (java / "release").write_text('JAVA_VERSION="11.0.22"\n')
    (java / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (java / "bin" / "java").chmod(0o755)
    done = weir("ingest", settings_in(tmp_path), "--set", f"spark.java_home={java}", "--json").expect(2)
    assert "which is Java 11.0.22; Spark 4.1 runs on 17 or 21" in done.last_line
    assert done.json["exit_code"] == 2


def test_a_warehouse_that_cannot_be_made_ends_with_4(tmp_path: Path) -> None:
    """Beneath a file no folder can be made, whoever runs the tests."""
    file = settings_in(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    done = weir("ingest", file, "--set", f"warehouse={tmp_path / 'file' / 'warehouse'}", "--json").expect(4)
    assert "no permission" in done.stderr and "file/warehouse" in done.stderr
    assert "warehouse" in done.last_line


def test_a_table_of_another_contract_version_ends_with_4(failed_gate: tuple[Path, Done], tmp_path: Path) -> None:
    home, _ = failed_gate
    table = DeltaTable(str(home / "warehouse" / "selection"))
    own = table.metadata().configuration["weir.contract.version"]
    table.alter.set_table_properties({"weir.contract.version": "99"}, raise_if_not_exists=False)
    try:
        done = weir("validate", home / "weir.yaml", "--run-id", "r-version", "--json").expect(4)
    finally:
        table.alter.set_table_properties({"weir.contract.version": own}, raise_if_not_exists=False)
    assert f"it was written with version 99 of the contract 'selection', this code has version {own}" in done.stderr
    assert "another warehouse" in done.last_line


def test_a_table_of_other_columns_ends_with_4_and_lists_every_difference(tmp_path: Path) -> None:
    """O-JOB-05: a column that changed its type is no reason to write NULL."""
    file = settings_in(tmp_path)
    foreign = pa.table({
        "doc_id": pa.array([1, 2], pa.int64()), "source": ["s", "s"], "text": ["a", "b"], "characters": ["1", "1"],
        "surplus": [True, False],
    })  # fmt: skip
    write_deltalake(str(tmp_path / "warehouse" / "documents"), foreign)
    done = weir("annotate", file, "--json").expect(4)
    for sentence in ("column 'doc_id' is bigint, should be string", "column 'characters' is string, should be",
                     "column 'surplus' (boolean) is not part of the contract", "column 'batch' (STRING) is missing"):  # fmt: skip
        assert sentence in done.stderr and sentence in done.json["error"]
    assert "schemas/tables.py" in done.last_line
    assert versions(tmp_path / "warehouse") == {"documents": 0, "runs": 0} or versions(tmp_path / "warehouse") == {
        "documents": 0
    }


def test_each_cause_has_its_own_code() -> None:
    """Schedulers tell causes apart by the number alone."""
    from jobs.runtime import errors

    codes = {
        errors.WeirError: 1, errors.SettingsError: 2, errors.GateFailed: 3, errors.InputContractError: 4,
        errors.InfeasiblePlan: 5, errors.RetryLater: 75,
    }  # fmt: skip
    assert [cause.exit_code for cause in codes] == list(codes.values())
    assert len(set(codes.values())) == len(codes) and errors.RetryLater.exit_code == os.EX_TEMPFAIL
