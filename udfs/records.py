"""Raw records to document fields: JSON lines, whole files, and rows that already have columns.

Everything that can be wrong with a record gets a reason of its own, and a wrong record is given back whole; a record
is never half-read. Works on plain Python bytes and strings; ``udfs.record_batches`` wraps it for Arrow.
"""

from __future__ import annotations

import base64
import codecs
import datetime
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
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

EARLIEST, LATEST = (
    datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC),
)
"""Time stamps outside are noted as bad: file formats disagree about calendars before 1900, and nothing was fetched then."""

NESTING = 200
"""How deeply objects and arrays of a record may be nested: one limit, far below where Python's own stack would end."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEY_END = re.compile(rb'(?<!\\)"[ \t\r\n]*:')
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
        self.reason, self.detail = reason, _valid_text(detail, [])[0]


def read_json_line(line: bytes, rules: RecordRules) -> Document | Reject | None:
    """One line of a JSONL file, without its line feed; None for a blank line.

    The fast parser reads what is strictly JSON. What it refuses, and where it would lose something (a key given twice,
    a whole number beyond 64 bits), is read again by the standard library's parser, which is slower and exact.
    """
    line = line.removeprefix(_BYTE_ORDER_MARK)
    if not line or line.isspace():
        return None
    notes: list[str] = []
    try:
        return document_of(_parse(line, rules, notes), rules, notes)
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
            source = _source_of(_take(record, mapped.source, used))
        if mapped.doc_id is not None:
            doc_id = _id_of(_take(record, mapped.doc_id, used), mapped.doc_id)
        value = _take(record, mapped.text, used)
        if value is None:
            raise BadRecord("text_missing", f"field '{mapped.text}' is {_presence(record, mapped.text)}")
        if isinstance(value, bytes):
            value = _decode(value, rules, notes)
        if not isinstance(value, str):
            raise BadRecord("text_not_string", f"field '{mapped.text}' is {_kind(value)}: {_shown(value)}")
        text, encoded = _valid_text(value, notes)
        if len(encoded) > rules.max_bytes:
            raise BadRecord(
                "text_too_long", f"{len(encoded):,} bytes; the limit is {rules.max_bytes:,} (setting max_bytes)"
            )
        document = Document(text, encoded, source, doc_id, notes=notes)
        for name in ("url", "language", "origin", "generator"):
            path = getattr(mapped, name)
            if path is not None:
                setattr(document, name, _string_or_none(_take(record, path, used), notes))
        if mapped.generation is not None:
            document.generation = _whole_or_none(_take(record, mapped.generation, used), mapped.generation)
        if mapped.fetched_at is not None:
            document.fetched_at = _timestamp(_take(record, mapped.fetched_at, used), notes)
        document.attributes = _attributes(record, used, rules.types, notes)
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
    if b"\x00" in content[:8192] and not _has_nul_bytes(rules.encoding):
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


def _parse(line: bytes, rules: RecordRules, notes: list[str]) -> Mapping[str, Any]:
    text: str | None = None
    if rules.encoding.lower() not in ("utf-8", "utf8"):
        text = _decode(line, rules, notes).removeprefix("\ufeff")
        line = text.encode("utf-8", errors="surrogatepass")
    try:
        record = orjson.loads(line)
        exact = _is_exact(record, line)
    except orjson.JSONDecodeError:
        exact = False
    if not exact:
        record = _parse_exactly(_decode(line, rules, notes) if text is None else text)
    if not isinstance(record, dict):
        raise BadRecord("not_an_object", f"the line holds {_kind(record)}")
    return record


def _parse_exactly(text: str) -> Any:
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite)
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        record, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise BadRecord("bad_json", f"{error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise BadRecord("bad_json", "nested too deeply") from None
    except ValueError:  # Python refuses to read thousands of digits as one number
        raise BadRecord("bad_json", "a number has too many digits") from None
    rest = text[end:].strip(" \t\r\n")
    if rest:
        try:
            decoder.raw_decode(rest)
        except (ValueError, BadRecord, RecursionError):
            raise BadRecord("bad_json", f"something follows the JSON value, at character {end + 1}") from None
        raise BadRecord("several_records_on_line", f"another JSON value begins after character {end}")
    _survey(record)
    return record


def _is_exact(record: Any, line: bytes) -> bool:
    """Whether the fast parser has lost nothing: no key that was given twice, no digit of a whole number."""
    keys, doubtful = _survey(record)
    return not doubtful and keys == _keys_written(line)


def _keys_written(line: bytes) -> int:
    """The number of keys in a line of valid JSON, of keys that don't end in a backslash.

    Only a key's closing quote has a colon after it; a quote within a string has a backslash before it.
    """
    if b" :" in line or b"\t:" in line or b"\r:" in line:
        return len(_KEY_END.findall(line))
    return line.count(b'":') - line.count(b'\\":')


def _survey(record: Any) -> tuple[int, bool]:
    """The number of keys at all depths, and whether a value or a key makes the exact parser necessary.

    These are whole numbers beyond 64 bits, which the fast parser turns into floats, and keys that end in a backslash,
    which ``_keys_written`` can't count.
    """
    keys, doubtful = 0, False
    level = [record]
    for _ in range(NESTING):
        inner: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                keys += len(container)
                doubtful = doubtful or any(name.endswith("\\") for name in container)
                values: Iterable[Any] = container.values()
            elif isinstance(container, list):
                values = container
            else:
                continue
            for value in values:
                if isinstance(value, float):
                    doubtful = doubtful or abs(value) >= 2**53
                elif isinstance(value, (dict, list)):
                    inner.append(value)
        if not inner:
            return keys, doubtful
        level = inner
    raise BadRecord("bad_json", f"nested too deeply: more than {NESTING} levels")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise BadRecord("bad_json", f"the number {_cut(digits)} is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRecord("duplicate_key", f"key '{_cut(twice)}' is given twice")
    return record


def _decode(content: bytes, rules: RecordRules, notes: list[str]) -> str:
    try:
        return content.decode(rules.encoding)
    except UnicodeDecodeError as error:
        if not rules.replace_bad_bytes:
            raise BadRecord("bad_encoding", _where(error, rules)) from None
        _note("bad_encoding", notes)
        return content.decode(rules.encoding, errors="replace")


def _note(note: str, notes: list[str]) -> None:
    if note not in notes:  # a document is counted once under each note
        notes.append(note)


def _has_nul_bytes(encoding: str) -> bool:
    """Whether ordinary text has NUL bytes in an encoding, by whichever of its names it is called."""
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _where(error: UnicodeDecodeError, rules: RecordRules) -> str:
    return f"byte 0x{error.object[error.start]:02x} at position {error.start} is not valid {rules.encoding}"


def _take(record: Mapping[str, Any], path: str, used: set[tuple[str, ...]]) -> Any:
    """The value at a name, or at a dotted path into nested objects (a name that itself has dots wins)."""
    if path in record:
        used.add((path,))
        return record[path]
    value: Any = record
    parts = tuple(path.split("."))
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    used.add(parts)
    return value


def _presence(record: Mapping[str, Any], path: str) -> str:
    if path in record:
        return "null"
    if path.split(".")[0] in record:
        return "null or not there"
    return f"not there; the record has {_cut(', '.join(sorted(record)))}"


def _id_of(value: Any, name: str) -> str:
    if value is None or value == "":
        raise BadRecord("id_missing", f"field '{name}' is {'empty' if value == '' else 'null or not there'}")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadRecord("bad_id", f"field '{name}' is {_kind(value)}: {_shown(value)}")
    found: list[str] = []
    text = _valid_text(str(value), found)[0]
    if found:  # repaired, two ids could become one
        raise BadRecord("bad_id", f"field '{name}' holds half of a surrogate pair: {_shown(value)}")
    return text


def _source_of(value: Any) -> str:
    if value is None or value == "" or isinstance(value, (dict, list, bytes)):
        raise BadRecord("source_missing", f"the field for the source is {'empty' if value == '' else _kind(value)}")
    return _valid_text(value if isinstance(value, str) else _json(value), [])[0]


def _valid_text(text: str, notes: list[str]) -> tuple[str, bytes]:
    """The text and its UTF-8 bytes; lone halves of a surrogate pair become U+FFFD, and that is noted."""
    try:
        return text, text.encode("utf-8")
    except UnicodeEncodeError:
        # Through UTF-16 a high and a low half that stand side by side become the one character that was meant.
        repaired = text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
        _note("bad_unicode", notes)
        return repaired, repaired.encode("utf-8")


def _string_or_none(value: Any, notes: list[str]) -> str | None:
    if value is None:
        return None
    return _valid_text(value if isinstance(value, str) else _json(value), notes)[0]


def _whole_or_none(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise BadRecord("bad_type", f"field '{name}' should be a whole number, is {_kind(value)}: {_shown(value)}")
    return value


def _timestamp(value: Any, notes: list[str]) -> datetime.datetime | None:
    if value is None:
        return None
    stamp = parse_timestamp(value)
    if stamp is None:
        _note("bad_timestamp", notes)
    return stamp


def _attributes(
    record: Mapping[str, Any], used: set[tuple[str, ...]], types: Mapping[str, str], notes: list[str]
) -> list[tuple[str, str]]:
    rows: dict[str, str] = {}
    for name, given in record.items():
        inside = [path[1:] for path in used if len(path) > 1 and path[0] == name]
        value = _without(given, inside) if inside else given
        if (name,) in used or value is None:
            continue
        text = (
            _typed(name, value, types[name]) if name in types else (value if isinstance(value, str) else _json(value))
        )
        valid = _valid_text(name, notes)[0]
        if valid in rows:
            raise BadRecord("duplicate_key", f"key '{_cut(valid)}' stands twice once lone surrogates are replaced")
        rows[valid] = _valid_text(text, notes)[0]
    return list(rows.items())


def _without(value: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any] | None:
    """A nested object without what became columns, so that no text is stored twice; None if nothing remains."""
    rest = dict(value)
    for first, *further in paths:
        inner = _without(rest[first], [tuple(further)]) if further else None
        if inner is None:
            rest.pop(first, None)
        else:
            rest[first] = inner
    return rest or None


def _typed(name: str, value: Any, wanted: str) -> str:
    """The value in the one spelling of its type, or ``bad_type``."""
    text = value.strip() if isinstance(value, str) else value
    try:
        if wanted in ("integer", "number"):
            return _number(text, whole=wanted == "integer")
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
        raise BadRecord("bad_type", f"field '{name}' should be {wanted}, is {_kind(value)}: {_shown(value)}") from None


def _number(value: Any, whole: bool) -> str:
    """15, 15.0 and "15" are all ``15``; ``ValueError`` for what is no number, or no whole one."""
    if isinstance(value, str):
        # By pattern, for Python would also read 1_000 and the digits of other scripts.
        if _WHOLE.fullmatch(value):
            value = int(value)
        elif not whole and _NUMBER.fullmatch(value):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and (whole or abs(value) < 2**53):
        return str(int(value))
    if whole:
        raise ValueError
    return repr(value)


def json_default(value: Any) -> str:
    """Values of tables that JSON doesn't know: times in UTC as ISO 8601, bytes in base64."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).isoformat()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return str(value)


def _json(value: Any) -> str:
    if not isinstance(value, (dict, list, int, float)) and value is not None:
        return json_default(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=json_default)


def _shown(value: Any) -> str:
    return _cut(json.dumps(value, default=json_default))


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"a {type(value).__name__}")


def _cut(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
