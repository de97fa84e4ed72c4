"""Shingles, signatures and the walk over candidates: equal to their plain references, unbiased, and bounded."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import near_duplicates as reference
from udfs.annotators.minhash import MinhashSettings, open_minhash
from udfs.components import bucket_edges, components
from udfs.lsh import candidate_probability, s_curve, solve
from udfs.minhash import estimate, permutations, signature_array, signatures
from udfs.shingle_store import ShingleStore
from udfs.shingles import shared, shingle_sets
from udfs.survivors import walk
from udfs.words import word_hashes_v1, words_of

CASES = Path(__file__).parents[1] / "cases"
texts = st.lists(st.text("ab c,éß漢", max_size=40), max_size=6)


def sets_of(given_texts: list[str], n: int = 5) -> list[set[int]]:
    """Shingle sets from the kernel."""
    hashes, offsets = word_hashes_v1(pa.array(given_texts, pa.string()))
    sets, ends = shingle_sets(hashes, offsets, n)
    return [set(sets[ends[i] : ends[i + 1]].tolist()) for i in range(len(given_texts))]


@given(texts, st.integers(1, 7), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_signatures_equal_the_reference(given_texts: list[str], n: int, bands: int, rows: int, seed: int) -> None:
    array = pa.array(given_texts, pa.string())
    signed = signatures(array, words=n, bands=bands, rows=rows, seed=seed)
    hashes, offsets = word_hashes_v1(array)
    for document in range(len(given_texts)):
        words = hashes[offsets[document] : offsets[document + 1]].tolist()
        shingles = reference.shingle_hashes(words, n)
        assert signed.shingles[document] == len(shingles)
        if not shingles:
            assert not signed.bands[document].any() and not signed.fingerprints[document].any()
            continue
        minima = reference.minima(shingles, bands * rows, seed)
        assert signed.bands[document].tolist() == reference.band_keys(minima, bands, rows)
        assert signed.sketches[document].tolist() == [value & 0xFF for value in minima]
        assert sets_of(given_texts, n)[document] == set(shingles)


@pytest.mark.parametrize("number", [255, 256, 257, 511, 512, 513, 1500])
def test_blocks_of_shingles_leave_nothing_out(number: int) -> None:
    """The permutations are computed block by block: a long document's minima are those of all its shingles."""
    text = " ".join(f"w{i}" for i in range(number + 4))
    signed = signatures(pa.array([text]), words=5, bands=3, rows=2)
    hashes, _ = word_hashes_v1(pa.array([text]))
    shingles = reference.shingle_hashes(hashes.tolist(), 5)
    assert signed.shingles[0] == len(shingles) == number
    assert signed.bands[0].tolist() == reference.band_keys(reference.minima(shingles, 6, 0), 3, 2)


def test_permutations_are_odd_distinct_and_the_same_for_a_seed() -> None:
    first = permutations(112)
    assert all(a % 2 for a in first.multipliers.tolist()) and len(set(first.multipliers.tolist())) == 112
    assert [tuple(map(int, pair)) for pair in zip(*first, strict=True)] == reference.permutations(112, 0)
    assert not np.array_equal(first.multipliers, permutations(112, 1).multipliers)


def test_documents_without_words_have_nothing_and_short_ones_one_shingle() -> None:
    """O-NRD-01: an empty text shares no bucket with another; texts shorter than n are alike only if their words are."""
    array = signature_array(
        signatures(pa.array(["", None, " ,;", "Heron ", "heron", "otter"]), words=5, bands=4, rows=2)
    )
    rows = array.to_pylist()
    nothing = {"shingles": 0, "fingerprint": None, "bands": None, "sketch": None}
    assert rows[0] == rows[1] == rows[2] == nothing
    assert rows[3] == rows[4] and rows[3]["shingles"] == 1 and len(rows[3]["fingerprint"]) == 16
    assert not set(rows[4]["bands"]) & set(rows[5]["bands"])
    assert len(rows[4]["bands"]) == 4 and len(rows[4]["sketch"]) == 8


def test_a_short_document_s_shingle_is_none_of_a_longer_one() -> None:
    short, long = sets_of(["a b c", "a b c d e a b c"], 5)
    assert len(short) == 1 and not short & long


def test_fingerprints_tell_orders_and_repeats_apart_but_not_case_or_punctuation() -> None:
    given_texts = ["a b c", "A, b; c!", "a c b", "a b c c", "ab c", "a b"]
    prints = [bytes(row) for row in signatures(pa.array(given_texts), words=5, bands=1, rows=1).fingerprints]
    assert prints[0] == prints[1] and len(set(prints)) == 5


