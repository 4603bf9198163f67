"""Measure the memory for a capture that grows from 150 MB to gigabytes, with one connection.

For a single process, the kernel has the peak of resident memory. For Spark's processes, resident
memory is sampled every 50 ms, separately for Java and Python: Java uses as much of its heap of 1
GiB as it can, whether it needs it or not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.dump.captures import Capture
from benchmarks.dump.cases import FRAME_FIELDS, table, tshark_fields
from benchmarks.dump.programs import pinned
from benchmarks.dump.spark_session import Session
from benchmarks.dump_marks import flat
from benchmarks.report import Mark

__all__ = ["Peaks", "measure_memory", "memory_marks", "memory_table"]

TSHARK = "tshark -T fields"
FRAMES, RECORDS, ALL = "table, frames", "table, records", "table, all tables"
SPARK_PYTHON, SPARK_JAVA = "Spark frames: Python", "Spark frames: Java"
SPARK = "Spark frames, all processes"

Peaks = dict[str, dict[str, int]]
"""Bytes, by program and then by capture."""


def measure_memory(
    captures: list[Capture], scratch: Path, say: Callable[[str], None], *, spark: bool
) -> Peaks:
    """The first capture alone is given to tshark, which takes more memory than a capture has."""
    peaks: Peaks = {}

    def keep(program: str, capture: Capture, peak: int) -> None:
        peaks.setdefault(program, {})[_called(capture)] = peak

    for capture in captures:
        cases = {
            FRAMES: table(capture, "frames", options=("--no-bodies",), scratch=scratch),
            RECORDS: table(capture, "records", scratch=scratch),
            ALL: table(capture, scratch=scratch),
        }
        if capture is captures[0]:
            cases[TSHARK] = tshark_fields(capture, FRAME_FIELDS)
        for name, case in cases.items():
            say(f"memory, {_called(capture)}: {name}")
            keep(name, capture, case(pinned(1)).taken.peak)
        if spark:
            say(f"memory, {_called(capture)}: {SPARK}")
            with Session(pinned(1), scratch) as session:
                done = session.run("frames", capture.path, watched=True)
            keep(SPARK, capture, done.peak)
            keep(SPARK_JAVA, capture, done.peaks.get("java", 0))
            others = sum(size for name, size in done.peaks.items() if name != "java")
            keep(SPARK_PYTHON, capture, others)
    return peaks


def _called(capture: Capture) -> str:
    return f"{capture.name}, {capture.megabytes:.0f} MB"


def memory_marks(peaks: Peaks, captures: list[Capture]) -> list[Mark]:
    """The last capture against the one before it, which is the same but for its size."""
    base, largest = (_called(capture) for capture in captures[-2:])
    marks = []
    for name in (FRAMES, RECORDS, ALL, SPARK_PYTHON, SPARK_JAVA):
        kept = {each: peak for each, peak in peaks.get(name, {}).items() if each in (base, largest)}
        marks.append(flat(f"peak memory, {name}", kept, base))
    return marks


def memory_table(peaks: Peaks, captures: list[Capture]) -> list[list[str]]:
    names = [_called(capture) for capture in captures]
    rows = [["peak resident memory, MB", *names]]
    for program, found in peaks.items():
        cells = [f"{found[name] / 1e6:.0f}" if name in found else "" for name in names]
        rows.append([program, *cells])
    return rows
