"""fastText classifiers (Joulin et al. 2016, arXiv 1607.01759) trained so that the same rows give the same file.

The library's own training can't: in one thread it sets a tenth of the word vectors and takes the others as they lie in
memory (issue 1061 of facebookresearch/fastText; since its vectors are no longer cleared when they are made, some
trainings end with "Encountered NaN"), and with several threads the order of the updates is left to chance. So the
library builds the dictionary, stores, compresses and predicts; the vectors are drawn and fitted here, with its features,
its loss (softmax) and its falling learning rate. What is written is a fastText model like any other.
"""

from __future__ import annotations

import array
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from jobs.runtime.errors import SettingsError
from jobs.runtime.models import SettingsModel
from udfs.classifying import END_OF_LINE, LABEL_PREFIX
from udfs.compiled import compiled
from udfs.fasttext_models import label_names

_SEPARATORS = " \n\r\t\v\f\0"
"""Where fastText ends a word; nothing else of Unicode's white space does."""

_HASH_START, _HASH_FACTOR = 2166136261, 16777619
"""32-bit FNV-1a, the library's hash of a word; it takes bytes above 127 for negative numbers."""

_PAIR_FACTOR = 116049371
"""What the library multiplies by when it goes from the hash of n words to that of n + 1."""


class FastTextTraining(SettingsModel):
    """How a fastText classifier is trained; always in one thread."""

    dimension: int = Field(100, ge=1, le=1000, description="Length of the word vectors")
    epochs: int = Field(5, ge=1, le=1000, description="Passes over the training rows")
    learning_rate: float = Field(0.1, gt=0, le=10, description="At the start; it falls linearly to 0")
    word_ngrams: int = Field(2, ge=1, le=5, description="Longest run of words that has a vector of its own")
    buckets: int = Field(
        200_000, ge=1, le=50_000_000, description="Vectors for runs of words; a model's size goes by it"
    )
    minimum_count: int = Field(1, ge=1, description="Rarer words have no vector")
    quantise: bool = Field(False, description="Store a compressed model (.ftz); the metrics are those of this one")
    cutoff: int = Field(
        0, ge=0, description="With quantise: keep so many vectors, and fit these again (at least 256); 0: all"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the first vectors")


class Tokens(NamedTuple):
    """The words of n rows, one after the other.

    ``ids`` int32[t]: numbers in the dictionary, -1 for a word that is not in it; ``hashes`` int32[t]; ``ends`` int64[n]:
    where each row ends.
    """

    ids: np.ndarray
    hashes: np.ndarray
    ends: np.ndarray


def unusable_labels(labels: Sequence[str]) -> list[str]:
    """Labels that a fastText model can't have: white space ends a label, as any word. Sorted."""
    return sorted({label for label in labels if not label or set(_SEPARATORS) & set(label)})


def train_fasttext(texts: pa.Array, labels: Sequence[str], training: FastTextTraining, file: Path) -> int:
    """Train on rows in the given order and store the model.

    Deterministic: the same rows in the same order give the same bytes, on one machine with the same versions.

    Args:
        texts: n prepared strings (no nulls, no line feeds).
        labels: n labels.
        training: How.
        file: To be written.

    Returns:
        How many words have a vector.

    Raises:
        SettingsError: if nothing can come of it with these settings.
        ValueError: for labels that can't be stored, see ``unusable_labels``.
    """
    unusable = unusable_labels(labels)
    if unusable:
        raise ValueError(f"a fastText model can't have the label {unusable[0]!r}")
    # A word that begins with the mark of labels would become one more label of its row.
    texts = pc.replace_substring(texts, LABEL_PREFIX, "_ _label__")
    with tempfile.TemporaryDirectory(prefix="weir-training-") as folder:
        rows = Path(folder) / "rows.txt"
        with rows.open("w", encoding="utf-8", newline="\n") as stream:
            for label, text in zip(labels, texts, strict=True):
                stream.write(f"{LABEL_PREFIX}{label} {text.as_py()}\n")
        model = _with_dictionary(rows, training)
        words = [word.encode() for word in model.get_words()]
        if set(words) <= {END_OF_LINE.encode()}:
            raise SettingsError(f"no word occurs {training.minimum_count} times (setting minimum_count)")
        names = label_names(model)
        numbers = {name: number for number, name in enumerate(names)}
        first, second = _fitted(
            tokens_of(texts, words),
            np.array([numbers[label] for label in labels], np.int32),
            len(words),
            len(names),
            training,
        )
        model.set_matrices(first, second)
        try:
            if training.quantise:
                _quantise(model, rows, training)
        except (RuntimeError, ValueError) as error:
            raise SettingsError(f"the model can't be compressed (settings quantise, cutoff): {error}") from None
    model.save_model(str(file))
    return len(words)


def tokens_of(texts: pa.Array, words: Sequence[bytes]) -> Tokens:
    """The words of prepared texts, each text with the mark that fastText puts at the end of a line.

    Args:
        texts: n strings, no nulls.
        words: The dictionary, in order.
    """
    known = {word: number for number, word in enumerate(words)}
    seen = _Numbering()
    places = array.array("i")
    ends = np.zeros(len(texts), np.int64)
    separators = re.compile(f"[{_SEPARATORS}]+")
    end = seen[END_OF_LINE]
    for row, text in enumerate(texts):
        places.extend([seen[word] for word in separators.split(text.as_py()) if word])
        places.append(end)
        ends[row] = len(places)
    spelt = [word.encode() for word in seen]
    ids = np.array([known.get(word, -1) for word in spelt], np.int32)
    hashes = np.array([word_hash(word) for word in spelt], np.uint32).view(np.int32)
    order = np.frombuffer(places, np.int32)
    return Tokens(ids[order], hashes[order], ends)


def word_hash(word: bytes) -> int:
    """The library's 32-bit hash of a word, 0 to 2^32 - 1."""
    value = _HASH_START
    for byte in word:
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * _HASH_FACTOR) & 0xFFFFFFFF
    return value


