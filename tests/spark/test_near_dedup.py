"""near_dedup: the cases, the definition against brute force, the same ids for any layout, and its own proof."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.deciding.step import Candidates
from jobs.near.candidates import groups_in_rounds, groups_of
from jobs.near.checking import broken_twins, check_survivors, unproven_pairs
from jobs.near.index import texts_of
from jobs.near.signing import Ranking, signed_documents
from jobs.near_dedup import NearDedupSettings, NearDuplicates, near_duplicates
from jobs.runtime.errors import ReconciliationError, SettingsError
from jobs.runtime.scratch import Scratch
from jobs.runtime.session import configured
from tests.reference import near_duplicates as reference
from tests.spark.helpers import case_rows, expected, lay_out, run, run_until, settings_in, table
from udfs.annotators.minhash import MinhashSettings
from udfs.components import components
from udfs.minhash import signatures
from udfs.shingles import shingle_sets
from udfs.words import word_hashes_v1

CASE_RULE = ("source", "doc_id")
"""The survivor of the cases: the smallest (source, id)."""


def near(
    spark: SparkSession,
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    minhash: MinhashSettings | None = None,
    partitions: int = 2,
    scratch: Scratch | None = None,
    **step: Any,
) -> NearDuplicates:
    """near_dedup on rows of id, source and text."""
    values = [(r["id"], r.get("source", "s"), "b", len(r["text"].encode()), r["text"]) for r in rows]
    schema = "doc_id STRING, source STRING, batch STRING, bytes BIGINT, text STRING"
    frame = spark.createDataFrame(values, schema).repartition(partitions).withColumn("text_sha256", F.sha2("text", 256))
    candidates = Candidates(frame.drop("text"), frame, lambda names: frame, lambda name: frame, frozenset(), None)
    settings, minhash = NearDedupSettings(**step), minhash or MinhashSettings(permutations=128)
    scratch = scratch or Scratch(spark, str(folder), f"r{partitions}", "near")
    ranking = Ranking(CASE_RULE, {}, settings.protected)
    signed = signed_documents(candidates, settings.minhash, minhash, ranking, scratch.materialize)
    return near_duplicates(signed, texts_of(frame, []), settings, minhash, scratch.materialize)


def dropped(found: NearDuplicates) -> dict[str, str]:
    """Dropped id -> kept id."""
    return {r["doc_id"]: r["kept_id"] for r in found.decisions.collect()}


def kept(rows: Sequence[Mapping[str, Any]], found: NearDuplicates) -> list[str]:
    gone = dropped(found)
    return [r["id"] for r in rows if r["id"] not in gone]


# --- the cases


def test_short_documents_are_alike_only_if_their_words_are(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-01: and an empty one is like nothing."""
    rows = [*case_rows("O-NRD-01"), {"id": "x", "text": " "}, {"id": "y", "text": ""}]
    found = near(spark, tmp_path, rows)
    assert dropped(found) == {"c": "a", "f": "d"}
    assert [i for i in kept(rows, found) if i not in "xy"] == expected("O-NRD-01")["kept"]


