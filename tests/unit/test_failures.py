"""What Spark and Delta throw, in the words in which it arrives, becomes the right error with the right exit code."""

from __future__ import annotations

import pytest

from jobs.runtime.errors import (
    InputContractError,
    NotPermitted,
    RetryLater,
    ScratchFull,
    SettingsError,
    TableMissing,
    UnreadableInput,
)
from jobs.runtime.failures import conflict_of, reason_of, translate

CALL = "An error occurred while calling o68.collectToPython.\n: "
FAILED_READ = (
    CALL + "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    "file:///data/{name}.  SQLSTATE: KD001\n\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(Q.scala:1)\n"
    "Caused by: {cause}\n\tat org.apache.hadoop.io.compress.D.read(D.java:1)\n\t... 20 more\n"
)
FOOTER = (
    CALL + "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 11.0 failed 1 times\n"
    "Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while "
    "reading file file:/data/cut.parquet. Could not read footer. SQLSTATE: KD001\n"
    "Caused by: java.lang.RuntimeException: file:/data/cut.parquet is not a Parquet file. Expected magic number at "
    "tail, but found [101, 109, 97, 24]\n"
)
WORKER = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    'Traceback (most recent call last):\n  File "kernel.py", line 39, in run\n    run()\n{error}\n'
)


class _JavaCause:
    def __init__(self, text: str, cause: _JavaCause | None = None) -> None:
        self.text, self.cause = text, cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.text

    def getCause(self) -> _JavaCause | None:  # noqa: N802 - Java's name
        return self.cause


def failed_read(name: str, cause: str) -> Exception:
    return RuntimeError(FAILED_READ.format(name=name, cause=cause))


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cut.jsonl.gz", "java.io.EOFException: Unexpected end of input stream"),
        ("bad.jsonl.gz", "java.io.IOException: unknown gzip format (reserved flagbits set)"),
        ("plain.jsonl.gz", "java.io.IOException: not a gzip file"),
        ("cut.jsonl.bz2", "java.io.IOException: unexpected end of stream"),
        ("bad.jsonl.bz2", "java.io.IOException: stream corrupted"),
        ("cut.jsonl.zst", "com.github.luben.zstd.ZstdIOException: Truncated source"),
        ("bad.jsonl.zst", "com.github.luben.zstd.ZstdIOException: Unknown frame descriptor"),
    ],
)
def test_a_damaged_file_is_named_with_the_innermost_cause(name: str, cause: str) -> None:
    error = translate(failed_read(name, cause), "reading source 'web'")
    assert isinstance(error, UnreadableInput)
    assert error.exit_code == 4
    lines = str(error).splitlines()
    assert lines[0] == f"reading source 'web': a file is damaged or cut short: file:///data/{name}"
    assert lines[1] == f"  - {cause}"
    assert "Nothing was written" in lines[2]


def test_damage_is_also_seen_without_spark_s_own_condition_around_it() -> None:
    for cause in ("java.io.EOFException: Unexpected end of input stream", "java.io.IOException: not a gzip file",
                  "com.github.luben.zstd.ZstdIOException: Truncated source", "java.io.IOException: stream corrupted",
                  "java.io.IOException: can not read FileMetaData: don't know what type: 15"):  # fmt: skip
        assert isinstance(translate(RuntimeError(f"{CALL}java.io.IOException: x\nCaused by: {cause}\n"), "reading"),
                          UnreadableInput), cause  # fmt: skip


def test_a_parquet_file_without_its_footer() -> None:
    error = translate(RuntimeError(FOOTER), "reading")
    assert isinstance(error, UnreadableInput)
    assert "file:/data/cut.parquet\n" in str(error)
    assert "is not a Parquet file" in str(error)


def test_words_like_corrupt_in_a_query_are_no_damaged_file() -> None:
    text = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `corrupt_ratio` cannot "
        "be resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703;"
    )
    error = ValueError(text)
    assert translate(error, "deciding") is error


def test_a_class_name_in_a_stack_frame_says_nothing() -> None:
    error = RuntimeError(CALL + "java.lang.IllegalStateException: odd\n\tat java.io.EOFException.make(X.java:1)\n"
                         "\tat org.apache.hadoop.security.AccessControlException.x(Y.java:2)\n")  # fmt: skip
    assert translate(error, "reading") is error


