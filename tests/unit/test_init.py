"""weir init: what it finds in a folder, and that its file loads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.runtime.errors import SettingsError, UnreadableInput
from jobs.runtime.init import write_settings
from jobs.runtime.layers import read_yaml, resolve
from jobs.settings import Settings


def lines(path: Path, rows: list[dict[str, object]], broken: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(r) + "\n" for r in rows) + ('{"id": "x", "te' if broken else "")
    path.write_bytes(gzip.compress(data.encode()) if path.name.endswith(".gz") else data.encode())


def settings_of(folder: Path, tmp_path: Path) -> Settings:
    output = tmp_path / "weir.yaml"
    write_settings(folder, output, str(tmp_path / "warehouse"), force=True)
    return resolve(Settings, [read_yaml(output)]).settings


def test_each_subfolder_is_a_source_with_its_format_and_columns(tmp_path: Path) -> None:
    data = tmp_path / "data"
    lines(
        data / "web" / "a.jsonl.gz",
        [{"id": i, "content": "long text " * 9, "url": "http://x", "lang": "en"} for i in range(9)],
        True,
    )
    (data / "007").mkdir()
    pq.write_table(pa.table({"body": ["some words"] * 3, "uuid": ["a", "a", "b"]}), data / "007" / "p.parquet")
    (data / "docs").mkdir()
    (data / "docs" / "readme.md").write_text("# hello")
    found = settings_of(data, tmp_path).ingest
    assert {k: v.format for k, v in found.items()} == {"web": "jsonl", "007": "parquet", "docs": "text"}
    assert found["web"].columns.model_dump(exclude_none=True) == {
        "doc_id": "id",
        "text": "content",
        "url": "url",
        "language": "lang",
    }
    assert found["007"].columns.model_dump(exclude_none=True) == {"text": "body"}  # uuid is not unique
    assert found["docs"].pattern == "*.md"


def test_hive_folders_are_one_source_entry_with_a_pattern(tmp_path: Path) -> None:
    lines(tmp_path / "data" / "source=007" / "a.jsonl", [{"text": "x"}])
    lines(tmp_path / "data" / "source=7" / "a.jsonl", [{"text": "x"}])
    (entry,) = settings_of(tmp_path / "data", tmp_path).ingest.values()
    assert entry.source_pattern == "source=([^/]+)"


def test_a_nested_text_and_time_stamps_are_found(tmp_path: Path) -> None:
    rows = [{"meta": {"date": "x"}, "data": {"text": "words " * 20}, "timestamp": "2024-01-01T00:00:00Z"}] * 3
    lines(tmp_path / "data" / "s" / "a.ndjson", rows)
    columns = settings_of(tmp_path / "data", tmp_path).ingest["s"].columns
    assert (columns.text, columns.fetched_at, columns.doc_id) == ("data.text", "timestamp", None)


def test_a_json_array_is_not_taken_for_json_lines(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "all.json").write_text('[{"text": "a"},\n {"text": "b"}]')
    with pytest.raises(UnreadableInput):
        write_settings(tmp_path / "data", tmp_path / "w.yaml", "w")


def test_nothing_readable_and_an_existing_file_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").write_bytes(b"\0")
    with pytest.raises(UnreadableInput, match=r"1 x \.bin"):
        write_settings(tmp_path / "data", tmp_path / "w.yaml", "w")
    (tmp_path / "w.yaml").write_text("")
    with pytest.raises(SettingsError, match="--force"):
        write_settings(tmp_path / "data", tmp_path / "w.yaml", "w")
    with pytest.raises(UnreadableInput, match="not a folder"):
        write_settings(tmp_path / "nowhere", tmp_path / "v.yaml", "w")


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    lines(tmp_path / "data" / "a: b" / "x.jsonl", [{"text": "x", "id": "1"}])
    first, second = tmp_path / "1.yaml", tmp_path / "2.yaml"
    write_settings(tmp_path / "data", first, "w")
    write_settings(tmp_path / "data", second, "w")
    assert first.read_text().replace("1.yaml", "") == second.read_text().replace("2.yaml", "")
    assert list(resolve(Settings, [read_yaml(first)]).settings.ingest) == ["a: b"]
