"""Which files a source consists of: what is taken, what is named as hidden, what stops the run."""

from __future__ import annotations

import bz2
import codecs
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.ingesting import files as module
from jobs.ingesting.files import Listing, list_files
from jobs.ingesting.hidden import as_uri
from jobs.runtime.errors import NotPermitted, UnreadableInput

NO_SPARK: Any = None
"""Paths without a scheme are listed without a session."""

Fill = Callable[..., Path]


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Write files of one byte each (or as given) below a folder of the test's own."""

    def make(*names: str, content: bytes = b"x") -> Path:
        for name in names:
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return tmp_path / "data"

    return make


def listed(path: Path | str, file_format: str = "jsonl", pattern: str | None = None) -> Listing:
    return list_files(NO_SPARK, [str(path)], file_format, pattern)


def names(files: tuple[str, ...], root: Path) -> list[str]:
    return [os.path.relpath(file, root) for file in files]


# --- what is taken


def test_a_folder_is_read_with_its_subfolders_by_its_endings(fill: Fill) -> None:
    root = fill(
        "b.jsonl", "a.ndjson", "c.json", "deep/er/d.jsonl.gz", "e.jsonl.bz2", "f.JSONL.zst", "note.txt", "g.parquet"
    )
    found = listed(root)
    assert names(found.uris, root) == [
        "a.ndjson",
        "b.jsonl",
        "c.json",
        "deep/er/d.jsonl.gz",
        "e.jsonl.bz2",
        "f.JSONL.zst",
    ]
    assert (found.other, found.hidden, found.total_bytes) == (2, (), 6)


def test_each_format_has_its_endings_and_text_takes_all(fill: Fill) -> None:
    root = fill("a.parquet", "b.parq", "c.txt", "d")
    assert names(listed(root, "parquet").uris, root) == ["a.parquet", "b.parq"]
    assert names(listed(root, "text").uris, root) == ["a.parquet", "b.parq", "c.txt", "d"]


def test_a_pattern_replaces_the_endings(fill: Fill) -> None:
    root = fill("a.md", "b.MD", "deep/c.md", "d.jsonl")
    assert names(listed(root, "text", "*.md").uris, root) == ["a.md", "deep/c.md"]
    assert names(listed(root, "jsonl", "*").uris, root) == ["a.md", "b.MD", "d.jsonl", "deep/c.md"]


def test_globs(fill: Fill) -> None:
    root = fill("x1.jsonl", "x2.jsonl", "y1.jsonl", "deep/x3.jsonl", "deep/er/x4.jsonl")
    assert names(listed(root / "x*.jsonl").uris, root) == ["x1.jsonl", "x2.jsonl"]
    assert names(listed(root / "x[2-9].jsonl").uris, root) == ["x2.jsonl"]
    assert names(listed(root / "**" / "x*.jsonl").uris, root) == [
        "deep/er/x4.jsonl",
        "deep/x3.jsonl",
        "x1.jsonl",
        "x2.jsonl",
    ]
    assert names(listed(root / "d*").uris, root) == ["deep/er/x4.jsonl", "deep/x3.jsonl"]


def test_a_file_that_is_named_itself_is_taken_whatever_it_is_called(fill: Fill) -> None:
    root = fill("corpus.dump", "other.dump")
    assert names(listed(root / "corpus.dump").uris, root) == ["corpus.dump"]


def test_a_file_that_is_named_twice_is_read_once(fill: Fill) -> None:
    root = fill("a.jsonl", "b.jsonl")
    found = list_files(
        NO_SPARK, [str(root), str(root / "a.jsonl"), str(root / "*.jsonl"), f"file://{root}"], "jsonl", None
    )
    assert names(found.uris, root) == ["a.jsonl", "b.jsonl"]
    assert found.total_bytes == 2


