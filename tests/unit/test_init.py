"""weir init: what it finds in a folder, that its file loads, and that it reads just the files that were counted."""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.ingesting.files import list_files
from jobs.ingesting.settings import IngestSettings
from jobs.looking import samples
from jobs.looking.found import FoundSource, settings_path
from jobs.looking.samples import SAMPLE_BYTES
from jobs.looking.sources import look
from jobs.runtime.errors import SettingsError, UnreadableInput
from jobs.runtime.init import settings_text, write_settings
from jobs.runtime.layers import read_yaml, resolve
from jobs.settings import Settings

NO_SPARK: Any = None
"""Paths without a scheme are listed without a session."""
PROSE = "Some words of a text that is long enough to be the longest field. " * 3

Rows = Sequence[dict[str, Any]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder that is looked at."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def write_lines(path: Path, rows: Rows, tail: str = "") -> Path:
    """JSON lines, compressed as the name says; ``tail`` is added as it is."""
    content = ("".join(json.dumps(row) + "\n" for row in rows) + tail).encode()
    if path.suffix == ".zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    if path.suffix == ".gz":
        content = gzip.compress(content)
    if path.suffix == ".bz2":
        content = bz2.compress(content)
    return write_bytes(path, content)


def write_bytes(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def rows_of(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{"text": f"{at} {PROSE}", **more} for at in range(number)]


def written(data: Path) -> tuple[dict[str, FoundSource], Settings, str]:
    """What was found by name, the settings as they load, and their text. Every file that was counted is listed by
    ingest under the written settings, and no other."""
    output = data.parent / "weir.yaml"
    found = write_settings(data, output, "w", force=True)
    settings = resolve(Settings, [read_yaml(output)]).settings
    assert [*settings.ingest] == [source.name for source in found]
    for source in found:
        entry = settings.ingest[source.name]
        if entry.format != "delta":
            assert len(listed(entry)) == source.files
    return {source.name: source for source in found}, settings, output.read_text(encoding="utf-8")


def listed(entry: IngestSettings) -> list[str]:
    found = list_files(NO_SPARK, entry.paths, entry.format, entry.pattern)
    return sorted(Path(file).name for file in (*found.uris, *found.hidden, *found.empty))


def columns_of(entry: IngestSettings) -> dict[str, Any]:
    """The columns that are set; ``text: text`` is the default and left out."""
    return entry.columns.model_dump(exclude_defaults=True)


def only(data: Path) -> tuple[FoundSource, IngestSettings]:
    found, settings, _ = written(data)
    assert len(found) == 1
    return next(iter(found.values())), next(iter(settings.ingest.values()))


def said(sentences: Sequence[str], *parts: str) -> bool:
    return any(all(part in sentence for part in parts) for sentence in sentences)


# --- sources and formats


def test_each_subfolder_is_a_source_with_its_own_format(data: Path) -> None:
    write_lines(data / "web" / "deep" / "a.jsonl", rows_of(3))
    write_parquet(data / "books" / "p.parquet", {"text": [PROSE]})
    write_bytes(data / "docs" / "a.md", b"# hello")
    found, settings, _ = written(data)
    assert {name: source.format for name, source in found.items()} == {
        "books": "parquet",
        "docs": "text",
        "web": "jsonl",
    }
    assert {name: entry.priority for name, entry in settings.sources.items()} == {"books": 1, "docs": 2, "web": 3}
    assert settings.ingest["web"].paths == [str(data / "web")]
    assert all(entry.licence is None and entry.use == "allowed" for entry in settings.sources.values())


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json", "jsonl.gz", "json.bz2", "ndjson.zst"])
def test_json_lines_are_known_by_every_ending_and_read_from_compressed_files(data: Path, ending: str) -> None:
    write_lines(data / "s" / f"a.{ending}", [{"content": PROSE, "n": 1}] * 7)
    source, entry = only(data)
    assert (source.format, source.files, columns_of(entry)) == ("jsonl", 1, {"text": "content"})
    assert said(source.evidence, f"text: field 'content', 7 of 7 sampled records, mean {len(PROSE)} characters")


def test_parquet_columns_are_found_by_name_and_type(data: Path) -> None:
    write_parquet(
        data / "s" / "a.parquet",
        {
            "uuid": ["a", "b"],
            "body": [PROSE, PROSE],
            "meta": [{"url": "u1"}, {"url": "u2"}],
            "date": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
            "lang": pa.array(["en", None]).dictionary_encode(),
        },
    )
    _, entry = only(data)
    assert entry.format == "parquet"
    assert columns_of(entry) == {
        "doc_id": "uuid", "text": "body", "url": "meta.url", "language": "lang", "fetched_at": "date",
    }  # fmt: skip


def test_text_that_a_table_holds_as_bytes_is_found(data: Path) -> None:
    write_parquet(data / "s" / "a.parquet", {"content": pa.array([PROSE.encode()], pa.binary()), "note": ["short"]})
    assert columns_of(only(data)[1]) == {"text": "content"}


def test_a_delta_table_is_read_at_its_newest_version(data: Path) -> None:
    table = data / "events"
    deltalake.write_deltalake(str(table), pa.table({"old": ["x" * 500]}))
    new = pa.table({"doc_id": ["1", "2"], "content": [PROSE, PROSE], "lang": ["de", "en"]})
    deltalake.write_deltalake(str(table), new, mode="overwrite", schema_mode="overwrite")
    source, entry = only(data)
    assert (source.name, source.files, entry.format, entry.paths) == ("events", 1, "delta", [str(table)])
    assert columns_of(entry) == {"doc_id": "doc_id", "text": "content", "language": "lang"}


def test_a_delta_table_s_partition_columns_count_although_no_file_holds_them(data: Path) -> None:
    table = pa.table({"text": [PROSE, PROSE], "language": ["de", "en"]})
    deltalake.write_deltalake(str(data / "t"), table, partition_by=["language"])
    assert columns_of(only(data)[1]) == {"language": "language"}


def test_a_delta_table_s_checkpoint_stands_for_the_log_before_it(data: Path) -> None:
    for at in range(3):
        deltalake.write_deltalake(str(data / "t"), pa.table({"text": [f"{at} {PROSE}"]}), mode="append")
    deltalake.DeltaTable(str(data / "t")).create_checkpoint()
    deltalake.write_deltalake(str(data / "t"), pa.table({"text": ["last"]}), mode="append")
    for commit in ("0", "1", "2"):
        (data / "t" / "_delta_log" / f"{commit:0>20}.json").unlink()
    source, _ = only(data)
    assert source.files == 4
    assert said(source.evidence, "4 of 4 sampled records")


def test_the_folder_itself_may_be_a_delta_table_and_a_source_may_hold_several(data: Path) -> None:
    deltalake.write_deltalake(str(data / "s" / "one"), pa.table({"text": [PROSE]}))
    deltalake.write_deltalake(str(data / "s" / "two"), pa.table({"text": [PROSE]}))
    assert only(data)[1].paths == [str(data / "s" / "one"), str(data / "s" / "two")]
    (source,) = look(data / "s" / "one")
    assert (source.name, source.format, source.paths) == ("one", "delta", (str(data / "s" / "one"),))


def test_text_files_are_documents_and_a_single_ending_becomes_the_pattern(data: Path) -> None:
    write_bytes(data / "s" / "a.md", b"one")
    write_bytes(data / "s" / "b" / "c.md", b"two")
    source, entry = only(data)
    assert (entry.format, entry.pattern, source.files) == ("text", "*.md", 2)
    assert said(source.evidence, "2 of 2 sampled files are UTF-8")


def test_several_text_endings_are_taken_and_what_is_no_text_is_not(data: Path) -> None:
    for name in ("a.py", "b/c.py", "d.rst", "e.png", "f.txt.gz"):
        write_bytes(data / "s[1]" / name, b"\x89PNG\x00" if name.endswith("png") else b"some text")
    source, entry = only(data)
    assert listed(entry) == ["a.py", "c.py", "d.rst"]
    assert entry.paths == [str(data / "s[[]1]" / "**" / "*.py"), str(data / "s[[]1]" / "**" / "*.rst")]
    assert said(source.warnings, "1 x .png")
    assert said(source.warnings, "compressed text")


def test_where_no_ending_is_known_files_that_decode_as_utf_8_are_documents(data: Path) -> None:
    write_bytes(data / "news" / "51060", "naïve".encode())
    write_bytes(data / "news" / "51061", b"plain")
    write_bytes(data / "logs" / "a.msg", b"Dear reader")
    write_bytes(data / "logs" / "b.dat", b"\xff\xfe\x00")
    write_bytes(data / "tables" / "c.csv", b"id,text\n1,hello\n")
    found, settings, _ = written(data)
    assert {name: entry.pattern for name, entry in settings.ingest.items()} == {"logs": "*.msg", "news": "*"}
    assert said(found["logs"].warnings, "1 x .dat")
    assert said(found["logs"].beside, "tables/", "1 x .csv")


def test_a_character_cut_by_the_limit_of_reading_is_no_fault(data: Path) -> None:
    write_bytes(data / "s" / "a.txt", b"x" + "é".encode() * 2**16)
    assert said(only(data)[0].evidence, "1 of 1 sampled files are UTF-8")


def test_text_files_in_another_encoding_are_said(data: Path) -> None:
    write_bytes(data / "s" / "a.txt", "größer".encode("latin-1"))
    write_bytes(data / "s" / "b.txt", b"plain")
    assert said(only(data)[0].warnings, "1 of 2 sampled files are not UTF-8", "a.txt", "encoding: latin-1")


def test_a_mixed_folder_takes_the_format_with_most_bytes_and_names_the_others(data: Path) -> None:
    write_lines(data / "s" / "a.jsonl", rows_of(200))
    write_parquet(data / "s" / "b.parquet", {"text": ["x"]})
    write_bytes(data / "s" / "README.md", b"about")
    source, _ = only(data)
    assert source.format == "jsonl"
    assert said(source.warnings, "1 parquet file(s)", "a source has one format, and this one's is jsonl")
    assert said(source.warnings, "other files: 1 x .md")


def test_where_most_bytes_hold_no_documents_the_next_format_is_taken(data: Path) -> None:
    write_parquet(data / "s" / "vectors.parquet", {"v": [1.5] * 1000, "n": list(range(1000))})
    write_lines(data / "s" / "a.jsonl", rows_of(1))
    source, entry = only(data)
    assert listed(entry) == ["a.jsonl"]
    assert said(source.warnings, "1 parquet file(s)", "no field of its 200 sampled records holds text")


def test_a_folder_of_text_with_some_json_lines_reads_only_the_text(data: Path) -> None:
    write_bytes(data / "s" / "a.txt", PROSE.encode() * 100)
    write_lines(data / "s" / "b.jsonl", rows_of(1))
    assert listed(only(data)[1]) == ["a.txt"]


def test_files_of_a_delta_table_in_a_mixed_folder_are_not_read_as_loose_parquet(data: Path) -> None:
    deltalake.write_deltalake(str(data / "s" / "table"), pa.table({"text": ["x"]}))
    write_parquet(data / "s" / "plain.parquet", {"text": [f"{at} {PROSE}" for at in range(5000)]})
    source, entry = only(data)
    assert (source.format, listed(entry)) == ("parquet", ["plain.parquet"])
    assert said(source.warnings, "1 delta file(s)")


def test_loose_files_are_a_source_named_after_the_folder(data: Path) -> None:
    write_lines(data / "a.jsonl", rows_of(2))
    write_lines(data / "b.jsonl.gz", rows_of(2))
    source, entry = only(data)
    assert (source.name, source.files, entry.paths) == ("data", 2, [str(data)])


def test_loose_files_of_two_formats_beside_a_subfolder_are_three_sources(data: Path) -> None:
    write_lines(data / "a.jsonl", rows_of(2))
    write_parquet(data / "b.parquet", {"text": [PROSE]})
    write_lines(data / "web" / "c.jsonl", rows_of(2))
    write_parquet(data / "web" / "d.parquet", {"n": [1]})
    _, settings, _ = written(data)
    assert {name: listed(entry) for name, entry in settings.ingest.items()} == {
        "web": ["c.jsonl"],
        "data_jsonl": ["a.jsonl"],
        "data_parquet": ["b.parquet"],
    }


def test_a_subfolder_with_the_folder_s_own_name_and_loose_files_stay_apart(data: Path) -> None:
    write_lines(data / "data" / "a.jsonl", rows_of(2))
    write_lines(data / "b.jsonl", rows_of(2))
    _, settings, _ = written(data)
    assert {name: listed(entry) for name, entry in settings.ingest.items()} == {
        "data": ["a.jsonl"],
        "data_2": ["b.jsonl"],
    }
    assert list(settings.sources) == ["data", "data_2"]


def test_a_readme_beside_the_sources_is_not_taken_for_a_document(data: Path) -> None:
    write_lines(data / "web" / "a.jsonl", rows_of(2))
    write_bytes(data / "README.md", b"# About the data")
    write_bytes(data / ".cache" / "x.jsonl", b'{"text": "no"}\n')
    source, _ = only(data)
    assert source.name == "web"
    assert said(source.beside, "README.md")
    assert said(source.beside, ".cache/", "hidden")


def test_folders_source_name_are_one_entry_with_a_pattern_and_a_source_each(data: Path) -> None:
    write_lines(data / "source=007" / "a.jsonl", rows_of(1))
    write_lines(data / "source=7" / "month=1" / "a.jsonl", rows_of(1))
    source, entry = only(data)
    assert (source.name, entry.paths, entry.source_pattern) == ("data", [str(data)], "source=([^/]+)")
    assert source.sources == ("007", "7")
    assert list(written(data)[1].sources) == ["007", "7"]


def test_folders_source_name_may_stand_beside_others_or_a_level_below(data: Path) -> None:
    write_lines(data / "source=a" / "a.jsonl", rows_of(1))
    write_lines(data / "web" / "b.jsonl", rows_of(1))
    write_lines(data / "crawl" / "source=b" / "c.jsonl", rows_of(1))
    _, settings, _ = written(data)
    assert {name: (listed(e), e.source_pattern is not None) for name, e in settings.ingest.items()} == {
        "crawl": (["c.jsonl"], True),
        "data": (["a.jsonl"], True),
        "web": (["b.jsonl"], False),
    }
    assert list(settings.sources) == ["a", "b", "web"]


def test_the_pattern_finds_the_source_below_a_folder_that_is_named_like_one(data: Path) -> None:
    from udfs.record_batches import source_in

    file = write_lines(data / "source=outer" / "in" / "source=inner" / "a.jsonl", rows_of(1))
    (source,) = look(data / "source=outer" / "in")
    assert source.source_pattern is not None
    assert (source_in(file.as_uri(), source.source_pattern), source.sources) == ("inner", ("inner",))


# --- columns


def test_a_nested_text_is_found_and_reached_by_a_dotted_path(data: Path) -> None:
    rows = [
        {"id": f"i{at}", "data": {"text": f"{at} {PROSE}", "url": "http://x"}, "author": {"url": "no"}}
        for at in range(3)
    ]
    write_lines(data / "s" / "a.jsonl", rows)
    assert columns_of(only(data)[1]) == {"doc_id": "id", "text": "data.text", "url": "data.url"}


def test_without_a_usual_name_the_longest_strings_are_the_text(data: Path) -> None:
    write_lines(data / "s" / "a.jsonl", [{"title": "short", "description": PROSE, "n": 10**30}] * 3)
    assert columns_of(only(data)[1]) == {"text": "description"}


def test_a_usual_name_that_holds_no_strings_is_not_the_text(data: Path) -> None:
    write_lines(data / "s" / "a.jsonl", [{"text": None, "code": 7, "body": ["x"], "content": PROSE}] * 3)
    assert columns_of(only(data)[1]) == {"text": "content"}


def test_a_usual_name_that_few_records_have_is_not_the_text(data: Path) -> None:
    rows: list[dict[str, Any]] = [{"text": PROSE, "content": PROSE}] + [{"content": PROSE}] * 4
    write_lines(data / "s" / "a.jsonl", rows)
    assert columns_of(only(data)[1]) == {"text": "content"}


def test_a_much_longer_field_than_the_chosen_text_is_said(data: Path) -> None:
    write_lines(data / "s" / "a.jsonl", [{"code": "US", "description": PROSE}] * 3)
    source, entry = only(data)
    assert columns_of(entry) == {"text": "code"}
    assert said(source.warnings, "'description' is longer")


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([1, 2, 2], "2 values in 3"),
        (["1", 1, 2], "2 values in 3"),
        (["a", None, "b"], "missing in 1 of 3"),
        ([1.5, 2.5, 3.5], "not always a string or a whole number"),
        ([True, False, "x"], "not always a string or a whole number"),
        (["a", "", "b"], "not always a string or a whole number"),
    ],
)
def test_a_field_that_can_t_be_an_id_is_left_out_and_the_file_says_why(data: Path, ids: list[Any], reason: str) -> None:
    write_lines(data / "s" / "a.jsonl", [{"id": value, "text": PROSE} for value in ids])
    _, settings, text = written(data)
    assert settings.ingest["s"].columns.doc_id is None
    assert "ids are made from content" in text
    assert reason in text


