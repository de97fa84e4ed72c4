"""weir audit: what is written to be read, what is read back, and the shares that come of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.audit import rates, read_verdicts, write_sample
from jobs.runtime.errors import InputContractError, TableMissing, UnreadableInput
from jobs.runtime.tables import TableRef
from jobs.settings import Settings
from schemas.tables import AUDIT_SAMPLES, DECISIONS, DOCUMENTS
from tests.spark.helpers import settings_in, table
from udfs.intervals import wilson


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A step that dropped 30 documents of web and 10 of wiki by one rule; 4 of each are sampled, and 2 kept ones."""
    settings = settings_in(
        tmp_path_factory.mktemp("audit"),
        decide=[{"quality_filter": {"name": "q", "rules": [{"name": "short", "keep": "bytes > 3"}]}}],
    )

    def write(contract: Any, rows: list[dict[str, Any]]) -> None:
        names = contract.column_names
        frame = spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], contract.struct_type())
        ref = TableRef.in_warehouse(settings.warehouse, contract.name)
        frame.write.format("delta").save(ref.address)

    common = {"documents_version": 1, "run_id": "r", "policy": "default", "step": "q", "batch": "main"}
    dropped = [(f"{source}{n}", source) for source, number in (("web", 30), ("wiki", 10)) for n in range(number)]
    failing = [("short", '{"bytes":2}', "bytes > 3")]
    write(DECISIONS, [{**common, "doc_id": d, "source": s, "reason": "short", "failing": failing, "method": "rule",
                       "proven": True} for d, s in dropped])  # fmt: skip
    sampled = [(f"{source}{n}", source, "short", "dropped") for source in ("web", "wiki") for n in range(4)]
    sampled += [("good1", "web", "", "kept"), ("good2", "wiki", "", "kept")]
    write(AUDIT_SAMPLES, [{**common, "doc_id": d, "source": s, "rule": r, "side": side} for d, s, r, side in sampled])
    documents = [
        {"doc_id": d, "source": s, "batch": "main", "text": f"text of {d}\nand more"} for d, s, _, _ in sampled
    ]
    names = ["doc_id", "source", "batch", "text"]
    frame = spark.createDataFrame(
        [tuple(d[n] for n in names) for d in documents], ", ".join(f"{n} STRING" for n in names)
    )
    frame.write.format("delta").save(TableRef.in_warehouse(settings.warehouse, DOCUMENTS.name).address)
    return settings


@pytest.fixture
def entries(spark: SparkSession, warehouse: Settings, tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    file = tmp_path / "audit.jsonl"
    assert write_sample(spark, warehouse, None, file, 10) == 10
    return file, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def filled(file: Path, entries: list[dict[str, Any]], verdicts: dict[str, str | None]) -> Path:
    rows = [{**entry, "verdict": verdicts.get(entry["doc_id"])} for entry in entries]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n", encoding="utf-8")
    return file


def test_what_is_written_can_be_judged(entries: tuple[Path, list[dict[str, Any]]]) -> None:
    _, rows = entries
    assert [r["doc_id"] for r in rows][:3] == ["web0", "web1", "web2"] and rows[-1]["side"] == "kept"
    assert rows[0]["text"] == "text of we" and rows[0]["verdict"] is None
    assert next(iter(rows[0])) == "verdict"


def test_verdicts_give_shares_with_intervals(
    spark: SparkSession, warehouse: Settings, entries: tuple[Path, list[dict[str, Any]]]
) -> None:
    """web: 2 of 4 wrongly dropped, wiki: 0 of 2 read; weighted (30 x 0.5 + 10 x 0) / 40 = 0.375; kept: 1 of 2 wrong."""
    file, rows = entries
    verdicts: dict[str, str | None] = {
        "web0": "good", "web1": "good", "web2": "bad", "web3": "bad", "wiki0": "bad", "wiki1": "bad",
        "good1": "bad", "good2": "good",
    }  # fmt: skip
    filled(file, rows, verdicts)
    assert read_verdicts(spark, warehouse, file, "ann") == 8
    assert read_verdicts(spark, warehouse, file, "ann") == 8
    assert table(spark, warehouse, "verdicts").count() == 8  # the same file again adds nothing
    found = {(r.side, r.rule, r.source): r for r in rates(spark, warehouse, None)}
    assert (found["dropped", "short", "web"].judged, found["dropped", "short", "web"].wrong) == (4, 2)
    assert (found["dropped", "short", "wiki"].judged, found["dropped", "short", "wiki"].wrong) == (2, 0)
    whole = found["dropped", "short", "(all)"]
    assert (whole.judged, whole.wrong, whole.weighted) == (6, 2, 0.375)
    assert (whole.low, whole.high) == wilson(2, 6)
    assert (found["kept", "", "(all)"].share, found["kept", "", "(all)"].weighted) == (0.5, None)

    # the same judge changes her mind; another judge's verdict counts beside hers
    assert read_verdicts(spark, warehouse, filled(file, rows, {"web0": "bad"}), "ann") == 1
    assert read_verdicts(spark, warehouse, filled(file, rows, {"wiki3": "good"}), "bob") == 1
    found = {(r.side, r.rule, r.source): r for r in rates(spark, warehouse, "q")}
    assert (found["dropped", "short", "web"].wrong, found["dropped", "short", "wiki"].wrong) == (1, 1)


def test_rows_that_are_no_verdicts_are_named_and_nothing_is_stored(
    spark: SparkSession, warehouse: Settings, entries: tuple[Path, list[dict[str, Any]]]
) -> None:
    file, rows = entries
    bad = [
        {**rows[0], "verdict": "maybe"},
        {**rows[1], "doc_id": "other", "verdict": "good"},
        {**rows[2], "verdict": "good"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in bad) + "{\n", encoding="utf-8")
    with pytest.raises(InputContractError) as found:
        read_verdicts(spark, warehouse, file, "carl")
    for part in ("line 1: the verdict of web0 is 'maybe'", "line 2: other is not in the sample", "line 4: "):
        assert part in str(found.value)
    with pytest.raises(UnreadableInput):
        read_verdicts(spark, warehouse, file.with_name("missing"), "carl")


def test_without_a_sample_the_remedy_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableMissing, match="Run a quality_filter step"):
        write_sample(spark, settings_in(tmp_path), None, tmp_path / "x", 10)
