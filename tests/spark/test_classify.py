"""Classifier annotators under Spark: empty partitions, one load a worker, files that only the driver has."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import skops.io
from pyspark.sql import DataFrame, SparkSession
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from jobs import annotate as annotate_job
from jobs.annotate import annotate
from jobs.runtime import session as sessions
from jobs.runtime.errors import SettingsError
from tests.spark.helpers import CASES, case_rows, expected, lay_out, run, settings_in, table
from udfs import model_files
from udfs.annotators.fasttext_classifier import FastTextSettings
from udfs.annotators.language import LanguageSettings
from udfs.annotators.one_pass import one_pass
from udfs.annotators.sklearn_classifier import SklearnSettings
from udfs.annotators.tokens import TokensSettings
from udfs.fasttext_training import FastTextTraining, train_fasttext

SCHEMA = "doc_id STRING, source STRING, text_sha256 BINARY, batch STRING, text STRING"
GOOD = ["the report explains the method and the result in detail", "the author describes the method and its result"]
JUNK = ["buy cheap pills click here win money now", "click now win cheap money buy buy"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A fastText and a scikit-learn model over the same texts."""
    home = tmp_path_factory.mktemp("models")
    labels = ["good", "good", "junk", "junk"]
    training = FastTextTraining(dimension=8, epochs=20, learning_rate=0.2, buckets=100)
    train_fasttext(pa.array((GOOD + JUNK) * 20), labels * 20, training, home / "model.bin")
    skops.io.dump(
        make_pipeline(HashingVectorizer(n_features=256), LogisticRegression(C=100.0)).fit(GOOD + JUNK, labels),
        home / "model.skops",
    )
    return {"fasttext": str(home / "model.bin"), "sklearn": str(home / "model.skops")}


def frame_of(spark: SparkSession, texts: dict[str, str | None], partitions: int) -> DataFrame:
    rows = [(n, "s", hashlib.sha256((t or "").encode()).digest(), "b", t) for n, t in texts.items()]
    return spark.createDataFrame(rows, SCHEMA).repartition(partitions)


def everything(models: dict[str, str]) -> list[tuple[str, Any]]:
    return [
        ("language", LanguageSettings()),
        ("fast", FastTextSettings(model=models["fasttext"], positive="good")),
        ("scikit", SklearnSettings(model=models["sklearn"], positive="good")),
    ]


def test_empty_partitions_and_nothing_at_all(spark: SparkSession, models: dict[str, str]) -> None:
    """O-CLS-04: 2 rows in 16 partitions; 0 rows in 4; rows without text."""
    wanted, sizes = everything(models), expected("O-CLS-04")["rows_out"]
    texts = {row["id"]: row["text"] for row in case_rows("O-CLS-04")}
    found = annotate(frame_of(spark, texts, 16), wanted).collect()
    assert len(found) == sizes[0]
    assert {r["doc_id"]: r["language"]["code"] for r in found} == {"a": "en", "b": "de"}
    assert all(0 <= r[name]["score"] <= 1 for r in found for name in ("fast", "scikit"))

    nothing = annotate(spark.createDataFrame([], SCHEMA).repartition(4), wanted)
    assert nothing.count() == sizes[1] and nothing.schema["scikit"].dataType.simpleString() == (
        "struct<score:double,label:string,probability:double,unscored:string,version:string>"
    )
    nulls = annotate(frame_of(spark, dict.fromkeys("abc"), 2), wanted).collect()
    assert len(nulls) == sizes[2]
    assert all(r[name][field] is None for r in nulls for name, field in
               [("language", "code"), ("fast", "score"), ("scikit", "score")])  # fmt: skip


def test_a_model_is_loaded_once_in_each_worker(spark: SparkSession, models: dict[str, str]) -> None:
    """O-CLS-07: 2,000 rows in 8 partitions, 2 workers; not once a row, a batch or a task."""
    given = [("fast", FastTextSettings(model=models["fasttext"], positive="good"))]
    recipe = json.loads((CASES / "O-CLS-07.jsonl").read_text(encoding="utf-8"))
    texts = {f"{recipe['id_prefix']}{n}": recipe["unit"] * recipe["times"] for n in range(recipe["count"])}
    annotated = one_pass(given)
    sha256 = model_files.sha256_of(models["fasttext"])

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in annotated(batches):
            rows = batch.num_rows
            columns = [pa.array([os.getpid()] * rows), pa.array([model_files.loads[sha256]] * rows)]
            yield pa.RecordBatch.from_arrays(columns, names=["process", "loads"])

    found = frame_of(spark, texts, 8).mapInArrow(counted, "process BIGINT, loads BIGINT").collect()
    assert len(found) == expected("O-CLS-07")["rows_out"]
    loads = {r["process"]: r["loads"] for r in found}
    assert sum(loads.values()) == len(loads) <= expected("O-CLS-07")["max_model_loads"]


