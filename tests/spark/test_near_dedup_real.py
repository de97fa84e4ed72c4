"""near_dedup on real documents, against all pairs by brute force; and on chains, where single linkage goes wrong."""

from __future__ import annotations

import math
import random
import statistics
import sysconfig
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.reference.brute_force import similar_pairs
from tests.spark.test_near_dedup import dropped, near
from udfs.annotators.minhash import MinhashSettings
from udfs.lsh import candidate_probability
from udfs.minhash import signatures


def real_documents(number: int) -> list[str]:
    """Python sources and notes of the running Python and its packages: real text that is on every machine."""
    places = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    files = sorted({file for place in places for kind in ("*.py", "*.md", "*.rst") for file in place.rglob(kind)})
    random.Random(5).shuffle(files)
    found = []
    for file in files:
        if 200 < file.stat().st_size < 8000 and "corpus_weir" not in file.parts:
            text = file.read_bytes().decode("utf-8", "replace")
            found.append(text)
            if len(found) == number:
                break
    assert len(found) == number
    return found


def with_edits(texts: list[str], number: int) -> list[str]:
    """Further versions of some documents, each with a share of its words replaced or cut: most stay near the threshold."""
    draw = random.Random(6)
    edited = list(texts)
    for _ in range(number):
        words = draw.choice(texts).split(" ")
        for _ in range(draw.randrange(1, max(2, len(words) // 50))):
            words[draw.randrange(len(words))] = f"edit{draw.randrange(1000)}"
        edited.append(" ".join(words))
    return edited


def test_real_documents_against_all_pairs(spark: SparkSession, tmp_path: Path) -> None:
    """Thousands of true pairs: every removal's twin is one of them (precision 1.0), no pair of kept documents that share
    a band is, and as many pairs share a band as the S-curve lets expect, within four deviations."""
    texts = with_edits(real_documents(2500), 2500)
    draw = random.Random(7)
    rows = [{"id": f"{draw.getrandbits(32):08x}-{at}", "text": text} for at, text in enumerate(texts)]
    minhash = MinhashSettings()
    pairs, similarities = similar_pairs(texts, 0.8)
    assert len(pairs) >= 2000
    bands, per_band = minhash.shape
    # Pairs that share documents don't become candidates independently: the deviation is measured, over other seeds.
    array, shares = pa.array(texts, pa.large_string()), []
    for seed in range(12):
        keys = signatures(array, words=5, bands=bands, rows=per_band, seed=seed).bands
        shares.append((keys[pairs[:, 0]] == keys[pairs[:, 1]]).any(axis=1))
    counts, together = [int(share.sum()) for share in shares], shares[0]
    expected = sum(candidate_probability(float(s), bands, per_band) for s in similarities)
    deviation = statistics.stdev(counts)
    assert abs(statistics.mean(counts) - expected) <= 4 * deviation / math.sqrt(len(counts)), (counts, expected)
    assert abs(counts[0] - expected) <= 4 * deviation and deviation < 0.03 * len(pairs)

    place = {row["id"]: at for at, row in enumerate(rows)}
    gone = {place[d]: place[k] for d, k in dropped(near(spark, tmp_path, rows, minhash)).items()}
    true = {frozenset(pair): s for pair, s in zip(pairs.tolist(), similarities.tolist(), strict=True)}
    assert len(gone) > 1000
    assert all(frozenset(pair) in true for pair in gone.items())  # precision
    assert not gone.keys() & set(gone.values())
    found = [pair for pair, shares in zip(pairs.tolist(), together.tolist(), strict=True) if shares]
    assert all(left in gone or right in gone for left, right in found)


def test_a_chain_loses_only_documents_with_a_kept_twin(spark: SparkSession, tmp_path: Path) -> None:
    """50 documents, neighbours alike by 0.85 and more, the ends by less than 0.1: every other one is kept, each dropped
    one has a kept neighbour. Single linkage would leave one document of fifty."""
    core, window, step = [f"c{i}" for i in range(24)], 100, 5
    stream = [f"w{i}" for i in range(window + 50 * step)]
    texts = [" ".join([*core, *stream[i * step : i * step + window]]) for i in range(50)]
    pairs, similarities = similar_pairs(texts, 0.05)
    alike = {tuple(p): s for p, s in zip(pairs.tolist(), similarities.tolist(), strict=True)}
    assert all(alike[i, i + 1] >= 0.85 for i in range(49)) and 0.05 < alike[0, 49] < 0.1
    rows = [{"id": f"k{at:02}", "text": text} for at, text in enumerate(texts)]
    gone = dropped(near(spark, tmp_path, rows, MinhashSettings(recall=0.9999)))
    assert {int(d[1:]) for d in gone} == set(range(1, 50, 2))
    found = near(spark, tmp_path, rows, MinhashSettings(recall=0.9999), clusters="components").decisions.collect()
    assert {r["doc_id"] for r in found} == {
        row["id"] for row in rows[1:]
    }  # single linkage, to compare with other tools
    assert {(r["kept_id"], r["proven"], r["method"], r["similarity"]) for r in found} == {
        ("k00", False, "components", None)
    }
    assert all(alike[min(a, b), max(a, b)] >= 0.8 for a, b in ((int(d[1:]), int(k[1:])) for d, k in gone.items()))
