"""Runs and streams in tables of Delta and Iceberg, by releases of Spark for which they have a
runtime.

Neither has one for Spark 4.3, with which the other tests run. Delta 4.4.0 is published for 4.1 and
4.2, Iceberg 1.12.0 for 4.0 and 4.1; those do not load in 4.3, nor that of Iceberg for 4.1 in 4.2
(``View`` and ``CatalogManager`` of Spark have changed). Queries of streams need Spark 4.2, so that
the batches of a stream to Iceberg are run one by one here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kproto.builds import built, run
from kproto.errors import AbsentError
from tests.captures.reading import file_of
from tests.support.full import drawn
from tests.support.maven import artifacts
from tests.support.toolchain import absent, require, require_module
from tests.wiredump.questions.operations import tables_of_operations
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import single
from tests.wiredump.spark.rotating import rotate
from wiredump.cli import cli
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import questions

SPARK = {"iceberg": "pyspark==4.1.4", "delta": "pyspark==4.2.0"}
JARS = {
    "iceberg": [("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13", "1.12.0")],
    "delta": [("io.delta:delta-spark_4.2_2.13", "4.4.0"), ("io.delta:delta-storage", "4.4.0")],
}
ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("lake.py")


def spark_folder(release: str) -> Path:
    """A release of Spark beside the installed one, by pip, kept in the cache."""

    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        run([*command, "--target", str(folder), release], cwd=ROOT)

    try:
        return built("spark", [release, sys.version], build)
    except AbsentError as error:
        absent(release, str(error))
        raise


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("form", JARS)
def test_runs_and_streams(tmp_path: Path, form: str) -> None:
    """Every row of each run once: of one that replaces itself, of a stream whose driver dies three
    times and whose tables are compacted and lose their old versions, and of two runs at once, of
    which one replaces rows that were compacted with those of others. A version before compaction
    has the rows of after, and a query that reads the table meanwhile gets each row once. Questions
    have the answers of DuckDB."""
    require("java", "maven")
    asked = tables_of_operations(tmp_path / "asked")
    names = drawn(f"questions about {form}", sorted(questions()), 3)
    require_module("pyspark")
    first = tmp_path / "a.pcap"
    first.write_bytes(knowing())
    captures = [str(first), str(file_of("mock-4.4"))]
    rotated = rotate(knowing(), [15, 30], tmp_path / "in")
    jars = ",".join(map(str, artifacts(JARS[form])))
    path = os.pathsep.join([str(spark_folder(SPARK[form])), str(ROOT)])
    done = subprocess.run(
        [sys.executable, str(PROGRAM), form, jars, str(tmp_path / "lake"), *captures,
         str(tmp_path / "in"), asked, ",".join(names)],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    tables = tuple(found["rows"])
    rows = [
        single([each], tmp_path / str(number), tables=tables)
        for number, each in enumerate(captures)
    ]
    stream = single(list(map(str, rotated)), tmp_path / "rotated", tables=tables, rotated=True)
    runs = {"a": rows[1], "b": rows[0], "stream": stream}
    for table in tables:
        expected = [[name, row] for name, of in runs.items() for row in of[table]]
        assert found["rows"][table] == sorted(expected), table
    assert found["types"] == {
        "requested_at": "timestamp", "date": "date", "hour": "int", "run": "string",
    }  # fmt: skip
    assert all(f"{date} {hour}" == at for date, hour, at in found["hours"])
    assert len(found["hours"]) > 1
    assert found["source"] == len(rows[0]["requests"])
    local = FolderTables(asked)
    expected_answers = {name: answer(local, questions()[name].query) for name in names}
    answers = {name: repr((each.columns, each.rows)) for name, each in expected_answers.items()}
    assert found["asked"]["answers"] == answers
    printed = CliRunner().invoke(cli, ["ask", names[0], asked, "--format", "json"])
    assert found["asked"]["printed"] == printed.stdout != ""
    if form == "iceberg":
        comment = "from requested_ns to responded_ns; null where that is negative"
        assert found["comment"] == comment
