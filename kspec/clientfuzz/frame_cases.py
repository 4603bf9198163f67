"""The cases of a seed: a valid frame and its mutation. A case depends only on the seed, its number
and the requested APIs, so that each can be reproduced by itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from kproto import Dialect
from kspec.clientfuzz.bases import Base, Direction
from kspec.clientfuzz.mutate import Mutation, mutate

__all__ = ["DEEPEST", "Case", "Sample", "case_of"]

DEEPEST = 3
"""A third of the cases have up to this many changes; the others have one."""


class Sample(NamedTuple):
    """A frame, and the message that it was before the mutation."""

    api_key: int
    version: int
    direction: Direction
    frame: bytes


class Case(NamedTuple):
    number: int
    base: Base
    mutation: Mutation

    @property
    def sample(self) -> Sample:
        base = self.base
        return Sample(base.api_key, base.version, base.direction, self.mutation.frame)


def case_of(dialect: Dialect, bases: Sequence[Base], seed: int, number: int) -> Case:
    """Return the case of that number, counted from 0."""
    rng = random.Random(f"{seed}/{number}")  # only random() is the same everywhere
    base = bases[int(rng.random() * len(bases))]
    depth = 1 if rng.random() < 2 / 3 else 1 + int(rng.random() * DEEPEST)
    mutation = mutate(
        base.frame, base.api_key, base.version, rng,
        depth=depth, direction=base.direction, dialect=dialect,
    )  # fmt: skip
    return Case(number, base, mutation)
