"""Raw records to document fields: JSON lines, whole files, and rows that already have columns.

Everything that can be wrong with a record gets a reason of its own, and a wrong record is given back whole; a record
is never half-read. Works on plain Python bytes and strings; ``udfs.record_batches`` wraps it for Arrow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from udfs.record_parsing import BYTE_ORDER_MARK, bad_byte, decode_content, has_nul_bytes, parse_line
from udfs.record_text import kind_of, valid_text
from udfs.record_types import BadRecord, Document, RecordRules, Reject
from udfs.record_values import (
    attributes_of,
    id_of,
    presence_of,
    shown_value,
    source_of,
    string_or_none,
    take_field,
    timestamp_of,
    whole_or_none,
)


def read_json_line(line: bytes, rules: RecordRules) -> Document | Reject | None:
    """One line of a JSONL file, without its line feed; None for a blank line.

    The fast parser reads what is strictly JSON. What it refuses, and where it would lose something (a key given twice,
    a whole number beyond 64 bits), is read again by the standard library's parser, which is slower and exact.
    """
    line = line.removeprefix(BYTE_ORDER_MARK)
    if not line or line.isspace():
        return None
    notes: list[str] = []
    try:
        return document_of(parse_line(line, rules, notes), rules, notes)
    except BadRecord as bad:
        return Reject(bad.reason, bad.detail, rules.source)


def document_of(record: Mapping[str, Any], rules: RecordRules, notes: Iterable[str] = ()) -> Document | Reject:
    """A record's fields as a document, or the reason why not.

    Args:
        record: Values by name; as JSON knows them (str, int, float, bool, None, list, dict), and from tables also
            bytes and datetime.
        rules: How to read them.
        notes: What was repaired before.
    """
    mapped = rules.mapped
    doc_id: str | None = None
    source = rules.source
    try:
        used: set[tuple[str, ...]] = set()
        notes = list(notes)
        if mapped.source is not None:
            source = source_of(take_field(record, mapped.source, used))
        if mapped.doc_id is not None:
            doc_id = id_of(take_field(record, mapped.doc_id, used), mapped.doc_id)
        value = take_field(record, mapped.text, used)
        if value is None:
            raise BadRecord("text_missing", f"field '{mapped.text}' is {presence_of(record, mapped.text)}")
        if isinstance(value, bytes):
            value = decode_content(value, rules, notes)
        if not isinstance(value, str):
            raise BadRecord("text_not_string", f"field '{mapped.text}' is {kind_of(value)}: {shown_value(value)}")
        text, encoded = valid_text(value, notes)
        if len(encoded) > rules.max_bytes:
            raise BadRecord(
                "text_too_long", f"{len(encoded):,} bytes; the limit is {rules.max_bytes:,} (setting max_bytes)"
            )
        document = Document(text, encoded, source, doc_id, notes=notes)
        for name in ("url", "language", "origin", "generator"):
            path = getattr(mapped, name)
            if path is not None:
                setattr(document, name, string_or_none(take_field(record, path, used), notes))
        if mapped.generation is not None:
            document.generation = whole_or_none(take_field(record, mapped.generation, used), mapped.generation)
        if mapped.fetched_at is not None:
            document.fetched_at = timestamp_of(take_field(record, mapped.fetched_at, used), notes)
        document.attributes = attributes_of(record, used, rules.types, notes)
        return document
    except BadRecord as bad:
        return Reject(bad.reason, bad.detail, source, doc_id)


def document_of_file(content: bytes, rules: RecordRules) -> Document | Reject:
    """A whole file as one document: decoded, a byte order mark removed, otherwise unchanged."""
    notes: list[str] = []
    if len(content) > rules.max_bytes:
        return Reject(
            "text_too_long",
            f"{len(content):,} bytes; the limit is {rules.max_bytes:,} (setting max_bytes)",
            rules.source,
        )
    if b"\x00" in content[:8192] and not has_nul_bytes(rules.encoding):
        return Reject("binary_file", f"a NUL byte at position {content.index(0)}", rules.source)
    try:
        text = content.decode(rules.encoding)
    except UnicodeDecodeError as error:
        if not rules.replace_bad_bytes:
            return Reject("bad_encoding", bad_byte(error, rules), rules.source)
        text = content.decode(rules.encoding, errors="replace")
        notes.append("bad_encoding")
    text, encoded = valid_text(text.removeprefix("\ufeff"), notes)
    return Document(text, encoded, rules.source, notes=notes)


def raw_of(line: bytes, rules: RecordRules) -> tuple[str, bytes]:
    """A rejected record as it is stored: its beginning as text, and the SHA-256 of all of it."""
    beginning = line[: 4 * rules.raw_characters].decode("utf-8", errors="backslashreplace")
    return beginning[: rules.raw_characters], hashlib.sha256(line).digest()
