"""Perplexity: by hand, by a plain reader of ARPA files, and by KenLM itself where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.runtime.errors import SettingsError
from tests.reference.arpa import TINY, ArpaModel
from udfs.annotators import perplexity
from udfs.annotators.perplexity import PERPLEXITY, PerplexitySettings, perplexities

READERS: dict[str, Callable[[str], Any]] = {"reference": ArpaModel}
if importlib.util.find_spec("kenlm"):
    READERS["kenlm"] = perplexity.load_kenlm
Find = Callable[..., list[Any]]


@pytest.fixture(params=READERS)
def found(request: pytest.FixtureRequest, tmp_path: Path) -> Find:
    """Texts to their structs."""
    (tmp_path / "tiny.arpa").write_text(TINY)
    model = READERS[request.param](str(tmp_path / "tiny.arpa"))

    def find(texts: list[str], words: str = "words_v1", characters: int | None = None) -> list[Any]:
        rows = perplexities(model, pa.array(texts, pa.string()), words=words, characters=characters)
        return list(rows.to_pylist())

    return find


def test_perplexity_by_hand(found: Find) -> None:
    """The ferry crosses: -0.2 - 0.3 - 0.4 - 0.6 = -1.5 over three words and the end: 10^(1.5 / 4) = 2.371374."""
    whole, two_lines, unknown = found(
        ["The ferry crosses.", "The ferry!\n\n -- \nThe ferry crosses", "the boat crosses"]
    )
    assert whole == {"perplexity": pytest.approx(2.371374, abs=2e-6), "words": 3, "unknown": 0, "unscored": None}
    # -0.2 - 0.3 - 0.5 = -1.0 over two words and the end; both lines: 10^(2.5 / 7)
    assert (two_lines["perplexity"], two_lines["words"]) == (pytest.approx(10 ** (2.5 / 7), abs=2e-6), 5)
    # -0.2, then unknown after `the`: -0.2 - 1.5, then crosses after an unknown: -1.1, then its end: -0.6
    assert (unknown["perplexity"], unknown["unknown"]) == (pytest.approx(10 ** (3.6 / 4), abs=2e-6), 1)


def test_texts_without_letters_have_none(found: Find) -> None:
    for row in found(["", " \n", "12 . 7"]):
        assert row == {"perplexity": None, "words": None, "unknown": None, "unscored": "no_text_to_score"}
    assert found([]) == []


def test_words_as_they_stand_and_only_the_beginning(found: Find) -> None:
    (upper,) = found(["The ferry"], words="white_space")
    assert upper["unknown"] == 1
    (cut,) = found(["the ferry crosses"], characters=9)
    assert cut == found(["the ferry"])[0]


def test_without_kenlm_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"pip install 'corpus-weir\[perplexity\]'"):
        PERPLEXITY.resolve(PerplexitySettings(model=__file__))
