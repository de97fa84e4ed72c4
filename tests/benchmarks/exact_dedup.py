"""exact_dedup against a bare ``groupBy(sha2(text))`` on the same documents table.

``none`` uses the hash that ingest stored; ``norm_v1`` reads and normalises the text; ``annotated`` uses the key that
annotate has written. Each computes all decisions, survivors and evidence; the bare query computes the groups only.

    python -m tests.benchmarks.exact_dedup [MEGABYTES]
"""

from __future__ import annotations

import sys

from pyspark.sql import functions as F

from jobs.deciding.annotated import annotator_tables
from jobs.deciding.step import Candidates
from jobs.exact_dedup import ExactDedupSettings, details_needed, exact_duplicates, keys
from jobs.runtime.tables import Pinned, TableRef, latest_version
from tests.benchmarks.common import consume, paired, prepared, report, session

BUDGET = {"none": 1.5, "norm_v1": 3.0, "annotated": 0.5}


def main(megabytes: float = 1000.0) -> bool:
    """Run, print, and say whether all three are within their budgets."""
    spark = session()
    settings = prepared(spark, megabytes)
    refs = {name: TableRef.in_warehouse(settings.warehouse, name) for name in ("documents", "annotations")}
    pins = {name: Pinned(name, ref, latest_version(spark, ref) or 0) for name, ref in refs.items()}
    documents = pins["documents"].read(spark)
    places = annotator_tables(spark, pins, settings.annotator_identities())
    annotated = pins["annotations"].read(spark)

    def candidates(has: frozenset[str]) -> Candidates:
        return Candidates(
            documents=documents.drop("text"),
            with_text=documents,
            annotated=lambda names: documents.drop("text"),
            annotation=lambda name: annotated.select("doc_id", "source", "batch", name),
            has=has,
        )

    def dedup(normalisation: str, has: frozenset[str]) -> None:
        step = ExactDedupSettings(normalisation=normalisation)
        given = candidates(has)
        keyed = keys(given, step, settings.survivor)
        details = details_needed(keyed, given.documents, settings.survivor)
        consume(exact_duplicates(keyed, details, step, settings.survivor, settings.sources))

    def bare() -> None:
        consume(documents.groupBy(F.sha2("text", 256)).count())

    result = paired(
        bare,
        {
            "none": lambda: dedup("none", frozenset()),
            "norm_v1": lambda: dedup("norm_v1", frozenset()),
            "annotated": lambda: dedup("norm_v1", frozenset(places)),
        },
    )
    size = documents.agg(F.sum("bytes"), F.count(F.lit(1))).first()
    ratios = {name: round(value, 2) for name, value in result["ratios"].items()}
    within = all(ratios[name] <= BUDGET[name] for name in BUDGET)
    report("exact_dedup", ratios, BUDGET, within, seconds=result["seconds"], bytes=int(size[0]), documents=int(size[1]))
    spark.stop()
    return within


if __name__ == "__main__":
    sys.exit(0 if main(*(float(a) for a in sys.argv[1:2])) else 1)
