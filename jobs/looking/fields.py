"""Which field of the sampled records is the text, the id, the address, the time: guesses with their evidence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from jobs.looking.found import SHOWN, Findings, Sample, total_size
from jobs.looking.samples import SAMPLE_RECORDS, is_utf8, spread
from udfs.record_values import parse_timestamp

NESTED, FEW_VALUES, LONGEST_NAME = 5, 20, 100
EARLIEST_NUMBER = 631_152_000
"""1990-01-01 in epoch seconds. A smaller number is no time of fetching, but rather a date such as 20240131."""

TEXT = ("text", "content", "raw_content", "body", "article", "document", "code", "passage", "paragraph", "markdown")
IDS = ("id", "doc_id", "document_id", "docid", "uuid", "_id", "warc_record_id", "record_id")
STRINGS = {
    "url": ("url", "uri", "link", "source_url", "page_url", "warc_target_uri"),
    "language": ("language", "lang", "language_code", "lang_code"),
}
TIMES = ("fetched_at", "timestamp", "date", "crawl_date", "created_at", "created", "published", "warc_date")
SOURCES = ("source", "dataset", "subset")
METADATA = frozenset({"meta", "metadata", "attributes", "properties", "info", "headers", "warc_headers"})
"""Objects that describe the whole record. Elsewhere (``author.url``) a field says something about a part of it."""


# --- columns


def of_texts(files: Sequence[str]) -> Findings | str:
    """Whole files as documents: whether they are UTF-8."""
    seen = spread([file for file in files if os.path.getsize(file)], SAMPLE_RECORDS)
    good = sum(map(is_utf8, seen))
    if not seen:
        return f"{len(files):,} text file(s), all empty"
    findings = Findings()
    findings.evidence.append(
        f"text: a file is a document; {good:,} of {len(seen):,} sampled files are UTF-8, "
        f"mean {total_size(files) // len(files):,} bytes; ids are made from content"
    )
    if good < len(seen):
        bad = os.path.basename(next(file for file in seen if not is_utf8(file)))
        findings.warnings.append(
            f"{len(seen) - good:,} of {len(seen):,} sampled files are not UTF-8 and would be rejected, such as {bad}; "
            "if it is text, name its encoding, for example encoding: latin-1"
        )
    return findings


def columns_in(sample: Sample, source_field: bool) -> Findings | str:
    """Columns by fields' names and values, each with its evidence; or why the sample holds no documents."""
    if not sample.records:
        return "; ".join(["no record could be read", *sample.problems[:SHOWN]])
    total, findings = len(sample.records), Findings()
    fields: dict[str, list[Any]] = {}
    for record in sample.records:
        for path, value in _flat(record):
            fields.setdefault(path, []).append(value)
    text = _text_field(fields, total)
    if text is None:
        return f"no field of its {total:,} sampled records holds text"
    findings.columns["text"] = text
    _judge_text(fields, text, total, findings)
    if sample.broken:
        findings.warnings.append(
            f"{sample.broken:,} of {total + sample.broken:,} sampled lines are no JSON objects and would be rejected"
        )
    near = text.rpartition(".")[0]
    _find_id(fields, near, total, findings)
    for column, names in STRINGS.items():
        for path in _named(fields, names, near):
            if path != text and all(isinstance(value, str) for value in fields[path]):
                findings.columns[column] = path
                findings.evidence.append(f"{column}: {_share(fields, path, total)}")
                break
    for path in _named(fields, TIMES, near):
        if all(_is_time(value) for value in fields[path]):
            findings.columns["fetched_at"] = path
            findings.evidence.append(f"fetched_at: {_share(fields, path, total)}, all of them time stamps")
            break
        findings.evidence.append(f"fetched_at: not field '{path}', for not all of its values are time stamps")
    for path in _named(fields, SOURCES, near) if source_field else ():
        values = fields[path]
        distinct = {value for value in values if isinstance(value, str)}
        usable = all(isinstance(v, str) and 0 < len(v) <= LONGEST_NAME and "://" not in v for v in values)
        if usable and len(distinct) <= FEW_VALUES and path != text:
            findings.suggested["source"] = path
            findings.source_names = sorted(distinct) if len(values) == total else []
            shown = ", ".join(sorted(distinct))
            findings.evidence.append(f"source: {_share(fields, path, total)}, {len(distinct)} value(s): {shown}")
            break
    return findings


