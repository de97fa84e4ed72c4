"""Reads a demo corpus back and runs it through a pipeline written by the definitions, in plain Python.

Normalisation, words, shingles, statistics and the pipeline itself are written out again on purpose: they share no code with the
generator, so that a mistake there can't excuse itself here.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from jobs.demo_corpus import QUALITY_RULES, SOURCE_PRIORITIES, DemoCorpus

Shingles = set[tuple[str, ...]]


@dataclass(frozen=True)
class Line:
    source: str
    file: str
    number: int
    raw: bytes

    @property
    def place(self) -> tuple[str, int]:
        return self.file, self.number


@dataclass(frozen=True)
class Corpus:
    made: DemoCorpus
    lines: list[Line]
    truth: list[dict[str, Any]]

    def rows(self, *kinds: str) -> list[dict[str, Any]]:
        return [row for row in self.truth if row["kind"] in kinds]

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """Every record that ingest can use, by id; half surrogate pairs are replaced as ingest does."""
        found = {}
        for line in self.lines:
            record, reason = parsed(line.raw)
            if reason is None:
                found[record["id"]] = {**record, "source": line.source, "place": line.place}
        return found

    @property
    def ordinary(self) -> dict[str, dict[str, Any]]:
        planted = {(row["file"], row["line"]) for row in self.truth}
        return {doc_id: record for doc_id, record in self.records.items() if record["place"] not in planted}


def read_corpus(made: DemoCorpus) -> Corpus:
    lines = []
    for path in sorted(made.folder.glob("*/part-*")):
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        assert data.endswith(b"\n")
        file = str(path.relative_to(made.folder))
        source = path.parent.name
        lines += [Line(source, file, n, raw) for n, raw in enumerate(data[:-1].split(b"\n"), 1)]
    assert made.truth_path is not None
    return Corpus(made, lines, pq.read_table(made.truth_path).to_pylist())


def parsed(raw: bytes) -> tuple[dict[str, Any], str | None]:
    """A line as ingest reads it: the record, or the reason why it is put aside."""
    text = raw.decode()
    try:
        record, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError:
        return {}, "bad_json"
    if text[end:].strip():
        return {}, "several_records_on_line"
    if not isinstance(record, dict):
        return {}, "not_an_object"
    if record.get("text") is None:
        return record, "text_missing"
    if not isinstance(record["text"], str):
        return record, "text_not_string"
    record["text"] = re.sub("[\ud800-\udfff]", "\ufffd", record["text"])
    return record, None


def normalised(text: str) -> str:
    text = re.sub("[\u200b\ufeff\u00ad]", "", unicodedata.normalize("NFC", text).lower())
    return " ".join(text.split())


def words(text: str) -> list[str]:
    """Runs of letters, marks and digits; a Chinese character is a word of its own."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.findall(r"[\u3400-\u9fff]|(?:(?![\u3400-\u9fff_])[\w\u0300-\u036f])+", folded)


def shingles(text: str) -> Shingles:
    found = words(text)
    if len(found) < 5:
        return {tuple(found)} if found else set()
    return {tuple(found[at : at + 5]) for at in range(len(found) - 4)}


def similarity(left: Shingles, right: Shingles) -> float:
    return len(left & right) / len(left | right)


def failed_rules(text: str) -> list[str]:
    """The names of the quality rules that a text breaks, with the rules' SQL read as Python over plain statistics."""
    statistics = {
        "characters": len(text),
        "letters": sum(unicodedata.category(character)[0] == "L" for character in text) / max(len(text), 1),
        "longest_word": max(map(len, text.split()), default=0),
    }
    failed = []
    for name, expression in QUALITY_RULES:
        field, comparison, limit = re.fullmatch(r"statistics\.(\w+) (>=|<=) ([0-9.]+)", expression).groups()  # type: ignore[union-attr]
        value = statistics[field]
        if not (value >= float(limit) if comparison == ">=" else value <= float(limit)):
            failed.append(name)
    return failed


def run_pipeline(corpus: Corpus) -> dict[tuple[str, int], str]:
    """What becomes of every line: ingest, eligibility, exact_dedup, quality_filter, near_dedup at 0.8, by the definitions."""
    outcome: dict[tuple[str, int], str] = {}
    records = []
    for line in corpus.lines:
        record, reason = parsed(line.raw)
        if reason:
            outcome[line.place] = f"reject:{reason}"
        else:
            records.append({**record, "place": line.place, "rank": (SOURCE_PRIORITIES[line.source], record["id"])})
    records.sort(key=lambda record: record["rank"])
    domains = set(corpus.made.blocked_domains_path.read_text().split())
    takedowns = set(corpus.made.takedown_ids_path.read_text().split())
    seen: set[str] = set()
    kept: list[Shingles] = []
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for record in records:
        key = normalised(record["text"])
        if record["url"].split("/")[2] in domains:
            result = "drop:blocked_domain"
        elif record["id"] in takedowns:
            result = "drop:blocked_id"
        elif not key:
            result = "drop:empty"
        elif key in seen:
            result = "drop:exact_duplicate"
        elif failed := failed_rules(record["text"]):
            result = f"drop:{failed[0]}"
        else:
            own = shingles(record["text"])
            common = Counter(other for shingle in own for other in holders.get(shingle, ()))
            near = any(count / (len(own) + len(kept[other]) - count) >= 0.8 for other, count in common.items())
            result = "drop:near_duplicate" if near else "keep"
            if not near:
                for shingle in own:
                    holders[shingle].append(len(kept))
                kept.append(own)
        if not result.startswith("drop:blocked"):
            seen.add(key)
        outcome[record["place"]] = result
    return outcome
