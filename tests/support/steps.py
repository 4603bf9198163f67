"""Count the steps that code takes: lines of Python in the packages, and what the extension counts
of its loops. A step has no duration, so that the result is the same on any machine."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from wiredump import native

__all__ = ["MOST_GROWTH", "Growth", "Steps", "growth_of", "steps_of"]

_PACKAGES: Final = tuple(
    str(Path(__file__).parents[2] / name) + "/" for name in ("wiredump", "kproto", "mockbroker")
)

MOST_GROWTH: Final = 2.3
"""Twice the input takes at most so many times the steps: twice, and more for searching in what is
sorted."""

_DOUBLINGS: Final = 4

_FEW: Final = 2_000
"""Steps that are not compared: what a reader does once."""


class Steps(NamedTuple):
    """``python`` counts lines, ``native`` the steps of the extension."""

    python: int
    native: int


class Growth(NamedTuple):
    """The steps of an input and of one twice as long."""

    once: Steps
    twice: Steps

    @property
    def factor(self) -> float:
        """By how much the steps grow, of Python or of the extension: the worse of the two."""
        return max(
            (more / few for few, more in zip(self.once, self.twice, strict=True) if more > _FEW),
            default=1.0,
        )


def steps_of(run: Callable[[], object]) -> Steps:
    """Count the steps of a call."""
    count = 0
    mine: dict[Any, bool] = {}

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        if code not in mine:
            mine[code] = code.co_filename.startswith(_PACKAGES)
        return line if mine[code] else None

    module = native.built()
    before, traced = (0 if module is None else module.steps()), sys.gettrace()
    sys.settrace(call)
    try:
        run()
    finally:
        sys.settrace(traced)
    return Steps(count, 0 if module is None else module.steps() - before)


def growth_of(prepare: Callable[[int], Callable[[], object]], size: int) -> Growth:
    """Count the steps of what ``prepare`` returns for a size and for twice as much.

    A limit, a time-out or a table that only the larger input reaches adds steps, too, but only
    once: where there are too many, the input is doubled again, up to ``_DOUBLINGS`` times.
    """
    prepare(8)()  # what is imported, compiled or read once is not counted
    found = Growth(steps_of(prepare(size)), steps_of(prepare(2 * size)))
    for doubling in range(1, _DOUBLINGS):
        if found.factor <= MOST_GROWTH:
            break
        found = Growth(found.twice, steps_of(prepare((2 << doubling) * size)))
    return found
