"""Play the sessions of the data plane by hand, and print the differences that ``known.py`` lacks::

python -m tests.real.data --release 4.4.0                  # compare with the mock
python -m tests.real.data --release 3.9.2 --only 'fetch-*' # some of them
python -m tests.real.data --release 4.4.0 --record out.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path

from tests.real.data.clusters import DataKafka, data_mock
from tests.real.data.known import KNOWN
from tests.real.data.pairs import PROFILES, clusters_of, real_cluster
from tests.real.data.play import compare, play_on, play_on_both
from tests.real.data.scripts import sessions
from tests.real.known_differences import sift


async def _main(arguments: argparse.Namespace) -> int:
    release = arguments.release
    with tempfile.TemporaryDirectory() as folder, DataKafka(release, Path(folder)) as kafka:
        if arguments.record:
            real, served = await real_cluster(kafka)
            chosen = [each for each in sessions(served) if fnmatchcase(each.name, arguments.only)]
            began = time.monotonic()
            transcripts = await play_on(real, chosen, served)
            Path(arguments.record).write_text(json.dumps(transcripts, indent=1), "utf-8")
            print(f"{len(chosen)} sessions in {time.monotonic() - began:.1f} s")
            return 0
        async with data_mock(PROFILES[release]) as mock:
            real, mocked, served = await clusters_of(kafka, mock)
            chosen = [each for each in sessions(served) if fnmatchcase(each.name, arguments.only)]
            began = time.monotonic()
            tally = compare(*await play_on_both(real, mocked, chosen, served))
    unknown, _ = sift(tally.differences, KNOWN[PROFILES[release]])
    for difference in unknown:
        print(str(difference) if arguments.whole else str(difference)[:1500])
    for stopped in tally.stopped:
        print("STOPPED", stopped)
    print(f"{tally}, {time.monotonic() - began:.1f} s")
    return 1 if unknown or tally.stopped else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.data")
    parser.add_argument("--release", choices=sorted(PROFILES), required=True)
    parser.add_argument("--only", default="*", help="names of sessions, with * and ?")
    parser.add_argument("--record", help="write Kafka's answers to this file; no mock is played")
    parser.add_argument("--whole", action="store_true", help="print every differing field")
    return asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
