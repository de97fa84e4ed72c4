"""Raw records to document fields: JSON lines, whole files, and rows that already have columns.

Everything that can be wrong with a record gets a reason of its own, and a wrong record is given back whole; a record
is never half-read. Works on plain Python bytes and strings; ``udfs.ingest_batches`` wraps it for Arrow.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

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
    "bad_id": "the id is neither a string nor a whole number",
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

EARLIEST, LATEST = (
    datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC),
)
"""Time stamps outside are noted as bad: file formats disagree about calendars before 1900, and nothing was fetched then."""


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
    needs_id: bool = False
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
        self.reason, self.detail = reason, detail


def read_json_line(line: bytes, rules: RecordRules) -> Document | Reject | None:
    """One line of a JSONL file, without its line feed; None for a blank line.

    The fast parser reads what is strictly JSON. What it refuses, and where it would lose something (a key given twice,
    a whole number beyond 64 bits), is read again by the standard library's parser, which is slower and exact.
    """
    if not line or line.isspace():
        return None
    try:
        return document_of(_parse(line, rules), rules)
    except BadRecord as bad:
        return Reject(bad.reason, bad.detail, rules.source)


def document_of(record: Mapping[str, Any], rules: RecordRules) -> Document | Reject:
    """A record's fields as a document, or the reason why not.

    Args:
        record: Values by name; as JSON knows them (str, int, float, bool, None, list, dict).
        rules: How to read them.
    """
    mapped = rules.mapped
    doc_id: str | None = None
    source = rules.source
    try:
        used: set[str] = set()
        notes: list[str] = []
        if mapped.source is not None:
            source = _source_of(_take(record, mapped.source, used))
        if mapped.doc_id is not None:
            doc_id = _id_of(_take(record, mapped.doc_id, used), mapped.doc_id)
        value = _take(record, mapped.text, used)
        if value is None:
            raise BadRecord("text_missing", f"field '{mapped.text}' is {_presence(record, mapped.text)}")
        if not isinstance(value, str):
            raise BadRecord("text_not_string", f"field '{mapped.text}' is {_kind(value)}: {_cut(json.dumps(value))}")
        text, encoded = _valid_text(value, notes)
        if len(encoded) > rules.max_bytes:
            raise BadRecord(
                "text_too_long", f"{len(encoded):,} bytes; the limit is {rules.max_bytes:,} (setting max_bytes)"
            )
        document = Document(text, encoded, source, doc_id, notes=notes)
        for name in ("url", "language", "origin", "generator"):
            path = getattr(mapped, name)
            if path is not None:
                setattr(document, name, _string_or_none(_take(record, path, used)))
        if mapped.generation is not None:
            document.generation = _whole_or_none(_take(record, mapped.generation, used), mapped.generation)
        if mapped.fetched_at is not None:
            document.fetched_at = _timestamp(_take(record, mapped.fetched_at, used), notes)
        document.attributes = _attributes(record, used, rules.types)
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
    if b"\x00" in content[:8192] and not rules.encoding.lower().replace("-", "").startswith(("utf16", "utf32")):
        return Reject("binary_file", f"a NUL byte at position {content.index(0)}", rules.source)
    try:
        text = content.decode(rules.encoding)
    except UnicodeDecodeError as error:
        if not rules.replace_bad_bytes:
            return Reject("bad_encoding", _where(error, rules), rules.source)
        text = content.decode(rules.encoding, errors="replace")
        notes.append("bad_encoding")
    text, encoded = _valid_text(text.removeprefix("\ufeff"), notes)
    return Document(text, encoded, rules.source, notes=notes)


def raw_of(line: bytes, rules: RecordRules) -> tuple[str, bytes]:
    """A rejected record as it is stored: its beginning as text, and the SHA-256 of all of it."""
    beginning = line[: 4 * rules.raw_characters].decode("utf-8", errors="backslashreplace")
    return beginning[: rules.raw_characters], hashlib.sha256(line).digest()


def parse_timestamp(value: Any) -> datetime.datetime | None:
    """ISO 8601 (no offset: UTC; a date alone: midnight) or epoch seconds as a number; None for anything else.

    A string of digits is no time stamp: nothing says whether it counts seconds or milliseconds, or is a date.
    """
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, (int, float)):
            stamp = datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
        elif isinstance(value, datetime.datetime):
            stamp = value
        elif isinstance(value, str) and not value.strip().isdigit():
            stamp = datetime.datetime.fromisoformat(value.strip())
        else:
            return None
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=datetime.UTC)
        stamp = stamp.astimezone(datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return stamp if EARLIEST <= stamp < LATEST else None


def _parse(line: bytes, rules: RecordRules) -> Mapping[str, Any]:
    if line.startswith(b"\xef\xbb\xbf"):
        line = line[3:]
    if rules.encoding.lower() not in ("utf-8", "utf8"):
        line = _decode(line, rules).encode("utf-8", errors="surrogatepass")
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = _parse_exactly(line, rules)
    else:
        if isinstance(record, dict) and (_repeats_a_key(line, record) or any(map(_may_be_inexact, record.values()))):
            record = _parse_exactly(line, rules)
    if not isinstance(record, dict):
        raise BadRecord("not_an_object", f"the line holds {_kind(record)}")
    return record


def _parse_exactly(line: bytes, rules: RecordRules) -> Any:
    text = _decode(line, rules)
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        record, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise BadRecord("bad_json", f"{error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise BadRecord("bad_json", "nested too deeply") from None
    rest = text[end:].strip(" \t\r\n")
    if rest:
        try:
            decoder.raw_decode(rest)
        except (json.JSONDecodeError, BadRecord, RecursionError):
            raise BadRecord("bad_json", f"something follows the JSON value, at character {end + 1}") from None
        raise BadRecord("several_records_on_line", f"another JSON value begins after character {end}")
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRecord("duplicate_key", f"key '{_cut(twice)}' is given twice")
    return record


def _decode(line: bytes, rules: RecordRules) -> str:
    try:
        return line.decode(rules.encoding)
    except UnicodeDecodeError as error:
        if rules.replace_bad_bytes:
            return line.decode(rules.encoding, errors="replace")
        raise BadRecord("bad_encoding", _where(error, rules)) from None


def _where(error: UnicodeDecodeError, rules: RecordRules) -> str:
    return f"byte 0x{error.object[error.start]:02x} at position {error.start} is not valid {rules.encoding}"


def _repeats_a_key(line: bytes, record: dict[str, Any]) -> bool:
    """Whether a key may stand twice: ``"name"`` is found more often than once, or keys are written with escapes.

    A quoted name within a string has backslashes before its quotes and is not found; one in a nested object is, and
    then the exact parser decides.
    """
    return any(line.count(b'"' + name.encode("utf-8", "surrogatepass") + b'"') != 1 for name in record)


def _may_be_inexact(value: Any) -> bool:
    """Whole numbers beyond 64 bits came out as floats, and lost digits."""
    if isinstance(value, float):
        return abs(value) >= 2**53
    if isinstance(value, dict):
        return any(map(_may_be_inexact, value.values()))
    return isinstance(value, list) and any(map(_may_be_inexact, value))


def _take(record: Mapping[str, Any], path: str, used: set[str]) -> Any:
    """The value at a name, or at a dotted path into nested objects (a name that itself has dots wins)."""
    if path in record:
        used.add(path)
        return record[path]
    value: Any = record
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _presence(record: Mapping[str, Any], path: str) -> str:
    return "null" if path in record else f"not there; the record has {_cut(', '.join(sorted(record)))}"


def _id_of(value: Any, name: str) -> str:
    if value is None or value == "":
        raise BadRecord("id_missing", f"field '{name}' is {'empty' if value == '' else 'null or not there'}")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadRecord("bad_id", f"field '{name}' is {_kind(value)}: {_cut(json.dumps(value))}")
    return _valid_text(str(value), [])[0]


def _source_of(value: Any) -> str:
    if value is None or value == "" or isinstance(value, (dict, list)):
        raise BadRecord("source_missing", f"the field for the source is {_kind(value)}")
    return _valid_text(value if isinstance(value, str) else json.dumps(value), [])[0]


def _valid_text(text: str, notes: list[str]) -> tuple[str, bytes]:
    """The text and its UTF-8 bytes; lone halves of a surrogate pair become U+FFFD, and that is noted."""
    try:
        return text, text.encode("utf-8")
    except UnicodeEncodeError:
        # Through UTF-16 a high and a low half that stand side by side become the one character that was meant.
        repaired = text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
        notes.append("bad_unicode")
        return repaired, repaired.encode("utf-8")


def _string_or_none(value: Any) -> str | None:
    if value is None:
        return None
    return _valid_text(value if isinstance(value, str) else _json(value), [])[0]


def _whole_or_none(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise BadRecord(
            "bad_type", f"field '{name}' should be a whole number, is {_kind(value)}: {_cut(json.dumps(value))}"
        )
    return value


def _timestamp(value: Any, notes: list[str]) -> datetime.datetime | None:
    if value is None:
        return None
    stamp = parse_timestamp(value)
    if stamp is None:
        notes.append("bad_timestamp")
    return stamp


def _attributes(record: Mapping[str, Any], used: set[str], types: Mapping[str, str]) -> list[tuple[str, str]]:
    rows = []
    for name, value in record.items():
        if name in used or value is None:
            continue
        text = (
            _typed(name, value, types[name]) if name in types else (value if isinstance(value, str) else _json(value))
        )
        rows.append((_valid_text(name, [])[0], _valid_text(text, [])[0]))
    return rows


def _typed(name: str, value: Any, wanted: str) -> str:
    """The value in the one spelling of its type, or ``bad_type``."""
    text = value.strip() if isinstance(value, str) else value
    try:
        if wanted == "integer":
            if isinstance(text, bool) or (isinstance(text, float) and not text.is_integer()):
                raise ValueError
            return str(int(text))
        if wanted == "number":
            if isinstance(text, bool) or not math.isfinite(float(text)):
                raise ValueError
            return repr(float(text)) if not isinstance(text, int) else str(text)
        if wanted == "boolean":
            if text in (True, False) and isinstance(text, bool):
                return "true" if text else "false"
            if text in ("true", "false"):
                return str(text)
            raise ValueError
        if wanted == "timestamp":
            stamp = parse_timestamp(text)
            if stamp is None:
                raise ValueError
            return stamp.isoformat()
        if not isinstance(value, str):
            raise ValueError
        return value
    except (ValueError, TypeError, OverflowError):
        shown = _cut(json.dumps(value, default=str))
        raise BadRecord("bad_type", f"field '{name}' should be {wanted}, is {_kind(value)}: {shown}") from None


def _json(value: Any) -> str:
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"a {type(value).__name__}")


def _cut(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
