"""All annotators. A new one is a module of its own and one line here."""

from __future__ import annotations

from udfs.annotators.base import Annotator
from udfs.annotators.exact_key import EXACT_KEY
from udfs.annotators.fasttext_classifier import FASTTEXT
from udfs.annotators.heuristics import HEURISTICS
from udfs.annotators.language import LANGUAGE
from udfs.annotators.minhash import MINHASH
from udfs.annotators.perplexity import PERPLEXITY
from udfs.annotators.sklearn_classifier import SKLEARN
from udfs.annotators.statistics import STATISTICS
from udfs.annotators.tokens import TOKENS

ANNOTATORS: dict[str, Annotator] = {
    a.kind: a for a in (TOKENS, STATISTICS, EXACT_KEY, MINHASH, HEURISTICS, LANGUAGE, FASTTEXT, SKLEARN, PERPLEXITY)
}
