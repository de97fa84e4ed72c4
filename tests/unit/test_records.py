"""Raw records: what becomes a document and with which values, what is rejected and for which reason, what is noted."""

from __future__ import annotations

import codecs
import datetime
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.record_parsing import NESTING
from udfs.record_types import NOTES, REASONS, Document, Mapped, RecordRules, Reject
from udfs.record_values import parse_timestamp
from udfs.records import document_of, document_of_file, raw_of, read_json_line

WITH_ID = RecordRules("web", Mapped(doc_id="id"))


def rules(encoding: str = "utf-8", replace: bool = False, max_bytes: int = 1000, types: dict[str, str] | None = None,
          **mapped: str) -> RecordRules:  # fmt: skip
    return RecordRules(
        "web", Mapped(**mapped), types or {}, max_bytes=max_bytes, encoding=encoding, replace_bad_bytes=replace
    )


def read(line: str | bytes, how: RecordRules | None = None) -> Document | Reject | None:
    return read_json_line(line.encode() if isinstance(line, str) else line, how or rules())


def document(line: str | bytes, how: RecordRules | None = None) -> Document:
    found = read(line, how)
    assert isinstance(found, Document), found
    return found


def reject(line: str | bytes, how: RecordRules | None = None) -> Reject:
    found = read(line, how)
    assert isinstance(found, Reject), found
    return found


def attribute(value: str, types: dict[str, str] | None = None) -> str:
    """What a field ``n`` with a JSON value becomes."""
    return dict(document(f'{{"text":"t","n":{value}}}', rules(types=types)).attributes)["n"]


# --- documents


def test_a_record_s_fields_go_where_the_mapping_says() -> None:
    how = rules(doc_id="id", source="site", url="link", language="lang", fetched_at="ts", origin="o", generator="g",
                generation="n")  # fmt: skip
    found = document(
        '{"id":"a","site":"blog","link":"https://x.example","lang":"en","ts":"2024-03-10T02:30:00Z","o":"generated",'
        '"g":"model","n":2,"text":"Hello","likes":3}',
        how,
    )
    assert found == Document(
        "Hello", b"Hello", "blog", "a", "https://x.example", "en",
        datetime.datetime(2024, 3, 10, 2, 30, tzinfo=datetime.UTC), "generated", "model", 2, [("likes", "3")], [],
    )  # fmt: skip


def test_the_text_is_not_touched() -> None:
    text = " \ta\u00a0b\r\n\u2028\u2029\x85\x00\ufeffz\u0301 \n"
    assert document(json.dumps({"text": text})).text == text
    assert document(json.dumps({"text": text}, ensure_ascii=False)).encoded == text.encode()


def test_an_empty_text_is_a_document() -> None:
    assert document('{"text":""}').text == ""


def test_attributes_are_strings_as_given_and_json_for_the_rest() -> None:
    found = document('{"text":"t","a":"  x ","b":true,"c":1.5,"d":null,"e":{"k":[1,"é"]},"f":[]}')
    assert found.attributes == [("a", "  x "), ("b", "true"), ("c", "1.5"), ("e", '{"k":[1,"é"]}'), ("f", "[]")]


def test_a_dotted_name_leads_into_objects_and_its_value_isn_t_stored_twice() -> None:
    how = rules(text="data.body", doc_id="meta.id", url="meta.link.href")
    found = document('{"data":{"body":"hello"},"meta":{"id":"a","link":{"href":"u"},"n":1}}', how)
    assert (found.text, found.doc_id, found.url) == ("hello", "a", "u")
    assert found.attributes == [("meta", '{"n":1}')]


def test_a_name_with_a_dot_of_its_own_wins_over_the_path() -> None:
    found = document('{"text":"t","meta.url":"flat","meta":{"url":"deep"}}', rules(url="meta.url"))
    assert (found.url, found.attributes) == ("flat", [("meta", '{"url":"deep"}')])


def test_a_name_that_no_record_has_gives_nothing() -> None:
    found = document('{"text":"t"}', rules(url="link", fetched_at="ts", generation="n"))
    assert (found.url, found.fetched_at, found.generation, found.notes) == (None, None, None, [])


# --- exactness of numbers and keys


@pytest.mark.parametrize("digits", ["9007199254740993", "18446744073709551615", "18446744073709551616",
                                    "-9223372036854775809", "123456789012345678901234567890"])  # fmt: skip
