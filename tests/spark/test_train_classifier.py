"""train_classifier: who trains, who is held out and why, and that nothing but the rows and settings decides the model."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs import train_classifier
from jobs.deciding.draws import draw_bits
from jobs.deciding.step import FAILING
from jobs.runtime.errors import DuplicateIds, InputContractError, SettingsError
from jobs.runtime.job import Result
from jobs.runtime.runs import RunRecord, RunTable
from jobs.runtime.tables import TableRef, ensure_table, write_table
from jobs.settings import Settings
from jobs.training.drawing import drawn, quotas
from jobs.training.examples import label_rows, target_rows
from jobs.training.settings import Labels, Positives
from schemas.tables import DECISIONS, DOCUMENTS
from tests.spark.helpers import run, settings_in, table
from tests.spark.test_increments import arrive
from udfs.annotators.registry import ANNOTATORS
from udfs.classifier_metrics import roc_auc

FAST = {"kind": "fasttext", "dimension": 8, "epochs": 20, "learning_rate": 0.5, "buckets": 500, "folds": 3}
SHARED = [f"word{i}" for i in range(60)]
GOOD = [f"prose{i}" for i in range(8)]
BAD = [f"code{i}" for i in range(8)]


def text_of(number: int, marks: list[str], share: float = 0.15) -> str:
    draw = random.Random(f"{marks[0]}{number}")
    return " ".join(draw.choice(marks if draw.random() < share else SHARED) for _ in range(30)).title()


def rows_of(wiki: int = 60, web: int = 90, hidden: int = 15) -> list[dict[str, Any]]:
    """Documents of two sources; in the web hide some that read like the wiki."""
    rows = [{"id": f"wiki-{i}", "source": "wiki", "text": text_of(i, GOOD)} for i in range(wiki)]
    rows += [
        {"id": f"web-{i}", "source": "web", "text": text_of(1000 + i, GOOD if i < hidden else BAD)} for i in range(web)
    ]
    return rows


def settings_for(home: Path, classifier: Mapping[str, Any], **more: Any) -> Settings:
    given = {**FAST, "folder": str(home / "model"), **classifier}
    return settings_in(home, **{"train": {"quality": given}, "annotate": {}, **more})


def train(spark: SparkSession, settings: Settings, run_id: str = "r1") -> Result:
    return run(spark, settings, "train-classifier", run_id, "quality")


def card_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    return found


def outcomes(result: Result) -> dict[tuple[str, str, str], int]:
    return {(c["source"], c["outcome"], c["reason"]): c["documents"] for c in result.record.counts}


def write(spark: SparkSession, place: Path, rows: list[tuple[Any, ...]], schema: str) -> str:
    spark.createDataFrame(rows, schema).write.format("delta").save(str(place))
    return str(place)


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that several tests read; each has a model folder of its own."""
    home = tmp_path_factory.mktemp("home")
    arrive(spark, settings_for(home, {"positives": {"where": "source = 'wiki'"}}), rows_of(), "one")
    return home


