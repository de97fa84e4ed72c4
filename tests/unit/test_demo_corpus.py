"""The demo corpus: same seed same bytes, and the truth is true, checked by plain Python."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.demo_corpus import DemoCorpus, DemoFolderError, DemoSettings, DemoSettingsError, expected_outcomes, generate
from tests.reference.normalise import norm_v1
from tests.reference.statistics import text_statistics


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".parquet"):
        total.update(str(file.relative_to(folder)).encode() + hashlib.sha256(file.read_bytes()).digest())
    total.update(repr(pq.read_table(folder / "truth.parquet").to_pylist()).encode())
    return total.hexdigest()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> DemoCorpus:
    return generate(tmp_path_factory.mktemp("demo") / "corpus", documents=2_000, seed=7)


@pytest.fixture(scope="module")
def truth(corpus: DemoCorpus) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(corpus.truth_path).to_pylist()
    return rows


@pytest.fixture(scope="module")
def texts(corpus: DemoCorpus) -> dict[str, str]:
    import gzip

    found = {}
    for file in sorted(corpus.folder.glob("*/part-*")):
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        for line in data.split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("text"), str):
                assert record["id"] not in found, "ids are unique"
                found[record["id"]] = record["text"]
    return found


def test_same_seed_same_bytes_whatever_the_processes_and_the_hash_seed(corpus: DemoCorpus, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom jobs.demo_corpus import generate\nif __name__ == '__main__':\n"
        f"    generate(Path({str(tmp_path / 'again')!r}), documents=2_000, seed=7, workers=2)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    home = Path(__file__).parents[2]
    subprocess.run([sys.executable, str(script)], check=True, env={"PYTHONHASHSEED": "99", "PYTHONPATH": str(home)})
    assert digest(tmp_path / "again") == digest(corpus.folder)
    generate(tmp_path / "other", documents=2_000, seed=8)
    assert digest(tmp_path / "other") != digest(corpus.folder)


def test_totals_add_up_and_every_kind_is_there(corpus: DemoCorpus, truth: list[dict[str, Any]]) -> None:
    assert corpus.documents == 2_000 == sum(expected_outcomes(corpus.truth_path)["records"].to_pylist())
    expected = {row["expected"] for row in truth}
    wanted = {"keep", "drop:empty", "drop:exact_duplicate", "drop:near_duplicate", "drop:too_short", "drop:symbol_soup",
              "drop:long_token", "drop:blocked_domain", "drop:blocked_id", "reject:bad_json", "reject:text_missing",
              "reject:text_not_string", "reject:several_records_on_line", "reject:not_an_object"}  # fmt: skip
    assert wanted <= expected


def test_exact_copies_are_equal_after_normalisation_to_the_document_named(
    truth: list[dict[str, Any]], texts: dict[str, str]
) -> None:
    copies = [row for row in truth if row["expected"] == "drop:exact_duplicate"]
    assert len(copies) > 20
    for row in copies:
        assert norm_v1(texts[row["doc_id"]]) == norm_v1(texts[row["original_id"]]), row


def words(text: str) -> list[str]:
    from tests.reference.words import words_v1

    return words_v1(text)


def jaccard(a: str, b: str) -> float:
    def shingles(text: str) -> set[tuple[str, ...]]:
        found = words(text)
        return {tuple(found[i : i + 5]) for i in range(max(1, len(found) - 4))}

    first, second = shingles(a), shingles(b)
    return len(first & second) / len(first | second)


def test_planted_jaccards_are_what_brute_force_finds(truth: list[dict[str, Any]], texts: dict[str, str]) -> None:
    near = [
        row for row in truth if row["jaccard"] is not None and row["doc_id"] in texts and row["original_id"] in texts
    ]
    assert len(near) > 20
    for row in near:
        assert jaccard(texts[row["doc_id"]], texts[row["original_id"]]) == pytest.approx(row["jaccard"], abs=1e-12), row


def test_unrelated_documents_share_next_to_nothing(truth: list[dict[str, Any]], texts: dict[str, str]) -> None:
    planted = {row["doc_id"] for row in truth}
    ordinary = sorted(set(texts) - planted)
    sample = random.Random(0).sample(ordinary, 60)
    assert max(jaccard(texts[a], texts[b]) for a in sample for b in sample if a < b) < 0.02


def test_ordinary_documents_meet_the_quality_rules(truth: list[dict[str, Any]], texts: dict[str, str]) -> None:
    planted = {row["doc_id"] for row in truth}
    for name in sorted(set(texts) - planted):
        found = text_statistics(texts[name])
        assert found["characters"] >= 60 and found["letters"] >= 0.3 and found["longest_word"] <= 50_000, name  # type: ignore[operator]


def test_impossible_settings_and_a_used_folder_are_refused(corpus: DemoCorpus, tmp_path: Path) -> None:
    with pytest.raises(DemoFolderError):
        generate(corpus.folder, documents=2_000)
    with pytest.raises(DemoSettingsError):
        generate(tmp_path, documents=10)
    with pytest.raises(DemoSettingsError):
        DemoSettings(junk_share=2.0, files_per_source=0)
