"""Rules that hold for all of the code: what would not run on Spark Connect, or would not give the same twice, stays out."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("jobs", "udfs", "expectations", "schemas")
FORBIDDEN = {
    ".rdd": r"\.rdd\b",
    "sparkContext": r"\bsparkContext\b|\bSparkContext\b",
    "_jvm and its kin": r"\b_(?:jvm|jdf|jsparkSession|jsc|jc)\b",
    "toPandas": r"\.toPandas\(",
    "monotonically_increasing_id": r"monotonically_increasing_id\s*\(",
    "rand, randn, shuffle, uuid": r"\bF\.(?:rand|randn|shuffle|uuid)\(|\b(?:rand|randn|uuid)\(\)",
    "sample": r"\.sample\(|\.sampleBy\(|sampleBy|\.randomSplit\(|TABLESAMPLE",
    "Python's own hash()": r"(?<![\w.])hash\(",
    "print": r"(?<![\w.])print\(",
}
ALLOWED = {("jobs/runtime/session.py", name) for name in ("sparkContext", "_jvm and its kin")}
"""Only where the session is made may the classic engine be asked (for its Hadoop file systems, log level, cores)."""


def sources() -> list[Path]:
    found = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    assert len(found) > 50
    return found


@functools.cache
def code_of(path: Path) -> str:
    """The source without comments and doc strings, which may well name what is not done."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body[0] = ast.Pass()
    for node in ast.walk(tree):  # strings that stand alone document the constant above them
        if isinstance(node, (ast.Module, ast.ClassDef)):
            node.body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return ast.unparse(tree)


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_code_does_without(name: str) -> None:
    pattern = re.compile(FORBIDDEN[name])
    guilty = []
    for path in sources():
        relative = path.relative_to(ROOT).as_posix()
        if (relative, name) not in ALLOWED:
            guilty += [f"{relative}: {line.strip()}" for line in code_of(path).splitlines() if pattern.search(line)]
    assert not guilty


def test_the_rules_find_what_they_look_for() -> None:
    """Each pattern on a line that breaks the rule, so that a typing error in a pattern doesn't switch it off."""
    examples = {
        ".rdd": "frame.rdd.map(f)",
        "sparkContext": "spark.sparkContext.parallelize(x)",
        "_jvm and its kin": "spark._jvm.java.lang",
        "toPandas": "frame.toPandas()",
        "monotonically_increasing_id": "F.monotonically_increasing_id()",
        "rand, randn, shuffle, uuid": "F.rand(1)",
        "sample": "frame.sample(0.1)",
        "Python's own hash()": "hash(text)",
        "print": "print(x)",
    }
    assert examples.keys() == FORBIDDEN.keys()
    for name, line in examples.items():
        assert re.search(FORBIDDEN[name], line), name


def job_modules() -> list[str]:
    """Names of the modules that declare a job."""
    found = [
        path.stem for path in sorted((ROOT / "jobs").glob("*.py")) if "\nJOB = Job(" in path.read_text(encoding="utf-8")
    ]
    assert {"ingest", "annotate", "exact_dedup", "select", "validate"} <= set(found)
    return found


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, at its top or within functions; ``from jobs import x`` counts as jobs.x."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_no_job_imports_another_job() -> None:
    """A job can be read, run and replaced alone; what two need lies in jobs.runtime, jobs.deciding or udfs."""
    jobs = job_modules()
    guilty = [
        f"{job} imports {name}"
        for job in jobs
        for name in imports_of(ROOT / "jobs" / f"{job}.py")
        if name in {f"jobs.{other}" for other in jobs if other != job}
    ]
    assert not guilty


def test_kernels_know_nothing_of_jobs_and_spark_sessions() -> None:
    """udfs run on executors: they may use the settings' base and error classes, but no job and no session."""
    allowed = {"jobs.runtime.layers", "jobs.runtime.models", "jobs.runtime.errors"}
    guilty = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / "udfs").rglob("*.py"))
        for name in imports_of(path)
        if (name == "jobs" or name.startswith("jobs."))
        and not any(name == a or name.startswith(a + ".") for a in allowed)
    ]
    assert not guilty


def test_every_job_script_can_be_submitted() -> None:
    """``spark-submit jobs/select.py`` puts the folder jobs first on the path, where ``select`` and ``random`` ... hide the
    standard library's: each script takes it away before it imports anything more."""
    for job in job_modules():
        text = (ROOT / "jobs" / f"{job}.py").read_text(encoding="utf-8")
        guard = text.index('if __name__ == "__main__":')
        assert "sys.path[0] = " in text[guard : guard + 300], job
        assert guard < text.index("\nfrom jobs."), job
        assert 'run_script("' in text, job
