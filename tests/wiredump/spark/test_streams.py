"""Rotating captures through Spark itself: the tables, a process that is killed, and Structured
Streaming on the tables."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kproto.errors import KprotoError
from tests.captures import damage
from tests.support import seeds
from tests.support.full import FULL, either
from tests.support.object_store import Bucket
from tests.support.toolchain import require_module
from tests.wiredump.spark import made_up
from tests.wiredump.spark.killed_driver import some_kills
from tests.wiredump.spark.rotating import (
    EVERY,
    FEW,
    copied,
    difference,
    follow,
    one_process,
    records,
    rotate,
)
from wiredump.cli import cli
from wiredump.rows.schema import ON_REQUEST, TABLES
from wiredump.spark import BatchListener, end, stream
from wiredump.spark.connections import Options
from wiredump.spark.rotation import RotationError
from wiredump.spark.stream_folder import StreamFolder
from wiredump.spark.streaming import cause_of
from wiredump.storage import Location

pytestmark = [pytest.mark.slow, pytest.mark.java]

PLAIN = tuple(name for name in EVERY if name not in ON_REQUEST)


def test_rotations_and_batches(spark, tmp_path: Path) -> None:
    """Fragments and losses; files that turn up between queries; the session goes on, and what a
    query says of each batch. (``test_follow`` does the same a thousand times without Java.)"""
    capture = made_up.capture(7, connections=6, exchanges=6, kind="pcap")
    files = rotate(capture, [20, 60, 90, 130], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    told: list[dict[str, Any]] = []
    heard: list[dict[str, Any]] = []
    observed: list[dict[str, Any]] = []
    listener = BatchListener(heard.append)
    spark.streams.addListener(listener)
    about = {"out": str(tmp_path / "out"), "checkpoint": str(tmp_path / "checkpoint")}
    about |= {"tables": EVERY, "available_now": True, "progress": told.append}
    for some, closed in ((files[:2], False), (files[2:], True)):
        for path in some:
            shutil.copy(path, place)
        query = stream(spark, str(place), max_files=1, closed=closed, **about)
        assert query.awaitTermination(240)
        assert query.exception() is None
        observed += [each.observedMetrics["wiredump"].asDict() for each in query.recentProgress]
    made = end(spark, str(tmp_path / "checkpoint"))
    there = [place / path.name for path in files]
    assert difference(one_process(there, tmp_path / "one"), tmp_path / "out") == {}
    assert made.account["payload"] == sum(
        made.account.get(name, 0) for name in ("frames", "retransmitted", "copies", "anomalies")
    )
    for thread in threading.enumerate():
        if thread.name == "wiredump-progress":
            thread.join(60)
    assert [each["batch"] for each in told] == list(range(len(files)))
    assert [each["bytes"] for each in told] == [path.stat().st_size for path in files]
    assert [each["lag"]["files"] for each in told] == [0, 3, 2, 1, 0]
    until = time.monotonic() + 60
    while len(heard) < len(told) and time.monotonic() < until:
        time.sleep(0.05)
    spark.streams.removeListener(listener)
    assert heard == told
    for name in ("files", "bytes"):
        assert [each[name] for each in observed if each["files"]] == [each[name] for each in told]
    assert sum(each["rows"].get("frames", 0) for each in told) <= made.rows["frames"]
    assert spark.range(3).count() == 3


def test_a_query_that_fails_says_why(spark, tmp_path: Path) -> None:
    """A late file, by the error of this package."""
    from pyspark.errors import StreamingQueryException

    files = rotate(made_up.capture(3, kind="pcap", back=0.0), [20, 40, 60], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    about = {"out": str(tmp_path / "out"), "checkpoint": str(tmp_path / "checkpoint")}
    for path in files[2:]:
        shutil.copy(path, place)
    assert stream(spark, str(place), available_now=True, **about).awaitTermination(240)
    shutil.copy(files[0], place)
    query = stream(spark, str(place), available_now=True, **about)
    with pytest.raises(StreamingQueryException) as failed:
        query.awaitTermination(240)
    cause = cause_of(failed.value)
    assert isinstance(cause, RotationError)
    assert "r.pcap begins before" in str(cause)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("where", ["s3", "path"])
def test_kill_9_at_each_stage(spark, tmp_path: Path, bucket: Bucket, where: str) -> None:
    """The command, whose drivers die one after the other, at any stage of a batch and of the end.
    What they leave is a stream that goes on: in this process, because the last run is like any
    other, and starting Java takes seconds. Its files are those of a run that nobody kills, to the
    byte. Tables and state are in an object store, or in folders with names beyond ASCII and with
    blanks."""
    place, names = tmp_path / "Ströme 流", PLAIN if FULL else FEW
    kills = some_kills(seeds.generator("kills"), either(20, 1), 2)
    capture = made_up.capture(23, connections=6, exchanges=2 * len(kills) + 8, kind="pcap")
    cuts = range(5, len(records(capture)[1]), len(records(capture)[1]) // (3 * len(kills) + 1))
    files = rotate(capture, cuts, place / "in")
    out, state = str(place / "out"), str(place / "checkpoint" / "wiredump")
    if where == "s3":
        out, state = bucket.uri("out"), bucket.uri("state")
    begin = [
        "spark", "--follow", str(place / "in"), "--json", "--partition-by", "date,api",
        "--master", "local[2]", "--max-files", "1", "--end", "--tables", ",".join(names),
        "--run", "mine",
    ]  # fmt: skip
    arguments = [
        *begin, "--out", out, "--checkpoint", str(place / "checkpoint"), "--state", state,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    store = StreamFolder(state)
    for number, kill in enumerate(kills):
        batches = store.batches
        program = [sys.executable, "-m", "tests.wiredump.spark.killed_driver"]
        killed = subprocess.run(
            [*program, *kill, *arguments],
            env=environment, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert killed.returncode == -signal.SIGKILL, (kill, killed.stderr[-3000:])
        print(f"kill {number + 1}: {kill.stage}, call {kill.call}: ", end="")
        print(f"{store.batches - batches} batches, made: {store.made is not None}", flush=True)
        is_whole = (Location(out) / "_SUCCESS").exists()
        assert is_whole == (kill.stage in ("before end", "end"))
    other = [*begin, "--out", str(tmp_path / "whole"), "--checkpoint", str(tmp_path / "other")]
    with damage.spark_kept(spark):
        done = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert done.exception is None, done.output
        whole = CliRunner().invoke(cli, other, standalone_mode=False)
    assert whole.exception is None, whole.output
    expected = one_process(files, tmp_path / "one", names)
    found = copied(Location(out), tmp_path / "out")
    assert difference(expected, found) == {}
    assert files_in(found) == files_in(tmp_path / "whole")
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == {name: len(rows) for name, rows in expected.items()}
    assert told["out"] == Location(out).shown


def files_in(folder: Path) -> dict[str, bytes]:
    """The contents of files by their paths in a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


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
            repr({name: row[name] for name in names})
            for path in batches
            for row in pq.ParquetFile(path).read().to_pylist()
        )

    options = Options(out=str(tmp_path / "out"), paths={}, tables=EVERY, run="mine")
    for count in (3, 4):
        for path in files[:count]:
            shutil.copy(path, place)
        following = follow(place, tmp_path, options=options, closed=count == 4)
        assert following.start(spark, {"availableNow": True}).awaitTermination(240)
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
        ("groups", "a stream of batches lacks the table groups"),
        ("records", "is not a checkpoint"),
        (None, "set the option table"),
    ],
)
def test_streams_that_are_refused(tmp_path: Path, table: str | None, problem: str) -> None:
    require_module("pyspark")
    from wiredump.spark import KafkaCapture

    options = {"path": str(tmp_path)} | ({"table": table} if table else {})
    with pytest.raises(KprotoError, match=problem):
        KafkaCapture(options).streamReader(None).partitions({"batches": 0}, {"batches": 0})
