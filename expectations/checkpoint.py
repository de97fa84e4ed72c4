"""Runs a suite on a frame with Great Expectations, and hands back plain results.

Importing this module is cheap; the library is loaded by the first run.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from expectations.results import ExpectationResult
from expectations.suite import Expectation, Suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXPECTATION_MODULES = (
    "expectations.slice_coverage",
    "expectations.no_nan",
    "expectations.unique_key",
    "expectations.sums",
)
"""The modules that register our expectations; a new kind of expectation is one file and one line here."""

LONGEST_MESSAGE = 2_000
"""Characters of an error's message that a result keeps: Spark's messages may carry a whole query plan."""

# Great Expectations keeps one current context per process, and one view for SQL expectations per session: two
# runs at a time could validate each other's frame.
_one_at_a_time = threading.Lock()


def run_suite(frame: DataFrame, suite: Suite, *, run_id: str) -> list[ExpectationResult]:
    """Evaluates every expectation of ``suite`` on ``frame``, in one checkpoint of its own.

    Nothing is cached or left behind: pass a narrow projection, and cache it yourself if several suites share
    it. Calls from several threads wait for each other. How the frame is partitioned makes no difference.

    Args:
        frame: the rows to validate; classic Spark or Spark Connect; without a ``text`` column.
        suite: what is expected of them.
        run_id: the id of the run, recorded by the library.

    Returns:
        One result for each expectation, in the order of the suite. An expectation that couldn't be evaluated
        (a missing column, a failing query) is ``errored``, with the message; the others are evaluated all
        the same.

    Raises:
        ValueError: the frame has a ``text`` column: results and reports must never show a document's text.
    """
    forbidden = [column for column in frame.columns if column.lower() == "text"]
    if forbidden:
        raise ValueError(
            f"suite {suite.name!r} was given a frame with the column {forbidden[0]!r}: gates never see text; "
            "select the columns that the suite needs"
        )
    with _one_at_a_time, _quiet():
        found = _validate(frame, suite, run_id)
    return [_result(suite, expectation, found.get(position)) for position, expectation in enumerate(suite.expectations)]


def _load() -> None:
    # Version 1.24 sends nothing; the variable keeps any other one silent too.
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    for module in EXPECTATION_MODULES:
        importlib.import_module(module)


def _validate(frame: DataFrame, suite: Suite, run_id: str) -> dict[int, Any]:
    """The library's result of each expectation, by its position in the suite."""
    _load()
    from great_expectations.core.run_identifier import RunIdentifier

    with _context() as context:
        outcome = _checkpoint(context, suite).run(
            batch_parameters={"dataframe": frame}, run_id=RunIdentifier(run_name=run_id)
        )
        return {
            result.expectation_config.meta["position"]: result
            for validated in outcome.run_results.values()
            for result in validated.results
        }


@contextmanager
def _context() -> Iterator[Any]:
    """A context in memory, without files; the caller's own one, in a notebook say, is current again afterwards."""
    import great_expectations as gx
    from great_expectations.data_context.data_context.context_factory import project_manager
    from great_expectations.exceptions.exceptions import DataContextRequiredError

    try:
        previous = project_manager.get_current_project()
    except DataContextRequiredError:
        previous = None
    try:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        yield context
    finally:
        project_manager.set_project(previous)


def _checkpoint(context: Any, suite: Suite) -> Any:
    """A checkpoint that validates one frame with ``suite``, and no other: it hands one frame to all it holds."""
    import great_expectations as gx
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    expectations = [
        ExpectationConfiguration(
            type=expectation.type,
            # Through JSON, so that the library gets a copy of its own: it converts values in place.
            kwargs=json.loads(expectation.limit),
            severity=expectation.severity,
            # The library groups its results by column; the position finds ours again.
            meta={"position": position},
        ).to_domain_obj()
        for position, expectation in enumerate(suite.expectations)
    ]
    # By default the library persists the frame, with all its columns, and never releases it.
    source = context.data_sources.add_spark(name="frame", persist=False)
    batch = source.add_dataframe_asset(name=suite.name).add_batch_definition_whole_dataframe("whole")
    registered = context.suites.add(gx.ExpectationSuite(name=suite.name, expectations=expectations))
    validation = context.validation_definitions.add(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=registered)
    )
    return context.checkpoints.add(
        gx.Checkpoint(
            name=suite.name,
            validation_definitions=[validation],
            result_format={"result_format": "SUMMARY", "partial_unexpected_count": 0},
        )
    )


def _result(suite: Suite, expectation: Expectation, found: Any) -> ExpectationResult:
    exception = (
        "the library returned no result for this expectation" if found is None else error_message(found.exception_info)
    )
    errored = exception is not None
    result = {} if found is None or errored else found.to_json_dict().get("result", {})
    observed = result.get("observed_value")
    return ExpectationResult(
        suite=suite.name,
        expectation=expectation.type,
        description=expectation.description,
        column=expectation.column,
        severity=expectation.severity,
        success=not errored and bool(found.success),
        errored=errored,
        observed=None if observed is None else str(observed),
        limit=expectation.limit,
        details=json.dumps(result.get("details", {}), sort_keys=True, ensure_ascii=False),
        exception=exception,
    )


def error_message(exception_info: dict[str, Any] | None) -> str | None:
    """The message of an expectation's error, or None if there was none.

    Args:
        exception_info: as the library gives it, in either of its shapes: flat, ``{raised_exception,
            exception_message, exception_traceback}``, or, when metrics failed, one object with a message for each.
    """
    if not exception_info:
        return None
    if "raised_exception" in exception_info:
        if not exception_info["raised_exception"]:
            return None
        failures = [exception_info]
    else:
        failures = list(exception_info.values())
    # A dict keeps the order and drops the repeats: a failed metric is reported with each of its dependants.
    messages = dict.fromkeys(_message(failure) for failure in failures)
    return "; ".join(messages)[:LONGEST_MESSAGE]


def _message(failure: Any) -> str:
    message = (
        failure.get("exception_message") if isinstance(failure, dict) else getattr(failure, "exception_message", None)
    )
    return str(message or failure).strip()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the library's warnings and log lines off stderr; what it found is in the results.

    It also routes every later Python warning of the process to the log on import; that is undone.
    """
    shown_by = warnings.showwarning
    library = logging.getLogger("great_expectations")
    propagate = library.propagate
    # Some of its loggers set a level of their own: what counts is that no record leaves the library.
    nowhere = logging.NullHandler()
    library.addHandler(nowhere)
    library.propagate = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield
            finally:
                if warnings.showwarning is not shown_by:
                    logging.captureWarnings(False)
    finally:
        library.propagate = propagate
        library.removeHandler(nowhere)
