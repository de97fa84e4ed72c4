"""Which Java is taken, which is passed over, which is refused, and what a user is told. No JVM is started."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.runtime import java as module
from jobs.runtime.errors import JavaNotFound, SettingsError
from jobs.runtime.java import find_java, install_java, main

Make = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> Make:
    """A folder that looks like a Java: a release file, or else a command that tells the version itself."""

    def make(name: str, version: str, *, release: bool = True, says: str | None = None, exit_code: int = 0) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        if release:
            (home / "release").write_text(
                f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nJAVA_VERSION_DATE="2026-01-01"\n'
            )
        text = f'openjdk version "{version}" 2026-01-01' if says is None else says
        command = home / "bin" / "java"
        command.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\nexit {exit_code}\n")
        command.chmod(0o755)
        return home

    return make


def find(preferred: str | None = None, folders: tuple[str, ...] = (), **environment: object) -> module.JavaHome:
    return find_java(preferred, {name: str(value) for name, value in environment.items()}, folders)


# --- the order of the candidates


def test_the_setting_comes_before_java_home_and_path(make_java: Make) -> None:
    named, other = make_java("named", "21.0.4"), make_java("other", "17.0.9")
    found = find(str(named), JAVA_HOME=other, PATH=other / "bin")
    assert (found.home, found.version, found.full_version) == (named, 21, "21.0.4")
    assert "spark.java_home" in found.found_in


def test_the_setting_may_name_the_command_or_start_at_home(make_java: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    named = make_java("named", "17.0.9")
    monkeypatch.setenv("HOME", str(named.parent))
    assert find(str(named / "bin" / "java")).home == named
    assert find("~/named").home == named


def test_java_home_comes_before_path_and_path_before_the_usual_folders(make_java: Make, tmp_path: Path) -> None:
    home, path, usual = make_java("home", "21.0.1"), make_java("path", "21.0.2"), make_java("usual/a", "17.0.3")
    folders = (f"{usual.parent}/*",)
    assert find(folders=folders, JAVA_HOME=home, PATH=path / "bin").home == home
    assert find(folders=folders, PATH=path / "bin").home == path
    assert find(folders=folders, PATH=tmp_path).home == usual


def test_17_is_preferred_to_21_among_the_usual_folders_and_the_order_of_names_decides_the_rest(make_java: Make) -> None:
    root = make_java("jvm/a-21", "21.0.4").parent
    make_java("jvm/b-17", "17.0.9")
    make_java("jvm/c-17", "17.0.12")
    make_java("jvm/d-25", "25.0.1")
    found = find(folders=(f"{root}/*",))
    assert found.home.name == "b-17"
    assert found.notes == ()  # nobody asked for 25, so nobody needs to hear of it


def test_usual_folders_below_the_home_folder_are_looked_at(make_java: Make, tmp_path: Path) -> None:
    java = make_java(".sdkman/candidates/java/17.0.9-tem", "17.0.9")
    assert find(folders=("~/.sdkman/candidates/java/*",), HOME=tmp_path).home == java
    with pytest.raises(JavaNotFound):
        find(folders=("~/.sdkman/candidates/java/*",))


def test_links_are_followed_to_the_real_home(make_java: Make, tmp_path: Path) -> None:
    """/usr/bin/java -> /etc/alternatives/java -> the home: Spark needs the last one, where lib is."""
    home = make_java("jvm/java-17", "17.0.9")
    (tmp_path / "alternatives").mkdir()
    (tmp_path / "alternatives" / "java").symlink_to(home / "bin" / "java")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "alternatives" / "java")
    assert find(PATH=tmp_path / "bin").home == home


def test_an_empty_environment_does_not_fall_back_on_the_process_path(
    make_java: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(make_java("path", "17.0.9") / "bin"))
    with pytest.raises(JavaNotFound):
        find()


# --- versions


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ("17", True),
        ("17.0.15", True),
        ("21.0.4", True),
        ("21-ea", True),
        ("17.0.1-internal", True),
        ("1.8.0_392", False),
        ("11.0.22", False),
        ("18.0.2", False),
        ("25.0.3", False),
        ("1.17.0", True),
        ("170.0", False),
    ],
)
@pytest.mark.parametrize("release", [True, False])
def test_only_17_and_21_are_taken_however_the_version_is_told(
    make_java: Make, told: str, taken: bool, release: bool
) -> None:
    home = make_java("java", told, release=release)
    if taken:
        assert find(JAVA_HOME=home).full_version == told
    else:
        with pytest.raises(JavaNotFound, match=f"Java {told.replace('.', '[.]')} in "):
            find(JAVA_HOME=home)


def test_a_wrapper_on_path_tells_where_the_real_home_is(make_java: Make, tmp_path: Path) -> None:
    """A version manager's shim stands in a folder of shims: its own parent is no Java home."""
    real = make_java("versions/17", "17.0.9")
    shims = (
        make_java("manager", "unused", release=False, says=f"    java.home = {real}\n    java.version = 17.0.9") / "bin"
    )
    assert find(PATH=shims).home == real


