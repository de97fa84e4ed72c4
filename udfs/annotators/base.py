"""What an annotator is: settings, a struct type, a version, and a kernel that is opened once per task."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import Field

from jobs.runtime.layers import canonical_json
from jobs.runtime.models import SettingsModel

Kernel = Callable[[pa.Array], pa.StructArray]
"""Texts (string array, no NULLs) to one struct per text."""


class AnnotatorSettings(SettingsModel):
    """Base of every annotator's settings; ``kind`` names the annotator and is the union's tag."""

    kind: str = Field(description="Which annotator")
    column_kind: ClassVar[str] = ""


@dataclass(frozen=True)
class Annotator:
    """A declaration, as the registry lists it.

    Attributes:
        kind: Its name in the settings, and the default name of its column.
        version: Raised whenever the same text would give another value.
        settings: The model of its settings.
        fields: Names and SQL types of the struct that it computes.
        open: From settings to a kernel; called once per task, on the executor.
        resources: From settings to what else the result depends on (a model's or vocabulary's sha-256).
        resolve: From settings as given to settings that say everything: read on the driver, which sees the model's folder.
            Checks what it finds there, so that a wrong label stops the job and not its tasks.
        files: From resolved settings to the files that ``open`` reads, by ``model_files.local_path``.
        places: Settings that only say where something lies; what is there, ``resources`` says.
    """

    kind: str
    version: int
    settings: type[AnnotatorSettings]
    fields: tuple[tuple[str, str, str], ...]
    open: Callable[[Any], Kernel]
    resources: Callable[[Any], str] = lambda settings: ""
    resolve: Callable[[Any], Any] = lambda settings: settings
    files: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    places: frozenset[str] = frozenset()

    def sql_type(self) -> str:
        """The column's type, with the version that every annotation carries."""
        inside = ", ".join(f"{name}: {sql_type}" for name, sql_type, _ in self.fields)
        return f"STRUCT<{inside}, version: STRING>"

    def comment(self) -> str:
        """What the column's fields mean."""
        return "; ".join(f"{name}: {meaning}" for name, _, meaning in self.fields)

    def identity(self, settings: AnnotatorSettings) -> str:
        """Equal only if the same text gives the same value: kind, version, and a hash of settings and resources."""
        given = settings.model_dump(mode="json", exclude=set(self.places)) if self.places else settings
        text = f"{canonical_json(given)}\n{self.resources(settings)}"
        return f"{self.kind}-{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
