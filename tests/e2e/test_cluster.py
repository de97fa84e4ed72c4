"""A real standalone cluster on this machine: the same content as a local run, through ``spark-submit`` and ``weir``."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.e2e import judging
from tests.e2e.conftest import Demo
from tests.e2e.helpers import HOME, QUICK_JAVA, SMALL_SPARK, Done, digests, finish, rows_of, start, weir

pytestmark = pytest.mark.xdist_group("demo")  # one run of the demo for all that look at it

SPARK_HOME = Path(pyspark.__path__[0])
WORKERS = 2


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment() -> dict[str, str]:
    """What Spark's own scripts need to find this Python, this Java and the package."""
    from jobs.runtime.java import find_java

    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "SPARK_", "PYSPARK_"))}
    return {
        **kept, **QUICK_JAVA, "JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master with two workers of one core each; all three are ended by their process ids."""
    home = tmp_path_factory.mktemp("cluster")
    port, ui = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    launch = [str(SPARK_HOME / "bin" / "spark-class")]
    daemons = [
        ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui)],
        *(
            ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
             "--webui-port", "0", "--work-dir", str(home / f"worker{i}"), url]
            for i in range(WORKERS)
        ),
    ]  # fmt: skip
    processes = []
    try:
        for number, arguments in enumerate(daemons):
            with (home / f"daemon{number}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [*launch, *arguments],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env=environment(),
                        cwd=home,
                    )
                )
        wait_for_workers(ui)
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_workers(ui: int) -> None:
    """Until the master says that its workers are alive."""
    limit = time.monotonic() + 180
    while time.monotonic() < limit:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ui}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == WORKERS:
                    return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError("the workers did not come")


def spark_submit(cwd: Path, *arguments: str | Path) -> Done:
    """``spark-submit``, without --packages or --jars."""
    return finish(
        subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-submit"), *map(str, arguments)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
    )


def on_cluster(demo: Demo, home: Path, master: str | None) -> list[str]:
    """The demo's settings for executors of half a gigabyte; without a master it is left to spark-submit."""
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
    conf = {**dict(SMALL_SPARK["conf"]), **loopback, "spark.executor.memory": "512m"}  # type: ignore[call-overload]
    return demo.settings(home, master=master, conf=conf)


@pytest.mark.cluster
def test_a_cluster_gives_the_same_content_as_one_machine(demo: Demo, master: str, tmp_path: Path) -> None:
    """ingest through spark-submit, then the whole run through ``weir`` under the same run id: it goes on with annotate.

    The run judges documents with models that only the driver's folder has.
    """
    demo.done.expect(0)
    judging.write_models(tmp_path)
    submitted = spark_submit(
        tmp_path, "--master", master, HOME / "jobs" / "ingest.py", *on_cluster(demo, tmp_path, None),
        *judging.assignments(), "--run-id", "r1", "--json",
    ).expect(0)  # fmt: skip
    assert submitted.json["jobs"][0]["status"] == "done"
    arguments = ["run", *on_cluster(demo, tmp_path, master), *judging.assignments(), "--run-id", "r1", "--json"]
    whole = weir(*arguments, cwd=tmp_path, environment={"PYSPARK_PYTHON": sys.executable}).expect(0)
    assert [job["status"] for job in whole.json["jobs"]] == ["already done", *["done"] * 7]
    assert digests(tmp_path / "warehouse") == digests(demo.warehouse)
    counts = [rows_of(home, "runs", "job", "step", "counts") for home in (tmp_path / "warehouse", demo.warehouse)]
    there, here = ({(r["job"], r["step"]): r["counts"] for r in rows} for rows in counts)
    assert there == here
    assert judging.differing(tmp_path / "warehouse", tmp_path) == []
    assert not (tmp_path / "warehouse" / "scratch").exists()


def test_spark_submit_needs_no_packages_and_select_py_does_not_hide_the_standard_library(
    demo: Demo, tmp_path: Path
) -> None:
    """Python puts a script's folder first on its path: ``import select`` in it would find ``jobs/select.py``."""
    demo.done.expect(0)
    warehouse = tmp_path / "warehouse"
    shutil.copytree(demo.warehouse, warehouse)
    done = spark_submit(
        tmp_path, "--master", "local[2]", HOME / "jobs" / "select.py", *on_cluster(demo, tmp_path, None),
        "--run-id", "again", "--json",
    ).expect(0)  # fmt: skip
    assert done.json["status"] == "done"
    assert digests(warehouse, "again")["select", ""] == next(
        digest for (job, _), digest in digests(demo.warehouse).items() if job == "select"
    )
    for job in sorted((HOME / "jobs").glob("*.py")):
        if "run_script(" in job.read_text(encoding="utf-8"):
            finish(start([str(job), "--help"], cwd=tmp_path)).expect(0)
