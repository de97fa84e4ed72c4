"""The Spark session, and the only module that touches the JVM or the Spark context.

An active session (a notebook, Databricks, a test) is used as it is, after a version check. Otherwise one is built:
Java and Delta's jars are found first, so that a missing one is said in a sentence and not in a JVM's stack trace.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.metadata
import importlib.resources
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.runtime.errors import SessionMismatch, SettingsError
from jobs.runtime.models import SparkSettings

logger = logging.getLogger("weir")
SPARK_LINE = "4.1"
IVY_SETTINGS = "spark.jars.ivySettings"
DELTA_MINIMUM = (4, 3)

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LOCAL_CONF = {
    # One machine: Delta's default of 50 tasks to read a table's log, and a UI, only cost time.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.files.openCostInBytes": "262144",
    # Listing a folder of many files would start up to 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
JOB_CONF = {
    # Stamps without an offset, and every rendering of a time, are UTC on any cluster.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
}


def get_session(settings: SparkSettings, name: str = "corpus-weir") -> SparkSession:
    """The active session, or a new one by the settings.

    Raises:
        SessionMismatch: if Spark is not 4.1.x or Delta is below 4.3.
        JavaNotFound, JarsNotFound: if a session must be built and can't be.
    """
    _check_libraries()
    active = SparkSession.getActiveSession()
    if active is None:
        active = _connect(settings, name) if settings.remote else _build(settings, name)
    check_session(active)
    return active


def check_session(spark: SparkSession) -> None:
    """Refuse a session of another Spark line, or one without Delta, with the remedy."""
    if not spark.version.startswith(SPARK_LINE + "."):
        raise SessionMismatch(
            f"this session runs Spark {spark.version}; Corpus Weir runs on Spark {SPARK_LINE}.x. "
            f"Use a cluster or runtime with Spark {SPARK_LINE} (Databricks Runtime 18), "
            f"or pip install 'pyspark=={SPARK_LINE}.1'."
        )
    if is_connect(spark):
        return
    jvm: Any = spark._jvm
    try:
        version = str(jvm.io.delta.package.VERSION())
    except TypeError:
        raise SessionMismatch(
            "this session has no Delta Lake on its class path. Start it with "
            f"--packages io.delta:delta-spark_{SPARK_LINE}_2.13:4.3.1, or let Corpus Weir build the session."
        ) from None
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < DELTA_MINIMUM:
        raise SessionMismatch(
            f"this session has Delta {version}, which breaks on Spark {SPARK_LINE}.2 and later; "
            f"Corpus Weir needs 4.3 or later: io.delta:delta-spark_{SPARK_LINE}_2.13:4.3.1"
        )


def is_connect(spark: SparkSession) -> bool:
    """Whether the session speaks Spark Connect (no JVM on this side)."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def send_files(spark: SparkSession, files: Mapping[str, str]) -> None:
    """Send local files to wherever tasks run; nothing to do where they run on this machine alone.

    Args:
        spark: The session.
        files: Path -> name among the sent files (``SparkFiles``). A name must always mean the same content.
    """
    if not files or all_on_this_machine(spark):
        return
    for path, name in files.items():
        # Spark calls a file as its path ends. It is a copy, for executors that join later fetch it then from the driver,
        # and every task fails if it has changed meanwhile.
        copy = Path(_sent_folder()) / name
        if not copy.exists():
            unfinished = copy.with_name(f".{name}")
            shutil.copyfile(path, unfinished)
            unfinished.rename(copy)
        spark.addArtifact(str(copy), file=True)


def all_on_this_machine(spark: SparkSession) -> bool:
    """Whether tasks run on the driver's machine alone, and so see its files."""
    return not is_connect(spark) and re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)) is not None


