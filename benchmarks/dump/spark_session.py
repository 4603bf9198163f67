"""A Spark that stays started, asked for one job after the other: a line of JSON each way.

    python -m benchmarks.dump.spark_session local[1] 0

On these processors only. Says when it is ready and what starting took, then
answers each job with seconds, processor time of all its processes (Java, Python's driver and
workers) and rows. ``bench_dump`` is on the other side, in ``SparkSession``'s place, so that jobs
of two sessions can be run in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from benchmarks.dump.programs import FailedError, Watch, cpu_seconds

__all__ = ["Done", "Session"]

ROOT = Path(__file__).resolve().parent.parent.parent
HEAP = "1g"
SPLIT_BYTES = 256 << 20
"""What ``wiredump spark`` takes unless told."""


class Done(NamedTuple):
    """What a job took. ``peaks``: bytes resident at most, by what processes are called; empty
    unless it was watched."""

    wall: float
    cpu: float
    rows: dict[str, int]
    peaks: dict[str, int]
    peak: int


class Session:
    """The other end of the pipe. ``started`` is what it took until ready."""

    def __init__(self, processors: frozenset[int], scratch: Path) -> None:
        self._scratch = scratch
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed in __exit__
        master = f"local[{len(processors)}]"
        pin = ",".join(map(str, sorted(processors)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.dump.spark_session", master, pin],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        told = self._answer()
        self.started = Done(told["wall"], told["cpu"], {}, {}, 0)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def run(self, job: str, source: Path, *, watched: bool = False) -> Done:
        """``frames``, ``records`` or ``tables`` (all) of a capture, ``stream`` of a folder of
        rotated files, or ``copy`` of a folder of Parquet files."""
        assert self._process.stdin is not None
        with tempfile.TemporaryDirectory(prefix="bench-spark-", dir=self._scratch) as folder:
            out = str(Path(folder) / "out")
            asked = {"job": job, "source": str(source), "out": out}
            watch = Watch(self._process.pid) if watched else None
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            try:
                told = self._answer()
            finally:
                peak = watch.end() if watch else 0
        return Done(told["wall"], told["cpu"], told["rows"], watch.by_name if watch else {}, peak)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            last = self._errors.read().decode("utf-8", "replace").strip().splitlines()[-5:]
            raise FailedError(f"Spark ended: {' / '.join(last)}")
        found: dict[str, Any] = json.loads(line)
        return found


# ---- in the process that has Spark ------------------------------------------------------------


@contextmanager
def _measured(told: dict[str, Any]) -> Iterator[None]:
    cpu, wall = cpu_seconds(os.getpid()), time.perf_counter()
    yield
    told["wall"] = time.perf_counter() - wall
    told["cpu"] = cpu_seconds(os.getpid()) - cpu


def _run(spark: Any, job: str, source: str, out: str) -> dict[str, int]:
    if job == "stream":
        return _stream(spark, source, out)
    if job == "copy":
        frame = spark.read.parquet(source)
        frame.write.option("compression", "snappy").parquet(out)
        return {}
    from wiredump.cli.chosen import chosen_tables
    from wiredump.rows.schema import UNDECODED
    from wiredump.spark.connections import Options
    from wiredump.spark.job import Job

    options = Options(
        out=out, paths={0: source}, names={0: source},
        tables=chosen_tables(None if job == "tables" else job, bodies=True),
        bodies=job not in UNDECODED,
    )  # fmt: skip
    return dict(Job(options=options, split_bytes=SPLIT_BYTES).run(spark).rows)


def _stream(spark: Any, source: str, out: str) -> dict[str, int]:
    """A folder of rotated files, each a batch of its own, to the end."""
    from wiredump.spark.connections import Options
    from wiredump.spark.streaming import Stream

    options = Options(out=out, paths={}, names={}, tables=("frames",), bodies=False)
    stream = Stream(
        where=source, checkpoint=f"{out}-checkpoint", options=options, max_files=1, closed=True,
        partitions=spark.sparkContext.defaultParallelism, split_bytes=SPLIT_BYTES,
    )  # fmt: skip
    stream.start(spark, {"availableNow": True}).awaitTermination()
    return dict(stream.complete(spark, ending=True).rows)


def main() -> None:
    began = time.perf_counter()
    # Before Java begins, which makes itself at home on as many processors as it sees.
    os.sched_setaffinity(0, set(map(int, sys.argv[2].split(","))))
    # Nothing but answers goes the way of answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from wiredump.spark.session import start

    spark = start(sys.argv[1], settings={"spark.driver.memory": HEAP})
    told: dict[str, Any] = {"wall": time.perf_counter() - began, "cpu": cpu_seconds(os.getpid())}
    print(json.dumps(told), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        told = {}
        with _measured(told):
            told["rows"] = _run(spark, asked["job"], asked["source"], asked["out"])
        print(json.dumps(told), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
