"""All benchmarks, one process each, and their results as a table: ``make bench`` or ``python -m tests.benchmarks``."""

from __future__ import annotations

import json
import subprocess
import sys

from jobs.runtime.display import print_table

BENCHMARKS = (
    "demo_corpus", "kernels", "signature", "tokens", "exact_dedup", "near_dedup", "near_growth", "near_incremental",
    "near_hot", "annotators",
)  # fmt: skip


def main(names: list[str]) -> int:
    """Run the named benchmarks (default: all); exit 1 if one is over its budget or failed."""
    rows, fine = [], True
    for name in names or BENCHMARKS:
        done = subprocess.run(
            [sys.executable, "-m", f"tests.benchmarks.{name}"], capture_output=True, text=True, check=False
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(done.stderr[-2000:], file=sys.stderr)
            rows.append([name, "failed", "", "no"])
            fine = False
            continue
        print(lines[-1], flush=True)
        result = json.loads(lines[-1])
        fine = fine and result["within"]
        rows.append(
            [name, json.dumps(result["value"]), json.dumps(result["budget"]), "yes" if result["within"] else "NO"]
        )
    print_table("", ["benchmark", "value", "budget", "within"], rows)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
