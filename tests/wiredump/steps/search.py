"""Search for arrangements of packets whose reading takes more than its share of steps:

    python -m tests.wiredump.steps.search --count 200 --seed 1

prints each that is worse than those before it, with its growth from n to 2n packets, and exits with
1 if one exceeds the bound. ``--seconds`` also measures the CPU time, to find what no step counts,
such as copies.
"""

from __future__ import annotations

import argparse
import random
import time

from tests.support.steps import MOST_GROWTH, growth_of
from tests.wiredump.steps.arrangements import Arrangement, arranged
from tests.wiredump.steps.reading import WAYS, reader_of

__all__ = ["main"]


def main() -> int:
    """Run the search; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=455)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seconds", type=int, metavar="SIZE", help="measure this many packets")
    arguments = parser.parse_args()
    found: list[float] = []
    for number in range(arguments.count):
        arrangement = arranged(random.Random(f"{arguments.seed}:{number}"))
        for way in WAYS:
            growth = growth_of(lambda size: reader_of(arrangement, way, size), arguments.size)  # noqa: B023
            factor = growth.factor
            if arguments.seconds:
                factor = max(factor, _seconds(arrangement, way, arguments.seconds))
            found.append(factor)
            if factor > MOST_GROWTH or factor == max(found):
                print(f"{factor:.2f} {way} {arguments.seed}:{number} {growth} {arrangement}",
                      flush=True)  # fmt: skip
    return int(max(found) > MOST_GROWTH)


def _seconds(arrangement: Arrangement, way: str, size: int) -> float:
    took = []
    for each in (size, 2 * size):
        run = reader_of(arrangement, way, each)
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
    return took[1] / took[0] if took[1] > 0.2 else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
