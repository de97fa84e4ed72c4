"""The demo corpus is what all other tests and benchmarks trust, so its truth is checked here against plain Python.

The definitions that it is checked against (``demo_corpus_definitions``) share no code with the generator.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from jobs.demo_corpus import (
    QUALITY_RULES,
    SOURCE_PRIORITIES,
    DemoFolderError,
    DemoSettings,
    DemoSettingsError,
    expected_outcomes,
    generate,
    plan,
    read_metadata,
)
from tests.unit.demo_corpus_definitions import (
    Corpus,
    failed_rules,
    normalised,
    parsed,
    read_corpus,
    run_pipeline,
    shingles,
    similarity,
    words,
)

# The bytes of one file for one seed. A change here is a change of the generator that every recorded number depends on.
PINNED_FILE = "web/part-0000.jsonl"
PINNED_SHA256 = "d86eea77edc2871f895b32a7ed31a61244f0ec3b411e61b89613695e518677bf"


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read_corpus(generate(tmp_path_factory.mktemp("demo") / "corpus", documents=1_000, seed=0))


@pytest.fixture(scope="module")
def templated(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A third of the corpus is letters and near-identical pages, and each file is made of several blocks."""
    settings = DemoSettings(files_per_source=1, template_share=0.2, template_families=1, near_page_share=0.13)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BLOCK_DOCUMENTS", 300)
        folder = tmp_path_factory.mktemp("demo") / "corpus"
        return read_corpus(generate(folder, documents=1_200, seed=0, settings=settings))


def test_same_seed_gives_same_bytes_whatever_the_workers_and_the_hash_seed(corpus: Corpus, tmp_path: Path) -> None:
    call = f"generate(Path({str(tmp_path / 'again')!r}), documents=1000, seed=0, workers=2)"
    program = f"from pathlib import Path; from jobs.demo_corpus import generate; {call}"
    environment = {**os.environ, "PYTHONHASHSEED": "4321"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=Path(__file__).parents[2])
    assert digests(tmp_path / "again") == digests(corpus.made.folder)


def test_bytes_are_pinned_across_machines_and_versions(corpus: Corpus) -> None:
    assert digests(corpus.made.folder)[PINNED_FILE] == PINNED_SHA256


def test_another_seed_gives_other_bytes_in_every_data_file(corpus: Corpus, tmp_path: Path) -> None:
    generate(tmp_path / "other", documents=1_000, seed=1)
    first, other = digests(corpus.made.folder), digests(tmp_path / "other")
    assert first.keys() == other.keys()
    equal = {name for name in first if first[name] == other[name]}
    assert equal == {"lists/blocked_domains.txt"}


def test_compressed_files_hold_no_time_and_no_name(corpus: Corpus) -> None:
    """A time or a name in the gzip header would make equal content different bytes from one second to the next."""
    for path in corpus.made.folder.glob("*/*.gz"):
        header = path.read_bytes()[:10]
        assert header[3] == 0
        assert header[4:8] == bytes(4)


def test_every_kind_and_variety_is_there_at_the_smallest_size(corpus: Corpus) -> None:
    assert {row["kind"] for row in corpus.truth} == {
        *("exact_original", "exact_copy", "near_original", "near_above", "near_below", "near_chain", "letter", "junk"),
        *("empty", "broken", "odd", "blocked_domain", "blocked_id", "contaminated"),
    }
    assert {row["detail"] for row in corpus.rows("exact_copy")} == {
        *("byte_equal", "case", "white_space", "nfd", "zero_width")
    }
    assert {row["expected"] for row in corpus.rows("junk")} == {f"drop:{name}" for name, _ in QUALITY_RULES}
    assert {row["expected"] for row in corpus.rows("broken")} == {
        *("reject:bad_json", "reject:several_records_on_line", "reject:not_an_object"),
        *("reject:text_missing", "reject:text_not_string"),
    }
    assert {row["detail"] for row in corpus.rows("odd")} == {
        *("lone_high_surrogate", "lone_low_surrogate", "line_separators", "right_to_left"),
        *("emoji_joined", "long_line", "json_escapes", "domain_decoy"),
    }
    assert len({row["detail"] for row in corpus.rows("empty")}) == 8
    ways = {row["detail"].split(":")[0] for row in corpus.rows("contaminated")}
    assert ways == {"verbatim", "wrapped", "partial"}