def test_a_further_id_field_is_taken_where_the_first_is_not_unique(data: Path) -> None:
    write_lines(data / "s" / "a.jsonl", [{"id": 1, "uuid": f"u{at}", "text": PROSE} for at in range(3)])
    assert only(data)[1].columns.doc_id == "uuid"


def test_ids_that_start_again_in_every_file_are_not_unique(data: Path) -> None:
    for name in "abcdefg":
        write_lines(data / "s" / f"{name}.jsonl", [{"id": at, "text": PROSE} for at in range(500)])
    source, entry = only(data)
    assert entry.columns.doc_id is None
    assert said(source.evidence, "of 200 sampled records")


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [(["a", "b"], ["b", "c"], "the same ids"), ([1, 2], [70, 80], "whole numbers as ids too")],
)
def test_ids_that_two_sources_share_are_offered_but_not_set(
    data: Path, first: list[Any], second: list[Any], reason: str
) -> None:
    write_lines(data / "a" / "a.jsonl", [{"id": value, "text": PROSE} for value in first])
    write_lines(data / "b" / "a.jsonl", [{"id": value, "text": PROSE} for value in second])
    found, settings, text = written(data)
    assert all(entry.columns.doc_id is None for entry in settings.ingest.values())
    assert said(found["a"].warnings, reason, "source 'b'")
    assert "# doc_id: id" in text


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("2024-01-01T00:00:00Z", True),
        (1_700_000_000, True),
        ("yesterday", False),
        (1_700_000_000_000, False),
        (20240131, False),
        ("20240131", False),
    ],
)
def test_a_time_is_taken_only_if_ingest_reads_it_and_it_can_be_meant(data: Path, value: Any, taken: bool) -> None:
    write_lines(data / "s" / "a.jsonl", [{"text": PROSE, "timestamp": value, "lang": ["en"]}] * 2)
    assert columns_of(only(data)[1]) == ({"fetched_at": "timestamp"} if taken else {})


