"""The outcome of one expectation, as one row of the ``validations`` table needs it."""

from __future__ import annotations

from dataclasses import dataclass

from expectations.suite import SEVERITIES, Severity


@dataclass(frozen=True)
class ExpectationResult:
    """What one expectation of one suite found on one frame.

    Plain strings, booleans and JSON text only, so that a row can be written to any table and read back
    without Great Expectations.

    Raises:
        ValueError: the severity is unknown, or the expectation is said to have both errored and succeeded.
    """

    suite: str
    """Name of the suite that the expectation belongs to."""
    expectation: str
    """Type name in snake case, e.g. ``expect_slice_coverage``."""
    description: str
    """What was expected, as a sentence for a reader."""
    column: str | None
    """The one column that the expectation is about, if there is one."""
    severity: Severity
    """What a failure means: ``critical`` blocks a release, ``warning`` and ``info`` are reported."""
    success: bool
    """True if the data met the expectation."""
    errored: bool
    """True if the expectation couldn't be evaluated; then nothing is known about the data."""
    observed: str | None
    """What was found, for a reader; None after an error."""
    limit: str
    """The arguments that decide success, as a JSON object."""
    details: str = "{}"
    """Evidence as a JSON object, e.g. the violations per slice."""
    exception: str | None = None
    """The message of the error, if there was one."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity is {self.severity!r}; it must be one of {', '.join(SEVERITIES)}")
        if self.errored and self.success:
            raise ValueError(f"{self.expectation} can't have errored and succeeded: an error proves nothing")

    @property
    def blocks(self) -> bool:
        """Whether a release has to wait: on any error, and on a failure that is critical.

        An errored warning blocks as well, because the check that would have warned wasn't made.
        """
        return self.errored or (not self.success and self.severity == "critical")
