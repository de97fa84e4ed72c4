"""``weir quality-filter --preview``: what each rule and each threshold of a step would keep. Writes nothing.

A sample of the documents that the earlier steps keep is drawn by hash and judged; so the preview comes before the step,
and shows the same each time. There is no best threshold without the budget: given the tokens that a training run will read,
it says how many epochs what is kept would be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.deciding.draws import draw
from jobs.deciding.step import candidates_of
from jobs.quality.previewing import ALL, Choices, Kept, Preview, preview
from jobs.quality_filter import JOB, QualityFilterSettings, annotators_of
from jobs.runtime.display import print_table
from jobs.runtime.errors import SettingsError
from jobs.runtime.looking import previewing_context
from jobs.runtime.session import JOB_CONF, configured, get_session, stop_own_session

if TYPE_CHECKING:
    from jobs.settings import Settings

SAMPLE = 100_000
LARGEST_SAMPLE = 2_000_000
"""Of documents whose values one driver holds easily."""
BAR = 24
COLUMNS_OF_SOURCES = 6


@dataclass(frozen=True)
class PreviewOptions:
    """What the command line asks for: documents to look at, and the tokens that training will read, if known."""

    sample: int = SAMPLE
    budget_tokens: int | None = None


def check_options(options: PreviewOptions, settings: Settings) -> None:
    """Refuse numbers that make no sense.

    Raises:
        SettingsError: naming the value and the limit.
    """
    if not 1 <= options.sample <= LARGEST_SAMPLE:
        raise SettingsError(f"--sample is {options.sample:,}; it must be from 1 to {LARGEST_SAMPLE:,} documents")
    if options.budget_tokens is None:
        return
    if options.budget_tokens < 1:
        raise SettingsError(f"--budget-tokens is {options.budget_tokens:,}; it must be at least 1")
    if "tokens" not in settings.annotate:
        raise SettingsError(
            "--budget-tokens needs counted tokens, and the setting 'annotate' has no annotator called tokens; "
            "add annotate: {tokens: {}}, then run: weir annotate"
        )


def print_previews(settings: Settings, steps: Sequence[str], options: PreviewOptions, as_json: bool) -> int:
    """Preview the steps, in order; returns the exit code.

    Raises:
        SettingsError: for options or rules that can't be used.
        InputContractError: if the documents have not been annotated, or an earlier step has not decided yet.
    """
    check_options(options, settings)
    spark = get_session(settings.spark)
    try:
        with configured(spark, JOB_CONF):
            found = [preview_step(spark, settings, step, options.sample) for step in steps]
    finally:
        stop_own_session(spark)
    for made in found:
        if not as_json:
            print_preview(made, options.budget_tokens)
    if as_json:
        previews = [as_values(made, options.budget_tokens) for made in found]
        sys.stdout.write(
            json.dumps({"status": "done", "exit_code": 0, "previews": previews}, ensure_ascii=False) + "\n"
        )
    return 0


def preview_step(spark: SparkSession, settings: Settings, step: str, sample: int) -> Preview:
    """The preview of one step, on about ``sample`` of its candidates, or on all if there are no more."""
    own: QualityFilterSettings = settings.step(step)
    candidates = candidates_of(previewing_context(spark, settings, JOB, step))
    needed = set(annotators_of(settings, own.all_rules)) | ({"tokens"} & candidates.has)
    documents = candidates.annotated(sorted(needed)) if needed else candidates.documents
    total = candidates.documents.count()
    if total > sample:
        documents = documents.where(draw(f"preview/{step}", settings.seed) < F.lit(sample / total))
    documents = documents.persist()
    try:
        return preview(documents, own.all_rules, step=step, seed=settings.seed, candidates=total)
    finally:
        documents.unpersist()


def epochs(kept: Kept, scale: float, budget: int | None) -> float | None:
    """How often a budget of tokens reads what is kept; None where that can't be said."""
    if budget is None or not kept.tokens:
        return None
    return budget / (kept.tokens * scale)