def test_a_time_that_one_record_has_wrong_gives_way_to_the_next_field(data: Path) -> None:
    rows = [{"text": PROSE, "date": "x", "crawl_date": "2024-01-01"}, {"text": PROSE, "date": "2024-01-01"}]
    write_lines(data / "s" / "a.jsonl", rows)
    assert columns_of(only(data)[1]) == {"fetched_at": "crawl_date"}


def test_a_source_field_is_used_if_all_files_lie_in_one_folder(data: Path) -> None:
    write_lines(data / "a.jsonl", [{"text": PROSE, "source": value} for value in ("007", "no", "x: y")])
    source, entry = only(data)
    assert (entry.columns.source, source.sources) == ("source", ("007", "no", "x: y"))
    assert list(written(data)[1].sources) == ["007", "no", "x: y"]


@pytest.mark.parametrize(
    ("names", "folders"),
    [(["a", "a"], ["s"]), (["a", "b"], ["s", "t"]), (["a", "b", None], ["s"]), (["a", "b"], ["s/1", "s/2"])],
    ids=["one value", "several sources", "not in every record", "several folders"],
)
def test_else_a_source_field_is_only_offered(data: Path, names: list[str | None], folders: list[str]) -> None:
    for folder in folders:
        write_lines(data / folder / "a.jsonl", [{"text": PROSE, "source": name} for name in names])
    found, settings, text = written(data)
    assert [entry.columns.source for entry in settings.ingest.values()] == [None] * len(found)
    assert "      # source: source " in text


