"""The pipeline speaks to a Spark Connect server as it does to a session of its own, and writes the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import judging
from tests.e2e.conftest import Demo
from tests.e2e.helpers import digests, rows_of, weir

pytestmark = pytest.mark.xdist_group("demo")


def test_a_connect_server_gives_the_same_content(demo: Demo, tmp_path: Path) -> None:
    judging.write_models(tmp_path)
    given = [*demo.settings(tmp_path, master=None, remote="local[2]"), *judging.assignments()]
    done = weir("run", *given, "--run-id", "r1", "--json", cwd=tmp_path).expect(0)
    assert done.json["status"] == "done"
    assert digests(tmp_path / "warehouse") == digests(demo.warehouse)
    counts = [rows_of(home, "runs", "job", "step", "counts") for home in (tmp_path / "warehouse", demo.warehouse)]
    there, here = ({(r["job"], r["step"]): r["counts"] for r in rows} for rows in counts)
    assert there == here
    assert judging.differing(tmp_path / "warehouse", tmp_path) == []
    assert not (tmp_path / "warehouse" / "scratch").exists()
