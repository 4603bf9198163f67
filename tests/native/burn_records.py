"""Random records, damaged ones and wrong ones for as long as asked, C and Python on each.

    .venv/bin/python -m tests.native.burn_records --seconds 60 [--seed 7]

As ``tests.native.burn`` does with messages: the first difference ends it with an AssertionError,
and under sanitizers (``scripts/sanitize.py``) so does a wrong read.
"""

import argparse
import random
import time

from kproto.records.sink import PureSink, RecordColumn
from tests.native.records_both import (
    LONGS,
    codec,
    damage,
    random_records,
    same_reading,
    same_writing,
    section,
    shake_records,
)
from tests.support import engines

LIMITS = (8, 50, 500, 5000, 1 << 20)


def same_columns(sections: list[tuple[bytes, int]], wanted: RecordColumn, limit: int) -> None:
    sink, pure = codec().sink(wanted, limit), PureSink(wanted, limit)
    for data, count in sections:
        arguments = data, 0, len(data), count, 5, 7, None
        read = codec().read(*arguments)
        try:
            pure.put(read or [])
        except OverflowError:
            try:
                sink.add(*arguments)
            except OverflowError:
                continue
            raise AssertionError(f"taken beyond {limit}: {data.hex()}") from None
        assert sink.add(*arguments) is (read is not None), data.hex()
    assert sink.finish() == pure.finish()


def burn(seconds: float, seed: int) -> int:
    """Returns how many inputs were tried."""
    tried, end = 0, time.monotonic() + seconds
    rng = random.Random(seed)
    with engines.running("native"):
        while time.monotonic() < end:
            records = random_records(rng, most=rng.choice((1, 4, 40)))
            data, count = section(records), len(records)
            same_reading(data, count, rng.choice(LONGS), rng.choice(LONGS))
            same_writing(records)
            sections = [(data, count), *((damage(data, rng), count) for _ in range(10))]
            for each, _ in sections:
                same_reading(each, count, 5, 7, around=b"\x01" * rng.choice((0, 3)))
                same_writing(shake_records(records, rng))
            same_columns(sections, RecordColumn(rng.randrange(64)), rng.choice(LIMITS))
            tried += 24
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description="Records in C and in Python on random inputs.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    print(f"burn_records: seed {arguments.seed}", flush=True)
    print(f"burn_records: {burn(arguments.seconds, arguments.seed)} inputs, no difference")


if __name__ == "__main__":
    main()
