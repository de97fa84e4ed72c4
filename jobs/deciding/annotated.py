"""Documents with the annotations that an expression names, without their text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.errors import InputContractError, SettingsError
from jobs.runtime.runs import RunTable
from jobs.runtime.tables import Pinned, table_properties

PROPERTY = "weir.annotator."
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"")
_WORD = re.compile(r"`?([A-Za-z_]\w*)`?")


def without_strings(expression: str) -> str:
    """An SQL expression with its string literals emptied."""
    return _STRING.sub("''", expression)


def names_in(expression: str) -> set[str]:
    """All identifiers in an SQL expression, those inside string literals left out."""
    return set(_WORD.findall(without_strings(expression)))


def annotator_tables(
    spark: SparkSession, inputs: Mapping[str, Pinned], identities: Mapping[str, str]
) -> dict[str, str]:
    """Column name -> table, for every annotator of the settings that has been computed."""
    places: dict[str, str] = {}
    for table in sorted(name for name in inputs if name.startswith("annotations")):
        properties = table_properties(spark, inputs[table].ref)
        for name, identity in identities.items():
            if properties.get(f"{PROPERTY}{name}") == identity:
                places[name] = table
    return places


def with_annotations(
    spark: SparkSession,
    documents: DataFrame,
    inputs: Mapping[str, Pinned],
    places: Mapping[str, str],
    identities: Mapping[str, str],
    wanted: Iterable[str],
) -> DataFrame:
    """Documents joined with the annotation structs named in ``wanted``; only the tables that hold these are read.

    An annotator called like a column of the documents (``language``) takes its place; what was given with the documents
    is then ``given_language``.

    Raises:
        SettingsError: if an annotator was not computed with the present settings.
    """
    names = sorted(set(wanted))
    absent = [name for name in names if name not in places]
    if absent:
        known = [name for name in absent if name in identities]
        raise SettingsError(
            [
                f"annotator '{name}' is needed here, but "
                + (
                    "has not been computed with the present settings; run: weir annotate"
                    if name in known
                    else f"the setting 'annotate' has none of that name (it has: {', '.join(sorted(identities)) or 'none'})"
                )
                for name in absent
            ]
        )
    joined = documents.withColumnsRenamed({name: f"given_{name}" for name in names if name in documents.columns})
    for table in sorted({places[name] for name in names}):
        columns = [name for name in names if places[name] == table]
        annotated = inputs[table].read(spark).select("doc_id", "text_sha256", *columns)
        joined = joined.join(annotated, ["doc_id", "text_sha256"])
    return joined


def check_annotated(
    runs: RunTable, documents_version: int, identities: Mapping[str, str], names: Iterable[str]
) -> None:
    """Annotators must have seen the very documents that are decided on.

    ``annotate`` checks that every document of its input has a row for its present text; so its record for this version
    of documents proves it here, without another look at the rows.

    Raises:
        InputContractError: naming the annotators for which there is no such record.
    """
    seen: set[tuple[str, str]] = set()
    for settings, inputs in runs.done("annotate"):
        if inputs.get("documents") == documents_version:
            seen |= set(json.loads(settings).get("annotate", {}).items())
    lacking = sorted(name for name in set(names) if (name, identities.get(name)) not in seen)
    if lacking:
        raise InputContractError(
            f"version {documents_version} of documents has not been annotated with: {', '.join(lacking)}",
            remedy="Run: weir annotate",
        )


def float_fields(frame: DataFrame, expression: str) -> list[str]:
    """The floating-point columns and struct fields that an expression names: the ones that can be NaN."""
    text = without_strings(expression)
    found = []
    for entry in frame.schema.fields:
        if entry.dataType.simpleString() in ("double", "float") and re.search(rf"(?<![\w.]){entry.name}\b(?!\.)", text):
            found.append(entry.name)
        for inner in getattr(entry.dataType, "fields", []):
            path = f"{entry.name}.{inner.name}"
            pattern = rf"(?<![\w.])`?{entry.name}`?\s*\.\s*`?{inner.name}\b"
            if inner.dataType.simpleString() in ("double", "float") and re.search(pattern, text):
                found.append(path)
    return found


def fields_in(frame: DataFrame, expression: str) -> list[str]:
    """The columns and struct fields that an expression names, as paths, for evidence."""
    text = without_strings(expression)
    found = []
    for entry in frame.schema.fields:
        inner = [i.name for i in getattr(entry.dataType, "fields", [])]
        paths = [f"{entry.name}.{i}" for i in inner if re.search(rf"(?<![\w.])`?{entry.name}`?\s*\.\s*`?{i}\b", text)]
        if paths:
            found.extend(paths)
        elif re.search(rf"(?<![\w.])`?{entry.name}\b(?!\s*\.)", text):
            found.append(entry.name)
    return found


def evidence(frame: DataFrame, paths: Sequence[str]) -> Column:
    """The values at the paths as one JSON object (``{"statistics.words":3}``)."""
    if not paths:
        return F.lit("")
    return F.to_json(F.struct(*[F.col(path).alias(path) for path in paths]), {"ignoreNullFields": "false"})