def test_the_sketch_is_not_biased() -> None:
    """O-NRD-07: 60 pairs of known Jaccard, 128 permutations."""
    rows = {r["id"]: r["text"] for r in map(json.loads, (CASES / "O-NRD-07.jsonl").read_text().splitlines())}
    wanted = json.loads((CASES / "O-NRD-07.expected.json").read_text())["expected"]
    ids = sorted(rows)
    array = signature_array(signatures(pa.array([rows[i] for i in ids]), words=5, bands=16, rows=8))
    sketches = dict(zip(ids, array.field("sketch").to_pylist(), strict=True))
    sets = dict(zip(ids, sets_of([rows[i] for i in ids]), strict=True))
    errors = []
    for left, right, given_exact in wanted["exact_jaccard"]:
        exact = reference.jaccard(sets[left], sets[right])
        assert abs(exact - given_exact) < 0.0001
        errors.append(estimate(sketches[left], sketches[right]) - exact)
    assert len(errors) == 60
    assert abs(float(np.mean(errors))) <= 0.02 and max(map(abs, errors)) <= 0.18


def test_estimates_of_large_and_small_sets_are_unbiased() -> None:
    """4,000 pairs in all, at 20 to 5,000 shingles: the mean error stays within three standard errors of 0."""
    draw = random.Random(5)
    for size, number in ((20, 2000), (300, 1500), (5000, 40)):
        errors = []
        for start in range(0, number, 20):
            given_texts, exact = [], []
            for _ in range(min(20, number - start)):
                words = [f"w{draw.getrandbits(40)}" for _ in range(size + 4)]
                cut = draw.randrange(size // 10, size)
                other = words[:cut] + [f"v{draw.getrandbits(40)}" for _ in range(size + 4 - cut)]
                given_texts += [" ".join(words), " ".join(other)]
            signed = signatures(pa.array(given_texts), words=5, bands=14, rows=8)
            sets = sets_of(given_texts)
            exact = [reference.jaccard(sets[i], sets[i + 1]) for i in range(0, len(sets), 2)]
            found = [
                estimate(signed.sketches[i].tobytes(), signed.sketches[i + 1].tobytes()) for i in range(0, len(sets), 2)
            ]
            errors += [f - e for f, e in zip(found, exact, strict=True)]
        spread = float(np.std(errors)) / len(errors) ** 0.5
        assert abs(float(np.mean(errors))) < 3 * spread, (size, np.mean(errors), spread)


def test_candidates_are_as_frequent_as_the_curve_says() -> None:
    """P(candidate) at J = 0.7 with 14 bands of 8 rows is 0.565."""
    draw = random.Random(7)
    given_texts = []
    for _ in range(1500):
        # 200 shingles each, 165 in common: J = 165 / 235 = 0.702.
        words = [f"w{draw.getrandbits(40)}" for _ in range(204)]
        given_texts += [" ".join(words), " ".join([*words[:169], *(f"v{draw.getrandbits(40)}" for _ in range(35))])]
    signed = signatures(pa.array(given_texts), words=5, bands=14, rows=8).bands
    share = float(np.mean((signed[::2] == signed[1::2]).any(axis=1)))
    expected = candidate_probability(165 / 235, 14, 8)
    assert abs(share - expected) < 4 * (expected * (1 - expected) / 1500) ** 0.5, (share, expected)


# --- the curve


def test_the_curve_equals_published_values() -> None:
    """The worked numbers of "Mining of Massive Datasets" and of datatrove's docstring."""
    assert candidate_probability(0.8, 14, 8) == pytest.approx(0.924, abs=5e-4)
    assert candidate_probability(0.8, 5, 10) == pytest.approx(0.43331, abs=5e-6)
    assert candidate_probability(0.7, 10, 10) == pytest.approx(0.24914, abs=5e-6)
    assert candidate_probability(0.9, 20, 20) == pytest.approx(0.92517, abs=5e-6)
    assert list(s_curve(14, 8)) == [0.5, 0.6, 0.7, 0.8, 0.9]


def test_a_threshold_gives_the_most_selective_bands_that_reach_the_recall() -> None:
    assert solve(0.8, 112, 0.9) == (14, 8)
    assert solve(0.7, 112, 0.9) == (22, 5)
    assert solve(1.0, 112, 0.9) == (1, 112)
    assert solve(0.05, 16, 0.9) is None
    for threshold in (0.5, 0.65, 0.8, 0.95):
        bands, rows = solve(threshold, 128, 0.95) or (0, 0)
        assert bands * rows <= 128 and candidate_probability(threshold, bands, rows) >= 0.95
        assert candidate_probability(threshold, 128 // (rows + 1), rows + 1) < 0.95


# --- groups


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-20, 20)), max_size=40))
@settings(max_examples=300, deadline=None)
def test_groups_are_the_connected_documents(memberships: list[tuple[int, int]]) -> None:
    keys = np.array([k for k, _ in memberships], np.int64)
    nodes = np.array([n for _, n in memberships], np.int64)
    left, right = bucket_edges(keys, nodes)
    found = dict(zip(*(a.tolist() for a in components(left, right)), strict=True))
    groups: list[set[int]] = []
    for key in set(keys.tolist()):
        mine = {n for k, n in memberships if k == key}
        touching = [g for g in groups if g & mine]
        groups = [g for g in groups if not g & mine] + [mine.union(*touching)]
    wanted = {node: min(group) for group in groups if len(group) > 1 for node in group}
    assert found == wanted
    assert len(left) <= len(memberships)


