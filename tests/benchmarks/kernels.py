"""The text kernels on one core, without Spark: MB/s on English-like text and on text of four scripts.

python -m tests.benchmarks.kernels
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.demo_corpus import generate
from tests.benchmarks.common import report, seconds
from udfs.annotators.tokens import TokensSettings, open_tokens
from udfs.normalise import norm_v1, norm_v1_keys
from udfs.statistics import text_statistics
from udfs.words import word_hashes_v1

BUDGET = {"norm_v1": 80.0, "norm_v1_keys": 60.0, "word_hashes_v1": 80.0, "text_statistics": 80.0, "tokens": 20.0}
"""Mixed text. Synthetic words are long and rare, which is hard on a tokenizer: real text is measured under Spark."""


def main(megabytes: float = 60.0) -> bool:
    """Run, print, and say whether each kernel is fast enough on mixed text."""
    texts = corpus_texts(megabytes)
    ascii_texts = texts.filter(pa.compute.string_is_ascii(texts))
    kernels: dict[str, Callable[[pa.Array], Any]] = {
        "norm_v1": norm_v1,
        "norm_v1_keys": norm_v1_keys,
        "word_hashes_v1": word_hashes_v1,
        "text_statistics": text_statistics,
        "tokens": lambda array: open_tokens(TokensSettings())(array),
    }
    mixed = {name: rate(kernel, texts) for name, kernel in kernels.items()}
    plain = {name: rate(kernel, ascii_texts) for name, kernel in kernels.items()}
    within = all(mixed[name] >= BUDGET[name] for name in BUDGET)
    report("kernels", mixed, BUDGET, within, unit="MB/s", higher_is_better=True, ascii=plain)
    return within


def corpus_texts(megabytes: float) -> pa.Array:
    """The texts of a demo corpus."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = generate(Path(folder) / "corpus", megabytes=megabytes, seed=0)
        texts = []
        for file in sorted(corpus.folder.glob("*/*.jsonl")):
            for line in file.open(encoding="utf-8"):
                try:
                    text = json.loads(line)["text"]
                    text.encode()
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
                texts.append(text)
    return pa.array(texts, pa.string())


def rate(kernel: Callable[[pa.Array], Any], texts: pa.Array, rounds: int = 3) -> float:
    """Median MB/s of a kernel on batches of 10,000 texts, after a warm-up."""
    batches = [texts.slice(start, 10_000) for start in range(0, len(texts), 10_000)]
    size = pa.compute.sum(pa.compute.binary_length(texts)).as_py() / 1e6
    kernel(batches[0])

    def all_batches() -> None:
        for batch in batches:
            kernel(batch)

    return round(size / statistics.median(seconds(all_batches) for _ in range(rounds)), 1)


if __name__ == "__main__":
    sys.exit(0 if main(*(float(a) for a in sys.argv[1:2])) else 1)
