"""Delta's jars: from a folder that the user names, else from the cache, else fetched once from Maven packages.

The Delta wheel holds Python only. Its own helper has Spark resolve the jars at every start: that needs the network each
time, fetches 90 MB of which Spark has 78 already, prints pages, and fails where the user's Maven cache holds POMs
without their jars. So they are fetched here, by the Ivy that Spark ships, into a folder of their own, once.

``python -m jobs.runtime.jars`` fetches them where they are missing and prints the folder. On a machine without a
network, copy that folder and name it in the setting ``spark.jars``.

Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.runtime.errors import JarsNotFound, WeirError
from jobs.runtime.ivy import MIRROR_VARIABLE, fetch_with_ivy

MANIFEST = "manifest.json"
"""Names each jar of a cache folder, its bytes and sha256. It is written last: without it, a folder is half-fetched."""

MINIMUM_DELTA = (4, 3)
"""Delta below 4.3 uses classes that Spark 4.1.2 removed."""

_PRIVATE_PREFIX = ".fetch-"
_ABANDONED_SECONDS = 24 * 3600
_NO_CODE = re.compile(r"-(sources|javadoc|tests)\.jar$")
_JAR_NAME = re.compile(r"[\w.+-]+\.jar")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JarSet:
    """Which jars: a Delta version, for a line of Spark (major.minor) and of Scala."""

    delta: str
    spark: str
    scala: str = "2.13"

    @property
    def name(self) -> str:
        """The name of their folder in the cache."""
        return f"delta-{self.delta}-spark-{self.spark}_{self.scala}"

    @classmethod
    def installed(cls) -> JarSet:
        """The set that fits the installed Python packages ``delta-spark`` and ``pyspark``.

        Raises:
            JarsNotFound: one of them is not installed, or Delta is older than ``MINIMUM_DELTA``.
        """
        try:
            delta = importlib.metadata.version("delta-spark")
            spark = importlib.metadata.version("pyspark")
        except importlib.metadata.PackageNotFoundError as error:
            raise JarsNotFound(
                f"The Python package {error.name} is not installed, so the version of Delta's jars is unknown. "
                "Install corpus-weir with its dependencies, or name a folder with the jars in the setting spark.jars."
            ) from None
        if _numbers(delta) < MINIMUM_DELTA:
            raise JarsNotFound(f"delta-spark {delta} is installed; Corpus Weir needs {_minimum_text()} or later.")
        return cls(delta, ".".join(spark.split(".")[:2]))


Fetcher = Callable[[JarSet, Path, Path], None]
"""Puts the jars of a set into the folder (second argument) and its chatter into the log file (third), or raises."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``corpus-weir`` in the user's cache folder (XDG base directory specification: an absolute path, or ignored)."""
    stated = Path(environment.get("XDG_CACHE_HOME", ""))
    home = environment.get("HOME")
    base = stated if stated.is_absolute() else (Path(home) if home else Path.home()) / ".cache"
    return base / "corpus-weir"


def delta_jars(
    folder: str | Path | None = None,
    cache: Path | None = None,
    *,
    wanted: JarSet | None = None,
    ivy_settings: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    fetch: Fetcher | None = None,
) -> list[Path]:
    """The jars that a Spark session with Delta needs, as absolute paths in the order of their names.

    Several processes may call this at once on one cache: each that finds it incomplete fetches into a private folder
    and moves the same bytes into place, file by file.

    Args:
        folder: a folder that holds the jars already (the setting ``spark.jars``); it is checked, not completed.
        cache: where fetched jars are kept; default ``cache_folder()``.
        wanted: the version; default the one that fits the installed Python packages.
        ivy_settings: an Ivy settings file to use in place of the project's own (``spark.jars.ivySettings``).
        environment: where HOME, proxies, ``JAVA_HOME``, ``WEIR_MAVEN_REPOSITORY`` (a mirror's URL) are read from.
        fetch: stands in for Ivy in the tests.

    Raises:
        JarsNotFound: the folder has the wrong jars, or fetching failed; the message says why and what to do.
        JavaNotFound: the jars must be fetched and there is no Java to do it.
    """
    if folder:
        return check_folder(Path(folder).expanduser(), wanted.spark if wanted else _installed_spark_line())
    wanted = wanted or JarSet.installed()
    cache = cache or cache_folder(environment)
    target = cache / "jars" / wanted.name
    jars = read_complete(target)
    if jars is None:
        jars = _fetch_into(
            target, cache / "logs" / f"{wanted.name}.log", wanted, fetch or _ivy(ivy_settings, environment)
        )
    return jars


def check_folder(folder: Path, spark_line: str, scala_line: str = "2.13") -> list[Path]:
    """All jars of a folder that the user names, after a look at their names: Delta's must be there and fit.

    Raises:
        JarsNotFound: with every problem of the folder.
    """
    if not folder.is_dir():
        raise JarsNotFound(f"The setting spark.jars names {folder}, which is not a folder on this machine.")
    jars, problems = _look_through(folder, spark_line, scala_line)
    if problems:
        raise JarsNotFound([f"The folder {folder} of the setting spark.jars does not fit: {p}" for p in problems])
    return jars


