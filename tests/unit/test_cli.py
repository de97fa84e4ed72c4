"""The command line: what it offers, how a mistake ends, and what comes first on the import path. No job is run."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from jobs import __version__
from jobs.registry import JOBS
from jobs.runtime import cli
from jobs.runtime.errors import (
    GateFailed,
    InfeasiblePlan,
    InputContractError,
    PackageShadowed,
    ReconciliationError,
    RetryLater,
    ScratchFull,
    SettingsError,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("WEIR_")]:
        monkeypatch.delenv(name)
    yield


def parsers() -> dict[str, argparse.ArgumentParser]:
    parser = cli._parser()
    (commands,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(commands.choices)


# --- what is offered


def test_there_is_a_command_for_every_job_and_everything_one_looks_at() -> None:
    assert set(parsers()) == {
        *JOBS,
        "init",
        "run",
        "settings",
        "runs",
        "show",
        "explain",
        "audit",
        "demo-corpus",
        "demo",
    }


def test_options_of_the_preview_go_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Without it they would be passed over, and the step would run."""
    step = '--set=decide=[{"quality_filter": {"rules": [{"name": "r", "keep": "bytes > 1"}]}}]'
    for option in ("--sample=10", "--budget-tokens=10"):
        assert cli.main(["quality-filter", step, option]) == 2
        assert "--sample and --budget-tokens go with --preview" in capsys.readouterr().err
    assert cli.main(["quality-filter", step, "--preview", "--sample=0"]) == 2
    assert "--sample is 0; it must be from 1" in capsys.readouterr().err


def test_every_command_has_help() -> None:
    parser = cli._parser()
    (commands,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    assert {choice.dest for choice in commands._choices_actions if choice.help} == set(commands.choices)


@pytest.mark.parametrize("command", [None, *parsers()])
def test_help_is_shown_and_ends_well(command: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"] if command else ["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: weir {command}" if command else "usage: weir ")
    assert "--json" in out or command is None


def test_the_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = " ".join(capsys.readouterr().out.split())
    for part in ("0 done", "1 unexpected", "2 settings", "3 gate failed", "4 input", "5 infeasible", "75 retry"):
        assert part in out


def test_without_a_command_the_help_is_shown_and_the_exit_code_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr().out.startswith("usage: weir")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"corpus-weir {__version__}\n"


# --- how a mistake ends


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "invalid choice: 'nosuch'"),
        (["run", "--nosuch"], "unrecognized arguments: --nosuch"),
        (["runs", "--limit", "many"], "argument --limit: invalid int value: 'many'"),
        (["show"], "the following arguments are required: table"),
        (["settings", "--reference", "html"], "argument --reference: invalid choice: 'html'"),
        (["run", "--set"], "argument --set: expected one argument"),
        (["run", "--set", "policy"], "--set takes NAME=VALUE, got 'policy'"),
        (["run", "--set", "polcy=x"], "unknown setting 'polcy' (--set polcy); did you mean 'policy'?"),
        (["run", "nosuch.yaml"], "settings file 'nosuch.yaml' does not exist; write one with: weir init"),
        (["run", "--run-id", "a b"], "run id 'a b' can't be used"),
        (["run", "--run-id", "{{ ds }}"], "scheduler's template that was not filled in"),
        (
            ["exact-dedup", "--step", "nosuch"],
            "exact-dedup has no step 'nosuch' in the settings; it has: exact_dedup",
        ),
        (["quality-filter"], "the setting 'decide' has no"),
    ],
)
def test_a_mistake_ends_in_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("weir: ")
    assert message in line


def test_a_mistake_is_also_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--set", "polcy=x", "--set", "sed=1", "--json"]) == 2
    captured = capsys.readouterr()
    (line,) = captured.out.splitlines()
    found = json.loads(line)
    assert (found["status"], found["exit_code"]) == ("failed", 2)
    assert "did you mean 'policy'?" in found["error"]
    assert "did you mean 'seed'?" in found["error"]
    assert captured.err.startswith("weir: 2 problems:\n")


