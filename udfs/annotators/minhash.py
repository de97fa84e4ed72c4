"""minhash: the signature of near-duplicate detection; NULLs where a text has no words."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pydantic import Field

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.minhash import signature_array, signatures


class MinhashSettings(AnnotatorSettings):
    """Settings of the minhash annotator. 14 bands × 8 rows: P(candidate | J = 0.8) = 0.924, P(0.5) = 0.053."""

    kind: Literal["minhash"] = Field("minhash", description="Which annotator")
    words: int = Field(5, ge=1, le=64, description="Words in a shingle (characters in scripts written without spaces)")
    bands: int = Field(14, ge=1, le=256, description="Bands: two documents that share one are candidates")
    rows: int = Field(8, ge=1, le=64, description="Rows of a band; bands x rows is the number of permutations")
    seed: int = Field(0, ge=0, description="Seed of the permutations")


def open_minhash(settings: MinhashSettings) -> Kernel:
    """The kernel of one task."""

    def kernel(texts: pa.Array) -> pa.StructArray:
        return signature_array(
            signatures(texts, words=settings.words, bands=settings.bands, rows=settings.rows, seed=settings.seed)
        )

    return kernel


MINHASH = Annotator(
    kind="minhash",
    version=1,
    settings=MinhashSettings,
    fields=(
        ("shingles", "BIGINT", "n-grams of words, with repeats; 0 for a text without words"),
        ("fingerprint", "BINARY", "16 bytes of the word sequence: equal words, equal fingerprint"),
        ("bands", "ARRAY<BIGINT>", "a key for each band"),
        ("sketch", "BINARY", "one byte for each permutation"),
    ),
    open=open_minhash,
)
