"""The order of tests in a run with several processes.

``--dist worksteal`` gives each process an equal share of consecutive tests. A process whose share
is done takes tests from the end of the longest one. In the order made here, each share begins with
slow tests, about as many as the others, and ends with quick ones: those are left when the first
process is done, so that no process waits for another's last slow test.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["in_shares"]

T = TypeVar("T")


def in_shares(
    tests: Sequence[T], shares: int, *, unit: Callable[[T], str], weight: Callable[[T], int]
) -> list[T]:
    """``tests`` in an order for this many processes. Tests of one unit have fixtures in common, and
    stay together where the sizes of the shares permit it. The weight of a quick test is 0."""
    units: dict[str, list[T]] = {}
    for each in tests:
        units.setdefault(unit(each), []).append(each)
    weighed = sorted(
        ((sum(map(weight, group)), group) for group in units.values()),
        key=lambda pair: pair[0],
        reverse=True,
    )
    begun: list[list[T]] = [[] for _ in range(shares)]
    weights = [0] * shares
    rest: list[T] = []
    for weighs, group in weighed:
        if weighs:
            lightest = weights.index(min(weights))
            weights[lightest] += weighs
            begun[lightest] += group
        else:
            rest += group
    sizes = [(len(tests) + index) // shares for index in range(shares)]
    rest = [each for share, size in zip(begun, sizes, strict=True) for each in share[size:]] + rest
    ordered: list[T] = []
    for share, size in zip(begun, sizes, strict=True):
        missing = max(0, size - len(share))
        ordered += share[:size] + rest[:missing]
        rest = rest[missing:]
    return ordered
