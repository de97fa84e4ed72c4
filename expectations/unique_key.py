"""The expectation that a key occurs once. Importing it imports Great Expectations."""

from __future__ import annotations

from typing import Any, ClassVar

from expectations.base import WeirExpectation
from expectations.metrics import REPEATED_KEYS
from expectations.suite import unique_key_sentence


class ExpectKeyToBeUnique(WeirExpectation):
    """No two rows share the values of the key. Rows with a NULL in the key are left out.

    One aggregation by the key; the library's own check sorts a window over it and fetches the rows.

    Args:
        columns: the columns of the key.
    """

    columns: list[str]

    metric_dependencies: ClassVar[tuple[str, ...]] = (REPEATED_KEYS,)
    success_keys: ClassVar[tuple[str, ...]] = ("columns",)

    @classmethod
    def _sentence(cls, arguments: dict[str, Any]) -> str:
        return unique_key_sentence(arguments)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        repeated = metrics[REPEATED_KEYS]
        observed = "every key occurs once"
        if repeated["keys"]:
            observed = (
                f"{repeated['keys']:,} keys occur more than once ({repeated['surplus']:,} surplus rows); "
                f"{' / '.join(repeated['example'])} occurs {repeated['example_rows']:,} times"
            )
        return {"success": repeated["keys"] == 0, "result": {"observed_value": observed, "details": repeated}}
