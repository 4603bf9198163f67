"""Iterating and building record batches beside aiokafka, whose Cython is the mark to beat.

Reproduce and compare::

    .venv/bin/python -m benchmarks.bench_records
    .venv/bin/python -m benchmarks.bench_records --rounds 5 --dry-run

A batch of magic 2 holds 1000 records of 100 bytes. To iterate is to check the checksum and to read
offset, timestamp, key, value and headers of each record; to build is to make the bytes from the
same values. Each is measured in two ways, because the libraries cut the work differently:

- iterate: every value of every record is asked for; ``nothing read``: the records are gone through
  and nothing is asked of them. Ours are whole by then, aiokafka makes offsets and timestamps later.
- build: from what each takes, records that exist already or calls of ``append``; ``append``: both
  record by record, ours through ``RecordBatchBuilder``, which makes the records, too.

- columns: ten such batches into lists, one a column: by way of records, and ``read_columns``, which
  makes Arrow's buffers without them. aiokafka has nothing like it.

All read the same bytes and must agree on every value before anything is timed, and uncompressed
they must build the same bytes. Interleaved rounds, processor time, as ``bench_codec``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import local_cases
from benchmarks.report import Mark, Section, conclude, machine
from benchmarks.timing import Timing, interleave
from kproto import extension
from kproto.records import Compression, Record, RecordBatchBuilder, RecordBatches, build_batch
from kproto.records.columns import RecordColumns, read_columns
from kproto.records.native import record_codec

__all__ = ["main", "measure"]

OURS, OURS_PURE = "kproto", "kproto, pure"
CYTHON, PURE = "aiokafka", "aiokafka, pure"
CODECS = (OURS, OURS_PURE, CYTHON, PURE)
ITERATE, WALK, BUILD, APPEND = "iterate", "iterate, nothing read", "build", "append and build"
OPERATIONS = (ITERATE, WALK, BUILD, APPEND)
LISTS, COLUMNS = "records to lists", "columns"
INPUTS = 10
AIM = 1.2
"""How many times as fast as aiokafka the native engine should be."""

Calls = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Workload:
    title: str
    records: list[Record]
    compression: Compression = Compression.NONE


def _records(key: bool, headers: bool) -> list[Record]:
    """Return 1000 records, a millisecond apart, with values that are random in practice spread
    evenly."""
    return [
        Record(
            offset,
            1_700_000_000_000 + offset,
            b"key-%d" % offset if key else None,
            bytes((offset * 7 + place * place) % 251 for place in range(100)),
            (("trace", b"%016d" % offset),) if headers else (),
        )
        for offset in range(1000)
    ]


WORKLOADS = (
    Workload("1000 x 100 B", _records(key=False, headers=False)),
    Workload("with key and header", _records(key=True, headers=True)),
    Workload("lz4", _records(key=False, headers=False), Compression.LZ4),
)


def _walk(found: Iterable[object]) -> None:
    for _ in found:
        pass


def ours(workload: Workload, data: bytes) -> Calls:
    def iterate() -> list[Any]:
        return [
            (r.offset, r.timestamp, r.key, r.value, r.headers)
            for batch in RecordBatches(data)
            for r in batch
        ]

    codec, records = workload.compression, workload.records
    values = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]

    def append() -> bytes:
        builder = RecordBatchBuilder(compression=codec)
        append = builder.append
        for offset, timestamp, key, value, headers in values:
            append(value, key=key, timestamp=timestamp, headers=headers, offset=offset)
        return builder.build()

    def walk() -> None:
        for batch in RecordBatches(data):
            _walk(batch)

    return {
        ITERATE: iterate,
        WALK: walk,
        BUILD: lambda: build_batch(records, compression=codec),
        APPEND: append,
    }


def in_python(calls: Calls) -> Calls:
    """Return the same without the C extension."""

    def without(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            before = extension.use(None)
            try:
                return call()
            finally:
                extension.use(before)

        return run

    return {operation: without(call) for operation, call in calls.items()}


def aiokafka(workload: Workload, data: bytes, flavour: str) -> Calls:
    """Return aiokafka's reader and builder of magic 2; ``flavour`` is ``Cython`` or ``Py``."""
    from aiokafka.record import default_records

    reader = getattr(default_records, f"_DefaultRecordBatch{flavour}")
    builder = getattr(default_records, f"_DefaultRecordBatchBuilder{flavour}")
    values = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in workload.records]
    codec = int(workload.compression)

    def iterate() -> list[Any]:
        batch = reader(data)
        assert batch.validate_crc()
        return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch]

    def build() -> bytes:
        made = builder(2, codec, 0, -1, -1, -1, 1 << 24)
        append = made.append
        for offset, timestamp, key, value, headers in values:
            append(offset, timestamp, key, value, headers)
        return bytes(made.build())

    def walk() -> None:
        batch = reader(data)
        assert batch.validate_crc()
        _walk(batch)

    return {ITERATE: iterate, WALK: walk, BUILD: build, APPEND: build}


