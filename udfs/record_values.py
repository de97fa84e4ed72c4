"""Fields of a record as the columns that they become: ids, sources, times, attributes; what doesn't fit is said."""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from udfs.record_text import add_note, kind_of, shortened, valid_text
from udfs.record_types import BadRecord

EARLIEST, LATEST = (
    datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC),
)
"""Time stamps outside are noted as bad: file formats disagree about calendars before 1900, and nothing was fetched then."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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


def take_field(record: Mapping[str, Any], path: str, used: set[tuple[str, ...]]) -> Any:
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


def presence_of(record: Mapping[str, Any], path: str) -> str:
    """Why a field gave nothing, for a message: NULL, or not there."""
    if path in record:
        return "null"
    if path.split(".")[0] in record:
        return "null or not there"
    return f"not there; the record has {shortened(', '.join(sorted(record)))}"


def id_of(value: Any, name: str) -> str:
    """A given id as text.

    Raises:
        BadRecord: for what can be no id.
    """
    if value is None or value == "":
        raise BadRecord("id_missing", f"field '{name}' is {'empty' if value == '' else 'null or not there'}")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadRecord("bad_id", f"field '{name}' is {kind_of(value)}: {shown_value(value)}")
    found: list[str] = []
    text = valid_text(str(value), found)[0]
    if found:  # repaired, two ids could become one
        raise BadRecord("bad_id", f"field '{name}' holds half of a surrogate pair: {shown_value(value)}")
    return text


def source_of(value: Any) -> str:
    """The name of a source, as it is spelled."""
    if value is None or value == "" or isinstance(value, (dict, list, bytes)):
        raise BadRecord("source_missing", f"the field for the source is {'empty' if value == '' else kind_of(value)}")
    return valid_text(value if isinstance(value, str) else _json(value), [])[0]


def string_or_none(value: Any, notes: list[str]) -> str | None:
    """A value as valid text; other values than strings as JSON; NULL stays."""
    if value is None:
        return None
    return valid_text(value if isinstance(value, str) else _json(value), notes)[0]


def whole_or_none(value: Any, name: str) -> int | None:
    """A value as a whole number, if it is one; NULL stays.

    Raises:
        BadRecord: for anything else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise BadRecord(
            "bad_type", f"field '{name}' should be a whole number, is {kind_of(value)}: {shown_value(value)}"
        )
    return value


def timestamp_of(value: Any, notes: list[str]) -> datetime.datetime | None:
    """A value as a time; what is none is noted and becomes NULL."""
    if value is None:
        return None
    stamp = parse_timestamp(value)
    if stamp is None:
        add_note("bad_timestamp", notes)
    return stamp


def attributes_of(
    record: Mapping[str, Any], used: set[tuple[str, ...]], types: Mapping[str, str], notes: list[str]
) -> list[tuple[str, str]]:
    """The fields that no column took, as strings by name; values of a declared type are checked.

    Raises:
        BadRecord: for a value that does not fit its declared type.
    """
    rows: dict[str, str] = {}
    for name, given in record.items():
        inside = [path[1:] for path in used if len(path) > 1 and path[0] == name]
        value = _without(given, inside) if inside else given
        if (name,) in used or value is None:
            continue
        text = (
            _typed(name, value, types[name]) if name in types else (value if isinstance(value, str) else _json(value))
        )
        valid = valid_text(name, notes)[0]
        if valid in rows:
            raise BadRecord("duplicate_key", f"key '{shortened(valid)}' stands twice once lone surrogates are replaced")
        rows[valid] = valid_text(text, notes)[0]
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
        raise BadRecord(
            "bad_type", f"field '{name}' should be {wanted}, is {kind_of(value)}: {shown_value(value)}"
        ) from None


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


def shown_value(value: Any) -> str:
    """A value as JSON, cut, for a message."""
    return shortened(json.dumps(value, default=json_default))
