"""Which settings are accepted and which are refused, with what message; the short forms; that they can't be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.deciding.survivor import DOCUMENT_COLUMNS
from jobs.ingesting.settings import ColumnMapping, IngestSettings
from jobs.registry import DECIDERS, JOBS, job_of_step, pipeline
from jobs.runtime.errors import SettingsError
from jobs.runtime.layers import Layer, assignment_layers, resolve
from jobs.settings import Settings
from schemas.tables import DOCUMENTS
from udfs.annotators.registry import ANNOTATORS


def make(**values: Any) -> Settings:
    return resolve(Settings, [Layer("test", values)]).settings


def refused(**values: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        make(**values)
    return str(caught.value)


def ingest(**values: Any) -> IngestSettings:
    return make(ingest={"web": {"paths": ["data"], **values}}).ingest["web"]


def ingest_refused(**values: Any) -> str:
    return refused(ingest={"web": {"paths": ["data"], **values}})


# --- the whole


def test_defaults_are_a_pipeline_that_can_run() -> None:
    settings = make()
    assert [step.name for step in settings.decide] == ["eligibility", "exact_dedup"]
    assert list(settings.annotate) == ["tokens", "statistics", "exact_key"]
    assert settings.survivor == ["source_priority", "doc_id"]
    assert (settings.policy, settings.batch, settings.seed) == ("default", "main", 0)


def test_settings_are_frozen_all_the_way_down() -> None:
    settings = make(ingest={"web": {"paths": ["a"]}})
    for model, name in (
        (settings, "policy"),
        (settings.ingest["web"], "format"),
        (settings.ingest["web"].columns, "text"),
        (settings.annotate["tokens"], "kind"),
        (settings.decide[0], "name"),
        (settings.validate_.coverage.floor, "documents"),
        (settings.spark, "master"),
    ):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(model, name, "other")


def test_defaults_are_not_shared_between_settings() -> None:
    assert make().survivor is not make().survivor
    assert make().annotate is not make().annotate


@pytest.mark.parametrize("policy", ["", "a b", "1a", "a-b", "a/b", "ä"])
def test_a_policy_must_be_a_name(policy: str) -> None:
    assert "setting 'policy'" in refused(policy=policy)


@pytest.mark.parametrize("batch", ["", "a b", "a/b", "a=b", "a'b", "ä"])
def test_a_batch_must_be_usable_as_a_folder(batch: str) -> None:
    assert "setting 'batch'" in refused(batch=batch)


@pytest.mark.parametrize("batch", ["2024-03-10", "delivery.7", "A_b", "1"])
def test_batches_as_people_call_them(batch: str) -> None:
    assert make(batch=batch).batch == batch


def test_numbers_must_be_finite() -> None:
    assert "setting 'seed'" in refused(seed=float("nan"))


# --- the survivor rule


def test_a_survivor_rule_may_name_columns_annotators_and_the_priority() -> None:
    rule = ["source_priority", "-statistics.letters", "-fetched_at", "bytes", "doc_id"]
    assert make(survivor=rule).survivor == rule


def test_a_survivor_rule_of_unknown_names() -> None:
    message = refused(survivor=["-quality.score", "nosuch", "url"])
    assert message.startswith("survivor: nosuch, quality is neither a documents column nor an annotator")


@pytest.mark.parametrize("term", ["", "-", "--bytes", "a b", "bytes desc", "1a", "a.", "+bytes"])
def test_a_term_that_is_no_name(term: str) -> None:
    assert f"setting 'survivor': '{term}' should be a name or -name" in refused(survivor=[term])


def test_a_survivor_rule_can_t_be_empty() -> None:
    assert "setting 'survivor'" in refused(survivor=[])


def test_the_columns_a_rule_may_name_are_the_documents_table_s() -> None:
    """All but those that are no order: text, maps, lists, and the hash."""
    assert set(DOCUMENTS.column_names) - {"text", "attributes", "notes", "text_sha256"} == DOCUMENT_COLUMNS


# --- Spark


def test_spark_configuration_may_be_set_by_its_dotted_name() -> None:
    layers = [
        Layer("file", {"spark": {"conf": {"spark.sql.shuffle.partitions": "3", "spark.ui.enabled": False}}}),
        *assignment_layers(["spark.conf.spark.sql.shuffle.partitions=8", "spark.conf.spark.a.b=1.5"]),
    ]
    assert resolve(Settings, layers).settings.spark.conf == {
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.a.b": "1.5",
    }


# --- annotators


def test_an_annotator_s_name_says_its_kind_unless_kind_does() -> None:
    settings = make(annotate={"tokens": {}, "statistics": None, "o200k": {"kind": "tokens", "tokenizer": "o200k_base"}})
    assert {name: entry.kind for name, entry in settings.annotate.items()} == {
        "tokens": "tokens",
        "statistics": "statistics",
        "o200k": "tokens",
    }


def test_an_annotator_that_does_not_exist() -> None:
    message = refused(annotate={"toknes": {}})
    assert message.startswith("setting 'annotate.toknes' (test): unknown kind 'toknes'; did you mean 'tokens'?")


@pytest.mark.parametrize("name", ["my tokens", "a-b", "1a", "", "doc_id", "batch", "text_sha256", "a.b"])
def test_an_annotator_s_column_must_be_a_name_that_is_free(name: str) -> None:
    assert f"an annotator can't be called {name}" in refused(annotate={name: {"kind": "statistics"}})


@pytest.mark.parametrize("value", [[], "tokens", 5])
def test_annotators_that_are_no_mapping(value: object) -> None:
    assert "setting 'annotate' (test): Input should be a valid dictionary" in refused(annotate=value)


def test_a_tokenizer_that_is_neither_known_nor_a_file() -> None:
    assert "neither one of cl100k_base, o200k_base nor a file" in refused(annotate={"tokens": {"tokenizer": "gpt9"}})


def test_a_tiktoken_file_needs_its_split(tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_text("YQ== 0\n")
    assert "set `split` too" in refused(annotate={"tokens": {"tokenizer": str(file)}})
    assert make(annotate={"tokens": {"tokenizer": str(file), "split": "gpt2"}}).annotate["tokens"].kind == "tokens"


def test_the_settings_and_the_registry_list_the_same_annotators() -> None:
    for kind, annotator in ANNOTATORS.items():
        needed = {"model": __file__} if "model" in annotator.settings.model_fields and kind != "language" else {}
        settings = make(annotate={kind: needed}).annotate[kind]
        assert type(settings) is annotator.settings
        assert settings.kind == kind


def test_identities_of_the_settings_annotators() -> None:
    identities = make(annotate={"b": {"kind": "statistics"}, "a": {"kind": "exact_key"}}).annotator_identities()
    assert list(identities) == ["a", "b"]
    assert identities["b"].startswith("statistics-")


# --- deciders


def test_the_three_ways_to_write_a_step() -> None:
    steps = make(decide=["exact_dedup", {"eligibility": None}, {"exact_dedup": {"name": "by_url", "fields": ["url"]}},
                         {"kind": "exact_dedup", "name": "strict"}]).decide  # fmt: skip
    assert [(step.kind, step.name) for step in steps] == [
        ("exact_dedup", "exact_dedup"),
        ("eligibility", "eligibility"),
        ("exact_dedup", "by_url"),
        ("exact_dedup", "strict"),
    ]


def test_a_step_s_name_stands_once() -> None:
    assert "decide: the step name(s) exact_dedup stand twice" in refused(decide=["exact_dedup", "exact_dedup"])
    assert "b, c stand twice" in refused(
        decide=[{"exact_dedup": {"name": n}} for n in ("c", "b", "b", "c", "a")]
    )  # fmt: skip


@pytest.mark.parametrize("name", ["", "a b", "a-b", "a/b", "1"])
def test_a_step_s_name_becomes_a_partition(name: str) -> None:
    assert "decide.0.exact_dedup.name" in refused(decide=[{"exact_dedup": {"name": name}}])


@pytest.mark.parametrize("value", ["exact_dedup", {"exact_dedup": {}}])
def test_steps_that_are_no_list(value: object) -> None:
    assert "setting 'decide'" in refused(decide=value)


@pytest.mark.parametrize("entry", [5, None, {"exact_dedup": 5}, {"exact_dedup": {}, "eligibility": {}}, {}])
def test_a_step_that_is_none(entry: object) -> None:
    assert "setting 'decide.0'" in refused(decide=[entry])


def test_no_step_at_all_is_allowed() -> None:
    assert make(decide=[]).decide == []


def test_steps_by_name_kind_and_order() -> None:
    settings = make(decide=["eligibility", {"exact_dedup": {"name": "a"}}, {"exact_dedup": {"name": "b"}}])
    assert settings.step("b").name == "b"
    assert settings.steps_of("exact_dedup") == ["a", "b"]
    assert settings.steps_of("quality_filter") == []
    assert settings.steps_before("b") == ["eligibility", "a"]
    assert settings.steps_before("eligibility") == []


def test_the_pipeline_follows_the_settings_order() -> None:
    settings = make(decide=[{"exact_dedup": {"name": "a"}}, "eligibility"])
    assert [(job.name, step) for job, step in pipeline(settings)] == [
        ("ingest", ""), ("annotate", ""), ("exact-dedup", "a"), ("eligibility", "eligibility"), ("select", ""),
        ("validate", ""),
    ]  # fmt: skip
    assert job_of_step(settings, "a") is JOBS["exact-dedup"]


def test_every_decider_can_be_named_and_has_a_job() -> None:
    needed: dict[str, dict[str, Any]] = {"quality_filter": {"rules": [{"name": "a", "keep": "true"}]}}
    for kind, job in DECIDERS.items():
        settings = make(decide=[{kind: needed.get(kind, {})}])
        assert list(job.steps(settings)) == [kind]


def test_rules_of_a_quality_filter() -> None:
    def rules(*entries: dict[str, Any]) -> dict[str, Any]:
        return {"decide": [{"quality_filter": {"rules": list(entries)}}]}

    step = make(**rules({"name": "a", "keep": "bytes > 1"})).decide[0]
    assert (step.rules[0].on_null, step.rules[0].on_nan) == ("drop", "drop")  # type: ignore[union-attr]
    assert "rule name(s) used twice: a" in refused(**rules({"name": "a", "keep": "x"}, {"name": "a", "keep": "y"}))
    assert "rules.0.keep" in refused(**rules({"name": "a", "keep": ""}))
    assert "rules.0.name" in refused(**rules({"name": "a b", "keep": "x"}))
    assert "a quality_filter needs rules or presets" in refused(**rules())
    assert "on_null" in refused(**rules({"name": "a", "keep": "x", "on_null": "maybe"}))


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"normalisation": "nfkc"}, "normalisation"),
        ({"keep": "first"}, "keep"),
        ({"fields": []}, "fields"),
        ({"empty": "maybe"}, "empty"),
    ],
)
def test_values_of_exact_dedup(values: dict[str, Any], place: str) -> None:
    assert f"decide.0.exact_dedup.{place}" in refused(decide=[{"exact_dedup": values}])


def test_conditions_of_eligibility() -> None:
    assert "conditions.0.name" in refused(decide=[{"eligibility": {"conditions": [{"name": "a b", "keep": "x"}]}}])
    assert "conditions.0.keep" in refused(decide=[{"eligibility": {"conditions": [{"name": "a", "keep": ""}]}}])


# --- ingest


def test_ids_are_given_where_a_field_holds_them_else_made_from_content() -> None:
    assert ingest().identity == "content"
    assert ingest(columns={"doc_id": "id"}).identity == "given"
    assert ingest(columns={"doc_id": "id"}, ids="given").identity == "given"
    assert ingest(ids="place").identity == "place"


def test_ids_that_contradict_the_columns() -> None:
    assert "ids: given needs columns.doc_id" in ingest_refused(ids="given")
    for ids in ("content", "place"):
        assert f"ids: {ids} contradicts columns.doc_id: key" in ingest_refused(ids=ids, columns={"doc_id": "key"})


def test_keep_latest_needs_ids_that_can_repeat() -> None:
    assert "content ids can't repeat" in ingest_refused(duplicate_ids="keep_latest")
    assert ingest(duplicate_ids="keep_latest", columns={"doc_id": "id"}).duplicate_ids == "keep_latest"
    assert ingest(duplicate_ids="keep_latest", ids="place").duplicate_ids == "keep_latest"


def test_text_files_have_no_fields() -> None:
    assert "format: text has no fields" in ingest_refused(format="text", columns={"text": "body"})
    assert "format: text has no fields" in ingest_refused(format="text", types={"n": "integer"})
    assert ingest(format="text", pattern="*.md").format == "text"


def test_the_source_comes_from_one_place() -> None:
    assert "both give the source" in ingest_refused(source_pattern="/(x)/", columns={"source": "site"})


def test_a_source_pattern_must_be_a_regular_expression() -> None:
    assert "source_pattern is no regular expression" in ingest_refused(source_pattern="(")
    assert ingest(source_pattern="source=([^/]+)").source_pattern == "source=([^/]+)"


def test_encodings() -> None:
    for unknown in ("utf-99", "hex", "rot13", "base64"):  # Python has codecs that are none of text
        assert f"encoding '{unknown}' is not known" in ingest_refused(encoding=unknown)
    assert ingest(encoding="latin-1").encoding == "latin-1"


@pytest.mark.parametrize("encoding", ["utf-16", "utf_32"])
def test_encodings_in_which_a_line_feed_is_not_one_byte(encoding: str) -> None:
    assert "can't be cut into lines" in ingest_refused(encoding=encoding)
    assert ingest(encoding=encoding, format="text").encoding == encoding


@pytest.mark.parametrize(
    ("name", "value"),
    [("paths", []), ("paths", "data"), ("format", "csv"), ("max_bytes", 0), ("max_bytes", 500_000_001),
     ("raw_characters", -1), ("raw_characters", 1_000_001), ("hidden_files", "maybe"), ("encoding_errors", "ignore"),
     ("duplicate_ids", "first"), ("types", {"n": "date"})],
)  # fmt: skip
def test_values_out_of_bounds(name: str, value: object) -> None:
    assert f"ingest.web.{name}" in ingest_refused(**{name: value})


def test_the_rules_for_the_kernel_carry_every_setting() -> None:
    found = ingest(columns={"doc_id": "id", "text": "body", "url": "u"}, types={"n": "integer"}, max_bytes=5,
                   encoding="latin-1", encoding_errors="replace", raw_characters=7).rules("web")  # fmt: skip
    assert (found.source, found.mapped.doc_id, found.mapped.text, found.mapped.url) == ("web", "id", "body", "u")
    assert (found.types, found.max_bytes, found.encoding) == ({"n": "integer"}, 5, "latin-1")
    assert (found.replace_bad_bytes, found.raw_characters) == (True, 7)
    assert set(ColumnMapping.model_fields) == set(vars(found.mapped))


# --- the gates, the registry, the session


def test_slices_of_the_coverage_gate() -> None:
    assert make(validate={"coverage": {"per": ["source", "language"]}}).validate_.coverage.per == ["source", "language"]
    assert "can't slice by colour, url; known: source, language" in refused(
        validate={"coverage": {"per": ["colour", "source", "url"]}}
    )
    assert "validate.coverage.per" in refused(validate={"coverage": {"per": []}})


def test_floors_are_not_negative() -> None:
    assert "validate.coverage.floor.documents" in refused(validate={"coverage": {"floor": {"documents": -1}}})
    assert "validate.coverage.floors.web.tokens" in refused(validate={"coverage": {"floors": {"web": {"tokens": -1}}}})


def test_conditions_of_use() -> None:
    assert make(sources={"a": {}}).sources["a"].use == "allowed"
    assert "setting 'sources.a.use'" in refused(sources={"a": {"use": "perhaps"}})


@pytest.mark.parametrize("rows", [0, 4097, "many"])
def test_rows_per_batch_of_text(rows: object) -> None:
    assert "setting 'spark.text_rows_per_batch'" in refused(spark={"text_rows_per_batch": rows})


def test_an_annotator_can_t_be_called_like_a_column_of_the_documents_but_language() -> None:
    assert "another_name" in refused(annotate={"source": {"kind": "tokens"}})
    assert make(annotate={"language": {"kind": "tokens"}}).annotate["language"].kind == "tokens"
