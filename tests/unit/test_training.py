"""Training from rows to a file: the same rows give the same bytes, and the file is what the annotators think it is."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jobs.registry import JOBS, pipeline
from jobs.runtime.errors import InputContractError, RetryLater, SettingsError
from jobs.train_classifier import check_classes, check_sides
from jobs.training.folder import check_free, folder_of, new_folder
from jobs.training.sides import folds, held_out, units
from tests.spark.helpers import settings_in
from udfs.classifier_metrics import roc_auc
from udfs.classifying import prepared
from udfs.fasttext_models import load_fasttext
from udfs.fasttext_training import _fitted, _softmax, tokens_of, word_hash
from udfs.skops_files import load_trusted, types_to_trust, write_skops
from udfs.training import (
    FastTextTraining,
    SklearnTraining,
    model_name,
    out_of_fold,
    probabilities,
    train,
    unusable_labels,
)

ROOT = Path(__file__).parents[2]
TRAININGS = {
    "fasttext": {"dimension": 8, "buckets": 300, "epochs": 20, "learning_rate": 0.5},
    "fasttext quantised": {"dimension": 8, "buckets": 600, "epochs": 20, "learning_rate": 0.5, "quantise": True, "cutoff": 300},
    "logistic regression": {"number_of_features": 2**10},
    "tfidf": {"number_of_features": 2**10, "features": "tfidf"},
    "random forest": {"number_of_features": 2**8, "classifier": "random_forest", "trees": 25},
}  # fmt: skip


def training_of(name: str) -> FastTextTraining | SklearnTraining:
    return (FastTextTraining if name.startswith("fasttext") else SklearnTraining)(**TRAININGS[name])


def example(rows: int = 240) -> tuple[pa.Array, list[str]]:
    """Rows of two labels that share most of their words; every tenth label is wrong."""
    draw = random.Random(3)
    texts, labels = [], []
    for row in range(rows):
        good = row % 2 == 0
        mark = "gut" if good else "schlecht"
        words = [f"{mark}{draw.randrange(5)}" if draw.random() < 0.2 else f"w{draw.randrange(40)}" for _ in range(20)]
        texts.append(" ".join(words))
        labels.append("yes" if good != (row % 20 == 5) else "no")
    return pa.array(texts, pa.large_string()), labels


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


SCRIPT = """
import json, sys
from pathlib import Path
from tests.unit.test_training import TRAININGS, example, sha256, training_of
from udfs.training import train
junk = [bytearray(b"\\x7f" * size) for size in (1000, 40_000, 300_000) for _ in range(20)]; del junk
found = {}
for name in TRAININGS:
    file = Path(sys.argv[1]) / "model"
    train(*example(), training_of(name), file)
    found[name] = sha256(file)
print(json.dumps(found))
"""


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    """Whatever the hash seed, the number of threads that libraries would like to use, and what lies in memory (dirtied
    before): the library's own training takes nine tenths of its first vectors from there."""
    found = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        env = {**os.environ, "PYTHONHASHSEED": str(number), "OMP_NUM_THREADS": str(number + 1), "PYTHONPATH": str(ROOT)}
        env["MALLOC_PERTURB_"] = str(85 * number)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, env=env, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1] and len(set(found[0].values())) == len(TRAININGS)


@pytest.mark.parametrize("name", TRAININGS)
def test_it_learns_what_tells_the_labels_apart(tmp_path: Path, name: str) -> None:
    training = training_of(name)
    file = tmp_path / model_name(training)
    texts, labels = example()
    facts = train(texts, labels, training, file)
    assert all(value > 0 for value in facts.values())
    names, values = probabilities(pa.array(["gut1 gut2 w1", "schlecht1 w1 schlecht3", "w1 w2"]), training, file)
    assert sorted(names) == ["no", "yes"] and values.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-4)
    good = values[:, names.index("yes")]
    assert good[0] > 0.6 > 0.4 > good[1] and good[1] < good[2] < good[0]
    seeded = train(texts, labels, training.model_copy(update={"seed": 1}), tmp_path / "other")
    assert seeded.keys() == facts.keys()
    if name != "logistic regression" and name != "tfidf":  # which have one solution
        assert sha256(tmp_path / "other") != sha256(file)