def test_a_command_that_fails_is_no_java(make_java: Make) -> None:
    """macOS ships a /usr/bin/java that only says where to get one."""
    stub = make_java("stub", "17", release=False, says='no version "17"', exit_code=1)
    with pytest.raises(JavaNotFound, match="no other Java either"):
        find(PATH=stub / "bin")


def test_a_command_that_hangs_is_given_up(make_java: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java("slow", "17", release=False)
    (home / "bin" / "java").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(module, "_SECONDS_FOR_VERSION", 0.2)
    with pytest.raises(JavaNotFound):
        find(JAVA_HOME=home)


def test_a_folder_without_a_command_is_no_java(make_java: Make) -> None:
    home = make_java("sources", "17.0.9")
    (home / "bin" / "java").chmod(0o644)
    with pytest.raises(JavaNotFound, match="no other Java either"):
        find(folders=(str(home),))


# --- passing over and refusing


def test_another_version_in_java_home_and_on_path_is_passed_over_with_a_note_each(make_java: Make) -> None:
    old, new, fit = make_java("old", "1.8.0_392"), make_java("new", "25.0.3"), make_java("usual/fit", "17.0.9")
    found = find(folders=(f"{fit.parent}/*",), JAVA_HOME=old, PATH=new / "bin")
    assert found.home == fit
    assert len(found.notes) == 2
    assert "1.8.0_392" in found.notes[0] and "JAVA_HOME" in found.notes[0]
    assert "25.0.3" in found.notes[1] and "PATH" in found.notes[1]


def test_a_java_home_that_is_gone_is_passed_over_with_a_note(make_java: Make, tmp_path: Path) -> None:
    fit = make_java("fit", "17.0.9")
    found = find(JAVA_HOME=tmp_path / "gone", PATH=fit / "bin")
    assert found.home == fit
    assert "gone" in found.notes[0] and "no Java is there" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("old", "11.0.22", "is Java 11.0.22; Spark 4.1 runs on 17 or 21"),
        ("new", "25.0.3", "is Java 25.0.3; Spark 4.1 runs on 17 or 21"),
        (None, "", "no Java is there: it must be the folder that holds bin/java"),
    ],
)
def test_a_named_java_that_does_not_fit_is_an_error_though_another_would_fit(
    make_java: Make, tmp_path: Path, name: str | None, version: str, message: str
) -> None:
    fit = make_java("fit", "17.0.9")
    named = make_java(name, version) if name else tmp_path / "nowhere"
    with pytest.raises(JavaNotFound) as caught:
        find(str(named), JAVA_HOME=fit)
    assert message in str(caught.value)
    assert "spark.java_home" in str(caught.value) and str(named) in str(caught.value)


def test_where_none_fits_all_that_was_found_and_how_to_install_is_told(make_java: Make) -> None:
    old, new = make_java("old", "1.8.0_392"), make_java("usual/new", "25.0.3")
    (new.parent / "default").symlink_to(new)
    with pytest.raises(JavaNotFound) as caught:
        find(folders=(f"{new.parent}/*", f"{old.parent}/old"), JAVA_HOME=old)
    text = str(caught.value)
    assert text.count(str(old)) == 1 and text.count(str(new)) == 1  # each found twice, told once
    for words in ("1.8.0_392", "25.0.3", "17 or 21", "apt-get install", "dnf install", "brew install", "JAVA_HOME"):
        assert words in text
    assert isinstance(caught.value, SettingsError) and caught.value.exit_code == 2


# --- installing


