"""Settings from layers: which wins, where each value came from, and what a user is told about a mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.errors import SettingsError
from jobs.runtime.layers import (
    RESERVED_ENVIRONMENT,
    Layer,
    Resolved,
    assignment_layers,
    canonical_json,
    environment_layers,
    fingerprint,
    parse_yaml,
    read_yaml,
    resolve,
)
from jobs.settings import Settings


def resolved(*texts: str, environment: dict[str, str] | None = None, sets: tuple[str, ...] = ()) -> Resolved[Settings]:
    """Settings of YAML texts (called 0.yaml, 1.yaml ...), an environment and assignments, in this order."""
    layers = [Layer(f"{i}.yaml", parse_yaml(text, f"{i}.yaml")) for i, text in enumerate(texts)]
    return resolve(Settings, [*layers, *environment_layers(environment or {}), *assignment_layers(sets)])


def problems(*texts: str, environment: dict[str, str] | None = None, sets: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        resolved(*texts, environment=environment, sets=sets)
    assert caught.value.exit_code == 2
    return caught.value.problems


# --- which layer wins, and where a value came from


def test_later_layers_win() -> None:
    texts = ("policy: base", "policy: mine")
    environment = {"WEIR_POLICY": "environment"}
    sets = ("policy=first", "policy=last")
    assert resolved().settings.policy == "default"
    assert resolved(texts[0]).settings.policy == "base"
    assert resolved(*texts).settings.policy == "mine"
    assert resolved(*texts, environment=environment).settings.policy == "environment"
    assert resolved(*texts, environment=environment, sets=sets).settings.policy == "last"


def test_origins_tell_the_layer_of_each_value() -> None:
    found = resolved(
        "warehouse: w\nspark: {master: 'local[1]', scratch: s}",
        "spark: {master: 'local[2]'}",
        environment={"WEIR_SPARK__DRIVER_MEMORY": "3g"},
        sets=("seed=7",),
    )
    assert found.origin_of("warehouse") == "0.yaml"
    assert found.origin_of("spark.scratch") == "0.yaml"
    assert found.origin_of("spark.master") == "1.yaml"
    assert found.origin_of("spark.driver_memory") == "environment WEIR_SPARK__DRIVER_MEMORY"
    assert found.origin_of("seed") == "--set seed"
    assert found.origin_of("policy") == "default"
    assert found.origin_of("spark.remote") == "default"


def test_mappings_merge_and_lists_and_values_replace() -> None:
    found = resolved(
        "sources: {a: {priority: 1, licence: MIT}, b: {priority: 2}}\nsurvivor: [url, doc_id]",
        "sources: {a: {priority: 9}}\nsurvivor: [bytes]",
    )
    assert {name: (s.priority, s.licence) for name, s in found.settings.sources.items()} == {
        "a": (9, "MIT"),
        "b": (2, None),
    }
    assert found.settings.survivor == ["bytes"]
    assert (found.origin_of("sources.a.priority"), found.origin_of("sources.a.licence")) == ("1.yaml", "0.yaml")


def test_a_list_that_is_replaced_takes_the_origins_of_its_entries_along() -> None:
    found = resolved("decide: [exact_dedup]", sets=("decide.0.exact_dedup.keep=none", "decide=[eligibility]"))
    assert found.origin_of("decide.0.exact_dedup.keep") == "--set decide"


# --- assignments


def test_an_assignment_reaches_into_a_list() -> None:
    text = "decide: [eligibility, {exact_dedup: {empty: keep}}, {quality_filter: {rules: [{name: a, keep: 'true'}]}}]"
    found = resolved(
        text, sets=("decide.1.exact_dedup.normalisation=none", "decide.2.quality_filter.rules.0.keep=bytes > 5")
    )
    first, second, third = found.settings.decide
    assert first.kind == "eligibility"
    assert (second.normalisation, second.empty) == ("none", "keep")  # type: ignore[union-attr]
    assert third.rules[0].keep == "bytes > 5"  # type: ignore[union-attr]
    assert found.origin_of("decide.1.exact_dedup.normalisation") == "--set decide.1.exact_dedup.normalisation"
    assert found.origin_of("decide.1.exact_dedup.empty") == "0.yaml"


def test_an_entry_of_a_list_can_be_replaced() -> None:
    assert resolved("survivor: [url, doc_id]", sets=("survivor.0=-bytes",)).settings.survivor == ["-bytes", "doc_id"]
    assert resolved("decide: [eligibility]", sets=("decide.0.exact_dedup={}",)).settings.decide[0].kind == "exact_dedup"


def test_an_entry_that_is_not_there() -> None:
    assert problems("decide: [exact_dedup]", sets=("decide.3.exact_dedup.keep=none",)) == [
        "--set decide.3.exact_dedup.keep: 'decide' has 1 entries, there is no 3 (they count from 0)"
    ]


def test_a_layer_is_not_changed_by_the_ones_after_it() -> None:
    """One read layer can be resolved again with other assignments, as the demo does."""
    layer = Layer("file", parse_yaml("decide: [{exact_dedup: {keep: best}}]\nsources: {a: {priority: 1}}", "file"))
    changed = resolve(Settings, [layer, *assignment_layers(["decide.0.exact_dedup.keep=none", "sources.a.priority=5"])])
    assert changed.settings.decide[0].keep == "none"  # type: ignore[union-attr]
    again = resolve(Settings, [layer]).settings
    assert (again.decide[0].keep, again.sources["a"].priority) == ("best", 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("assignment", ["policy", "=x", "  =x", ""])
def test_an_assignment_that_is_none(assignment: str) -> None:
    with pytest.raises(SettingsError, match=f"^--set takes NAME=VALUE, got '{assignment}'$"):
        assignment_layers([assignment])


def test_only_the_first_equals_sign_divides() -> None:
    (layer,) = assignment_layers([" spark.conf = {a: 'b=c'} "])
    assert layer == Layer("--set spark.conf", {"spark": {"conf": {"a": "b=c"}}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ("", None),
        ("word", "word"),
        ("'5'", "5"),
        ("[a, b]", ["a", "b"]),
        ("{documents: 5}", {"documents": 5}),
        ("statistics.words > 5", "statistics.words > 5"),
        ("2024-03-10", "2024-03-10"),
        ("2024-02-30", "2024-02-30"),
        ("2024-03-10T02:30:00Z", "2024-03-10T02:30:00Z"),
    ],
)
def test_values_are_read_as_yaml_but_dates_stay_text(text: str, value: Any) -> None:
    """A batch is often called by its day; no setting is a date, and 30 February would end in a traceback."""
    assert assignment_layers([f"a.b={text}"]) == [Layer("--set a.b", {"a": {"b": value}})]
    assert environment_layers({"WEIR_A__B": text}) == [Layer("environment WEIR_A__B", {"a": {"b": value}})]


def test_a_batch_may_be_a_day() -> None:
    assert resolved("batch: 2024-03-10").settings.batch == "2024-03-10"
    assert resolved(sets=("batch=2024-03-10",)).settings.batch == "2024-03-10"


def test_a_value_that_is_no_yaml_names_the_assignment() -> None:
    with pytest.raises(SettingsError, match=r"^--set survivor: '\[a' is not a valid value: .*line 1"):
        assignment_layers(["survivor=[a"])
    with pytest.raises(SettingsError, match=r"^WEIR_POLICY: '\{' is not a valid value"):
        environment_layers({"WEIR_POLICY": "{"})


# --- the environment


def test_the_environment_s_names_are_lower_case_paths() -> None:
    layers = environment_layers({"WEIR_B": "1", "WEIR_A__B__C": "x", "PATH": "/bin", "weir_a": "no", "XWEIR_A": "no"})
    assert layers == [
        Layer("environment WEIR_A__B__C", {"a": {"b": {"c": "x"}}}),
        Layer("environment WEIR_B", {"b": 1}),
    ]


def test_names_with_single_underscores_stay_whole() -> None:
    assert resolved(environment={"WEIR_SPARK__DRIVER_MEMORY": "3g"}).settings.spark.driver_memory == "3g"


def test_reserved_names_are_no_settings() -> None:
    assert {"WEIR_RUN_ID", "WEIR_MAVEN_REPOSITORY"} <= RESERVED_ENVIRONMENT
    assert environment_layers(dict.fromkeys(RESERVED_ENVIRONMENT, "x")) == []


def test_an_unknown_name_of_the_environment_is_named() -> None:
    assert problems(environment={"WEIR_POLCY": "x"}) == [
        "unknown setting 'polcy' (environment WEIR_POLCY); did you mean 'policy'?"
    ]


# --- YAML


@pytest.mark.parametrize(
    "text", ["policy: a\npolicy: b", "sources:\n  a: {priority: 1, priority: 2}", "{a: 1, 'a': 2}"]
)
def test_a_key_given_twice_is_refused(text: str) -> None:
    """The second would win without a word."""
    with pytest.raises(SettingsError, match=r"^x\.yaml is not valid YAML: the key '\w+' is given twice at line \d"):
        parse_yaml(text, "x.yaml")


def test_merge_keys_work_and_may_be_overridden() -> None:
    text = "base: &base {priority: 3, licence: MIT}\nsources:\n  a: {<<: *base, priority: 1}\n  b: *base"
    values = parse_yaml(text, "x.yaml")
    assert values["sources"] == {"a": {"priority": 1, "licence": "MIT"}, "b": {"priority": 3, "licence": "MIT"}}


@pytest.mark.parametrize(("text", "kind"), [("- a\n- b", "list"), ("word", "str"), ("5", "int")])
def test_yaml_that_is_no_mapping(text: str, kind: str) -> None:
    with pytest.raises(SettingsError, match=f"^x.yaml must hold settings by name, but holds a {kind}$"):
        parse_yaml(text, "x.yaml")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null"])
def test_an_empty_file_holds_no_settings(text: str) -> None:
    assert parse_yaml(text, "x.yaml") == {}


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: b: c", "\tx: 1", "a: 1\n---\nb: 2", "? [a, b]\n: 1", "a: !!python/object:os.system {}", "a: *no"],
)
def test_text_that_is_no_yaml(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^x\.yaml is not valid YAML: "):
        parse_yaml(text, "x.yaml")


def test_an_alias_inside_of_itself() -> None:
    assert problems("sources: &s {a: *s}") == ["0.yaml: a YAML alias (*name) stands inside of what it names"]


def test_a_file_is_read_with_its_path_as_origin(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_bytes("\ufeffpolicy: größer\n".encode())
    assert read_yaml(file) == Layer(str(file), {"policy": "größer"})


def test_a_file_that_can_t_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.yaml' does not exist; write one with: weir init"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(SettingsError, match="can't be read"):
        read_yaml(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"policy: \xe9")
    with pytest.raises(SettingsError, match=r"latin\.yaml' can't be read: .*utf-8"):
        read_yaml(tmp_path / "latin.yaml")


# --- mistakes


@pytest.mark.parametrize(
    ("text", "path", "nearest"),
    [
        ("polcy: x", "polcy", "policy"),
        ("validate_: {}", "validate_", "validate"),
        ("spark: {driver_memmory: 3g}", "spark.driver_memmory", "driver_memory"),
        ("sources: {a: {priorty: 1}}", "sources.a.priorty", "priority"),
        ("ingest: {a: {paths: [x], encodng: utf-8}}", "ingest.a.encodng", "encoding"),
        ("ingest: {a: {paths: [x], columns: {txt: body}}}", "ingest.a.columns.txt", "text"),
        ("validate: {coverge: {}}", "validate.coverge", "coverage"),
        ("validate: {coverage: {flor: 1}}", "validate.coverage.flor", "floor"),
        ("validate: {coverage: {floors: {a: {document: 1}}}}", "validate.coverage.floors.a.document", "documents"),
        ("annotate: {tokens: {tokeniser: x}}", "annotate.tokens.tokeniser", "tokenizer"),
        ("annotate: {mine: {kind: tokens, tokeniser: x}}", "annotate.mine.tokeniser", "tokenizer"),
        ("decide: [{exact_dedup: {normalization: none}}]", "decide.0.exact_dedup.normalization", "normalisation"),
        ("decide: [eligibility, {kind: exact_dedup, kep: best}]", "decide.1.exact_dedup.kep", "keep"),
        ("decide: [{quality_filter: {rules: [{name: a, keep: b, on_nul: drop}]}}]",
         "decide.0.quality_filter.rules.0.on_nul", "on_null"),
        ("decide: [{eligibility: {conditions: [{nam: a, name: b, keep: c}]}}]",
         "decide.0.eligibility.conditions.0.nam", "name"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_given_with_the_nearest_at_every_depth(text: str, path: str, nearest: str) -> None:
    assert problems(text) == [f"unknown setting '{path}' (0.yaml); did you mean '{nearest}'?"]


def test_an_unknown_name_that_is_near_to_none_lists_what_is_known() -> None:
    assert problems("decide: [{exact_dedup: {zzz: 1}}]") == [
        "unknown setting 'decide.0.exact_dedup.zzz' (0.yaml); known here: against, empty, fields, keep, kind, name, normalisation"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("decide: [exact_dedupe]", "setting 'decide.0' (0.yaml): unknown kind 'exact_dedupe'; did you mean 'exact_dedup'?"),
        ("annotate: {statistic: {}}",
         "setting 'annotate.statistic' (0.yaml): unknown kind 'statistic'; did you mean 'statistics'?"),
        ("decide: [{name: x, rules: []}]",
         "setting 'decide.0' (0.yaml): nothing says of which kind it is; give its `kind`"),
    ],
)  # fmt: skip
def test_an_unknown_kind(text: str, problem: str) -> None:
    assert [p.split("; known here")[0] for p in problems(text)] == [problem]


def test_an_assignment_is_named_although_it_goes_into_a_union() -> None:
    assert problems("decide: [{kind: exact_dedup}]", sets=("decide.0.kep=none",)) == [
        "unknown setting 'decide.0.kep' (--set decide.0.kep); did you mean 'keep'?"
    ]
    assert problems(environment={"WEIR_ANNOTATE__TOKENS__SPLT": "gpt2"}) == [
        "unknown setting 'annotate.tokens.splt' (environment WEIR_ANNOTATE__TOKENS__SPLT); did you mean 'split'?"
    ]


def test_all_problems_are_told_at_once() -> None:
    text = "polcy: x\nseed: many\ningest: {web: {path: [a], format: csv}}\nsources: {a: {use: maybe}}"
    sets = ("survivor=5", "spark.text_rows_per_batch=0")
    found = problems(text, sets=sets)
    for part in (
        "unknown setting 'polcy' (0.yaml); did you mean 'policy'?",
        "setting 'seed' (0.yaml): Input should be a valid integer",
        "unknown setting 'ingest.web.path' (0.yaml); did you mean 'paths'?",
        "setting 'ingest.web.paths' is missing (0.yaml)",
        "setting 'ingest.web.format' (0.yaml): Input should be 'jsonl', 'parquet', 'delta' or 'text', got 'csv'",
        "setting 'sources.a.use' (0.yaml): Input should be 'allowed', 'evaluation_only' or 'forbidden', got 'maybe'",
        "setting 'survivor' (--set survivor): Input should be a valid list, got 5",
        "setting 'spark.text_rows_per_batch' (--set spark.text_rows_per_batch): Input should be greater than or equal to 1",
    ):
        assert sum(problem.startswith(part) for problem in found) == 1, part
    assert len(found) == 8
    with pytest.raises(SettingsError, match=r"^8 problems:\n  - "):
        resolved(text, sets=sets)


@pytest.mark.parametrize("value", ["20240310", "1.5", "no", "007"])
def test_a_word_that_yaml_reads_as_a_number_is_refused_with_the_remedy(value: str) -> None:
    """``007`` must not quietly become the source 7."""
    (problem,) = problems(f"batch: {value}")
    assert problem.startswith("setting 'batch' (0.yaml): Input should be a valid string, got ")
    assert "in quotes it is text" in problem
    assert resolved(f"batch: '{value}'").settings.batch == value
    assert resolved(sets=(f'batch="{value}"',)).settings.batch == value


def test_a_problem_of_a_whole_section_names_the_section_and_its_file() -> None:
    assert problems("ingest: {web: {paths: [a], ids: given}}") == [
        "setting 'ingest.web' (0.yaml): ids: given needs columns.doc_id, the field that holds the id"
    ]


def test_long_values_are_cut() -> None:
    (problem,) = problems(f"seed: {'x' * 500}")
    assert problem.endswith("...")
    assert len(problem) < 200


# --- fingerprints


def test_equal_settings_have_equal_fingerprints_whatever_their_order() -> None:
    assert canonical_json({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'
    assert fingerprint({"a": 1, "b": {"c": 2, "d": 3}}) == fingerprint({"b": {"d": 3, "c": 2}, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": "1"})
    assert len(fingerprint({})) == 64


def test_a_model_and_its_values_have_one_fingerprint() -> None:
    settings = resolved("policy: mine").settings
    assert fingerprint(settings) == fingerprint(settings.model_dump(mode="json"))
    assert fingerprint(settings) != fingerprint(resolved().settings)
