"""Settings of quality_filter: rules, and the published sets of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from jobs.runtime.models import NAME, SettingsModel
from udfs.heuristics.rule_sets import RULE_SETS


class Rule(SettingsModel):
    """One rule: what to keep, and what becomes of documents for which that can't be said.

    It has one of ``keep`` (a condition), ``keep_best`` (the best share of each stratum) and ``keep_probability`` (a draw).
    """

    name: str = Field(pattern=NAME, description="Name of the rule; it is the reason in `decisions`")
    keep: str | None = Field(None, min_length=1, description="SQL condition over annotations and documents columns")
    keep_best: float | None = Field(
        None, gt=0, lt=1, description="Share to keep: the best by `by` in each stratum of `per`"
    )
    by: str | None = Field(
        None, min_length=1, description="For keep_best: SQL number, more is better; -x for less is better"
    )
    per: list[str] = Field(
        default_factory=list, description="For keep_best: columns or SQL whose values make a stratum"
    )
    unit: Literal["documents", "tokens"] = Field("documents", description="For keep_best: what the share is of")
    keep_probability: str | None = Field(
        None, min_length=1, description="SQL number from 0 to 1: keep with this probability, by a draw per document"
    )
    where: str | None = Field(
        None, min_length=1, description="SQL condition: which documents the rule is for; default: all"
    )
    on_null: Literal["drop", "keep"] = Field("drop", description="When the outcome is NULL: drop as NAME_null, or keep")
    on_nan: Literal["drop", "keep"] = Field(
        "drop", description="When a value it names is NaN: drop as NAME_nan, or keep"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Rule:
        kinds = [name for name in ("keep", "keep_best", "keep_probability") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(
                f"rule '{self.name}' needs one of keep, keep_best and keep_probability; it has {', '.join(kinds) or 'none'}"
            )
        if (self.by is None) == (self.keep_best is not None):
            raise ValueError(f"rule '{self.name}': keep_best and by go together")
        if self.keep_best is None and (self.per or self.unit != "documents"):
            raise ValueError(f"rule '{self.name}': per and unit are for keep_best")
        return self

    @property
    def expressions(self) -> list[str]:
        """All SQL in the rule."""
        return [text for text in (self.keep, self.by, self.keep_probability, self.where, *self.per) if text is not None]

    @property
    def limit(self) -> str:
        """What a document must meet, in one line."""
        if self.keep is not None:
            return self.keep
        if self.keep_probability is not None:
            return f"draw < {self.keep_probability}"
        per = f" per {', '.join(self.per)}" if self.per else ""
        return f"best {self.keep_best:g} of {self.unit} by {self.by}{per}"


class QualityFilterSettings(SettingsModel):
    """Settings of one quality_filter step."""

    kind: Literal["quality_filter"] = Field("quality_filter", description="Which decider")
    name: str = Field("quality_filter", pattern=NAME, description="Name of the step")
    presets: list[Literal["gopher", "c4", "fineweb"]] = Field(
        default_factory=list, description="Published sets of rules, before the own ones: gopher, c4, fineweb"
    )
    heuristics: str = Field("heuristics", pattern=NAME, description="For presets: the heuristics annotator's column")
    rules: list[Rule] = Field(
        default_factory=list, description="Rules, in the order in which a document's reason is looked for"
    )
    audit: int = Field(
        10, ge=0, le=10_000, description="Documents to sample for people to read, per rule, source and side; 0: none"
    )

    @field_validator("presets")
    @classmethod
    def _known(cls, presets: list[str]) -> list[str]:
        if len(set(presets)) < len(presets):
            raise ValueError("a preset stands twice")
        return presets

    @model_validator(mode="after")
    def _unique(self) -> QualityFilterSettings:
        names = [rule.name for rule in self.all_rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"rule name(s) used twice: {', '.join(twice)}")
        if not names:
            raise ValueError("a quality_filter needs rules or presets")
        return self

    @property
    def all_rules(self) -> list[Rule]:
        """The presets' rules and the own ones."""
        published = [
            Rule(name=rule.name, keep=rule.keep.format(column=self.heuristics))
            for preset in self.presets
            for rule in RULE_SETS[preset]
        ]
        return [*published, *self.rules]
