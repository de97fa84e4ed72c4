"""Near-copies: records that differ from another in some words, with the exact word-5-gram Jaccard similarity of the two.

An edited word that is five or more words from the next edit removes five of the n word 5-grams and adds five others, so k
such edits give a similarity of (n - 5k) / (n + 5k), and k = n (1 - J) / (5 (1 + J)) edits give similarity J. The similarity
that is recorded is counted on the texts afterwards, not taken from the formula.
"""

from __future__ import annotations

from functools import cached_property

from jobs.demo_corpus.lexicon import Lexicon, json_escaped, json_unescaped
from jobs.demo_corpus.planted import (
    KEEP,
    NEAR_THRESHOLD,
    PlantedRecord,
    PlantedUnit,
    Quota,
    TextRequest,
    Workshop,
)
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.shingles import SHINGLE_WORDS, jaccard, shingles_of, word_spans, words_of
from jobs.demo_corpus.sources import FORUM, REFERENCE, WEB
from jobs.demo_corpus.vocabulary import ENGLISH, VOCABULARY_SIZE

ORIGINAL, ABOVE, BELOW, CHAIN_END = "near_original", "near_above", "near_below", "near_chain"
DROP_NEAR = "drop:near_duplicate"

_SHORTEST, _LONGEST = 150, 1_500
_SHORTEST_CHAIN = 300

# One member in a cell of six words can change, the third, so that two edits are always six or more words apart.
_CELL, _PLACE = 6, 2

# Rare words, so that an edit doesn't make a 5-gram that the text has elsewhere.
_RARE = VOCABULARY_SIZE // 2

# At most one member below the threshold in a cluster: two of them could not be similar enough to each other to be dropped,
# but so the truth doesn't rest on that.
_PATTERNS: tuple[tuple[str, ...], ...] = (
    (ABOVE,),
    (BELOW,),
    (ABOVE, ABOVE, BELOW),
    (ABOVE, ABOVE, ABOVE, ABOVE),
)
_RANGES = {ABOVE: (0.82, 0.97), BELOW: (0.5, 0.77)}
_MARGIN = 0.01


def cluster_size(number: int) -> int:
    """Members of the cluster with that number, the original included."""
    return 1 + len(_PATTERNS[number % len(_PATTERNS)])


class Edited:
    """A text, its words, and copies of it with some words replaced."""

    def __init__(self, text: str, words: list[str] | None = None) -> None:
        self.text = text
        self._words = words_of(text) if words is None else words
        self.shingles = shingles_of(self._words)
        self.cells = len(self._words) // _CELL

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return word_spans(self.text)

    def edits_for(self, similarity: float) -> int:
        """How many separate edits bring the similarity closest to the wanted one, at least one."""
        wanted = len(self.shingles) * (1 - similarity) / (SHINGLE_WORDS * (1 + similarity))
        return min(max(round(wanted), 1), self.cells)

    def replaced(self, cells: list[int], lexicon: Lexicon, draws: Draws) -> Edited:
        """The text with one word replaced in each of the given cells, which are in increasing order."""
        pieces, words, done = [], self._words.copy(), 0
        for cell in cells:
            at = cell * _CELL + _PLACE
            start, end = self._spans[at]
            words[at] = lexicon.word(ENGLISH, _RARE + draws.one(VOCABULARY_SIZE - _RARE))
            pieces += [self.text[done:start], words[at]]
            done = end
        return Edited("".join([*pieces, self.text[done:]]), words)


class NearCluster(PlantedUnit):
    """An original and one to four near-copies of it, each edited independently of the others.

    The best-ranked member is the original. Those above the threshold must be dropped and those below it kept, as the original is
    kept and no other kept member is similar to them.
    """

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__()
        self._number = number
        self._style = (WEB, REFERENCE)[number % 3 == 2]
        group = f"near-{number:07d}"
        for _ in range(cluster_size(number)):
            source = quota.take((WEB, WEB, REFERENCE, FORUM)[draws.one(4)])
            self.members.append(PlantedRecord(source, ORIGINAL, KEEP, group))

    def requests(self) -> list[TextRequest]:
        """The original's text, in English, so that words are runs of ASCII letters."""
        return [TextRequest(self._style, ENGLISH, _SHORTEST, _LONGEST)]

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The original, and the edited copies with their similarities."""
        first, *copies = self.ranked()
        first.text = texts[0]
        original = Edited(json_unescaped(texts[0]))
        for copy, kind in zip(copies, _PATTERNS[self._number % len(_PATTERNS)], strict=True):
            edited, similarity = _edited(original, kind, workshop)
            copy.kind, copy.original, copy.jaccard = kind, first, similarity
            copy.text = json_escaped(edited.text)
            copy.expected = DROP_NEAR if kind == ABOVE else KEEP


class NearChain(PlantedUnit):
    """Three records A, B, C in rank order: A and B are near-duplicates, B and C are, A and C are not.

    B must be dropped for A; C must be kept, since the only record that it is similar to isn't.
    """

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__()
        group = f"chain-{number:07d}"
        for _ in range(3):
            source = quota.take((WEB, WEB, REFERENCE)[draws.one(3)])
            self.members.append(PlantedRecord(source, ORIGINAL, KEEP, group))

    def requests(self) -> list[TextRequest]:
        """A's text."""
        return [TextRequest(WEB, ENGLISH, _SHORTEST_CHAIN, _LONGEST)]

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """B edits every A in even cells, C edits B in odd cells as well."""
        first, second, third = self.ranked()
        lexicon, draws = workshop.composer.lexicon, workshop.draws
        start = Edited(json_unescaped(texts[0]))
        edits = start.edits_for(0.88)
        half = start.cells // 2
        middle = start.replaced([2 * cell for cell in draws.distinct(half, edits)], lexicon, draws)
        end = middle.replaced([2 * cell + 1 for cell in draws.distinct(half, edits)], lexicon, draws)
        first.text, second.text, third.text = texts[0], json_escaped(middle.text), json_escaped(end.text)
        second.kind, second.expected, second.original = ABOVE, DROP_NEAR, first
        second.jaccard = jaccard(start.shingles, middle.shingles)
        third.kind, third.original = CHAIN_END, second
        third.jaccard = jaccard(middle.shingles, end.shingles)
        third.detail = f"similarity to the chain's first record: {jaccard(start.shingles, end.shingles):.6f}"


def _edited(original: Edited, kind: str, workshop: Workshop) -> tuple[Edited, float]:
    draws = workshop.draws
    edits = original.edits_for(draws.between(*_RANGES[kind]))
    while True:
        cells = draws.distinct(original.cells, edits)
        edited = original.replaced(cells, workshop.composer.lexicon, draws)
        similarity = jaccard(original.shingles, edited.shingles)
        if kind == ABOVE and similarity < NEAR_THRESHOLD + _MARGIN and edits > 1:
            edits -= 1
        elif kind == BELOW and similarity > NEAR_THRESHOLD - _MARGIN and edits < original.cells:
            edits += 1
        else:
            return edited, similarity
