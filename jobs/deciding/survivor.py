"""The survivor rule: which document of several is the best, as a total order that every step shares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.runtime.errors import SettingsError
from jobs.runtime.models import SourceSettings

if TYPE_CHECKING:
    from jobs.settings import Settings

DEFAULT = ("source_priority", "doc_id")
PRIORITY = "source_priority"
UNLISTED_PRIORITY = SourceSettings().priority
_TERM = re.compile(r"(-?)([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
DOCUMENT_COLUMNS = frozenset(
    {"doc_id", "source", "bytes", "characters", "url", "language", "fetched_at", "origin", "generator", "generation",
     "batch", "file", "record", "ingest_run", "arrival"}
)  # fmt: skip


def terms(rule: Sequence[str]) -> list[tuple[str, bool]]:
    """The rule as (name, descending), with ``doc_id`` at its end, so that no two documents rank alike.

    Raises:
        SettingsError: for a term that is no name or ``-name``.
    """
    parsed = []
    for term in rule:
        match = _TERM.fullmatch(term.strip())
        if match is None:
            raise SettingsError(f"setting 'survivor': '{term}' should be a name or -name, for example -quality.score")
        parsed.append((match.group(2), match.group(1) == "-"))
    if not any(name == "doc_id" for name, _ in parsed):
        parsed.append(("doc_id", False))
    return parsed


def annotators_in(rule: Sequence[str]) -> set[str]:
    """The annotators that the rule needs."""
    roots = {name.split(".")[0] for name, _ in terms(rule)}
    return roots - DOCUMENT_COLUMNS - {PRIORITY}


def arrival_first(rule: Sequence[str]) -> bool:
    """Whether documents that came earlier rank before all later ones, so that increments equal a full run."""
    return terms(rule)[0] == ("arrival", False)


def survivor_depends_on(settings: Settings) -> dict[str, Any]:
    """The settings that a rank depends on, for the hash of a step's settings."""
    identities = settings.annotator_identities()
    return {
        "survivor": list(settings.survivor),
        "priorities": {name: source.priority for name, source in settings.sources.items()},
        "annotators": {name: identities[name] for name in identities if name in annotators_in(settings.survivor)},
    }


def priority(sources: Mapping[str, SourceSettings]) -> Column:
    """A source's priority from the registry; 100 for sources that are not in it."""
    column = F.lit(UNLISTED_PRIORITY)
    for name, settings in sorted(sources.items()):
        column = F.when(F.col("source") == name, F.lit(settings.priority)).otherwise(column)
    return column


def rank_values(
    frame: DataFrame, rule: Sequence[str], sources: Mapping[str, SourceSettings]
) -> list[tuple[Column, bool]]:
    """The rule's terms as (value, descending), best first. NaN is NULL: both rank last whichever way a term points.

    Raises:
        SettingsError: for a name that the documents and annotations don't have.
    """
    values = []
    for name, descending in terms(rule):
        column = priority(sources) if name == PRIORITY else F.col(name)
        try:
            kind = frame.select(column.alias("value")).schema.fields[0].dataType.simpleString()
        except Exception:
            raise SettingsError(f"setting 'survivor': there is no '{name}' on documents or annotations") from None
        if kind in ("double", "float"):
            column = F.when(~F.isnan(column), column)
        values.append((column, descending))
    return values


def ordered(value: Column, descending: bool) -> Column:
    """A term's value as something to order by."""
    return value.desc_nulls_last() if descending else value.asc_nulls_last()


def rank_order(frame: DataFrame, rule: Sequence[str], sources: Mapping[str, SourceSettings]) -> list[Column]:
    """Columns to order by, best first. NULL and NaN rank last whichever way a term points.

    Strings compare by bytes, whatever the cluster's collation or locale.

    Raises:
        SettingsError: for a name that the documents and annotations don't have.
    """
    return [ordered(value, descending) for value, descending in rank_values(frame, rule, sources)]
