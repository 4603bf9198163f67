"""Search for differences between real Kafka and the mock: ``make fidelity``.

Exit status 1 if there is a kind of difference that the release's file in ``kinds/`` does not list,
or with ``--check`` one that it lists and that no longer occurs.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
from pathlib import Path

from tests.real.search.clusters import RELEASES
from tests.real.search.results import store
from tests.real.search.search import AT_ONCE, Limits, Search, kinds_file

REQUESTS = 1000
PROGRAMS = 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.search", description=__doc__)
    parser.add_argument("--release", choices=[*RELEASES], default="4.4.0")
    parser.add_argument("--seed", help="any text; one is drawn, and printed, without")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="at least")
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--seconds", type=float, help="draw for so many, once both brokers run")
    parser.add_argument(
        "--at-once",
        type=int,
        default=AT_ONCE,
        help=f"programs that are played together ({AT_ONCE}): fewer where other processes leave "
        "little of the machine, so that sessions do not end between two requests",
    )
    parser.add_argument(
        "--api", type=int, action="append", default=[], help="an API key; repeatable"
    )
    parser.add_argument("--out", type=Path, help="a folder for the kinds, as kinds/ has them")
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="replace the release's results in the file, such as tests/real/search/results.json",
    )
    parser.add_argument(
        "--coverage",
        action="store_true",
        help="print the versions, fields and error codes that no program reached",
    )
    parser.add_argument("--check", action="store_true", help="listed kinds have to occur as well")
    options = parser.parse_args()
    seed = options.seed or str(random.SystemRandom().randrange(2**32))
    print(f"seed {seed}", flush=True)
    logging.getLogger("mockbroker").setLevel(logging.ERROR)
    limits = Limits(
        options.requests, options.programs, options.seconds, tuple(options.api), options.at_once
    )
    search = Search(options.release, seed, limits)
    asyncio.run(search.run())
    if options.coverage:
        print(*search.reached, sep="\n")
    search.report()
    if options.out:
        search.write(options.out / kinds_file(options.release).name)
    if options.results:
        store(options.results, search.result())
    return int(bool(search.unlisted) or (options.check and bool(search.gone)))


if __name__ == "__main__":
    sys.exit(main())
