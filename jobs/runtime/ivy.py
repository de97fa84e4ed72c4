"""Fetches Maven artifacts with the Ivy that Spark ships: what ``conf/ivy/delta.xml`` asks for, into one folder.

Standard library only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from jobs.runtime.errors import JarsNotFound
from jobs.runtime.java import find_java

MIRROR_VARIABLE = "WEIR_MAVEN_REPOSITORY"
"""The environment variable that names a Maven repository to use in place of the central one."""

_CONFIGURATION = Path(__file__).resolve().parents[2] / "conf" / "ivy"
_LIMIT_SECONDS = 900

_REASONS = (
    # What Ivy's log says, and what it means for the user. The first that matches counts: Ivy closes with "not found"
    # whatever the cause.
    (r"No space left on device", "the disk is full"),
    (
        r"javax\.net\.ssl\.|PKIX path",
        "Java does not trust the repository's certificate; name a trust store that holds your organisation's: "
        "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE",
    ),
    (r"proxy requires authentication", "the proxy asks for a password, which Java does not send"),
    (r"CLIENT ERROR: (Unauthorized|Forbidden)", "the repository refused access"),
    (r"SERVER ERROR:", "the repository is out of order; try again later"),
    (
        r"Server access error|UnknownHost|Host \S+ not found|No route to host|Network is unreachable"
        r"|Connection refused|Connection reset|[Tt]imed out",
        "the repository could not be reached (offline, or https_proxy must name a proxy)",
    ),
    (r"invalid (sha|md5)", "what arrived does not match its checksum"),
    (r"not found", "the repository does not have them"),
)


def fetch_with_ivy(
    versions: Mapping[str, str],
    folder: Path,
    log: Path,
    settings: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Puts the jars into the folder, Ivy's own caches too, and all that it says into the log file.

    Args:
        versions: the properties that ``delta.xml`` asks for: ``weir.delta``, ``weir.spark``, ``weir.scala``.
        folder: an empty folder; nothing outside it is written or reused, the user's Maven and Ivy caches neither.
        log: the file for the resolver's output.
        settings: an Ivy settings file in place of the project's own.
        environment: ``JAVA_HOME`` and PATH, the mirror, the proxy; Java reads its own options from it too.

    Raises:
        JarsNotFound: with the reason only, as part of a sentence; the caller knows the remedies.
        JavaNotFound: there is no Java to run it.
    """
    command = ivy_command(versions, folder, settings, environment)
    with log.open("wb") as output:
        try:
            code = subprocess.run(
                command,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_LIMIT_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise JarsNotFound(f"it took longer than {_LIMIT_SECONDS} seconds") from None
    if code != 0:
        raise JarsNotFound(explain(log.read_text(encoding="utf-8", errors="replace"), code))


def ivy_command(
    versions: Mapping[str, str], folder: Path, settings: str | Path | None, environment: Mapping[str, str]
) -> list[str]:
    """The command line; it must be started in the folder, since it names what it writes relative to that.

    Ivy reads ``(`` and ``[`` in those paths as patterns, and a user's home folder may hold either.

    Raises:
        JarsNotFound: the settings file is missing, or Spark's jars and Ivy with them.
        JavaNotFound: there is no Java to run it.
    """
    settings_file = Path(settings).expanduser().resolve() if settings else _CONFIGURATION / "ivysettings.xml"
    if not settings_file.is_file():
        raise JarsNotFound(f"the Ivy settings file {settings_file} does not exist")
    mirror = environment.get(MIRROR_VARIABLE, "")
    properties = {
        **versions,
        "weir.resolver": "mirror" if mirror else "central",
        "weir.maven.repository": mirror,
        "ivy.default.ivy.user.dir": str(folder / "ivy"),
        **proxy_properties(environment),
    }
    return [
        str(find_java(environment=environment).executable),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", str(_ivy_jar(environment))),
        "org.apache.ivy.Main",
        "-verbose",  # else the cause of a failed connection is not in the log
        *("-settings", str(settings_file)),
        *("-ivy", str(_CONFIGURATION / "delta.xml")),
        *("-cache", "ivy-cache"),
        *("-retrieve", "[artifact]-[revision](-[classifier]).[ext]"),
    ]


def _ivy_jar(environment: Mapping[str, str]) -> Path:
    package = importlib.util.find_spec("pyspark")
    homes = [Path(package.origin).parent] if package and package.origin else []
    if environment.get("SPARK_HOME"):
        homes.append(Path(environment["SPARK_HOME"]))
    for home in homes:
        for jar in sorted((home / "jars").glob("ivy-*.jar")):
            return jar
    looked_in = " and ".join(str(home / "jars") for home in homes) or "no folder (pyspark is not installed)"
    raise JarsNotFound(f"the resolver is one of Spark's own jars, but {looked_in} has no ivy-*.jar")


def proxy_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Java's properties for ``https_proxy``, ``http_proxy`` and ``no_proxy``, which Java itself does not read."""
    properties: dict[str, str] = {}
    for scheme in ("http", "https"):
        url = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme.upper()}_PROXY")
        parts = urlsplit(url if "://" in url else f"http://{url}") if url else None
        if parts and parts.hostname:
            properties[f"{scheme}.proxyHost"] = parts.hostname
            properties[f"{scheme}.proxyPort"] = str(parts.port or 80)
    direct = environment.get("no_proxy") or environment.get("NO_PROXY")
    if properties and direct:
        names = [name.strip().lstrip(".") for name in direct.split(",") if name.strip()]
        # A name stands for itself and all below it. Java has one list for both schemes, under this name.
        patterns = [p for name in names for p in ([name] if name == "*" else [name, f"*.{name}"])]
        properties["http.nonProxyHosts"] = "|".join(patterns)
    return properties


def explain(log: str, exit_code: int) -> str:
    """What a failed run's log means, as part of a sentence."""
    for pattern, meaning in _REASONS:
        if re.search(pattern, log):
            return meaning
    return f"the resolver ended with {exit_code}"
