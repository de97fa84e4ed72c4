"""eligibility: documents that may not be used are dropped before anything else, so that none of them is a survivor.

Tables: reads ``documents``, ``decisions``; writes its slice of ``decisions``.

By the source registry's conditions of use, lists of URL domains and of document ids (takedowns), and expressions over
documents columns and attributes. A later takedown is one more line in a list: the next run drops the document, and
brings back what it had suppressed as a duplicate.

Deterministic: each decision depends on the document, the registry and the lists.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run by spark-submit: this folder must not come before the standard library (`select`)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pydantic import Field
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.deciding.conditions import check_conditions
from jobs.deciding.step import FAILING, Candidates, decide, decisions_of, step_inputs
from jobs.runtime.errors import UnreadableInput
from jobs.runtime.job import Context, Job, Outcome
from jobs.runtime.models import NAME, SettingsModel, SourceSettings

if TYPE_CHECKING:
    from jobs.settings import Settings


class Condition(SettingsModel):
    """A named condition that documents must meet to be eligible."""

    name: str = Field(pattern=NAME, description="Name of the condition; it is the reason in `decisions`")
    keep: str = Field(
        min_length=1, description="SQL condition over documents columns, for example attributes['licence'] = 'MIT'"
    )


class EligibilitySettings(SettingsModel):
    """Settings of one eligibility step."""

    kind: Literal["eligibility"] = Field("eligibility", description="Which decider")
    name: str = Field("eligibility", pattern=NAME, description="Name of the step")
    blocked_domains: list[str] = Field(default_factory=list, description="Domains; a domain blocks its subdomains too")
    blocked_domain_lists: list[str] = Field(
        default_factory=list, description="Text files with a domain per line (# comments)"
    )
    blocked_ids: list[str] = Field(default_factory=list, description="Document ids to take down")
    blocked_id_lists: list[str] = Field(
        default_factory=list, description="Text files with a document id per line (# comments)"
    )
    conditions: list[Condition] = Field(default_factory=list, description="Further conditions; NULL counts as not met")


def ineligible(
    documents: DataFrame,
    settings: EligibilitySettings,
    sources: Mapping[str, SourceSettings],
    domains: DataFrame,
    ids: DataFrame,
) -> DataFrame:
    """Decisions about documents that may not be used; the first of use, id, domain, conditions gives the reason.

    Raises:
        SettingsError: for conditions that can't be used, see ``check_conditions``.

    Args:
        documents: Without text.
        settings: Of the step.
        sources: The source registry.
        domains: Blocked domains, one column ``domain`` (lower case).
        ids: Blocked document ids, one column ``doc_id``.
    """
    check_conditions(documents, [(f"condition '{c.name}'", c.keep) for c in settings.conditions])
    use = F.lit("allowed")
    for name, source in sorted(sources.items()):
        use = F.when(F.col("source") == name, F.lit(source.use)).otherwise(use)
    suffixes = documents.where(F.col("url").isNotNull()).select(
        "doc_id", F.explode(_domain_suffixes(F.col("url"))).alias("domain")
    )
    by_domain = (
        suffixes.join(domains.distinct(), ["domain"]).groupBy("doc_id").agg(F.min("domain").alias("blocked_domain"))
    )
    by_id = ids.distinct().withColumn("blocked_id", F.lit(True))
    judged = documents.join(by_domain, ["doc_id"], "left").join(by_id, ["doc_id"], "left").withColumn("use", use)
    checks: list[tuple[Column, Column, Column, str]] = [
        (F.col("use") != "allowed", F.concat(F.lit("use_"), F.col("use")), F.col("use"), "use = 'allowed'"),
        (F.col("blocked_id").isNotNull(), F.lit("blocked_id"), F.col("doc_id"), "list of ids"),
        (F.col("blocked_domain").isNotNull(), F.lit("blocked_domain"), F.col("blocked_domain"), "list of domains"),
    ]
    for condition in settings.conditions:
        fails = ~F.coalesce(F.expr(condition.keep), F.lit(False))
        checks.append((fails, F.lit(condition.name), F.lit(""), condition.keep))
    reason = F.coalesce(*[F.when(fails, name) for fails, name, _, _ in checks])
    failing = F.array_compact(
        F.array(
            *[
                F.when(fails, F.struct(name.alias("rule"), value.alias("value"), F.lit(limit).alias("limit")))
                for fails, name, value, limit in checks
            ]
        )
    )
    judged = judged.withColumns({"#reason": reason, "#failing": failing.cast(FAILING)})
    return decisions_of(
        judged.where(F.col("#reason").isNotNull()), reason=F.col("#reason"), method="list", failing=F.col("#failing")
    )


def _domain_suffixes(url: Column) -> Column:
    """``https://a.b.example:8080/x`` to [a.b.example, b.example, example]; an unreadable URL to an empty array."""
    parts = F.split(_host(url), r"\.")
    return F.transform(
        F.sequence(F.lit(1), F.greatest(F.size(parts), F.lit(1))),
        lambda i: F.array_join(F.slice(parts, i, F.size(parts)), "."),
    )