@functools.cache
def _sent_folder() -> str:
    folder = tempfile.mkdtemp(prefix="weir-sent-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def session_cores(spark: SparkSession) -> int | None:
    """How many tasks the session runs at once, or None where that can't be known (Connect)."""
    if is_connect(spark):
        return None
    return int(spark.sparkContext.defaultParallelism)


@contextlib.contextmanager
def configured(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set runtime configuration for the duration of a block and put back what was there."""
    before: dict[str, str | None] = {}
    for name in conf:
        try:
            before[name] = spark.conf.get(name)
        except Exception:  # not set, and without a default
            before[name] = None
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def stop_own_session(spark: SparkSession) -> None:
    """Stop a session that ``get_session`` built; leave others alone."""
    if getattr(spark, "_weir_built", False):
        spark.stop()


def log_file() -> Path:
    """Where Spark's own messages go when Corpus Weir starts the JVM."""
    folder = Path(tempfile.gettempdir()) / f"corpus-weir-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"spark-{os.getpid()}.log"


def list_hadoop_files(spark: SparkSession, uri: str) -> list[tuple[str, int]]:
    """All files under a URI with their sizes, hidden ones too, through the file systems that Spark itself uses.

    On Connect there is no JVM on this side: pyarrow's own file systems are asked instead.

    Raises:
        FileNotFoundError: if there is nothing at the URI.
    """
    if is_connect(spark):
        return _list_with_arrow(uri)
    system, root = _hadoop(spark, uri)
    found: list[tuple[str, int]] = []
    statuses = system.globStatus(root)
    if not statuses:
        raise FileNotFoundError(uri)
    for status in statuses:
        if status.isFile():
            found.append((status.getPath().toString(), int(status.getLen())))
            continue
        files = system.listFiles(status.getPath(), True)
        while files.hasNext():
            entry = files.next()
            found.append((entry.getPath().toString(), int(entry.getLen())))
    return found


def list_folders(spark: SparkSession, uri: str) -> list[str]:
    """The names of the folders directly under a folder (path or URI); empty if there is no such folder."""
    if "://" not in uri and Path(uri).is_absolute():
        folder = Path(uri)
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if is_connect(spark):
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(uri)
        entries = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(e.base_name for e in entries if e.type == fs.FileType.Directory)
    system, root = _hadoop(spark, uri)
    if not system.exists(root):
        return []
    return sorted(str(s.getPath().getName()) for s in system.listStatus(root) if s.isDirectory())


def delete_folder(spark: SparkSession, uri: str, empty_parents: int = 1) -> None:
    """Remove a folder (path or URI) and all in it; no error if it isn't there.

    On a local disk so many of the folders around it go too, as long as nothing else is in them.
    """
    if "://" not in uri and Path(uri).is_absolute():
        shutil.rmtree(uri, ignore_errors=True)
        with contextlib.suppress(OSError):
            for parent in list(Path(uri).parents)[:empty_parents]:
                parent.rmdir()
    elif is_connect(spark):
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(uri)
        if system.get_file_info(path).type == fs.FileType.Directory:
            system.delete_dir(path)
    else:
        system, root = _hadoop(spark, uri)
        system.delete(root, True)


def _hadoop(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    """The Hadoop file system that Spark itself uses for a URI, and the URI as its path."""
    jvm: Any = spark._jvm
    java_session: Any = spark._jsparkSession
    root = jvm.org.apache.hadoop.fs.Path(uri)
    return root.getFileSystem(java_session.sessionState().newHadoopConf()), root


def _list_with_arrow(uri: str) -> list[tuple[str, int]]:
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(uri)
    prefix = uri[: len(uri) - len(path)] if uri.endswith(path) else uri.partition("://")[0] + "://"
    if info.type == fs.FileType.File:
        return [(uri, int(info.size))]
    entries = system.get_file_info(fs.FileSelector(path, recursive=True))
    return [(prefix + e.path, int(e.size)) for e in entries if e.type == fs.FileType.File]


def _check_libraries() -> None:
    version = importlib.metadata.version("pyspark")
    if not version.startswith(SPARK_LINE + "."):
        raise SessionMismatch(
            f"pyspark {version} is installed; Corpus Weir runs on {SPARK_LINE}.x: pip install 'pyspark=={SPARK_LINE}.1'"
        )


def _build(settings: SparkSettings, name: str) -> SparkSession:
    from jobs.runtime.jars import delta_jars

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder: Any = SparkSession.builder
    builder = builder.appName(name)
    master = settings.master or (None if submitted else os.environ.get("MASTER", "local[*]"))
    if master:
        builder = builder.master(master)
    local = (master or "").startswith("local")
    conf: dict[str, str] = dict(DELTA_CONF)
    if local:
        conf |= LOCAL_CONF
        cores = _cores_of(master or "")
        conf["spark.sql.shuffle.partitions"] = str(max(8, 4 * cores))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not submitted:
        _use_java(settings)
        conf["spark.driver.memory"] = settings.driver_memory or _default_memory()
        conf["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_log_configuration()}"
    conf |= settings.conf
    if submitted and _submitted_with_delta():
        pass
    else:
        jars = delta_jars(settings.jars, ivy_settings=settings.conf.get(IVY_SETTINGS))
        given = conf.get("spark.jars", "")
        conf["spark.jars"] = ",".join([*([given] if given else []), *(str(jar) for jar in jars)])
        if submitted:
            _add_to_driver(jars)
    for key, value in conf.items():
        builder = builder.config(key, value)
    with _stderr_to(log_file()) if not submitted else contextlib.nullcontext():
        spark: SparkSession = builder.getOrCreate()
    spark._weir_built = True  # type: ignore[attr-defined]
    return spark


def _connect(settings: SparkSettings, name: str) -> SparkSession:
    builder: Any = SparkSession.builder.remote(settings.remote or "")
    builder = builder.appName(name)
    if (settings.remote or "").startswith("local"):
        from jobs.runtime.jars import delta_jars

        _use_java(settings)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        jars = ",".join(str(j) for j in delta_jars(settings.jars, ivy_settings=settings.conf.get(IVY_SETTINGS)))
        for key, value in {**DELTA_CONF, **LOCAL_CONF, "spark.jars": jars, **settings.conf}.items():
            builder = builder.config(key, value)
    with _stderr_to(log_file()):
        spark: SparkSession = builder.getOrCreate()
    spark._weir_built = True  # type: ignore[attr-defined]
    return spark


def _use_java(settings: SparkSettings) -> None:
    from jobs.runtime.java import find_java

    java = find_java(settings.java_home)
    for note in java.notes:
        logger.info(note)
    os.environ["JAVA_HOME"] = str(java.home)


def _submitted_with_delta() -> bool:
    """Under spark-submit the JVM already runs: did --packages or --jars bring Delta?"""
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(DELTA_CONF["spark.sql.extensions"])
    except Exception:
        return False
    return True


def _add_to_driver(jars: list[Path]) -> None:
    """``spark.jars`` set after spark-submit has started reaches the executors, but not the driver's class loader."""
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        for jar in jars:
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    except Exception as error:
        raise SettingsError(
            "spark-submit was started without Delta, and its jars can't be added to the running driver "
            f"({type(error).__name__}). Add: --jars {','.join(str(j) for j in jars)}"
        ) from None


def _log_configuration() -> str:
    return str(importlib.resources.files("conf") / "log4j2.properties")


def _cores_of(master: str) -> int:
    match = re.fullmatch(r"local\[(\d+|\*)(?:,\d+)?\]", master)
    if master == "local":
        return 1
    if match and match.group(1) != "*":
        return int(match.group(1))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _default_memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(16, max(2, total // 4 // 2**30))}g"


@contextlib.contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Whatever is started inside inherits a log file as its standard error; ours is put back afterwards.

    The JVM and Spark's Python workers keep writing there, so the user's terminal shows only what jobs say.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)
