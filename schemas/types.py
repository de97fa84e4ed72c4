"""SQL types of columns (``ARRAY<STRUCT<rule: STRING>>``) as Spark's types, without a session.

Spark's own parser sits in the JVM, or behind a Connect server: with it no schema could be compared before a session is
there.
"""

from __future__ import annotations

import re

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

SIMPLE: dict[str, type[DataType]] = {
    "STRING": StringType,
    "BINARY": BinaryType,
    "BOOLEAN": BooleanType,
    "INT": IntegerType,
    "BIGINT": LongType,
    "FLOAT": FloatType,
    "DOUBLE": DoubleType,
    "DATE": DateType,
    "TIMESTAMP": TimestampType,
}
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[<>,:])")


def parse_type(sql_type: str) -> DataType:
    """The Spark type of an SQL type; what is nested may be NULL, as in Spark's own reading of it.

    Raises:
        ValueError: for what is no type, or none of those that the contracts use.
    """
    words, position, text = [], 0, sql_type.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"'{sql_type}' is not an SQL type")
        words.append(match.group(1))
        position = match.end()
    words.reverse()  # read from the end of the list: pop() gives the next word
    try:
        found = _type(words)
    except IndexError:
        words = [""]
    if words:
        raise ValueError(f"'{sql_type}' is not an SQL type")
    return found


def _type(words: list[str]) -> DataType:
    name = words.pop().upper()
    if name in SIMPLE:
        return SIMPLE[name]()
    if name not in ("ARRAY", "MAP", "STRUCT"):
        raise ValueError(f"'{name}' is not an SQL type; known: {', '.join([*SIMPLE, 'ARRAY', 'MAP', 'STRUCT'])}")
    _expect(words, "<")
    inside: DataType
    if name == "ARRAY":
        inside = ArrayType(_type(words))
    elif name == "MAP":
        key = _type(words)
        _expect(words, ",")
        inside = MapType(key, _type(words))
    else:
        inside = StructType([_field(words)])
        while words[-1] == ",":
            words.pop()
            inside.add(_field(words))
    _expect(words, ">")
    return inside


def _field(words: list[str]) -> StructField:
    name = words.pop()
    _expect(words, ":")
    return StructField(name, _type(words))


def _expect(words: list[str], mark: str) -> None:
    if words.pop() != mark:
        raise ValueError(f"'{mark}' is missing in an SQL type")
