"""The cases of normalisation and exact deduplication, all in one pipeline: ids are the case's, with its name before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.exact_dedup import ExactDedupSettings
from jobs.settings import Settings
from tests.spark.helpers import CASES, case_rows, expected, lay_out, run, run_until, table

PREFIXED = ("O-NRM-01", "O-NRM-02", "O-NRM-03", "O-NRM-04", "O-NRM-05", "O-EXD-02", "O-EXD-03", "O-EXD-04")
COLUMNS = {"doc_id": "id", "source": "source"}


@pytest.fixture(scope="module")
def case_settings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    from jobs.runtime.layers import Layer, resolve

    home = tmp_path_factory.mktemp("exact")
    entries: dict[str, Any] = {}
    for case in PREFIXED:
        rows = [{**row, "id": f"{case}:{row['id']}"} for row in case_rows(case)]
        entries[case] = {"paths": [str(lay_out(home / case, rows))], "columns": COLUMNS}
    (home / "O-EXD-01").mkdir()
    (home / "O-EXD-01" / "a.jsonl").write_bytes((CASES / "O-EXD-01.jsonl").read_bytes())
    entries["O-EXD-01"] = {"paths": [str(home / "O-EXD-01")], "columns": COLUMNS}
    values = {
        "warehouse": str(home / "warehouse"),
        "survivor": ["source", "doc_id"],
        "ingest": entries,
        "decide": [{"exact_dedup": {}}],
    }
    settings = resolve(Settings, [Layer("test", values)]).settings
    run_until(spark, settings, "select")
    yield settings


@pytest.fixture(scope="module")
def fates(spark: SparkSession, case_settings: Settings) -> dict[str, str]:
    """Document id -> keep, or the reason why not."""
    rows = table(spark, case_settings, "selection").select("doc_id", "reason").collect()
    return {row[0]: row[1] or "keep" for row in rows}


def of(case: str, fates: dict[str, str]) -> dict[str, str]:
    return {name.partition(":")[2]: fate for name, fate in fates.items() if name.startswith(case)}


def kept(case: str, fates: dict[str, str]) -> list[str]:
    return sorted(name for name, fate in of(case, fates).items() if fate == "keep")


@pytest.mark.parametrize("case", ["O-NRM-01", "O-NRM-02", "O-NRM-04"])
def test_only_copies_that_differ_by_normalisation_are_dropped(case: str, fates: dict[str, str]) -> None:
    """O-NRM-01, O-NRM-02, O-NRM-04."""
    want = expected(case)
    assert kept(case, fates) == want["kept"]
    assert {k: v for k, v in of(case, fates).items() if v != "keep"} == want.get("dropped", {})


def test_joiners_keep_texts_apart_and_zero_width_spaces_do_not(fates: dict[str, str]) -> None:
    """O-NRM-03."""
    want = expected("O-NRM-03")
    assert set(want["kept_any_order"]) < set(kept("O-NRM-03", fates))
    assert len(set(kept("O-NRM-03", fates)) & set(want["one_of"][0])) == 1


def test_a_token_of_300_000_characters_is_kept_and_its_neighbour_unharmed(fates: dict[str, str]) -> None:
    """O-NRM-05."""
    assert kept("O-NRM-05", fates) == ["blob", "ok"]


def test_integer_ids_are_ids(fates: dict[str, str]) -> None:
    """O-EXD-01."""
    want = expected("O-EXD-01")
    mine = {name: fate for name, fate in fates.items() if name.isdigit()}
    assert sorted(n for n, f in mine.items() if f == "keep") == want["kept"]
    assert {n: f for n, f in mine.items() if f != "keep"} == want["dropped"]


def test_the_survivor_is_the_smallest_by_the_rule(fates: dict[str, str]) -> None:
    """O-EXD-02."""
    assert kept("O-EXD-02", fates) == sorted(name for _, name in expected("O-EXD-02")["kept"])


def test_blank_documents_are_empty_not_duplicates_of_each_other(
    fates: dict[str, str], spark: SparkSession, case_settings: Settings
) -> None:
    """O-EXD-03."""
    want = expected("O-EXD-03")
    assert kept("O-EXD-03", fates) == want["kept"]
    assert {k: v for k, v in of("O-EXD-03", fates).items() if v != "keep"} == {
        k: v for k, v in want["dropped"].items() if v == "empty"
    }
    missing = table(spark, case_settings, "rejects").where("reason = 'text_missing'").collect()
    assert [r["doc_id"] for r in missing] == ["O-EXD-03:n1"]


def test_deciding_again_drops_the_same_documents(
    fates: dict[str, str], spark: SparkSession, case_settings: Settings
) -> None:
    """O-EXD-04: a document is never a duplicate of itself, also in a second run."""
    want = expected("O-EXD-04")
    assert kept("O-EXD-04", fates) == want["kept_each_run"]
    again = run(spark, case_settings, "exact-dedup", "r2", "exact_dedup")
    first = table(spark, case_settings, "runs").where("job = 'exact_dedup' AND run_id = 'r1'").first()
    assert first is not None and again.record.digest == first["digest"]


def test_keys_of_several_fields_do_not_run_into_each_other(spark: SparkSession) -> None:
    """O-EXD-05: with title and text as the key, and the rule about empty texts off, all six differ."""
    from pyspark.sql import functions as F

    from jobs.deciding.step import Candidates
    from jobs.exact_dedup import keys

    rows = [
        (r["id"], "s", "b", {"title": r["title"]} if r["title"] is not None else {}, r["text"])
        for r in case_rows("O-EXD-05")
    ]
    schema = "doc_id STRING, source STRING, batch STRING, attributes MAP<STRING, STRING>, text STRING"
    frame = spark.createDataFrame(rows, schema)
    candidates = Candidates(frame, frame, lambda names: frame, lambda name: frame, frozenset())
    for normalisation in ("none", "norm_v1"):
        step = ExactDedupSettings(fields=["attributes.title", "text"], empty="keep", normalisation=normalisation)
        found = keys(candidates, step, ["doc_id"]).select("doc_id", F.hex("key")).collect()
        assert len({key for _, key in found}) == len(expected("O-EXD-05")["kept"]) == 6


def test_a_survivor_that_is_null_or_nan_ranks_last(spark: SparkSession) -> None:
    from jobs.exact_dedup import exact_duplicates

    details = spark.createDataFrame(
        [("a", "s", "b", None), ("b", "s", "b", float("nan")), ("c", "s", "b", 0.1), ("d", "s", "b", 0.9)],
        "doc_id STRING, source STRING, batch STRING, score DOUBLE",
    )
    keyed = details.selectExpr("doc_id", "cast('k' as binary) as key")
    for rule, best in ((["-score"], "d"), (["score"], "c")):
        rows = exact_duplicates(keyed, details, ExactDedupSettings(), rule, {}).collect()
        assert {r["kept_id"] for r in rows} == {best}
        assert len(rows) == 3 and all(r["group_size"] == 4 and r["similarity"] == 1.0 and r["proven"] for r in rows)


def test_keep_none_drops_every_copy(spark: SparkSession) -> None:
    from jobs.exact_dedup import exact_duplicates

    details = spark.createDataFrame(
        [("a", "s", "b"), ("b", "s", "b"), ("c", "s", "b")], "doc_id STRING, source STRING, batch STRING"
    )
    keyed = details.selectExpr("doc_id", "cast(if(doc_id = 'c', 'x', 'k') as binary) as key")
    rows = exact_duplicates(keyed, details, ExactDedupSettings(keep="none"), ["doc_id"], {}).collect()
    assert sorted((r["doc_id"], r["kept_id"]) for r in rows) == [("a", None), ("b", None)]