@pytest.mark.parametrize("values", [[f"v{at}" for at in range(21)], ["http://a", "http://b"], [1, 2], ["", "a"]])
def test_a_source_field_with_many_values_or_none_that_names_a_source_is_not_offered(
    data: Path, values: list[Any]
) -> None:
    write_lines(data / "s" / "a.jsonl", [{"text": PROSE, "source": value} for value in values])
    source, entry = only(data)
    assert (entry.columns.source, dict(source.suggested)) == (None, {})


# --- what is broken


def test_broken_lines_are_skipped_and_counted_and_a_cut_line_is_not_broken(data: Path) -> None:
    write_lines(data / "s" / "a.jsonl", rows_of(4), tail='not json\n[1]\n\n{"text": "x", "a": NaN}\n')
    long = write_lines(data / "long" / "a.jsonl", [{"text": "x" * 2**20}] * 10)
    assert long.stat().st_size > SAMPLE_BYTES
    found, _, _ = written(data)
    assert said(found["s"].warnings, "2 of 7 sampled lines are no JSON objects")
    assert said(found["s"].evidence, "5 of 5 sampled records")
    assert found["long"].warnings == ()


def test_a_damaged_file_is_named_and_the_others_are_read(data: Path) -> None:
    whole = write_lines(data / "s" / "a.jsonl.gz", [{"body": PROSE, "n": at * 7919} for at in range(20_000)])
    write_bytes(data / "s" / "b.jsonl.gz", whole.read_bytes()[:500])
    write_parquet(data / "p" / "a.parquet", {"body": [PROSE]})
    write_bytes(data / "p" / "b.parquet", b"no Parquet")
    found, settings, _ = written(data)
    assert said(found["s"].warnings, "b.jsonl.gz: damaged")
    assert said(found["p"].warnings, "b.parquet: can't be read as Parquet")
    assert [entry.columns.text for entry in settings.ingest.values()] == ["body", "body"]