# --- survivors


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=9),
    st.lists(st.sets(st.integers(1, 6), min_size=1), min_size=9, max_size=9),
    st.sampled_from([0.2, 0.5, 0.6, 0.8, 1.0]),
    st.integers(1, 4),
)
@settings(max_examples=500, deadline=None)
def test_the_walk_equals_the_greedy_definition(
    keys: list[list[int]], sets: list[set[int]], threshold: float, cap: int
) -> None:
    sets = sets[: len(keys)]
    offsets = np.cumsum([0, *(len(s) for s in sets)])
    # As in signatures, keys of different bands are different.
    matrix = np.array([[band * 100 + key for band, key in enumerate(row)] for row in keys], np.int64)
    flat = np.array([v for s in sets for v in sorted(s)], np.uint64)
    same = np.zeros((len(keys), 4), np.uint8)
    walked = walk(matrix, same, flat, offsets[:-1], offsets[1:], threshold=threshold, cap=cap, slack=1.0)
    wanted = reference.survivors(list(map(set, sets)), [tuple(row) for row in matrix.tolist()], threshold, cap)
    assert [None if t < 0 else t for t in walked.twins.tolist()] == wanted
    for document, twin in enumerate(wanted):
        if twin is not None:
            assert walked.similarities[document] == reference.jaccard(set(sets[twin]), set(sets[document])) >= threshold
            assert walked.bands[document] == sum(a == b for a, b in zip(matrix[twin], matrix[document], strict=True))
    for better, worse in walked.rejected.tolist():
        assert better < worse and wanted[better] is wanted[worse] is None and not walked.capped[worse]
        assert reference.jaccard(set(sets[better]), set(sets[worse])) < threshold
    # Two kept documents that share a bucket were compared, unless the worse one hit the cap.
    compared = {(better, worse) for better, worse in walked.rejected.tolist()}
    kept = [d for d, twin in enumerate(wanted) if twin is None]
    for better, worse in ((b, w) for b in kept for w in kept if b < w and not walked.capped[w]):
        assert (better, worse) in compared or not (matrix[better] == matrix[worse]).any()


def test_a_chain_keeps_every_document_that_has_no_kept_twin() -> None:
    """O-NRD-02: of c0 to c5, each similar to its neighbours alone, c0, c2 and c4 stay."""
    rows = [json.loads(line) for line in (CASES / "O-NRD-02.jsonl").read_text().splitlines()]
    hashes, offsets = word_hashes_v1(pa.array([r["text"] for r in rows]))
    sets, ends = shingle_sets(hashes, offsets, 5)
    keys = np.zeros((len(rows), 1), np.int64)  # one bucket: every pair is a candidate
    walked = walk(
        keys, np.zeros((len(rows), 4), np.uint8), sets, ends[:-1], ends[1:], threshold=0.85, cap=64, slack=1.0
    )
    assert [r["id"] for r, t in zip(rows, walked.twins, strict=True) if t < 0] == ["c0", "c2", "c4", "z"]
    assert min(s for s, t in zip(walked.similarities, walked.twins, strict=True) if t >= 0) >= 0.85


