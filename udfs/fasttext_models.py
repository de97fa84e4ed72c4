"""fastText models: loaded without chatter, asked many texts at a time."""

from __future__ import annotations

from typing import Any

LABEL_PREFIX = "__label__"
ALL = -1
"""As many labels as the model has."""


def load_fasttext(path: str) -> Any:
    """A fastText model; it holds its matrices in this process' memory.

    Raises:
        ValueError: if the file is none.
    """
    import fasttext

    return fasttext.FastText._FastText(model_path=path)


def label_names(model: Any) -> list[str]:
    """The labels that a supervised model knows, without their prefix, in the model's order."""
    return [label.removeprefix(LABEL_PREFIX) for label in model.get_labels()]


def labels_and_probabilities(model: Any, texts: list[str], *, most: int) -> tuple[list[list[str]], list[list[float]]]:
    """The most probable labels of prepared texts (see ``classifying.prepared``) and their probabilities.

    Args:
        model: A supervised model.
        texts: Without line feeds.
        most: How many labels of each, or ``ALL``.
    """
    if not texts:
        return [], []
    labels, probabilities = model.f.multilinePredict([f"{text}\n" for text in texts], most, 0.0, "strict")
    cut = len(LABEL_PREFIX)
    return [[label[cut:] for label in row] for row in labels], probabilities
