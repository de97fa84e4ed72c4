"""Annotators: token counts against another tokenizer, what their identity depends on, and the one pass over all."""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.types import parse_type
from udfs.annotators.base import Annotator, AnnotatorSettings, Kernel
from udfs.annotators.exact_key import ExactKeySettings
from udfs.annotators.fasttext_classifier import FastTextSettings
from udfs.annotators.heuristics import HeuristicsSettings
from udfs.annotators.language import LanguageSettings
from udfs.annotators.minhash import MinhashSettings
from udfs.annotators.one_pass import CARRIED, one_pass, output_schema
from udfs.annotators.perplexity import PerplexitySettings
from udfs.annotators.registry import ANNOTATORS
from udfs.annotators.sklearn_classifier import SklearnSettings
from udfs.annotators.statistics import StatisticsSettings
from udfs.annotators.tokens import TOKENS, TokensSettings, open_tokens, vocabulary_bytes, vocabulary_sha256

pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")

TEXTS = [
    "",
    " ",
    "\n",
    "Hello, world!",
    "The ferry leaves at nine; tickets aren't sold on board, they're sold at the quay. I'LL WAIT.",
    "<|endoftext|>",
    "a<|fim_prefix|>b<|endofprompt|>",
    "<|endoftext",
    "日本語のテキストと漢字、ひらがな。",
    "Große Straße, déjà vu, naïve café, Ünïcödé",
    "Привет, мир! Съешь ещё этих мягких французских булок.",
    "مرحبا بالعالم",
    "हिन्दी में पाठ",
    "😀👍🏽👨‍👩‍👧‍👦🇩🇪",
    "def f(x: int) -> int:\n    return x ** 2  # squared\n\n\tif True:\r\n\t\tpass\n",
    "1234567890 3.14159 1,000,000 0xFF 2024-03-10T02:30:00Z",
    "   leading and trailing   \n\n\n  many   spaces\t\ttabs ",
    "https://www.example.com/a/b?c=d&e=f#g user@example.com",
    "\x00\x01\ufffd\ufeff\u200b\u00ad",
    "e\u0301 vs \u00e9, ﬁ, Ａ, ①",
    "a" * 200,
    "ab " * 200,
    "!?.,;:-_()[]{}<>/\\|@#$%^&*+=~`'\"" * 3,
    "lower UPPER Title mIxEd camelCase snake_case kebab-case",
]


def other_tokenizer(name: str) -> Any:
    """The second opinion. Imported here, for on import it uses what Python's library has declared outdated."""
    import bpe_openai

    return bpe_openai.get_encoding(name)


def counts(kernel_settings: TokensSettings, texts: list[str]) -> list[int]:
    found = open_tokens(kernel_settings)(pa.array(texts, pa.string())).field("count")
    assert found.type == pa.int64()
    values: list[int] = found.to_pylist()
    return values


# --- tokens


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_counts_are_those_of_another_tokenizer(name: str) -> None:
    """Ordinary tokens: a text that spells a special token is counted as text."""
    other = other_tokenizer(name)
    assert counts(TokensSettings(tokenizer=name), TEXTS) == [len(other.encode_ordinary(text)) for text in TEXTS]


@functools.cache
def cl100k() -> Kernel:
    return open_tokens(TokensSettings())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), max_size=6))
def test_counts_of_any_texts_are_those_of_another_tokenizer(texts: list[str]) -> None:
    other = other_tokenizer("cl100k_base")
    found = cl100k()(pa.array(texts, pa.string())).field("count").to_pylist()
    assert found == [len(other.encode_ordinary(text)) for text in texts]


def test_a_text_s_count_depends_on_the_text_alone() -> None:
    """Not on its neighbours in the batch, on slices, or on the width of Arrow's offsets."""
    whole = cl100k()(pa.array(TEXTS)).field("count").to_pylist()
    assert [cl100k()(pa.array([text])).field("count")[0].as_py() for text in TEXTS] == whole
    assert cl100k()(pa.array(TEXTS)[5:11]).field("count").to_pylist() == whole[5:11]
    assert cl100k()(pa.array(TEXTS, pa.large_string())).field("count").to_pylist() == whole
    assert cl100k()(pa.array([], pa.string())).field("count").to_pylist() == []


