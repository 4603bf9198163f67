"""Tables of captures in Iceberg, by a release of Spark for which Iceberg has a runtime.

Iceberg has none for Spark 4.3, with which the other tests run: 4.2 and 4.3 are not published, and
the ones for 4.0 (1.11.0) and 4.1 (1.11.0, 1.12.0) do not load there (``View`` and
``CatalogManager`` of Spark have changed). Delta 4.4.0 for Spark 4.2, the newest, fails likewise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.builds import built, run
from kproto.errors import AbsentError
from tests.captures.reading import file_of
from tests.support.maven import artifact
from tests.support.toolchain import absent, require, require_module
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import single
from wiredump.tables.run import derived_run

SPARK = "pyspark==4.1.4"
ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13", "1.12.0")
ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("lake.py")


def spark_folder() -> Path:
    """That release of Spark beside the installed one, by pip, kept in the cache."""

    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        run([*command, "--target", str(folder), SPARK], cwd=ROOT)

    try:
        return built("spark", [SPARK, sys.version], build)
    except AbsentError as error:
        absent(SPARK, str(error))
        raise


@pytest.mark.slow
@pytest.mark.java
def test_requests_by_the_hour(tmp_path: Path) -> None:
    """Two captures, one appended behind the other: every row, the partitions, the comments."""
    require("java", "maven")
    require_module("pyspark")
    first = tmp_path / "a.pcap"
    first.write_bytes(knowing())
    captures = [str(first), str(file_of("mock-4.4"))]
    jar = artifact(*ICEBERG)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(jar), str(tmp_path / "lake"), *captures],
        env={
            **os.environ, "PYTHONPATH": os.pathsep.join([str(spark_folder()), str(ROOT)]),
            "PYSPARK_PYTHON": sys.executable,
        },
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected, hours = [], set()
    for number, capture in enumerate(captures):
        rows = single([capture], tmp_path / str(number), tables=("requests",))["requests"]
        expected += [[derived_run([capture]), row] for row in rows]
        hours |= {_hour(row) for row in rows}
    assert sorted(found["rows"]) == sorted(expected)
    assert found["hours"] == sorted(hours)
    assert len(hours) > 1
    assert found["comment"] == "from requested_ns to responded_ns; null where that is negative"


def _hour(row: str) -> int:
    """Hours since the epoch, as Iceberg counts them."""
    return int(row.split("'requested_ns': ")[1].split(",")[0]) // 3_600_000_000_000
