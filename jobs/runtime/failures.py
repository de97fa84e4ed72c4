"""Turns what Spark and Delta throw into errors that say what to do.

On the pinned Delta, conflicts arrive as plain ``Py4JJavaError`` (classic) or ``UnknownException`` (Connect), not as
the classes of ``delta.exceptions``: so they are recognised by the error condition in the text.
"""

from __future__ import annotations

import re

from jobs.runtime.errors import (
    InputContractError,
    NotPermitted,
    RetryLater,
    ScratchFull,
    TableMissing,
    UnreadableInput,
    WeirError,
    WorkersDiffer,
)

_CONFLICT = re.compile(
    r"DELTA_CONCURRENT_[A-Z_]+|DELTA_PROTOCOL_CHANGED|DELTA_METADATA_CHANGED|"
    r"\b(?:Concurrent(?:Append|Write|DeleteRead|DeleteDelete|Transaction)|MetadataChanged|ProtocolChanged)Exception|"
    r"DELTA_TABLE_ALREADY_EXISTS|DELTA_PATH_EXISTS|TABLE_OR_VIEW_ALREADY_EXISTS"
)
_DAMAGED = re.compile(
    r"EOFException|ZipException|incorrect header check|invalid (?:block|stored block|distance|bit length)|"
    r"ChecksumException|invalid stream|crc error|not a gzip file|unknown gzip format|is not a Parquet|"
    r"can not read FileMetaData|tream(?: is)? corrupted|Truncated source|Unknown frame descriptor|"
    r"Data corruption detected|[Uu]nexpected end of (?:input )?stream|bad block header|"
    r"FAILED_READ_FILE\.(?!FILE_NOT_EXIST)|CANNOT_READ_FILE_FOOTER"
)
_NOT_PERMITTED = re.compile(
    # A folder that can't be made: Hadoop's local file system says no more than that it failed.
    r"Permission denied|AccessControlException|AccessDenied|DELTA_CANNOT_CREATE_LOG_PATH|Mkdirs failed to create"
)
_IN_WORKER = re.compile(r"from the Python worker|PythonException")
_CRASHED = re.compile(r"Python worker exited unexpectedly")
_FILE = re.compile(
    r"(?:file|s3a?|gs|abfss?|hdfs|dbfs|wasbs?):/[^\s'\"\])},]+|(?<=: )/[^\n:]+(?= \(Permission)|"
    r"(?<=AccessDeniedException: )/[^\n:]+|(?<=Permission denied: ')/[^\n']+"
)
_FRAME = re.compile(r"^\s+(?:at |\.\.\. \d+ more).*\n?", re.MULTILINE)


def conflict_of(error: BaseException) -> str | None:
    """The name of Delta's conflict if the error is one, else None."""
    match = _CONFLICT.search(_text_of(error))
    return match.group(0) if match else None


