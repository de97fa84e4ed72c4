"""skops files with the same bytes for the same model.

skops names the parts of a file by memory addresses and stamps them with the time. Here both are replaced: parts are
numbered in the order in which the schema names them, and bear no time. What a reader builds from the file is the same.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

SCHEMA = "schema.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


def write_skops(model: Any, file: Path) -> None:
    """Store a fitted scikit-learn model; equal models give equal bytes. Parts aren't compressed, for zlibs differ."""
    import skops.io

    buffer = io.BytesIO()
    skops.io.dump(model, buffer)
    with zipfile.ZipFile(buffer) as given, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as written:
        schema = json.loads(given.read(SCHEMA))
        numbering = _Numbering()
        numbering.walk(schema)
        for old, new in numbering.files.items():
            written.writestr(zipfile.ZipInfo(new, _EPOCH), given.read(old))
        written.writestr(zipfile.ZipInfo(SCHEMA, _EPOCH), json.dumps(schema))


def types_to_trust(file: Path) -> list[str]:
    """The types in a file that skops builds only if the reader says that it trusts them."""
    import skops.io

    return [str(name) for name in skops.io.get_untrusted_types(file=file)]


def load_trusted(file: Path) -> Any:
    """A model from a file that this process has just written itself: all of its types are trusted."""
    import skops.io

    return skops.io.load(file, trusted=types_to_trust(file))


class _Numbering:
    """Numbers in place of memory addresses, by first appearance; what had one address gets one number."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0

    def walk(self, node: Any) -> None:
        """Renumber a schema in place."""
        if isinstance(node, list):
            for entry in node:
                self.walk(entry)
            return
        if not isinstance(node, dict):
            return
        if isinstance(node.get("__id__"), int):
            node["__id__"] = self._number(node)
        if "__loader__" in node and isinstance(node.get("file"), str):
            suffix = node["file"].rpartition(".")[2]
            node["file"] = self.files.setdefault(node["file"], f"{len(self.files)}.{suffix}")
        for entry in node.values():
            self.walk(entry)

    def _number(self, node: dict[str, Any]) -> int:
        # Whether two equal strings or numbers are one object is up to the interpreter, and changes nothing.
        scalar = node.get("__loader__") == "JsonNode"
        if not scalar and node["__id__"] in self._numbers:
            return self._numbers[node["__id__"]]
        self._next += 1
        if not scalar:
            self._numbers[node["__id__"]] = self._next
        return self._next
