"""``weir init``: a commented settings file for a folder of data that was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from jobs.runtime.errors import SettingsError
from jobs.runtime.looking import FoundSource, look

HEAD = """# Written by `weir init {folder}` from a look at the data. Next: weir run {output}
# Every setting there is, with its meaning: weir settings --reference yaml
"""
REST = """
annotate:
  tokens: {tokenizer: cl100k_base}
  statistics: {}
  exact_key: {}
decide:
  - eligibility: {}
    # blocked_domain_lists: [lists/domains.txt]
    # blocked_id_lists: [lists/takedowns.txt]
  - exact_dedup: {normalisation: norm_v1}
  # - quality_filter:
  #     name: basics
  #     rules:
  #       - {name: too_short, keep: "statistics.characters >= 200"}
  #       - {name: mostly_letters, keep: "statistics.letters >= 0.5"}
validate:
  coverage:
    per: [source]
    floor: {documents: 1}
"""


def write_settings(folder: Path, output: Path, warehouse: str, force: bool = False) -> list[FoundSource]:
    """Look at a folder and write the settings file.

    Raises:
        SettingsError: if the file exists already, or can't be written.
        UnreadableInput: if there is nothing in the folder that can be read.
    """
    if output.exists() and not force:
        raise SettingsError(f"'{output}' exists already; --force overwrites it, --output names another file")
    found = look(folder)
    try:
        output.write_text(settings_text(found, warehouse=warehouse, folder=folder, output=output), encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"'{output}' can't be written: {error.strerror}") from None
    return found


def settings_text(found: Sequence[FoundSource], *, warehouse: str, folder: Path, output: Path) -> str:
    """The YAML; the same folder gives the same text."""
    lines = [HEAD.format(folder=folder, output=output)]
    lines.append(f"warehouse: {_scalar(warehouse)}")
    lines.append("survivor: [source_priority, doc_id]      # which of several duplicates stays, best first")
    lines.append(
        "sources:                                 # a smaller priority is better; documents with use: forbidden are dropped"
    )
    listed = [s for s in found if s.source_pattern is None]
    for number, source in enumerate(listed, 1):
        lines.append(f"  {_scalar(source.name)}: {{priority: {number}}}      # licence: CC-BY-4.0, use: allowed")
    if not listed:
        lines[-1] = "sources: {}"
    lines.append("ingest:")
    for source in found:
        lines.append(f"  {_scalar(source.name)}:      # {source.files:,} file(s), {source.bytes / 1e6:,.1f} MB")
        lines += [f"    # {sentence}" for sentence in source.evidence]
        lines += [f"    # note: {sentence}" for sentence in source.warnings]
        lines.append(f"    paths: [{_scalar(_relative(source.path))}]")
        lines.append(f"    format: {source.format}")
        if source.pattern:
            lines.append(f"    pattern: {_scalar(source.pattern)}")
        if source.source_pattern:
            lines.append(f"    source_pattern: {_scalar(source.source_pattern)}")
        if source.columns:
            inside = ", ".join(f"{name}: {_scalar(path)}" for name, path in source.columns.items())
            lines.append(f"    columns: {{{inside}}}")
    return "\n".join(lines) + REST


def _relative(path: str) -> str:
    try:
        return str(Path(path).absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(Path(path).absolute())


def _scalar(value: str) -> str:
    """A string as YAML inside a flow collection: names such as 007, no or a: b stay strings."""
    return yaml.safe_dump([value], default_flow_style=True, width=10_000, allow_unicode=True).strip()[1:-1]