def test_paths_may_be_relative_start_at_home_or_be_file_uris(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fill("a.jsonl")
    monkeypatch.chdir(root.parent)
    monkeypatch.setenv("HOME", str(root.parent))
    expected = (str(root / "a.jsonl"),)
    for path in ("data", "./data/", "data/../data", "~/data", f"file:{root}", f"file://{root}", "data/a.jsonl"):
        assert listed(path).uris == expected, path


def test_the_order_of_files_is_that_of_their_names(fill: Fill) -> None:
    root = fill("b/1.jsonl", "a/2.jsonl", "c.jsonl", "a/1.jsonl")
    assert names(listed(root).uris, root) == ["a/1.jsonl", "a/2.jsonl", "b/1.jsonl", "c.jsonl"]


# --- what Spark can't read by its name


def test_hidden_files_are_named_apart(fill: Fill) -> None:
    """Spark would skip them without a word."""
    root = fill("part-0001.jsonl", "_part-0002.jsonl", ".part-0003.jsonl", "_SUCCESS")
    found = listed(root)
    assert names(found.uris, root) == ["part-0001.jsonl"]
    assert names(found.hidden, root) == [".part-0003.jsonl", "_part-0002.jsonl"]
    assert found.total_bytes == 3


@pytest.mark.parametrize("name", ["a:b.jsonl", "a[1].jsonl", "a{b}.jsonl", "a*.jsonl", "a?.jsonl", "a\\b.jsonl"])
def test_names_that_spark_takes_for_something_else(fill: Fill, name: str) -> None:
    root = fill(name, "plain.jsonl")
    found = listed(root)
    assert names(found.uris, root) == ["plain.jsonl"]
    assert names(found.hidden, root) == [name]


def test_a_bracket_in_a_folder_s_name_counts_for_all_its_files(fill: Fill) -> None:
    root = fill("run[1]/a.jsonl", "a:b/c.jsonl")
    found = listed(root)
    assert names(found.hidden, root) == ["run[1]/a.jsonl"]
    assert names(found.uris, root) == ["a:b/c.jsonl"]


@pytest.mark.parametrize(
    "name",
    [
        "with space.jsonl",
        "größe.jsonl",
        "100%.jsonl",
        "a%20b.jsonl",
        "a#b.jsonl",
        "a+b&c=d.jsonl",
        "😀.jsonl",
        "a'b\".jsonl",
    ],
)
def test_odd_names_are_kept_as_they_are(fill: Fill, name: str) -> None:
    root = fill(name)
    assert names(listed(root).uris, root) == [name]


def test_a_local_path_as_a_uri() -> None:
    assert as_uri("/d/a b%20ü.txt") == "file:///d/a%20b%2520%C3%BC.txt"
    assert as_uri("file:/d/a.txt") == "file:///d/a.txt"
    assert as_uri("s3a://bucket/a b.txt") == "s3a://bucket/a b.txt"


def test_hidden_files_alone_are_something(fill: Fill) -> None:
    root = fill("_a.jsonl")
    assert listed(root).uris == ()
    assert names(listed(root).hidden, root) == ["_a.jsonl"]


def test_a_hidden_file_counts_by_its_name_without_the_mark(fill: Fill) -> None:
    root = fill("_a.md", ".b.md", "_c.txt")
    found = listed(root, "text", "[a-z]*.md")
    assert names(found.hidden, root) == [".b.md", "_a.md"]
    assert found.other == 1


BOOKKEEPING = ("_SUCCESS", "_committed_1", "_started_1", "_metadata", "_common_metadata", ".DS_Store", "Thumbs.db",
               ".a.jsonl.crc", ".gitignore", ".gitkeep", "_delta_log/00.json", "_temporary/0/a.jsonl", ".git/config",
               "sub/.ipynb_checkpoints/a.jsonl", "__pycache__/a.pyc")  # fmt: skip


def test_bookkeeping_is_no_data(fill: Fill) -> None:
    root = fill("a.jsonl", *BOOKKEEPING)
    for file_format in ("jsonl", "text"):
        found = listed(root, file_format)
        assert (names(found.uris, root), found.hidden, found.other) == (["a.jsonl"], (), 0)


def test_a_bookkeeping_name_above_the_given_folder_means_nothing(fill: Fill) -> None:
    root = fill("_temporary/mine/a.jsonl")
    assert len(listed(root / "_temporary" / "mine").uris) == 1


def test_modules_of_source_code_are_not_lost(fill: Fill) -> None:
    root = fill("p/__init__.py", "p/a.py", ".github/workflows/ci.yml")
    found = listed(root, "text")
    assert names(found.hidden, root) == ["p/__init__.py"]
    assert names(found.uris, root) == [".github/workflows/ci.yml", "p/a.py"]


# --- what must be seen again once all was read


def test_empty_text_files_are_documents_that_must_be_seen(fill: Fill) -> None:
    root = fill("full.txt")
    fill("empty.txt", "_empty.txt", content=b"")
    found = listed(root, "text")
    assert (names(found.uris, root), names(found.empty, root)) == (["full.txt"], ["empty.txt"])
    assert (found.must_be_seen("text", True), found.must_be_seen("text", False)) == (3, 2)


def test_a_jsonl_file_that_holds_nothing_need_not_be_seen(fill: Fill) -> None:
    """Nothing comes out of an empty file, of a byte order mark, or of an empty file that was compressed."""
    line = b'{"text": "a"}\n'
    root = fill("a.jsonl", "_b.jsonl", content=line)
    fill("c.jsonl.gz", content=gzip.compress(bytes(range(256)) * 2 + line))
    fill("d.jsonl", content=b"")
    fill("e.jsonl", content=codecs.BOM_UTF8)
    fill("f.jsonl.gz", content=gzip.compress(b""))
    fill("g.jsonl.bz2", content=bz2.compress(b""))
    found = listed(root)
    assert len(found.uris) == 6
    assert names(found.with_content, root) == ["_b.jsonl", "a.jsonl", "c.jsonl.gz"]
    assert (found.must_be_seen("jsonl", True), found.must_be_seen("jsonl", False)) == (3, 2)


# --- links and things that are no files


def test_links_are_followed_and_circles_end(fill: Fill) -> None:
    root = fill("a/x.jsonl", "b/y.jsonl")
    (root / "a" / "up").symlink_to(root, target_is_directory=True)
    (root / "z.jsonl").symlink_to(root / "a" / "x.jsonl")
    (root / "nowhere.jsonl").symlink_to(root / "gone.jsonl")
    os.mkfifo(root / "pipe.jsonl")
    assert names(listed(root).uris, root) == ["a/x.jsonl", "b/y.jsonl", "z.jsonl"]


def test_a_folder_that_two_links_lead_to_is_read_once(fill: Fill, tmp_path: Path) -> None:
    fill("real/x.jsonl")
    outside = tmp_path / "data" / "real"
    root = tmp_path / "links"
    root.mkdir()
    for name in ("one", "two"):
        (root / name).symlink_to(outside, target_is_directory=True)
    assert names(listed(root).uris, root) == ["one/x.jsonl"]


# --- what stops the run


def test_all_missing_paths_are_listed(fill: Fill, tmp_path: Path) -> None:
    root = fill("a.jsonl")
    paths = [str(root), str(tmp_path / "no"), str(tmp_path / "no*.jsonl")]
    with pytest.raises(UnreadableInput) as caught:
        list_files(NO_SPARK, paths, "jsonl", None)
    assert caught.value.exit_code == 4
    assert caught.value.differences == paths[1:]
    assert f"Relative paths start from the current folder, {Path.cwd()}" in str(caught.value)


def test_nothing_of_the_format(fill: Fill) -> None:
    root = fill("a.csv", "b.csv")
    with pytest.raises(UnreadableInput, match=r"looks like jsonl \(\.jsonl, .*\); 2 other file\(s\) are there"):
        listed(root)
    with pytest.raises(UnreadableInput, match=r"looks like text \(\*\.md\)"):
        listed(root, "text", "*.md")
    (root / "none").mkdir()
    with pytest.raises(UnreadableInput, match=r"looks like text \(any file\); 0 other"):
        listed(root / "none", "text")


def test_files_that_may_not_be_read_are_listed(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """By asking the system: the tests may run as a user who may read everything."""
    root = fill("a.jsonl", "b.jsonl", "c.jsonl")
    monkeypatch.setattr(module.os, "access", lambda path, mode: not str(path).endswith(("a.jsonl", "c.jsonl")))
    with pytest.raises(NotPermitted) as caught:
        listed(root)
    assert caught.value.exit_code == 4
    assert caught.value.differences == [str(root / "a.jsonl"), str(root / "c.jsonl")]
    assert str(caught.value).startswith("2 file(s) or folder(s) may not be read:")


def test_folders_that_may_not_be_read_are_listed(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """os.walk passes over them without a word."""
    root = fill("open/a.jsonl", "locked/b.jsonl")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(NotPermitted) as caught:
        listed(root)
    assert caught.value.differences == [str(root / "locked")]


def test_what_is_compressed_with_capitals_in_its_ending_is_read_by_the_workers(fill: Fill) -> None:
    """Spark tells compression by the ending as it is spelled, and would take the packed bytes for lines."""
    root = fill("a.JSONL.GZ", "b.jsonl.Zst", "c.JSONL.gz", "d.JSONL")
    found = listed(root)
    assert names(found.hidden, root) == ["a.JSONL.GZ", "b.jsonl.Zst"]
    assert names(found.uris, root) == ["c.JSONL.gz", "d.JSONL"]