def test_the_file_is_what_the_library_reads_out_of_it(tmp_path: Path) -> None:
    """Features, hashes and vectors as the library has them: its prediction is the one that the fitted vectors give here."""
    lines = [
        "naïve café naïve 漢字 tab\tand\vfeed\fand\rreturn nul\0end", "plain words only and more words", "x",
        "no\u00a0break \u2028 \u3000 ideographic", "rare",
    ]  # fmt: skip
    texts = prepared(pa.array(lines * 3), fold_case=True, characters=None)
    labels = ["a", "b", "c", "a", "b"] * 3
    training = FastTextTraining(dimension=6, buckets=50, epochs=7, learning_rate=0.4, word_ngrams=3, minimum_count=3)
    train(texts, labels, training, tmp_path / "m.bin")
    model = load_fasttext(str(tmp_path / "m.bin"))
    words = [word.encode() for word in model.get_words()]
    tokens = tokens_of(texts, words)
    starts = [0, *tokens.ends.tolist()]
    own = [
        [model.get_words()[i] for i in tokens.ids[start:end]]
        for start, end in zip(starts, tokens.ends.tolist(), strict=False)
    ]
    assert own == [model.get_line(text)[0] for text in texts.to_pylist()]
    assert own[0][3:] == ["漢字", "tab", "and", "feed", "and", "return", "nul", "end", "</s>"]
    names = [label.removeprefix("__label__") for label in model.get_labels()]
    numbers = np.array([names.index(label) for label in labels], np.int32)
    first, second = _fitted(tokens, numbers, len(words), 3, training)
    assert (first == model.get_input_matrix()).all() and (second == model.get_output_matrix()).all()
    found = probabilities(texts, training, tmp_path / "m.bin")[1]
    for row, text in enumerate(texts.to_pylist()):
        # The library's own features of a text, and our softmax over their mean.
        hidden = _mean_of(model, text, first, len(words), 50, 3)
        scores = np.zeros(3, np.float32)
        _softmax(second, hidden, scores)
        assert found[row] == pytest.approx(scores, abs=2e-5)
    assert word_hash(b"a") == 0xE40C292C  # FNV-1a's published value


def _mean_of(model: Any, text: str, first: np.ndarray, words: int, buckets: int, ngrams: int) -> np.ndarray:
    """The mean vector of a text by the definition of fastText's features, in plain Python."""
    line = model.get_line(text)[0]
    rows = [model.get_word_id(word) for word in line]
    signed = [h - 2**32 if h >= 2**31 else h for h in (word_hash(word.encode()) for word in line)]
    for start in range(len(line)):
        value = signed[start] % 2**64
        for end in range(start + 1, min(len(line), start + ngrams)):
            value = (value * 116049371 + signed[end]) % 2**64
            rows.append(words + value % buckets)
    return first[rows].mean(axis=0, dtype=np.float64).astype(np.float32)


def test_words_that_look_like_labels_are_words(tmp_path: Path) -> None:
    """Neither a label nor the end of a text can be smuggled in by a text."""
    odd = ["__label__evil a b", "___label___evil __LABEL__Evil", "end </s> more", "</s>"]
    texts = prepared(pa.array([*odd, "good words here"] * 4), fold_case=True, characters=None)
    training = FastTextTraining(dimension=4, buckets=10, epochs=2)
    train(texts, (["x", "y"] * 10), training, tmp_path / "m.bin")
    assert sorted(load_fasttext(str(tmp_path / "m.bin")).get_labels()) == ["__label__x", "__label__y"]


def test_what_can_not_be_trained(tmp_path: Path) -> None:
    texts, labels = example()
    cases: list[tuple[FastTextTraining | SklearnTraining, str]] = [
        (FastTextTraining(dimension=4, buckets=10, minimum_count=10_000), "no word occurs 10000 times"),
        (FastTextTraining(dimension=4, buckets=10, learning_rate=10, epochs=500), "diverges with learning_rate 10"),
        (FastTextTraining(dimension=4, buckets=400, quantise=True, cutoff=10), "can't be compressed"),
    ]  # fmt: skip
    for training, says in cases:
        with pytest.raises(SettingsError, match=says):
            train(texts, labels, training, tmp_path / "m")
    with pytest.raises(ValueError, match="1 of them different"):
        train(texts, ["yes"] * len(labels), FastTextTraining(), tmp_path / "m")
    with pytest.raises(ValueError, match="can't have the label 'y es'"):
        train(texts, [label.replace("yes", "y es") for label in labels], FastTextTraining(), tmp_path / "m")
    assert unusable_labels(["a", "", "b c", "d\u00a0e", "f\t"]) == ["", "b c", "f\t"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["fasttext", "logistic regression"])