def _agree(workload: Workload, calls: dict[str, Calls]) -> None:
    """Check that every codec reads the same values and, uncompressed, writes the same bytes."""
    expected = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in workload.records]
    for name, found in calls.items():
        read: Any = found[ITERATE]()
        assert [(*row[:4], tuple(row[4] or ())) for row in read] == expected, name
        for operation in (BUILD, APPEND):
            built: Any = found[operation]()
            assert [r for batch in RecordBatches(built) for r in batch] == workload.records, name
            if workload.compression is Compression.NONE:
                # They differ in the leader's epoch, which is no producer's to say.
                assert built[16:] == build_batch(workload.records)[16:], name


def columns(data: bytes) -> Calls:
    inputs = [data] * INPUTS

    def lists() -> list[Any]:
        rows = [
            (index, number, r.offset, r.timestamp, r.key, r.value, len(r.headers))
            for index, each in enumerate(inputs)
            for number, batch in enumerate(RecordBatches(each))
            for r in batch
        ]
        return [list(values) for values in zip(*rows, strict=True)]

    def table() -> RecordColumns:
        return read_columns(inputs)

    assert list(table().to_pydict().values()) == lists()
    return {LISTS: lists, COLUMNS: table}


def measure_one(workload: Workload, rounds: int) -> dict[str, Timing]:
    data = build_batch(workload.records, compression=workload.compression)
    calls = {
        OURS: ours(workload, data),
        OURS_PURE: in_python(ours(workload, data)),
        CYTHON: aiokafka(workload, data, "Cython"),
        PURE: aiokafka(workload, data, "Py"),
    }
    _agree(workload, calls)
    cases = {
        f"{name} {operation}": case
        for name, found in calls.items()
        for operation, case in local_cases(found).items()
    }
    by_column = columns(data)
    for name, found in ((OURS, by_column), (OURS_PURE, in_python(by_column))):
        for operation, case in local_cases(found).items():
            cases[f"{name} {operation}"] = case
    return interleave(cases, rounds)


def measure(rounds: int) -> dict[str, dict[str, Timing]]:
    return {workload.title: measure_one(workload, rounds) for workload in WORKLOADS}


def ratio(timings: dict[str, Timing], codec: str, operation: str) -> float:
    """Return how many times as long as ours ``codec`` takes, by the fastest rounds."""
    return timings[f"{codec} {operation}"].minimum / timings[f"{OURS} {operation}"].minimum


def table(figures: dict[str, dict[str, Timing]], operation: str) -> list[list[str]]:
    peers = CODECS[1:]
    rows = [[f"{operation}, µs", *CODECS, *(f"{peer} / {OURS}" for peer in peers)]]
    for title, timings in figures.items():
        micros = [timings[f"{codec} {operation}"].minimum / 1000 for codec in CODECS]
        ratios = [ratio(timings, peer, operation) for peer in peers]
        rows.append([title, *(f"{value:.0f}" for value in micros), *(f"{r:.2f}x" for r in ratios)])
    return rows


def columns_table(figures: dict[str, dict[str, Timing]]) -> list[list[str]]:
    cases = [f"{OURS} {LISTS}", f"{OURS} {COLUMNS}", f"{OURS_PURE} {COLUMNS}"]
    rows = [[f"{INPUTS} batches, µs", LISTS, COLUMNS, f"{COLUMNS}, pure", f"{LISTS} / {COLUMNS}"]]
    for title, timings in figures.items():
        lists, made, pure = (timings[case].minimum for case in cases)
        micros = [f"{value / 1000:.0f}" for value in (lists, made, pure)]
        rows.append([title, *micros, f"{lists / made:.2f}x"])
    return rows


def section(figures: dict[str, dict[str, Timing]], rounds: int) -> Section:
    first = figures[WORKLOADS[0].title]
    engine = "in pure Python" if record_codec() is None else "on the native engine"
    marks = []
    for operation in (ITERATE, BUILD):
        seen = ratio(first, CYTHON, operation)
        aim = f"{operation} 1000 x 100 B: at least {AIM:g}x aiokafka (with the native engine)"
        marks.append(Mark(aim, f"{seen:.2f}x, {engine}", seen >= AIM))
    return Section(
        title="Record batches",
        reproduce=".venv/bin/python -m benchmarks.bench_records",
        text=[
            f"{machine(['aiokafka', 'google-crc32c', 'lz4', 'cramjam'])}. Figures are the fastest "
            f"of {rounds} interleaved rounds, in CPU time. A ratio above 1 means that kproto is "
            f"faster. The column `kproto` is measured {engine}.",
            "kproto reads a batch as a whole; aiokafka decodes some fields only on access. "
            "`iterate` reads every field, `iterate, nothing read` none. `build` takes existing "
            "records (in aiokafka, calls of `append`); `append and build` adds them one by one in "
            "both. The last table compares, for kproto alone, lists of each column made from "
            "records with columns read straight into Arrow's buffers.",
        ],
        tables=[*(table(figures, each) for each in OPERATIONS), columns_table(figures)],
        marks=marks,
        figures={
            title: {case: {"minimum_ns": t.minimum, "median_ns": t.median} for case, t in r.items()}
            for title, r in figures.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Record batches beside aiokafka.")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    found = section(measure(arguments.rounds), arguments.rounds)
    conclude("records", found, dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
