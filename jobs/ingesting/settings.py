"""Where a source's files are, how they are read, and which field becomes which column."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from jobs.runtime.models import SettingsModel
from udfs.record_types import Mapped, RecordRules


class ColumnMapping(SettingsModel):
    """Which field of a record becomes which column; a dot leads into nested objects (``meta.url``)."""

    doc_id: str | None = Field(None, description="Field with the id; default: ids are made (see `ids`)")
    text: str = Field("text", description="Field with the text")
    source: str | None = Field(None, description="Field with the source's name; default: the name in the settings")
    url: str | None = Field(None, description="Field with the URL")
    language: str | None = Field(None, description="Field with the language as the supplier gave it")
    fetched_at: str | None = Field(
        None, description="Field with a time stamp: ISO 8601 (no offset: UTC) or epoch seconds"
    )
    origin: str | None = Field(None, description="Field that says human or generated")
    generator: str | None = Field(None, description="Field that names the generator")
    generation: str | None = Field(None, description="Field with the number of generations from human text")


class IngestSettings(SettingsModel):
    """Where one source's files are and how they are read."""

    paths: list[str] = Field(min_length=1, description="Files, folders (with all subfolders), globs or URIs")
    format: Literal["jsonl", "parquet", "delta", "text"] = Field(
        "jsonl", description="jsonl (also .gz .bz2 .zst), parquet, delta, or text (a file is a document)"
    )
    pattern: str | None = Field(None, description="File names to take from folders, for example *.md")
    columns: ColumnMapping = Field(default_factory=ColumnMapping, description="Which field becomes which column")
    types: dict[str, Literal["string", "integer", "number", "boolean", "timestamp"]] = Field(
        default_factory=dict, description="Types of further fields; a value that doesn't fit rejects the record"
    )
    source_pattern: str | None = Field(
        None, description="Regular expression over the file's path; its first group is the source, exactly as spelled"
    )
    ids: Literal["given", "content", "place"] | None = Field(
        None, description="given: columns.doc_id; content: from source, text and occurrence; place: from file and line"
    )
    duplicate_ids: Literal["error", "keep_latest"] = Field(
        "error", description="A given id twice: stop, or keep the latest fetched_at (then the smallest hash)"
    )
    batch: str | None = Field(None, description="Batch of what this run takes in; default: the setting `batch`")
    hidden_files: Literal["read", "error", "skip"] = Field(
        "read",
        description="Names that Spark can't read (_ or . first, colons, brackets): read all the same, stop, or skip",
    )
    encoding: str = Field("utf-8", description="Encoding of text and JSONL files")
    encoding_errors: Literal["reject", "replace"] = Field(
        "reject", description="Bytes that are not valid in it: reject the record, or replace them by U+FFFD and note it"
    )
    max_bytes: int = Field(
        100_000_000, ge=1, le=500_000_000, description="Longest text in bytes; longer ones are rejected"
    )
    raw_characters: int = Field(2000, ge=0, le=1_000_000, description="How much of a rejected record is stored")

    @model_validator(mode="after")
    def _check(self) -> IngestSettings:
        import re

        if self.ids == "given" and self.columns.doc_id is None:
            raise ValueError("ids: given needs columns.doc_id, the field that holds the id")
        if self.columns.doc_id is not None and self.ids in ("content", "place"):
            raise ValueError(
                f"ids: {self.ids} contradicts columns.doc_id: {self.columns.doc_id}; leave out one of them"
            )
        if self.duplicate_ids == "keep_latest" and self.identity == "content":
            raise ValueError("duplicate_ids: keep_latest needs given or place ids; content ids can't repeat")
        if self.format == "text" and (self.columns != ColumnMapping() or self.types):
            raise ValueError("format: text has no fields, so columns and types can't be set")
        if self.source_pattern is not None and self.columns.source is not None:
            raise ValueError("source_pattern and columns.source both give the source; leave out one of them")
        try:
            line_feed = "\n{".encode(self.encoding)
        except LookupError:  # unknown, or a codec that is none of text (hex, rot13, zlib)
            raise ValueError(f"encoding '{self.encoding}' is not known") from None
        if self.format == "jsonl" and line_feed != b"\n{":
            raise ValueError(
                f"encoding '{self.encoding}' can't be cut into lines, for a line feed is not one byte in it; "
                "convert the files to UTF-8"
            )
        if self.source_pattern is not None:
            try:
                re.compile(self.source_pattern)
            except re.error as error:
                raise ValueError(f"source_pattern is no regular expression: {error}") from None
        return self

    @property
    def identity(self) -> str:
        """How ids come about, with the default filled in."""
        return self.ids or ("given" if self.columns.doc_id is not None else "content")

    def rules(self, source: str) -> RecordRules:
        """How the kernel reads a record."""
        return RecordRules(
            source=source,
            mapped=Mapped(**self.columns.model_dump()),
            types=dict(self.types),
            max_bytes=self.max_bytes,
            encoding=self.encoding,
            replace_bad_bytes=self.encoding_errors == "replace",
            raw_characters=self.raw_characters,
        )
