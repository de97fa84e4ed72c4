"""Compiled kernels run wherever they are installed: a folder that can't be written costs time, never the job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config

from udfs import compiled
from udfs.compiled import cache_folder, cache_root


@pytest.fixture(autouse=True)
def _fresh() -> None:
    cache_root.cache_clear()
    cache_folder.cache_clear()


def double(value: int) -> int:
    return 2 * value


def test_a_kernel_runs_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_is_writable", lambda folder: False)
    assert cache_root() is None
    assert compiled.compiled(double)(21) == 42


def test_a_kernel_runs_for_a_user_without_home_and_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise RuntimeError("Could not determine home directory.")

    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(compiled.Path, "home", missing)
    monkeypatch.setattr(compiled.tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(compiled, "_is_writable", lambda folder: False)
    assert cache_root() is None
    assert compiled.compiled(double)(21) == 42


def test_a_kernel_runs_where_numba_finds_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiled, "cache_folder", lambda name: tmp_path / "gone")

    def refuse(*args: object, **options: object) -> None:
        if options.get("cache"):
            raise RuntimeError("no locator available")
        return original(*args, **options)

    original = compiled.numba.njit
    monkeypatch.setattr(compiled.numba, "njit", refuse)
    assert compiled.compiled(double)(21) == 42


def test_the_users_choice_of_folder_comes_first_and_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    assert cache_root() == tmp_path
    kernel = compiled.compiled(double)
    assert kernel(4) == 8
    assert list(tmp_path.glob("kernels-*/*/*.nbi")), "the machine code is kept"
    assert str(tmp_path) == config.CACHE_DIR


def test_a_change_in_a_helper_gives_its_callers_another_folder(tmp_path: Path) -> None:
    """Numba itself would load the callers' old machine code."""
    package = tmp_path / "udfs"
    package.mkdir()
    for name in ("__init__", "compiled"):
        (package / f"{name}.py").write_text(Path(compiled.__file__).with_name(f"{name}.py").read_text())
    (package / "caller.py").write_text(
        "from udfs.compiled import compiled\nfrom udfs.helper import helper\n"
        "@compiled\ndef caller(x):\n    return helper(x)\n"
    )
    results = []
    for factor in (2, 3):
        (package / "helper.py").write_text(
            f"from udfs.compiled import compiled\n@compiled\ndef helper(x):\n    return {factor} * x\n"
        )
        command = [sys.executable, "-B", "-c", "from udfs.caller import caller; print(caller(10))"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        results.append(done.stdout.strip())
    assert results == ["20", "30"]


def test_a_folder_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert not compiled._is_private(tmp_path)
    tmp_path.chmod(0o700)
    assert compiled._is_private(tmp_path)
