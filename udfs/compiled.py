"""One decorator for every Numba kernel: compiled code is kept between processes, and a kernel always runs.

Two things go wrong with Numba's own ``cache=True`` on a cluster. It raises where neither the package's folder nor the
user's cache folder can be written (a container with a read-only root and no home). And it looks only at the file that
holds the function: after an upgrade of a helper in another file, the old machine code of its callers is loaded. Here
the compiled code goes into a folder that can be written, named after the sources that it was made from; without any
such folder the kernel is compiled anew in each process, and a warning says so once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import logging
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
"""Kernels hold no Python object, so they run without the GIL; they never divide by an unchecked zero."""

_IMPORTED_KERNELS = re.compile(r"^(?:from|import) (udfs\.[\w.]+)", re.MULTILINE)
"""Kernel modules import each other's functions as ``from udfs.module import function``, at the start of a line."""


def compiled(function: Function) -> Function:
    """Compile ``function`` with Numba at its first call, and keep the machine code for later processes.

    The decorated function never raises because of the cache. It is compiled once for each tuple of argument types, so
    callers pass arrays of one kind: C-contiguous, and read-only where the kernel only reads them.
    """
    folder = cache_folder(function.__module__)
    if folder is not None:
        try:
            with _numba_caches_in(folder):
                dispatcher = numba.njit(cache=True, **OPTIONS)(function)
            # A module inside a zip is cached by Numba in a folder of its own choice, which it doesn't check.
            if _is_writable(Path(dispatcher.stats.cache_path)):
                return dispatcher
        except (RuntimeError, OSError) as error:
            logger.warning("the compiled code of %s isn't kept: %s", function.__qualname__, error)
    return numba.njit(**OPTIONS)(function)


@functools.cache
def cache_folder(module_name: str) -> Path | None:
    """Return the folder for the compiled code of a module, or None where nothing can be written.

    Its name holds a digest of the module's source and of the kernels' sources that it imports, directly or not.
    """
    root = cache_root()
    sources = _sources(module_name)
    if root is None or sources is None:
        return None
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(f"{name}\0{len(sources[name])}\0{sources[name]}".encode())
    return root / f"kernels-{digest.hexdigest()[:16]}"


@functools.cache
def cache_root() -> Path | None:
    """Return the first folder that can be written: NUMBA_CACHE_DIR, beside the sources, the user's cache, temporary."""
    candidates = [Path(__file__).parent / "__pycache__"]
    if config.CACHE_DIR:
        candidates.insert(0, Path(config.CACHE_DIR))
    if os.environ.get("XDG_CACHE_HOME"):
        candidates.append(Path(os.environ["XDG_CACHE_HOME"]) / "corpus-weir")
    # A container may run under a user number without a home, or without any folder for temporary files.
    with contextlib.suppress(RuntimeError):
        candidates.append(Path.home() / ".cache" / "corpus-weir")
    for candidate in candidates:
        if candidate.is_absolute() and _is_writable(candidate):
            return candidate
    with contextlib.suppress(FileNotFoundError):
        temporary = Path(tempfile.gettempdir()) / f"corpus-weir-{os.getuid()}"
        candidates.append(temporary)
        if _is_writable(temporary) and _is_private(temporary):
            return temporary
    logger.warning(
        "no folder can be written for compiled kernels (tried %s): each process compiles them anew, which takes some "
        "seconds. Set NUMBA_CACHE_DIR to a folder that the workers can write.",
        ", ".join(map(str, candidates)),
    )
    return None


def _sources(module_name: str) -> dict[str, str] | None:
    """Return the source text of a module and of all ``udfs`` modules that it imports, by name."""
    found: dict[str, str] = {}
    waiting = [module_name]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            module = sys.modules.get(name) or importlib.import_module(name)
            found[name] = inspect.getsource(module)
        except (ImportError, OSError, TypeError):
            return None
        waiting.extend(_IMPORTED_KERNELS.findall(found[name]))
    return found


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _is_private(folder: Path) -> bool:
    """Say whether only this user can write the folder: code is loaded from it, and others can write beside it."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


@contextlib.contextmanager
def _numba_caches_in(folder: Path) -> Iterator[None]:
    """Point Numba at ``folder`` while a function is decorated: that's when it chooses where it will cache."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before
