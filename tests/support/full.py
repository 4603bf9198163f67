"""How much of a repetitive test runs: a sample, or everything.

``quick`` and ``quickly_drawn`` sample in ``make test`` (``KPROTO_QUICK=1``) and ``make test-fast``
(``KPROTO_QUICK=2``).
``either`` and ``drawn`` sample in every run without ``KPROTO_FULL=1`` (``make test-full``).
``some_parameters`` samples tests themselves where ``quick`` samples.
A sample is drawn by the run's seed, which pytest prints; ``KPROTO_SEED`` chooses another one.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from tests.support import seeds

__all__ = [
    "FULL",
    "QUICK",
    "drawn",
    "either",
    "quick",
    "quickly_drawn",
    "some_of_each_kind",
    "some_parameters",
]

FULL: Final = bool(os.environ.get("KPROTO_FULL"))
QUICK: Final = bool(os.environ.get("KPROTO_QUICK")) and not FULL

PARAMETERS: Final = 1 if os.environ.get("KPROTO_QUICK") == "2" else 3
"""With how many of its sets of parameters a test runs in a quick run: with one in the fastest."""

SLOW_PARAMETERS: Final = 1
"""The same of a slow test."""

T = TypeVar("T")


def drawn(name: str, values: Sequence[T], few: int) -> list[T]:
    """``few`` of ``values``, in their order; all in a full run. ``name`` identifies the sample."""
    return list(values) if FULL else _sample(name, values, few)


def _sample(name: str, values: Sequence[T], few: int) -> list[T]:
    if few >= len(values):
        return list(values)
    chosen = seeds.generator(name).sample(range(len(values)), few)
    return [values[index] for index in sorted(chosen)]


def either(full: int, sampled: int) -> int:
    """``full`` in a full run, else ``sampled``."""
    return full if FULL else sampled


def quickly_drawn(name: str, values: Sequence[T], few: int) -> list[T]:
    """``few`` of ``values`` in a quick run, drawn as by ``drawn``, else all of them."""
    return drawn(name, values, few) if QUICK else list(values)


def quick(whole: int, sampled: int) -> int:
    """``sampled`` in a quick run, else ``whole``."""
    return sampled if QUICK else whole


def some_of_each_kind(name: str, values: Sequence[T], *, kind: Callable[[T], object]) -> list[T]:
    """``PARAMETERS`` of the values of each kind, drawn, in their order. Kinds are compared by their
    ``repr``."""
    by_kind: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        by_kind.setdefault(repr(kind(value)), []).append(index)
    kept = [index for same in by_kind.values() for index in _sample(name, same, PARAMETERS)]
    return [values[index] for index in sorted(kept)]


def some_parameters(
    tests: Sequence[T],
    *,
    name: Callable[[T], str],
    slow: Callable[[T], bool],
    shows: Callable[[T], Iterable[str]],
) -> tuple[list[T], list[T]]:
    """The tests that run in a quick run, and those left out: of a test with more parameters than
    ``PARAMETERS``, or ``SLOW_PARAMETERS``, all but as many, drawn. ``name`` is the same for a
    test's parameters. What only tests that were left out show, the first one of them shows."""
    by_name: dict[tuple[str, bool], list[T]] = {}
    for each in tests:
        by_name.setdefault((name(each), slow(each)), []).append(each)
    kept = {
        id(each)
        for (key, is_slow), same in by_name.items()
        for each in _sample(key, same, SLOW_PARAMETERS if is_slow else PARAMETERS)
    }
    shown = {what for each in tests if id(each) in kept for what in shows(each)}
    for each in tests:
        if not shown.issuperset(shows(each)):
            kept.add(id(each))
            shown.update(shows(each))
    return (
        [each for each in tests if id(each) in kept],
        [each for each in tests if id(each) not in kept],
    )
