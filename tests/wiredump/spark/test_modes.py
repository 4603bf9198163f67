"""``wiredump spark --mode`` and ``--partition-by``: what becomes of tables that are there, and
folders by the values of columns."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from kproto.errors import KprotoError
from tests.captures import damage
from tests.support.toolchain import require_module
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import load, single
from wiredump.cli import cli
from wiredump.rows.schema import TABLES

TABLES_HERE = ("connections", "requests", "reassignments", "elections")
ARGUMENTS = ["--tables", ",".join(TABLES_HERE), "--partitions", "2"]


@pytest.fixture
def capture(tmp_path: Path) -> str:
    path = tmp_path / "a.pcap"
    path.write_bytes(knowing())
    return str(path)


def run(session: Any, *arguments: str) -> Result:
    with damage.spark_kept(session):
        return CliRunner().invoke(cli, ["spark", *arguments, *ARGUMENTS], standalone_mode=False)


@pytest.mark.slow
@pytest.mark.java
def test_partitions_and_modes(spark: Any, tmp_path: Path, capture: str) -> None:
    """Every row by its date and api; a second run beside it; and one that replaces both, which
    changes nothing before it is complete."""
    out = tmp_path / "out"
    expected = single([capture], tmp_path / "one", tables=TABLES_HERE)
    by = ["--out", str(out), "--partition-by", "date,api"]
    made = run(spark, capture, *by, "--run", "first")
    assert made.exception is None, made.output
    assert list((out / "requests" / "run=first").glob("date=20*/api=Metadata/*.parquet"))
    assert list((out / "connections" / "run=first").glob("date=20*/*.parquet"))
    for table in TABLES_HERE:
        assert rows(out, table) == expected[table], table
    assert spark.read.parquet(str(out / "requests")).where("api = 'Metadata'").count() > 0

    refused = run(spark, capture, *by, "--run", "second")
    assert "is not empty" in str(refused.exception)
    assert run(spark, capture, *by, "--run", "second", "--mode", "append").exception is None
    assert rows(out, "requests") == sorted(2 * expected["requests"])
    assert pq.ParquetDataset(out / "elections").read().num_rows == 0

    shutil.copy(capture, tmp_path / "damaged.pcap")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wiredump.spark.job.divide", _fails)
        failed = run(spark, capture, *by, "--run", "first", "--mode", "overwrite")
    assert "the disk is full" in str(failed.exception)
    assert rows(out, "requests") == sorted(2 * expected["requests"])
    whole = ["--out", str(out), "--mode", "overwrite", "--run", "third"]
    assert run(spark, capture, *whole).exception is None
    assert load(out, TABLES_HERE) == expected
    assert {place.name for place in out.glob("*/run=*")} == {"run=third"}
    assert (out / "_SUCCESS").exists()
    (out / "theirs").touch()
    assert "theirs, which is not a table" in str(run(spark, capture, *whole).exception)


def _fails(*arguments: Any) -> None:
    raise KprotoError("the disk is full")


def killed(*arguments: Any) -> Callable[[Any], Iterator[Any]]:
    """A task that is killed by the system. (Spark sends a nested function with the job.)"""

    def task(batches: Any) -> Iterator[Any]:
        yield from list(batches)[:0]
        os.kill(os.getpid(), signal.SIGKILL)

    return task


def full(*arguments: Any) -> Callable[[Any], Iterator[Any]]:
    """A task that fails by itself."""

    def task(batches: Any) -> Iterator[Any]:
        yield from list(batches)[:0]
        raise OSError(28, "No space left on device", "part.parquet")

    return task


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize(
    ("task", "why"),
    [
        (killed, "the Python process of a task was killed, perhaps for lack of memory: use more"),
        (full, r"OSError: \[Errno 28\] No space left on device: 'part\.parquet' \(KPROTO_DEBUG"),
    ],
)
def test_a_task_that_fails_leaves_nothing(
    spark: Any, tmp_path: Path, capture: str, monkeypatch: pytest.MonkeyPatch, task: Any, why: str
) -> None:
    monkeypatch.setattr("wiredump.spark.job._connections_task", task)
    failed = run(spark, capture, "--out", str(tmp_path / "out"))
    assert isinstance(failed.exception, KprotoError)
    assert re.match(f"the Spark job failed: {why}", str(failed.exception))
    assert not (tmp_path / "out").exists()


def rows(folder: Path, table: str) -> list[str]:
    """With the columns that are names of folders; sorted."""
    names = [each.name for each in TABLES[table].columns]
    found = ds.dataset(folder / table, partitioning="hive").to_table(names).to_pylist()
    return sorted(map(repr, found))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["a.pcap", "--partition-by", "date,apis"], "no table has a column 'apis'"),
        (["--follow", "in", "--checkpoint", "c", "--mode", "overwrite"], "cannot overwrite"),
        (["--follow", "in", "--checkpoint", "c", "--partition-by", "no"], "no table has a column"),
        (["--follow", "in", "--checkpoint", "c", "--format", "iceberg"], "iceberg needs --staging"),
        (["a.pcap", "--format", "iceberg"], "iceberg needs --staging"),
        (["--follow", "in", "--checkpoint", "c"], "/in does not exist: check --follow"),
        (["--follow", "in/*.pcap", "--checkpoint", "c"], "/in does not exist: check --follow"),
        (["--follow", "in", "--checkpoint", "c", "--trigger", "5"], "has no unit: use 5ms"),
    ],
)
def test_options_that_are_refused(
    arguments: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Spark starts."""
    require_module("pyspark")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wiredump.spark.session.start", pytest.fail)
    made = CliRunner().invoke(cli, ["spark", *arguments, "--out", "out"], standalone_mode=False)
    assert problem in str(getattr(made.exception, "message", made.exception))
