"""What a record becomes, a document or a reject, and the rules by which it is read."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from udfs.record_text import valid_text

REASONS = {
    "bad_json": "the line is not JSON",
    "not_an_object": "the line is JSON, but not an object",
    "several_records_on_line": "more than one JSON value stands on the line",
    "duplicate_key": "a key is given twice in the object, so one value would be lost",
    "bad_encoding": "the bytes are not valid in the stated encoding",
    "binary_file": "the file holds NUL bytes: it is no text",
    "text_missing": "there is no text",
    "text_not_string": "the text is not a string",
    "text_too_long": "the text is longer than the limit",
    "id_missing": "there is no id",
    "bad_id": "the id is neither a whole number nor a string of whole characters",
    "source_missing": "there is no source",
    "bad_type": "a field can't be read as the type that the settings give it",
    "duplicate_id": "the id was given before in the same delivery",
}
"""Reasons for rejecting a record, with their meaning."""

NOTES = {
    "bad_unicode": "a lone surrogate was replaced by U+FFFD",
    "bad_encoding": "bytes that are not valid in the stated encoding were replaced by U+FFFD",
    "bad_timestamp": "the time stamp could not be read and is NULL",
}
"""What may be repaired in a document, with its meaning."""


@dataclass(frozen=True)
class Mapped:
    """Which field of a record becomes which column. A dot leads into nested objects; None means there is none."""

    text: str = "text"
    doc_id: str | None = None
    source: str | None = None
    url: str | None = None
    language: str | None = None
    fetched_at: str | None = None
    origin: str | None = None
    generator: str | None = None
    generation: str | None = None


@dataclass(frozen=True)
class RecordRules:
    """How records of one source are read."""

    source: str
    mapped: Mapped = field(default_factory=Mapped)
    types: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 100_000_000
    encoding: str = "utf-8"
    replace_bad_bytes: bool = False
    raw_characters: int = 2000


@dataclass
class Document:
    """A record that became a document."""

    text: str
    encoded: bytes
    source: str
    doc_id: str | None = None
    url: str | None = None
    language: str | None = None
    fetched_at: datetime.datetime | None = None
    origin: str | None = None
    generator: str | None = None
    generation: int | None = None
    attributes: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reject:
    """A record that could not become a document."""

    reason: str
    detail: str
    source: str
    doc_id: str | None = None


class BadRecord(Exception):
    """Raised inside this module; carries the reason and the detail."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, valid_text(detail, [])[0]