def _look_through(folder: Path, spark_line: str, scala_line: str) -> tuple[list[Path], list[str]]:
    """The jars of a folder, and what keeps them from being Delta's for this Spark."""
    jars = [jar for jar in sorted(folder.resolve().glob("*.jar")) if not _NO_CODE.search(jar.name)]
    needed = f"delta-spark_{spark_line}_{scala_line}"
    versions: dict[str, list[str]] = {needed: [], "delta-storage": []}
    problems: list[str] = []
    for jar in jars:
        match = re.fullmatch(r"(delta-spark[_.\d]*|delta-core[_.\d]*|delta-storage)-(\d.*)\.jar", jar.name)
        if match is None:
            continue
        artifact, version = match.groups()
        if artifact in versions:
            versions[artifact].append(version)
        elif re.fullmatch(r"delta-spark_\d+\.\d+", artifact):
            problems.append(f"{jar.name} does not say which Spark it is for (from 4.4 on: Spark 4.2); take {needed}.")
        else:
            problems.append(f"{jar.name} is not for Spark {spark_line} with Scala {scala_line}; take {needed}.")
    for artifact, found in versions.items():
        if not found:
            problems.append(f"{artifact}-*.jar is missing.")
        elif len(found) > 1:
            problems.append(f"{artifact} is there in {len(found)} versions ({', '.join(found)}); keep one.")
    delta, storage = versions[needed], versions["delta-storage"]
    if len(delta) == 1 and len(storage) == 1 and delta != storage:
        problems.append(f"{needed} is {delta[0]} but delta-storage is {storage[0]}; take both of one release.")
    if len(delta) == 1 and _numbers(delta[0]) < MINIMUM_DELTA:
        problems.append(f"{needed} is {delta[0]}; Corpus Weir needs {_minimum_text()} or later.")
    return jars, problems


def read_complete(folder: Path) -> list[Path] | None:
    """The jars that a cache folder's manifest names, or None unless each is there with its size and sha256."""
    try:
        named = json.loads((folder / MANIFEST).read_bytes())["jars"]
        jars = []
        for name, told in sorted(named.items()):
            jar = folder / name
            # A manifest is a file that anybody may have edited: it names files of this folder, nothing else.
            if not _JAR_NAME.fullmatch(name) or _describe(jar) != told:
                return None
            jars.append(jar.resolve())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return jars or None


def _describe(jar: Path) -> dict[str, int | str]:
    content = jar.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _fetch_into(target: Path, log: Path, wanted: JarSet, fetch: Fetcher) -> list[Path]:
    """Fetches into a private folder beside the target, checks, and moves into place: the jars, then the manifest."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent)
        with tempfile.TemporaryDirectory(prefix=_PRIVATE_PREFIX, dir=target.parent) as private:
            work = Path(private)
            _logger.info("fetching Delta %s's jars for Spark %s, once (log: %s)", wanted.delta, wanted.spark, log)
            try:
                fetch(wanted, work, work / "log")
                fetched, problems = _look_through(work, wanted.spark, wanted.scala)
                if problems:
                    raise JarsNotFound(f"what arrived does not fit: {' '.join(problems)}")
            finally:
                if (work / "log").exists():
                    (work / "log").replace(log)
            manifest = {"set": wanted.name, "jars": {jar.name: _describe(jar) for jar in fetched}}
            (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
            for name in (*manifest["jars"], MANIFEST):
                (work / name).replace(target / name)
    except JarsNotFound as error:
        raise JarsNotFound(_failure(wanted, str(error), log)) from None
    except OSError as error:
        reason = f"{error.filename or target}: {error.strerror or error} (XDG_CACHE_HOME can name another cache folder)"
        raise JarsNotFound(_failure(wanted, reason, log)) from error
    jars = read_complete(target)
    if jars is None:
        raise JarsNotFound(_failure(wanted, f"{target} was changed by another program meanwhile", log))
    return jars


def _failure(wanted: JarSet, reason: str, log: Path) -> str:
    return "\n".join(
        [
            f"Delta {wanted.delta}'s jars for Spark {wanted.spark} could not be fetched: {reason.rstrip('.')}.",
            *([f"The resolver's log: {log}"] if log.exists() else []),
            "Two remedies:",
            f"  - copy the folder {wanted.name} from a machine that has it ('python -m jobs.runtime.jars' prints",
            "    where it is) and name the copy in the setting spark.jars, or in the environment: WEIR_SPARK__JARS=FOLDER;",
            f"  - name a Maven repository that can be reached from here: {MIRROR_VARIABLE}=URL.",
        ]
    )


def _remove_abandoned(folder: Path) -> None:
    """Removes the private folders of processes that were killed; one that may still be at work is left alone."""
    for private in folder.glob(f"{_PRIVATE_PREFIX}*"):
        if time.time() - private.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(private, ignore_errors=True)


def _ivy(settings: str | Path | None, environment: Mapping[str, str]) -> Fetcher:
    def fetch(wanted: JarSet, folder: Path, log: Path) -> None:
        versions = {"weir.delta": wanted.delta, "weir.spark": wanted.spark, "weir.scala": wanted.scala}
        fetch_with_ivy(versions, folder, log, settings, environment)

    return fetch


def _installed_spark_line() -> str:
    try:
        return ".".join(importlib.metadata.version("pyspark").split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return "4.1"  # the line this distribution is made for; the session checks what really runs


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _minimum_text() -> str:
    return ".".join(str(part) for part in MINIMUM_DELTA)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetches Delta's jars unless they are there, and prints their folder on stdout; 0, or 2 with the reason."""
    parser = argparse.ArgumentParser(prog="python -m jobs.runtime.jars", description=main.__doc__)
    parser.add_argument("--folder", default=os.environ.get("WEIR_SPARK__JARS"), help="check this folder instead")
    parser.add_argument("--ivy-settings", help="an Ivy settings file, for a repository that needs one")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        jars = delta_jars(options.folder, ivy_settings=options.ivy_settings)
    except WeirError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{jars[0].parent}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
