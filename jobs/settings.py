"""All settings of a pipeline: one file is all that a user writes."""

from __future__ import annotations

from typing import Annotated, Any, Union

from pydantic import Field, field_validator, model_validator

from jobs.eligibility import EligibilitySettings
from jobs.exact_dedup import ExactDedupSettings
from jobs.ingesting.settings import IngestSettings
from jobs.near_dedup import NearDedupSettings
from jobs.quality_filter import QualityFilterSettings
from jobs.runtime.models import NAME, SettingsModel, SourceSettings, SparkSettings
from jobs.select import SelectSettings
from jobs.training.settings import Classifiers
from jobs.validate import ValidateSettings
from schemas.tables import DOCUMENTS
from udfs.annotators.exact_key import ExactKeySettings
from udfs.annotators.fasttext_classifier import FastTextSettings
from udfs.annotators.heuristics import HeuristicsSettings
from udfs.annotators.language import LanguageSettings
from udfs.annotators.minhash import MinhashSettings
from udfs.annotators.perplexity import PerplexitySettings
from udfs.annotators.registry import ANNOTATORS
from udfs.annotators.sklearn_classifier import SklearnSettings
from udfs.annotators.statistics import StatisticsSettings
from udfs.annotators.tokens import TokensSettings

AnyAnnotator = Annotated[
    TokensSettings
    | StatisticsSettings
    | ExactKeySettings
    | MinhashSettings
    | HeuristicsSettings
    | LanguageSettings
    | FastTextSettings
    | SklearnSettings
    | PerplexitySettings,
    Field(discriminator="kind"),
]
AnyDecider = Annotated[
    Union[EligibilitySettings, QualityFilterSettings, ExactDedupSettings, NearDedupSettings],  # noqa: UP007
    Field(discriminator="kind"),
]


class Settings(SettingsModel):
    """The whole pipeline."""

    warehouse: str = Field(
        "./warehouse", description="A folder, an object-store URI, or catalog.schema; each table is warehouse/TABLE"
    )
    policy: str = Field("default", pattern=NAME, description="Names a set of decisions; several can stand side by side")
    seed: int = Field(0, description="Seed of every hashed draw")
    batch: str = Field(
        "main",
        pattern=r"^[A-Za-z0-9_.\-]+$",
        description="What arrives together: a day, a delivery; increments go by it",
    )
    survivor: list[str] = Field(
        default_factory=lambda: ["source_priority", "doc_id"],
        min_length=1,
        description="Which of several duplicates stays: names, best first, - turns one round; NULL and NaN rank last",
    )
    sources: dict[str, SourceSettings] = Field(default_factory=dict, description="The source registry")
    ingest: dict[str, IngestSettings] = Field(default_factory=dict, description="Where each source's files are")
    annotate: dict[str, AnyAnnotator] = Field(
        default_factory=lambda: dict[str, AnyAnnotator](
            tokens=TokensSettings(), statistics=StatisticsSettings(), exact_key=ExactKeySettings()
        ),
        description="Annotators by the name of their column",
    )
    decide: list[AnyDecider] = Field(
        default_factory=lambda: list[AnyDecider]((EligibilitySettings(), ExactDedupSettings())),
        description="Deciding steps, in order; each sees the survivors of the earlier ones",
    )
    select: SelectSettings = Field(default_factory=SelectSettings, description="How decisions are consolidated")
    train: Classifiers = Field(default_factory=dict, description="Classifiers to train, by name; outside the pipeline")
    validate_: ValidateSettings = Field(default_factory=ValidateSettings, alias="validate", description="The gates")
    spark: SparkSettings = Field(default_factory=SparkSettings, description="The session")

    @field_validator("annotate", mode="before")
    @classmethod
    def _annotator_kinds(cls, value: Any) -> Any:
        """``tokens: {}`` is short for ``tokens: {kind: tokens}``."""
        if not isinstance(value, dict):
            return value
        return {
            name: {"kind": name, **(entry or {})} if isinstance(entry, dict) or entry is None else entry
            for name, entry in value.items()
        }

    @field_validator("annotate")
    @classmethod
    def _annotator_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        import re

        bad = sorted(name for name in value if not re.fullmatch(NAME, name))
        if bad:
            raise ValueError(f"an annotator can't be called {', '.join(bad)}; use letters, digits and _")
        # In `language`, as given with the documents, a found language may take over: see with_annotations.
        taken = sorted(name for name in value if name.lower() in {*DOCUMENTS.column_names} - {"language"})
        if taken:
            raise ValueError(
                f"an annotator can't be called {', '.join(taken)}, for rules would not know it from the documents' column "
                "of that name; give its kind instead: {another_name: {kind: ...}}"
            )
        return value

    @field_validator("decide", mode="before")
    @classmethod
    def _decider_kinds(cls, value: Any) -> Any:
        """``- exact_dedup: {...}`` is short for ``- {kind: exact_dedup, ...}``."""
        if not isinstance(value, list):
            return value
        rows: list[Any] = []
        for entry in value:
            if isinstance(entry, str):
                rows.append({"kind": entry})
            elif isinstance(entry, dict) and len(entry) == 1 and "kind" not in entry:
                ((kind, settings),) = entry.items()
                rows.append(
                    {"kind": kind, **(settings or {})} if isinstance(settings, dict) or settings is None else entry
                )
            else:
                rows.append(entry)
        return rows

    @model_validator(mode="after")
    def _check(self) -> Settings:
        from jobs.deciding.survivor import annotators_in
        from jobs.runtime.errors import SettingsError

        names = [step.name for step in self.decide]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"decide: the step name(s) {', '.join(twice)} stand twice; give one of them another `name`"
            )
        try:
            unknown = sorted(annotators_in(self.survivor) - set(self.annotate))
        except SettingsError as error:
            raise ValueError(str(error)) from None
        if unknown:
            raise ValueError(
                f"survivor: {', '.join(unknown)} is neither a documents column nor an annotator of the setting 'annotate'"
            )
        return self

    def step(self, name: str) -> Any:
        """The settings of a deciding step."""
        return next(step for step in self.decide if step.name == name)

    def steps_of(self, kind: str) -> list[str]:
        """Names of the steps of one decider, in order."""
        return [step.name for step in self.decide if step.kind == kind]

    def steps_before(self, name: str) -> list[str]:
        """Names of the steps that come before one."""
        names = [step.name for step in self.decide]
        return names[: names.index(name)]

    def annotator_identities(self) -> dict[str, str]:
        """Column name -> identity of every annotator."""
        return {name: ANNOTATORS[s.kind].identity(s) for name, s in sorted(self.annotate.items())}