def test_whole_numbers_keep_every_digit(digits: str) -> None:
    """Above 64 bits a fast parser gives a float; two ids would become one."""
    assert document(f'{{"id":{digits},"text":"t"}}', WITH_ID).doc_id == digits
    assert attribute(digits) == digits
    assert attribute(f'{{"k":[{digits}]}}') == f'{{"k":[{digits}]}}'


@pytest.mark.parametrize(("value", "stored"), [("1.5", "1.5"), ("0.1", "0.1"), ("1e22", "1e+22"), ("-0.0", "-0.0"),
                                               ("2.2250738585072014e-308", "2.2250738585072014e-308")])  # fmt: skip
def test_floats_keep_their_value(value: str, stored: str) -> None:
    assert attribute(value) == stored
    assert float(stored) == float(value)


def test_nan_and_infinity_that_python_writes_are_kept_as_attributes() -> None:
    assert attribute("NaN") == "NaN"
    assert attribute("-Infinity") == "-Infinity"
    assert reject('{"text":NaN}').reason == "text_not_string"


def test_a_number_that_no_double_holds_is_not_turned_into_infinity() -> None:
    found = reject('{"text":"t","n":1e400}')
    assert (found.reason, found.detail) == ("bad_json", "the number 1e400 is too large")


def test_a_number_of_thousands_of_digits_is_rejected_not_raised() -> None:
    assert reject('{"text":"t","n":' + "1" * 5000 + "}").detail == "a number has too many digits"
    assert reject('{"text":"t"} ' + "1" * 5000).reason == "bad_json"


@pytest.mark.parametrize(
    "line",
    [
        '{"text":"a","text":"b"}',
        '{"text":"a","k":1,"k":1}',
        '{"text":"a","meta":{"k":1,"k":2}}',
        '{"text":"a","meta":[{"x":[{"k":1,"k":2}]}]}',
        '{"text":"a","k":1,"\\u006b":2}',
        '{"text":"a","\\u006b":1,"\\u006b":2}',
        '{"text":"a","k":1,"k" :2}',
        '{"text":"a" , "k" :1,"k"\t:2}',
        '{"text":"a","b\\\\":1,"b\\\\":2}',
        '{"text":"a","c":1,"b\\\\":1,"b\\\\":2}',
        '{"text":"a","c":1,"c":2,"b\\\\":3}',
        '{"text":"say \\"k\\": 1","k":1,"k":2}',
    ],
)
def test_a_key_given_twice_at_any_depth_is_rejected(line: str) -> None:
    """A parser keeps one of the two values and loses the other."""
    assert reject(line).reason == "duplicate_key"


@pytest.mark.parametrize(
    "line",
    [
        '{"text":"he said \\"text\\": \\"a\\"","k":1}',
        '{"text":"\\"k\\":1, \\"k\\" :2 : :","k":1}',
        '{"text":"a\\\\","k":"\\\\\\":"}',
        '{"text":"a","b\\\\":1}',
        '{"text":"a","m":{"text":1},"n":{"text":2}}',
        '{ "text" : "a" , "k" : { "k" : 1 } }',
        '{"text":"l\'heure :","k:":1,"":2}',
    ],
)
def test_what_looks_like_a_key_given_twice_is_not(line: str) -> None:
    assert document(line).text == json.loads(line)["text"]


def test_the_keys_that_lone_surrogates_would_merge_are_rejected() -> None:
    assert reject('{"text":"t","\\ud800":1,"\\ud801":2}').reason == "duplicate_key"
    assert document('{"text":"t","\\ud800":1}').attributes == [("\ufffd", "1")]


# --- reasons


@pytest.mark.parametrize("line", [b"", b" ", b"\t \r", b"\r", codecs.BOM_UTF8, codecs.BOM_UTF8 + b"\r"])
def test_a_blank_line_is_neither_document_nor_reject(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id":"b","text":"The ferry ret', "bad_json"),
        ("{'text': 'a'}", "bad_json"),
        ('{"text":"a",}', "bad_json"),
        ('{"text":"a"} rest', "bad_json"),
        ('{"text":"a"}{"text":', "bad_json"),
        ('{"text":"tab\there"}', "bad_json"),
        ("\x00" * 20, "bad_json"),
        ("[1]", "not_an_object"),
        ('"text"', "not_an_object"),
        ("17", "not_an_object"),
        ("null", "not_an_object"),
        ('{"text":"a"}{"text":"b"}', "several_records_on_line"),
        ('{"text":"a"} {"text":"b"}', "several_records_on_line"),
        ('{"text":"a"}\r{"text":"b"}', "several_records_on_line"),
        ('{"a":1}', "text_missing"),
        ('{"text":null}', "text_missing"),
        ("{}", "text_missing"),
        ('{"text":12}', "text_not_string"),
        ('{"text":true}', "text_not_string"),
        ('{"text":{"x":1}}', "text_not_string"),
        ('{"text":["p","q"]}', "text_not_string"),
        ('{"text":"' + "é" * 501 + '"}', "text_too_long"),
    ],
)
def test_each_cause_has_a_reason_of_its_own(line: str, reason: str) -> None:
    found = reject(line)
    assert (found.reason, found.source) == (reason, "web")
    assert found.reason in REASONS
    assert found.detail


