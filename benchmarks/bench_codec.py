"""Decode and encode of the five workloads beside every other codec at hand: one run, same bytes.

Reproduce and compare::

    make bench                                        # everything; writes
    docs/explanation/benchmarks.md .venv/bin/python -m benchmarks.bench_codec        # this part
    alone: some four minutes .venv/bin/python -m benchmarks.bench_codec --rounds 5 --no-jmh
    --dry-run .venv/bin/python -m benchmarks.bench_codec --no-outer --dry-run    # Python's codecs
    only KPROTO_ENGINE=pure .venv/bin/python -m benchmarks.bench_codec --dry-run

Every case runs once a round, so that a slow spell of the machine hits all of them; the table shows
the fastest round, the JSON the median too. The clock is processor time. Every codec must round-trip
the bytes before it is timed.

In this process: ours (where the native engine is in use, generated Python, "pure", is one more),
kio, kafka-python, construct compiled, and the floor under decode (``floor/floor.c``). aiokafka has
most of the messages at older versions only, and is compared with ours on those, apart.

In processes of their own, asked for their slice within each round (``worker``): kio 0.6.2, the last
with LeaderAndIsr, and the outer marks. Those are small programs in ``java/``, ``go/`` and ``rust/``
beside this file, built into the cache on first use; where a toolchain is absent, the run goes on
without. The Java classes run twice: interleaved with the rest once they are warm, which is what
ratios are taken of, and under JMH, for the record.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import kproto
from benchmarks import aiokafka_peer, construct_peer, outer, peers
from benchmarks.codec_marks import (
    CONSTRUCT,
    FLOOR,
    JAVA,
    JMH,
    KAFKA_PYTHON,
    KIO,
    OURS,
    PURE,
    Figures,
    judge,
)
from benchmarks.codec_tables import AIOKAFKA, tables
from benchmarks.floor import clone_of
from benchmarks.report import Section, conclude, machine
from benchmarks.timing import Case, Timing, interleave
from benchmarks.worker import Worker
from benchmarks.workloads import WORKLOADS, Workload
from kproto.codec import registry
from kproto.errors import AbsentError

__all__ = ["main", "measure"]

BARE_CALL = "bare call"
"""A C function that does almost nothing, called like every codec of this process."""


@dataclass
class Run:
    """The measurements of a run, the codecs, and those that could not be measured."""

    figures: Figures = field(default_factory=dict)
    own: Figures = field(default_factory=dict)
    """aiokafka and ours at the versions that aiokafka has."""
    releases: dict[str, list[str]] = field(default_factory=dict)
    """The version that each program of the outer marks reported."""
    absent: dict[str, str] = field(default_factory=dict)


def measure(rounds: int, *, with_outer: bool = True, with_jmh: bool = True) -> Run:
    """Measure all codecs on all workloads, in this many rounds."""
    run = Run()
    with _bodies() as bodies:
        programs = outer.programs() if with_outer else {}
        for workload in WORKLOADS:
            run.figures[workload.key] = _measure_one(workload, bodies, programs, rounds, run)
            if workload.key in aiokafka_peer.VERSIONS:
                run.own[workload.key] = _measure_aiokafka(workload, rounds)
        java = programs.get(JAVA)
        if with_jmh and isinstance(java, outer.Program):
            _measure_jmh(java, bodies, run)
    return run


@contextlib.contextmanager
def _bodies() -> Iterator[Path]:
    """Yield a folder with every workload's body, for the workers."""
    with tempfile.TemporaryDirectory(prefix="kproto-bodies-") as folder:
        for workload in WORKLOADS:
            (Path(folder) / workload.key).write_bytes(workload.body())
        yield Path(folder)


def _worker_arguments(workload: Workload, bodies: Path) -> list[str]:
    return [workload.title, str(workload.version), str(bodies / workload.key)]


def _measure_one(
    workload: Workload,
    bodies: Path,
    programs: dict[str, outer.Program | outer.Absent],
    rounds: int,
    run: Run,
) -> dict[str, Timing]:
    """Measure all codecs on one workload, interleaved."""
    body = workload.body()
    cases: dict[str, Case] = {}

    def add(name: str, found: dict[str, Case]) -> None:
        cases.update({f"{name} {operation}": case for operation, case in found.items()})

    with contextlib.ExitStack() as stack:
        for name, program in programs.items():
            if isinstance(program, outer.Absent):
                run.absent[name] = program.reason
                continue
            command = [*program.command, *_worker_arguments(workload, bodies)]
            worker = stack.enter_context(
                Worker(command, operations=program.operations, warm_up=program.warm_up)
            )
            run.releases.setdefault(name, [])
            if worker.release not in run.releases[name]:
                run.releases[name].append(worker.release)
            add(name, worker.cases())
        if workload.key == "d":
            old = stack.enter_context(peers.old_kio(workload, bodies / workload.key))
            add(KIO, old.cases())
        else:
            add(KIO, peers.local_cases(peers.kio(workload, body)))
        add(KAFKA_PYTHON, peers.local_cases(peers.kafka_python(workload, body)))
        plan = registry.plan_of(type(workload.message()), workload.version)
        add(CONSTRUCT, peers.local_cases(construct_peer.operations(plan.root, body)))
        add(OURS, peers.local_cases(peers.ours(workload, body)))
        if kproto.engine == "native":
            add(PURE, peers.local_cases(peers.generated(workload, body)))
        nothing: dict[int, int] = {}
        cases |= peers.local_cases({BARE_CALL: lambda: nothing.get(0)})
        try:
            add(FLOOR, peers.local_cases(_floor(workload, body)))
        except AbsentError as absent:
            run.absent[FLOOR] = str(absent)
        return interleave(cases, rounds)


