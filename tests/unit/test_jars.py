"""Delta's jars: what a given folder must hold, when the cache counts as complete, and two fetches at once. No network."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jobs.runtime import ivy, jars
from jobs.runtime.errors import JarsNotFound, JavaNotFound, SettingsError
from jobs.runtime.jars import MANIFEST, JarSet, cache_folder, check_folder, delta_jars, main, read_complete

WANTED = JarSet(delta="4.3.1", spark="4.1")
NAMES = ["delta-spark_4.1_2.13-4.3.1.jar", "delta-storage-4.3.1.jar", "unitycatalog-client-0.5.0.jar"]


class Fetch:
    """Stands in for the resolver: puts files with these names into the folder."""

    def __init__(self, names: list[str] = NAMES, says: str = "found all", fails: Exception | None = None) -> None:
        self.names, self.says, self.fails, self.calls = names, says, fails, 0

    def __call__(self, wanted: JarSet, folder: Path, log: Path) -> None:
        self.calls += 1
        log.write_text(self.says)
        for name in self.names:
            (folder / name).write_bytes(b"content of " + name.encode())
        (folder / "ivy-cache").mkdir()
        if self.fails is not None:
            raise self.fails


def folder_with(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"jar")
    return folder


def names_of(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


# --- a folder that the user names


def test_a_fitting_folder_gives_all_its_jars_in_the_order_of_names_and_nothing_is_fetched(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "jars", *reversed(NAMES), "readme.txt", "delta-spark_4.1_2.13-4.3.1-sources.jar")
    fetch = Fetch()
    found = delta_jars(folder, tmp_path / "cache", wanted=WANTED, fetch=fetch)
    assert names_of(found) == NAMES
    assert all(path.is_absolute() for path in found)
    assert fetch.calls == 0 and not (tmp_path / "cache").exists()


def test_a_folder_may_start_at_home_and_a_newer_release_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder_with(tmp_path / "jars", "delta-spark_4.1_2.13-4.4.1.jar", "delta-storage-4.4.1.jar")
    assert len(delta_jars("~/jars", wanted=WANTED)) == 2


@pytest.mark.parametrize(
    ("names", "messages"),
    [
        ([], ["delta-spark_4.1_2.13-*.jar is missing", "delta-storage-*.jar is missing"]),
        (["delta-spark_4.1_2.13-4.3.1.jar"], ["delta-storage-*.jar is missing"]),
        (["delta-storage-4.3.1.jar"], ["delta-spark_4.1_2.13-*.jar is missing"]),
        (["delta-spark_2.13-4.4.1.jar", "delta-storage-4.4.1.jar"], ["does not say which Spark it is for"]),
        ([*NAMES, "delta-spark_2.13-4.3.1.jar"], ["delta-spark_2.13-4.3.1.jar does not say which Spark"]),
        (["delta-spark_4.0_2.13-4.3.1.jar", "delta-storage-4.3.1.jar"], ["is not for Spark 4.1 with Scala 2.13"]),
        (["delta-spark_4.2_2.13-4.4.1.jar", "delta-storage-4.4.1.jar"], ["is not for Spark 4.1 with Scala 2.13"]),
        (["delta-spark_4.1_2.12-4.3.1.jar", "delta-storage-4.3.1.jar"], ["is not for Spark 4.1 with Scala 2.13"]),
        ([*NAMES, "delta-core_2.12-2.4.0.jar"], ["delta-core_2.12-2.4.0.jar is not for Spark 4.1"]),
        ([*NAMES, "delta-spark_4.1_2.13-4.4.1.jar"], ["is there in 2 versions (4.3.1, 4.4.1); keep one"]),
        (["delta-spark_4.1_2.13-4.3.1.jar", "delta-storage-4.4.1.jar"], ["is 4.3.1 but delta-storage is 4.4.1"]),
        (["delta-spark_4.1_2.13-4.2.0.jar", "delta-storage-4.2.0.jar"], ["is 4.2.0; Corpus Weir needs 4.3 or later"]),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_with_every_problem(
    tmp_path: Path, names: list[str], messages: list[str]
) -> None:
    folder = folder_with(tmp_path / "jars", *names)
    with pytest.raises(JarsNotFound) as caught:
        delta_jars(folder, wanted=WANTED)
    for message in [*messages, str(folder), "spark.jars"]:
        assert message in str(caught.value)
    assert isinstance(caught.value, SettingsError) and caught.value.exit_code == 2


@pytest.mark.parametrize("kind", ["nowhere", "file"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / kind
    if kind == "file":
        place.write_text("")
    with pytest.raises(JarsNotFound, match="is not a folder on this machine"):
        check_folder(place, "4.1")


# --- the cache


def test_the_first_call_fetches_and_the_second_reads_the_cache(tmp_path: Path) -> None:
    fetch = Fetch()
    first = delta_jars(cache=tmp_path, wanted=WANTED, fetch=fetch)
    second = delta_jars(cache=tmp_path, wanted=WANTED, fetch=fetch)
    assert fetch.calls == 1
    assert first == second
    assert names_of(first) == NAMES
    assert first[0].parent == tmp_path / "jars" / "delta-4.3.1-spark-4.1_2.13"
    assert (tmp_path / "logs" / "delta-4.3.1-spark-4.1_2.13.log").read_text() == "found all"
    assert names_of(list((tmp_path / "jars").iterdir())) == [WANTED.name]  # no private folder is left


def test_another_version_has_a_folder_of_its_own(tmp_path: Path) -> None:
    delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())
    newer = Fetch(["delta-spark_4.1_2.13-4.4.1.jar", "delta-storage-4.4.1.jar"])
    found = delta_jars(cache=tmp_path, wanted=JarSet("4.4.1", "4.1"), fetch=newer)
    assert names_of(found) == newer.names
    assert names_of(delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch(fails=JarsNotFound("no")))) == NAMES


def test_the_manifest_names_each_jar_with_size_and_sha256(tmp_path: Path) -> None:
    found = delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())
    manifest = json.loads((found[0].parent / MANIFEST).read_text())
    assert list(manifest["jars"]) == NAMES
    for path in found:
        content = path.read_bytes()
        assert manifest["jars"][path.name] == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def spoil_no_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def spoil_cut_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text()[:40])


def spoil_foreign_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("[1, 2]")


def spoil_empty_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"jars": {}}')


def spoil_missing_jar(folder: Path) -> None:
    (folder / NAMES[1]).unlink()


def spoil_cut_jar(folder: Path) -> None:
    os.truncate(folder / NAMES[1], 3)


def spoil_changed_byte(folder: Path) -> None:
    content = bytearray((folder / NAMES[1]).read_bytes())
    content[0] ^= 1
    (folder / NAMES[1]).write_bytes(content)


def spoil_name_outside(folder: Path) -> None:
    """A manifest that points out of its folder, with the right size and sum of what is there."""
    outside = folder.parent / "outside.jar"
    outside.write_bytes(b"x")
    told = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    (folder / MANIFEST).write_text(json.dumps({"jars": {"../outside.jar": told}}))


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_no_manifest,
        spoil_cut_manifest,
        spoil_foreign_manifest,
        spoil_empty_manifest,
        spoil_missing_jar,
        spoil_cut_jar,
        spoil_changed_byte,
        spoil_name_outside,
    ],
    ids=lambda spoil: spoil.__name__.removeprefix("spoil_"),
)
def test_a_half_fetched_or_damaged_folder_is_fetched_again(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    before = delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())
    contents = [path.read_bytes() for path in before]
    spoil(before[0].parent)
    assert read_complete(before[0].parent) is None
    fetch = Fetch()
    after = delta_jars(cache=tmp_path, wanted=WANTED, fetch=fetch)
    assert fetch.calls == 1
    assert after == before
    assert [path.read_bytes() for path in after] == contents


def test_a_stray_jar_in_the_cache_is_not_given_to_spark(tmp_path: Path) -> None:
    found = delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())
    folder_with(found[0].parent, "delta-spark_4.0_2.13-4.0.0.jar")
    assert names_of(delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())) == NAMES


def test_a_fetch_that_is_killed_half_way_leaves_the_folder_incomplete_and_others_unharmed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch(NAMES[:1], fails=KeyboardInterrupt()))  # type: ignore[arg-type]
    assert list((tmp_path / "jars" / WANTED.name).iterdir()) == []
    assert names_of(delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())) == NAMES


def test_only_old_private_folders_are_swept(tmp_path: Path) -> None:
    abandoned, at_work = tmp_path / "jars" / ".fetch-old", tmp_path / "jars" / ".fetch-new"
    for folder in (abandoned, at_work):
        folder_with(folder, "half.jar")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(abandoned, (two_days_ago, two_days_ago))
    delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())
    assert not abandoned.exists() and at_work.exists()


def test_two_fetches_at_once_both_give_complete_jars(tmp_path: Path) -> None:
    """Both find the cache empty; the second one finishes while the first one's jars are in use already."""
    both_are_fetching = threading.Barrier(2)
    first_is_done = threading.Event()
    results: dict[str, list[bytes]] = {}

    def call(name: str) -> None:
        def fetch(wanted: JarSet, folder: Path, log: Path) -> None:
            Fetch()(wanted, folder, log)
            both_are_fetching.wait(10)
            if name == "second":
                first_is_done.wait(10)

        found = delta_jars(cache=tmp_path, wanted=WANTED, fetch=fetch)
        results[name] = [path.read_bytes() for path in found]
        first_is_done.set()

    threads = [threading.Thread(target=call, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == {name: [b"content of " + n.encode() for n in NAMES] for name in ("first", "second")}
    assert names_of(list((tmp_path / "jars").iterdir())) == [WANTED.name]


@pytest.mark.parametrize("moves", range(len(NAMES) + 1))
def test_a_process_killed_between_any_two_moves_leaves_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """The manifest is moved into place last, so a folder that has one was complete."""
    folder = tmp_path / "jars" / WANTED.name
    moved: list[Path] = []
    really_replace = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.parent == folder:
            if len(moved) == moves:
                raise KeyboardInterrupt
            moved.append(target)
        return really_replace(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())
    assert names_of(sorted(folder.iterdir())) == NAMES[:moves]
    monkeypatch.undo()
    assert names_of(delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch())) == NAMES


# --- failures


def test_a_failed_fetch_says_why_where_the_log_is_and_two_remedies(tmp_path: Path) -> None:
    fetch = Fetch([], says="Host nowhere not found", fails=JarsNotFound("the repository could not be reached"))
    with pytest.raises(JarsNotFound) as caught:
        delta_jars(cache=tmp_path, wanted=WANTED, fetch=fetch)
    text = str(caught.value)
    log = tmp_path / "logs" / f"{WANTED.name}.log"
    for words in (
        "Delta 4.3.1's jars for Spark 4.1 could not be fetched: the repository could not be reached.",
        str(log),
        "spark.jars",
        "WEIR_SPARK__JARS=FOLDER",
        "WEIR_MAVEN_REPOSITORY=URL",
    ):
        assert words in text
    assert log.read_text() == "Host nowhere not found"


def test_what_arrives_is_checked_before_it_counts(tmp_path: Path) -> None:
    with pytest.raises(JarsNotFound, match=r"what arrived does not fit: delta-storage-\*\.jar is missing"):
        delta_jars(cache=tmp_path, wanted=WANTED, fetch=Fetch(NAMES[:1]))
    assert read_complete(tmp_path / "jars" / WANTED.name) is None


def test_a_cache_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    fetch = Fetch()
    with pytest.raises(JarsNotFound, match="XDG_CACHE_HOME") as caught:
        delta_jars(cache=tmp_path / "cache", wanted=WANTED, fetch=fetch)
    assert str(tmp_path / "cache") in str(caught.value)
    assert fetch.calls == 0


@pytest.mark.parametrize(
    ("log", "meaning"),
    [
        # Lines as Ivy 2.5.3 wrote them; each log also ends with "not found".
        ("\tHost repository.test not found. url=https://repository.test/a.pom\n", "could not be reached"),
        (
            "ERROR: Server access error at url https://r/a.pom (java.net.ConnectException: Connection refused)",
            "be reached",
        ),
        (
            "ERROR: Server access error at url https://r/a.pom (java.net.SocketTimeoutException: timed out)",
            "be reached",
        ),
        (
            "ERROR: Server access error at url https://r/a.pom (javax.net.ssl.SSLHandshakeException: PKIX path building failed)",
            "does not trust the repository's certificate",
        ),
        ("WARN: Your proxy requires authentication.", "the proxy asks for a password"),
        ("CLIENT ERROR: Unauthorized url=https://r/a.pom", "refused access"),
        ("CLIENT ERROR: Forbidden url=https://r/a.pom", "refused access"),
        ("CLIENT ERROR: Not Found url=https://r/a.pom", "does not have them"),
        ("ERROR: SERVER ERROR: Service Unavailable url=https://r/a.pom", "out of order"),
        ("problem while downloading: invalid sha1: expected=0 computed=1", "does not match its checksum"),
        ("java.io.IOException: No space left on device", "the disk is full"),
        ("", "does not have them"),
    ],
)
def test_the_log_of_the_resolver_is_put_into_words(log: str, meaning: str) -> None:
    assert meaning in ivy.explain(f"{log}\n:: io.delta#delta-spark_4.1_2.13;4.3.1: not found\n", 1)


def test_a_log_that_says_nothing_known_gives_the_exit_code() -> None:
    assert ivy.explain("Exception in thread main", 134) == "the resolver ended with 134"


# --- the resolver's command line


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment with a Java and a Spark, neither of which can run."""
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").touch(mode=0o755)
    (java / "release").write_text('JAVA_VERSION="17.0.9"\n')
    return {"JAVA_HOME": str(java), "HOME": str(tmp_path / "home")}


VERSIONS = {"weir.delta": "4.3.1", "weir.spark": "4.1", "weir.scala": "2.13"}


def properties_of(command: list[str]) -> dict[str, str]:
    return dict(part[2:].split("=", 1) for part in command if part.startswith("-D"))


def test_nothing_outside_the_private_folder_is_written_or_reused(tmp_path: Path, machine: dict[str, str]) -> None:
    command = ivy.ivy_command(VERSIONS, tmp_path / "private (1) [x]", None, machine)
    assert command[0] == f"{machine['JAVA_HOME']}/bin/java"
    assert properties_of(command)["ivy.default.ivy.user.dir"].startswith(str(tmp_path / "private (1) [x]"))
    # Ivy takes ( and [ in these two for a pattern, so they must be relative to the folder that it is started in.
    for option in ("-cache", "-retrieve"):
        assert not Path(command[command.index(option) + 1]).is_absolute()
    assert machine["HOME"] not in " ".join(command)


def test_the_central_repository_or_the_mirror_or_the_users_settings(tmp_path: Path, machine: dict[str, str]) -> None:
    plain = ivy.ivy_command(VERSIONS, tmp_path, None, machine)
    assert properties_of(plain)["weir.resolver"] == "central"
    mirrored = ivy.ivy_command(VERSIONS, tmp_path, None, {**machine, "WEIR_MAVEN_REPOSITORY": "https://mirror.test/m2"})
    assert properties_of(mirrored)["weir.resolver"] == "mirror"
    assert properties_of(mirrored)["weir.maven.repository"] == "https://mirror.test/m2"
    own = tmp_path / "own.xml"
    own.write_text("<ivysettings/>")
    command = ivy.ivy_command(VERSIONS, tmp_path, own, machine)
    assert command[command.index("-settings") + 1] == str(own)
    with pytest.raises(JarsNotFound, match=r"gone\.xml does not exist"):
        ivy.ivy_command(VERSIONS, tmp_path, tmp_path / "gone.xml", machine)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, {}),
        ({"no_proxy": "localhost"}, {}),
        ({"https_proxy": "http://proxy.test:3128"}, {"https.proxyHost": "proxy.test", "https.proxyPort": "3128"}),
        ({"HTTPS_PROXY": "http://user:pw@proxy.test"}, {"https.proxyHost": "proxy.test", "https.proxyPort": "80"}),
        ({"http_proxy": "proxy.test:8080"}, {"http.proxyHost": "proxy.test", "http.proxyPort": "8080"}),
        (
            {"https_proxy": "http://p:1", "no_proxy": "localhost, .corp.test"},
            {
                "https.proxyHost": "p",
                "https.proxyPort": "1",
                "http.nonProxyHosts": "localhost|*.localhost|corp.test|*.corp.test",
            },
        ),
        (
            {"https_proxy": "http://p:1", "NO_PROXY": "*"},
            {"https.proxyHost": "p", "https.proxyPort": "1", "http.nonProxyHosts": "*"},
        ),
    ],
)
def test_the_proxy_that_pip_goes_through_is_told_to_java(environment: dict[str, str], expected: dict[str, str]) -> None:
    assert ivy.proxy_properties(environment) == expected


def test_without_a_java_the_missing_java_is_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(**_: object) -> None:
        raise JavaNotFound("no Java")

    monkeypatch.setattr(ivy, "find_java", no_java)
    with pytest.raises(JavaNotFound):
        delta_jars(cache=tmp_path, wanted=WANTED, environment={})


def test_what_is_asked_for_carries_sparks_line_and_names_no_repository() -> None:
    """The un-suffixed artifact moves to another Spark with Delta 4.4, and a host name would bypass a user's mirror."""
    folder = Path(ivy.__file__).parents[2] / "conf" / "ivy"
    dependencies = ElementTree.parse(folder / "delta.xml").findall("dependencies/dependency")
    assert [d.attrib["name"] for d in dependencies] == ["delta-spark_${weir.spark}_${weir.scala}"]
    resolvers = ElementTree.parse(folder / "ivysettings.xml").findall("resolvers/*")
    assert [(r.attrib["name"], r.attrib.get("root")) for r in resolvers] == [
        ("central", None),
        ("mirror", "${weir.maven.repository}"),
    ]


def test_the_wheel_carries_the_resolvers_files() -> None:
    """They are read from beside the code, also where the wheel is installed."""
    root = Path(ivy.__file__).parents[2]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    for file in (root / "conf" / "ivy").iterdir():
        assert any(file.relative_to(root / "conf").match(pattern) for pattern in patterns if "/" in pattern), file


# --- names, places, the command


def test_the_installed_packages_decide_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"delta-spark": "4.3.2", "pyspark": "4.1.2"}
    monkeypatch.setattr(jars.importlib.metadata, "version", versions.__getitem__)
    assert JarSet.installed() == JarSet("4.3.2", "4.1", "2.13")
    versions["delta-spark"] = "4.2.0"
    with pytest.raises(JarsNotFound, match=r"delta-spark 4\.2\.0 is installed; Corpus Weir needs 4\.3 or later"):
        JarSet.installed()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise jars.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(jars.importlib.metadata, "version", version)
    with pytest.raises(JarsNotFound, match="The Python package delta-spark is not installed"):
        JarSet.installed()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": "/home/a"}, "/home/a/.cache/corpus-weir"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "/var/cache/a"}, "/var/cache/a/corpus-weir"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}, "/home/a/.cache/corpus-weir"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": ""}, "/home/a/.cache/corpus-weir"),
    ],
)
def test_the_cache_folder_follows_the_xdg_rules(environment: dict[str, str], expected: str) -> None:
    assert str(cache_folder(environment)) == expected


def test_the_command_prints_the_folder_alone_or_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jars, "_installed_spark_line", lambda: "4.1")
    folder = folder_with(tmp_path / "jars", *NAMES)
    assert main(["--folder", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    (folder / NAMES[1]).unlink()
    monkeypatch.setenv("WEIR_SPARK__JARS", str(folder))
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "delta-storage-*.jar is missing" in captured.err
