"""Bytes to text and JSON to values, exactly: numbers as written, keys given twice and bad bytes noticed."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from udfs.record_text import add_note, kind_of, shortened
from udfs.record_types import BadRecord, RecordRules

NESTING = 200
"""How deeply objects and arrays of a record may be nested: one limit, far below where Python's own stack would end."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEY_END = re.compile(rb'(?<!\\)"[ \t\r\n]*:')


def parse_line(line: bytes, rules: RecordRules, notes: list[str]) -> Mapping[str, Any]:
    """One line of JSON as a mapping.

    Raises:
        BadRecord: for what is no JSON, no object, or nested too deep.
    """
    text: str | None = None
    if rules.encoding.lower() not in ("utf-8", "utf8"):
        text = decode_content(line, rules, notes).removeprefix("\ufeff")
        line = text.encode("utf-8", errors="surrogatepass")
    try:
        record = orjson.loads(line)
        exact = _is_exact(record, line)
    except orjson.JSONDecodeError:
        exact = False
    if not exact:
        record = _parse_exactly(decode_content(line, rules, notes) if text is None else text)
    if not isinstance(record, dict):
        raise BadRecord("not_an_object", f"the line holds {kind_of(record)}")
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
        raise BadRecord("bad_json", f"the number {shortened(digits)} is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRecord("duplicate_key", f"key '{shortened(twice)}' is given twice")
    return record


def decode_content(content: bytes, rules: RecordRules, notes: list[str]) -> str:
    """Bytes as text in the stated encoding; bad bytes are replaced and noted, or refused.

    Raises:
        BadRecord: for bytes that are not valid, unless they are to be replaced.
    """
    try:
        return content.decode(rules.encoding)
    except UnicodeDecodeError as error:
        if not rules.replace_bad_bytes:
            raise BadRecord("bad_encoding", bad_byte(error, rules)) from None
        add_note("bad_encoding", notes)
        return content.decode(rules.encoding, errors="replace")


def has_nul_bytes(encoding: str) -> bool:
    """Whether ordinary text has NUL bytes in an encoding, by whichever of its names it is called."""
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def bad_byte(error: UnicodeDecodeError, rules: RecordRules) -> str:
    """Which byte is not valid, and where."""
    return f"byte 0x{error.object[error.start]:02x} at position {error.start} is not valid {rules.encoding}"
