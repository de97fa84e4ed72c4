"""``weir demo``: the demo corpus from its seed to the gates, and what came out beside what was planted.

``weir demo-corpus`` writes the corpus alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.demo_corpus import DemoSettings, generate
from jobs.demo_corpus.truth import expected_outcomes
from jobs.runtime.cli import load_settings
from jobs.runtime.display import print_table
from jobs.runtime.errors import GateFailed
from jobs.runtime.funnel import print_funnel
from jobs.runtime.job import run_job
from jobs.runtime.runs import RunRecord, new_run_id
from jobs.runtime.session import get_session, stop_own_session


def write_corpus(options: argparse.Namespace) -> int:
    """The command ``weir demo-corpus``."""
    documents = options.documents if options.documents or options.megabytes else 20_000
    corpus = generate(
        Path(options.folder),
        DemoSettings(
            documents=documents,
            megabytes=options.megabytes,
            seed=options.seed,
            files_per_source=options.files_per_source,
            workers=options.workers,
        ),
    )
    rate = corpus.bytes / 1e6 / max(corpus.seconds, 1e-9)
    sys.stdout.write(
        f"{sum(corpus.records.values()):,} records, {corpus.bytes / 1e6:,.1f} MB in {corpus.seconds:.1f} s ({rate:.0f} MB/s); "
        f"truth: {corpus.truth}\n"
    )
    return 0