@pytest.mark.parametrize(
    ("name", "content", "what", "command"),
    [
        ("all.json", '[{"text": "a"},\n {"text": "b"}]', "one JSON array", "cat all.json | jq -c '.[]' > all.jsonl"),
        ("one.json", json.dumps({"text": PROSE}, indent=1), "pretty-printed", "cat one.json | jq -c . > one.jsonl"),
        ("a b.json.gz", '[{"text": "a"}]', "one JSON array", "gzip -dc 'a b.json.gz' | jq -c '.[]' > 'a b.jsonl'"),
    ],
)
def test_json_that_is_not_in_lines_is_named_with_its_conversion_and_left_out(
    data: Path, name: str, content: str, what: str, command: str
) -> None:
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    write_bytes(data / "s" / name, packed)
    with pytest.raises(UnreadableInput) as caught:
        look(data)
    assert what in str(caught.value)
    assert command in str(caught.value)
    write_lines(data / "s" / "good.json", rows_of(100))
    source, entry = only(data)
    assert listed(entry) == ["good.json"]
    assert said(source.warnings, name, what, command)


def test_where_one_of_many_files_is_not_in_lines_every_file_is_peeked_into(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "PEEK_FILES", 2)
    for name, content in {"a": "[1]", "b": '{"text": "x"}', "c": "[1]", "d": '{"text": "x"}'}.items():
        write_bytes(data / "s" / f"{name}.json", content.encode())
    assert listed(only(data)[1]) == ["b.json", "d.json"]


