"""A bigram model in ARPA form, read and applied as its definition says: what KenLM is compared with, and stands in for."""

from __future__ import annotations

from collections.abc import Iterator

TINY = """\\data\\
ngram 1=6
ngram 2=5

\\1-grams:
-99\t<s>\t-0.30103
-1.0\t</s>
-1.5\t<unk>
-0.7\tthe\t-0.2
-0.9\tferry\t-0.1
-1.1\tcrosses\t-0.4

\\2-grams:
-0.2\t<s> the
-0.3\tthe ferry
-0.4\tferry crosses
-0.6\tcrosses </s>
-0.5\tferry </s>

\\end\\
"""
"""Written by hand, so that perplexities can be computed by hand."""


class ArpaModel:
    """``full_scores`` as kenlm.Model gives them, for models of at most two words."""

    def __init__(self, path: str) -> None:
        self.logarithms: dict[tuple[str, ...], float] = {}
        self.back_offs: dict[tuple[str, ...], float] = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                parts = line.rstrip("\n").split("\t")
                if len(parts) >= 2:
                    words = tuple(parts[1].split(" "))
                    self.logarithms[words] = float(parts[0])
                    self.back_offs[words] = float(parts[2]) if len(parts) > 2 else 0.0

    def full_scores(self, sentence: str) -> Iterator[tuple[float, int, bool]]:
        """log10 probability, words that were looked at, and whether the word is unknown, up to the sentence's end."""
        before = "<s>"
        for word in [*sentence.split(), "</s>"]:
            unknown = (word,) not in self.logarithms
            known = "<unk>" if unknown else word
            if (before, known) in self.logarithms:
                yield self.logarithms[before, known], 2, unknown
            else:
                yield self.back_offs.get((before,), 0.0) + self.logarithms[(known,)], 1, unknown
            before = known
