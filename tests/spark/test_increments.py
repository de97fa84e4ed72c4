"""Increments and comparisons with documents of elsewhere: near_dedup's index, ``against:`` of both deduplications."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.runtime.errors import InputContractError, RetryLater, SettingsError, TableMissing
from jobs.runtime.tables import TableRef, commits, ensure_table, write_table
from jobs.settings import Settings
from schemas.tables import DOCUMENTS
from tests.spark.helpers import case_rows, expected, ids, lay_out, run, run_until, settings_in, table, version_of
from tests.spark.test_near_dedup import edited

CROWDED = {"bands": 40, "rows": 2, "permutations": 80}
"""So many bands that most documents are candidates of each other: the cap matters."""


def settings_for(home: Path, **more: Any) -> Settings:
    values: dict[str, Any] = {
        "survivor": ["arrival", "source", "doc_id"],
        "ingest": {"all": {"paths": [str(home / "in")], "columns": {"doc_id": "id", "source": "source"}}},
        "decide": [{"near_dedup": {"threshold": 0.8}}],
    }
    return settings_in(home, **{**values, **more})


def deliver(spark: SparkSession, settings: Settings, home: Path, rows: Sequence[Mapping[str, Any]], batch: str) -> None:
    """One more delivery: a file beside the earlier ones, taken in as a batch."""
    lay_out(home / "in", rows, f"{batch}.jsonl")
    run(spark, settings.model_copy(update={"batch": batch}), "ingest", f"run-{batch}")


def arrive(spark: SparkSession, settings: Settings, rows: Sequence[Mapping[str, Any]], batch: str) -> None:
    """A delivery as ingest would write it, in a tenth of the time."""
    ref = TableRef.in_warehouse(settings.warehouse, "documents")
    arrival = ensure_table(spark, "documents", ref, DOCUMENTS) + 1
    frame = spark.createDataFrame(
        [(r["id"], r["source"], r["text"]) for r in rows], "doc_id STRING, source STRING, text STRING"
    )
    values = {
        "bytes": F.octet_length("text").cast("bigint"), "characters": F.length("text").cast("bigint"),
        "text_sha256": F.unhex(F.sha2("text", 256)), "attributes": F.create_map().cast("map<string,string>"),
        "notes": F.array().cast("array<string>"), "file": F.lit("f"), "record": F.lit(1).cast("bigint"),
        "ingest_run": F.lit(batch), "arrival": F.lit(arrival).cast("bigint"), "batch": F.lit(batch),
    }  # fmt: skip
    absent = {
        c.name: F.lit(None).cast(c.data_type) for c in DOCUMENTS.columns if c.name not in {*values, *frame.columns}
    }
    write_table(
        spark, frame.withColumns({**values, **absent}), "documents", ref, DOCUMENTS,
        transaction=batch, ordinal=1, metadata={},
    )  # fmt: skip


def fates(spark: SparkSession, settings: Settings, step: str = "near_dedup") -> dict[str, str | None]:
    mine = (F.col("step") == step) & (F.col("policy") == settings.policy)
    rows = table(spark, settings, "decisions").where(mine).collect()
    assert len({r["doc_id"] for r in rows}) == len(rows)
    return {r["doc_id"]: r["kept_id"] for r in rows}


def rows_added(spark: SparkSession, settings: Settings, name: str) -> int:
    """Rows that the newest commit wrote."""
    return commits(spark, TableRef.in_warehouse(settings.warehouse, name), 1)[0].rows


@pytest.mark.parametrize(
    ("annotate", "step"),
    [
        ({}, {"protected": ["source = 'c'"]}),
        ({"minhash": CROWDED}, {"max_compared": 2, "protected": ["source = 'c'"]}),
    ],
    ids=["signed by the step", "signatures annotated, crowded buckets"],
)
def test_increments_equal_a_full_run(
    spark: SparkSession, tmp_path: Path, annotate: dict[str, Any], step: dict[str, Any]
) -> None:
    """Three deliveries, the last a back-fill with an older day's name: the ids of kept and dropped documents are those
    of one run over all of them; each run decides on, and writes, what has arrived since."""
    rows = edited(11, 420)
    random.Random(2).shuffle(rows)
    deliveries = [("day-2", rows[:200]), ("day-3", rows[200:320]), ("day-1", rows[320:])]
    stepwise = settings_for(tmp_path, annotate=annotate, decide=[{"near_dedup": {"threshold": 0.8, **step}}])
    before = 0
    for number, (batch, arrived) in enumerate(deliveries):
        arrive(spark, stepwise, arrived, batch)
        if annotate:
            run(spark, stepwise, "annotate", f"run-{batch}")
        record = run(spark, stepwise, "near-dedup", f"run-{batch}", "near_dedup").record
        assert record.notes["decided"] == ("everything" if number == 0 else "new arrivals only"), record.notes
        dropped = len(fates(spark, stepwise))
        assert rows_added(spark, stepwise, "decisions") == dropped - before
        assert rows_added(spark, stepwise, "near_dedup_index") == len(arrived) - (dropped - before)
        before = dropped
    whole = stepwise.model_copy(update={"policy": "whole"})
    full = run(spark, whole, "near-dedup", "r", "near_dedup").record
    assert full.notes["decided"] == "everything"
    assert fates(spark, stepwise).keys() == fates(spark, whole).keys() and len(fates(spark, whole)) > 80
    index = table(spark, whole, "near_dedup_index")
    indexed = [
        sorted(r["doc_id"] for r in index.where(F.col("policy") == p).collect()) for p in (stepwise.policy, "whole")
    ]
    assert indexed[0] == indexed[1] == sorted({r["id"] for r in rows} - fates(spark, whole).keys())
    if annotate:
        assert int(full.notes["hit_the_cap"]) > 0
    sizes = []
    for settings in (stepwise, whole):
        run(spark, settings, "select", f"chosen-{settings.policy}")
        selection = table(spark, settings, "selection").where((F.col("policy") == settings.policy) & F.col("kept"))
        sizes.append(sum(r["group_size"] for r in selection.collect()))
    assert sizes[0] == sizes[1] == len(rows)  # each dropped document counts in one group, whoever wrote the row


def test_earlier_decisions_stand_only_where_a_full_run_would_repeat_them(spark: SparkSession, tmp_path: Path) -> None:
    """A takedown of a kept document brings back what it had suppressed; other settings decide anew; each run says why."""
    words = [f"w{i}" for i in range(60)]
    near = {"id": "b", "source": "s", "text": " ".join([*words[:-1], "other"])}
    first = [{"id": "a", "source": "s", "text": " ".join(words)}, near, {"id": "z", "source": "s", "text": "!!"}]
    settings = settings_for(tmp_path, decide=[{"eligibility": {}}, {"near_dedup": {"threshold": 0.8}}])
    arrive(spark, settings, first, "one")

    def decide(settings: Settings, run_id: str) -> dict[str, str]:
        run(spark, settings, "eligibility", run_id, "eligibility")
        return dict(run(spark, settings, "near-dedup", run_id, "near_dedup").record.notes)

    decide(settings, "r1")
    assert fates(spark, settings) == {"b": "a"}
    arrive(spark, settings, [{"id": "c", "source": "s", "text": " ".join([*words[:-1], "more"])}], "two")
    assert decide(settings, "r2")["decided"] == "new arrivals only"
    assert fates(spark, settings) == {"b": "a", "c": "a"}
    refused = settings.model_copy(
        update={"decide": [settings.decide[0].model_copy(update={"blocked_ids": ["a"]}), settings.decide[1]]}
    )
    notes = decide(refused, "r3")
    assert notes["decided"] == "everything" and "1 document(s) are no candidates any more" in notes["because"]
    assert fates(spark, settings) == {"c": "b"}
    notes = decide(settings, "r4")
    assert "1 document(s) that are older became candidates" in notes["because"]
    stricter = settings.model_copy(
        update={"decide": [settings.decide[0], settings.decide[1].model_copy(update={"threshold": 0.99})]}
    )
    assert decide(stricter, "r5")["because"] == "run r4 decided with other settings"
    assert fates(spark, settings) == {}
    other = settings.model_copy(update={"survivor": ["source", "doc_id"]})
    assert "doesn't begin with arrival" in decide(other, "r6")["because"]
    assert table(spark, settings, "near_dedup_index").count() == 0  # it would not fit the decisions


def test_a_protected_document_stands_for_itself_where_its_twin_in_words_was_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    """x ~ o = p ~ n, but x and n differ: o is dropped for x, p stays since it is protected, and n is dropped for p; in
    increments and in a run over everything."""
    core, stream = [f"c{i}" for i in range(24)], [f"w{i}" for i in range(110)]
    texts = [" ".join([*core, *stream[at : at + 100]]) for at in (0, 5, 10)]
    settings = settings_for(tmp_path, decide=[{"near_dedup": {"threshold": 0.8, "protected": ["source = 'p'"]}}])
    for number, (name, text) in enumerate([("x", 0), ("o", 1), ("p", 1), ("n", 2)]):
        arrive(spark, settings, [{"id": name, "source": name, "text": texts[text]}], f"day-{number}")
        if number in (1, 3):
            run(spark, settings, "near-dedup", f"r{number}", "near_dedup")
    whole = settings.model_copy(update={"policy": "whole"})
    run(spark, whole, "near-dedup", "r", "near_dedup")
    assert fates(spark, settings) == fates(spark, whole) == {"o": "x", "n": "p"}


@pytest.mark.parametrize("alike", [True, False], ids=["a decision is added", "only the index grows"])
def test_two_runs_on_the_same_arrivals_add_them_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alike: bool
) -> None:
    """One finishes while the other compares: the later one is told to run again, and then finds nothing new."""
    from jobs import near_dedup

    words = [f"w{i}" for i in range(60)]
    settings = settings_for(tmp_path)
    arrive(spark, settings, [{"id": "a", "source": "s", "text": " ".join(words)}], "one")
    run(spark, settings, "near-dedup", "r1", "near_dedup")
    text = " ".join([*words[:-1], "x"]) if alike else "quite another text"
    arrive(spark, settings, [{"id": "b", "source": "s", "text": text}], "two")
    wanted = ({"b": "a"}, ["a"]) if alike else ({}, ["a", "b"])
    real = near_dedup.near_duplicates

    def slow(*given: Any) -> Any:
        monkeypatch.setattr(near_dedup, "near_duplicates", real)
        run(spark, settings, "near-dedup", "r2", "near_dedup")
        return real(*given)

    monkeypatch.setattr(near_dedup, "near_duplicates", slow)
    with pytest.raises(RetryLater, match="another run decided on new arrivals meanwhile"):
        run(spark, settings, "near-dedup", "r3", "near_dedup")
    assert fates(spark, settings) == wanted[0]  # once
    record = run(spark, settings, "near-dedup", "r3", "near_dedup").record
    assert record.notes["decided"] == "new arrivals only" and fates(spark, settings) == wanted[0]
    assert ids(table(spark, settings, "near_dedup_index")) == wanted[1]


@pytest.mark.parametrize(("run_id", "decided"), [("r2", "new arrivals only"), ("r3", "everything")])
def test_an_increment_that_dies_between_its_two_tables_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_id: str, decided: str
) -> None:
    """Its decisions are added, its index is not: the same run id adds what is lacking, once; another one sees that the
    index and the decisions don't fit, and decides anew."""
    from jobs import near_dedup

    words = [f"w{i}" for i in range(60)]
    settings = settings_for(tmp_path)
    arrive(spark, settings, [{"id": "a", "source": "s", "text": " ".join(words)}], "one")
    run(spark, settings, "near-dedup", "r1", "near_dedup")
    later = [("b", [*words[:-1], "x"]), ("c", ["something", "else"])]
    arrive(spark, settings, [{"id": i, "source": "s", "text": " ".join(t)} for i, t in later], "two")
    real = near_dedup.write_index

    def dies(*_: Any, **__: Any) -> None:
        raise OSError("the driver is gone")

    monkeypatch.setattr(near_dedup, "write_index", dies)
    with pytest.raises(OSError, match="the driver is gone"):
        run(spark, settings, "near-dedup", "r2", "near_dedup")
    assert fates(spark, settings) == {"b": "a"} and ids(table(spark, settings, "near_dedup_index")) == ["a"]
    monkeypatch.setattr(near_dedup, "write_index", real)
    record = run(spark, settings, "near-dedup", run_id, "near_dedup").record
    assert record.notes["decided"] == decided and fates(spark, settings) == {"b": "a"}
    assert ids(table(spark, settings, "near_dedup_index")) == ["a", "c"]


