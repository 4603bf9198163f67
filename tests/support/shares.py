"""The order of tests in a run with several processes.

``--dist worksteal`` gives each process an equal share of consecutive tests. A process whose share
is done takes tests from the end of the longest one. In the order made here, each share begins with
slow tests, about as many as the others, and ends with quick ones: those are left when the first
process is done, so that no process waits for another's last slow test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

__all__ = ["in_shares"]

T = TypeVar("T")


def in_shares(
    tests: Sequence[T], shares: int, *, unit: Callable[[T], str], slow: Callable[[T], bool]
) -> list[T]:
    """``tests`` in an order for this many processes. Consecutive tests of one unit have fixtures
    in common, and stay together where the sizes of the shares permit it."""
    units = [list(group) for _, group in groupby(tests, unit)]
    weighed = sorted(
        ((sum(map(slow, each)), each) for each in units), key=lambda pair: pair[0], reverse=True
    )
    begun: list[list[T]] = [[] for _ in range(shares)]
    weights = [0] * shares
    rest: list[T] = []
    for weight, each in weighed:
        if weight:
            lightest = weights.index(min(weights))
            weights[lightest] += weight
            begun[lightest] += each
        else:
            rest += each
    sizes = [(len(tests) + index) // shares for index in range(shares)]
    rest = [each for share, size in zip(begun, sizes, strict=True) for each in share[size:]] + rest
    ordered: list[T] = []
    for share, size in zip(begun, sizes, strict=True):
        missing = max(0, size - len(share))
        ordered += share[:size] + rest[:missing]
        rest = rest[missing:]
    return ordered
