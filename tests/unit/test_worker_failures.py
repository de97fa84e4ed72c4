"""A cluster whose workers have another Python: the user learns which module is missing and what to set."""

from __future__ import annotations

from jobs.runtime.errors import WeirError, WorkersDiffer
from jobs.runtime.failures import translate

THROWN = (
    "Job aborted due to stage failure: Task 0 in stage 4.0 failed 4 times\n"
    "Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n    import pyarrow\n'
    "ModuleNotFoundError: No module named 'pyarrow'\n"
)


def test_a_module_that_the_workers_lack_is_named_with_the_remedy() -> None:
    error = translate(RuntimeError(THROWN), "job annotate")
    assert isinstance(error, WorkersDiffer)
    assert error.exit_code == 2
    assert str(error).startswith("job annotate: the Python of Spark's workers has no module 'pyarrow'.")
    assert "PYSPARK_PYTHON" in str(error)


def test_a_module_that_the_driver_lacks_is_not_blamed_on_the_workers() -> None:
    error = translate(ModuleNotFoundError("No module named 'tiktoken'"), "job annotate")
    assert not isinstance(error, WeirError)