def _flat(record: Mapping[str, Any], above: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """A record's values but null, by the dotted path with which the settings reach them."""
    for name, value in record.items():
        if value is None or not name or (above and "." in name):
            continue  # a dot in an inner name can't be told from a step into an object
        path = f"{above}.{name}" if above else name
        if isinstance(value, dict):
            if depth < NESTED and "." not in name:
                yield from ((inner, v) for inner, v in _flat(value, path, depth + 1) if inner not in record)
        else:
            yield path, value


def _named(fields: Mapping[str, Any], names: Sequence[str], near: str | None) -> list[str]:
    """Fields of one of these names: the least nested first, then in the names' order.

    ``near``: only at the top, beside the text, or in objects of metadata; None: anywhere.
    """
    ranked = []
    for path in fields:
        above, _, last = path.rpartition(".") if path not in names else ("", "", path)
        spelled = last.lower().replace("-", "_")
        about = above in ("", near) or all(part.lower() in METADATA for part in above.split("."))
        if spelled in names and (near is None or about):
            ranked.append((path.count("."), names.index(spelled), path))
    return [path for *_, path in sorted(ranked)]


def _text_field(fields: Mapping[str, list[Any]], total: int) -> str | None:
    """The field of a usual name that mostly holds strings, else that with the longest strings on average."""
    strings = {path: found for path, values in fields.items() if (found := _strings(values))}
    for path in _named(strings, TEXT, None):
        if 2 * len(strings[path]) >= total:
            return path
    plain = {path: found for path, found in strings.items() if isinstance(fields[path][0], str)}
    often = {path: found for path, found in plain.items() if 2 * len(found) >= total}
    return min(often or plain, key=lambda path: (-_mean(plain[path]), path), default=None)


def _strings(values: Iterable[Any]) -> list[str]:
    """The strings among values, those too that a table holds as UTF-8 bytes: ``ingest`` decodes them."""
    found = []
    for value in values:
        if isinstance(value, bytes):
            try:
                found.append(value.decode())
            except UnicodeDecodeError:
                continue
        elif isinstance(value, str):
            found.append(value)
    return found


def _mean(strings: Sequence[str]) -> int:
    return sum(map(len, strings)) // len(strings)


def _share(fields: Mapping[str, list[Any]], path: str, total: int) -> str:
    return f"field '{path}', {len(fields[path]):,} of {total:,} sampled records"


def _judge_text(fields: Mapping[str, list[Any]], text: str, total: int, findings: Findings) -> None:
    held = _strings(fields[text])
    mean = _mean(held)
    findings.evidence.append(
        f"text: field '{text}', {len(held):,} of {total:,} sampled records, mean {mean:,} characters"
    )
    if len(held) < total:
        findings.warnings.append(
            f"{total - len(held):,} of {total:,} sampled records have no string in '{text}' and would be rejected"
        )
    means = {path: _mean(found) for path, values in fields.items() if (found := _strings(values))}
    longest = min(means, key=lambda path: (-means[path], path))
    if means[longest] > 10 * max(mean, 1):
        findings.warnings.append(f"field '{longest}' is longer (mean {means[longest]:,} characters): is that the text?")


def _find_id(fields: Mapping[str, list[Any]], near: str, total: int, findings: Findings) -> None:
    """The first field of a usual name that can be an id: always there, a string or whole number, never repeated."""
    refused = []
    for path in _named(fields, IDS, near):
        values = fields[path]
        if not all(isinstance(v, (str, int)) and not isinstance(v, bool) and v != "" for v in values):
            refused.append(f"field '{path}' is not always a string or a whole number")
        elif len(values) < total:
            refused.append(f"field '{path}' is missing in {total - len(values):,} of {total:,} sampled records")
        elif len(set(map(str, values))) < total:
            refused.append(f"field '{path}' has {len(set(map(str, values))):,} values in {total:,} sampled records")
        else:
            findings.columns["doc_id"], findings.ids = path, values
            findings.evidence.append(f"doc_id: {_share(fields, path, total)}, each value once")
            return
    why = "; ".join(refused) or "no field has the name of an id"
    findings.evidence.append(f"doc_id: ids are made from content, for {why}")


def _is_time(value: Any) -> bool:
    """Whether ``ingest`` reads a value as a time stamp, and as one that can be meant."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    earlier = isinstance(value, (int, float)) and value < EARLIEST_NUMBER
    return not earlier and parse_timestamp(value) is not None
