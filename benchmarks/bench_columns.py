"""Chosen fields of many bodies as columns, beside decoding the bodies and collecting lists.

Reproduce and compare::

    .venv/bin/python -m benchmarks.bench_columns
    .venv/bin/python -m benchmarks.bench_columns --rounds 5 --dry-run

The bodies are workloads of ``bench_codec``, repeated: b and d with a row a partition, e with a row
a body. "decode + lists" is what one writes without columns: decode each body, loop over what it
holds, append each value to the list of its column; "+ pyarrow" makes Arrow arrays of these lists,
and of our columns a ``RecordBatch``. "pure columns" run without the native engine, its decoder
included. All must give the same rows before any is timed. Interleaved rounds, processor time, as
``bench_codec``.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kproto
from benchmarks.peers import local_cases
from benchmarks.report import Mark, Section, conclude, machine
from benchmarks.timing import Timing, interleave
from benchmarks.workloads import WORKLOADS, Workload
from kproto.codec import registry
from kproto.columns import MOST_BYTES, Selection, select
from kproto.columns.layout import lay_out
from kproto.columns.pure import PureSelection

__all__ = ["main", "measure"]

OURS, LISTS, PURE, KIO = "columns", "decode + lists", "pure columns", "kio + lists"
ARROW, LISTS_ARROW = "columns + pyarrow", "decode + lists + pyarrow"
AIM = 3
"""How many times as fast as eager decoding and lists columns should be."""

Lists = tuple[list[Any], ...]
Decode = Callable[[bytes], Any]


def partitions(bodies: list[bytes], decode: Decode) -> Lists:
    made: Lists = [], [], [], [], [], []
    frame, topic, error, partition, leader, epoch = made
    for index, body in enumerate(bodies):
        for t in decode(body).topics:
            for p in t.partitions:
                frame.append(index)
                topic.append(t.name)
                error.append(p.error_code)
                partition.append(p.partition_index)
                leader.append(p.leader_id)
                epoch.append(p.leader_epoch)
    return made


def states(bodies: list[bytes], decode: Decode) -> Lists:
    made: Lists = [], [], [], [], [], []
    frame, topic, partition, leader, epoch, isr = made
    for index, body in enumerate(bodies):
        for t in decode(body).topic_states:
            for p in t.partition_states:
                frame.append(index)
                topic.append(t.topic_name)
                partition.append(p.partition_index)
                leader.append(p.leader)
                epoch.append(p.leader_epoch)
                isr.append(p.isr)
    return made


def heartbeats(bodies: list[bytes], decode: Decode) -> Lists:
    made: Lists = [], [], [], [], []
    frame, group, generation, member, instance = made
    for index, body in enumerate(bodies):
        m = decode(body)
        frame.append(index)
        group.append(m.group_id)
        generation.append(m.generation_id)
        member.append(m.member_id)
        instance.append(m.group_instance_id)
    return made


@dataclass(frozen=True)
class Task:
    """``of`` names a workload of the codecs; ``kio`` is False if kio does not have the message."""

    of: str
    times: int
    paths: list[str]
    collect: Callable[[list[bytes], Decode], Lists]
    kio: bool = True

    @property
    def workload(self) -> Workload:
        return next(each for each in WORKLOADS if each.key == self.of)

    @property
    def title(self) -> str:
        return f"{self.of} {self.workload.title} v{self.workload.version} x {self.times}"


TASKS = [
    Task(
        "b", 20,
        ["topics.name", "topics.partitions.error_code", "topics.partitions.partition_index",
         "topics.partitions.leader_id", "topics.partitions.leader_epoch"],
        partitions,
    ),
    Task(
        "d", 20,
        ["topic_states.topic_name", "topic_states.partition_states.partition_index",
         "topic_states.partition_states.leader", "topic_states.partition_states.leader_epoch",
         "topic_states.partition_states.isr"],
        states,
        kio=False,
    ),
    Task("e", 1000, ["group_id", "generation_id", "member_id", "group_instance_id"], heartbeats),
]  # fmt: skip


def _kio(workload: Workload) -> Decode:
    from benchmarks.peers import kio_place

    read_of = importlib.import_module("kio.serial").entity_reader
    module, name = kio_place(workload)
    read = read_of(getattr(importlib.import_module(module), name))
    return lambda body: read(body, 0)[0]


def _pure(selection: Selection) -> Callable[[list[bytes]], Any]:
    """Return the buffers, made without the native engine."""
    cls, version = selection.message, selection.version
    layout = lay_out(registry.plan_of(cls, version), {f.name: f.path for f in selection.fields})
    pure = PureSelection(layout, registry.generated_decoder(cls, version))
    return lambda bodies: pure.read(tuple(bodies), MOST_BYTES, False)


def calls_of(task: Task) -> dict[str, Callable[[], object]]:
    """Return every way to make the rows of a task, after checking that their rows are equal."""
    import pyarrow

    workload = task.workload
    bodies = [bytes(bytearray(workload.body())) for _ in range(task.times)]
    message, version, collect = type(workload.message()), workload.version, task.collect
    selection = select(message, version, task.paths)
    schema = selection.read([]).to_arrow().schema

    def decode(body: bytes) -> Any:
        return message.decode(body, version)

    def lists_to_arrow() -> Any:
        made = collect(bodies, decode)
        arrays = [pyarrow.array(v, f.type) for v, f in zip(made, schema, strict=True)]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    pure = _pure(selection)
    calls: dict[str, Callable[[], object]] = {
        OURS: lambda: selection.read(bodies),
        ARROW: lambda: selection.read(bodies).to_arrow(),
        LISTS: lambda: collect(bodies, decode),
        LISTS_ARROW: lists_to_arrow,
        PURE: lambda: pure(bodies),
    }
    expected = collect(bodies, decode)
    assert list(selection.read(bodies).to_pydict().values()) == list(expected)
    assert selection.read(bodies).to_arrow().equals(lists_to_arrow())
    assert pure(bodies) == selection._compiled.read(tuple(bodies), MOST_BYTES, False)
    if task.kio:
        kio = _kio(workload)
        assert [list(each) for each in collect(bodies, kio)] == list(expected)
        calls[KIO] = lambda: collect(bodies, kio)
    return calls


@dataclass(frozen=True)
class Figures:
    rows: int
    size: int
    timings: dict[str, Timing]

    def ratio(self, other: str, ours: str = OURS) -> float:
        """Return how many times as long ``other`` takes, by the fastest rounds."""
        return self.timings[other].minimum / self.timings[ours].minimum


def measure_one(task: Task, rounds: int) -> Figures:
    calls = calls_of(task)
    read: Any = calls[OURS]()
    timings = interleave(local_cases(calls), rounds)
    return Figures(read.rows, task.workload.size * task.times, timings)


def measure(rounds: int) -> dict[str, Figures]:
    return {task.title: measure_one(task, rounds) for task in TASKS}


def speed_table(found: dict[str, Figures], title: str, amount: Callable[[Figures], float]) -> Any:
    names = [OURS, ARROW, LISTS, LISTS_ARROW, PURE, KIO]
    rows = [[title, *names, f"{LISTS} / {OURS}", f"{LISTS_ARROW} / {ARROW}"]]
    for task, figures in found.items():
        cells = [
            f"{amount(figures) * 1e3 / figures.timings[name].minimum:.1f}"
            if name in figures.timings
            else "-"
            for name in names
        ]
        ratios = [figures.ratio(LISTS), figures.ratio(LISTS_ARROW, ARROW)]
        rows.append([task, *cells, *(f"{ratio:.2f}x" for ratio in ratios)])
    return rows


def judge(found: dict[str, Figures]) -> list[Mark]:
    if kproto.engine == "pure":
        return []  # it decodes, and makes columns of that
    worst = min(found, key=lambda task: found[task].ratio(LISTS))
    ratio = found[worst].ratio(LISTS)
    aim = f"columns against eager native decode plus lists, all: at least {AIM}x"
    return [Mark(aim, f"{ratio:.2f}x (on {worst.partition(' ')[0]})", ratio >= AIM)]


def section(found: dict[str, Figures], rounds: int) -> Section:
    return Section(
        title="Columns",
        reproduce=".venv/bin/python -m benchmarks.bench_columns",
        text=[
            f"{machine(['msgspec', 'kio', 'pyarrow'])}; engine: {kproto.engine}. Figures are the "
            f"fastest of {rounds} interleaved rounds, in CPU time; higher is faster. This release "
            "of kio lacks LeaderAndIsr (d)."
        ],
        tables=[
            speed_table(found, "million rows per second", lambda figures: figures.rows),
            speed_table(found, "MB per second", lambda figures: figures.size),
        ],
        marks=judge(found),
        figures={
            task: {
                name: {"minimum_ns": timing.minimum, "median_ns": timing.median}
                for name, timing in figures.timings.items()
            }
            for task, figures in found.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Columns beside decoded messages and lists.")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    found = section(measure(arguments.rounds), arguments.rounds)
    conclude("columns", found, dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
