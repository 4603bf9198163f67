"""Decode and encode of the five workloads beside kio and kafka-python: one run, the same bytes.

Reproduce and compare::

    make bench                                        # everything, and writes docs/benchmarks.md
    .venv/bin/python -m benchmarks.bench_codec        # this part alone
    .venv/bin/python -m benchmarks.bench_codec --rounds 5 --dry-run
    KPROTO_ENGINE=pure .venv/bin/python -m benchmarks.bench_codec --dry-run

Where the native engine is in use, generated Python ("pure") is one more codec in the run.
Every case runs once a round, so that a slow spell of the machine hits all of them; the table shows
the fastest round, the JSON the median too. The clock is processor time. Every peer must round-trip
the bytes before it is timed. kio 0.6.2, the last release with LeaderAndIsr, runs in a process of
its own and is asked for its slice within each round.
"""

from __future__ import annotations

import argparse
import contextlib

import kproto
from benchmarks import peers
from benchmarks.report import Mark, Section, conclude, machine
from benchmarks.timing import Timing, interleave
from benchmarks.workloads import WORKLOADS, Workload

__all__ = ["main", "measure"]

OURS = "kproto"
PURE = "pure"
KIO = "kio"
KAFKA_PYTHON = "kafka-python"
Figures = dict[str, dict[str, Timing]]
"""Workload key -> "codec operation" -> timing."""


def measure_one(workload: Workload, rounds: int) -> dict[str, Timing]:
    """All codecs on one workload, interleaved."""
    body = workload.body()
    cases: dict[str, peers.Case] = {}

    def add(codec: str, found: dict[str, peers.Case]) -> None:
        cases.update({f"{codec} {operation}": case for operation, case in found.items()})

    with contextlib.ExitStack() as stack:
        add(OURS, peers.local_cases(peers.ours(workload, body)))
        if kproto.engine == "native":
            add(PURE, peers.local_cases(peers.generated(workload, body)))
        add(KAFKA_PYTHON, peers.local_cases(peers.kafka_python(workload, body)))
        if workload.key == "d":
            add(KIO, stack.enter_context(peers.KioWorker(workload, body)).cases())
        else:
            add(KIO, peers.local_cases(peers.kio(workload, body)))
        return interleave(cases, rounds)


def measure(rounds: int) -> Figures:
    return {workload.key: measure_one(workload, rounds) for workload in WORKLOADS}


def ratio(
    timings: dict[str, Timing],
    codec: str,
    operation: str,
    ours: str = OURS,
    our_operation: str = "",
) -> float:
    """How many times as long ``codec`` takes as ours does, by the fastest rounds."""
    mine = timings[f"{ours} {our_operation or operation}"]
    return timings[f"{codec} {operation}"].minimum / mine.minimum


EVERY = [workload.key for workload in WORKLOADS]
LARGE = [workload.key for workload in WORKLOADS if workload.large]
SMALL = [workload.key for workload in WORKLOADS if not workload.large]


class Judge:
    """Marks, each with the worst workload for it; ``ours`` is the codec that is judged."""

    def __init__(self, figures: Figures, ours: str) -> None:
        self.figures = figures
        self.ours = ours

    def least(self, aim: str, keys: list[str], codec: str, operation: str, mark: float) -> Mark:
        return self._worst(
            f"{aim}: at least {mark:g}x",
            {key: ratio(self.figures[key], codec, operation, self.ours) for key in keys},
            mark,
        )

    def validate(self, mark: float) -> Mark:
        ratios = {
            key: ratio(self.figures[key], self.ours, "decode", self.ours, "validate")
            for key in EVERY
        }
        return self._worst(f"validate against our decode, all: at least {mark:g}x", ratios, mark)

    @staticmethod
    def _worst(aim: str, ratios: dict[str, float], mark: float) -> Mark:
        worst = min(ratios, key=lambda key: ratios[key])
        return Mark(aim, f"{ratios[worst]:.2f}x (on {worst})", ratios[worst] >= mark)


