"""Finds the Java that Spark runs on, and installs one where it may: ``python -m jobs.runtime.java --install``.

Spark 4.1 runs on Java 17 and 21 (Spark documentation, "Overview"). What a machine offers first is often another
version (8 of an old Hadoop client, 25 of the day), and Spark then fails much later with an error about a class
or a module. So every usual place is looked at before anything starts, and what was passed over is said.

Standard library only: the set-up runs this module before any dependency is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.runtime.errors import JavaNotFound

SUPPORTED_VERSIONS = (17, 21)
"""The versions that Spark 4.1 runs on, the one to prefer first."""

SETTING = "spark.java_home"
"""The setting that names a Java; it stands in messages."""

USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/lib64/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "~/.asdf/installs/java/*",
    "~/.local/share/mise/installs/java/*",
)
"""Where package managers and version managers put Java: one glob pattern each, ``~`` for the home folder."""

_SECONDS_FOR_VERSION = 30.0
"""A Java answers in a tenth of a second; a shim that waits for something must not hang the set-up."""

DEBIAN_PACKAGES = tuple(f"openjdk-{version}-jre-headless" for version in SUPPORTED_VERSIONS)

HOW_TO_INSTALL = """Install Java 17 or 21:
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless   (openjdk-21-jre-headless on Debian 13)
  Fedora, RHEL     sudo dnf install java-21-openjdk-headless
  macOS            brew install openjdk@17"""


@dataclass(frozen=True)
class JavaHome:
    """One Java installation: its folder, its version, and where it was found."""

    home: Path
    version: int
    full_version: str
    found_in: str
    notes: tuple[str, ...] = ()
    """What a user should know about the choice: each Java of JAVA_HOME or PATH that was passed over."""

    @property
    def executable(self) -> Path:
        """The ``java`` command."""
        return self.home / "bin" / "java"

    def __str__(self) -> str:
        return f"Java {self.full_version} in {self.home} (from {self.found_in})"


def find_java(
    preferred: str | None = None,
    environment: Mapping[str, str] = os.environ,
    usual_folders: Sequence[str] = USUAL_FOLDERS,
) -> JavaHome:
    """The Java to run Spark on: the setting's, else that of JAVA_HOME, of PATH, or of one of the usual folders.

    A Java of another version in JAVA_HOME or on PATH is passed over, with a line in ``notes``. Among the usual
    folders 17 is preferred to 21, then their order counts, then that of the names: the same machine gives the
    same answer each time.

    Args:
        preferred: the folder (or the ``java`` file) that the user's settings name; it is taken or refused, never
            passed over.
        environment: where JAVA_HOME, PATH and HOME are read from.
        usual_folders: glob patterns of the folders to look at last.

    Raises:
        JavaNotFound: the named Java is none or of another version, or no place holds a supported version.
    """
    if preferred:
        return _named_java(preferred)

    unfit: list[JavaHome] = []
    notes: list[str] = []
    for place, path in _environment_candidates(environment):
        java = _inspect(path, place)
        if java is None:
            notes.append(f"passed over {place}={path}: no Java is there")
        elif java.version in SUPPORTED_VERSIONS:
            return replace(java, notes=tuple(notes))
        else:
            unfit.append(java)
            notes.append(f"passed over {java}: Spark 4.1 needs {_versions_text()}")

    seen = {java.home for java in unfit}
    found = [java for java in _in_usual_folders(environment, usual_folders) if java.home not in seen]
    fit = [java for java in found if java.version in SUPPORTED_VERSIONS]
    if fit:
        best = min(fit, key=lambda java: SUPPORTED_VERSIONS.index(java.version))  # the first of equals
        return replace(best, notes=tuple(notes))

    others = [f"  {java}" for java in (*unfit, *found)]
    raise JavaNotFound(
        "\n".join(
            [
                f"No Java that Spark 4.1 runs on ({_versions_text()}) was found"
                + ("; these are here:" if others else ", and no other Java either."),
                *others,
                HOW_TO_INSTALL,
                f"A Java in an unusual place: set JAVA_HOME or the setting {SETTING} to its folder.",
            ]
        )
    )


def _versions_text() -> str:
    return " or ".join(str(version) for version in SUPPORTED_VERSIONS)


def _named_java(preferred: str) -> JavaHome:
    """The Java that the settings name, or an error: a user who names one must not get another."""
    path = Path(preferred).expanduser()
    place = f"the setting {SETTING}"
    java = _inspect(path, place)
    if java is None:
        raise JavaNotFound(
            f"The setting {SETTING} names {path}, but no Java is there: it must be the folder that holds bin/java."
        )
    if java.version not in SUPPORTED_VERSIONS:
        raise JavaNotFound(
            f"The setting {SETTING} names {path}, which is Java {java.full_version}; Spark 4.1 runs on "
            f"{_versions_text()}. Name one of these, or leave the setting out to have one looked for."
        )
    return java


def _environment_candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    # An empty PATH must not make shutil.which fall back to the process's own.
    on_path = shutil.which("java", path=environment.get("PATH") or os.devnull)
    if on_path:
        yield "PATH", Path(on_path)


def _in_usual_folders(environment: Mapping[str, str], usual_folders: Sequence[str]) -> list[JavaHome]:
    found: dict[Path, JavaHome] = {}
    for pattern in usual_folders:
        if not pattern.startswith("~/"):
            root, relative = Path("/"), pattern.removeprefix("/")
        elif environment.get("HOME"):
            root, relative = Path(environment["HOME"]), pattern.removeprefix("~/")
        else:
            continue
        for folder in sorted(root.glob(relative)):
            java = _inspect(folder, "a usual folder")
            if java is not None:
                found.setdefault(java.home, java)  # /usr/lib/jvm holds a link or two to each of its folders
    return list(found.values())


def _inspect(path: Path, found_in: str) -> JavaHome | None:
    """The Java at a folder or behind a ``java`` file (links followed); None where none is, or none answers."""
    try:
        real = path.resolve(strict=True)
        executable = real / "bin" / "java" if real.is_dir() else real
        if not (executable.is_file() and os.access(executable, os.X_OK)):
            return None
        home = real if real.is_dir() else executable.parent.parent
        told = _read_release(home)
        if told is None:
            # A version manager's wrapper (jenv, asdf), or a folder without a release file: ask it.
            asked = _ask(executable)
            if asked is None:
                return None
            told, stated_home = asked
            if stated_home is not None and (stated_home / "bin" / "java").is_file():
                home = stated_home.resolve()
    except OSError:
        return None
    version = _major(told)
    if version is None or not (home / "bin" / "java").is_file():
        return None
    return JavaHome(home, version, told, found_in)


def _read_release(home: Path) -> str | None:
    """JAVA_VERSION of the ``release`` file that every vendor has put beside ``bin`` since Java 7."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="?([^"\s]+)', text, re.MULTILINE)
    return match.group(1) if match else None


def _ask(executable: Path) -> tuple[str, Path | None] | None:
    """Version and home folder as the command itself tells them."""
    try:
        answer = subprocess.run(
            [str(executable), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS_FOR_VERSION,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stdout.decode("utf-8", errors="replace")
    version = re.search(r'^\s*java\.version = (\S+)|version "([^"]+)"', text, re.MULTILINE)
    if answer.returncode != 0 or version is None:
        return None
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    return version.group(1) or version.group(2), Path(home.group(1)) if home else None


def _major(full_version: str) -> int | None:
    """17 of "17.0.15" and of "17-ea"; 8 of "1.8.0_392" (the numbering up to Java 8)."""
    match = re.match(r"(?:1\.)?(\d+)", full_version)
    return int(match.group(1)) if match else None


def install_java(log: Path, run: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run) -> str:
    """Installs the first of Debian's packages that its archive offers, without a question; returns its name.

    Args:
        log: the file that the package manager's output is appended to.
        run: ``subprocess.run``, or a stand-in for it.

    Raises:
        JavaNotFound: the package manager failed; the message ends with the last lines of its output.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]

    def apt_get(*arguments: str) -> None:
        command = ["apt-get", *options, *arguments]
        with log.open("ab") as output:
            done = run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                check=False,
            )
        if done.returncode != 0:
            last_lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
            raise JavaNotFound(
                "\n".join(
                    [
                        f"Java could not be installed: apt-get {arguments[0]} ended with {done.returncode}; "
                        f"its log {log} ends:",
                        *(f"  {line}" for line in last_lines),
                        HOW_TO_INSTALL,
                    ]
                )
            )

    # Slim images leave out the manual pages' folder, and the package's links into it then fail.
    with contextlib.suppress(OSError):
        Path("/usr/share/man/man1").mkdir(parents=True, exist_ok=True)
    apt_get("update")
    for package in DEBIAN_PACKAGES:
        policy = run(["apt-cache", "policy", package], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if re.search(rb"^\s*Candidate: (?!\(none\))\S", policy.stdout, re.MULTILINE):
            apt_get("install", "--no-install-recommends", package)
            return package
    raise JavaNotFound(f"This machine's package archive offers no {' or '.join(DEBIAN_PACKAGES)}.\n{HOW_TO_INSTALL}")


def can_install() -> bool:
    """True for root on Debian and its kin: nobody else can install a package without being asked."""
    return Path("/etc/debian_version").exists() and os.geteuid() == 0 and shutil.which("apt-get") is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the home folder of the Java to use on stdout, notes on stderr; 0, or 2 where there is none."""
    parser = argparse.ArgumentParser(prog="python -m jobs.runtime.java", description=main.__doc__)
    parser.add_argument("--java-home", help="take this Java, or fail")
    parser.add_argument("--install", action="store_true", help="where none fits, as root on Debian: install one")
    parser.add_argument("--log", type=Path, help="where apt-get's output goes (default: a temporary file)")
    options = parser.parse_args(arguments)
    try:
        try:
            java = find_java(options.java_home)
        except JavaNotFound:
            if options.java_home or not (options.install and can_install()):
                raise
            log = options.log or Path(tempfile.mkstemp(prefix="corpus-weir-java-", suffix=".log")[1])
            _say(f"no Java {_versions_text()} here: installing one with apt-get (log: {log})")
            package = install_java(log)
            java = find_java()
            _say(f"installed {package}")
    except JavaNotFound as error:
        _say(str(error))
        return error.exit_code
    for note in java.notes:
        _say(f"note: {note}")
    sys.stdout.write(f"{java.home}\n")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
