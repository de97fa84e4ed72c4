"""tokens: how many tokens a text has, by a named tokenizer whose vocabulary is hashed. Never an estimate.

Counts ordinary tokens: text that happens to spell a special token (``<|endoftext|>``) is counted as text.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.util
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.arrow_text import text_buffers
from udfs.model_files import local_path

SHIPPED = {"cl100k_base": "cl100k", "o200k_base": "o200k"}
"""Vocabularies that an installed package ships, and their rule for cutting text into words."""


class TokensSettings(AnnotatorSettings):
    """Settings of the tokens annotator."""

    kind: Literal["tokens"] = Field("tokens", description="Which annotator")
    tokenizer: str = Field(
        "cl100k_base",
        description="cl100k_base, o200k_base, or the path of a tokenizer.json, a .tiktoken or a SentencePiece .model file",
    )
    split: str | None = Field(
        None, description="For a .tiktoken file: its rule for cutting text (gpt2, cl100k, o200k, qwen2 ...)"
    )

    @field_validator("tokenizer")
    @classmethod
    def _exists(cls, value: str) -> str:
        if value not in SHIPPED and not Path(value).is_file():
            raise ValueError(f"neither one of {', '.join(SHIPPED)} nor a file")
        return value

    @model_validator(mode="after")
    def _split(self) -> TokensSettings:
        if self.tokenizer.endswith(".tiktoken") and self.split is None:
            raise ValueError(
                "a .tiktoken file doesn't say how text is cut into words: set `split` too (cl100k, o200k ...)"
            )
        return self


def vocabulary_bytes(settings: TokensSettings) -> bytes:
    """The vocabulary file's content."""
    if settings.tokenizer in SHIPPED:
        # Found without being imported: on import the package builds both its tokenizers, a second or so for each worker.
        package = importlib.util.find_spec("bpe_openai")
        if package is None or not package.submodule_search_locations:
            raise ModuleNotFoundError("the package bpe-openai, which ships the vocabularies, is not installed")
        data = Path(package.submodule_search_locations[0]) / "data" / f"{settings.tokenizer}.tiktoken.gz"
        return gzip.decompress(data.read_bytes())
    return Path(local_path(settings.tokenizer)).read_bytes()


@functools.lru_cache(maxsize=8)
def vocabulary_sha256(settings: TokensSettings) -> str:
    """SHA-256 (hex) of the vocabulary, whatever it is called or where it lies."""
    return hashlib.sha256(vocabulary_bytes(settings)).hexdigest()


def load_tokenizer(settings: TokensSettings) -> Any:
    """A tokenizer without special tokens.

    Made anew for every task: its cache of words grows without a bound, and goes with it.
    """
    import gigatoken

    if settings.tokenizer not in SHIPPED and not settings.tokenizer.endswith(".tiktoken"):
        file = local_path(settings.tokenizer)
        return gigatoken.Tokenizer.from_sentencepiece(file) if file.endswith(".model") else gigatoken.Tokenizer(file)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocabulary.tiktoken"
        vocabulary.write_bytes(vocabulary_bytes(settings))
        split = SHIPPED.get(settings.tokenizer, settings.split)
        return gigatoken.Tokenizer.from_tiktoken(str(vocabulary), pretokenizer=split, special_tokens={})


def count_tokens(tokenizer: Any, texts: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Tokens of each text, int64; an empty text has 0."""
    import awkward as ak

    values, offsets, _ = text_buffers(texts)
    strings = ak.Array(
        ak.contents.ListOffsetArray(
            ak.index.Index64(offsets),
            ak.contents.NumpyArray(values, parameters={"__array__": "char"}),
            parameters={"__array__": "string"},
        )
    )
    if len(texts) == 0:
        return np.zeros(0, np.int64)
    # One thread: Spark runs a task per core already.
    return np.asarray(ak.num(tokenizer.encode_batch(strings, parallel=False)), dtype=np.int64)


def open_tokens(settings: TokensSettings) -> Kernel:
    """The kernel of one task."""
    tokenizer = load_tokenizer(settings)

    def kernel(texts: pa.Array) -> pa.StructArray:
        return pa.StructArray.from_arrays([pa.array(count_tokens(tokenizer, texts))], names=["count"])

    return kernel


TOKENS = Annotator(
    kind="tokens",
    version=1,
    settings=TokensSettings,
    fields=(("count", "BIGINT", "tokens of the text by the named tokenizer, without special tokens"),),
    open=open_tokens,
    resources=vocabulary_sha256,
    files=lambda settings: () if settings.tokenizer in SHIPPED else (settings.tokenizer,),
)