def test_a_document_whose_text_was_replaced_is_decided_on_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Its new text arrived now: what was dropped for the old one comes back."""
    words = [f"w{i}" for i in range(60)]
    columns = {"doc_id": "id", "source": "source", "fetched_at": "at"}
    settings = settings_for(
        tmp_path,
        ingest={"all": {"paths": [str(tmp_path / "in")], "columns": columns, "duplicate_ids": "keep_latest"}},
    )
    both = [
        {"id": "a", "source": "s", "text": " ".join(words), "at": "2026-01-01"},
        {"id": "b", "source": "s", "text": " ".join([*words[:-1], "other"]), "at": "2026-01-01"},
    ]
    deliver(spark, settings, tmp_path, both, "one")
    run(spark, settings, "near-dedup", "r1", "near_dedup")
    assert fates(spark, settings) == {"b": "a"}
    newer = {"id": "a", "source": "s", "text": "something else was found there", "at": "2026-02-01"}
    deliver(spark, settings, tmp_path, [newer], "two")
    record = run(spark, settings, "near-dedup", "r2", "near_dedup").record
    assert "1 document(s) were replaced" in record.notes["because"] and fates(spark, settings) == {}


def test_new_against_an_older_set_names_real_documents(spark: SparkSession, tmp_path: Path) -> None:
    """O-NRD-08, as increments of one warehouse and as a new warehouse against the old one's index; the old tables stay
    as they are, and every kept_id is a document."""
    rows = [{**r, "source": "s"} for r in case_rows("O-NRD-08")]
    old, new = ([r for r in rows if r["batch"] == batch] for batch in sorted({r["batch"] for r in rows}))
    want = expected("O-NRD-08")
    minhash = {"minhash": {"permutations": 128}}
    settings = settings_for(tmp_path / "old", annotate=minhash)
    lay_out(tmp_path / "old" / "in", old, "old.jsonl")
    run_until(spark, settings, "near_dedup", "r1")
    versions = {n: version_of(spark, settings, n) for n in ("documents", "near_dedup_index")}
    against = [{"warehouse": settings.warehouse}]
    other = settings_for(tmp_path / "new", decide=[{"near_dedup": {"against": against}}], annotate=minhash)
    lay_out(tmp_path / "new" / "in", new)
    run_until(spark, other, "select", "r1")
    found = {r["doc_id"]: r for r in table(spark, other, "decisions").collect()}
    assert {d: r["kept_id"] for d, r in found.items()} == want["duplicate_of"]
    place = f"{settings.warehouse}/documents"
    assert {d: r["kept_in"] for d, r in found.items()} == {"n1": place, "n3": None}
    assert {n: version_of(spark, settings, n) for n in versions} == versions
    chosen = {r["doc_id"]: r for r in table(spark, other, "selection").collect()}
    assert sorted(d for d, r in chosen.items() if r["kept"]) == sorted(
        set(want["kept_after_batch_2"]) & {r["id"] for r in new}
    )
    assert chosen["n1"]["kept_in"] == place and chosen["n1"]["group_size"] == 2
    lay_out(tmp_path / "old" / "in", new, "new.jsonl")
    run_until(spark, settings, "select", "r2")
    assert fates(spark, settings) == want["duplicate_of"]
    kept = table(spark, settings, "selection").where("kept").collect()
    assert sorted(r["doc_id"] for r in kept) == sorted(want["kept_after_batch_2"])


def test_against_any_table_and_several(spark: SparkSession, tmp_path: Path) -> None:
    """A table without signatures is signed on the fly; sets rank in their order; the same id elsewhere is no twin by
    its name; a protected document stays though it stands elsewhere."""
    words = [f"w{i}" for i in range(60)]
    text = " ".join(words)
    for name, value in (("evaluation", " ".join([*words[:-1], "x"])), ("corpus", text)):
        frame = spark.createDataFrame(
            [("a", value), ("e", "quite another text with more words")], "item STRING, q STRING"
        )
        frame.write.format("delta").save(str(tmp_path / name))
    tables = [{"table": str(tmp_path / name), "doc_id": "item", "text": "q"} for name in ("evaluation", "corpus")]
    step = {"near_dedup": {"against": tables, "protected": ["source = 'p'"]}}
    settings = settings_for(tmp_path, decide=[step])
    rows = [{"id": i, "source": i[0], "text": text} for i in ("a", "b", "p")]
    arrive(spark, settings, [*rows, {"id": "c", "source": "c", "text": "alone"}], "one")
    record = run(spark, settings, "near-dedup", "r1", "near_dedup").record
    found = {r["doc_id"]: (r["kept_id"], r["kept_in"]) for r in table(spark, settings, "decisions").collect()}
    corpus = ("a", str(tmp_path / "corpus"))  # equal words go before the similar ones of a set that ranks higher
    assert found == {"a": corpus, "b": corpus} and record.notes["decided_before"] == "2"
    assert {i["name"] for i in record.inputs} >= {str(tmp_path / "evaluation"), str(tmp_path / "corpus")}
    # Another day: the sets are the same, so only what is new is decided on; when one grows, everything is.
    arrive(spark, settings, [{"id": "d", "source": "d", "text": text}], "two")
    record = run(spark, settings, "near-dedup", "r2", "near_dedup").record
    assert record.notes["decided"] == "new arrivals only" and fates(spark, settings).keys() == {"a", "b", "d"}
    more = spark.createDataFrame([("f", "alone")], "item STRING, q STRING")
    more.write.format("delta").mode("append").save(str(tmp_path / "corpus"))
    record = run(spark, settings, "near-dedup", "r3", "near_dedup").record
    assert "has changed" in record.notes["because"] and fates(spark, settings)["c"] == "f"


def test_exact_dedup_against_a_warehouse_and_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """By key: what that warehouse's selection keeps, and all rows of a table; the first set that has it is named."""
    old = settings_for(tmp_path / "old", decide=[{"quality_filter": {"name": "long", "rules": [
        {"name": "long", "keep": "characters > 3"}]}}])  # fmt: skip
    arrive(spark, old, [{"id": i, "source": "s", "text": t} for i, t in
            (("x", "The Ferry  crosses."), ("y", "tiny"), ("z", "no"))], "one")  # fmt: skip
    run(spark, old, "quality-filter", "r1", "long")
    run(spark, old, "select", "r1")
    spark.createDataFrame([("t2", "TINY"), ("t1", "Tiny "), ("t3", None)], "doc_id STRING, text STRING").write.format(
        "delta"
    ).save(str(tmp_path / "list"))
    rows = [
        ("x", "the ferry crosses."),
        ("n", "no"),
        ("n2", "NO"),
        ("y2", "tiny"),
        ("e", " "),
        ("own", "mine"),
        ("own2", "mine"),
    ]
    for normalisation, want in (
        (
            "norm_v1",
            {"x": ("x", "old"), "y2": ("t1", "list"), "n2": ("n", None), "own2": ("own", None), "e": (None, None)},
        ),
        ("none", {"y2": ("y", "old"), "own2": ("own", None)}),
    ):
        places = {"old": {"warehouse": old.warehouse}, "list": {"table": str(tmp_path / "list")}}
        order = ["list", "old"] if normalisation == "norm_v1" else ["old", "list"]
        step = {"normalisation": normalisation, "against": [places[name] for name in order]}
        home = tmp_path / normalisation
        settings = settings_for(home, decide=[{"exact_dedup": step}])
        arrive(spark, settings, [{"id": i, "source": "s", "text": t} for i, t in rows], "one")
        run(spark, settings, "exact-dedup", "r1", "exact_dedup")
        run(spark, settings, "select", "r1")
        address = {None: None, "old": f"{old.warehouse}/documents", "list": str(tmp_path / "list")}
        found = {r["doc_id"]: (r["kept_id"], r["kept_in"]) for r in table(spark, settings, "decisions").collect()}
        assert found == {d: (kept, address[place]) for d, (kept, place) in want.items()}


