"""The contracts of the tables: what they must hold, how they are created, and that every difference is told at once."""

from __future__ import annotations

import re

import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from schemas.contract import Column, Contract
from schemas.tables import CONTRACTS, DOCUMENTS, contract_of
from schemas.types import parse_type

ALL = sorted(CONTRACTS)

SMALL = Contract(
    name="small",
    version=3,
    comment="A user's table",
    key=("id",),
    partitioned_by=("batch",),
    columns=(
        Column("id", "STRING", "Identity"),
        Column("n", "BIGINT", "Number; it's 64 bits"),
        Column("tags", "ARRAY<STRING>", r"A back\slash"),
        Column("batch", "STRING", "Batch", nullable=True),
    ),
    checks={"positive": "n > 0 AND id <> ''"},
    statistics=("id", "n"),
)


# --- what holds for every contract


@pytest.mark.parametrize("name", ALL)
def test_every_column_and_table_says_what_it_means(name: str) -> None:
    contract = CONTRACTS[name]
    assert contract.name == name
    assert contract.comment
    assert all(len(column.comment) > 2 for column in contract.columns)


@pytest.mark.parametrize("name", ALL)
def test_no_column_is_called_path_and_no_name_stands_twice(name: str) -> None:
    """Readers without Spark have taken a column ``path`` for the files' own."""
    names = CONTRACTS[name].column_names
    assert len(set(names)) == len(names)
    assert not {"path", "input_file_name"} & {n.lower() for n in names}
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", n) for n in names)


@pytest.mark.parametrize("name", ALL)
def test_keys_partitions_and_statistics_are_columns(name: str) -> None:
    contract = CONTRACTS[name]
    assert contract.key
    assert {*contract.key, *contract.partitioned_by, *contract.statistics} <= set(contract.column_names)
    nullable = {c.name for c in contract.columns if c.nullable}
    assert not nullable & {*contract.key, *contract.partitioned_by}


@pytest.mark.parametrize("name", ALL)
def test_statistics_never_cover_text_booleans_or_partition_columns(name: str) -> None:
    """Delta refuses statistics on partition columns and on types without an order; on text they cost and serve nothing."""
    contract = CONTRACTS[name]
    for column in contract.statistics:
        data_type = next(c.data_type for c in contract.columns if c.name == column)
        assert column not in contract.partitioned_by
        assert column != "text"
        assert isinstance(data_type, (StringType, LongType, IntegerType, TimestampType)), (column, data_type)


def test_text_is_the_last_column_of_documents() -> None:
    """A narrow read must not step over it, and the statistics' columns come first."""
    assert DOCUMENTS.column_names[-1] == "text"


@pytest.mark.parametrize("name", ALL)
def test_every_type_is_one_and_checks_name_columns(name: str) -> None:
    contract = CONTRACTS[name]
    schema = contract.struct_type()
    assert schema.names == contract.column_names
    assert [f.nullable for f in schema.fields] == [c.nullable for c in contract.columns]
    assert [f.metadata["comment"] for f in schema.fields] == [c.comment for c in contract.columns]
    for check in contract.checks.values():
        assert set(re.findall(r"\b[a-z_][a-z0-9_]*\b", re.sub(r"'[^']*'|\blength\(", " ", check))) <= set(
            contract.column_names
        )


def test_counts_are_64_bits() -> None:
    """Totals of tokens pass 2^31."""
    for contract in CONTRACTS.values():
        for column in contract.columns:
            if column.name in ("tokens", "bytes", "characters", "group_size") or column.name.startswith("documents_"):
                assert column.sql_type in ("BIGINT", "DOUBLE"), (contract.name, column.name)
    assert "tokens: BIGINT" in next(c.sql_type for c in CONTRACTS["runs"].columns if c.name == "counts")


def test_the_contract_of_a_table_by_its_name() -> None:
    assert contract_of("documents") is DOCUMENTS
    assert contract_of("annotations_tokens_1a2b3c4d") is CONTRACTS["annotations"]
    with pytest.raises(KeyError):
        contract_of("annotation")


# --- differences


def test_its_own_schema_has_no_differences() -> None:
    for contract in (*CONTRACTS.values(), SMALL):
        assert contract.differences(contract.struct_type()) == []


def test_every_difference_is_told_at_once() -> None:
    schema = StructType(
        [
            StructField("n", IntegerType()),
            StructField("tags", MapType(StringType(), StringType())),
            StructField("batch", StringType()),
            StructField("extra", BooleanType()),
            StructField("more", BinaryType()),
        ]
    )
    assert SMALL.differences(schema) == [
        "column 'id' (STRING) is missing",
        "column 'n' is int, should be bigint",
        "column 'tags' is map<string,string>, should be array<string>",
        "column 'extra' (boolean) is not part of the contract",
        "column 'more' (binary) is not part of the contract",
    ]