def test_the_limit_counts_bytes_and_is_included() -> None:
    assert document('{"text":"' + "é" * 500 + '"}').text == "é" * 500
    assert "1,002 bytes; the limit is 1,000" in reject('{"text":"' + "é" * 501 + '"}').detail


@pytest.mark.parametrize(
    ("value", "reason"),
    [("null", "id_missing"), ('""', "id_missing"), ("true", "bad_id"), ("1.5", "bad_id"), ("1e3", "bad_id"),
     ("[1]", "bad_id"), ('{"a":1}', "bad_id"), ('"x\\ud800"', "bad_id")],
)  # fmt: skip
def test_ids_that_are_none(value: str, reason: str) -> None:
    found = reject(f'{{"id":{value},"text":"t"}}', WITH_ID)
    assert (found.reason, found.doc_id) == (reason, None)


def test_an_id_that_is_not_there() -> None:
    assert reject('{"text":"t"}', WITH_ID).reason == "id_missing"


@pytest.mark.parametrize(("value", "doc_id"), [('"a"', "a"), ("7", "7"), ('"007"', "007"), ("-1", "-1"), ('" "', " ")])
def test_ids_are_kept_as_spelled(value: str, doc_id: str) -> None:
    assert document(f'{{"id":{value},"text":"t"}}', WITH_ID).doc_id == doc_id


def test_a_reject_still_has_the_id_and_the_source_of_its_record() -> None:
    found = reject('{"id":"a","site":"blog","text":5}', rules(doc_id="id", source="site"))
    assert (found.reason, found.doc_id, found.source) == ("text_not_string", "a", "blog")


@pytest.mark.parametrize("value", ["null", '""', "{}", "[1]"])
def test_a_record_without_its_source(value: str) -> None:
    assert reject(f'{{"site":{value},"text":"t"}}', rules(source="site")).reason == "source_missing"
    assert reject('{"text":"t"}', rules(source="site")).reason == "source_missing"


@pytest.mark.parametrize(
    ("value", "source"), [('"007"', "007"), ("7", "7"), ('"1e3"', "1e3"), ('"2024-01-01"', "2024-01-01")]
)
def test_a_source_is_spelled_as_given(value: str, source: str) -> None:
    assert document(f'{{"site":{value},"text":"t"}}', rules(source="site")).source == source


@pytest.mark.parametrize("value", ["1.5", '"2"', "true", "[1]", "2147483648", "-2147483649"])
def test_a_generation_that_is_no_whole_number_of_32_bits(value: str) -> None:
    assert reject(f'{{"text":"t","n":{value}}}', rules(generation="n")).reason == "bad_type"


def test_nesting_is_limited_alike_for_both_parsers() -> None:
    """One limit of our own: Python's depends on how deep the caller stands, and its error ended the whole task."""

    def nested(depth: int, inside: str = "1") -> str:
        return '{"text":"t","n":' + "[" * (depth - 1) + inside + "]" * (depth - 1) + "}"

    for inside in ("1", "NaN"):
        assert document(nested(NESTING, inside)).text == "t"
        for depth in (NESTING + 1, 900, 5_000, 100_000):
            found = reject(nested(depth, inside))
            assert (found.reason, "nested too deeply" in found.detail) == ("bad_json", True), depth


def test_every_detail_can_be_stored() -> None:
    """A detail quotes names of the record; half of a surrogate pair in one would end the task in Arrow."""
    for line in ('{"\\ud800":1}', '{"a":{"\\ud800":1,"\\ud800":2}}', '{"text":{"\\ud800":1}}'):
        assert reject(line).detail.encode("utf-8")