def translate(error: BaseException, doing: str) -> BaseException:
    """The error as one of ours where its cause is known, else the error itself.

    Args:
        error: What was thrown.
        doing: What was being done, for the message ("writing table 'documents'").
    """
    if isinstance(error, WeirError):
        return error
    text = _text_of(error)
    conflict = conflict_of(error)
    if conflict:
        return RetryLater(
            f"{doing}: another run changed the same table at the same time ({conflict}). "
            "Nothing of this run was written there; run it again with the same run id."
        )
    broken = _broken_constraint(text, doing)
    if broken is not None:  # before all others: it quotes values of the row, which may say anything
        return broken
    if "No space left on device" in text or "DiskErrorException" in text or "ENOSPC" in text:
        return ScratchFull(
            f"{doing}: the disk is full. Free space, or name another place with the settings spark.scratch "
            "(intermediate data), spark.conf 'spark.local.dir' (shuffles) or warehouse (tables); "
            "then run it again with the same run id."
        )
    if _NOT_PERMITTED.search(text):
        return NotPermitted(
            f"{doing}: no permission{_file_in(text)}",
            remedy="Give this user the right to read the inputs and to write the warehouse and the scratch folder.",
        )
    ours = re.search(r"WeirInputError:\s*([^\n]+)", text)
    if ours:
        return InputContractError(ours.group(1))
    absent = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if absent and _IN_WORKER.search(text):
        return WorkersDiffer(
            f"{doing}: the Python of Spark's workers has no module '{absent.group(1)}'. Install corpus-weir for it, or name "
            "a Python that has it, the same on every machine: PYSPARK_PYTHON=/path/to/python (on YARN and Kubernetes: "
            "--archives env.tar.gz#environment with PYSPARK_PYTHON=./environment/bin/python)."
        )
    if _DAMAGED.search(text) and not _CRASHED.search(text):  # a worker that dies also ends its stream too early
        return UnreadableInput(
            f"{doing}: a file is damaged or cut short{_file_in(text)}",
            [_innermost_cause(text)],
            "Fetch the file again, or take it out of the setting 'paths'. Nothing was written.",
        )
    if "FILE_NOT_EXIST" in text or "FileNotFoundException" in text or "PATH_NOT_FOUND" in text:
        return UnreadableInput(f"{doing}: a file is gone{_file_in(text)}", remedy="Nothing was written; run it again.")
    if re.search(r"DELTA_(?:CANNOT_TIME_TRAVEL|VERSION|LOG_FILE_NOT_FOUND|TRUNCATED_TRANSACTION_LOG)", text):
        return TableMissing(
            f"{doing}: the version is no longer there (VACUUM or log clean-up)", remedy="Use a new run id."
        )
    return error


def _broken_constraint(text: str, doing: str) -> InputContractError | None:
    violated = re.search(r"CHECK constraint (\S+) \(([^\n]*)\) violated[^\n]*((?:\n - [^\n]*){0,8})", text)
    if violated:
        return InputContractError(
            f"{doing}: a row breaks the table's constraint {violated.group(1)}: {violated.group(2)}",
            [line.strip(" -") for line in violated.group(3).strip().splitlines()],
        )
    null = re.search(r"NOT NULL constraint violated for column: (\S+?)\.?\s", text + "\n")
    return InputContractError(f"{doing}: column '{null.group(1)}' may not be NULL") if null else None


def reason_of(error: BaseException) -> str:
    """One line that says why an unexpected error happened, without the JVM's stack."""
    text = _text_of(error).strip()
    python = re.findall(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception)): .*$", text, re.MULTILINE)
    if "PythonException" in text and python:
        return python[-1]
    if _CRASHED.search(text):
        return "a Python worker died, most often because the memory ran out: fewer cores, or more memory a core"
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    cause = re.search(r"^: (.+)$", text, re.MULTILINE)
    if first.startswith("An error occurred while calling") and cause:
        first = cause.group(1)
    return f"{type(error).__name__}: {first}" if type(error).__name__ not in first else first


def _text_of(error: BaseException) -> str:
    parts = [str(error)]
    java = getattr(error, "java_exception", None)
    if java is not None:
        parts.append(str(java.toString()))
        cause = java.getCause()
        depth = 0
        while cause is not None and depth < 8:
            parts.append(str(cause.toString()))
            cause, depth = cause.getCause(), depth + 1
    stack = getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None)
    if isinstance(stack, str):
        parts.append(stack)
    return _FRAME.sub("", "\n".join(parts))


def _file_in(text: str) -> str:
    match = _FILE.search(text)
    return f": {match.group(0).rstrip('.')}" if match else ""


def _innermost_cause(text: str) -> str:
    """The last of the JVM's causes, else the first line that tells of the damage."""
    causes = re.findall(r"^\s*Caused by: (.+)$", text, re.MULTILINE)
    told = [line.strip() for line in text.splitlines() if _DAMAGED.search(line)]
    return (causes or told)[-1 if causes else 0][:300]