def test_no_row_is_judged_by_a_model_that_saw_it(name: str) -> None:
    """A word that only a row itself has tells its label where it trained; out of its fold it tells nothing."""
    texts = pa.array([f"w{row % 7} only{row}" for row in range(120)], pa.large_string())
    labels = ["yes" if (row * 7919) % 13 < 6 else "no" for row in range(120)]
    found = out_of_fold(texts, labels, np.arange(120) % 3, training_of(name))
    assert found is not None
    names, values = found
    assert names == ["no", "yes"] and values.shape == (120, 2)
    auc = roc_auc(values[:, 1], np.array([label == "yes" for label in labels]))
    assert 0.25 < auc < 0.75
    one_sided = np.array([0 if label == "yes" else 1 for label in labels])
    assert out_of_fold(texts, labels, one_sided, training_of(name)) is None


def test_skops_files_hold_the_same_model(tmp_path: Path) -> None:
    """Renumbered, a file still builds the same model; a forest's type has to be trusted, and is named."""
    from sklearn.ensemble import RandomForestClassifier

    draw = np.random.default_rng(0)
    values, labels = draw.random((60, 5)), np.array(["a", "b", "c"] * 20)
    forest = RandomForestClassifier(7, random_state=0).fit(values, labels)
    write_skops(forest, tmp_path / "forest.skops")
    assert types_to_trust(tmp_path / "forest.skops") == ["sklearn.tree._tree.Tree"]
    assert (load_trusted(tmp_path / "forest.skops").predict_proba(values) == forest.predict_proba(values)).all()
    words = ["same words", "same words"]
    assert words[0] is words[1]
    write_skops({"words": words}, tmp_path / "one.skops")
    write_skops({"words": [words[0], "".join(["same ", "words"])]}, tmp_path / "two.skops")
    assert sha256(tmp_path / "one.skops") == sha256(tmp_path / "two.skops")
    shared = {"one": values, "two": [values, values], "bytes": b"abc", "more": {"one": labels}}
    write_skops(shared, tmp_path / "shared.skops")
    again = load_trusted(tmp_path / "shared.skops")
    assert again["two"][0] is again["two"][1] is again["one"] and again["bytes"] == b"abc"
    assert (again["more"]["one"] == labels).all() and (again["one"] == values).all()


CARD: dict[str, Any] = {"identity": "i", "model": "model.bin", "sha256": hashlib.sha256(b"m").hexdigest()}


