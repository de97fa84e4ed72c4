"""``weir ingest`` at the same moment as others: ``racing.py ROUNDS SETTINGS RUN_ID MEETING_POINT NAME OTHERS``.

The session is there before the first round, and each round begins when all have come to the meeting point. SETTINGS
may hold ``{round}``. Standard output gets one JSON object per round.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from jobs.runtime.cli import load_settings, main
from jobs.runtime.session import get_session


def run(rounds: str, settings: str, run_id: str, meeting_point: str, name: str, others: str) -> None:
    spark = get_session(load_settings([settings.format(round=0)], []).settings.spark)
    spark._weir_built = False  # type: ignore[attr-defined]  # so it lasts longer than a round
    spark.range(1).count()
    for number in range(int(rounds)):
        meet(Path(meeting_point), f"{number}", name, int(others))
        main(["ingest", settings.format(round=number), "--run-id", run_id, "--json"])


def meet(place: Path, number: str, name: str, others: int) -> None:
    """Wait until all have come."""
    (place / f"{number}-{name}").touch()
    limit = time.monotonic() + 300
    while len(list(place.glob(f"{number}-*"))) < 1 + others:
        if time.monotonic() > limit:
            sys.exit("the others did not come")
        time.sleep(0.002)


if __name__ == "__main__":
    run(*sys.argv[1:])
