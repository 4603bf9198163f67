"""One seed a run, printed by pytest, and a generator of its own for each test.

``KPROTO_SEED`` is a number, or ``random`` for a new seed each run. The default is fixed, so that
only a change can turn a run red. A test's generator also depends on the test's name: a test that
runs alone draws what it drew in the whole run.
"""

import os
import random
from functools import cache

__all__ = ["generator", "seed"]

DEFAULT_SEED = 455


@cache
def seed() -> int:
    """The run's seed."""
    text = os.environ.get("KPROTO_SEED", "")
    if text == "random":
        return random.SystemRandom().randrange(2**32)
    return int(text) if text else DEFAULT_SEED


def generator(name: str) -> random.Random:
    """A generator seeded by the run's seed and ``name``."""
    return random.Random(f"{seed()}:{name}")
