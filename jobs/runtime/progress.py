"""What a person sees while a job works: a live line on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator

logger = logging.getLogger("weir")
HEARTBEAT_SECONDS = 30.0


class Progress:
    """Says which stage a job is in and for how long. ``quiet`` keeps it silent (notebooks, tests)."""

    def __init__(self, job: str, quiet: bool = False) -> None:
        self.job = job
        self.quiet = quiet
        self._live = sys.stderr.isatty() and not quiet

    @contextlib.contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """A stage of the job: shown while it lasts, logged with its seconds when it ends."""
        start = time.monotonic()
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(what, start, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()
            self._clear()
            logger.debug("%s: %s took %.1f s", self.job, what, time.monotonic() - start)

    def say(self, message: str) -> None:
        """One line that stays."""
        if not self.quiet:
            self._clear()
            sys.stderr.write(f"{self.job:<14} {message}\n")
            sys.stderr.flush()

    def _watch(self, what: str, start: float, stop: threading.Event) -> None:
        last = start
        while not stop.wait(0.5 if self._live else 1.0):
            now = time.monotonic()
            if self._live:
                sys.stderr.write(f"\r\x1b[2K{self.job:<14} {what} ... {now - start:.0f} s")
                sys.stderr.flush()
            elif not self.quiet and now - last >= HEARTBEAT_SECONDS:
                last = now
                sys.stderr.write(f"{self.job:<14} {what} ... {now - start:.0f} s\n")
                sys.stderr.flush()

    def _clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
