"""wiredump beside tshark on the same captures: one run, interleaved rounds, the same frames.

Reproduce and compare::

    make bench-dump                          # everything; writes docs/explanation/benchmarks.md
    .venv/bin/python -m benchmarks.bench_dump            # the same
    .venv/bin/python -m benchmarks.bench_dump --only frames,records --rounds 3 --dry-run
    .venv/bin/python -m benchmarks.bench_dump --only frames --big 20 --small 2 --rounds 1 --dry-run
    .venv/bin/python -m benchmarks.bench_dump --only spark,memory --dry-run

Parts: ``frames`` (the frame table), ``records`` (all of them, with key, offset, timestamp and hash
of the value), ``tables`` (all tables and ``wiredump show`` beside ``tshark -T json``, and one
connection of gigabytes with one process and with two), ``spark``, ``memory``.

``--start`` is the size of one more capture of small frames: what a whole process costs before it
reads, which importing pyarrow is most of. It is shown and is held to no mark.

Captures are of real traffic (``dump/traffic.py``), made once and kept in ``.cache``; where a
machine does not let us capture, they are written (``dump/synthetic.py``), and the text says so. All
programs run as a user would start them, from process start to the end, each pinned to one
processor unless it says otherwise. Processor time is that of all processes, user and system.
What tshark prints goes to a file, and so does what we write. Each program has to find as many
frames as tshark does.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.dump.captures import Capture, Maker
from benchmarks.dump.cases import (
    FRAME_FIELDS,
    RECORD_FIELDS,
    Case,
    scan,
    show,
    table,
    tshark_fields,
    tshark_json,
)
from benchmarks.dump.memory_part import measure_memory, memory_marks, memory_table
from benchmarks.dump.programs import FailedError, pinned
from benchmarks.dump.spark_part import measure_spark, spark_marks, spark_tables
from benchmarks.dump_marks import Measured, Runs, at_least, ratio
from benchmarks.report import Mark, Section, conclude, machine
from kspec.runner import toolchains

__all__ = ["PARTS", "arguments_of", "main", "programs"]

PARTS = ("frames", "records", "tables", "spark", "memory")
TSHARK, TSHARK_RECORDS, TSHARK_JSON = (
    "tshark -T fields",
    "tshark, records' fields",
    "tshark -T json",
)
FRAMES, RECORDS, ALL = "table, frames", "table, records", "table, all tables"
FRAMES_TWO, RECORDS_TWO = "table, frames, --jobs 2", "table, records, --jobs 2"
ALL_TWO = "table, all tables, --jobs 2"
SCALE_CONNECTIONS = 24
MEMORY_FROM = 150.0
"""The size of the smaller capture in the comparison of memory, in megabytes."""
NEWEST = "-newest"
"""The suffix of captures whose bodies tshark can hardly decode."""
START = "start"
"""A capture so small that it shows our start-up time; it has no mark."""
SHOW, SCAN = "show", "numpy scan"


@dataclass
class Run:
    """The captures and the measurements of a run."""

    captures: list[Capture] = field(default_factory=list)
    measured: Measured = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)


def programs(
    capture: Capture, parts: tuple[str, ...], scratch: Path
) -> dict[str, tuple[Case, int]]:
    """Return the programs for a capture in these parts, each with its number of processors."""

    def ours(tables: str | None, *options: str) -> Case:
        return table(capture, tables, options=options, scratch=scratch)

    found: dict[str, tuple[Case, int]] = {TSHARK: (tshark_fields(capture, FRAME_FIELDS), 1)}
    if "frames" in parts:
        found[FRAMES] = ours("frames", "--no-bodies"), 1
        found[FRAMES_TWO] = ours("frames", "--no-bodies", "--jobs", "2"), 2
    if "records" in parts:
        found[RECORDS] = ours("records"), 1
        found[TSHARK_RECORDS] = tshark_fields(capture, RECORD_FIELDS), 1
        found[RECORDS_TWO] = ours("records", "--jobs", "2"), 2
    if "tables" in parts:
        found |= all_tables(capture, scratch)
        found[SHOW] = show(capture), 1
        found[TSHARK_JSON] = tshark_json(capture), 1
        found[SCAN] = scan(capture), 1
    return found


def all_tables(capture: Capture, scratch: Path) -> dict[str, tuple[Case, int]]:
    """Return the programs that write all tables, with one process and with two."""
    return {
        ALL: (table(capture, scratch=scratch), 1),
        ALL_TWO: (table(capture, options=("--jobs", "2"), scratch=scratch), 2),
    }


def measure(
    captures: list[Capture], parts: tuple[str, ...], rounds: int, scratch: Path
) -> Measured:
    """Run every program once in each round, so that a slow spell of the machine affects all of
    them."""
    measured: Measured = {}
    for capture in captures:
        is_giant = capture.name.startswith("giant")  # for which tshark takes minutes
        cases = all_tables(capture, scratch) if is_giant else programs(capture, parts, scratch)
        runs = measured[capture.name] = {name: Runs() for name in cases}
        for number in range(rounds):
            for name, (case, processors) in cases.items():
                say(f"{capture.name}, round {number + 1} of {rounds}: {name}")
                seen = case(pinned(processors))
                runs[name].add(seen.taken.wall, seen.taken.cpu, seen.rows)
    return measured


def say(text: str) -> None:
    """Report progress: on one line of a terminal, or line by line in a log."""
    begin, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
    print(f"{begin}{text}", end=end, file=sys.stderr, flush=True)


def judge(everything: Measured, parts: tuple[str, ...]) -> list[Mark]:
    marks = []
    measured = {name: runs for name, runs in everything.items() if name != START}
    known = {name: runs for name, runs in measured.items() if not name.endswith(NEWEST)}
    newest = {name: runs for name, runs in measured.items() if name.endswith(NEWEST)}
    if "frames" in parts:
        marks.append(at_least("frame table against tshark, per core", measured, TSHARK, FRAMES, 15))
    if "records" in parts:
        aim = "all records against tshark -T fields of the same records, per core"
        marks.append(at_least(aim, known, TSHARK_RECORDS, RECORDS, 8, rows="records"))
        aim = "all records against tshark's frame table, per core"
        marks.append(at_least(aim, measured, TSHARK, RECORDS, 8, rows=None))
    if "tables" in parts:
        marks += judge_tables(measured, known, newest)
    return marks


def judge_tables(measured: Measured, known: Measured, newest: Measured) -> list[Mark]:
    marks = []
    for versions, captures, least in (
        ("versions that it decodes", known, 3),
        ("newest versions", newest, 1.5),
    ):
        aim = f"all tables against tshark's frame table, {versions}"
        marks.append(at_least(aim, captures, TSHARK, ALL, least))
    for ours, least in ((ALL, 3), (SHOW, 2)):
        aim = f"{ours.removeprefix('table, ')} against tshark -T json, per core"
        marks.append(at_least(aim, measured, TSHARK_JSON, ours, least, rows=None))
    giants = {name: runs for name, runs in measured.items() if name.startswith("giant")}
    others = {name: runs for name, runs in measured.items() if name not in giants}
    for aim, captures, least in (
        ("all tables, two processes against one, wall time", others, 1),
        ("all tables of one connection, two processes against one, wall time", giants, 1.6),
    ):
        marks.append(at_least(aim, captures, ALL, ALL_TWO, least, clock="wall"))
    return marks


def rows_of(captures: list[Capture], measured: Measured) -> list[list[list[str]]]:
    """Return a table for each capture with the figures of each program."""
    return [_rows(capture, measured[capture.name]) for capture in captures]


def _rows(capture: Capture, runs: Mapping[str, Runs]) -> list[list[str]]:
    head = f"{capture.name}, {capture.megabytes:.0f} MB"
    rows = [[head, "CPU s", "wall s", "MB per CPU s", "x tshark, CPU", "x tshark, wall", "rows"]]
    for name, each in runs.items():
        cells = [f"{each.median_cpu:.2f}", f"{each.median_wall:.2f}"]
        cells.append(f"{capture.megabytes / each.median_cpu:.1f}" if each.median_cpu else "")
        for clock in ("cpu", "wall"):
            times = ratio(runs.get(TSHARK), each, clock)
            cells.append("" if times is None or name == TSHARK else f"{times:.2f}")
        rows.append([name, *cells, _counted(each.rows)])
    return rows


def _counted(rows: Mapping[str, int]) -> str:
    shown = {name: count for name, count in rows.items() if name in SHOWN_ROWS}
    return ", ".join(f"{count:,} {name}" for name, count in shown.items())


SHOWN_ROWS = ("frames", "records", "packets", "lines")


def text(run: Run, rounds: int) -> list[str]:
    version = subprocess.run(["tshark", "--version"], capture_output=True, check=True)
    release = re.search(r"\d+\.\d+\.\d+", version.stdout.decode())
    origins = "; ".join(
        f"{each.name}, {each.megabytes:.0f} MB: {each.origin}" for each in run.captures
    )
    return [
        f"{machine(['pyarrow', 'numpy', 'pyspark', 'confluent-kafka'])}, tshark "
        f"{release[0] if release else 'unknown'}. Medians of "
        f"{rounds} interleaved rounds of whole processes. A ratio above "
        f"1 means that wiredump is faster. Load of the machine at the end: "
        f"{os.getloadavg()[1]:.1f}. Captures: {origins}.",
        f"tshark prints {', '.join(FRAME_FIELDS)}, and for records {len(RECORD_FIELDS)} fields "
        "including key and value. It is given the brokers' ports and the option to reorder "
        "segments. wiredump recognises Kafka by its bytes, writes Parquet, and hashes every value "
        "(BLAKE2b).",
        *run.texts,
    ]


def add_spark(run: Run, maker: Maker, arguments: argparse.Namespace) -> None:
    big = maker.traffic("big", arguments.big)
    assert big is not None  # only newest versions may be missing
    scale = maker.giant(arguments.scale, SCALE_CONNECTIONS)
    found = measure_spark(big, scale, arguments.rounds, maker.folder, say)
    run.tables += spark_tables(found)
    run.marks += spark_marks(found)
    run.captures += [each for each in (big, scale) if each not in run.captures]
    run.texts.append(
        "Spark's jobs run in warm sessions; starting a session and its first job is shown "
        "separately. A session of local[1] has one processor for Java and Python together, one of "
        "local[2] has two."
    )
    runs = {**found.runs, **{f"{name}, scaling": each for name, each in found.scaling.items()}}
    run.figures["spark"] = {
        name: {"wall_s": each.wall, "cpu_s": each.cpu, "rows": each.rows}
        for name, each in runs.items()
    }


def add_memory(run: Run, maker: Maker, arguments: argparse.Namespace) -> None:
    big = maker.traffic("big", arguments.big)
    assert big is not None
    captures = [big, maker.giant(min(arguments.big, MEMORY_FROM)), maker.giant(arguments.giant)]
    peaks = measure_memory(captures, maker.folder, say, spark=not arguments.no_spark)
    run.tables.append(memory_table(peaks, captures))
    run.marks += memory_marks(peaks, captures)
    run.captures += [each for each in captures if each not in run.captures]
    run.figures["memory"] = peaks


def section(run: Run, rounds: int) -> Section:
    plain = {
        capture: {
            name: {"wall_s": runs.wall, "cpu_s": runs.cpu, "rows": runs.rows}
            for name, runs in programs.items()
        }
        for capture, programs in run.measured.items()
    }
    return Section(
        title="Captures",
        reproduce=".venv/bin/python -m benchmarks.bench_dump",
        text=text(run, rounds),
        tables=run.tables,
        marks=run.marks,
        figures={**plain, **run.figures},
    )


def arguments_of(line: list[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only",
        type=_parts,
        default=PARTS,
        metavar="PART,...",
        help=f"parts to run: {', '.join(PARTS)}",
    )
    parser.add_argument("--rounds", type=_count, default=5)
    parser.add_argument(
        "--small",
        type=_size,
        default=60.0,
        metavar="MB",
        help="size of the capture of small frames",
    )
    parser.add_argument(
        "--big", type=_size, default=300.0, metavar="MB", help="size of the capture of batches"
    )
    parser.add_argument(
        "--start",
        type=_size,
        default=3.0,
        metavar="MB",
        help="size of another capture of small frames, which shows the start-up time",
    )
    parser.add_argument(
        "--giant",
        type=_size,
        default=3000.0,
        metavar="MB",
        help="size of a capture with one connection",
    )
    parser.add_argument(
        "--scale", type=_size, default=3000.0, metavar="MB",
        help=f"size of a capture with {SCALE_CONNECTIONS} connections, to compare processors",
    )  # fmt: skip
    parser.add_argument("--no-spark", action="store_true", help="measure no memory of Spark")
    parser.add_argument("--workdir", type=Path, help="folder for captures and tables")
    parser.add_argument(
        "--synthetic", action="store_true", help="write captures instead of capturing real traffic"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    return parser.parse_args(line)


def _parts(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in PARTS]
    if unknown or not names:
        problem = f"no part {unknown[0]!r}" if unknown else "name at least one part"
        raise argparse.ArgumentTypeError(f"{problem}; the parts are {', '.join(PARTS)}")
    return tuple(name for name in PARTS if name in names)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _size(text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = 0.0
    if not 0.1 <= size <= 100_000:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of megabytes from 0.1 to 100000"
        )
    return size


def main() -> None:
    arguments = arguments_of()
    if missing := toolchains.missing(["tshark"]):
        raise SystemExit(f"bench_dump: {'; '.join(missing)}")
    try:
        measure_all(arguments)
    except FailedError as error:
        raise SystemExit(f"bench_dump: {error}") from error


def measure_all(arguments: argparse.Namespace) -> None:
    """Measure the selected parts, and write the results."""
    parts: tuple[str, ...] = arguments.only
    maker = Maker(arguments.workdir, real=not arguments.synthetic)
    run = Run()
    if set(parts) & {"frames", "records", "tables"}:
        made = [
            maker.traffic(shape, size, newest=newest)
            for newest in (False, True)
            for shape, size in (("small", arguments.small), ("big", arguments.big))
        ]
        run.captures = [each for each in made if each is not None]
        if start := maker.traffic("small", arguments.start):
            run.captures.append(start._replace(name=START))
        if "tables" in parts:
            run.captures.append(maker.giant(arguments.giant))
        run.measured = measure(run.captures, parts, arguments.rounds, maker.folder)
        run.tables += rows_of(run.captures, run.measured)
        run.marks += judge(run.measured, parts)
    if "spark" in parts:
        add_spark(run, maker, arguments)
    if "memory" in parts:
        add_memory(run, maker, arguments)
    if sys.stderr.isatty():
        say("")
    conclude("dump", section(run, arguments.rounds), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