@pytest.mark.parametrize("name", ["README.md", "notes.txt"])
def test_a_little_text_beside_a_json_array_is_not_the_source(data: Path, name: str) -> None:
    write_bytes(data / "s" / "all.json", json.dumps(rows_of(50)).encode())
    write_bytes(data / "s" / name, b"about")
    with pytest.raises(UnreadableInput, match="one JSON array"):
        look(data)


def test_one_record_on_one_line_is_json_lines_even_if_it_is_broken_off(data: Path) -> None:
    write_bytes(data / "s" / "a.json", json.dumps({"text": PROSE}).encode())
    write_bytes(data / "s" / "b.json", b'{"text": "broken off')
    assert only(data)[0].files == 2


@pytest.mark.parametrize("fill", [lambda data: None, lambda data: (data / "s").mkdir()])
def test_an_empty_folder_is_refused(data: Path, fill: Callable[[Path], None]) -> None:
    fill(data)
    with pytest.raises(UnreadableInput, match="empty"):
        look(data)


def test_a_folder_that_is_none_is_refused(data: Path) -> None:
    with pytest.raises(UnreadableInput, match="does not exist"):
        look(data / "nowhere")
    with pytest.raises(UnreadableInput, match="a file, not a folder"):
        look(write_bytes(data / "x.jsonl", b"{}"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.bin", b"\x00\x01", r"1 x \.bin"),
        ("x.csv", b"id,text\n", r"1 x \.csv"),
        ("x.jsonl", b"", "no record could be read"),
        ("x.jsonl", b'{"n": 1}\n{"n": 2}\n', "no field of its 2 sampled records holds text"),
        ("x.txt", b"", "all empty"),
        ("x.parquet", b"no Parquet", "can't be read as Parquet"),
    ],
)
def test_a_folder_with_nothing_readable_is_refused_with_what_is_there(
    data: Path, name: str, content: bytes, reason: str
) -> None:
    write_bytes(data / "s" / name, content)
    with pytest.raises(UnreadableInput, match=reason):
        write_settings(data, data.parent / "weir.yaml", "w")
    assert not (data.parent / "weir.yaml").exists()