class _Numbering(dict[str, int]):
    """Numbers for words, in the order in which they are asked for."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _with_dictionary(rows: Path, training: FastTextTraining) -> Any:
    """An untrained model that knows the words and labels of a file; its vectors are one number long and mean nothing."""
    import fasttext

    try:
        return fasttext.train_supervised(
            input=str(rows),
            dim=1,
            epoch=0,
            lr=training.learning_rate,
            wordNgrams=training.word_ngrams,
            bucket=training.buckets,
            minCount=training.minimum_count,
            label=LABEL_PREFIX,
            loss="softmax",
            thread=1,
            seed=training.seed,
            verbose=0,
        )
    except (RuntimeError, ValueError) as error:
        raise SettingsError(f"fastText can't take in the training rows: {error}") from None


def _fitted(
    tokens: Tokens, labels: np.ndarray, words: int, classes: int, training: FastTextTraining
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of words and runs of words (drawn, then fitted), and those of the labels (zeros, then fitted).

    Raises:
        SettingsError: if they leave the range of numbers.
    """
    buckets = training.buckets if training.word_ngrams > 1 else 0  # as the library has it
    shape = (words + buckets, training.dimension)
    drawn = np.random.Generator(np.random.PCG64(training.seed)).random(shape, np.float32)
    first = (drawn * np.float32(2) - np.float32(1)) / np.float32(training.dimension)
    second = np.zeros((classes, training.dimension), np.float32)
    if labels.size:
        _descend(
            *tokens, labels, first, second, words, buckets, training.word_ngrams, training.epochs,
            training.learning_rate,
        )  # fmt: skip
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise SettingsError(f"the training diverges with learning_rate {training.learning_rate:g}; take a smaller one")
    return first, second


def _quantise(model: Any, rows: Path, training: FastTextTraining) -> None:
    """Compress a model; with a cutoff the library fits again what is left, from the vectors there are, in one thread."""
    model.quantize(
        input=str(rows),
        cutoff=training.cutoff,
        retrain=training.cutoff > 0,
        epoch=training.epochs,
        lr=training.learning_rate,
        thread=1,
        qnorm=True,
    )


@compiled
def _descend(
    ids: np.ndarray,
    hashes: np.ndarray,
    ends: np.ndarray,
    labels: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    words: int,
    buckets: int,
    ngrams: int,
    epochs: int,
    learning_rate: float,
) -> None:
    """Stochastic gradient descent, row by row: the mean of a row's vectors, softmax over the labels, cross-entropy."""
    longest = 0
    start = 0
    for row in range(ends.size):
        longest = max(longest, ends[row] - start)
        start = ends[row]
    features = np.empty(longest * (ngrams if buckets else 1), np.int64)
    dimension = first.shape[1]
    hidden = np.empty(dimension, np.float32)
    gradient = np.empty(dimension, np.float32)
    scores = np.empty(second.shape[0], np.float32)
    for epoch in range(epochs):
        start = 0
        for row in range(ends.size):
            end = ends[row]
            done = (epoch * float(ids.size) + start) / (epochs * float(ids.size))
            rate = np.float32(learning_rate * (1.0 - done))
            count = 0
            for token in range(start, end):
                if ids[token] >= 0:
                    features[count] = ids[token]
                    count += 1
            if buckets:
                for token in range(start, end):
                    value = np.uint64(np.int64(hashes[token]))
                    for other in range(token + 1, min(end, token + ngrams)):
                        value = value * np.uint64(_PAIR_FACTOR) + np.uint64(np.int64(hashes[other]))
                        features[count] = words + np.int64(value % np.uint64(buckets))
                        count += 1
            start = end
            if count == 0:
                continue
            share = np.float32(1.0 / count)
            hidden[:] = 0
            for place in range(count):
                vector = first[features[place]]
                for i in range(dimension):
                    hidden[i] += vector[i]
            for i in range(dimension):
                hidden[i] *= share
            _softmax(second, hidden, scores)
            gradient[:] = 0
            for label in range(scores.size):
                target = np.float32(1.0) if label == labels[row] else np.float32(0.0)
                step = rate * (target - scores[label])
                vector = second[label]
                for i in range(dimension):
                    gradient[i] += step * vector[i]
                    vector[i] += step * hidden[i]
            for i in range(dimension):
                gradient[i] *= share
            for place in range(count):
                vector = first[features[place]]
                for i in range(dimension):
                    vector[i] += gradient[i]


@compiled
def _softmax(second: np.ndarray, hidden: np.ndarray, scores: np.ndarray) -> None:
    """The labels' probabilities for a row, into ``scores``."""
    for label in range(scores.size):
        total = np.float32(0.0)
        for i in range(hidden.size):
            total += second[label, i] * hidden[i]
        scores[label] = total
    largest = scores.max()
    whole = np.float32(0.0)
    for label in range(scores.size):
        scores[label] = np.exp(scores[label] - largest)
        whole += scores[label]
    for label in range(scores.size):
        scores[label] /= whole