def _floor(workload: Workload, body: bytes) -> dict[str, Callable[[], object]]:
    kind = type(workload.message())
    decoded = kind.decode(body, workload.version)
    clone = clone_of(kind, workload.version)
    assert clone(decoded) == decoded
    return {"clone": lambda: clone(decoded)}


def _measure_aiokafka(workload: Workload, rounds: int) -> dict[str, Timing]:
    """Measure aiokafka and ours on the message at the newest version that aiokafka has."""
    message, version = workload.message(), aiokafka_peer.VERSIONS[workload.key]
    kind, body = type(message), message.encode(version)
    calls = {
        OURS: {
            "decode": lambda: kind.decode(body, version),
            "encode": lambda: message.encode(version),
        },
        AIOKAFKA: aiokafka_peer.operations(workload, body),
    }
    cases = {
        f"{name} {operation}": case
        for name, found in calls.items()
        for operation, case in peers.local_cases(found).items()
    }
    return interleave(cases, rounds)


def _measure_jmh(java: outer.Program, bodies: Path, run: Run) -> None:
    named = {workload.key: _worker_arguments(workload, bodies) for workload in WORKLOADS}
    try:
        averages = outer.jmh(java, named)
    except AbsentError as absent:
        run.absent[JMH] = str(absent)
        return
    for key, found in averages.items():
        run.figures[key].update({f"{JMH} {name}": each for name, each in found.items()})


def section(run: Run, rounds: int) -> Section:
    return Section(
        title="Codec",
        reproduce=".venv/bin/python -m benchmarks.bench_codec",
        text=_text(run, rounds),
        tables=tables(run.figures, run.own, aiokafka_peer.VERSIONS, kproto.engine),
        marks=judge(run.figures, kproto.engine),
        figures={
            **_plain(run.figures),
            "at_versions_of_aiokafka": _plain(run.own),
            "releases": run.releases,
            "absent": run.absent,
        },
    )


def _plain(figures: Figures) -> dict[str, dict[str, dict[str, float]]]:
    return {
        key: {case: {"minimum_ns": t.minimum, "median_ns": t.median} for case, t in row.items()}
        for key, row in figures.items()
    }


def _text(run: Run, rounds: int) -> list[str]:
    packages = ["msgspec", "kio", "kafka-python", "construct", "aiokafka"]
    texts = [
        f"{machine(packages)}; engine: {kproto.engine}. Figures are the fastest of {rounds} "
        "interleaved rounds, in CPU time. A ratio above 1 means that kproto is faster.",
        "kio decodes in Rust and encodes in Python; workload d uses kio 0.6.2, in a process of its "
        "own. For d, kafka-python's generator compiles our schema file. The construct codec is "
        "declared from our plan and compiled, and keeps tagged fields as bytes.",
    ]
    if run.releases:
        programs = "; ".join(f"{name}: {', '.join(said)}" for name, said in run.releases.items())
        texts.append(
            f"The codecs of other languages run in programs of their own, one slice per round: "
            f"{programs}. All encode into a new buffer each time. kproto remembers recent message "
            "sizes. Go and Rust receive the size in advance; a table shows them with a growing and "
            "with a reused buffer as well. Java computes the size first, as Kafka does before it "
            "sends. Rust's strings remain slices of the body. Java's time is that of its thread, "
            "warm, without garbage collection and compilation; Go's and Rust's is that of the "
            "process. The JMH column is wall time, the fastest of three averages over a second, "
            "and enters no ratio."
        )
    if FLOOR not in run.absent:
        texts.append(
            "The lower bound of decode is the time to clone the resulting structs and lists in C: "
            "nothing is parsed, and strings and numbers are shared with the original."
        )
    bare = run.figures["e"].get(BARE_CALL)
    if bare is not None:
        texts.append(
            f"Calling a C method that does almost nothing (`dict.get`) takes "
            f"{bare.minimum / 1000:.3f} µs in the same loop. For e, the call itself is about that "
            "much of the time."
        )
    texts.append(
        "aiokafka is measured at the newest version of a message that it supports, on bytes of "
        "that version; only for c is that the workload's own. It lacks LeaderAndIsr."
    )
    texts += [f"Not measured: {name} ({reason})." for name, reason in run.absent.items()]
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description="Codecs side by side on the five workloads.")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    parser.add_argument("--no-outer", action="store_true", help="skip Java, Go and Rust")
    parser.add_argument("--no-jmh", action="store_true", help="skip JMH, which takes a minute")
    arguments = parser.parse_args()
    run = measure(
        arguments.rounds, with_outer=not arguments.no_outer, with_jmh=not arguments.no_jmh
    )
    conclude("codec", section(run, arguments.rounds), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
