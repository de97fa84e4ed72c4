"""The numeric thresholds that a condition compares with: ``quality.score >= 0.5`` has one, BETWEEN has two."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobs.quality.settings import Rule

_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"")
_PATH = r"(?<![\w.`])`?[A-Za-z_]\w*`?(?:\s*\.\s*`?\w+`?)*(?!\w|\s*[.(`])"
_NUMBER = r"(?<![\w.])[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])"
_BESIDE = r"(?!\s*[-+*/%])"
_COMPARISONS = (
    re.compile(rf"(?P<value>{_PATH})\s*(?P<operator>>=|<=|>|<)\s*(?P<number>{_NUMBER}){_BESIDE}"),
    re.compile(rf"(?P<number>{_NUMBER})\s*(?P<operator>>=|<=|>|<)\s*(?P<value>{_PATH}){_BESIDE}"),
)
_BETWEEN = re.compile(
    rf"(?P<value>{_PATH})\s+BETWEEN\s+(?P<low>{_NUMBER})\s+AND\s+(?P<high>{_NUMBER}){_BESIDE}", re.IGNORECASE
)
_ARITHMETIC = re.compile(r"[-+*/%]\s*$")
_NEGATED = re.compile(r"\bNOT\s*$", re.IGNORECASE)
_TURNED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}


@dataclass(frozen=True)
class Threshold:
    """One comparison of a value with a number in a rule's ``keep``.

    Attributes:
        rule: Name of the rule.
        value: What is compared, as SQL: a column, or a field of a struct.
        operator: ``>=``, ``>``, ``<=`` or ``<``, with the value on the left.
        number: What it is compared with now.
        if_met: The rule's condition with the comparison taken for true.
        if_missed: The same, taken for false. The two and the value tell the rule's outcome under every other number.
    """

    rule: str
    value: str
    operator: str
    number: float
    if_met: str
    if_missed: str


def thresholds_of(rule: Rule) -> list[Threshold]:
    """The comparisons in a rule's condition, in their order; none for rules of other kinds.

    Only plain ones are found: a column or field on one side and a number on the other, without arithmetic.
    """
    if rule.keep is None:
        return []
    # Strings keep their length, so that places in the blanked text are places in the condition.
    text = _STRING.sub(lambda found: "'" + "_" * (len(found[0]) - 2) + "'", rule.keep)
    found: list[tuple[int, Threshold]] = []
    taken: list[tuple[int, int]] = []
    for match in _BETWEEN.finditer(text):
        if match["value"].upper() == "NOT" or _ARITHMETIC.search(text[: match.start()]):
            continue
        taken.append(match.span())
        value, low, high = match["value"], match["low"], match["high"]
        above, below = f"{value} >= {low}", f"{value} <= {high}"
        for place, (operator, number, met, missed) in enumerate(
            (
                (">=", low, f"(true AND {below})", f"(false AND {below})"),
                ("<=", high, f"({above} AND true)", f"({above} AND false)"),
            )
        ):
            found.append((match.start() + place, _threshold(rule, value, operator, number, match.span(), met, missed)))
    for pattern in _COMPARISONS:
        for match in pattern.finditer(text):
            inside = any(start < match.end() and match.start() < end for start, end in taken)
            before = text[: match.start()]
            if inside or _ARITHMETIC.search(before) or _NEGATED.search(before):
                continue
            taken.append(match.span())
            written = match["operator"]
            operator = written if pattern is _COMPARISONS[0] else _TURNED[written]
            found.append(
                (
                    match.start(),
                    _threshold(rule, match["value"], operator, match["number"], match.span(), "true", "false"),
                )
            )
    return [threshold for _, threshold in sorted(found, key=lambda entry: entry[0])]


def _threshold(
    rule: Rule, value: str, operator: str, number: str, span: tuple[int, int], met: str, missed: str
) -> Threshold:
    condition = str(rule.keep)
    before, after = condition[: span[0]], condition[span[1] :]
    return Threshold(
        rule.name, re.sub(r"\s+", "", value), operator, float(number),
        f"{before}{met}{after}", f"{before}{missed}{after}",
    )  # fmt: skip
