"""Compare Spark with tshark, with itself on two processors, and with copying Parquet.

Sessions are started once, which is shown separately, and so is the first job of a session, in which
Java compiles. A session on one processor has only that for its tasks, Java's compiler and its
garbage collector.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.dump.captures import Capture
from benchmarks.dump.cases import FRAME_FIELDS, ROOT, tshark_fields
from benchmarks.dump.programs import pinned, run
from benchmarks.dump.scan import record_bounds
from benchmarks.dump.spark_session import Done, Session
from benchmarks.dump_marks import Runs, at_least, at_most, ratio, scaled
from benchmarks.report import Mark

__all__ = ["SparkFigures", "measure_spark", "spark_marks", "spark_tables", "split_capture"]

TSHARK = "tshark -T fields"
ONE, TWO = "Spark frames, local[1]", "Spark frames, local[2]"
RECORDS, ALL = "Spark records, local[1]", "Spark, all tables, local[1]"
COPY, COPY_PACKETS = "Parquet of frames, copied", "Parquet of packets, copied"
STREAM = "Spark stream of frames, local[2]"
COMMAND = "the stream as a command, with its start of Spark"
FILES = 5
"""Rotated files of a stream's capture, each a batch of its own."""


@dataclass
class SparkFigures:
    """``pairs``: wall time of jobs on one and on two processors, in the rounds' order."""

    big: Capture
    scale: Capture
    runs: dict[str, Runs] = field(default_factory=dict)
    scaling: dict[str, Runs] = field(default_factory=dict)
    once: dict[str, Done] = field(default_factory=dict)


def measure_spark(
    big: Capture, scale: Capture, rounds: int, scratch: Path, say: Callable[[str], None]
) -> SparkFigures:
    found = SparkFigures(big, scale)
    with (
        _inputs(big, scratch) as (frames, packets, rotated),
        Session(pinned(1), scratch) as one,
        Session(pinned(2), scratch) as two,
    ):
        found.once["session, local[1]"] = one.started
        found.once["session, local[2]"] = two.started
        jobs: dict[str, Callable[[], Done]] = {
            ONE: lambda: one.run("frames", big.path),
            COPY: lambda: one.run("copy", frames),
            COPY_PACKETS: lambda: one.run("copy", packets),
            RECORDS: lambda: one.run("records", big.path),
            ALL: lambda: one.run("tables", big.path),
            STREAM: lambda: two.run("stream", rotated),
        }
        for name, job in jobs.items():
            say(f"first: {name}")
            found.once[f"first job: {name}"] = job()
        say(f"once: {COMMAND}")
        found.once[COMMAND] = _stream(rotated, scratch)
        tshark = tshark_fields(big, FRAME_FIELDS)
        found.runs = {name: Runs() for name in (TSHARK, *jobs)}
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}: {TSHARK}")
            seen = tshark(pinned(1))
            found.runs[TSHARK].add(seen.taken.wall, seen.taken.cpu, seen.rows)
            for name, job in jobs.items():
                say(f"round {number + 1} of {rounds}: {name}")
                found.runs[name].add(*job()[:3])
        found.scaling = {ONE: Runs(), TWO: Runs()}
        for name, session in ((ONE, one), (TWO, two)):
            say(f"warming up: {name}")
            session.run("frames", scale.path)
        for number in range(rounds):
            for name, session in ((ONE, one), (TWO, two)):
                say(f"scaling, pair {number + 1} of {rounds}: {name}")
                found.scaling[name].add(*session.run("frames", scale.path)[:3])
    return found


