"""What is written about the settings is made from the settings, and says what is true of them."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

import pytest
import yaml

from jobs.runtime.layers import Layer, resolve
from jobs.runtime.reference import entries, print_settings, reference_markdown, reference_yaml, signature_curves
from jobs.settings import Settings

README = Path(__file__).parents[2] / "README.md"


def test_base_yaml_is_what_the_models_say() -> None:
    """Write it anew with: weir settings --reference yaml > conf/base.yaml."""
    assert (importlib.resources.files("conf") / "base.yaml").read_text(encoding="utf-8") == reference_yaml()


def test_the_readme_s_table_is_what_the_models_say() -> None:
    """Write it anew with: weir settings --reference markdown."""
    text = README.read_text(encoding="utf-8")
    table = text.partition("<!-- settings -->\n")[2].partition("<!-- /settings -->")[0]
    assert table.strip() == reference_markdown().strip()


def test_base_yaml_sets_nothing() -> None:
    """It is read as a layer below the user's files; a value in it would be a second default."""
    assert yaml.safe_load(reference_yaml()) is None


def test_every_setting_says_what_it_means() -> None:
    lacking = [entry.path for entry in entries() if not entry.meaning.strip()]
    assert not lacking


def test_every_setting_stands_once() -> None:
    paths = [entry.path for entry in entries()]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize(
    ("path", "kind", "default"),
    [
        ("warehouse", "text", "./warehouse"),
        ("seed", "whole number", "0"),
        ("survivor", "list of text", "[source_priority, doc_id]"),
        ("sources.NAME.use", "allowed or evaluation_only or forbidden", "allowed"),
        ("ingest.NAME.paths", "list of text", ""),
        ("ingest.NAME.columns.text", "text", "text"),
        ("annotate", "mapping of section", "{tokens, statistics, exact_key}"),
        ("annotate.NAME(tokens).tokenizer", "text", "cl100k_base"),
        ("decide", "list of section", "[eligibility, exact_dedup]"),
        ("decide[](exact_dedup).keep", "best or none", "best"),
        ("decide[](quality_filter).rules[].on_nan", "drop or keep", "drop"),
        ("validate.coverage.floors.NAME.tokens", "whole number", "0"),
        ("spark.conf", "mapping of text", "{}"),
    ],
)
def test_settings_as_they_are_described(path: str, kind: str, default: str) -> None:
    """At the top, in sections, mappings, lists and unions; by the name that people write (``validate``)."""
    entry = next(entry for entry in entries() if entry.path == path)
    assert (entry.kind, entry.default) == (kind, default)


def test_the_table_has_a_row_for_each_setting() -> None:
    rows = reference_markdown().splitlines()
    assert rows[:2] == ["| setting | type | default | meaning |", "|---|---|---|---|"]
    assert len(rows) == 2 + len(entries())
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)


def test_the_resolved_settings_are_shown_with_their_origins(capsys: pytest.CaptureFixture[str]) -> None:
    layer = Layer("mine.yaml", {"policy": "strict", "decide": [{"exact_dedup": {"keep": "none"}}]})
    print_settings(resolve(Settings, [layer]))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {line[0]: line[1:] for line in lines}
    assert shown["policy"] == ["strict", "mine.yaml"]
    assert shown["decide.0.keep"] == ["none", "mine.yaml"]
    assert shown["batch"] == ["main", "default"]
    assert "validate.coverage.floor.documents" in shown


def test_settings_say_what_signatures_will_find() -> None:
    """The S-curve of an annotated signature, and of a step that makes its own by its threshold."""
    settings = resolve(
        Settings, [Layer("test", {"annotate": {"minhash": {}}, "decide": [{"near_dedup": {}}]})]
    ).settings
    curve = "14 bands x 8 rows; P(candidate) at similarity 0.5: 0.053, 0.6: 0.211, 0.7: 0.565, 0.8: 0.924, 0.9: 1.000"
    assert signature_curves(settings) == {"annotate.minhash": curve}
    alone = resolve(
        Settings, [Layer("test", {"decide": [{"near_dedup": {"name": "near", "threshold": 0.8}}]})]
    ).settings
    assert signature_curves(alone) == {"decide.near": curve}
