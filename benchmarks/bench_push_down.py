"""What filters and columns save in ``spark.read.format("kafka_capture")``: the same queries with
and without ``spark.sql.python.filterPushdown.enabled``, in interleaved rounds of one warm session.

Reproduce and compare::

    .venv/bin/python -m benchmarks.bench_push_down                    # 100 MB
    .venv/bin/python -m benchmarks.bench_push_down --megabytes 20 --rounds 3 --explain

Processor time is that of all processes: Java, and Python's driver and workers. Both ways have to
count the same rows. ``--explain`` prints the plans. The capture is written by ``dump/synthetic.py``
(frames of 290 bytes on average).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.dump import synthetic
from benchmarks.dump.programs import cpu_seconds
from wiredump.spark import KafkaCapture
from wiredump.spark.session import start

QUERIES: Final = {
    "all rows": ("true", ""),
    "one API of few requests": ("api = 'Metadata'", ""),
    "nothing passes: an API": ("api = 'DescribeQuorum'", ""),
    "nothing passes: a time": ("requested_at > timestamp'2100-01-01'", ""),
    "columns without bodies": ("true", "client_id,requested_at,latency_ns"),
}
SETTING: Final = "spark.sql.python.filterPushdown.enabled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--explain", action="store_true", help="print the plans")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-push-down-") as name:
        capture = Path(name) / "plain.pcap"
        synthetic.write_small(capture, given.megabytes * 1_000_000)
        spark = start("local[2]", settings={"spark.driver.memory": "1g"})
        spark.dataSource.register(KafkaCapture)
        taken: dict[str, dict[bool, list[tuple[float, float]]]] = {
            each: {False: [], True: []} for each in QUERIES
        }
        for number in range(-1, given.rounds):  # the first is not counted: Java compiles in it
            for query, (condition, columns) in QUERIES.items():
                rows = []
                for pushes in (False, True):
                    spark.conf.set(SETTING, str(pushes).lower())
                    frame = _frame(spark, str(capture), condition, columns if pushes else "")
                    cpu, wall = cpu_seconds(os.getpid()), time.perf_counter()
                    rows.append(frame.agg({"latency_ns": "sum", "client_id": "max"}).collect())
                    seen = time.perf_counter() - wall, cpu_seconds(os.getpid()) - cpu
                    print(f"round {number}: {query}, {pushes}: {seen}", file=sys.stderr)
                    if number >= 0:
                        taken[query][pushes].append(seen)
                    elif given.explain and pushes:
                        print(f"-- {query}")
                        frame.explain()
                assert rows[0] == rows[1], query
        size = capture.stat().st_size / 1e6
        spark.stop()
    print(f"| {size:,.0f} MB | Wall | Pushed down | CPU | Pushed down |")
    print("|---|---|---|---|---|")
    for query, by in taken.items():
        cells = [
            f"{statistics.median(each[at] for each in by[pushes]):.2f} s"
            for at in (0, 1)
            for pushes in (False, True)
        ]
        print(f"| {query} | {' | '.join(cells)} |")


def _frame(spark: Any, path: str, condition: str, columns: str) -> Any:
    reader = spark.read.format("kafka_capture").option("table", "requests")
    if columns:
        reader = reader.option("columns", columns)
    return reader.load(path).filter(condition)


if __name__ == "__main__":
    main()
