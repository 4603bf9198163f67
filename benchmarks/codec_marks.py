"""The marks for the codec's figures. Knows no codec, and measures nothing.

A mark applies to its worst workload. A codec that was not measured leaves its marks open; they are
shown as not measured, never as met.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.report import Mark
from benchmarks.timing import Timing
from benchmarks.workloads import WORKLOADS

__all__ = [
    "CONSTRUCT",
    "FLOOR",
    "GO",
    "JAVA",
    "JMH",
    "KAFKA_PYTHON",
    "KIO",
    "OURS",
    "PURE",
    "RUST",
    "Figures",
    "judge",
    "ratio",
]

OURS, PURE, KIO, KAFKA_PYTHON, CONSTRUCT = "kproto", "pure", "kio", "kafka-python", "construct"
JAVA, JMH, GO, RUST = "Java", "Java, JMH", "Go", "Rust"
FLOOR = "floor"
"""Its only operation is ``clone``."""

Figures = dict[str, dict[str, Timing]]
"""Workload key -> "codec operation" -> timing."""

EVERY = [workload.key for workload in WORKLOADS]
LARGE = [workload.key for workload in WORKLOADS if workload.large]
SMALL = [workload.key for workload in WORKLOADS if not workload.large]


def ratio(
    timings: dict[str, Timing],
    codec: str,
    operation: str,
    ours: str = OURS,
    our_operation: str = "",
) -> float | None:
    """Return how many times as long as ours ``codec`` takes, by the fastest rounds; None if one of
    them was not measured."""
    theirs = timings.get(f"{codec} {operation}")
    mine = timings.get(f"{ours} {our_operation or operation}")
    return None if theirs is None or mine is None else theirs.minimum / mine.minimum


class Judge:
    """The marks of one of our codecs, ``ours``."""

    def __init__(self, figures: Figures, ours: str, name: str = "") -> None:
        self.figures = figures
        self.ours = ours
        self.name = name

    def least(self, aim: str, keys: list[str], codec: str, operation: str, mark: float) -> Mark:
        """The others take at least ``mark`` times as long as ours, on each of ``keys``."""
        return self._worst(f"{aim}: at least {mark:g}x", keys, codec, operation, mark=mark)

    def mean(self, aim: str, keys: list[str], codec: str, operation: str, mark: float) -> Mark:
        """The same for the geometric mean over ``keys``."""
        aim = f"{self.name}{aim}: at least {mark:g}x"
        found = self._ratios(keys, codec, operation)
        if found is None:
            return Mark(aim, "absent", None)
        mean = math.prod(found.values()) ** (1 / len(found))
        return Mark(aim, f"{mean:.2f}x", mean >= mark)

    def validate(self, mark: float) -> Mark:
        aim = f"validate against our decode, all: at least {mark:g}x"
        return self._worst(aim, EVERY, self.ours, "decode", "validate", mark=mark)

    def floor(self, mark: float) -> Mark:
        """Decoding takes at most ``mark`` times as long as cloning the result."""
        aim = f"{self.name}decode against cloning its objects in C, large: at most {mark:g}x"
        found = self._ratios(LARGE, FLOOR, "clone", "decode")
        if found is None:
            return Mark(aim, "absent", None)
        times = {key: 1 / value for key, value in found.items()}
        return _seen(aim, times, max, lambda worst: worst <= mark)

    def _worst(
        self,
        aim: str,
        keys: list[str],
        codec: str,
        operation: str,
        our_operation: str = "",
        *,
        mark: float,
    ) -> Mark:
        found = self._ratios(keys, codec, operation, our_operation)
        if found is None:
            return Mark(f"{self.name}{aim}", "absent", None)
        return _seen(f"{self.name}{aim}", found, min, lambda worst: worst >= mark)

    def _ratios(
        self, keys: list[str], codec: str, operation: str, our_operation: str = ""
    ) -> dict[str, float] | None:
        found = {
            key: ratio(self.figures[key], codec, operation, self.ours, our_operation)
            for key in keys
        }
        known = {key: value for key, value in found.items() if value is not None}
        return known if len(known) == len(keys) else None


def _seen(
    aim: str, ratios: dict[str, float], worst_of: Callable[..., str], met: Callable[[float], bool]
) -> Mark:
    worst = worst_of(ratios, key=lambda key: ratios[key])
    return Mark(aim, f"{ratios[worst]:.2f}x (on {worst})", met(ratios[worst]))


def judge(figures: Figures, engine: str) -> list[Mark]:
    """Return the marks of the project, for the engine in use and for the pure one."""
    if engine == "pure":
        return _judge_pure(Judge(figures, OURS))
    native = Judge(figures, OURS)
    return [
        native.least("decode against kio's Rust, all", EVERY, KIO, "decode", 2),
        native.floor(1.25),
        native.least("encode against kio, large", LARGE, KIO, "encode", 90),
        native.least("encode against kio, small", SMALL, KIO, "encode", 75),
        native.least("encode against kafka-python, all", EVERY, KAFKA_PYTHON, "encode", 30),
        native.least("encode against Kafka's Java, large", LARGE, JAVA, "encode", 1),
        native.least("encode against franz-go, large", LARGE, GO, "encode", 1),
        native.validate(6),
        *_judge_pure(Judge(figures, PURE, "pure: ")),
    ]


def _judge_pure(pure: Judge) -> list[Mark]:
    return [
        pure.least("encode against kio, all", EVERY, KIO, "encode", 10),
        pure.mean("encode against kio, geometric mean", EVERY, KIO, "encode", 12),
        pure.least("encode against kafka-python, all", EVERY, KAFKA_PYTHON, "encode", 4),
        pure.least("decode against kafka-python, all", EVERY, KAFKA_PYTHON, "decode", 2),
        pure.least("decode against kio's Rust, large", LARGE, KIO, "decode", 0.6),
        pure.least("decode against kio's Rust, small", SMALL, KIO, "decode", 0.9),
    ]