def test_what_can_t_be_compared_with_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """This warehouse itself, a missing table, wrong columns, ids twice, another policy, other signatures, lost texts."""
    old = settings_for(tmp_path / "old")
    words = " ".join(f"w{i}" for i in range(40))
    arrive(spark, old, [{"id": "o", "source": "s", "text": words}], "one")
    run(spark, old, "near-dedup", "r1", "near_dedup")
    twice = spark.createDataFrame([("a", "x"), ("a", "y"), (None, "z")], "doc_id STRING, text STRING")
    twice.write.format("delta").save(str(tmp_path / "twice"))
    home = tmp_path / "new"
    arrive(spark, settings_for(home), [{"id": "n", "source": "s", "text": words}], "one")
    own = str(home / "warehouse")
    for number, (entry, error, said) in enumerate(
        [
            ({"warehouse": own}, SettingsError, "is this warehouse itself"),
            ({"table": f"{own}/documents"}, SettingsError, "survivor: \\[arrival"),
            ({"table": str(tmp_path / "none")}, TableMissing, "there is no Delta table at"),
            ({"warehouse": str(tmp_path)}, TableMissing, "there is no Delta table at"),
            ({"table": str(tmp_path / "twice"), "text": "body"}, InputContractError, "'body' is not there"),
            ({"table": str(tmp_path / "twice")}, InputContractError, "(?s)'a': 2 rows.*None: 1 rows|None: 1 rows"),
            ({"warehouse": old.warehouse, "policy": "other"}, InputContractError, "It has: default/near_dedup"),
        ]
    ):
        settings = settings_for(home, decide=[{"near_dedup": {"against": [entry]}}])
        with pytest.raises(error, match=said):
            run(spark, settings, "near-dedup", f"wrong-{number}", "near_dedup")
    against = [{"warehouse": old.warehouse}]
    seeded = settings_for(home, annotate={"minhash": {"seed": 5}}, decide=[{"near_dedup": {"against": against}}])
    run(spark, seeded, "annotate", "seeded")
    with pytest.raises(InputContractError, match="were made with other settings"):
        run(spark, seeded, "near-dedup", "seeded", "near_dedup")
    exact = {"exact_dedup": {"against": [{"warehouse": old.warehouse, "policy": "other"}]}}
    run(spark, old, "select", "r1")
    with pytest.raises(InputContractError, match="keeps no document under policy 'other'"):
        run(spark, settings_for(home, decide=[exact]), "exact-dedup", "other", "exact_dedup")
    with pytest.raises(SettingsError, match="a table has ids and texts only"):
        settings_for(home, decide=[{"exact_dedup": {"fields": ["url"], "against": [{"table": "t"}]}}])
    with pytest.raises(SettingsError, match="either warehouse or table"):
        settings_for(home, decide=[{"near_dedup": {"against": [{}]}}])
    spark.sql(f"DELETE FROM delta.`{old.warehouse}/documents`")
    lost = settings_for(home, decide=[{"near_dedup": {"against": against}}])
    with pytest.raises(InputContractError, match="1 document\\(s\\) have a signature in an index, but their text"):
        run(spark, lost, "near-dedup", "lost", "near_dedup")