def test_target_against_raw(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    """Rows of a table against the documents that are not in it, by id or by text; the card says what its numbers are,
    and the annotator makes of the folder the scores that the metrics come from."""
    rows = {row["id"]: row["text"] for row in rows_of()}
    target = [(f"t{i}", text_of(2000 + i, GOOD)) for i in range(40)]
    target += [("web-0", "another text of prose"), ("same", rows["wiki-3"]), ("null", None)]
    address = write(spark, tmp_path / "target", target, "doc_id STRING, text STRING")
    given = {"positives": {"table": address}, "folder": str(tmp_path / "model"), "held_out": 0.3}
    settings = settings_for(home, given, sources={"web": {"use": "allowed"}})
    result = train(spark, settings, "target")
    assert outcomes(result) == {
        (f"target:{address}", "in", ""): 43,
        (f"target:{address}", "kept", ""): 42,
        (f"target:{address}", "dropped", "no_text"): 1,
        ("wiki", "in", ""): 60,
        ("web", "in", ""): 90,
        ("wiki", "dropped", "in_target"): 1,
        ("web", "dropped", "in_target"): 1,
        **{
            k: n
            for k, n in outcomes(result).items()
            if k[2] == "not_drawn" or (k[0] in ("wiki", "web") and k[1] == "kept")
        },
    }
    card = card_in(tmp_path / "model")
    drawn_rows = card["inputs"]["rows"]
    assert {label: sum(sides.values()) for label, sides in drawn_rows.items()} == {"positive": 42, "negative": 42}
    assert card["inputs"]["tables"][address] == 0 and card["labels_are"] == "positive_unlabelled"
    (known,) = card["metrics"]
    assert known == "positive_unlabelled" and "lower bound" in card["metrics"][known]["meaning"]
    assert "positive-unlabelled" in (tmp_path / "model" / "calibration.svg").read_text()
    assert "positive-unlabelled" in result.record.notes["metrics"]
    assert result.record.digest == card["sha256"]

    annotator = ANNOTATORS["fasttext"]
    made = annotator.settings.model_validate({"kind": "fasttext", "model": str(tmp_path / "model")})
    kernel = annotator.open(annotator.resolve(made))
    texts = {**rows, **{doc_id: text for doc_id, text in target if text and doc_id != "web-0"}}
    out = sorted(texts)
    scores = dict(zip(out, kernel(pa.array([texts[i] for i in out])).field("score").to_pylist(), strict=True))
    apart = [(scores[f"t{i}"], True) for i in range(40)] + [(scores[f"web-{i}"], False) for i in range(15, 90)]
    assert roc_auc(*map(np.array, zip(*apart, strict=True))) > 0.85
    assert card["preparation"] == {"fold_case": True, "characters": 20_000}


def test_metrics_are_of_rows_that_did_not_train(
    spark: SparkSession, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The held-out scores of the card come from the model's file, on the rows that the training never saw; a document that
    was hidden among the negatives is doubted, from folds that it did not train either."""
    seen: dict[str, Any] = {}
    original = train_classifier.fill_folder

    def spy(folder: Path, rows: Any, *others: Any) -> dict[str, Any]:
        seen["rows"] = rows
        return original(folder, rows, *others)

    monkeypatch.setattr(train_classifier, "fill_folder", spy)
    given = {"positives": {"where": "source = 'wiki'"}, "folder": str(tmp_path / "model"), "balance": False}
    train(spark, settings_for(home, given), "metrics")
    card, rows = card_in(tmp_path / "model"), seen["rows"]
    annotator = ANNOTATORS["fasttext"]
    made = annotator.settings.model_validate({"kind": "fasttext", "model": str(tmp_path / "model")})
    scores = annotator.open(annotator.resolve(made))(rows.texts).field("score").to_numpy(zero_copy_only=False)
    positive = [label == "positive" for label in rows.labels]
    mine = rows.held_out.nonzero()[0].tolist()
    metrics = card["metrics"]["positive_unlabelled"]
    assert metrics["documents"] == len(mine) and 15 <= len(mine) <= 50
    assert metrics["roc_auc"] == pytest.approx(roc_auc(scores[mine], [positive[i] for i in mine]), abs=1e-6)
    issues = [json.loads(line) for line in (tmp_path / "model" / "label_issues.jsonl").read_text().splitlines()]
    assert len(issues) == card["label_noise"]["doubted"] > 5
    assert [i["probability_of_given"] for i in issues] == sorted(i["probability_of_given"] for i in issues)
    trained = {doc_id for doc_id, out in zip(rows.ids, rows.held_out, strict=True) if not out}
    assert {i["doc_id"] for i in issues} <= trained
    hidden = [i for i in issues if i["given"] == "negative" and int(i["doc_id"].split("-")[1]) < 15]
    assert len(hidden) >= 5 and all(i["suggested"] == "positive" for i in hidden)
    assert len(rows.ids) == 150 and Counter(rows.labels) == {"positive": 60, "negative": 90}


def test_the_layout_does_not_matter(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    """1, 3 and 8 partitions, in another order each: the same files, byte for byte, but for the version that the card names; a
    second run says that it is all there."""
    documents = table(spark, settings_for(home, {"positives": {"where": "true"}}), "documents")
    where = {"positives": {"where": "source = 'wiki'"}, "maximum": 40}
    ref = TableRef.in_warehouse(settings_for(tmp_path, where).warehouse, "documents")
    ensure_table(spark, "documents", ref, DOCUMENTS)
    models: dict[int, dict[str, Any]] = {}
    for parts in (1, 3, 8):
        shuffled = documents.orderBy(F.xxhash64(F.lit(parts), "doc_id")).repartition(parts)
        shuffled.write.format("delta").mode("overwrite").save(ref.address)
        folder = tmp_path / str(parts)
        settings = settings_for(tmp_path, {**where, "folder": str(folder)})
        train(spark, settings, f"parts-{parts}")
        models[parts] = {file.name: file.read_bytes() for file in folder.iterdir()}
        card = json.loads(models[parts].pop("card.json"))
        card["inputs"].pop("tables")
        models[parts]["card"] = {**card, "identity": ""}
    assert models[1].keys() == {"model.bin", "card", "calibration.svg", "label_issues.jsonl"}
    assert models[1] == models[3] == models[8]
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    again = train(spark, settings, "again")
    assert "already" in again.record.notes["model"] and again.record.digest == card["sha256"]
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_labels_of_a_judge(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    """Three labels in numbers, on some of the documents: NULL ones and those of unknown documents are counted; equal
    texts with two labels train nothing; sources that may not be used don't either."""
    rows = [
        *rows_of(40, 60, 0),
        {"id": "x1", "source": "web", "text": "one text"},
        {"id": "x2", "source": "web", "text": "one text"},
    ]
    rows += [{"id": "f", "source": "secret", "text": "prose1 prose2"}, {"id": "n", "source": "web", "text": "12 . 34"}]
    given = {
        "kind": "sklearn", "labels": {"table": str(tmp_path / "labels"), "label": "verdict"}, "positive": "2",
        "number_of_features": 2**10, "folds": 3, "held_out": 0.3, "folder": str(tmp_path / "model"),
    }  # fmt: skip
    settings = settings_in(tmp_path, train={"quality": given}, annotate={}, sources={"secret": {"use": "forbidden"}})
    arrive(spark, settings, rows, "one")
    verdicts: list[tuple[str, int | None]] = [(f"wiki-{i}", 2) for i in range(40)]
    verdicts += [(f"web-{i}", i % 2) for i in range(50)] + [("wiki-0", 2), ("wiki-1", None), ("web-55", None)]
    verdicts += [("x1", 0), ("x2", 1), ("f", 2), ("n", 1), ("stranger", 1), ("other stranger", 0)]
    write(spark, tmp_path / "labels", verdicts, "doc_id STRING, verdict INT")
    result = train(spark, settings)
    assert outcomes(result) == {
        ("wiki", "in", ""): 40,
        ("web", "in", ""): 63,
        ("secret", "in", ""): 1,
        ("wiki", "kept", ""): 40,
        ("web", "kept", ""): 50,
        ("web", "dropped", "not_labelled"): 9,
        ("web", "dropped", "label_null"): 1,
        ("web", "dropped", "both_classes"): 2,
        ("web", "dropped", "no_text_to_score"): 1,
        ("secret", "dropped", "use_forbidden"): 1,
    }
    card = card_in(tmp_path / "model")
    assert card["labels"] == ["0", "1", "2"] and card["positive"] == "2" and card["labels_are"] == "labelled"
    assert card["inputs"]["labels_null"] == 1 and card["inputs"]["labels_without_document"] == 2
    assert card["model"] == "model.skops" and card["types_to_trust"] == []
    assert card["metrics"]["labelled"]["roc_auc"] > 0.8
    made = ANNOTATORS["sklearn"].settings.model_validate({"kind": "sklearn", "model": str(tmp_path / "model")})
    scored = ANNOTATORS["sklearn"].open(ANNOTATORS["sklearn"].resolve(made))(pa.array([" ".join(GOOD), " ".join(BAD)]))
    assert scored.field("score")[0].as_py() > scored.field("score")[1].as_py()


def test_labels_that_can_not_be_used(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    """Said before anything trains, with examples, and nothing is left behind."""
    cases: list[tuple[list[Any], type[Exception], str]] = [
        ([("wiki-0", "good"), ("wiki-0", "bad"), ("wiki-0", None)], InputContractError, "'wiki-0': 'bad' and 'good'"),
        ([(None, "good"), ("web-1", "bad")], DuplicateIds, r"1 row\(s\) .* no document id"),
        ([(f"wiki-{i}", f"{i}") for i in range(101)], InputContractError, "more than 100 different labels"),
    ]
    for rows, error, says in cases:
        with pytest.raises(error, match=says):
            label_rows(spark.createDataFrame(rows, "doc_id STRING, label STRING"), Labels(table="t.t"))
    rows = [("a", "good", 0.5)]
    with pytest.raises(InputContractError, match="column 'label' is double; it should be a string, a whole number or"):
        label_rows(spark.createDataFrame(rows, "doc_id STRING, other STRING, label DOUBLE"), Labels(table="t.t"))
    with pytest.raises(InputContractError, match="column 'verdict' is not there"):
        label_rows(
            spark.createDataFrame(rows, "doc_id STRING, x STRING, y DOUBLE"), Labels(table="t.t", label="verdict")
        )
    address = write(spark, tmp_path / "labels", [("wiki-0", "good"), ("web-1", "bad")], "doc_id STRING, label STRING")
    given = {"labels": {"table": address}, "folder": str(tmp_path / "model")}
    with pytest.raises(SettingsError, match="no document has the label 'fine'; there are: bad, good"):
        train(spark, settings_for(home, {**given, "positive": "fine"}), "bad-labels-1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels"]


def test_target_tables_and_conditions_that_can_not_be_used(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    twice = spark.createDataFrame([("a", "x"), ("a", "y")], "doc_id STRING, text STRING")
    with pytest.raises(DuplicateIds, match="'a': 2 rows"):
        target_rows(twice, Positives(table="t.t"))
    with pytest.raises(InputContractError, match="column 'body' is not there"):
        target_rows(twice, Positives(table="t.t", text="body"))
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"positives": {"table": str(home / "warehouse" / "documents")}}, InputContractError, "there are: positive"),
        ({"positives": {"where": "colour = 'red'"}}, SettingsError, r"train.quality.positives.where: .*colour"),
    ]
    for number, (given, error, says) in enumerate(cases):
        with pytest.raises(error, match=says):
            train(spark, settings_for(home, {**given, "folder": str(tmp_path / "model")}), f"bad-{number}")
    assert not (tmp_path / "model").exists()


def test_conditions_over_annotations(spark: SparkSession, tmp_path: Path) -> None:
    """They read what annotate computed; what meets none of them trains nothing, and as many of each label are drawn."""
    rows = [{"id": f"a{i}", "source": "s", "text": text_of(i, GOOD) + " more" * (i % 2)} for i in range(60)]
    given = {
        "positives": {"where": "statistics.words > 30"},
        "negatives": {"where": "statistics.words <= 30 AND doc_id <> 'a0'"},
    }
    settings = settings_for(tmp_path, given, annotate={"statistics": {}})
    arrive(spark, settings, rows, "one")
    run(spark, settings, "annotate")
    result = train(spark, settings)
    assert outcomes(result) == {
        ("s", "in", ""): 60,
        ("s", "kept", ""): 58,  # as many of each
        ("s", "dropped", "not_labelled"): 1,
        ("s", "dropped", "not_drawn"): 1,
    }
    card = card_in(tmp_path / "model")
    assert "annotations" in card["inputs"]["tables"] and card["labels_are"] == "labelled"


def test_near_copies_and_equal_texts_stand_on_one_side(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As decided by near_dedup, over what exact_dedup had dropped before, over other tables, and where nothing was decided
    by text; the card says which."""
    seen: dict[str, Any] = {}
    original = train_classifier.fill_folder

    def spy(folder: Path, rows: Any, *others: Any) -> dict[str, Any]:
        seen["rows"] = rows
        return original(folder, rows, *others)

    monkeypatch.setattr(train_classifier, "fill_folder", spy)
    rows = []
    for family in range(24):
        base = text_of(family, GOOD if family % 2 else BAD).split()
        source = "wiki" if family % 2 else "web"
        for copy in range(5):  # the first two are equal, the others differ in one word each
            words = base if copy < 2 else [*base[:-1], f"changed{copy}"]
            rows.append({"id": f"{source}-{family}-{copy}", "source": source, "text": " ".join(words)})
    given = {"positives": {"where": "source = 'wiki'"}, "held_out": 0.4, "folds": 2}
    more: dict[str, Any] = {"decide": [{"exact_dedup": {}}, {"near_dedup": {}}]}
    settings = settings_for(tmp_path, given, **more)
    arrive(spark, settings, rows, "one")
    decided = [
        # The first is kept by exact_dedup and dropped by near_dedup; or both are dropped for a document of elsewhere.
        (f"{source}-{family}-{copy}", "exact_dedup" if copy == 1 else "near_dedup",
         f"{source}-{family}-0" if copy == 1 else f"{source}-{family}-2" if family < 20 else "there",
         None if copy == 1 or family < 20 else f"table {family}")
        for family in range(24) for source in ("wiki" if family % 2 else "web",) for copy in (0, 1, 3, 4)
    ]  # fmt: skip
    decided += [
        (f"{s}-{f}-2", "near_dedup", "there", f"table {f}")
        for f in range(20, 24)
        for s in ("wiki" if f % 2 else "web",)
    ]

    def families_on_both_sides() -> int:
        sides: dict[str, set[tuple[bool, int]]] = {}
        for doc_id, out, fold in zip(seen["rows"].ids, seen["rows"].held_out, seen["rows"].folds, strict=True):
            sides.setdefault(doc_id.rsplit("-", 1)[0], set()).add((bool(out), int(fold)))
        assert len(sides) == 24
        return sum(len(found) > 1 for found in sides.values())

    decisions = TableRef.in_warehouse(settings.warehouse, "decisions")
    ensure_table(spark, "decisions", decisions, DECISIONS)
    train(spark, settings, "undecided")
    assert card_in(tmp_path / "model")["split"]["unit"] == "equal text" and families_on_both_sides() > 5
    frame = spark.createDataFrame(decided, "doc_id STRING, step STRING, kept_id STRING, kept_in STRING")
    values = {
        "source": F.lit("s"), "reason": F.lit("r"), "failing": F.array().cast(FAILING), "method": F.lit("m"),
        "proven": F.lit(True), "documents_version": F.lit(1).cast("bigint"), "run_id": F.lit("r"),
        "policy": F.lit("default"), "batch": F.lit("one"), "similarity": F.lit(1.0),
        "group_size": F.lit(2).cast("bigint"), "shared_bands": F.lit(None).cast("int"),
    }  # fmt: skip
    write_table(
        spark, frame.withColumns(values), "decisions", decisions, DECISIONS, transaction="d", ordinal=1, metadata={}
    )
    RunTable(spark, settings.warehouse).replace(
        RunRecord("d", "near_dedup", "near_dedup", "default", "done", "", "", "")
    )
    train(spark, settings_for(tmp_path, {**given, "replace": True}, **more), "decided")
    unit = card_in(tmp_path / "model")["split"]["unit"]
    assert unit == "near-duplicate group (decisions of exact_dedup, near_dedup) and equal text"
    assert families_on_both_sides() == 0


def test_the_draw_is_exact_and_orders_nothing(spark: SparkSession) -> None:
    """The first of each label by hash; ``place`` mixes the labels though few of one are drawn and all of the other."""
    values = [(f"d{i}", "few" if i < 50 else "many", None) for i in range(5000)] + [("gone", "few", "why")]
    judged = spark.createDataFrame(values, "doc_id STRING, label STRING, reason STRING")
    wanted = quotas({"few": 50, "many": 4950}, 1000, balanced=True)
    assert wanted == {"few": 50, "many": 50} and quotas({"a": 5, "b": 9}, 7, balanced=False) == {"a": 5, "b": 7}
    found = drawn(judged, 3, wanted).collect()
    assert Counter(row["label"] for row in found) == wanted
    best = judged.where("label = 'many'").orderBy(draw_bits("train_classifier.draw", 3)).limit(50)
    assert {row["doc_id"] for row in best.collect()} == {row["doc_id"] for row in found if row["label"] == "many"}
    ordered = [row["label"] for row in sorted(found, key=lambda row: row["place"])]
    assert 15 < ordered[:50].count("few") < 35
    again = drawn(judged.repartition(7), 3, {"few": 10, "many": 60}).collect()
    assert Counter(row["label"] for row in again) == {"few": 10, "many": 60}
    assert {row["doc_id"] for row in found if row["label"] == "many"} < {row["doc_id"] for row in again}


def test_a_training_that_fails_leaves_nothing(
    spark: SparkSession, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither half a model nor a hidden folder; the run is recorded as failed and goes on when it is started again."""
    settings = settings_for(
        home, {"positives": {"where": "source = 'wiki'"}, "folder": str(tmp_path / "deep" / "model")}
    )
    original = train_classifier.fill_folder

    def fails(folder: Path, *others: Any) -> dict[str, Any]:
        original(folder, *others)
        raise RuntimeError("out of luck")

    monkeypatch.setattr(train_classifier, "fill_folder", fails)
    with pytest.raises(RuntimeError, match="out of luck"):
        train(spark, settings, "fails")
    assert list((tmp_path / "deep").iterdir()) == []
    monkeypatch.setattr(train_classifier, "fill_folder", original)
    train(spark, settings, "fails")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["model"]
    runs = table(spark, settings, "runs").where("job = 'train_classifier' AND run_id = 'fails'").collect()
    assert [(row["status"], row["step"]) for row in runs] == [("done", "quality")]