def test_a_hot_bucket_costs_linear_time_and_says_that_it_was_capped() -> None:
    """Documents that are all in one bucket and never similar: each is compared with M others."""
    seconds = []
    for number in (2000, 8000):
        sets = np.arange(number, dtype=np.uint64)
        start = time.perf_counter()
        walked = walk(
            np.zeros((number, 1), np.int64), np.zeros((number, 4), np.uint8), sets,
            np.arange(number), np.arange(1, number + 1),
            threshold=0.7, cap=16, slack=1.0,
        )  # fmt: skip
        seconds.append(time.perf_counter() - start)
        assert walked.compared.max() == 16 and (walked.twins == -1).all()
        assert walked.capped.sum() == number - 17
    assert seconds[1] < 40 * max(seconds[0], 1e-3)  # quadratic would be 16 times as slow, and more pairs than memory


def test_protected_documents_are_kept_whatever_they_are_like() -> None:
    sets, offsets = np.array([1, 2, 1, 2, 1, 2], np.uint64), np.array([0, 2, 4, 6])
    walked = walk(
        np.zeros((3, 1), np.int64), np.zeros((3, 4), np.uint8), sets, offsets[:-1], offsets[1:], threshold=0.7, cap=4, slack=1.0,
        protected=np.array([True, True, False]),
    )  # fmt: skip
    assert walked.twins.tolist() == [-1, -1, 0]


def test_shingles_beyond_memory_go_to_a_file_and_give_the_same_walk() -> None:
    """Of a group that is larger than a task's memory, signatures stay in memory and shingles are paged in."""
    texts = [" ".join(f"w{i}" for i in range(at, at + 30)) for at in range(0, 200, 3)] + [""]
    results = []
    for room in (2**20, 500, 0):
        with ShingleStore(5, room) as store:
            for start in range(0, len(texts), 7):
                store.add(pa.array(texts[start : start + 7]))
                store.add(pa.array([], pa.string()))
            sets, offsets = store.sets()
            assert (store._file is not None) == (room < 2**20)
            walked = walk(
                np.zeros((len(texts), 1), np.int64), np.zeros((len(texts), 4), np.uint8), sets, offsets[:-1], offsets[1:],
                threshold=0.6, cap=4, slack=1.0,
            )  # fmt: skip
            results.append((sets.tolist(), offsets.tolist(), walked.twins.tolist()))
    assert results[0] == results[1] == results[2]
    whole, ends = sets_of(texts[:2]), results[0][1]
    assert [set(results[0][0][ends[i] : ends[i + 1]]) for i in (0, 1)] == [set(s) for s in whole]
    with ShingleStore(5, 0) as empty:
        assert [array.tolist() for array in empty.sets()] == [[], [0]]
        empty.add(pa.array([], pa.string()))
        assert empty.sets()[0].size == 0


def test_containment_is_measured_in_the_worse_document_and_signatures_are_estimates() -> None:
    sets, offsets = np.array([1, 2, 3, 4, 1, 2], np.uint64), np.array([0, 4, 6])
    keys, sketches = np.zeros((2, 1), np.int64), np.zeros((2, 4), np.uint8)
    contained = walk(
        keys, sketches, sets, offsets[:-1], offsets[1:], threshold=0.9, cap=4, slack=0.2, method="containment"
    )
    assert contained.twins.tolist() == [-1, 0] and contained.similarities[1] == 1.0
    assert walk(keys, sketches, sets, offsets[:-1], offsets[1:], threshold=0.9, cap=4, slack=0.2).twins.tolist() == [
        -1,
        -1,
    ]
    guessed = walk(
        keys,
        sketches,
        sets[:0],
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        threshold=0.9,
        cap=4,
        slack=0.2,
        method="signature",
    )
    assert guessed.twins.tolist() == [-1, 0]


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_shared_counts_the_intersection(left: set[int], right: set[int]) -> None:
    assert shared(np.array(sorted(left), np.uint64), np.array(sorted(right), np.uint64)) == len(left & right)


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    assert words_of("漢字かな") == ["漢", "字", "か", "な"]
    left, right = sets_of(["春の小川はさらさら行くよ岸のすみれ", "春の小川はさらさら行くよ岸のすみれ花"])
    assert 0.9 < reference.jaccard(left, right) < 1.0


def test_the_annotator_gives_what_the_kernel_gives() -> None:
    array = pa.array(["some text of a few words more", None, ""])
    given_rows = open_minhash(MinhashSettings(bands=3, rows=2, permutations=6))(array).to_pylist()
    assert given_rows == signature_array(signatures(array, words=5, bands=3, rows=2)).to_pylist()