def test_workers_take_the_sent_file_where_the_path_is_not_theirs(
    spark: SparkSession, models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster: the file is sent with the job; the driver's folder is gone when the tasks read it."""
    monkeypatch.setattr(sessions, "all_on_this_machine", lambda spark: False)
    gone = tmp_path / "driver"
    gone.mkdir()
    path = shutil.copyfile(models["sklearn"], gone / "model.skops")
    found = annotate(frame_of(spark, {"g": GOOD[0]}, 1), [("s", SklearnSettings(model=str(path), positive="good"))])
    shutil.rmtree(gone)
    assert found.collect()[0]["s"]["score"] > 0.5


def test_a_tokenizer_file_is_sent_too(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from udfs.annotators.tokens import vocabulary_bytes

    monkeypatch.setattr(sessions, "all_on_this_machine", lambda spark: False)
    file = tmp_path / "mine.tiktoken"
    file.write_bytes(vocabulary_bytes(TokensSettings()))
    given = TokensSettings(tokenizer=str(file), split="cl100k")
    found = annotate(frame_of(spark, {"g": GOOD[0]}, 1), [("t", given)])
    file.unlink()
    assert found.collect()[0]["t"]["count"] == 10


def test_the_job_stops_before_it_scores_with_an_unknown_label(
    spark: SparkSession, models: dict[str, str], tmp_path: Path
) -> None:
    lines = [{"id": "a", "text": GOOD[0]}]
    ingest = {"s": {"paths": [str(lay_out(tmp_path / "in", lines))], "columns": {"doc_id": "id"}}}
    wrong = {"fast": {"kind": "fasttext", "model": models["fasttext"], "positive": "hq"}}
    settings = settings_in(tmp_path, ingest=ingest, annotate=wrong)
    run(spark, settings, "ingest")
    with pytest.raises(SettingsError, match="no label 'hq'"):
        run(spark, settings, "annotate")


def test_new_documents_get_the_annotation_where_the_model_lies_elsewhere_today(
    spark: SparkSession, models: dict[str, str], tmp_path: Path, make_settings: Callable[..., Any]
) -> None:
    """And where it is gone, the message says what is missing."""
    place = shutil.copyfile(models["sklearn"], tmp_path / "old.skops")
    run(spark, make_settings(str(place)), "ingest", "r1")
    run(spark, make_settings(str(place)), "annotate", "r1")
    lay_out(tmp_path / "in", [{"id": "b", "text": JUNK[0]}], "b.jsonl")
    os.rename(place, tmp_path / "new.skops")
    run(spark, make_settings(str(tmp_path / "new.skops")), "ingest", "r2")
    run(spark, make_settings(str(tmp_path / "new.skops")), "annotate", "r2")
    rows = table(spark, make_settings(str(tmp_path / "new.skops")), "annotations").collect()
    assert {r["doc_id"]: r["quality"]["label"] for r in rows} == {"a": "good", "b": "junk"}

    lay_out(tmp_path / "in", [{"id": "c", "text": JUNK[1]}], "c.jsonl")
    without = make_settings(None)
    run(spark, without, "ingest", "r3")
    group = annotate_job.group_of(
        spark, "annotations", annotate_job.TableRef.in_warehouse(without.warehouse, "annotations")
    )
    with pytest.raises(SettingsError, match=r"quality: model: .*neither a file nor a folder"):
        annotate_job.settings_for(group, without.annotate)


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Any]:
    lay_out(tmp_path / "in", [{"id": "a", "text": GOOD[0]}], "a.jsonl")

    def make(model: str | None) -> Any:
        ingest = {"s": {"paths": [str(tmp_path / "in")], "columns": {"doc_id": "id"}}}
        quality = {"quality": {"kind": "sklearn", "model": model, "positive": "good"}} if model else {"statistics": {}}
        return settings_in(tmp_path, ingest=ingest, annotate=quality)

    return make
