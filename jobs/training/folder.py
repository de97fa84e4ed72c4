"""The folder of a model: there whole or not at all, and never in the place of something else unless that is asked for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.runtime.errors import NotPermitted, RetryLater, SettingsError
from jobs.runtime.tables import is_catalog

CARD = "card.json"


def folder_of(warehouse: str, name: str, given: str | None) -> Path:
    """Where a model goes: as given, else ``models/NAME`` beside the warehouse's folder (of a URI or schema: here)."""
    if given is not None:
        return Path(given).expanduser().absolute()
    remote = is_catalog(warehouse) or "://" in warehouse
    home = Path.cwd() if remote else Path(warehouse).expanduser().absolute().parent
    return home / "models" / name


def check_free(folder: Path, identity: str, replace: bool) -> dict[str, Any] | None:
    """The card of the model that is there already, if it is the same; None if the folder may be written.

    Args:
        folder: The model's folder.
        identity: Of what is to be trained: inputs, versions, settings.
        replace: Whether another model may be replaced.

    Raises:
        SettingsError: if another model is there and may not be replaced, or something that is no model of ours.
    """
    _restore(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        there, model, sha256 = str(card["identity"]), str(card["model"]), str(card["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        raise SettingsError(
            f"'{folder}' holds something that is no model of weir train-classifier; it stays as it is. Name another `folder`."
        ) from None
    if there == identity and _sha256(folder / model) == sha256:
        return dict(card)
    if not replace:
        differs = "its file was changed" if there == identity else _difference(card)
        raise SettingsError(
            f"'{folder}' holds another model ({differs}). Name another `folder`, or set `replace: true` to put the new one in its "
            "place."
        )
    return None


@contextlib.contextmanager
def new_folder(folder: Path, token: str, replace: bool) -> Iterator[Path]:
    """A folder beside the model's to write into; it gets the model's name when the block ends, and is gone if it fails.

    A process that is killed leaves it under a hidden name of its own, which the next attempt of the same run removes.

    Args:
        folder: The model's folder.
        token: Names the run, so that two don't write into one folder.
        replace: Whether what is there now may be replaced.

    Raises:
        NotPermitted: if it can't be made.
        RetryLater: if something has come into its place meanwhile that may not be replaced.
    """
    partial = folder.with_name(f".{folder.name}.partial-{hashlib.sha256(token.encode()).hexdigest()[:12]}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    except OSError as error:
        raise NotPermitted(f"the model's folder can't be made: {error}", remedy="Name another `folder`.") from None
    try:
        yield partial
        _put_in_place(partial, folder, replace)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, folder: Path, replace: bool) -> None:
    aside = _aside(folder)
    if replace and folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    try:
        partial.rename(folder)  # fails if something is there, but for an empty folder
    except OSError as error:
        _restore(folder)
        raise RetryLater(f"'{folder}' could not be put in place ({error.strerror}); nothing was replaced") from None
    shutil.rmtree(aside, ignore_errors=True)


def _aside(folder: Path) -> Path:
    """Where the old model stands for the moment in which the new one takes its place."""
    return folder.with_name(f".{folder.name}.replaced")


def _restore(folder: Path) -> None:
    """Bring the old model back, if the process was killed in that moment."""
    if _aside(folder).is_dir() and not folder.exists():
        _aside(folder).rename(folder)


def _sha256(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _difference(card: dict[str, Any]) -> str:
    inputs = card.get("inputs", {}).get("tables", {})
    read = ", ".join(f"{name} at version {version}" for name, version in sorted(inputs.items()))
    return f"of {read or 'other inputs'}, sha-256 {str(card['sha256'])[:12]}; this run's inputs or settings are others"
