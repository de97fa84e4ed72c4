"""The expectation that a column is complete. Importing it imports Great Expectations."""

from __future__ import annotations

from typing import Any, ClassVar

from expectations.base import WeirExpectation
from expectations.metrics import NULL_AND_NAN_COUNTS
from expectations.suite import no_null_or_nan_sentence


class ExpectColumnToHaveNoNullOrNan(WeirExpectation):
    """A column holds a value in every row: no NULL, and no NaN if its type is float or double.

    The library's own "not null" passes NaN. Values inside arrays, maps and structs aren't looked at.

    Args:
        column: the column, or the dotted path of a struct's field.
    """

    column: str

    metric_dependencies: ClassVar[tuple[str, ...]] = (NULL_AND_NAN_COUNTS,)
    success_keys: ClassVar[tuple[str, ...]] = ("column",)

    @classmethod
    def _sentence(cls, arguments: dict[str, Any]) -> str:
        return no_null_or_nan_sentence(arguments)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        nulls, nans = metrics[NULL_AND_NAN_COUNTS]
        return {
            "success": nulls == 0 and nans == 0,
            "result": {
                "observed_value": f"{nulls:,} NULL and {nans:,} NaN",
                "details": {"nulls": nulls, "nans": nans},
            },
        }
