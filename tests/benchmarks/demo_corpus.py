"""How fast the demo corpus is written, in 10^6 bytes of uncompressed JSON lines per second and process.

python -m tests.benchmarks.demo_corpus [MEGABYTES]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from jobs.demo_corpus import generate
from tests.benchmarks.common import report

BUDGET = 20.0


def main(megabytes: float = 200.0, rounds: int = 3) -> bool:
    """Run, print, and say whether it is fast enough."""
    rates = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            corpus = generate(Path(folder) / "corpus", megabytes=megabytes, seed=number)
            rates.append(corpus.total_bytes / 1e6 / corpus.seconds)
    value = round(statistics.median(rates), 1)
    report("demo_corpus", value, BUDGET, value >= BUDGET, unit="MB/s", higher_is_better=True)
    return value >= BUDGET


if __name__ == "__main__":
    sys.exit(0 if main(*(float(a) for a in sys.argv[1:2])) else 1)
