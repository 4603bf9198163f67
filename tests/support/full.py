"""How much of a repetitive test runs: a sample, or everything.

``quick`` and ``quickly_drawn`` sample in ``make test-fast`` (``KPROTO_QUICK=1``). ``either`` and
``drawn`` sample in every run without ``KPROTO_FULL=1``, which is meant for one folder at a time.
A sample is drawn by the run's seed, which pytest prints; ``KPROTO_SEED`` chooses another one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

from tests.support import seeds

__all__ = ["FULL", "QUICK", "drawn", "either", "quick", "quickly_drawn"]

FULL: Final = bool(os.environ.get("KPROTO_FULL"))
QUICK: Final = bool(os.environ.get("KPROTO_QUICK")) and not FULL

T = TypeVar("T")


def drawn(name: str, values: Sequence[T], few: int) -> list[T]:
    """``few`` of ``values``, in their order; all in a full run. ``name`` identifies the sample."""
    if FULL or few >= len(values):
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
