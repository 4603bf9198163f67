"""The marks for the figures of reading captures. Knows no program, and measures nothing.

A rate is compared by processor time, as the median of interleaved rounds: the machine is shared, so
wall time depends on other programs. Only the comparison of two processors with one uses wall time,
pair by pair. A program that finds fewer rows than tshark misses its mark, however fast it is.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.report import Mark

__all__ = ["Measured", "Runs", "at_least", "at_most", "flat", "scaled"]


@dataclass
class Runs:
    """All rounds of one program on one capture: seconds, and the rows that each round said."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)

    def add(self, wall: float, cpu: float, rows: Mapping[str, int]) -> None:
        """Raises ValueError where a round made other rows than those before it."""
        if self.wall and dict(rows) != self.rows:
            raise ValueError(f"one round made {self.rows}, another {dict(rows)}")
        self.wall.append(wall)
        self.cpu.append(cpu)
        self.rows = dict(rows)

    @property
    def median_wall(self) -> float:
        return statistics.median(self.wall)

    @property
    def median_cpu(self) -> float:
        return statistics.median(self.cpu)


Measured = dict[str, dict[str, Runs]]
"""By capture, then by program."""


def ratio(theirs: Runs | None, ours: Runs | None, clock: str = "cpu") -> float | None:
    """How many times as long they take, by the median of rounds; None where one is missing."""
    if theirs is None or ours is None:
        return None
    mine = getattr(ours, f"median_{clock}")
    return float(getattr(theirs, f"median_{clock}") / mine) if mine else None


def at_least(
    aim: str,
    measured: Measured,
    theirs: str,
    ours: str,
    least: float,
    *,
    rows: str | None = "frames",
    clock: str = "cpu",
) -> Mark:
    """``theirs`` takes at least ``least`` times as long as ``ours``, on every capture that has
    both. ``rows``: of these both have to have the same number."""
    return _worst(f"{aim}: at least {least:g}x", measured, theirs, ours, rows, clock, least, None)


def at_most(
    aim: str, measured: Measured, theirs: str, ours: str, most: float, *, clock: str = "cpu"
) -> Mark:
    """``ours`` takes at most ``most`` times as long as ``theirs``."""
    return _worst(f"{aim}: at most {most:g}x", measured, theirs, ours, None, clock, None, most)


def _worst(
    aim: str,
    measured: Measured,
    theirs: str,
    ours: str,
    rows: str | None,
    clock: str,
    least: float | None,
    most: float | None,
) -> Mark:
    found: dict[str, float] = {}
    differing: list[str] = []
    for capture, programs in measured.items():
        times = ratio(programs.get(theirs), programs.get(ours), clock)
        if times is None:
            continue
        found[capture] = times
        counts = [programs[name].rows.get(rows or "") for name in (theirs, ours)]
        if rows is not None and (counts[0] != counts[1] or counts[0] is None):
            differing.append(f"{capture}: {counts[1]} {rows}, not {counts[0]}")
    if not found:
        return Mark(aim, "absent", None)
    if differing:
        return Mark(aim, "; ".join(differing), False)
    if most is not None:
        shown = {name: 1 / value for name, value in found.items()}
        text = ", ".join(f"{value:.2f}x ({name})" for name, value in shown.items())
        return Mark(aim, text, max(shown.values()) <= most)
    text = ", ".join(f"{value:.2f}x ({name})" for name, value in found.items())
    return Mark(aim, text, min(found.values()) >= (least or 0))


def scaled(aim: str, one: Sequence[float], two: Sequence[float], least: float) -> Mark:
    """The median of the pairs' ratios of wall time, one processor to two."""
    aim = f"{aim}: at least {least:g}x"
    if not one or len(one) != len(two):
        return Mark(aim, "absent", None)
    pairs = [first / second for first, second in zip(one, two, strict=True)]
    found = statistics.median(pairs)
    spread = f"{min(pairs):.2f} to {max(pairs):.2f}"
    return Mark(aim, f"{found:.2f}x ({len(pairs)} pairs, {spread})", found >= least)


def flat(aim: str, peaks: Mapping[str, int], base: str, most: float = 0.1) -> Mark:
    """No peak is more than ``most`` above that of ``base``; less is as good."""
    aim = f"{aim}: within {most:.0%}"
    others = {name: peak for name, peak in peaks.items() if name != base}
    if base not in peaks or not others:
        return Mark(aim, "absent", None)
    grown = {name: peak / peaks[base] - 1 for name, peak in others.items()}
    text = ", ".join(f"{share:+.0%} ({name})" for name, share in grown.items())
    return Mark(aim, text, max(grown.values()) <= most)