def test_records_bytes_and_planted_counts_add_up(corpus: Corpus) -> None:
    made = corpus.made
    assert made.documents == 1_000 == len(corpus.lines)
    assert Counter(line.source for line in corpus.lines) == made.records
    assert made.records == {"web": 500, "books": 20, "forum": 300, "code": 100, "reference": 80}
    sizes: Counter[str] = Counter()
    for line in corpus.lines:
        sizes[line.source] += len(line.raw) + 1
    assert sizes == made.bytes
    planted = Counter(row["source"] for row in corpus.truth)
    assert {source: planted[source] for source in made.planted} == made.planted
    assert made.truth_path is not None
    totals = read_metadata(made.truth_path)["sources"]
    assert {source: total["records"] for source, total in totals.items()} == made.records
    assert {source: total["planted"] for source, total in totals.items()} == made.planted
    outcomes = expected_outcomes(made.truth_path).to_pylist()
    of_source: Counter[str] = Counter()
    for row in outcomes:
        of_source[row["source"]] += row["records"]
    assert of_source == made.records


def test_ids_are_unique_and_the_truth_says_on_which_line_each_is(corpus: Corpus) -> None:
    usable = [record["id"] for line in corpus.lines for record, reason in [parsed(line.raw)] if "id" in record]
    assert len(set(usable)) == len(usable)
    raw = {line.place: line.raw for line in corpus.lines}
    places = [(row["file"], row["line"]) for row in corpus.truth]
    assert len(set(places)) == len(places)
    for row in corpus.truth:
        if row["doc_id"] is None:
            assert row["kind"] == "broken"
        else:
            assert raw[row["file"], row["line"]].startswith(f'{{"id":"{row["doc_id"]}",'.encode())


def test_only_planted_lines_are_broken_and_records_of_a_source_have_the_same_fields(corpus: Corpus) -> None:
    broken = {(row["file"], row["line"]): row["expected"] for row in corpus.rows("broken")}
    fields = defaultdict(set)
    for line in corpus.lines:
        record, reason = parsed(line.raw)
        assert broken.get(line.place) == (f"reject:{reason}" if reason else None)
        if reason is None:
            fields[line.source].add(tuple(record))
    assert fields == {
        "web": {("id", "text", "url", "lang", "fetched_at")},
        "books": {("id", "text", "url", "lang", "year")},
        "forum": {("id", "text", "url", "lang", "thread", "votes")},
        "code": {("id", "text", "url", "lang", "repository")},
        "reference": {("id", "text", "url", "lang", "revision")},
    }


@pytest.mark.parametrize("which", ["corpus", "templated"])
def test_a_pipeline_by_the_definitions_ends_as_the_truth_says(which: str, request: pytest.FixtureRequest) -> None:
    """The heart of it: for every line, planted or not, the expected outcome is what the definitions lead to."""
    corpus: Corpus = request.getfixturevalue(which)
    expected = {line.place: "keep" for line in corpus.lines}
    expected.update({(row["file"], row["line"]): row["expected"] for row in corpus.truth})
    outcome = run_pipeline(corpus)
    assert {place: (outcome[place], expected[place]) for place in expected if outcome[place] != expected[place]} == {}


def test_recorded_similarities_are_the_real_ones(corpus: Corpus) -> None:
    records, seen = corpus.records, []
    for row in corpus.truth:
        if row["jaccard"] is None:
            continue
        real = similarity(shingles(records[row["doc_id"]]["text"]), shingles(records[row["original_id"]]["text"]))
        assert row["jaccard"] == pytest.approx(real, abs=1e-12)
        assert (real >= 0.8) == (row["kind"] in ("near_above", "near_chain"))
        seen.append(real)
    assert min(seen) < 0.65
    assert max(seen) > 0.93


def test_a_chain_ends_with_a_record_unlike_its_first(corpus: Corpus) -> None:
    """A~B~C with A and C apart: what tells greedy removal from whole clusters."""
    records, above = corpus.records, {row["doc_id"]: row for row in corpus.rows("near_above")}
    ends = corpus.rows("near_chain")
    assert ends
    for end in ends:
        first = above[end["original_id"]]["original_id"]
        assert similarity(shingles(records[end["doc_id"]]["text"]), shingles(records[first]["text"])) < 0.79