# --- surrogates


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("a \\ud83d b", "a \ufffd b"),
        ("a \\ude00 b", "a \ufffd b"),
        ("\\ude00\\ud83d", "\ufffd\ufffd"),
        ("\\ud83d\\ud83d\\ude00", "\ufffd\U0001f600"),
        ("\\ud83d", "\ufffd"),
        ("\\ud83dA", "\ufffdA"),
        ("\\ud83d\u20ac", "\ufffd\u20ac"),
    ],
)
def test_half_of_a_surrogate_pair_becomes_the_replacement_character_and_is_noted(escaped: str, text: str) -> None:
    found = document(f'{{"text":"{escaped}"}}')
    assert (found.text, found.encoded, found.notes) == (text, text.encode(), ["bad_unicode"])


def test_a_whole_pair_is_its_character() -> None:
    assert (document('{"text":"\\ud83d\\ude00"}').text, document('{"text":"\\ud83d\\ude00"}').notes) == (
        "\U0001f600",
        [],
    )


def test_repairs_of_other_fields_are_noted_once() -> None:
    found = document('{"text":"\\ud800","url":"\\ud800","k":"\\udfff","\\ud800":{"k":"\\ud800"}}', rules(url="url"))
    assert (found.url, found.attributes) == ("\ufffd", [("k", "\ufffd"), ("\ufffd", '{"k":"\ufffd"}')])
    assert found.notes == ["bad_unicode"]


# --- bytes and encodings


def test_a_byte_order_mark_and_a_carriage_return_are_no_part_of_the_record() -> None:
    assert document(codecs.BOM_UTF8 + b'{"text":"a"}\r').text == "a"


def test_bytes_that_are_not_utf8_are_rejected_or_replaced_and_noted() -> None:
    line = b'{"text":"caf\xe9"}'
    assert reject(line).reason == "bad_encoding"
    assert reject(line).detail == "byte 0xe9 at position 12 is not valid utf-8"
    found = document(line, rules(replace=True))
    assert (found.text, found.notes) == ("caf\ufffd", ["bad_encoding"])


@pytest.mark.parametrize("number", ["1", "1e30", "123456789012345678901234567890", "NaN"])
def test_another_encoding_is_decoded_once_whichever_parser_reads_it(number: str) -> None:
    line = f'{{"text":"café","n":{number}}}'.encode("latin-1")
    assert document(line, rules("latin-1")).text == "café"


def test_an_encoding_without_all_bytes() -> None:
    line = b'{"text":"a\x81"}'
    assert reject(line, rules("cp1252")).reason == "bad_encoding"
    assert document(line, rules("cp1252", replace=True)).notes == ["bad_encoding"]


def test_surrogates_in_bytes_are_no_utf8() -> None:
    assert reject(b'{"text":"\xed\xa0\xbd"}').reason == "bad_encoding"


