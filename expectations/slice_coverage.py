"""The expectation behind the coverage suite. Importing it imports Great Expectations."""

from __future__ import annotations

from typing import Any, ClassVar, Optional

from expectations.base import WeirExpectation
from expectations.coverage import coverage_observed, coverage_sentence, coverage_violations
from expectations.metrics import SLICE_COUNTS


class ExpectSliceCoverage(WeirExpectation):
    """Every planned slice has its floor of distinct documents and tokens; a slice that isn't there counts 0.

    Args:
        slice_columns: the columns whose values make a slice.
        floors: ``{slice, documents, tokens}`` for each planned slice, the slice as a list of one value per
            column, None for NULL.
        document_column: tells documents apart; a repeated document counts once.
        token_column: an integer column, or None to count documents only.
    """

    slice_columns: list[str]
    floors: list[dict[str, Any]]
    document_column: str = "doc_id"
    token_column: Optional[str] = None  # noqa: UP045 - the library's pydantic 1 reads it at run time

    metric_dependencies: ClassVar[tuple[str, ...]] = (SLICE_COUNTS,)
    success_keys: ClassVar[tuple[str, ...]] = ("slice_columns", "floors", "document_column", "token_column")

    @classmethod
    def _sentence(cls, arguments: dict[str, Any]) -> str:
        return coverage_sentence(arguments)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        violations, unplanned = coverage_violations(self.floors, metrics[SLICE_COUNTS])
        return {
            "success": not violations,
            "result": {
                "observed_value": coverage_observed(violations, len(self.floors)),
                "details": {"violations": violations, "unplanned": unplanned},
            },
        }
