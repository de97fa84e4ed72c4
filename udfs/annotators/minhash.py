"""minhash: the signature of near-duplicate detection; NULLs where a text has no words."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pydantic import Field, model_validator

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.lsh import candidate_probability, solve
from udfs.minhash import signature_array, signatures


class MinhashSettings(AnnotatorSettings):
    """Settings of the minhash annotator.

    At threshold 0.8 and 112 permutations: 14 bands × 8 rows, P(candidate | J = 0.8) = 0.924, P(0.5) = 0.053.
    """

    kind: Literal["minhash"] = Field("minhash", description="Which annotator")
    threshold: float = Field(0.8, gt=0, le=1, description="Jaccard similarity from which candidates must be found")
    recall: float = Field(0.9, gt=0, lt=1, description="P(candidate) that must be reached at the threshold")
    permutations: int = Field(112, ge=1, le=2048, description="Minima in a signature, at most")
    shingle_words: int = Field(5, ge=1, le=64, description="Words in a shingle; characters where no spaces are written")
    bands: int | None = Field(
        None, ge=1, le=512, description="Bands, with rows instead of what threshold and recall give"
    )
    rows: int | None = Field(None, ge=1, le=512, description="Rows of a band")
    seed: int = Field(0, ge=0, description="Seed of the permutations")

    @model_validator(mode="after")
    def _check(self) -> MinhashSettings:
        if (self.bands is None) != (self.rows is None):
            raise ValueError("bands and rows are given together, or neither")
        if self.bands is not None and self.rows is not None and self.bands * self.rows > self.permutations:
            raise ValueError(
                f"{self.bands} bands x {self.rows} rows need {self.bands * self.rows} permutations; "
                f"the setting permutations is {self.permutations}"
            )
        if self.bands is None and solve(self.threshold, self.permutations, self.recall) is None:
            best = max(candidate_probability(self.threshold, self.permutations, 1), 0.0)
            raise ValueError(
                f"{self.permutations} permutations find pairs at {self.threshold} with a probability of {best:.3f} at "
                f"most, not {self.recall}: raise permutations or threshold, or lower recall"
            )
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """(bands, rows), as given or solved."""
        if self.bands is not None and self.rows is not None:
            return self.bands, self.rows
        return solve(self.threshold, self.permutations, self.recall) or (self.permutations, 1)


def open_minhash(settings: MinhashSettings) -> Kernel:
    """The kernel of one task."""
    bands, rows = settings.shape

    def kernel(texts: pa.Array) -> pa.StructArray:
        return signature_array(
            signatures(texts, words=settings.shingle_words, bands=bands, rows=rows, seed=settings.seed)
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