def test_no_special_token_is_known_to_the_tokenizer() -> None:
    assert counts(TokensSettings(), ["<|endoftext|>" * 3])[0] > 10


def test_an_identity_says_what_a_count_depends_on() -> None:
    first, second = TOKENS.identity(TokensSettings()), TOKENS.identity(TokensSettings(tokenizer="o200k_base"))
    assert first == TOKENS.identity(TokensSettings(tokenizer="cl100k_base"))
    assert first != second
    assert first.startswith("tokens-1-")
    newer = Annotator("tokens", 2, TokensSettings, TOKENS.fields, TOKENS.open, TOKENS.resources)
    assert newer.identity(TokensSettings()).startswith("tokens-2-")


def tiktoken_file(path: Path, words: list[bytes]) -> Path:
    """A vocabulary: a token and its rank a line."""
    path.write_bytes(b"".join(base64.b64encode(word) + f" {rank}\n".encode() for rank, word in enumerate(words)))
    return path


BYTES = [bytes([i]) for i in range(256)]


def test_a_vocabulary_of_one_s_own(tmp_path: Path) -> None:
    file = tiktoken_file(tmp_path / "v.tiktoken", [*BYTES, b"he", b"ll", b"hell", b" w"])
    mine = TokensSettings(tokenizer=str(file), split="gpt2")
    assert counts(mine, ["hello world", "", "é", "hellhell"]) == [2 + 1 + 4, 0, 2, 2]


def test_an_identity_changes_with_the_vocabulary_s_bytes(tmp_path: Path) -> None:
    """The same path with another content is another tokenizer: what was counted with the first is out of date."""
    file = tiktoken_file(tmp_path / "v.tiktoken", BYTES)
    first = TokensSettings(tokenizer=str(file), split="gpt2")
    before = TOKENS.identity(first)
    assert TOKENS.identity(TokensSettings(tokenizer=str(file), split="cl100k")) != before
    tiktoken_file(file, [*BYTES, b"he"])
    vocabulary_sha256.cache_clear()  # read once a process
    assert TOKENS.identity(first) != before
    assert vocabulary_bytes(first) == file.read_bytes()


