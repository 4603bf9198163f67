"""What is whole in ``make test-full`` (``KPROTO_FULL=1``) and sampled elsewhere, CI included; and
what ``make test`` does whole and ``make test-fast`` (``KPROTO_QUICK=1``) samples.

A sample is drawn by the run's seed, which pytest's header prints, or its summary where there is no
header: ``KPROTO_SEED`` draws another.
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
    """``few`` of ``values``, in their order; all in a full run. ``name`` is the sample's own."""
    if FULL or few >= len(values):
        return list(values)
    chosen = seeds.generator(name).sample(range(len(values)), few)
    return [values[index] for index in sorted(chosen)]


def either(full: int, sampled: int) -> int:
    """How many: of a full run, and of any other."""
    return full if FULL else sampled


def quickly_drawn(name: str, values: Sequence[T], few: int) -> list[T]:
    """``few`` of ``values`` in a quick run, as ``drawn`` draws them; all in any other."""
    return drawn(name, values, few) if QUICK else list(values)


def quick(whole: int, sampled: int) -> int:
    """How many: of a quick run, after all others."""
    return sampled if QUICK else whole
