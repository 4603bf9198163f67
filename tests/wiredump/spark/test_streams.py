"""Rotating captures through Spark itself: the tables, a process that is killed, and a stream for
a job of one's own."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.toolchain import require, require_module
from tests.wiredump.spark import made_up
from tests.wiredump.spark.rotating import (
    difference,
    follow,
    never,
    one_process,
    records,
    rotate,
    some_cuts,
)
from wiredump.rows.schema import ON_REQUEST

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


def test_kill_9(tmp_path: Path) -> None:
    """The command, killed in the midst of a batch, and run again."""
    require("java")
    require_module("pyspark")
    capture = made_up.capture(21, connections=8, exchanges=12, kind="pcap")
    files = rotate(capture, [60, 90, 120], tmp_path / "in")
    root = str(Path(__file__).parents[3])
    command = [
        sys.executable, "-m", "wiredump", "spark", "--follow", str(tmp_path / "in"), "--json",
        "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint"),
        "--master", "local[2]", "--batch-bytes", "1", "--available-now",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": root}
    # Behind the first commit, before the last.
    first = tmp_path / "checkpoint" / "commits" / "000001.json"
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 240
        while not first.exists():
            assert running.poll() is None, running.stderr and running.stderr.read()
            assert time.monotonic() < until, "no batch was committed"
            time.sleep(0.02)
        running.kill()
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    every = one_process(files, tmp_path / "one")
    expected = {name: rows for name, rows in every.items() if name not in ON_REQUEST}
    assert difference(expected, tmp_path / "out") == {}
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == {name: len(rows) for name, rows in expected.items()}


def test_a_stream_of_ones_own(spark, tmp_path: Path) -> None:
    """Packets as rows, restarted in between: each once, of closed files only until told."""
    from wiredump.spark import KafkaCapture

    capture = made_up.capture(3, connections=4, exchanges=6, share=0.0, kind="pcap")
    files = rotate(capture, [20, 40, 60], tmp_path / "all")
    place = tmp_path / "in"
    place.mkdir()
    spark.dataSource.register(KafkaCapture)

    def run(**options: str) -> set[tuple[int, int]]:
        packets = spark.readStream.format("kafka_capture").options(**options).load(str(place))
        query = (
            packets.filter("kind = 0")
            .select("capture", "packet")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "progress"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        assert query.awaitTermination(120)
        rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
        assert len(rows) == len(set(rows)), "a row twice"
        return set(rows)

    for path in files[:3]:
        shutil.copy(path, place)
    assert {capture for capture, _ in run(maxFilesPerTrigger="1")} == {0, 1}
    shutil.copy(files[3], place)
    found = run(lastFile="true")
    expected, at = set(), 0
    for number, path in enumerate(files):
        at = 24
        for record in records(path.read_bytes())[1]:
            expected.add((number, at))
            at += len(record)
    assert found == expected
