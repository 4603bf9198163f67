"""Make a program that shows a difference as short as it can be, and still shows one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tests.real.compare import Difference
from tests.real.programs.batch import Played
from tests.real.programs.model import Program, ProgramStep

__all__ = ["Minimal", "Playing", "coherent", "minimise", "smaller"]

REPLAYS_AT_MOST: Final = 60
PATIENCE: Final = 10.0


class Playing(Protocol):
    """Where programs are played: a running real cluster, and mocks."""

    async def play(self, programs: Sequence[Program], patience: float = ...) -> Played: ...


@dataclass(frozen=True)
class Minimal:
    """``difference`` None: played again, alone, the program showed nothing. It may have been a
    race, or other programs had to do with it."""

    program: Program
    difference: Difference | None
    replays: int


async def minimise(arena: Playing, program: Program) -> Minimal:
    """Plays smaller and smaller programs on the same cluster, one at a time."""
    replays = 1
    difference = await _shows(arena, program)
    if difference is None:
        return Minimal(program, None, replays)
    smallest = Program(program.name, program.steps[: difference.step])
    progress = True
    while progress and replays < REPLAYS_AT_MOST:
        progress = False
        for steps in smaller(smallest.steps):
            candidate = Program(program.name, steps)
            replays += 1
            found = await _shows(arena, candidate)
            if found is not None:
                difference = found
                smallest = Program(program.name, steps[: found.step])
                progress = True
                break
            if replays >= REPLAYS_AT_MOST:
                break
    return Minimal(smallest, difference, replays)


async def _shows(arena: Playing, program: Program) -> Difference | None:
    played = await arena.play([program], patience=PATIENCE)
    return played.differences[0][1] if played.differences else None


def smaller(steps: Sequence[ProgramStep]) -> Iterator[list[ProgramStep]]:
    """Programs with less in them, the much smaller ones first: without a stretch of steps, without
    a row of one, without one of two that come together."""
    seen = [list(steps)]
    size = len(steps) // 2
    while size:
        for start in range(0, len(steps), size):
            yield from _new(seen, coherent([*steps[:start], *steps[start + size :]]))
        size //= 2
    for place, step in enumerate(steps):
        for less in _less(step):
            yield from _new(seen, coherent([*steps[:place], less, *steps[place + 1 :]]))


def _new(seen: list[list[ProgramStep]], steps: list[ProgramStep]) -> Iterator[list[ProgramStep]]:
    if steps not in seen:
        seen.append(steps)
        yield steps


def _less(step: ProgramStep) -> Iterator[dict[str, Any]]:
    if step["do"] == "together":
        for each in step["steps"]:
            yield {**each, "via": step.get("via", 0)}
    for name in ("rows", "operations", "replicas"):
        values = step.get(name, ())
        for place in range(len(values) if len(values) > 1 else 0):
            yield {**step, name: [*values[:place], *values[place + 1 :]]}


def coherent(steps: Sequence[ProgramStep]) -> list[ProgramStep]:
    """Without steps of the cluster that make no sense any more: a broker that runs cannot start."""
    found: list[ProgramStep] = []
    stopped: set[int] = set()
    frozen: set[int] = set()
    for step in steps:
        broker = step.get("broker", 0)
        match step["do"]:
            case "stop" | "kill" | "freeze" if broker in stopped | frozen:
                continue
            case "start" if broker not in stopped:
                continue
            case "thaw" if broker not in frozen:
                continue
        match step["do"]:
            case "stop" | "kill":
                stopped.add(broker)
            case "start":
                stopped.discard(broker)
            case "freeze":
                frozen.add(broker)
            case "thaw":
                frozen.discard(broker)
        found.append(step)
    return found
