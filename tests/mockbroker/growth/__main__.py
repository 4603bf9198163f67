"""Search for requests whose processor time grows faster than their length:

    python -m tests.mockbroker.growth --profile kafka-2.4 --length 4000

asks a new broker with each array of each API at this length and at twice it, prints those that take
more than ``MOST`` times as long and more than ``LEAST_SECONDS``, and exits with 1 if there is one.
This finds what no step counts: searches in lists, copies, sorting.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Final

from mockbroker.profiles import profile
from tests.mockbroker.growth.grown_requests import long_arrays

__all__ = ["main"]

MOST: Final = 3.0
LEAST_SECONDS: Final = 0.05


def main() -> int:
    """Run the search; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="kafka-4.4")
    parser.add_argument("--length", type=int, default=4000)
    arguments = parser.parse_args()
    chosen = profile(arguments.profile)
    found = 0
    for array in long_arrays(chosen):
        prepare = array.asked(chosen)
        prepare(8)()
        once, twice = _least(prepare, arguments.length), _least(prepare, 2 * arguments.length)
        if twice > LEAST_SECONDS and twice > MOST * once:
            found += 1
            print(f"{array}: {once:.3f} s, {twice:.3f} s", flush=True)
    return int(found > 0)


def _least(prepare: Callable[[int], Callable[[], object]], length: int) -> float:
    """The least of three, as anything else on the machine only adds, without the garbage collector,
    whose passes come at certain lengths."""
    took = []
    for run in [prepare(length) for _ in range(3)]:
        gc.collect()
        gc.disable()
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
        gc.enable()
    return min(took)


if __name__ == "__main__":
    raise SystemExit(main())
