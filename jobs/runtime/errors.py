"""Every error that a user can meet: one class per cause, under one root, each with its exit code.

Exit codes: 0 done or already done, 1 unexpected, 2 settings, 3 gate failed, 4 input contract broken, 5 infeasible plan,
75 retry later (the code that schedulers read as a temporary failure, ``EX_TEMPFAIL`` of ``sysexits.h``).

A message says what was wrong, the value, the limit and the remedy. The command line prints it without a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class WeirError(Exception):
    """Root of all errors that Corpus Weir raises on purpose; ``exit_code`` is what the process ends with."""

    exit_code = 1


class SettingsError(WeirError):
    """The settings can't be used: unknown names, wrong types, contradictions. Lists every problem at once."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: list[str] = [problems] if isinstance(problems, str) else list(problems)
        lines = self.problems
        text = lines[0] if len(lines) == 1 else f"{len(lines)} problems:\n" + "\n".join(f"  - {p}" for p in lines)
        super().__init__(text)


class JavaNotFound(SettingsError):
    """No Java that Spark 4.1 supports (17 or 21) was found, or the one that was named is another version."""


class JarsNotFound(SettingsError):
    """Delta's jars are neither in the given folder nor in the cache, and could not be fetched."""


class SessionMismatch(SettingsError):
    """The Spark session or the Delta library is of a version that this distribution does not run on."""


class WorkersDiffer(SettingsError):
    """The Python on Spark's workers lacks a module that the driver's has."""


class PackageShadowed(SettingsError):
    """Another package named ``jobs`` (or ``udfs``, ...) comes first on the import path."""


class RunRefused(SettingsError):
    """A run id was used before with other settings or another code version's plan."""


class GateFailed(WeirError):
    """A validation gate blocked: an expectation failed or could not be evaluated."""

    exit_code = 3


class InputContractError(WeirError):
    """An input breaks its contract. Lists every difference."""

    exit_code = 4

    def __init__(self, what: str, differences: Sequence[str] = (), remedy: str = "") -> None:
        self.what, self.differences, self.remedy = what, list(differences), remedy
        lines = [what, *(f"  - {d}" for d in differences)]
        if remedy:
            lines.append(remedy)
        super().__init__("\n".join(lines))


class TableMissing(InputContractError):
    """An input table does not exist yet."""


class TableVersionError(InputContractError):
    """A table was written with another version of its contract."""


class UnreadableInput(InputContractError):
    """Input files are missing, may not be read, or are damaged as files."""


class DuplicateIds(InputContractError):
    """Document ids that must be unique are not, or are missing."""


class ReconciliationError(WeirError):
    """Rows in did not equal kept + dropped + quarantined: a defect, nothing was published."""


class InfeasiblePlan(WeirError):
    """A sampling or mixture plan can't be met with what is available."""

    exit_code = 5


class ProxyRunsInsufficient(InfeasiblePlan):
    """Recorded proxy runs are too few, too alike or too noisy for a mixture to be proposed from them."""


class RetryLater(WeirError):
    """Another run changed the same table at the same time; nothing of this run was lost, run it again."""

    exit_code = 75


class ScratchFull(WeirError):
    """The disk for scratch data or for the warehouse is full."""

    exit_code = 75


class NotPermitted(InputContractError):
    """A file or folder may not be read or written by this user."""