def judge(figures: Figures) -> list[Mark]:
    """The marks the project set itself, for the engine in use and, beside it, for pure."""
    if kproto.engine == "pure":
        return judge_pure(Judge(figures, OURS))
    native = Judge(figures, OURS)
    return [
        native.least("decode against kio's Rust, all", EVERY, KIO, "decode", 2),
        native.least("encode against kio, large", LARGE, KIO, "encode", 90),
        native.least("encode against kio, small", SMALL, KIO, "encode", 75),
        native.least("encode against kafka-python, all", EVERY, KAFKA_PYTHON, "encode", 30),
        native.validate(6),
        *judge_pure(Judge(figures, PURE), "pure: "),
    ]


def judge_pure(pure: Judge, name: str = "") -> list[Mark]:
    others, large = [key for key in EVERY if key != "d"], [key for key in LARGE if key != "d"]
    return [
        pure.least(f"{name}encode against kio, a b c e", others, KIO, "encode", 10),
        pure.least(f"{name}encode against kio, d", ["d"], KIO, "encode", 8),
        pure.least(f"{name}encode against kafka-python, all", EVERY, KAFKA_PYTHON, "encode", 4),
        pure.least(f"{name}decode against kafka-python, all", EVERY, KAFKA_PYTHON, "decode", 2),
        pure.least(f"{name}decode against kio's Rust, b c", large, KIO, "decode", 0.55),
        pure.least(f"{name}decode against kio's Rust, d", ["d"], KIO, "decode", 0.5),
    ]


def _micro(timing: Timing) -> str:
    value = timing.minimum / 1000
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def table(figures: Figures, operation: str) -> list[list[str]]:
    """One row a workload: microseconds of each codec, and the ratios to ours."""
    others = [KIO, KAFKA_PYTHON]
    codecs = [OURS, *([PURE] if kproto.engine == "native" else []), *others]
    rows = [[f"{operation}, µs", "bytes", *codecs, *(f"{codec} / {OURS}" for codec in others)]]
    for workload in WORKLOADS:
        timings = figures[workload.key]
        rows.append(
            [
                f"{workload.key} {workload.title} v{workload.version}",
                f"{workload.size:,}",
                *(_micro(timings[f"{codec} {operation}"]) for codec in codecs),
                *(f"{ratio(timings, codec, operation):.2f}x" for codec in others),
            ]
        )
    return rows


def validate_table(figures: Figures) -> list[list[str]]:
    rows = [["validate, µs", "bytes", OURS, "decode / validate"]]
    for workload in WORKLOADS:
        timings = figures[workload.key]
        rows.append(
            [
                f"{workload.key} {workload.title} v{workload.version}",
                f"{workload.size:,}",
                _micro(timings[f"{OURS} validate"]),
                f"{ratio(timings, OURS, 'decode', OURS, 'validate'):.2f}x",
            ]
        )
    return rows


def section(figures: Figures, rounds: int) -> Section:
    return Section(
        title="Codec",
        reproduce=".venv/bin/python -m benchmarks.bench_codec",
        text=[
            f"{machine(['msgspec', 'kio', 'kafka-python'])}; engine: {kproto.engine}. "
            f"Fastest of {rounds} interleaved rounds, processor time. Ratios above 1: ours is "
            "faster. kio decodes in Rust and encodes in Python; on d it is kio 0.6.2, in its own "
            "process. kafka-python's d is compiled by its generator from our schema file."
        ],
        tables=[table(figures, "decode"), table(figures, "encode"), validate_table(figures)],
        marks=judge(figures),
        figures={
            key: {case: {"minimum_ns": t.minimum, "median_ns": t.median} for case, t in row.items()}
            for key, row in figures.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Codecs side by side on the five workloads.")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--dry-run", action="store_true", help="print only, write no file")
    arguments = parser.parse_args()
    found = section(measure(arguments.rounds), arguments.rounds)
    conclude("codec", found, dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
