"""Rotating captures through Spark itself: the tables, a process that is killed, and Structured
Streaming on the tables."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kproto.errors import KprotoError
from tests.captures import damage
from tests.support.object_store import Bucket
from tests.support.toolchain import require_module
from tests.wiredump.spark import made_up
from tests.wiredump.spark.rotating import (
    EVERY,
    copied,
    difference,
    follow,
    never,
    one_process,
    records,
    rotate,
    some_cuts,
)
from wiredump.cli import cli
from wiredump.rows.schema import ON_REQUEST, TABLES
from wiredump.spark.checkpoint import Checkpoint
from wiredump.spark.connections import Options
from wiredump.storage import Location

pytestmark = [pytest.mark.slow, pytest.mark.java]


def test_rotations_and_batches(spark, tmp_path: Path) -> None:
    """With fragments and losses; files that turn up between runs; a name said in one file for rows
    of another. (``test_follow`` does the same a thousand times without Java.)"""
    capture = made_up.capture(7, connections=6, exchanges=6, kind="pcap")
    rng = random.Random(1)
    files = rotate(capture, some_cuts(rng, len(records(capture)[1])), tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    for some in (files[:2], files[2:]):
        for path in some:
            shutil.copy(path, place)
        made = follow(place, tmp_path, batch_bytes=15_000).run(
            spark, available_now=some is not files[:2], wait=never
        )
    there = [place / path.name for path in files]
    assert difference(one_process(there, tmp_path / "one"), tmp_path / "out") == {}
    assert made.account["payload"] == sum(
        made.account[name] for name in ("frames", "retransmitted", "anomalies")
    )


def test_kill_9(spark, tmp_path: Path, bucket: Bucket) -> None:
    """The command, with tables and checkpoint in an object store, killed in the midst of a batch,
    and run again (in this process, because the second run is like any other: starting Java takes
    seconds)."""
    capture = made_up.capture(21, connections=8, exchanges=12, kind="pcap")
    files = rotate(capture, [60, 90, 120], tmp_path / "in")
    root = str(Path(__file__).parents[3])
    arguments = [
        "spark", "--follow", str(tmp_path / "in"), "--json",
        "--out", bucket.uri("out"), "--checkpoint", bucket.uri("checkpoint"),
        "--master", "local[2]", "--batch-bytes", "1", "--available-now",
    ]  # fmt: skip
    command = [sys.executable, "-m", "wiredump", *arguments]
    store = Checkpoint(bucket.uri("checkpoint"))
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.PIPE
    ) as running:
        until = time.monotonic() + 240
        while not store.committed(0):  # behind the first commit, before the last
            assert running.poll() is None, running.stderr and running.stderr.read()
            assert time.monotonic() < until, "no batch was committed"
            time.sleep(0.02)
        running.kill()
    assert "out/_SUCCESS" not in bucket.keys()  # noqa: SIM118 (not a dict)
    with damage.spark_kept(spark):
        done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert done.exception is None, done.output
    every = one_process(files, tmp_path / "one")
    expected = {name: rows for name, rows in every.items() if name not in ON_REQUEST}
    out = copied(Location(bucket.uri("out")), tmp_path / "out")
    assert difference(expected, out) == {}
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == {name: len(rows) for name, rows in expected.items()}
    assert told["out"] == f"s3://{bucket.name}/out"


def test_structured_streaming_reads_committed_batches(spark, tmp_path: Path) -> None:
    """Each row once, by queries that are stopped while the stream goes on; none of a batch without
    a commit."""
    from wiredump.spark import KafkaCapture

    capture = made_up.capture(3, connections=4, exchanges=6, share=0.0, kind="pcap")
    files = rotate(capture, [20, 40, 60], tmp_path / "all")
    place, out = tmp_path / "in", tmp_path / "out" / "requests"
    place.mkdir()
    spark.dataSource.register(KafkaCapture)
    names = [each.name for each in TABLES["requests"].columns]

    def query() -> list[str]:
        requests = spark.readStream.format("kafka_capture").option("table", "requests")
        running = (
            requests.load(str(tmp_path / "checkpoint"))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "progress"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        assert running.awaitTermination(120)
        found = spark.read.parquet(str(tmp_path / "rows")).collect()
        assert all(row["requested_at"] is not None and row["run"] == "mine" for row in found)
        return sorted(repr({name: row[name] for name in names}) for row in found)

    def committed() -> list[str]:
        batches = sorted(out.glob("run=mine/batch-*.parquet"))
        return sorted(
            repr(row) for path in batches for row in pq.ParquetFile(path).read().to_pylist()
        )

    options = Options(out=str(tmp_path / "out"), paths={}, tables=EVERY, run="mine")
    for count in (3, 4):
        for path in files[:count]:
            shutil.copy(path, place)
        stream = follow(place, tmp_path, options=options)
        stream.run(spark, available_now=count == 4, wait=never)
        rows = committed()
        uncommitted = out / "run=mine" / "batch-000009-00000.parquet"
        shutil.copy(next(out.glob("run=mine/batch-*.parquet")), uncommitted)
        assert query() == rows
        uncommitted.unlink()
    expected = one_process(files, tmp_path / "one")["requests"]
    assert len(rows) > len(expected) / 2
    assert set(rows) <= set(expected)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("groups", "only the end of a stream has the table groups"),
        ("records", "is not a checkpoint"),
        (None, "set the option table"),
    ],
)
def test_streams_that_are_refused(tmp_path: Path, table: str | None, problem: str) -> None:
    require_module("pyspark")
    from wiredump.spark import KafkaCapture

    options = {"path": str(tmp_path)} | ({"table": table} if table else {})
    with pytest.raises(KprotoError, match=problem):
        KafkaCapture(options).streamReader(None).partitions({"batch": 0}, {"batch": 0})
