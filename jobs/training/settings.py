"""Settings of train_classifier: where the labels come from, how many documents, what is fitted, where the model goes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from jobs.deciding.against import AgainstSettings
from jobs.runtime.models import NAME, SettingsModel
from jobs.runtime.tables import TableRef
from udfs.training import FastTextTraining, SklearnTraining

POSITIVE, NEGATIVE = "positive", "negative"
"""The labels where positives and negatives are told apart by the settings, not by a judge."""


def address_of(table: str) -> TableRef:
    """A table named in the settings: a catalog name, a folder or a URI, as in ``against``."""
    return AgainstSettings(table=table).documents


class Positives(SettingsModel):
    """Good examples: the rows of a table of their own, or the documents that meet a condition."""

    table: str | None = Field(None, description="A Delta table (name, folder, URI) with ids and texts")
    doc_id: str = Field("doc_id", description="Column of that table with the id")
    text: str = Field("text", description="Column of that table with the text")
    where: str | None = Field(
        None, description="Or: SQL condition over documents columns and annotations, for example source = 'wiki'"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Positives:
        if (self.table is None) == (self.where is None):
            raise ValueError("give either table or where")
        return self


class Negatives(SettingsModel):
    """Bad examples: the documents that meet a condition."""

    where: str = Field(min_length=1, description="SQL condition over documents columns and annotations")


class Labels(SettingsModel):
    """Verdicts of a judge (a person, a model) on some of the documents."""

    table: str = Field(min_length=1, description="A Delta table (name, folder, URI) with document ids and labels")
    doc_id: str = Field("doc_id", description="Column of that table with the document's id")
    label: str = Field("label", description="Column of that table with the label (text, whole numbers, true or false)")


class ClassifierTraining(SettingsModel):
    """What all kinds of classifiers have in common."""

    kind: str = Field(description="Which classifier")
    positives: Positives | None = Field(None, description="Good examples")
    negatives: Negatives | None = Field(
        None, description="Bad examples; default: drawn from all documents that are not among the good ones"
    )
    labels: Labels | None = Field(None, description="Instead of both: labels given by a judge")
    positive: str | None = Field(None, min_length=1, description="With labels: the one whose probability is the score")
    maximum: int = Field(100_000, ge=1, le=2_000_000, description="Most documents of each label, drawn by hash")
    balance: bool | None = Field(
        None, description="Draw as many of each label as the rarest has; default: yes, with labels no"
    )
    held_out: float = Field(0.2, gt=0, lt=1, description="Share that is kept for the metrics, by hash")
    group: Literal["near_dup", "text"] = Field(
        "near_dup",
        description="What stays on one side: near-duplicates as decided (as far as known), or equal texts only",
    )
    characters: int = Field(20_000, ge=1, description="Read so many characters from a text's beginning")
    fold_case: bool = Field(True, description="Read a lower-case copy")
    folds: int = Field(4, ge=0, le=10, description="Folds for finding doubtful labels; 0: don't look for them")
    folder: str | None = Field(
        None, description="Local folder of the model; default: models/NAME beside the warehouse's folder"
    )
    replace: bool = Field(False, description="Put the new model in the place of another one in the folder")

    @model_validator(mode="after")
    def _one_way(self) -> ClassifierTraining:
        problems = []
        if (self.positives is None) == (self.labels is None):
            problems.append("give either positives or labels")
        if self.labels is not None and self.negatives is not None:
            problems.append("negatives go with positives; labels say themselves what is what")
        if self.labels is not None and self.positive is None:
            problems.append("labels need positive: the label whose probability is the score")
        if self.labels is None and self.positive is not None:
            problems.append("positive goes with labels; without them the label is called positive")
        if self.folds == 1:
            problems.append("folds: 2 at least, or 0")
        if self.folder is not None and ("://" in self.folder or not self.folder.strip()):
            problems.append(
                f"folder '{self.folder}' is no local folder; copy the model from there to where it is needed"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def positive_label(self) -> str:
        """The label whose probability is the score."""
        return POSITIVE if self.positive is None else self.positive

    @property
    def positive_unlabelled(self) -> bool:
        """Whether the negatives are merely documents of which nobody has said that they are positive."""
        return self.labels is None and self.negatives is None

    @property
    def balanced(self) -> bool:
        """Whether the same number of each label is drawn."""
        return self.labels is None if self.balance is None else self.balance

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """The SQL conditions, with the names of their settings."""
        found = []
        if self.positives is not None and self.positives.where is not None:
            found.append(("positives.where", self.positives.where))
        if self.negatives is not None:
            found.append(("negatives.where", self.negatives.where))
        return found

    @property
    def outside(self) -> TableRef | None:
        """The table that is read beside the warehouse's own: the good examples, or the labels."""
        if self.labels is not None:
            return address_of(self.labels.table)
        if self.positives is not None and self.positives.table is not None:
            return address_of(self.positives.table)
        return None


class FastTextClassifier(FastTextTraining, ClassifierTraining):
    """A fastText classifier."""

    kind: Literal["fasttext"] = Field("fasttext", description="Which classifier")


class SklearnClassifier(SklearnTraining, ClassifierTraining):
    """A scikit-learn classifier."""

    kind: Literal["sklearn"] = Field("sklearn", description="Which classifier")


AnyClassifier = Annotated[FastTextClassifier | SklearnClassifier, Field(discriminator="kind")]
Classifiers = dict[Annotated[str, Field(pattern=NAME)], AnyClassifier]
"""By name; the name is the run's step, and the model's folder is called by it."""
