"""sklearn: a text's probability of the positive label, by a scikit-learn pipeline that starts from texts.

Models are read with skops, which builds only types that it knows to be harmless, or that the settings name: a pickle
would run whatever its author put into it.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from jobs.runtime.errors import SettingsError
from udfs.annotators.base import Annotator, Kernel
from udfs.annotators.classifier import FIELDS, ClassifierSettings, Scoring, check_labels, completed, what_it_depends_on
from udfs.model_files import loaded


class SklearnSettings(ClassifierSettings):
    """Settings of a scikit-learn classifier."""

    kind: Literal["sklearn"] = Field("sklearn", description="Which annotator")
    trusted: tuple[str, ...] = Field(
        (), description="Types in the model file that may be built, beside those skops trusts"
    )


def load_sklearn(path: str, trusted: tuple[str, ...]) -> Any:
    """A model from a skops file.

    Raises:
        SettingsError: if the file is none, or holds types that are not trusted.
    """
    import skops.io

    try:
        strange = sorted(set(skops.io.get_untrusted_types(file=path)) - set(trusted))
    except Exception as error:  # whatever a file that is no skops file makes of the reader
        raise SettingsError(
            f"{path} is no skops file ({type(error).__name__}: {error}). Save the pipeline with skops.io.dump; pickles and "
            "joblib files are not read, for they run code."
        ) from None
    if strange:
        raise SettingsError(
            f"{path} holds types that are not trusted: {', '.join(strange)}. If you know where the file comes from, list them "
            "in the annotator's `trusted`."
        )
    return skops.io.load(path, trusted=list(trusted))


def resolve_sklearn(settings: SklearnSettings) -> SklearnSettings:
    """Complete settings, checked against the model's classes.

    Raises:
        SettingsError: see ``load_sklearn`` and ``check_labels``; also for a model without probabilities.
    """
    found = SklearnSettings(**completed(settings).model_dump())
    model = load_sklearn(found.model, settings.trusted)
    if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
        raise SettingsError(
            f"the model {settings.model} gives no probabilities (predict_proba); wrap it in CalibratedClassifierCV"
        )
    check_labels(settings.model, found.positive, [str(label) for label in model.classes_])
    return found


def open_sklearn(settings: SklearnSettings) -> Kernel:
    """The kernel of one task, on resolved settings."""
    model = loaded("sklearn", settings.model, lambda path: load_sklearn(path, settings.trusted))
    names = [str(label) for label in model.classes_]
    # The columns of predict_proba follow classes_, which are sorted by name: never by what is good.
    column = names.index(str(settings.positive))

    def kernel(texts: pa.Array) -> pa.StructArray:
        scoring = Scoring(settings, texts)
        if not scoring.texts:  # scikit-learn refuses a matrix without rows
            return scoring.result(np.zeros(0), [], np.zeros(0))
        probabilities = np.asarray(model.predict_proba(scoring.texts), np.float64)
        best = probabilities.argmax(axis=1)
        return scoring.result(
            probabilities[:, column], [names[i] for i in best], probabilities[np.arange(len(best)), best]
        )

    return kernel


SKLEARN = Annotator(
    kind="sklearn",
    version=1,
    settings=SklearnSettings,
    fields=FIELDS,
    open=open_sklearn,
    resources=what_it_depends_on,
    resolve=resolve_sklearn,
    files=lambda settings: (settings.model,),
    places=frozenset({"model"}),
)
