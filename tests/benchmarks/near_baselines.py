"""What near_dedup is measured beside, on the same text with the same K, b and r; none of them verifies a removal.

``rdd``: what public Spark scripts do, written anew: shingles, permutations and band keys by a Python function over an
RDD, a group-by per band key, star edges. ``spark_ml``: Spark's own MinHashLSH and approxSimilarityJoin. ``datasketch``:
the Python library, MinHashLSH in one process.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

PRIME = np.uint64((1 << 61) - 1)
SPLIT = re.compile(r"\W+")


def grams_of(text: str) -> set[str]:
    """Word 5-grams, as scripts make them."""
    words = [word for word in SPLIT.split(text.lower()) if word]
    return {" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


def rdd(texts: DataFrame, bands: int, rows: int) -> int:
    """Star edges of MinHash buckets, by Python functions over an RDD; texts: ``doc_id``, ``text``."""
    draw = np.random.default_rng(1)
    a = draw.integers(1, 1 << 61, bands * rows, dtype=np.uint64)
    b = draw.integers(0, 1 << 61, bands * rows, dtype=np.uint64)

    def keys(row: Any) -> Iterator[tuple[tuple[int, bytes], str]]:
        digests = [hashlib.sha1(g.encode()).digest()[:4] for g in grams_of(row[1])]
        hashes = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)
        minima = (((hashes[:, None] * a + b) % PRIME) & np.uint64(0xFFFFFFFF)).min(axis=0).astype(np.uint32)
        for band in range(bands):
            yield (band, minima[band * rows : (band + 1) * rows].tobytes()), row[0]

    def star(bucket: Any) -> Iterator[tuple[str, str]]:
        members = sorted(bucket[1])
        for member in members[1:]:
            yield members[0], member

    make: Callable[..., Any] = texts.rdd.flatMap
    return int(make(keys).groupByKey().flatMap(star).distinct().count())


def spark_ml(texts: DataFrame, tables: int, threshold: float) -> int:
    """Pairs by Spark ML: hashed term sets, MinHashLSH with one value a table (all that it has), a similarity join."""
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram

    words = F.expr("filter(split(lower(text), '\\\\W+'), word -> word <> '')")
    grams = NGram(n=5, inputCol="words", outputCol="grams").transform(texts.select("doc_id", words.alias("words")))
    hashed = HashingTF(inputCol="grams", outputCol="set", numFeatures=1 << 20, binary=True).transform(
        grams.where(F.size("grams") > 0)
    )
    # Stored first: the optimiser may move the hashing before the filter, and Spark ML refuses an empty set.
    narrow = hashed.select("doc_id", "set").localCheckpoint()
    model = MinHashLSH(inputCol="set", outputCol="minima", numHashTables=tables, seed=1).fit(narrow)
    joined = model.approxSimilarityJoin(narrow, narrow, 1 - threshold, distCol="distance")
    return int(joined.where("datasetA.doc_id < datasetB.doc_id").count())


def datasketch(texts: list[tuple[str, str]], bands: int, rows: int) -> int:
    """Documents for which the library's index holds another one already."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
    found = 0
    for doc_id, text in texts:
        signature = MinHash(num_perm=bands * rows)
        signature.update_batch([gram.encode() for gram in grams_of(text)])
        found += bool(index.query(signature))
        index.insert(doc_id, signature)
    return found
