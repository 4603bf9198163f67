"""Time several functions fairly: interleaved rounds, processor time, minimum and median.

Knows nothing of Kafka. Standard library only, because a peer's worker process runs it too, in an
environment without this project. A machine that slows down for a while slows every case of that
round, so ratios hold where times do not.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Case", "Timing", "calibrate", "interleave", "loops_to_fill", "run_slice"]

Case = Callable[[], float]
"""Runs one slice; returns nanoseconds a call."""

SLICE = 0.012
"""Seconds of work a case gets in one round."""


@dataclass(frozen=True)
class Timing:
    """Nanoseconds a call, over all rounds."""

    minimum: float
    median: float
    rounds: int

    @classmethod
    def of(cls, samples: list[float]) -> Timing:
        return cls(min(samples), statistics.median(samples), len(samples))


def run_slice(function: Callable[[], object], loops: int) -> float:
    """Nanoseconds of processor time a call, over ``loops`` calls."""
    gc.collect()
    clock = time.process_time_ns
    began = clock()
    for _ in range(loops):
        function()
    return (clock() - began) / loops


def calibrate(function: Callable[[], object], seconds: float = SLICE) -> int:
    """How many calls fill ``seconds``. Also warms the function up."""
    return loops_to_fill(lambda loops: run_slice(function, loops), seconds)


def loops_to_fill(nanoseconds: Callable[[int], float], seconds: float = SLICE) -> int:
    """How many calls fill ``seconds``, where ``nanoseconds`` tells what each of so many takes."""
    loops = 1
    while True:
        taken = nanoseconds(loops) * loops
        if taken >= seconds * 1e9 / 4:
            return max(1, int(loops * seconds * 1e9 / taken))
        loops *= 2


def interleave(cases: Mapping[str, Case], rounds: int) -> dict[str, Timing]:
    """Run every case once a round; a case returns its nanoseconds a call."""
    samples: dict[str, list[float]] = {name: [] for name in cases}
    # Each slice begins with a collection; what is there by now need not be looked at every time.
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            for name, case in cases.items():
                samples[name].append(case())
    finally:
        gc.unfreeze()
    return {name: Timing.of(values) for name, values in samples.items()}
