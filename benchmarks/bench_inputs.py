"""What the form of captures costs on Spark: one file, many small ones, compressed ones, and remote
ones, all with the same packets, in one warm session and interleaved rounds.

Reproduce and compare::

    .venv/bin/python -m benchmarks.bench_inputs                       # 1 GB, 2,001 files
    .venv/bin/python -m benchmarks.bench_inputs --megabytes 100 --files 200 --rounds 3
    .venv/bin/python -m benchmarks.bench_inputs --forms plain,gzip --tables frames,tables

Processor time is that of all processes: Java, and Python's driver and workers, user and system. On
a machine that does other work it is the figure to compare; wall time is shown beside it. Each form
has to give as many rows as the plain file. The remote store is a server on this machine, whose
processor time does not count.

The last column is what a TB (10^12 bytes of packets) of this traffic takes in hours of one core.
Captures are written by ``dump/synthetic.py`` ("small": frames of 290 bytes on average; "big":
Produce requests of 14 kB).
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import zstandard

from benchmarks.dump import synthetic
from benchmarks.dump.programs import cpu_seconds
from benchmarks.dump.spark_part import split_capture
from wiredump.cli.chosen import chosen_tables
from wiredump.rows.schema import UNDECODED
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.spark.session import start

PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda data: gzip.compress(data, 6),
    "zstd": lambda data: zstandard.compress(data, 3),
}
FORMS: Final = ("plain", "files", *PACKERS)
SPLIT_BYTES: Final = 256 << 20


def inputs(folder: Path, forms: list[str], shape: str, size: int, files: int) -> dict[str, Any]:
    """Write the captures; return the paths of each form."""
    plain = folder / "plain.pcap"
    {"small": synthetic.write_small, "big": synthetic.write_big}[shape](plain, size)
    data = plain.read_bytes()
    found: dict[str, list[str]] = {}
    for form in forms:
        if form == "plain":
            found[form] = [str(plain)]
        elif form == "files":
            split_capture(plain, folder / "files", files)
            found[form] = sorted(map(str, (folder / "files").iterdir()))[:-1]
        else:
            packed = folder / f"plain.pcap.{form}"
            packed.write_bytes(PACKERS[form](data))
            found[form] = [str(packed)]
    return found


def job(spark: Any, paths: list[str], tables: str, out: Path) -> tuple[float, float, int]:
    """Run it; return seconds of wall and processor time, and the number of frames."""
    options = Options(
        out=str(out), paths=dict(enumerate(paths)),
        tables=chosen_tables(None if tables == "tables" else tables, bodies=True),
        bodies=tables not in UNDECODED, max_decompressed=1 << 40,
    )  # fmt: skip
    cpu, wall = cpu_seconds(os.getpid()), time.perf_counter()
    made = Job(options=options, split_bytes=SPLIT_BYTES, rotated=len(paths) > 1).run(spark)
    taken = time.perf_counter() - wall, cpu_seconds(os.getpid()) - cpu
    shutil.rmtree(out)
    return *taken, made.rows["frames"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--files", type=int, default=2001)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", choices=("small", "big"), default="small")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--tables", default="frames,tables", help="frames, records, tables (all)")
    parser.add_argument("--scratch", type=Path, help="folder for the captures and the tables")
    given = parser.parse_args()
    forms, wanted = given.forms.split(","), given.tables.split(",")
    with tempfile.TemporaryDirectory(prefix="bench-inputs-", dir=given.scratch) as name:
        folder = Path(name)
        size = given.megabytes * 1_000_000
        captures = inputs(folder, forms, given.shape, size, given.files)
        size = (folder / "plain.pcap").stat().st_size
        spark = start("local[2]", settings={"spark.driver.memory": "1g"})
        taken: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
        for number in range(-1, given.rounds):  # the first is not counted: Java compiles in it
            for tables in wanted:
                for form in forms:
                    seen = job(spark, captures[form], tables, folder / "out")
                    print(
                        f"round {number}: {tables}, {form}: {seen[0]:.2f} s, {seen[1]:.2f} s "
                        f"of processors, {seen[2]} frames", file=sys.stderr,
                    )  # fmt: skip
                    if number >= 0:
                        taken.setdefault((tables, form), []).append(seen)
        spark.stop()
    print(
        f"| {size / 1e6:,.0f} MB, {given.shape} frames | Wall | CPU | of plain | Core hours a TB |"
    )
    print("|---|---|---|---|---|")
    for (tables, form), runs in taken.items():
        wall, cpu = (statistics.median(run[at] for run in runs) for at in (0, 1))
        plain = statistics.median(run[1] for run in taken[tables, forms[0]])
        assert {run[2] for run in runs} == {run[2] for run in taken[tables, forms[0]]}, form
        what = f"{form} ({len(captures[form]):,})" if form == "files" else form
        print(
            f"| {tables}, {what} | {wall:.2f} s | {cpu:.2f} s | {cpu / plain:.2f}x "
            f"| {cpu / size * 1e12 / 3600:,.1f} |"
        )


if __name__ == "__main__":
    main()