def test_files_are_decoded_and_lose_only_their_byte_order_mark() -> None:
    found = document_of_file(codecs.BOM_UTF8 + "\ufeff é\r\n".encode(), rules())
    assert isinstance(found, Document)
    assert (found.text, found.encoded, found.notes, found.source) == (
        "\ufeff é\r\n",
        "\ufeff é\r\n".encode(),
        [],
        "web",
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf_16", "U16", "utf-16-le", "utf_32", "UTF-32BE"])
def test_files_in_encodings_with_nul_bytes(encoding: str) -> None:
    found = document_of_file("héllo".encode(encoding), rules(encoding))
    assert isinstance(found, Document)
    assert found.text == "héllo"


def test_files_that_are_no_text() -> None:
    found = document_of_file(b"PK\x03\x04\x00\x00", rules())
    assert isinstance(found, Reject)
    assert (found.reason, found.detail) == ("binary_file", "a NUL byte at position 4")


def test_files_in_the_wrong_encoding() -> None:
    found = document_of_file(b"caf\xe9", rules())
    assert isinstance(found, Reject)
    assert found.reason == "bad_encoding"
    replaced = document_of_file(b"caf\xe9", rules(replace=True))
    assert isinstance(replaced, Document)
    assert (replaced.text, replaced.notes) == ("caf\ufffd", ["bad_encoding"])
    cut = document_of_file("héllo".encode("utf-16")[:-1], rules("utf-16"))
    assert isinstance(cut, Reject)
    assert cut.reason == "bad_encoding"


def test_files_above_the_limit() -> None:
    found = document_of_file(b"a" * 1001, rules())
    assert isinstance(found, Reject)
    assert found.reason == "text_too_long"
    assert isinstance(document_of_file(b"a" * 1000, rules()), Document)


def test_the_raw_record_is_cut_by_characters_and_hashed_whole() -> None:
    line = "é€😀".encode() * 10 + b"\xff"
    raw, sha256 = raw_of(line, RecordRules("web", raw_characters=4))
    assert (raw, sha256) == ("é€😀é", hashlib.sha256(line).digest())
    assert raw_of(b"a\xff", RecordRules("web"))[0] == "a\\xff"
    assert raw_of(line, RecordRules("web", raw_characters=0))[0] == ""


# --- values of tables


def test_bytes_in_a_text_column_are_decoded_or_rejected() -> None:
    assert document_of({"text": "é".encode()}, rules()) == document_of({"text": "é"}, rules())
    found = document_of({"text": b"\xff"}, rules())
    assert isinstance(found, Reject)
    assert found.reason == "bad_encoding"
    replaced = document_of({"text": b"\xff"}, rules(replace=True))
    assert isinstance(replaced, Document)
    assert replaced.notes == ["bad_encoding"]


@pytest.mark.parametrize(
    "value", [b"\xff", datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.date(2024, 1, 1)]
)
def test_values_that_json_doesn_t_know_are_rejected_not_raised(value: object) -> None:
    assert isinstance(document_of({"text": "t", "id": value}, WITH_ID), Reject)
    assert isinstance(document_of({"text": "t", "n": value}, rules(generation="n")), Reject)
    assert isinstance(document_of({"text": value}, rules()), Reject)


def test_times_are_stored_in_utc_and_bytes_in_base64() -> None:
    """Whatever the session's zone, and never as Python would print them."""
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    found = document_of(
        {"text": "t", "when": datetime.datetime(2024, 1, 1, 19, tzinfo=zone), "b": b"\xff\x00"}, rules()
    )
    assert isinstance(found, Document)
    assert found.attributes == [("when", "2024-01-02T00:00:00+00:00"), ("b", "/wA=")]


# --- time stamps


@pytest.mark.parametrize(
    ("value", "epoch"),
    [
        ("2024-03-10T02:30:00Z", 1710037800),
        ("2024-03-10T02:30:00", 1710037800),
        ("2024-03-10", 1710028800),
        ("10/03/2024", None),
        ("1710037800", None),
        (1710037800, 1710037800),
        ("0001-01-01T00:00:00Z", None),
        ("2024-02-30T00:00:00Z", None),
        ("2024-03-10T02:30:00+05:30", 1710018000),
        ("2024-03-10 02:30:00", 1710037800),
        (" 2024-03-10T02:30:00Z ", 1710037800),
        (1710037800.5, 1710037800.5),
        (-1, -1),
        (1710037800000, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("", None),
        ("yesterday", None),
        ("\ud800", None),
        ("9999-12-31T23:59:59-23:59", None),
        ({}, None),
        (datetime.datetime(2024, 3, 10, 2, 30), 1710037800),
        (datetime.datetime(2024, 3, 9, 21, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=-5))), 1710037800),
    ],
)
def test_time_stamps(value: object, epoch: float | None) -> None:
    """The first eight are the public case of stamps that depended on the cluster's zone."""
    stamp = parse_timestamp(value)
    assert (stamp.timestamp() if stamp else None) == epoch
    if stamp:
        assert stamp.tzinfo is datetime.UTC


def test_a_bad_time_stamp_is_noted_and_the_document_kept() -> None:
    found = document('{"text":"t","ts":"10/03/2024"}', rules(fetched_at="ts"))
    assert (found.fetched_at, found.notes) == (None, ["bad_timestamp"])
    assert document('{"text":"t","ts":null}', rules(fetched_at="ts")).notes == []


def test_every_note_has_a_meaning() -> None:
    assert set(NOTES) == {"bad_unicode", "bad_encoding", "bad_timestamp"}


# --- types