class Apt:
    """Stands in for ``subprocess.run``: an archive with the given packages."""

    def __init__(self, offers: tuple[str, ...], failing: str | None = None) -> None:
        self.offers, self.failing, self.commands = offers, failing, []  # type: ignore[var-annotated]

    def __call__(self, command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        self.commands.append(command)
        if command[0] == "apt-cache":
            offered = command[-1] in self.offers
            text = f"{command[-1]}:\n  Installed: (none)\n  Candidate: {'17.0.9-1' if offered else '(none)'}\n"
            return subprocess.CompletedProcess(command, 0, stdout=text.encode())
        environment = options["env"]
        assert isinstance(environment, dict) and environment["DEBIAN_FRONTEND"] == "noninteractive"
        if self.failing in command:
            options["stdout"].write(b"E: Unable to fetch some archives\n")  # type: ignore[attr-defined]
            options["stdout"].flush()  # type: ignore[attr-defined]
            return subprocess.CompletedProcess(command, 100)
        return subprocess.CompletedProcess(command, 0)


@pytest.mark.parametrize(
    ("offers", "expected"),
    [
        (("openjdk-17-jre-headless", "openjdk-21-jre-headless"), "openjdk-17-jre-headless"),
        (("openjdk-21-jre-headless",), "openjdk-21-jre-headless"),  # Debian 13
    ],
)
def test_the_first_package_that_the_archive_offers_is_installed(
    tmp_path: Path, offers: tuple[str, ...], expected: str
) -> None:
    apt = Apt(offers)
    assert install_java(tmp_path / "log", apt) == expected
    assert apt.commands[0][-1] == "update"
    assert apt.commands[-1][-3:] == ["install", "--no-install-recommends", expected]
    assert all("-y" in command for command in apt.commands if command[0] == "apt-get")


@pytest.mark.parametrize(
    ("apt", "message"),
    [
        (Apt((), failing="update"), "apt-get update ended with 100"),
        (Apt(("openjdk-17-jre-headless",), failing="install"), "apt-get install ended with 100"),
        (Apt(()), "archive offers no openjdk-17-jre-headless or openjdk-21-jre-headless"),
    ],
)
def test_a_failed_installation_says_what_failed_and_shows_the_log(tmp_path: Path, apt: Apt, message: str) -> None:
    log = tmp_path / "log"
    with pytest.raises(JavaNotFound) as caught:
        install_java(log, apt)
    assert message in str(caught.value)
    if apt.failing:
        assert str(log) in str(caught.value) and "Unable to fetch some archives" in str(caught.value)


# --- the command


def test_the_command_prints_the_home_alone_on_stdout(
    make_java: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = make_java("fit", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(make_java("other", "25.0.3")))
    monkeypatch.setenv("PATH", str(fit / "bin"))
    assert main([]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{fit}\n"
    assert "passed over Java 25.0.3" in captured.err


def test_the_command_installs_only_where_it_may_and_where_none_fits(
    make_java: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "find_java", functools.partial(find_java, usual_folders=()))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    installed: list[Path] = []

    def install(log: Path) -> str:
        installed.append(log)
        monkeypatch.setenv("JAVA_HOME", str(make_java("new", "17.0.9")))
        return "openjdk-17-jre-headless"

    monkeypatch.setattr(module, "install_java", install)
    monkeypatch.setattr(module, "can_install", lambda: False)
    assert main(["--install"]) == 2
    assert "Install Java 17 or 21" in capsys.readouterr().err
    monkeypatch.setattr(module, "can_install", lambda: True)
    assert main([]) == 2 and not installed
    assert main(["--install", "--java-home", str(tmp_path)]) == 2 and not installed
    capsys.readouterr()
    assert main(["--install", "--log", str(tmp_path / "log")]) == 0
    assert installed == [tmp_path / "log"]
    assert capsys.readouterr().out == f"{tmp_path / 'new'}\n"
    assert main(["--install"]) == 0 and len(installed) == 1  # the second time there is one


@pytest.mark.parametrize("name", ["jobs.runtime.java", "jobs.runtime.jars"])
def test_the_set_up_needs_the_standard_library_only(name: str) -> None:
    """Both run before, or without, the dependencies: -S hides site-packages."""
    root = Path(module.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r}); import {name}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
