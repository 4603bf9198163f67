"""A stream for many batches, with restarts: seconds a batch and the memory of Python and Java, as a
table and a plot.

Reproduce and compare::

    .venv/bin/python -m benchmarks.soak_stream --batches 2000 --restart 100 --plot soak.svg
    .venv/bin/python -m benchmarks.soak_stream --batches 60 --restart 20 --minutes 8
    .venv/bin/python -m benchmarks.soak_stream --batches 40 --restart 20 --aged 100000

A capture of 8 connections that stay open is cut into a file a batch. The files of a session are
there when it begins; ``wiredump spark --follow --available-now`` takes them one by one, and ends.
Resident memory is looked up at each line of progress: of the driver's Python, of all Python
processes and of Java. The first batches of a session compile and import. With ``--aged``, the
sessions after the first continue a checkpoint that is as large as after so many batches. Linux
only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.dump import synthetic
from benchmarks.dump.aged_stream import age
from benchmarks.dump.programs import resident, resident_bytes
from benchmarks.dump.spark_part import split_capture
from wiredump.spark.capture_files import FileReader

PAUSE = 0.05
"""Seconds between two looks at the progress."""
WARM = 3
"""Batches of a session that are not counted."""
STARTING = 900
"""Seconds that a session has for its first batch, even if the time is up: a busy machine needs
minutes to start Java."""


class Seen(NamedTuple):
    """A batch: its session, seconds, bytes of state, and bytes resident in the driver, in all
    Python processes and in Java."""

    batch: int
    session: int
    seconds: float
    state: int
    driver: int
    python: int
    java: int


def session(number: int, folder: Path, given: argparse.Namespace, until: float) -> list[Seen]:
    """Follow the files that are there; returns the batches that ended in time."""
    lines = folder / f"progress-{number}.jsonl"
    command = [
        sys.executable, "-m", "wiredump", "spark", "--follow", str(folder / "in"),
        "--out", str(folder / "out"), "--checkpoint", str(folder / "checkpoint"),
        "--max-files", "1", "--available-now", "--progress", str(lines),
        "--master", given.master, "--partition-by", given.partition_by,
    ]  # fmt: skip
    found: list[Seen] = []
    begun = time.monotonic()
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while (status := running.poll()) is None:
                time.sleep(PAUSE)
                _look(number, lines, running.pid, found)
                if time.monotonic() > (until if found else max(until, begun + STARTING)):
                    break
        finally:
            running.terminate()
            running.wait()
    _look(number, lines, running.pid, found)
    told = (folder / "log").read_text()[-2000:]
    if status or not found:
        raise SystemExit(f"session {number} ended with {status} and {len(found)} batches:\n{told}")
    took = time.monotonic() - begun
    print(f"session {number}: {len(found)} batches in {took:.0f} s", file=sys.stderr, flush=True)
    return found


def _look(number: int, lines: Path, pid: int, found: list[Seen]) -> None:
    """Add the batches of new lines."""
    if not lines.exists():
        return
    new = lines.read_text().splitlines()[len(found) :]
    if not new:
        return
    driver, memory = resident_bytes(pid), resident(pid)
    java, python = memory.pop("java", 0), sum(memory.values())
    if not memory and found:  # it has ended
        _, _, _, _, driver, python, java = found[-1]
    for line in new:
        about = json.loads(line)
        state = about["state"]["bytes"]
        seconds = about["seconds"]
        found.append(Seen(about["batch"], number, seconds, state, driver, python, java))


def first_look(folder: Path) -> float:
    """Return the seconds of CPU that the source takes for its first look at the files."""
    state = str(folder / "checkpoint" / "wiredump")
    begun = time.process_time()
    FileReader({"path": str(folder / "in"), "folder": state}).prepareForTriggerAvailableNow()
    return time.process_time() - begun


def show(seen: list[Seen]) -> None:
    """Print a row for each session."""
    print("| Session | Batches | Seconds a batch | slowest | State | Driver | Python | Java |")
    print("|---|---|---|---|---|---|---|---|")
    for number in sorted({each.session for each in seen}):
        own = [each for each in seen if each.session == number]
        warm = [each.seconds for each in own[WARM:]] or [each.seconds for each in own]
        last = own[-1]
        print(
            f"| {number} | {own[0].batch} to {last.batch} | {statistics.median(warm):.2f} "
            f"| {max(warm):.2f} | {last.state / 1e6:.2f} MB "
            f"| {max(each.driver for each in own) / 1e6:.0f} MB "
            f"| {max(each.python for each in own) / 1e6:.0f} MB "
            f"| {max(each.java for each in own) / 1e6:.0f} MB |"
        )


def plot(seen: list[Seen], path: Path) -> None:
    """Draw both by batch, with a line at each restart."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    batches = [each.batch for each in seen]
    above.plot(batches, [each.seconds for each in seen], ".", markersize=3)
    above.set_ylabel("seconds a batch")
    above.set_yscale("log")
    for name in ("driver", "python", "java"):
        below.plot(batches, [getattr(each, name) / 1e6 for each in seen], label=name.title())
    below.set_ylabel("MB resident")
    below.set_ylim(bottom=0)
    below.set_xlabel("batch")
    below.legend()
    for before, after in pairwise(seen):
        if before.session != after.session:
            for axes in (above, below):
                axes.axvline(after.batch, linewidth=0.5, color="grey")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--restart", type=int, default=100, help="batches of a session")
    parser.add_argument("--kilobytes", type=int, default=100, help="size of the file of a batch")
    parser.add_argument("--minutes", type=float, default=600, help="stop after so long")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partition-by", default="date,hour")
    parser.add_argument("--aged", type=int, default=0, help="batches, a multiple of 10,000")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--scratch", type=Path, help="folder for the captures and the tables")
    given = parser.parse_args()
    until = time.monotonic() + given.minutes * 60
    seen: list[Seen] = []
    with tempfile.TemporaryDirectory(prefix="soak-", dir=given.scratch) as name:
        folder = Path(name)
        synthetic.write_small(folder / "a.pcap", given.batches * given.kilobytes * 1000)
        split_capture(folder / "a.pcap", folder / "all", given.batches)
        files = sorted((folder / "all").iterdir())
        (folder / "in").mkdir()
        for number, first in enumerate(range(0, given.batches, given.restart)):
            if time.monotonic() > until:
                break
            for path in files[first : first + given.restart + (first == 0)]:
                shutil.copy(path, folder / "in")
            if number == 1 and given.aged:
                checkpoint = folder / "checkpoint"
                age(checkpoint, checkpoint / "wiredump", given.aged)
                print(f"looking for files: {first_look(folder):.2f} s of CPU", file=sys.stderr)
            seen += session(number, folder, given, until)
    show(seen)
    if given.plot is not None:
        plot(seen, given.plot)


if __name__ == "__main__":
    main()