@pytest.mark.parametrize(
    ("wanted", "value", "stored"),
    [
        ("integer", "15", "15"), ("integer", '"15"', "15"), ("integer", '" +15 "', "15"), ("integer", "15.0", "15"),
        ("integer", "123456789012345678901234567890", "123456789012345678901234567890"),
        ("integer", "16.5", None), ("integer", '"n/a"', None), ("integer", "true", None), ("integer", '"1_000"', None),
        ("integer", '"٣"', None), ("integer", '"15.0"', None), ("integer", "[1]", None), ("integer", "NaN", None),
        ("integer", '"' + "1" * 5000 + '"', None),
        ("number", "15", "15"), ("number", "15.0", "15"), ("number", '"15"', "15"), ("number", '"15.0"', "15"),
        ("number", "1.5", "1.5"), ("number", '"1.5e3"', "1500"), ("number", '".5"', "0.5"), ("number", '"-1e-3"', "-0.001"),
        ("number", '"nan"', None), ("number", '"Infinity"', None), ("number", "NaN", None), ("number", '"1_0"', None),
        ("number", '"1e999"', None), ("number", "false", None), ("number", '"٣"', None), ("number", '"0x1p3"', None),
        ("boolean", "true", "true"), ("boolean", "false", "false"), ("boolean", '"true"', "true"),
        ("boolean", "1", None), ("boolean", '"yes"', None), ("boolean", "0", None), ("boolean", "[]", None),
        ("timestamp", '"2024-03-10"', "2024-03-10T00:00:00+00:00"), ("timestamp", "1710037800", "2024-03-10T02:30:00+00:00"),
        ("timestamp", '"10/03/2024"', None), ("timestamp", '"1710037800"', None),
        ("string", '" a "', " a "), ("string", "1", None), ("string", "{}", None),
    ],
)  # fmt: skip
def test_types_have_one_spelling_and_reject_what_doesn_t_fit(wanted: str, value: str, stored: str | None) -> None:
    line, how = f'{{"text":"t","n":{value}}}', rules(types={"n": wanted})
    if stored is not None:
        assert attribute(value, {"n": wanted}) == stored
    else:
        found = reject(line, how)
        assert found.reason == "bad_type"
        assert found.detail.startswith(f"field 'n' should be {wanted}, is ")


def test_a_typed_field_may_be_null_or_missing() -> None:
    assert document('{"text":"t","n":null}', rules(types={"n": "integer", "m": "number"})).attributes == []


# --- any record, any bytes

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(blacklist_categories=()))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def repaired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@settings(max_examples=400, deadline=None)
@given(
    text=st.text(st.characters(blacklist_categories=()), max_size=60),
    others=st.dictionaries(st.text(max_size=6).filter(lambda name: name != "text"), VALUES, max_size=5),
    escaped=st.booleans(),
    spaces=st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]),
)
def test_whatever_json_writes_is_read_back(
    text: str, others: dict[str, Any], escaped: bool, spaces: tuple[str, str]
) -> None:
    line = json.dumps({"a": 0, **others, "text": text}, ensure_ascii=escaped, separators=spaces)
    try:
        encoded = line.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair that was not escaped: no UTF-8 holds it
        return
    found = read_json_line(encoded, RecordRules("web"))
    assert isinstance(found, Document), found
    assert found.text == repaired(text)
    assert found.encoded == found.text.encode()
    given_values = {name: value for name, value in {"a": 0, **others}.items() if value is not None}
    stored = dict(found.attributes)
    assert set(stored) == set(given_values)
    for name, value in given_values.items():
        if isinstance(value, str):
            assert stored[name] == repaired(value)
        else:  # repr: NaN equals itself there, and 1 isn't 1.0
            plain = json.loads(
                json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
            assert repr(json.loads(stored[name])) == repr(plain)


def check_outcome(outcome: Document | Reject | None) -> None:
    if isinstance(outcome, Document):
        assert outcome.encoded == outcome.text.encode()
        assert all(note in NOTES for note in outcome.notes)
    elif outcome is not None:
        assert outcome.reason in REASONS
        outcome.detail.encode()


FUZZED = RecordRules("web", Mapped(doc_id="a", fetched_at="b.c"), {"n": "number"})
PIECES = st.sampled_from(
    [b'{"text":"', b'"', b"\\", b"\\u", b"d83d", b"{", b"}", b"[", b"]", b":", b",", b" ", b"null", b"1e9", b"-", b"\xff",
     b"\xc3\xa9", b'"text":', b'"a":"x",', b'"b":{"c":1},', b'"n":', b"NaN", b"\x00", codecs.BOM_UTF8, b"9" * 30]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60) | st.lists(PIECES, max_size=20).map(b"".join), st.booleans())
def test_any_bytes_are_a_document_a_reject_or_blank(line: bytes, replace: bool) -> None:
    for how in (FUZZED, rules("latin-1", replace), rules("utf-16", replace), rules(replace=replace)):
        check_outcome(read_json_line(line, how))
        check_outcome(document_of_file(line, how))
        raw_of(line, how)[0].encode()