def _host(url: Column) -> Column:
    """The host of a URL, or of what stands where one should (``bad.example:8080/x``), in lower case."""
    found = F.regexp_extract(url, r"^\s*(?:(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//)?(?:[^/?#]*@)?(\[[^\]]*\]|[^/?#:\s]+)", 1)
    return F.lower(F.regexp_replace(found, r"^\*?\.+|\.+$", ""))


def listed(spark: SparkSession, inline: Sequence[str], files: Sequence[str], column: str) -> DataFrame:
    """Entries given in the settings and in files as one column; of domains (also given as URLs, or ``*.``) the host.

    A file has an entry a line, in UTF-8; blank lines and lines that start with ``#`` are left out. Local files are
    read here, where the job runs, for the executors may not see them.

    Raises:
        UnreadableInput: for files that are missing or unreadable.
    """
    entries = list(inline)
    remote = [file for file in files if "://" in file]
    for file in files:
        if file in remote:
            continue
        try:
            entries += Path(file).expanduser().read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableInput(
                f"list '{file}' can't be read: {error}", remedy="Correct the path, or take it out of the settings."
            ) from None
    hidden = [file for file in remote if file.rsplit("/", 1)[-1].startswith(("_", "."))]
    if hidden:
        raise UnreadableInput("Spark passes over files whose names start with _ or . ; rename these lists:", hidden)
    wanted = [entry.strip() for entry in entries if entry.strip() and not entry.lstrip().startswith("#")]
    found = spark.createDataFrame(pa.table({column: pa.array(wanted, pa.string())}))
    if remote:
        lines = spark.read.option("__globPaths__", "false").text(remote)
        value = F.trim(F.regexp_replace("value", r"^\s*#.*|[\r\ufeff]", ""))
        found = found.unionByName(lines.select(value.alias(column)))
    value = _host(F.col(column)) if column == "domain" else F.col(column)
    return found.select(value.alias(column)).where(F.col(column) != "")


def run(context: Context) -> Outcome:
    """Decide for the step that the context names."""
    step: EligibilitySettings = context.settings.step(context.step)

    def decider(candidates: Candidates) -> DataFrame:
        domains = listed(context.spark, step.blocked_domains, step.blocked_domain_lists, "domain")
        ids = listed(context.spark, step.blocked_ids, step.blocked_id_lists, "doc_id")
        return ineligible(candidates.documents, step, context.settings.sources, domains, ids)

    return decide(context, decider)


def _depends_on(settings: Settings, step: str) -> Mapping[str, Any]:
    own: EligibilitySettings = settings.step(step)
    files = [*own.blocked_domain_lists, *own.blocked_id_lists]
    return {
        "decide": own.model_dump(mode="json"),
        "before": settings.steps_before(step),
        "use": {name: source.use for name, source in settings.sources.items()},
        # A longer list is another setting: the steps after this one must then decide again.
        "lists": {f: hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in files if Path(f).is_file()},
    }


JOB = Job(
    name="eligibility",
    summary="decide: conditions of use, blocked domains, takedowns",
    inputs=step_inputs,
    depends_on=_depends_on,
    run=run,
    steps=lambda settings: settings.steps_of("eligibility"),
)

if __name__ == "__main__":
    from jobs.runtime.cli import run_script

    sys.exit(run_script("eligibility"))
