"""``weir`` with an annotator whose function raises inside Spark's Python workers: ``raising.py ARGUMENTS...``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from jobs import annotate
from jobs.runtime.cli import main


def raising(wanted: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """In place of the one pass over the text."""

    def scorer(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            raise ValueError(f"the scorer can't score {batch.num_rows} documents")
        yield from ()

    return scorer


if __name__ == "__main__":
    annotate.one_pass = raising  # type: ignore[assignment]
    sys.exit(main(sys.argv[1:]))