def test_exact_copies_are_equal_after_normalisation_and_the_best_ranked_survives(corpus: Corpus) -> None:
    records, groups = corpus.records, defaultdict(list)
    for row in corpus.truth:
        if row["group"] and row["group"].startswith("exact-"):
            groups[row["group"]].append(row)
    sizes = {len(rows) for group, rows in groups.items() if group != "exact-big"}
    assert sizes == {2, 3, 4, 5, 6}
    assert len({row["file"] for row in groups["exact-big"]}) > 4
    across = taken_down = 0
    for rows in groups.values():
        texts = {records[row["doc_id"]]["text"] for row in rows}
        assert len({normalised(text) for text in texts}) == 1
        (survivor,) = [row for row in rows if row["kind"] == "exact_original"]
        for row in rows:
            original = records[survivor["doc_id"]]["text"]
            if row["kind"] == "exact_copy":
                assert row["original_id"] == survivor["doc_id"]
                assert row["group"] == "exact-big" or (row["detail"] == "byte_equal") == (
                    records[row["doc_id"]]["text"] == original
                )
        eligible = [row for row in rows if row["kind"] != "blocked_id"]
        assert survivor == min(eligible, key=lambda row: (SOURCE_PRIORITIES[row["source"]], row["doc_id"]))
        across += len({row["source"] for row in rows}) > 1
        taken_down += len(rows) - len(eligible)
    assert across >= 3
    assert taken_down >= 1


def test_letters_are_half_alike_and_pages_are_near_duplicates(templated: Corpus) -> None:
    records = templated.records
    for kind, low, high in (("letter", 0.45, 0.6), ("near_page", 0.84, 1.0)):
        sets = [shingles(records[row["doc_id"]]["text"]) for row in templated.rows(kind)[:40]]
        pairs = [similarity(a, b) for at, a in enumerate(sets) for b in sets[:at]]
        assert low <= min(pairs)
        assert max(pairs) <= high
    assert len(templated.rows("letter")) == 240
    assert len(templated.rows("near_page")) == 156


def test_ordinary_documents_share_next_to_nothing(corpus: Corpus) -> None:
    """Any similarity among them would be a duplicate that the truth doesn't know."""
    sets = [shingles(record["text"]) for record in corpus.ordinary.values()]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, own in enumerate(sets):
        for shingle in own:
            holders[shingle].append(at)
    common = Counter((a, b) for at in holders.values() for n, b in enumerate(at) for a in at[:n])
    worst = max((similarity(sets[a], sets[b]) for a, b in common), default=0.0)
    assert len(sets) > 700
    assert worst < 0.1


def test_only_junk_breaks_quality_rules_and_breaks_one_each(corpus: Corpus) -> None:
    junk = {row["doc_id"]: row["expected"] for row in corpus.rows("junk")}
    empty = {row["doc_id"] for row in corpus.rows("empty")}
    for doc_id, record in corpus.records.items():
        if doc_id not in empty:
            expected = [junk[doc_id].removeprefix("drop:")] if doc_id in junk else []
            assert failed_rules(record["text"]) == expected, doc_id


def test_block_lists_name_what_the_truth_says_and_a_similar_host_is_not_on_them(corpus: Corpus) -> None:
    records = corpus.records
    domains = corpus.made.blocked_domains_path.read_text().split()
    takedowns = corpus.made.takedown_ids_path.read_text().split()
    assert takedowns == sorted(row["doc_id"] for row in corpus.rows("blocked_id"))
    blocked = {doc_id for doc_id, record in records.items() if record["url"].split("/")[2] in domains}
    assert blocked == {row["doc_id"] for row in corpus.rows("blocked_domain")}
    decoys = [records[row["doc_id"]] for row in corpus.rows("odd") if row["detail"] == "domain_decoy"]
    assert any(decoy["url"].split("/")[2].endswith(domain) for decoy in decoys for domain in domains)


def test_contaminated_documents_hold_their_item_and_no_other_document_does(corpus: Corpus) -> None:
    items = {item["id"]: item for item in map(json.loads, corpus.made.evaluation_path.read_text().splitlines())}
    lengths = [len(words(item["question"])) for item in items.values()]
    assert (len(items), min(lengths), max(lengths)) == (40, 8, 60)
    planted = {row["doc_id"]: row for row in corpus.rows("contaminated")}
    streams = {doc_id: " ".join(words(record["text"])) for doc_id, record in corpus.records.items()}
    for item_id, item in items.items():
        whole = " ".join(words(item["question"]))
        holding = {doc_id for doc_id, stream in streams.items() if f" {whole} " in f" {stream} "}
        own = {doc_id: row["detail"] for doc_id, row in planted.items() if row["group"] == item_id}
        assert holding == {doc_id for doc_id, detail in own.items() if not detail.startswith("partial")}
        for doc_id, detail in own.items():
            part, total = map(int, re.findall(r"\d+", detail))
            assert total == len(whole.split())
            assert " ".join(whole.split()[:part]) in streams[doc_id]
            assert (item["question"] in corpus.records[doc_id]["text"]) == detail.startswith("verbatim")