def test_the_order_of_columns_and_nullability_are_no_difference() -> None:
    fields = [StructField(f.name, f.dataType, True) for f in reversed(SMALL.struct_type().fields)]
    assert SMALL.differences(StructType(fields)) == []


def test_a_name_in_another_case_is_a_difference() -> None:
    fields = [StructField(f.name.upper(), f.dataType) for f in SMALL.struct_type().fields]
    assert len(SMALL.differences(StructType(fields))) == 8


def test_an_open_ended_table_takes_further_structs_and_nothing_else() -> None:
    annotations = CONTRACTS["annotations"]
    assert annotations.open_ended
    schema = (
        annotations.struct_type().add("tokens", StructType([StructField("count", LongType())])).add("n", LongType())
    )
    assert annotations.differences(schema) == ["column 'n' (bigint) is not part of the contract"]
    assert SMALL.differences(SMALL.struct_type().add("s", StructType())) != []


# --- versions


def test_versions() -> None:
    good = {"weir.contract": "small", "weir.contract.version": "3", "delta.minReaderVersion": "1"}
    assert SMALL.version_difference(good) is None
    assert SMALL.version_difference({}) is None
    assert SMALL.version_difference({**good, "weir.contract.version": "2"}) == (
        "it was written with version 2 of the contract 'small', this code has version 3"
    )
    assert SMALL.version_difference({**good, "weir.contract": "runs"}) == "it holds the table 'runs', not 'small'"


# --- CREATE TABLE


def test_the_statement_that_creates_a_table() -> None:
    extra = (Column("tokens", "STRUCT<count: BIGINT>", "Tokens"),)
    assert SMALL.create_statement("delta.`/lake/small`", extra, {"weir.annotator.tokens": "it's"}) == (
        "CREATE TABLE IF NOT EXISTS delta.`/lake/small` (\n"
        "  `id` STRING NOT NULL COMMENT 'Identity',\n"
        "  `n` BIGINT NOT NULL COMMENT 'Number; it\\'s 64 bits',\n"
        "  `tags` ARRAY<STRING> NOT NULL COMMENT 'A back\\\\slash',\n"
        "  `batch` STRING COMMENT 'Batch',\n"
        "  `tokens` STRUCT<count: BIGINT> NOT NULL COMMENT 'Tokens'\n"
        ")\n"
        "USING DELTA\n"
        "PARTITIONED BY (`batch`)\n"
        "COMMENT 'A user\\'s table'\n"
        "TBLPROPERTIES ('weir.contract' = 'small', 'weir.contract.version' = '3', "
        "'delta.constraints.weir_positive' = 'n > 0 AND id <> \\'\\'', 'delta.dataSkippingStatsColumns' = 'id,n', "
        "'weir.annotator.tokens' = 'it\\'s')"
    )


def test_a_table_without_partitions_and_statistics() -> None:
    plain = Contract("plain", 1, "Plain", (Column("a", "INT", "A number"),), ("a",))
    statement = plain.create_statement("`c`.`s`.`plain`")
    assert "PARTITIONED" not in statement
    assert "dataSkipping" not in statement
    assert "delta.constraints" not in statement


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("STRING", "string"),
        ("bigint", "bigint"),
        (" ARRAY<STRUCT<rule: STRING, value: DOUBLE>> ", "array<struct<rule:string,value:double>>"),
        ("MAP<STRING, ARRAY<INT>>", "map<string,array<int>>"),
        ("STRUCT<a:BINARY,b:BOOLEAN,c:TIMESTAMP,d:DATE,e:FLOAT>",
         "struct<a:binary,b:boolean,c:timestamp,d:date,e:float>"),
    ],
)  # fmt: skip
def test_types_are_read_without_a_session(text: str, simple: str) -> None:
    assert parse_type(text).simpleString() == simple


@pytest.mark.parametrize(
    "text",
    ["", "NONSENSE", "ARRAY", "ARRAY<", "ARRAY<STRING", "ARRAY<STRING>>", "STRING STRING", "MAP<STRING>", "STRUCT<>",
     "STRUCT<a STRING>", "STRUCT<a:STRING,>", "BIGINT;", "ARRAY[INT]"],
)  # fmt: skip
def test_a_type_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="SQL type"):
        parse_type(text)