def test_parquet_files_that_spark_can_t_read_by_their_names_are_said(data: Path) -> None:
    write_parquet(data / "s" / "_a.parquet", {"text": [PROSE]})
    write_parquet(data / "s" / "b.parquet", {"text": [PROSE]})
    assert said(only(data)[0].warnings, "1 Parquet file(s)", "_a.parquet", "hidden_files: skip")


# --- the file


@pytest.mark.parametrize(
    "name", ["007", "1e3", "no", "null", "~", "a: b", "a, b]", "- x", "#1", "it's", '"', "{a", "*x", "<<", "ünï", "a\nb: c", "\x07"]
)  # fmt: skip
def test_names_stay_what_they_are_whatever_yaml_makes_of_such_words(data: Path, name: str) -> None:
    write_lines(data / name / "a.jsonl", [{name: PROSE}])
    found, settings, _ = written(data)
    assert list(settings.sources) == list(settings.ingest) == list(found) == [name]
    assert settings.ingest[name].columns.text == name
    assert settings.ingest[name].paths == [str(data / name)]


def test_paths_are_relative_below_the_current_folder_and_absolute_elsewhere(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(data / "web" / "a.jsonl", rows_of(1))
    assert only(data)[1].paths == [str(data / "web")]
    monkeypatch.chdir(data.parent)
    assert only(data)[1].paths == ["data/web"]
    monkeypatch.chdir(data)
    assert only(data)[1].paths == ["web"]
    assert only(Path("..") / "data")[1].paths == ["web"]


def test_a_relative_path_is_not_taken_for_a_uri_a_home_or_a_table_s_name(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    assert [settings_path(path) for path in ("s3a:/x", "~me", "a/b", ".")] == ["./s3a:/x", "./~me", "a/b", "."]
    assert settings_path("events", table=True) == "./events"


@pytest.mark.parametrize(
    ("write", "names"),
    [
        (lambda data: write_bytes(data / "letter", b"Dear reader"), ["letter"]),
        (lambda data: [write_bytes(data / name, b"x") for name in ("a.md", "b.txt")], ["a.md", "b.txt"]),
        (lambda data: write_parquet(data / "a.parquet", {"text": [PROSE]}), ["a.parquet"]),
        (lambda data: write_lines(data / "a.jsonl", rows_of(1)), ["a.jsonl"]),
    ],
    ids=["no ending", "texts", "parquet", "lines"],
)
def test_the_settings_file_and_the_warehouse_are_not_taken_for_data(
    data: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], Any], names: list[str]
) -> None:
    """Neither now nor once they are there: the warehouse is full of Parquet files."""
    monkeypatch.chdir(data)
    write(data)
    first = write_settings(Path("."), Path("weir.yaml"), "./warehouse")
    text = Path("weir.yaml").read_bytes()
    deltalake.write_deltalake("warehouse/documents", pa.table({"text": [PROSE]}))
    entries = resolve(Settings, [read_yaml(Path("weir.yaml"))]).settings.ingest
    assert [name for entry in entries.values() for name in listed(entry)] == names
    assert write_settings(Path("."), Path("weir.yaml"), "./warehouse", force=True) == first
    assert Path("weir.yaml").read_bytes() == text