def as_values(made: Preview, budget: int | None) -> dict[str, Any]:
    """The preview as JSON values, with epochs where there is a budget."""

    def entries(kept: Sequence[Kept]) -> list[dict[str, Any]]:
        return [{**asdict(entry), "epochs": epochs(entry, made.scale, budget)} for entry in kept]

    return {
        **asdict(made),
        "scale": made.scale,
        "budget_tokens": budget,
        "all_rules": entries(made.all_rules),
        "thresholds": [
            {**asdict(entry), "choices": [{**asdict(c), "kept": entries(c.kept)} for c in entry.choices]}
            for entry in made.thresholds
        ],
    }


def print_preview(made: Preview, budget: int | None) -> None:
    """A preview as tables."""
    out = sys.stdout
    whole = made.sampled == made.candidates
    size = "all of them" if whole else f"a sample of {made.sampled:,}; documents and tokens below are estimates"
    out.write(f"step '{made.step}': {made.candidates:,} documents come to it; looked at: {size}\n")
    if not made.sampled:
        return
    out.write("\n")
    print_table(
        "what the step keeps", ["source", "documents", "kept", "share", "tokens", "kept tokens", "token share", "epochs"],
        [_kept_row(entry, made.scale, budget) for entry in made.all_rules],
        right=["documents", "kept", "share", "tokens", "kept tokens", "token share", "epochs"],
    )  # fmt: skip
    sources = [entry.source for entry in made.all_rules if entry.source != ALL]
    shown = sources if len(sources) <= COLUMNS_OF_SOURCES else []
    out.write("\n")
    print_table(
        "what each rule keeps by itself", ["rule", "limit", "kept", *shown, "only it drops", "NULL or NaN", "of these kept"],
        [
            [r.rule, r.limit, *[_share(k) for k in r.kept if k.source in (ALL, *shown)],
             _scaled(r.only, made.scale), _scaled(r.unknown, made.scale), _scaled(r.unknown_kept, made.scale)]
            for r in made.rules
        ],
        right=["kept", *shown, "only it drops", "NULL or NaN", "of these kept"],
    )  # fmt: skip
    for entry in made.thresholds:
        out.write("\n")
        _print_choices(entry, made, shown, budget)
    out.write("\n")
    if any(entry.tokens is None for entry in made.all_rules):
        out.write(
            "Tokens are not counted; the annotator tokens would, and then --budget-tokens says what a budget makes of it.\n"
        )
    elif budget is None:
        out.write(
            "There is no best threshold without the budget: --budget-tokens N shows how often N tokens read what is kept.\n"
        )
    else:
        out.write(f"epochs: how often a budget of {budget:,} tokens reads what is kept.\n")
    out.write("Nothing was written.\n")


def _print_choices(entry: Choices, made: Preview, shown: Sequence[str], budget: int | None) -> None:
    words = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}.get(entry.operator, "best share by")
    at = f"{entry.value} {words}" if entry.operator != "best share" else f"{words} {entry.value}"
    rows = []
    for choice in entry.choices:
        whole = choice.kept[0]
        share = whole.documents / whole.of_documents if whole.of_documents else 0.0
        rows.append(
            [
                f"{choice.at:.6g}" + (" (now)" if choice.present else ""),
                _scaled(whole.documents, made.scale),
                f"{share:.1%}",
                "█" * round(share * BAR),
                _scaled(whole.tokens, made.scale),
                _epochs(epochs(whole, made.scale, budget)),
                *[_share(kept) for kept in choice.kept if kept.source in shown],
            ]
        )
    print_table(
        f"rule '{entry.rule}': the step would keep, with", [at, "documents", "share", "", "tokens", "epochs", *shown],
        rows, right=[at, "documents", "share", "tokens", "epochs", *shown],
    )  # fmt: skip


def _kept_row(kept: Kept, scale: float, budget: int | None) -> list[object]:
    return [
        kept.source, _scaled(kept.of_documents, scale), _scaled(kept.documents, scale), _share(kept),
        _scaled(kept.of_tokens, scale), _scaled(kept.tokens, scale),
        "-" if not kept.of_tokens or kept.tokens is None else f"{kept.tokens / kept.of_tokens:.1%}",
        _epochs(epochs(kept, scale, budget)),
    ]  # fmt: skip


def _share(kept: Kept) -> str:
    return f"{kept.documents / kept.of_documents:.1%}" if kept.of_documents else "-"


def _scaled(number: int | None, scale: float) -> int | None:
    return None if number is None else round(number * scale)


def _epochs(number: float | None) -> str:
    return "-" if number is None else f"{number:,.2f}"