def test_a_worker_that_died_is_no_damaged_file() -> None:
    text = (
        CALL + "org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.0 in stage 16.0: "
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting 'x'\n"
        "Caused by: java.io.EOFException\n"
    )
    error = RuntimeError(text)
    assert translate(error, "annotating") is error
    assert "memory" in reason_of(error)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (CALL + "org.apache.spark.SparkException: Exception thrown in awaitResult:\nCaused by: "
         "java.io.FileNotFoundException: /data/a.parquet (Permission denied)\n", "/data/a.parquet"),
        (FAILED_READ.format(name="a.text", cause="java.io.FileNotFoundException: /data/a.text (Permission denied)")
         .replace("NO_HINT", "FILE_NOT_EXIST"), "file:///data/a.text"),
        (CALL + "java.nio.file.AccessDeniedException: /data/locked: Permission denied\n", "/data/locked"),
        (CALL + "org.apache.spark.sql.delta.DeltaIOException: [DELTA_CANNOT_CREATE_LOG_PATH] Cannot create "
         "file:/lake/documents/_delta_log\n", "file:/lake/documents/_delta_log"),
        (CALL + "java.io.IOException: Mkdirs failed to create file:/lake/out/_temporary/0 (exists=false, "
         "cwd=file:/home)\n", "file:/lake/out/_temporary/0"),
        (WORKER.format(error="PermissionError: [Errno 13] Permission denied: '/data/a.text'"), "/data/a.text"),
        (CALL + "org.apache.hadoop.security.AccessControlException: user x has no access to "
         "hdfs://name/lake/documents\n", "hdfs://name/lake/documents"),
        (CALL + "com.amazonaws.services.s3.model.AmazonS3Exception: AccessDenied on s3a://bucket/lake\n",
         "s3a://bucket/lake"),
    ],
)  # fmt: skip
def test_missing_permission_names_the_place(text: str, place: str) -> None:
    error = translate(RuntimeError(text), "writing table 'documents'")
    assert isinstance(error, NotPermitted)
    assert error.exit_code == 4
    assert str(error).splitlines()[0] == f"writing table 'documents': no permission: {place}"


@pytest.mark.parametrize(
    "text",
    [
        CALL + "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/x\n"
        "Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device\n",
        CALL
        + "org.apache.hadoop.util.DiskChecker$DiskErrorException: No space available in any of the local folders\n",
        WORKER.format(error="OSError: [Errno 28] No space left on device: '/tmp/x'"),
    ],
)
def test_a_full_disk_says_which_settings_move_the_data(text: str) -> None:
    error = translate(RuntimeError(text), "writing scratch data")
    assert isinstance(error, ScratchFull)
    assert error.exit_code == 75
    for remedy in ("spark.scratch", "spark.local.dir", "warehouse", "same run id"):
        assert remedy in str(error)


