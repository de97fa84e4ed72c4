"""near_dedup's time as the corpus grows: four times the documents, and a corpus one third of which is one template.

python -m tests.benchmarks.near_growth [MEGABYTES of the smaller corpus, default 250]
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import DataFrame

from jobs.runtime.scratch import Scratch
from tests.benchmarks.common import paired, prepared, report, session
from tests.benchmarks.near_dedup import documents_of, run
from udfs.annotators.minhash import MinhashSettings

BUDGET = {"four_times": 4.6, "template": 1.5}
TEMPLATE_SHARE = 0.33


def main(megabytes: float = 250.0) -> bool:
    """Run, print, and say whether time grows with the documents, not with their pairs."""
    spark = session()
    corpora = {
        "small": prepared(spark, megabytes, ("ingest",)).warehouse,
        "large": prepared(spark, 4 * megabytes, ("ingest",)).warehouse,
        "template": prepared(spark, 4 * megabytes, ("ingest",), TEMPLATE_SHARE).warehouse,
    }
    frames = {name: documents_of(spark, warehouse) for name, warehouse in corpora.items()}
    counts = {name: frame.count() for name, frame in frames.items()}
    notes: dict[str, dict[str, str]] = {}

    def dedup(name: str, frame: DataFrame) -> None:
        scratch = Scratch(spark, corpora[name], f"growth{time.monotonic_ns()}", "near")
        notes[name] = run(spark, frame, MinhashSettings(), scratch, {}).notes
        scratch.clean()

    first = paired(
        lambda: dedup("small", frames["small"]), {"large": lambda: dedup("large", frames["large"])}, rounds=3
    )
    second = paired(
        lambda: dedup("large", frames["large"]), {"template": lambda: dedup("template", frames["template"])}, rounds=2
    )
    grown = counts["large"] / counts["small"]
    value = {
        "four_times": round(first["ratios"]["large"] * 4 / grown, 2),
        "template": round(second["ratios"]["template"] * counts["large"] / counts["template"], 2),
    }
    within = all(value[name] <= limit for name, limit in BUDGET.items())
    report("near_growth", value, BUDGET, within, documents=counts, seconds=[first["seconds"], second["seconds"]],
           largest={name: said["largest_component"] for name, said in notes.items()},
           hit_the_cap={name: said["hit_the_cap"] for name, said in notes.items()})  # fmt: skip
    spark.stop()
    return within


if __name__ == "__main__":
    sys.exit(0 if main(*(float(a) for a in sys.argv[1:2])) else 1)
