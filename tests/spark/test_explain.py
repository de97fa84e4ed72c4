"""``weir explain``: the right reason for every fate, and the candidates with their similarities."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.explain import explanation
from jobs.runtime.errors import InputContractError
from tests.spark.helpers import run
from tests.spark.test_increments import CROWDED, arrive, settings_for


@pytest.mark.parametrize("annotated", [False, True], ids=["text signed anew", "signatures annotated"])
def test_every_fate_is_explained(spark: SparkSession, tmp_path: Path, annotated: bool) -> None:
    """Dropped, kept for others, kept beside a similar one, without candidates, without words, protected, and dropped
    by an earlier step; an unknown id is refused."""
    words = [f"w{i}" for i in range(60)]
    texts = {
        "a": words, "b": [*words[:-1], "x"], "c": [*words[:40], *[f"v{i}" for i in range(20)]],
        "d": [f"u{i}" for i in range(60)], "e": ["!"], "p": [*words[:-1], "y"], "r": [*words[:-1], "z"],
    }  # fmt: skip
    rows = [{"id": i, "source": "p" if i == "p" else "s", "text": " ".join(t)} for i, t in texts.items()]
    outside = spark.createDataFrame([("o", " ".join(texts["d"][:-1]))], "doc_id STRING, text STRING")
    outside.write.format("delta").save(str(tmp_path / "outside"))
    near = {
        "threshold": 0.8, "protected": ["source = 'p'"], "against": [{"table": str(tmp_path / "outside")}],
    }  # fmt: skip
    if not annotated:
        near |= {"name": "near"}
    settings = settings_for(
        tmp_path,
        survivor=["doc_id"],
        annotate={"minhash": CROWDED} if annotated else {},
        decide=[{"eligibility": {"blocked_ids": ["r"]}}, {"near_dedup": near}],
    )
    arrive(spark, settings, rows, "one")
    if annotated:
        run(spark, settings, "annotate")
    run(spark, settings, "eligibility", step="eligibility")
    name = "near_dedup" if annotated else "near"
    if annotated:
        with pytest.raises(InputContractError, match="has not decided yet"):
            explanation(spark, settings, "a", 10)
    run(spark, settings, "near-dedup", step=name)

    def verdict(doc_id: str) -> str:
        found = explanation(spark, settings, doc_id, 10)
        assert len(found["comparisons"]) == 1
        said: str = found["comparisons"][0]["verdict"]
        return said

    found = explanation(spark, settings, "b", 10)
    assert found["steps"][0]["said"] == "passed" and "p stays, similarity 0.9" in found["steps"][1]["said"]
    comparison = found["comparisons"][0]
    assert comparison["verdict"].startswith("dropped, since p ranks before it, stays, shares ")
    by_id = {c["doc_id"]: c for c in comparison["candidates"]}
    assert by_id.keys() >= {"a", "p"} and not by_id.keys() & {"b", "d", "e", "r", "o"}
    assert (by_id["p"]["rank"], by_id["p"]["fate"]) == ("before", "stays")
    assert (by_id["a"]["rank"], by_id["a"]["fate"]) == ("before", "dropped for p")
    assert by_id["p"]["similarity"] == pytest.approx(55 / 57) and comparison["total"] == len(by_id)
    if not annotated:  # the rest doesn't depend on where signatures come from
        return
    assert explanation(spark, settings, "b", 1)["comparisons"][0]["candidates"][0]["doc_id"] == "p"
    assert verdict("p") == "kept: it is protected, whatever it is similar to"
    assert explanation(spark, settings, "p", 10)["steps"][1]["said"] == "passed, and stays for 2: a, b"
    assert verdict("e") == "kept: it has no words, so it takes no part"
    assert f"o in {tmp_path}/outside stays" in explanation(spark, settings, "d", 10)["steps"][1]["said"]
    if annotated:
        assert (
            verdict("c")
            == f"kept: of the documents before it that stay, the most similar has {36 / 76:.4g}; the threshold is 0.8"
        )
    gone = explanation(spark, settings, "r", 10)
    assert [s["said"] for s in gone["steps"]] == [
        "dropped: blocked_id; blocked_id: r, limit list of ids",
        "did not see it",
    ]
    assert gone["comparisons"] == []
    with pytest.raises(InputContractError, match="there is no document 'q'"):
        explanation(spark, settings, "q", 10)