def model_in(folder: Path, **card: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"m")
    (folder / "card.json").write_text(json.dumps({**CARD, **card}), encoding="utf-8")
    return folder


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A process that is killed half way leaves no folder of the model's name, and the next attempt of its run clears up."""
    folder = tmp_path / "deep" / "model"
    script = (
        "import os\nfrom pathlib import Path\nfrom jobs.training.folder import new_folder\n"
        f"with new_folder(Path({str(folder)!r}), 'run', False) as partial:\n"
        "    (partial / 'model.bin').write_bytes(b'half')\n    os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT)
    assert done.returncode == 9 and not folder.exists()
    (left,) = folder.parent.iterdir()
    assert left.name.startswith(".model.partial-")
    with pytest.raises(KeyError), new_folder(folder, "other", False) as partial:
        assert list(partial.iterdir()) == []
        raise KeyError("fails")
    assert list(folder.parent.iterdir()) == [left]
    with new_folder(folder, "run", False) as partial:
        assert partial == left and list(partial.iterdir()) == []
        (partial / "model.bin").write_bytes(b"whole")
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert [path.name for path in folder.iterdir()] == ["model.bin"]


def test_what_is_in_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    folder = model_in(tmp_path / "m")
    found = check_free(folder, "i", False)
    assert found is not None and found["sha256"] == CARD["sha256"]
    with pytest.raises(SettingsError, match=r"holds another model .*`replace: true`"):
        check_free(folder, "other", False)
    assert check_free(folder, "other", True) is None
    (folder / "model.bin").write_bytes(b"changed")
    with pytest.raises(SettingsError, match="its file was changed"):
        check_free(folder, "i", False)
    with pytest.raises(RetryLater, match="could not be put in place"), new_folder(folder, "run", False) as partial:
        (partial / "x").write_text("x")
    assert sorted(path.name for path in folder.iterdir()) == ["card.json", "model.bin"]
    with new_folder(folder, "run", True) as partial:
        (partial / "x").write_text("x")
    assert [path.name for path in folder.iterdir()] == ["x"] and [path.name for path in tmp_path.iterdir()] == ["m"]
    with pytest.raises(SettingsError, match="no model of weir train-classifier"):
        check_free(folder, "i", True)  # whatever it is, it is not ours to remove
    folder.rename(tmp_path / ".m.replaced")  # as a process leaves it that is killed between two renames
    with pytest.raises(SettingsError, match="no model of weir"):
        check_free(folder, "i", True)
    (tmp_path / "empty").mkdir()
    assert check_free(tmp_path / "empty", "i", False) is None and check_free(tmp_path / "none", "i", False) is None
    with new_folder(tmp_path / "empty", "run", False) as partial:
        (partial / "x").write_text("x")
    assert (tmp_path / "empty" / "x").exists()


def test_where_a_model_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("./warehouse", "quality", None) == tmp_path / "models" / "quality"
    assert folder_of("/data/lake/w", "quality", None) == Path("/data/lake/models/quality")
    assert folder_of("s3://bucket/w", "quality", None) == tmp_path / "models" / "quality"
    assert folder_of("main.corpus", "quality", None) == tmp_path / "models" / "quality"
    assert folder_of("s3://bucket/w", "quality", "here") == tmp_path / "here"


def test_classes_that_can_not_be_used(tmp_path: Path) -> None:
    mine = settings_in(
        tmp_path, train={"q": {"kind": "fasttext", "labels": {"table": "t.t"}, "positive": "good"}}
    ).train["q"]
    with pytest.raises(InputContractError, match="two labels at least; there are: good"):
        check_classes(["good"], mine, "train.quality")
    with pytest.raises(InputContractError, match="two labels at least; there are: none"):
        check_classes([], mine, "train.quality")
    with pytest.raises(InputContractError, match="white space: 'very bad'"):
        check_classes(["good", "very bad"], mine, "train.quality")
    with pytest.raises(InputContractError, match="the training side has no document of label 'bad'"):
        check_sides(["bad", "good", "good"], [True, True, False], "equal text")


def test_settings_that_contradict_each_other(tmp_path: Path) -> None:
    for given, says in [
        ({}, "give either positives or labels"),
        ({"positives": {}}, "give either table or where"),
        ({"labels": {"table": "a.b"}}, "labels need positive"),
        ({"positives": {"where": "true"}, "folder": "s3://b/m"}, "no local folder"),
        ({"positives": {"where": "true"}, "epoch": 3}, "did you mean 'epochs'"),
        ({"positives": {"where": "true"}, "folds": 1}, "folds: 2 at least, or 0"),
    ]:
        with pytest.raises(SettingsError, match=re.escape(says)):
            settings_in(tmp_path, train={"quality": {"kind": "fasttext", **given}})
    with pytest.raises(SettingsError, match="kind"):
        settings_in(tmp_path, train={"quality": {"positives": {"where": "true"}}})


def test_units_join_what_overlaps() -> None:
    """Texts and groups that overlap in a chain are one unit, called by its smallest group, whatever the order."""
    texts = [b"1", b"1", b"2", b"3", b"4"]
    groups = ["c", "b", "b", "a", "a"]
    assert units(texts, groups) == ["b", "b", "b", "a", "a"]
    assert units(texts[::-1], groups[::-1]) == ["a", "a", "b", "b", "b"]
    assert units(texts, None) == ["31", "31", "32", "33", "34"]
    assert units(texts[1:4], ["x", "y", "z"]) == ["x", "y", "z"] and units([], []) == []


def test_the_split_stays_as_it_was_when_documents_are_added() -> None:
    names = [f"n{i}" for i in range(2000)]
    first, more = held_out(names[:1000], 7, 0.2), held_out(names, 7, 0.2)
    assert (first == more[:1000]).all() and 330 < more.sum() < 470
    both = (held_out(names, 8, 0.2) & more).sum()
    assert 40 < both < 125  # another seed draws anew: a fifth of a fifth of 2,000 on both
    inside = folds(names, 7, 4)
    assert set(inside) == {0, 1, 2, 3}
    assert 60 < (inside[more] == 0).sum() < 140  # folds know nothing of sides: a quarter of about 400


def test_it_is_no_part_of_the_pipeline(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, train={"quality": {"kind": "sklearn", "positives": {"where": "source = 'wiki'"}}})
    assert "train-classifier" not in {job.name for job, _ in pipeline(settings)}
    assert list(JOBS["train-classifier"].steps(settings)) == ["quality"]