def test_languages_and_lengths_are_those_of_the_sources(tmp_path: Path) -> None:
    corpus = read_corpus(generate(tmp_path / "corpus", documents=4_000, seed=3))
    alphabets = {"en": "[a-z]", "de": "[a-zäöüß]", "ru": "[а-яё]", "zh": "[\u4e00-\u9fff]"}
    lengths: dict[str, list[int]] = defaultdict(list)
    languages: dict[str, Counter[str]] = defaultdict(Counter)
    for record in corpus.ordinary.values():
        lengths[record["source"]].append(len(record["text"].encode()))
        languages[record["source"]][record["lang"]] += 1
        letters = {c for c in record["text"].lower() if c.isalpha()}
        assert all(re.match(alphabets[record["lang"]], c) for c in letters), record["id"]
    means = {source: sum(values) / len(values) for source, values in lengths.items()}
    wanted = {"web": 2_000, "books": 30_000, "forum": 300, "code": 1_400, "reference": 4_000}
    assert means == {source: pytest.approx(mean, rel=0.2) for source, mean in wanted.items()}
    assert languages["web"]["en"] / languages["web"].total() == pytest.approx(0.6, abs=0.05)
    assert languages["reference"]["zh"] / languages["reference"].total() == pytest.approx(0.15, abs=0.07)
    assert set(languages["code"]) == {"en"}


def test_size_in_megabytes_and_mean_bytes_are_met(tmp_path: Path) -> None:
    settings = DemoSettings(mean_bytes=4_000)
    corpus = read_corpus(generate(tmp_path / "corpus", megabytes=12, seed=2, settings=settings))
    assert corpus.made.total_bytes == pytest.approx(12e6, rel=0.1)
    means, shares = defaultdict(list), {"web": 0.5, "books": 0.02, "forum": 0.3, "code": 0.1, "reference": 0.08}
    for record in corpus.ordinary.values():
        means[record["source"]].append(len(record["text"].encode()))
    mean = sum(share * sum(means[source]) / len(means[source]) for source, share in shares.items())
    assert mean == pytest.approx(4_000, rel=0.1)


def test_a_kind_with_share_zero_does_not_occur(tmp_path: Path) -> None:
    """Benchmarks need corpora without planted records."""
    shares = {name: 0.0 for name in DemoSettings.__dataclass_fields__ if name.endswith("_share")}
    made = generate(tmp_path / "plain", documents=1_000, settings=DemoSettings(**shares))  # type: ignore[arg-type]
    assert sum(made.planted.values()) == 0
    assert made.takedown_ids_path.read_bytes() == b""
    assert {row["expected"] for row in expected_outcomes(made.folder / "truth.parquet").to_pylist()} == {"keep"}


def test_the_truth_can_be_left_out_without_changing_the_rest(corpus: Corpus, tmp_path: Path) -> None:
    made = generate(tmp_path / "corpus", documents=1_000, seed=0, truth=False)
    assert made.truth_path is None
    rest = digests(corpus.made.folder)
    del rest["truth.parquet"]
    assert digests(made.folder) == rest


def test_impossible_settings_are_refused_together_and_a_used_folder_is(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(DemoSettingsError) as error:
        DemoSettings(files_per_source=0, junk_share=1.5, mean_bytes=10)
    assert len(error.value.problems) == 3
    sizes: tuple[dict[str, Any], ...] = (
        {},
        {"documents": 1_000, "megabytes": 1.0},
        {"documents": 999},
        {"megabytes": 0.5},
    )
    for size in (*sizes, {"documents": 1_000, "workers": 0}):
        with pytest.raises(DemoSettingsError):
            generate(tmp_path / "corpus", **size)
    with pytest.raises(DemoSettingsError, match="planted"):
        generate(tmp_path / "corpus", documents=1_000, settings=DemoSettings(template_share=0.6, near_page_share=0.4))
    assert not (tmp_path / "corpus").exists()
    with pytest.raises(DemoFolderError, match="already holds"):
        generate(corpus.made.folder, documents=1_000)