def test_the_same_folder_gives_the_same_bytes(data: Path) -> None:
    write_lines(data / "web" / "a.jsonl", [{"text": PROSE, "source": s, "id": s} for s in "fedcba"])
    write_parquet(data / "books" / "b.parquet", {"body": [PROSE], "lang": ["en"]})
    for at in range(30):
        write_bytes(data / "docs" / f"{at}.{'md' if at % 2 else 'rst'}", b"text")
    assert written(data)[2] == written(data)[2]
    assert written(data)[2] == settings_text(look(data), warehouse="w", folder=data, output=data.parent / "weir.yaml")


def test_the_pipeline_stands_in_the_file_and_its_last_line_says_what_comes_next(data: Path) -> None:
    write_lines(data / "web" / "a.jsonl", rows_of(1))
    output = data.parent / "my settings.yaml"
    write_settings(data, output, "s3a://bucket/w: x")
    settings = resolve(Settings, [read_yaml(output)]).settings
    assert settings.warehouse == "s3a://bucket/w: x"
    assert {name: entry.kind for name, entry in settings.annotate.items()} == {
        "tokens": "tokens", "statistics": "statistics", "exact_key": "exact_key",
    }  # fmt: skip
    assert "tokens: {tokenizer: cl100k_base}" in output.read_text()
    assert [step.kind for step in settings.decide] == ["eligibility", "exact_dedup"]
    assert settings.step("exact_dedup").normalisation == "norm_v1"
    assert settings.validate_.coverage.floor.documents == 1
    assert output.read_text().splitlines()[-1] == f"# Next: weir run '{output}'"


def test_the_examples_in_the_comments_load_once_they_are_uncommented(data: Path) -> None:
    write_lines(data / "a" / "a.jsonl", [{"id": at, "text": PROSE, "source": "x"} for at in range(3)])
    write_lines(data / "b" / "a.jsonl", [{"id": at, "text": PROSE} for at in range(3)])
    text = written(data)[2]
    example = re.compile(
        r"^(    |      |  )# (licence: |use: |(?<=      # )(?:doc_id|source): |- quality_filter:|    rules:|      - )"
    )
    lines = [example.sub(r"\1\2", line) for line in text.splitlines()]
    path = write_bytes(data.parent / "all.yaml", "\n".join(lines).encode())
    settings = resolve(Settings, [read_yaml(path)]).settings
    assert settings.sources["a"].licence == "CC-BY-4.0"
    assert (settings.ingest["a"].columns.source, settings.ingest["b"].columns.doc_id) == ("source", "id")
    assert [rule.name for rule in settings.step("quality_filter").rules] == ["too_short", "few_letters"]


def test_an_existing_file_is_kept_unless_it_is_forced(data: Path) -> None:
    write_lines(data / "web" / "a.jsonl", rows_of(1))
    output = write_bytes(data.parent / "weir.yaml", b"mine")
    with pytest.raises(SettingsError, match="exists already; --force overwrites it"):
        write_settings(data, output, "w")
    assert output.read_bytes() == b"mine"
    write_settings(data, output, "w", force=True)
    assert b"ingest:" in output.read_bytes()


def test_a_file_that_can_t_be_written_is_a_settings_error(data: Path) -> None:
    write_lines(data / "web" / "a.jsonl", rows_of(1))
    with pytest.raises(SettingsError, match="can't be written: No such file or directory"):
        write_settings(data, data.parent / "nowhere" / "weir.yaml", "w")
    with pytest.raises(SettingsError, match="can't be written: Is a directory"):
        write_settings(data, data, "w", force=True)