def test_a_run_id_of_the_environment_is_checked_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_RUN_ID", "{{ run_id }}")
    assert cli.main(["run"]) == 2
    assert "run id '{{ run_id }}' can't be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 2),
        (PackageShadowed("x"), 2),
        (GateFailed("x"), 3),
        (InputContractError("x"), 4),
        (InfeasiblePlan("x"), 5),
        (RetryLater("x"), 75),
        (ScratchFull("x"), 75),
        (ReconciliationError("x"), 1),
    ],
)
def test_each_cause_has_its_exit_code(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def action() -> int:
        raise error

    assert cli.guarded(action, wants_json=True) == code
    captured = capsys.readouterr()
    assert captured.err == "weir: x\n"
    assert json.loads(captured.out) == {"status": "failed", "exit_code": code, "error": "x"}


def test_an_interrupted_run_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def action() -> int:
        raise KeyboardInterrupt

    assert cli.guarded(action) == 130
    assert "same run id" in capsys.readouterr().err


def test_an_unexpected_error_shows_its_reason_and_keeps_the_traceback_in_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("jobs.runtime.session.log_file", lambda: tmp_path / "weir.log")

    def action() -> int:
        raise ZeroDivisionError("division by zero")

    assert cli.guarded(action) == 1
    err = capsys.readouterr().err
    assert "unexpected error: ZeroDivisionError: division by zero" in err
    assert "Traceback" not in err
    assert str(tmp_path / "weir.log") in err
    assert "Traceback" in (tmp_path / "weir.log").read_text()


# --- settings as the command resolves them


def test_all_layers_in_their_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text("policy: a\nbatch: a\nseed: 1\nwarehouse: a")
    (tmp_path / "b.yaml").write_text("batch: b\nseed: 2\nwarehouse: b")
    monkeypatch.setenv("WEIR_SEED", "3")
    monkeypatch.setenv("WEIR_WAREHOUSE", "environment")
    assert cli.main(["settings", "a.yaml", "--config", "b.yaml", "--set", "warehouse=set", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    values, origins = found["settings"], found["origins"]
    assert [values[name] for name in ("policy", "batch", "seed", "warehouse")] == ["a", "b", 3, "set"]
    assert [origins[name] for name in ("policy", "batch", "seed", "warehouse")] == [
        "a.yaml",
        "b.yaml",
        "environment WEIR_SEED",
        "--set warehouse",
    ]
    assert "validate" in values


def test_the_file_of_the_folder_is_taken_if_none_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "weir.yaml").write_text("policy: folder")
    (tmp_path / "other.yaml").write_text("seed: 5")
    assert cli.main(["settings"]) == 0
    assert any(line.split() == ["policy", "folder", "weir.yaml"] for line in capsys.readouterr().out.splitlines())
    assert cli.main(["settings", "other.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["policy"] == "default"


def test_the_reference_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["settings", "--reference", "yaml"]) == 0
    assert "# policy: default" in capsys.readouterr().out
    assert cli.main(["settings", "--reference", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| setting |")


# --- packages of the same name


def test_our_own_packages_are_accepted() -> None:
    cli.check_packages()


@pytest.mark.parametrize("name", cli.PACKAGES)
def test_a_package_that_shadows_one_of_ours_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another distribution's ``udfs`` would be called instead of ours, on some machines only."""
    other = ModuleType(name)
    other.__file__ = str(tmp_path / "site-packages" / name / "__init__.py")
    monkeypatch.setitem(sys.modules, name, other)
    with pytest.raises(PackageShadowed) as caught:
        cli.check_packages()
    assert caught.value.exit_code == 2
    for part in (f"'{name}'", str(tmp_path / "site-packages"), str(ROOT), "PYTHONPATH"):
        assert part in str(caught.value)


def test_a_shadowing_package_stops_the_command_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "__init__.py").write_text("")
    code = "import sys; from jobs.runtime.cli import main; sys.exit(main(['settings', '--json']))"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "the package 'schemas' comes from" in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 2