CONFLICTS = [
    "DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ", "DELTA_CONCURRENT_DELETE_DELETE",
    "DELTA_CONCURRENT_TRANSACTION", "DELTA_CONCURRENT_WRITE", "DELTA_PROTOCOL_CHANGED", "DELTA_METADATA_CHANGED",
    "DELTA_TABLE_ALREADY_EXISTS", "DELTA_PATH_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONFLICTS)
def test_conflicts_are_known_by_their_condition_whatever_class_they_arrive_as(condition: str) -> None:
    error = RuntimeError(f"[{condition}.WITHOUT_HINT] Transaction conflict detected. Please retry the operation.")
    assert conflict_of(error) == condition
    translated = translate(error, "writing table 'documents'")
    assert isinstance(translated, RetryLater)
    assert translated.exit_code == 75
    assert condition in str(translated)
    assert "same run id" in str(translated)


@pytest.mark.parametrize(
    "name", ["ConcurrentAppendException", "ConcurrentWriteException", "ConcurrentDeleteReadException",
             "ConcurrentDeleteDeleteException", "ConcurrentTransactionException", "MetadataChangedException",
             "ProtocolChangedException"]
)  # fmt: skip
def test_conflicts_are_known_by_delta_s_java_classes(name: str) -> None:
    assert conflict_of(RuntimeError(f"{CALL}io.delta.exceptions.{name}: Files were added by another run.")) == name


def test_no_conflict() -> None:
    assert conflict_of(ValueError("concurrent users")) is None


def test_the_java_causes_are_read_too() -> None:
    """Under Py4J the outer error may say nothing; the condition stands in a cause."""
    error = RuntimeError("An error occurred while calling o1.save.")
    error.java_exception = _JavaCause(  # type: ignore[attr-defined]
        "SparkException: Job aborted", _JavaCause("task failed", _JavaCause("[DELTA_CONCURRENT_APPEND] conflict"))
    )
    assert conflict_of(error) == "DELTA_CONCURRENT_APPEND"


def test_a_check_constraint_gives_the_rule_and_the_values() -> None:
    text = (
        CALL + "org.apache.spark.sql.delta.schema.DeltaInvariantViolationException: "
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint weir_lengths (bytes >= characters AND characters >= 0) "
        "violated by row with values:\n - bytes : 3\n - characters : 4\n\tat org.apache.spark.X.y(X.scala:1)\n"
    )
    error = translate(RuntimeError(text), "writing table 'documents'")
    assert type(error) is InputContractError
    assert error.exit_code == 4
    assert str(error).splitlines() == [
        "writing table 'documents': a row breaks the table's constraint weir_lengths: "
        "bytes >= characters AND characters >= 0",
        "  - bytes : 3",
        "  - characters : 4",
    ]


def test_a_value_that_a_constraint_quotes_can_t_mislead() -> None:
    text = "CHECK constraint weir_reason (reason <> '') violated by row with values:\n - detail : Permission denied, EOFException\n"
    assert type(translate(RuntimeError(text), "writing")) is InputContractError


def test_a_null_where_none_may_be_names_the_column() -> None:
    text = "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: doc_id.\n"
    error = translate(RuntimeError(CALL + text), "writing table 'documents'")
    assert str(error) == "writing table 'documents': column 'doc_id' may not be NULL"


@pytest.mark.parametrize(
    "text",
    [
        "[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version 77. Available versions: [0, 0].",
        "[DELTA_LOG_FILE_NOT_FOUND] Unable to retrieve the delta log files",
        "[DELTA_TRUNCATED_TRANSACTION_LOG] x: Unable to reconstruct state at version 5",
    ],
)
def test_a_version_that_is_gone(text: str) -> None:
    error = translate(ValueError(text), "reading version 77 of table 'documents'")
    assert isinstance(error, TableMissing)
    assert "new run id" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "[PATH_NOT_FOUND] Path does not exist: file:/data/nothing. SQLSTATE: 42K03",
        FAILED_READ.format(name="nothing", cause="java.io.FileNotFoundException: File file:/data/nothing does not exist")
        .replace("NO_HINT", "FILE_NOT_EXIST"),
    ],
)  # fmt: skip
def test_a_file_that_is_gone(text: str) -> None:
    error = translate(ValueError(text), "reading")
    assert isinstance(error, UnreadableInput)
    assert "a file is gone" in str(error)
    assert "/data/nothing" in str(error)


def test_our_own_errors_go_through_unchanged() -> None:
    error = SettingsError("Permission denied")
    assert translate(error, "reading") is error


def test_an_error_that_a_kernel_raised_on_purpose() -> None:
    error = translate(RuntimeError(WORKER.format(error="udfs.x.WeirInputError: line 3 is odd")), "reading")
    assert type(error) is InputContractError
    assert str(error) == "line 3 is odd"


class PythonException(Exception):
    """Named as PySpark's."""


def test_the_reason_is_the_kernel_s_own_last_line() -> None:
    error = PythonException("PythonException: " + WORKER.format(error="ValueError: kernel said no"))
    assert reason_of(error) == "ValueError: kernel said no"


def test_the_reason_skips_what_py4j_says_of_itself() -> None:
    assert reason_of(RuntimeError(CALL + "java.lang.IllegalStateException: odd\n\tat x.y(Z.java:1)\n")) == (
        "RuntimeError: java.lang.IllegalStateException: odd"
    )


def test_the_reason_of_an_error_without_words() -> None:
    assert reason_of(KeyError()) == "KeyError"
