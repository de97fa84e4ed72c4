"""A small evaluation set, and documents that contain its items: verbatim, written otherwise, or in part."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from jobs.demo_corpus.composing import Composer
from jobs.demo_corpus.lexicon import json_escaped, json_unescaped
from jobs.demo_corpus.oddities import Single
from jobs.demo_corpus.planted import Quota, Workshop
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.sources import REFERENCE
from jobs.demo_corpus.vocabulary import ENGLISH

CONTAMINATED = "contaminated"
VERBATIM, WRAPPED, PARTIAL = "verbatim", "wrapped", "partial"
WAYS: tuple[str, ...] = (VERBATIM, WRAPPED, PARTIAL)

_SHORTEST_QUESTION, _LONGEST_QUESTION = 8, 60
_ANSWER_WORDS = 4
_PART = 0.4
_SEPARATORS = (", ", "\n", "  ", " - ", " (", ") ")


@dataclass(frozen=True)
class EvaluationItem:
    """A question of 8 to 60 words and its answer of two to four."""

    id: str
    question: str
    answer: str


def evaluation_items(composer: Composer, seed: int, count: int) -> list[EvaluationItem]:
    """The items of a seed: their lengths are evenly spread, and each is the same in every corpus of that seed and count."""
    spread = _LONGEST_QUESTION - _SHORTEST_QUESTION
    items = []
    for number in range(count):
        words = _SHORTEST_QUESTION + number * spread // max(count - 1, 1)
        draws = Draws(seed, "evaluation item", number)
        lengths = np.array([words, 2 + draws.one(_ANSWER_WORDS - 1)])
        composed = composer.compose(draws, REFERENCE, np.full(2, ENGLISH), lengths)
        data, offsets = composer.lexicon.render(composed.numbers)
        middle = offsets[composed.starts[1]]
        question, answer = (
            " ".join(json_unescaped(bytes(part)).split())[:-1] for part in (data[:middle], data[middle:])
        )
        items.append(EvaluationItem(f"demo-eval-{number:03d}", question + "?", answer))
    return items


def evaluation_lines(items: list[EvaluationItem]) -> bytes:
    """The items as JSON lines with the fields id, question and answer."""
    return b"".join(
        json.dumps({"id": item.id, "question": item.question, "answer": item.answer}).encode() + b"\n" for item in items
    )


class ContaminatedDocument(Single):
    """A document of at least 150 other words that holds an item of the evaluation set, whole or in part."""

    kind = CONTAMINATED
    least, most = 150, 600

    def __init__(self, number: int, draws: Draws, quota: Quota, items: list[EvaluationItem]) -> None:
        super().__init__(number, draws, quota)
        self._way = WAYS[number % len(WAYS)]
        # Steps of 7 reach every item, long and short, in the first few documents of each way.
        self._item = items[(number // len(WAYS) * 7 + number) % len(items)]
        self.record.group = self._item.id

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The item after a sentence in the middle of the text."""
        question = self._item.question.split()
        total = len(question)
        if self._way == VERBATIM:
            passage = f"{self._item.question} {self._item.answer}. "
        elif self._way == WRAPPED:
            words = [word.strip(".,?").upper() for word in question]
            pairs = (word + _SEPARATORS[at % len(_SEPARATORS)] for at, word in enumerate(words))
            passage = "Q: " + "".join(pairs) + f"\nA: {self._item.answer}. "
        else:
            question = question[: max(4, round(_PART * total))]
            passage = " ".join(question) + ". "
        self.record.detail = f"{self._way}: {len(question)} of {total} words of the question"
        text = json_unescaped(texts[0])
        place = text.find(". ", len(text) // 2)
        place = place + 2 if place >= 0 else 0
        self.record.text = json_escaped(text[:place] + passage + text[place:])
