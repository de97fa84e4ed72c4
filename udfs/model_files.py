"""Model files on the machines that use them: found, checked by their sha-256, and loaded once per Python worker.

The driver names a file by its path and hashes it. A worker looks at that path first (a shared folder, one machine),
then among the files that were sent with the job, and takes only what has the driver's hash.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

Model = TypeVar("Model")

loads: dict[str, int] = {}
"""How often this process has loaded each model, by sha-256. More than once means that memory or time is wasted."""

_hashes: dict[str, str] = {}
_models: dict[tuple[str, str], Any] = {}


class ModelFileMissing(Exception):
    """A worker has no file of that name with the hash that the driver saw."""


def sha256_of(path: str) -> str:
    """SHA-256 (hex) of a file; hashed again only if its size or time of change is another.

    Raises:
        OSError: if it can't be read.
    """
    status = os.stat(path)
    return _sha256(os.path.abspath(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _sha256(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sent_name(path: str, sha256: str) -> str:
    """What a file is called among those sent with a job: two models may have one name, and one name one content only."""
    return f"{sha256[:16]}-{Path(path).name}"


def expect(hashes: Mapping[str, str]) -> None:
    """Tell this process what the driver saw: path -> sha-256. Called at the start of a task."""
    _hashes.update(hashes)


def local_path(path: str) -> str:
    """Where this process can read a file, after a look at its hash if the driver gave one.

    Raises:
        ModelFileMissing: if neither the path nor the sent files hold what the driver saw.
    """
    wanted = _hashes.get(path)
    if wanted is None:
        return path
    tried = []
    for place in (path, _among_sent(sent_name(path, wanted))):
        if place is None or not os.path.isfile(place):
            tried.append(f"{place or 'the files sent with the job'}: not there")
        elif sha256_of(place) != wanted:
            tried.append(f"{place}: another file, sha-256 {sha256_of(place)[:16]}")
        else:
            return place
    raise ModelFileMissing(f"model file {path} (sha-256 {wanted[:16]}) is not on this machine: {'; '.join(tried)}")


def _among_sent(name: str) -> str | None:
    try:
        from pyspark import SparkFiles

        return str(SparkFiles.get(name))
    except Exception:  # outside a worker there is no such folder
        return None


def loaded(kind: str, path: str, load: Callable[[str], Model]) -> Model:
    """A model, loaded at the first call and kept while this process lives (Spark ends idle workers after a minute).

    Args:
        kind: What ``load`` makes of the file; one file may be loaded in two ways.
        path: As the driver names it.
        load: From a path that exists here to the model.
    """
    place = local_path(path)
    key = (kind, sha256_of(place))
    if key not in _models:
        _models[key] = load(place)
        loads[key[1]] = loads.get(key[1], 0) + 1
    model: Model = _models[key]
    return model
