"""The expectation that totals add up. Importing it imports Great Expectations."""

from __future__ import annotations

from typing import Any, ClassVar

from expectations.base import WeirExpectation
from expectations.integrity import sum_differences, sums_observed, sums_sentence
from expectations.metrics import GROUP_TOTALS


class ExpectSumsToMatch(WeirExpectation):
    """The rows and the sums of integer columns, by group, equal totals that are known from elsewhere.

    Args:
        group_columns: the columns to group by; empty for the whole frame.
        sum_columns: the integer columns to sum.
        expected: ``{group, rows, sums}`` for each group, the group as a list of one value per column, None for
            NULL, and ``sums`` with one integer per column of ``sum_columns``.
    """

    group_columns: list[str]
    sum_columns: list[str]
    expected: list[dict[str, Any]]

    metric_dependencies: ClassVar[tuple[str, ...]] = (GROUP_TOTALS,)
    success_keys: ClassVar[tuple[str, ...]] = ("group_columns", "sum_columns", "expected")

    @classmethod
    def _sentence(cls, arguments: dict[str, Any]) -> str:
        return sums_sentence(arguments)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        differences, unexpected = sum_differences(self.expected, metrics[GROUP_TOTALS])
        return {
            "success": not differences,
            "result": {
                "observed_value": sums_observed(differences, unexpected, len(self.expected)),
                "details": {"violations": differences, "unexpected_groups": unexpected},
            },
        }
