"""What a newcomer does first: the demo, a look around, tables that any Delta reader can open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.e2e.conftest import DOCUMENTS, Demo
from tests.e2e.helpers import HOME, SMALL_SPARK, rows_of, weir

pytestmark = pytest.mark.xdist_group("demo")

SPARK = f"--set=spark={json.dumps(SMALL_SPARK)}"


def test_the_demo_comes_out_exactly_as_planted(demo: Demo) -> None:
    done = demo.done.expect(0)
    assert "all exact." in done.stdout
    verdicts = [line.split()[-1] for line in done.stdout.splitlines() if line.split()[-1:] in (["yes"], ["NO"])]
    assert len(verdicts) > 10 and set(verdicts) == {"yes"}
    assert json.loads(done.stdout.splitlines()[-1])["wrong"] == 0
    assert not (demo.warehouse / "scratch").exists()


def test_another_reader_than_spark_opens_the_tables_and_sees_their_constraints(demo: Demo) -> None:
    documents, rejects = rows_of(demo.warehouse, "documents", "doc_id"), rows_of(demo.warehouse, "rejects", "reason")
    assert len(documents) + len(rejects) == DOCUMENTS
    selection = rows_of(demo.warehouse, "selection", "doc_id", "kept")
    assert {r["doc_id"] for r in selection} == {r["doc_id"] for r in documents}
    dropped = {r["doc_id"] for r in rows_of(demo.warehouse, "decisions", "doc_id")}
    assert {r["doc_id"] for r in selection if not r["kept"]} == dropped
    metadata = DeltaTable(str(demo.warehouse / "documents")).metadata()
    constraints = {k: v for k, v in metadata.configuration.items() if k.startswith("delta.constraints.")}
    assert constraints and metadata.partition_columns == ["batch"]
    schema = {field.name: field for field in DeltaTable(str(demo.warehouse / "documents")).schema().fields}
    assert not schema["doc_id"].nullable and schema["text"].metadata.get("comment")


def test_runs_show_and_settings_tell_what_there_is(demo: Demo) -> None:
    warehouse = f"--set=warehouse={demo.warehouse}"
    runs = weir("runs", warehouse, SPARK).expect(0)
    for job in (
        "ingest",
        "annotate",
        "eligibility",
        "exact_dedup",
        "quality_filter",
        "near_dedup",
        "select",
        "validate",
    ):
        assert any(job in line and " done " in line for line in runs.stdout.splitlines()), job
    shown = weir("show", "selection", warehouse, SPARK, "--where", "reason = 'empty'", "--columns", "doc_id, reason",
                 "--json").expect(0)  # fmt: skip
    assert shown.json and all(row["reason"] == "empty" for row in shown.json)  # type: ignore[call-overload]
    missing = weir("show", "selections", warehouse, SPARK).expect(4)
    assert "there is no table 'selections'" in missing.stderr and "selection" in missing.last_line
    settings = weir("settings", HOME / "conf" / "demo.yaml", "--set", "policy=strict").expect(0)
    lines = {line.split()[0]: line for line in settings.stdout.splitlines() if line.strip()}
    assert "strict" in lines["policy"] and "--set policy" in lines["policy"]
    assert "demo.yaml" in lines["sources.books.priority"]


def test_a_preview_shows_what_a_step_keeps_and_writes_nothing(demo: Demo) -> None:
    """As users call it; the step has run here before, so that what it kept is known."""
    before = {str(file) for file in demo.warehouse.rglob("*")}
    done = weir("quality-filter", *demo.settings(demo.folder), "--preview", "--budget-tokens", "1000000", "--json")
    (found,) = done.expect(0).json["previews"]
    assert {str(file) for file in demo.warehouse.rglob("*")} == before
    (kept,) = [r["documents_kept"] for r in rows_of(demo.warehouse, "runs") if r["job"] == "quality_filter"]
    everything = found["all_rules"][0]
    assert everything["documents"] == kept and everything["epochs"] == pytest.approx(1e6 / everything["tokens"])
    assert {entry["rule"] for entry in found["thresholds"]} == {"too_short", "symbol_soup", "long_token"}


def test_demo_corpus_writes_the_same_bytes_for_the_same_seed(demo: Demo, tmp_path: Path) -> None:
    """The command alone, into another folder: what the demo generated, file for file."""
    weir("demo-corpus", tmp_path, "--documents", str(DOCUMENTS)).expect(0)
    files = [p.relative_to(tmp_path) for p in sorted(tmp_path.rglob("*")) if p.is_file() and p.suffix != ".parquet"]
    assert len(files) > 10
    for file in files:
        assert (tmp_path / file).read_bytes() == (demo.folder / "corpus" / file).read_bytes(), file
