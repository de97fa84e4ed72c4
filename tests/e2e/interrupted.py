"""``weir ingest`` of a settings file, interrupted as by Ctrl-C while records are written to scratch."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from jobs.runtime.cli import main
from jobs.runtime.scratch import Scratch

materialize = Scratch.materialize


def interrupted(self: Scratch, frame: Any, name: str) -> Any:
    materialize(self, frame, name)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
    raise AssertionError("the interruption did not arrive")


if __name__ == "__main__":
    Scratch.materialize = interrupted  # type: ignore[method-assign]
    sys.exit(main(["ingest", sys.argv[1], "--run-id", "r1"]))
