"""A standalone master and two executors in processes and folders of their own. They share only an
object store: the code comes with the job (``--archives``), captures and tables are in a bucket.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.full import FULL
from tests.support.object_store import Bucket
from tests.support.toolchain import require, require_module
from tests.wiredump.spark import made_up
from tests.wiredump.spark.pipeline import single

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.skipif(not FULL, reason="starts six Java processes: KPROTO_FULL=1 runs it"),
]

ROOT = Path(__file__).parents[3]
TABLES = ("connections", "requests")
_REGISTERED = re.compile(r"(?:Starting Spark master at|registered with master) (\S+)\n")
RUN = "from wiredump.cli import main; main()"


@contextmanager
def started(folder: Path, name: str, *arguments: str) -> Iterator[str]:
    """Start a class of ``org.apache.spark.deploy``; yields the master's address, as its log has
    it."""
    folder.mkdir()
    home = Path(str(require_module("pyspark").__file__)).parent
    command = ["java", "-Xmx192m", "-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{name}"]
    command += ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode shows which copy was imported
    # The worker starts executors as its shell script would, which sets these two.
    environment = {**kept, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    log = folder / "log"
    with (
        open(log, "w") as errors,
        subprocess.Popen(command, cwd=folder, env=environment, stderr=errors) as process,
    ):
        try:
            while (found := _REGISTERED.search(log.read_text())) is None:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield found[1]
        finally:
            process.kill()


def packed(file: Path) -> Path:
    """An archive of this project's packages, as a job brings them along."""
    with zipfile.ZipFile(file, "w") as archive:
        for package in ("kproto", "wiredump", "schemas"):
            for path in sorted((ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
    return file


def test_two_executors_without_a_shared_folder(bucket: Bucket, tmp_path: Path) -> None:
    require("java")
    paths = []
    for number in range(2):
        data = made_up.capture(70 + number, kind="pcap", share=0.0)
        (tmp_path / f"{number}.pcap").write_bytes(data)
        paths.append(str(tmp_path / f"{number}.pcap"))
        bucket.put(f"day/{number}.pcap", data)
    expected = single(paths, tmp_path / "one", tables=TABLES)
    code = packed(tmp_path / "code.zip")
    executors = [tmp_path / "first", tmp_path / "second"]
    with ExitStack() as stack:
        master = stack.enter_context(started(tmp_path / "master", "master.Master"))
        for folder in executors:
            worker = started(
                folder, "worker.Worker", "--cores", "1", "--memory", "600m",
                "--work-dir", str(folder / "work"), master,
            )  # fmt: skip
            assert stack.enter_context(worker) == master
        driver = tmp_path / "driver"
        driver.mkdir()
        submitted = [
            "--master", master, "--archives", f"{code}#code",
            "--conf", "spark.executorEnv.PYTHONPATH=code",
            "--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1",
            "--conf", "spark.driver.memory=512m", "--conf", "spark.driver.host=127.0.0.1",
            "--conf", "spark.driver.bindAddress=127.0.0.1",
            # Both executors take part even if the first is ready long before the second.
            "--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0",
            "--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=300s", "pyspark-shell",
        ]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", RUN, "spark", bucket.uri("day/*.pcap"),
             "--out", bucket.uri("tables"), "--tables", ",".join(TABLES), "--run", "r1",
             "--partitions", "4", "--split-bytes", "3000"],
            cwd=driver, text=True, capture_output=True, timeout=500, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable,
                 "PYSPARK_SUBMIT_ARGS": " ".join(submitted), "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:3000]
    assert f"Spark's master is {master}" in done.stderr
    found: dict[str, list[str]] = {name: [] for name in TABLES}
    for key in bucket.keys():  # noqa: SIM118 (not a dict)
        table = key.removeprefix("tables/").partition("/")[0]
        if table in found and key.endswith(".parquet"):
            rows = pq.ParquetFile(io.BytesIO(bucket.get(key))).read().to_pylist()
            found[table] += map(repr, rows)
    assert {name: sorted(rows) for name, rows in found.items()} == expected
    for folder in executors:
        (code_folder,) = folder.glob("work/app-*/*/code")
        assert list(code_folder.rglob("wiredump/storage/__pycache__")), "it imported its own copy"
        assert not list(folder.rglob("*.pcap"))
        assert not [path for path in folder.rglob("*.parquet") if "code" not in path.parts]
