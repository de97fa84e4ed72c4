"""``weir init``: a commented settings file for a folder of data that was looked at."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from jobs.looking.found import FoundSource, human_size, settings_path
from jobs.looking.samples import SAMPLE_BYTES, SAMPLE_FILES, SAMPLE_RECORDS
from jobs.looking.sources import look
from jobs.runtime.errors import SettingsError

REST = """
annotate:                   # what is measured of every document
  tokens: {tokenizer: cl100k_base}
  statistics: {}
  exact_key: {}

decide:                     # in this order; each step sees what the earlier ones kept
  - eligibility: {}
  - exact_dedup: {normalisation: norm_v1}
  # - quality_filter:       # an example: see what the statistics say before you choose limits
  #     rules:
  #       - {name: too_short, keep: "statistics.characters >= 200"}
  #       - {name: few_letters, keep: "statistics.letters >= 0.5"}

validate:
  coverage:
    per: [source]
    floor: {documents: 1}   # a source of which nothing is left stops the run
"""


def write_settings(folder: Path, output: Path, warehouse: str, force: bool = False) -> list[FoundSource]:
    """Look at a folder and write the settings file; the file and the warehouse are not taken for data.

    Args:
        folder: A local folder of data.
        output: The file to write.
        warehouse: Goes into the settings.
        force: Overwrite the file if it exists.

    Raises:
        SettingsError: if the file exists already, or can't be written.
        UnreadableInput: if the folder is missing or empty, or nothing in it can be read.
        NotPermitted: naming files and folders that may not be read.
    """
    occupied = f"'{output}' exists already; --force overwrites it, --output names another file"
    if os.path.lexists(output) and not force:
        raise SettingsError(occupied)
    leave_out = [output, *([Path(warehouse)] if "://" not in warehouse else [])]
    found = look(folder, leave_out)
    text = settings_text(found, warehouse=warehouse, folder=folder, output=output)
    try:
        with output.open("w" if force else "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise SettingsError(occupied) from None
    except OSError as error:
        raise SettingsError(f"'{output}' can't be written: {error.strerror}; --output names another file") from None
    return found


def settings_text(
    found: Sequence[FoundSource], *, warehouse: str, folder: Path, output: Path = Path("weir.yaml")
) -> str:
    """The YAML. Deterministic: the same sources give the same bytes.

    Args:
        found: As ``look`` gives them.
        warehouse: The setting ``warehouse``.
        folder: The folder that was looked at; named in comments.
        output: The file that the text goes into; named in comments.
    """
    files, size = sum(source.files for source in found), sum(source.bytes for source in found)
    shown = settings_path(str(folder))
    lines = [
        _comment(f"Written by: weir init {shlex.quote(shown)}"),
        _comment(f"Looked at: the name and size of every file, and up to {SAMPLE_RECORDS} records of up to"),
        _comment(f"{SAMPLE_FILES} files of each source, within the first {human_size(SAMPLE_BYTES)} of a file."),
        _comment("NOT looked at: everything else, so go through this before the first run."),
        _comment("Every setting that there is, with its meaning: weir settings --reference yaml"),
        "#",
        _comment(f"In {shown}, entries for ingest: {len(found):,}; files: {files:,}; size: {human_size(size)}"),
        *(_comment(f"Not taken in: {note}") for note in dict.fromkeys(n for s in found for n in s.beside)),
        "",
        f"warehouse: {_scalar(warehouse)}",
        "survivor: [source_priority, doc_id]   # which of several duplicates stays, best first",
        "",
        "sources:                    # the registry; a smaller priority is better",
    ]
    for priority, name in enumerate(sorted({name for source in found for name in source.sources}), 1):
        lines += [f"  {_scalar(name)}:", f"    priority: {priority}"]
        lines += ["    # licence: CC-BY-4.0", "    # use: allowed          # or evaluation_only, forbidden"]
    lines += ["", "ingest:"]
    for source in found:
        lines += _entry(source)
    return "\n".join([*lines, REST, _comment(f"Next: weir run {shlex.quote(str(output))}"), ""])


def _entry(source: FoundSource) -> list[str]:
    """One entry of the setting ``ingest``."""
    lines = [_comment(f"{source.files:,} file(s), {human_size(source.bytes)}")]
    lines += [_comment(sentence) for sentence in source.evidence]
    lines += [_comment(f"NOTE {sentence}") for sentence in source.warnings]
    if len(source.paths) == 1:
        lines.append(f"paths: [{_scalar(source.paths[0])}]")
    else:
        lines += ["paths:", *(f"  - {_scalar(path)}" for path in source.paths)]
    lines.append(f"format: {source.format}")
    for name, value in (("pattern", source.pattern), ("source_pattern", source.source_pattern)):
        if value is not None:
            lines.append(f"{name}: {_scalar(value)}")
    if source.columns:
        lines += ["columns:", *_mapping(source.columns)]
        lines += [f"  # {line.strip()}   # if that is what it means" for line in _mapping(source.suggested)]
    return [f"  {_scalar(source.name)}:", *(f"    {line}" for line in lines)]


def _mapping(columns: Mapping[str, str]) -> list[str]:
    return [f"  {column}: {_scalar(path)}" for column, path in columns.items()]


def _scalar(value: str) -> str:
    """A string as YAML on one line, anywhere: names such as 007, no or a: b stay strings."""
    style = None if value.isprintable() else '"'  # only in double quotes a line end is written as \\n
    dumped = yaml.safe_dump(
        [value], default_style=style, default_flow_style=True, width=sys.maxsize, allow_unicode=True
    )
    return dumped.strip().removeprefix("[").removesuffix("]")


def _comment(text: str) -> str:
    """Text as a comment: names of files and fields may hold line ends and other things that YAML does not bear."""
    return f"# {printable(text)}"


def printable(text: str) -> str:
    """Text with what can't be printed escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