@contextmanager
def _inputs(big: Capture, scratch: Path) -> Iterator[tuple[Path, Path, Path]]:
    """The frames' own table, the packets with their bytes as Parquet, and the capture in files."""
    with tempfile.TemporaryDirectory(prefix="bench-spark-", dir=scratch) as name:
        folder = Path(name)
        command = [sys.executable, "-m", "wiredump", "table", str(big.path), "--json"]
        run(
            [*command, "--out", str(folder / "tables"), "--tables", "frames", "--no-bodies"],
            pinned(1), environment={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        packets = folder / "packets"
        packets.mkdir()
        data = big.path.read_bytes()
        bounds = record_bounds(data)
        rows = pa.table(
            {
                "packet": pa.array([start for start, _ in bounds], pa.int64()),
                "data": pa.array([data[start:end] for start, end in bounds], pa.binary()),
            }
        )
        pq.write_table(rows, packets / "part-0.parquet", row_group_size=16384)
        rotated = folder / "rotated"
        split_capture(big.path, rotated, FILES)
        yield folder / "tables" / "frames", packets, rotated


def split_capture(capture: Path, folder: Path, files: int) -> None:
    """As tcpdump rotates: ``files`` files of about as many bytes, and one that has just begun,
    which says of the others that they are complete."""
    folder.mkdir()
    data = capture.read_bytes()
    head, share = data[:24], -(-len(data) // files)
    begun, number = 24, 0
    for start, end in record_bounds(data):
        if end - begun >= share or end == len(data):
            (folder / f"rotated-{number:04}.pcap").write_bytes(head + data[begun:end])
            begun, number = end, number + 1
        assert start >= 24
    (folder / f"rotated-{number:04}.pcap").write_bytes(head)


def _stream(rotated: Path, scratch: Path) -> Done:
    """The whole command, in a session that is started for it and where Java compiles everything."""
    folder = Path(tempfile.mkdtemp(prefix="bench-stream-", dir=scratch))
    out = folder / "tables"
    try:
        taken = run(
            [
                sys.executable, "-m", "wiredump", "spark", "--follow", str(rotated), "--out",
                str(out), "--checkpoint", str(folder / "checkpoint"), "--end",
                "--master", "local[2]", "--tables", "frames", "--no-bodies",
            ],
            pinned(2), watched=True, environment={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        rows = ds.dataset(out / "frames", format="parquet").count_rows()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Done(taken.wall, taken.cpu, {"frames": rows}, {}, taken.peak)


def spark_marks(found: SparkFigures) -> list[Mark]:
    runs = {found.big.name: found.runs}
    one, two = found.scaling[ONE], found.scaling[TWO]
    return [
        at_least("Spark frames to Parquet against tshark, per core", runs, TSHARK, ONE, 8),
        at_most("Spark frames against the same rows copied as Parquet", runs, COPY, ONE, 2),
        scaled("Spark frames, local[1] to local[2], wall time", one.wall, two.wall, 1.65),
        at_least(
            "Spark stream against tshark, two cores, wall time", runs, TSHARK, STREAM, 4,
            clock="wall",
        ),
    ]  # fmt: skip


def spark_tables(found: SparkFigures) -> list[list[list[str]]]:
    size = found.big.megabytes
    rows = [[f"Spark, {found.big.name}, {size:.0f} MB", "CPU s", "wall s", "MB per CPU s",
             "x tshark, CPU", "x tshark, wall"]]  # fmt: skip
    for name, runs in found.runs.items():
        cells = [f"{runs.median_cpu:.2f}", f"{runs.median_wall:.2f}"]
        cells.append(f"{size / runs.median_cpu:.1f}" if runs.median_cpu else "")
        for clock in ("cpu", "wall"):
            times = ratio(found.runs[TSHARK], runs, clock)
            cells.append("" if times is None or name == TSHARK else f"{times:.2f}")
        rows.append([name, *cells])
    size = found.scale.megabytes
    pairs = [[f"Spark, {found.scale.name}, {size:.0f} MB", "CPU s", "wall s", "MB per CPU s"]]
    for name, runs in found.scaling.items():
        rate = f"{size / runs.median_cpu:.1f}" if runs.median_cpu else ""
        pairs.append([name, f"{runs.median_cpu:.2f}", f"{runs.median_wall:.2f}", rate])
    once = [["start-up", "CPU s", "wall s"]]
    once += [[name, f"{done.cpu:.2f}", f"{done.wall:.2f}"] for name, done in found.once.items()]
    return [rows, pairs, once]
