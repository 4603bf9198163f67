"""HDFS in a process of its own: Hadoop's minicluster from Maven Central, on the Hadoop classes that
PySpark has."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.maven import artifact
from tests.support.toolchain import require, require_module

__all__ = ["hdfs"]

SOURCE = Path(__file__).with_name("MiniHdfs.java")


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Run a cluster whose data is in ``folder``; yields its URI. Skips, or fails where required,
    without Java, Maven, PySpark or hdfs-native."""
    require("java")
    require_module("hdfs_native")
    jars = Path(str(require_module("pyspark").__file__)).parent / "jars"
    found = next(jars.glob("hadoop-client-api-*.jar"))
    version = re.fullmatch(r"hadoop-client-api-(.+)\.jar", found.name)
    assert version is not None
    cluster = artifact("org.apache.hadoop:hadoop-client-minicluster", version[1])
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # half the time to begin
    command = ["java", *options, "-cp", f"{cluster}:{jars}/*", str(SOURCE), str(folder / "data")]
    with (
        open(folder / "errors", "w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            cwd=folder,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("READY "):
                    yield line.split()[1]
                    return
            errors.seek(0)
            raise AssertionError(f"the cluster did not start:\n{errors.read()}")
        finally:
            process.kill()
