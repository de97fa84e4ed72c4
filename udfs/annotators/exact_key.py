"""exact_key: the key of exact deduplication, SHA-256 of the text after ``norm_v1``; NULL where nothing is left."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pydantic import Field

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.normalise import norm_v1_keys


class ExactKeySettings(AnnotatorSettings):
    """Settings of the exact_key annotator."""

    kind: Literal["exact_key"] = Field("exact_key", description="Which annotator")
    normalisation: Literal["norm_v1"] = Field("norm_v1", description="Normalisation before hashing")


def open_exact_key(settings: ExactKeySettings) -> Kernel:
    """The kernel of one task."""

    def kernel(texts: pa.Array) -> pa.StructArray:
        return pa.StructArray.from_arrays([norm_v1_keys(texts).cast(pa.binary())], names=["key"])

    return kernel


EXACT_KEY = Annotator(
    kind="exact_key",
    version=1,
    settings=ExactKeySettings,
    fields=(("key", "BINARY", "sha-256 of the normalised text, 32 bytes; NULL if that is empty"),),
    open=open_exact_key,
)