def test_a_chain_keeps_what_has_no_kept_twin(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-02: the survivors are c0, c2, c4 and z; each dropped one is at least 0.85 like its own."""
    rows = case_rows("O-NRD-02")
    many_bands = MinhashSettings(permutations=512, bands=128, rows=4, threshold=0.85)
    found = near(spark, tmp_path, rows, many_bands)
    assert kept(rows, found) == ["c0", "c2", "c4", "z"]
    assert found.decisions.agg(F.min("similarity")).first()[0] >= 0.85  # type: ignore[index]
    assert found.notes["largest_component"] == "6"


def test_three_thousand_equal_documents_leave_one_in_linear_time(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-03: copies of the same words are collapsed before anything is compared."""
    line = case_rows("O-NRD-03")[0]
    text = line.get("text") or line["unit"] * line["times"]
    seconds = []
    for number in (3000, 6000):
        rows = [{"id": f"m{i:04}", "source": "s1", "text": text} for i in range(number)]
        start = time.monotonic()
        found = near(spark, tmp_path / str(number), rows)
        gone = dropped(found)
        seconds.append(time.monotonic() - start)
        assert len(gone) == number - 1 and set(gone.values()) == {"m0000"} and "m0000" not in gone
        assert found.notes["pairs_compared"] == "0" and found.notes["largest_group"] == str(number)
        assert int(found.notes["edges"]) <= number
    assert max(seconds) < 60


def test_form_letters_below_the_threshold_are_all_kept(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-04: 1,200 letters at J = 0.5; with 22 bands of 5 rows half of all pairs are candidates at threshold 0.7."""
    rows = case_rows("O-NRD-04")
    found = near(spark, tmp_path, rows, MinhashSettings(permutations=128, threshold=0.7))
    assert len(rows) == expected("O-NRD-04")["kept_count"] == 1200 and dropped(found) == {}
    assert int(found.notes["pairs_compared"]) > 1000  # they were candidates


def test_the_copies_go_and_the_survivor_stays(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-05."""
    rows = case_rows("O-NRD-05")
    found = near(spark, tmp_path, rows)
    assert dropped(found) == expected("O-NRD-05")["duplicate_of"]
    assert kept(rows, found) == expected("O-NRD-05")["kept"]


def test_survivors_are_the_same_for_1_8_and_33_partitions_and_reversed(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-06: the 25 survivors, and which document each duplicate is one of."""
    rows = case_rows("O-NRD-06")
    wanted = sorted(i for _, i in expected("O-NRD-06")["kept"])
    outcomes = []
    for partitions, order in ((1, rows), (8, rows[::-1]), (33, rows)):
        with configured(spark, {"spark.sql.shuffle.partitions": str(partitions)}):
            found = near(spark, tmp_path, order, partitions=partitions)
            outcomes.append(sorted((r["doc_id"], r["kept_id"], r["similarity"]) for r in found.decisions.collect()))
        assert sorted(kept(order, found)) == wanted
    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_against_an_older_set_every_match_names_a_real_document(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-08: the older batch is protected, so it ranks first and stays; within the new one the rule decides."""
    rows = [{**r, "source": f"batch {r['batch']}"} for r in case_rows("O-NRD-08")]
    found = near(spark, tmp_path, rows, protected=["source = 'batch 1'"])
    want = expected("O-NRD-08")
    assert dropped(found) == want["duplicate_of"]
    assert sorted(kept(rows, found)) == sorted(want["kept_after_batch_2"])


def test_nothing_protected_is_dropped_even_beside_its_equals(spark: SparkSession, tmp_path: Path) -> None:
    """Protected copies and near-copies of each other all stay, and others go for the best-ranked of them."""
    words = [f"w{i}" for i in range(100)]
    texts = {"a": words, "z1": words, "z2": words, "z3": [*words[:-1], "other"], "b": [*words[:-1], "another"]}
    rows = [{"id": i, "source": "old" if i[0] == "z" else "new", "text": " ".join(t)} for i, t in texts.items()]
    found = near(spark, tmp_path, rows, protected=["source = 'old'", "source = 'older'"])
    assert dropped(found) == {"a": "z1", "b": "z1"}
    with pytest.raises(SettingsError, match="near_dedup's protected"):
        near(spark, tmp_path, rows, protected=["sauce = 'old'"])


# --- the definition


def edited(seed: int, number: int) -> list[dict[str, Any]]:
    """Documents of which many are edits of others, of every similarity; some are short, some repeat another's words."""
    draw = random.Random(seed)
    vocabulary = [f"word{i}" for i in range(2000)]
    rows: list[dict[str, Any]] = []
    for position in range(number):
        if rows and draw.random() < 0.6:
            words = draw.choice(rows)["text"].split()
            for _ in range(draw.choice([0, 0, 1, 1, 2, 4, 8])):
                at = draw.randrange(len(words))
                words[at : at + draw.choice([0, 1])] = [draw.choice(vocabulary)]
        else:
            words = draw.choices(vocabulary, k=draw.choice([3, 20, 60, 150]))
        rows.append(
            {"id": f"d{draw.getrandbits(40):012x}-{position}", "source": draw.choice("abc"), "text": " ".join(words)}
        )
    return rows


def brute_force(
    rows: Sequence[Mapping[str, Any]], minhash: MinhashSettings, threshold: float, cap: int
) -> dict[str, str]:
    """The definition, document by document: dropped id -> kept id."""
    ranked = sorted(rows, key=lambda r: (r["source"], r["id"]))
    array = pa.array([r["text"] for r in ranked])
    bands, per_band = minhash.shape
    signed = signatures(array, words=minhash.shingle_words, bands=bands, rows=per_band)
    sets, ends = shingle_sets(*word_hashes_v1(array), minhash.shingle_words)
    mine: list[set[object]] = [set(sets[ends[i] : ends[i + 1]].tolist()) for i in range(len(ranked))]
    buckets = [[(band, key) for band, key in enumerate(row)] for row in signed.bands.tolist()]
    twins = reference.survivors(mine, buckets, threshold, cap)
    return {ranked[i]["id"]: ranked[twin]["id"] for i, twin in enumerate(twins) if twin is not None}


@pytest.mark.parametrize("threshold", [0.6, 0.8])
def test_the_outcome_is_the_greedy_definition_s(spark: SparkSession, tmp_path: Path, threshold: float) -> None:
    """Ids and twins equal a walk document by document, for 1, 3 and 8 partitions, AQE on and off, rows shuffled."""
    rows = edited(3, 600)
    minhash = MinhashSettings(threshold=threshold)
    wanted = brute_force(rows, minhash, threshold, 64)
    assert len(wanted) > 150
    for partitions, adaptive in ((1, "true"), (3, "false"), (8, "true")):
        shuffled = random.Random(partitions).sample(rows, len(rows))
        conf = {"spark.sql.shuffle.partitions": str(partitions), "spark.sql.adaptive.enabled": adaptive}
        with configured(spark, conf):
            assert dropped(near(spark, tmp_path, shuffled, minhash, partitions=partitions)) == wanted


def test_precision_is_one_and_recall_is_the_curve_s(spark: SparkSession, tmp_path: Path) -> None:
    """Every dropped document's twin is at least as similar as said, by sets of word tuples, not of hashes."""
    rows = edited(4, 500)
    texts = {r["id"]: r["text"].split() for r in rows}

    def grams(words: list[str]) -> set[object]:
        return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}

    for row in near(spark, tmp_path, rows).decisions.collect():
        exact = reference.jaccard(grams(texts[row["doc_id"]]), grams(texts[row["kept_id"]]))
        assert row["similarity"] == exact >= 0.8
        assert 1 <= row["shared_bands"] <= 16 and row["proven"] and row["method"] == "jaccard>=0.8"


def test_the_cap_bounds_comparisons_and_equals_the_definition(spark: SparkSession, tmp_path: Path) -> None:
    """With M = 2 in crowded buckets: still unique, and those that hit it are counted."""
    rows = edited(5, 400)
    minhash = MinhashSettings(bands=40, rows=2, permutations=80)
    found = near(spark, tmp_path, rows, minhash, max_compared=2)
    assert dropped(found) == brute_force(rows, minhash, 0.8, 2)
    assert int(found.notes["hit_the_cap"]) > 0


def test_groups_in_rounds_are_those_of_one_task(spark: SparkSession, tmp_path: Path) -> None:
    """Graphs beyond one task: long chains, stars, rings, lone repeats; and the ids that come of it are the same."""
    draw = random.Random(1)
    edges = [(i, i + 1) for i in range(0, 200)] + [(1000, 1000 + i) for i in range(50)] + [(7, 7), (5000, 5000)]
    edges += [(2000 + i, 2000 + (i * 7) % 30) for i in range(30)] + [(-5, 3000), (-9, -5)]
    edges += [(draw.randrange(4000, 4200), draw.randrange(4000, 4200)) for _ in range(120)]
    frame = spark.createDataFrame(edges, "left_node BIGINT, right_node BIGINT")
    scratch = Scratch(spark, str(tmp_path), "rounds", "near")
    in_rounds = {r["node"]: r["label"] for r in groups_in_rounds(frame, scratch.materialize).collect()}
    left, right = (pa.array(side).to_numpy() for side in zip(*edges, strict=True))
    assert in_rounds == dict(zip(*(a.tolist() for a in components(left, right)), strict=True))
    alone = {r["node"]: r["label"] for r in groups_of(frame, len(edges), 10**6, scratch.materialize).collect()}
    assert alone == in_rounds
    rows = edited(6, 150)
    assert dropped(near(spark, tmp_path, rows, one_task_edges=0)) == dropped(near(spark, tmp_path, rows))


def test_containment_and_signature(spark: SparkSession, tmp_path: Path) -> None:
    """A part of a longer document is contained in it, not alike; an estimate is marked as not proven."""
    words = [f"w{i}" for i in range(300)]
    rows = [
        {"id": "long", "source": "a", "text": " ".join(words)},
        {"id": "part", "source": "b", "text": " ".join(words[:200])},
    ]
    shape = MinhashSettings(bands=100, rows=2, permutations=200)
    assert dropped(near(spark, tmp_path, rows, shape)) == {}
    assert dropped(near(spark, tmp_path, rows, shape, verify="containment")) == {"part": "long"}
    found = near(spark, tmp_path, rows, shape, verify="signature", threshold=0.5).decisions.collect()
    assert [(r["doc_id"], r["proven"], r["method"]) for r in found] == [("part", False, "minhash:200>=0.5")]
    assert 0.5 < found[0]["similarity"] < 0.8


@pytest.mark.parametrize("place", ["delta", "catalog"])
def test_intermediate_data_may_be_delta_tables(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """In a folder, or in a schema where nothing else can be written: the same ids, and nothing is left, also of an
    attempt that died; another job's tables stay."""
    rows = edited(6, 150)
    spark.sql("CREATE SCHEMA IF NOT EXISTS near_scratch")
    where = {"location": "near_scratch."} if place == "catalog" else {"file_format": "delta"}
    died, mine, other = (Scratch(spark, str(tmp_path), run_id, "near", attempt=a, **where) for run_id, a in
                         (("r", "one"), ("r", "two"), ("o", "three")))  # fmt: skip
    other.materialize(spark.range(1), "kept")
    died.materialize(spark.range(1), "signed")
    assert dropped(near(spark, tmp_path, rows, scratch=mine)) == dropped(near(spark, tmp_path, rows))
    mine.clean()

    def left() -> list[str]:
        if place == "catalog":
            return sorted(r["tableName"] for r in spark.sql("SHOW TABLES IN near_scratch").collect())
        return sorted(f.name for f in (tmp_path / "scratch").iterdir())

    assert len([name for name in left() if not name.startswith("r2-near")]) == 1
    other.clean()
    assert [name for name in left() if not name.startswith("r2-near")] == []
    spark.sql("DROP SCHEMA near_scratch CASCADE")


# --- the proof


def test_the_proof_notices_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    """A dropped twin, a worse-ranked one, one below the threshold; two kept documents that nobody compared."""
    rows = edited(7, 120)
    walked = near(spark, tmp_path, rows).walked
    check_survivors(walked, 0.8)
    assert broken_twins(walked, 0.8).count() == unproven_pairs(walked).count() == 0

    def with_changed(column: str, value: Any) -> DataFrame:
        return walked.withColumn(column, F.when(F.col("kept_id").isNotNull(), value).otherwise(F.col(column)))

    total = walked.where("kept_id IS NOT NULL").count()
    assert broken_twins(with_changed("kept_id", F.col("doc_id")), 0.8).count() == total
    assert broken_twins(with_changed("similarity", F.lit(0.79)), 0.8).count() == total
    assert broken_twins(with_changed("kept_position", F.col("position")), 0.8).count() == total
    nobody = walked.withColumn("rejected", F.array().cast("ARRAY<BIGINT>"))
    compared = walked.where("size(rejected) > 0 AND NOT capped").count()
    assert compared > 0 and unproven_pairs(nobody).select("label", "position").distinct().count() >= compared
    with pytest.raises(ReconciliationError, match="two kept documents were not compared"):
        check_survivors(nobody, 0.8)


# --- the job


def settings_for(tmp_path: Path, annotate: dict[str, Any], **more: Any) -> Any:
    return settings_in(
        tmp_path,
        survivor=["source", "doc_id"],
        ingest={"all": {"paths": [str(tmp_path / "in")], "columns": {"doc_id": "id", "source": "source"}}},
        annotate={"tokens": {}, **annotate},
        decide=[{"exact_dedup": {"normalisation": "none"}}, {"near_dedup": {"threshold": 0.8}}],
        **more,
    )


def test_the_job_decides_alike_with_signatures_annotated_or_made_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    """And select counts its documents; the same run id writes nothing again; another annotator's name is refused."""
    lay_out(tmp_path / "in", edited(8, 150))
    settings = settings_for(tmp_path, {"minhash": {}})
    result = run_until(spark, settings, "select")[-2]
    assert result.record.job == "near_dedup" and int(result.record.notes["pairs_compared"]) > 0
    other = settings_for(tmp_path, {}, policy="other")
    run(spark, other, "exact-dedup", "r2", "exact_dedup")
    run(spark, other, "near-dedup", "r2", "near_dedup")
    fates = {}
    for policy in ("default", "other"):
        decided = table(spark, settings, "decisions").where(f"step = 'near_dedup' AND policy = '{policy}'").collect()
        assert decided and all(r["reason"] == "near_duplicate" and r["similarity"] >= 0.8 for r in decided)
        fates[policy] = sorted((r["doc_id"], r["kept_id"], r["similarity"], r["group_size"]) for r in decided)
    assert fates["default"] == fates["other"]
    assert "alarm" not in result.record.notes and " such as " in result.record.notes["largest_groups"]
    strict = {"max_share_removed": 0.01, "on_alarm": "fail"}
    alarmed = settings.model_copy(
        update={"policy": "strict", "decide": [settings.decide[0], settings.decide[1].model_copy(update=strict)]}
    )
    run(spark, alarmed, "exact-dedup", "r4", "exact_dedup")
    blocked = run(spark, alarmed, "near-dedup", "r4", "near_dedup")
    assert blocked.blocked and "documents of source 'a'" in blocked.blocked and blocked.record.exit_code == 3
    selection = table(spark, settings, "selection")
    assert selection.where("step = 'near_dedup'").count() == len(fates["default"]) == result.record.documents_dropped
    again = run(spark, settings, "near-dedup", "r1", "near_dedup")
    assert again.already_done and again.record.digest == result.record.digest
    step = {"near_dedup": {"minhash": "tokens"}}
    wrong = settings.model_copy(
        update={"decide": [settings.decide[0], settings.decide[1].model_copy(update=step["near_dedup"])]}
    )
    with pytest.raises(SettingsError, match="an annotator of kind tokens"):
        run(spark, wrong, "near-dedup", "r3", "near_dedup")