def byte_letters() -> list[str]:
    """The letter that stands for each byte in byte-level BPE: itself where it is printable, else one from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def test_a_tokenizer_json(tmp_path: Path) -> None:
    """As the Hugging Face tokenizers library writes it: byte-level BPE."""
    letters = {letter: byte for byte, letter in enumerate(byte_letters())}
    merges = [["h", "e"], ["l", "l"], ["he", "ll"], [byte_letters()[32], "w"]]
    vocabulary = letters | {a + b: len(letters) + i for i, (a, b) in enumerate(merges)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content: dict[str, Any] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary, "merges": [" ".join(pair) for pair in merges]},
    }  # fmt: skip
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert counts(TokensSettings(tokenizer=str(file)), ["hello world", "", "hellhell"]) == [2 + 1 + 4, 0, 2]


# --- every annotator

SETTINGS: dict[str, AnnotatorSettings] = {
    "tokens": TokensSettings(),
    "statistics": StatisticsSettings(),
    "exact_key": ExactKeySettings(),
    "minhash": MinhashSettings(),
    "heuristics": HeuristicsSettings(),
    "language": LanguageSettings(),
    "fasttext": FastTextSettings(model=__file__, positive="good"),
    "sklearn": SklearnSettings(model=__file__, positive="good"),
    "perplexity": PerplexitySettings(model=__file__),
}
"""Of the models only the hash is looked at here."""


def test_the_registry_s_names() -> None:
    assert {kind: annotator.kind for kind, annotator in ANNOTATORS.items()} == {kind: kind for kind in ANNOTATORS}
    assert set(ANNOTATORS) == set(SETTINGS)


@pytest.mark.parametrize("kind", ANNOTATORS)
def test_every_field_says_what_it_means(kind: str) -> None:
    annotator = ANNOTATORS[kind]
    assert all(len(meaning) > 3 for _, _, meaning in annotator.fields)
    assert all(name in annotator.comment() for name, _, _ in annotator.fields)
    assert annotator.sql_type().endswith(", version: STRING>")


@pytest.mark.parametrize("kind", ANNOTATORS)
def test_identities_are_stable(kind: str) -> None:
    annotator = ANNOTATORS[kind]
    identity = annotator.identity(SETTINGS[kind])
    assert identity == annotator.identity(SETTINGS[kind].model_copy())
    assert identity.startswith(f"{kind}-{annotator.version}-")
    assert len(identity.rpartition("-")[2]) == 12


# --- the one pass


def batch(texts: list[str]) -> pa.RecordBatch:
    columns = {
        "doc_id": pa.array([f"d{i}" for i in range(len(texts))], pa.string()),
        "source": pa.array(["web"] * len(texts), pa.string()),
        "batch": pa.array(["main"] * len(texts), pa.string()),
        "text": pa.array(texts, pa.string()),
        "text_sha256": pa.array([bytes(32)] * len(texts), pa.binary()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


WANTED = [("mine", SETTINGS["tokens"]), ("statistics", SETTINGS["statistics"]), ("exact_key", SETTINGS["exact_key"])]


def test_columns_are_carried_by_name_and_every_struct_has_its_identity() -> None:
    (found,) = one_pass(WANTED)([batch(["Hello world", ""])])
    assert found.schema.names == [*CARRIED, "mine", "statistics", "exact_key"]
    for name in CARRIED:
        assert found.column(name).equals(batch(["Hello world", ""]).column(name))
    first, second = found.to_pylist()
    assert first["mine"] == {"count": 2, "version": TOKENS.identity(TokensSettings())}
    assert (second["mine"]["count"], second["exact_key"]["key"]) == (0, None)
    assert first["statistics"]["version"] == ANNOTATORS["statistics"].identity(StatisticsSettings())
    assert len(first["exact_key"]["key"]) == 32


def test_what_the_pass_gives_is_what_it_says_to_spark() -> None:
    """A column more, fewer or in another order would be taken for another by Spark."""
    (found,) = one_pass(WANTED)([batch(["Hello world"])])
    columns = [f.name for f in found.schema]
    arrow = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double", pa.binary(): "binary"}

    def spelled(data_type: pa.DataType) -> str:
        if not pa.types.is_struct(data_type):
            return arrow[data_type]
        return f"struct<{','.join(f'{data_type.field(i).name}:{spelled(data_type.field(i).type)}' for i in range(data_type.num_fields))}>"

    declared = output_schema(WANTED).replace("`", "")
    as_struct = "STRUCT<" + ", ".join(
        f"{name}: {declared.split(f'{name} ', 1)[1].split(f', {following} ', 1)[0]}"
        for name, following in zip(columns, [*columns[1:], "#"], strict=True)
    )
    assert parse_type(as_struct + ">").simpleString() == (
        "struct<" + ",".join(f"{f.name}:{spelled(f.type)}" for f in found.schema) + ">"
    )


def test_slices_and_empty_batches() -> None:
    texts = ["Hello world", "", "a b c", "日本語"]
    (whole,) = one_pass(WANTED)([batch(texts)])
    parts = list(one_pass(WANTED)([batch(texts)[:1], batch([]), batch(texts)[1:3], batch(texts)[3:]]))
    assert [part.num_rows for part in parts] == [1, 0, 2, 1]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


def test_a_batch_without_a_column_is_an_error() -> None:
    with pytest.raises(KeyError):
        list(one_pass(WANTED)([batch(["a"]).drop_columns(["source"])]))


def test_a_kernel_is_opened_once_a_task_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def opening(given_settings: StatisticsSettings) -> object:
        opened.append(given_settings)
        return ANNOTATORS["exact_key"].open(given_settings)

    counting = Annotator("statistics", 1, StatisticsSettings, (("key", "BINARY", "key"),), opening)  # type: ignore[arg-type]
    monkeypatch.setitem(ANNOTATORS, "statistics", counting)
    run = one_pass([("s", StatisticsSettings())])
    assert opened == []
    list(run([batch(["a"]), batch(["b"])]))
    assert len(opened) == 1
