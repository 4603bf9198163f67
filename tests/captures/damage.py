"""Captures of real traffic damaged at random, and every command run over them.

``python -m tests.captures.damage [--runs 100] [--spark 0] [--seed 1]`` prints how many captures
each command read, how many of those ended with an exception, and how many bytes of TCP payload
the command did not account for. Both have to be 0.
"""

import argparse
import contextlib
import json
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack_into, unpack_from
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import pyarrow.parquet as pq
from click import ClickException
from click.testing import CliRunner

from kproto.errors import KprotoError
from tests.captures.reading import NAMES
from tests.captures.test_captures import uncompressed
from tests.captures.worse import HEADER, RECORD, made_worse, records_of
from tests.captures.wrapping import WRAPPINGS, wrapped
from wiredump import native
from wiredump.cli import cli
from wiredump.model import Exchange
from wiredump.readers.account import AccountError
from wiredump.sources import open_sources
from wiredump.sources.captures import UnaccountedError

__all__ = ["COMMANDS", "KINDS", "Outcome", "damaged", "run", "spark_kept"]

SHORTEST, LONGEST = 54, 320
"""Snap lengths, in bytes: from headers alone to most of a small request."""

Damage = Callable[[bytes, random.Random], bytes]


def _thinned(capture: bytes, rng: random.Random) -> bytes:
    share = rng.choice((0.02, 0.1, 0.3))
    return made_worse(capture, rng, lost=share, repeated=share / 2, late=share / 2)


def _cut(capture: bytes, rng: random.Random) -> bytes:
    """One snap length for all packets, as ``editcap -s``; or another for each of some packets."""
    length = rng.randint(SHORTEST, LONGEST)
    everywhere = rng.random() < 0.7
    records = []
    for record in records_of(capture):
        most = length if everywhere else rng.randint(0, 2_000)
        kept = bytearray(record[: RECORD + most])
        pack_into("<I", kept, 8, len(kept) - RECORD)
        records.append(bytes(kept))
    return capture[:HEADER] + b"".join(records)


def _flipped(capture: bytes, rng: random.Random) -> bytes:
    """Bytes of packets changed: headers, payload, both. The records stay whole."""
    share = rng.choice((0.02, 0.2, 1.0))
    first = rng.choice((0, 66))
    found = bytearray(capture)
    at = HEADER
    while at < len(capture):
        size = unpack_from("<I", capture, at + 8)[0]
        if size > first and rng.random() < share:
            for _ in range(rng.choice((1, 1, 4))):
                found[at + RECORD + rng.randrange(first, size)] ^= 1 << rng.randrange(8)
        at += RECORD + size
    return bytes(found)


def _torn(capture: bytes, rng: random.Random) -> bytes:
    """The file itself: a few of its bytes changed, some lost, or the end."""
    found = bytearray(capture)
    what = rng.choice(("changed", "lost", "end"))
    if what == "changed":
        for _ in range(3):
            found[rng.randrange(len(found))] = rng.randrange(256)
    elif what == "lost":
        at = rng.randrange(HEADER, len(found))
        del found[at : at + rng.choice((1, 4, 100, 3_000))]
    else:
        del found[rng.randrange(len(found)) :]
    return bytes(found)


def _tunnelled(capture: bytes, rng: random.Random) -> bytes:
    return wrapped(capture, WRAPPINGS[rng.choice([*WRAPPINGS])])


KINDS: Final[dict[str, tuple[Damage, ...]]] = {
    "thinned": (_thinned,),
    "cut": (_cut,),
    "flipped": (_flipped,),
    "torn": (_torn,),
    "tunnelled": (_thinned, _tunnelled, _flipped),
    "all": (_thinned, _tunnelled, _cut, _flipped, _torn),
}
"""What is done to a capture, in this order. ``made_worse`` reads headers, so it comes first."""


def damaged(kind: str, rng: random.Random, most: int = 600) -> bytes:
    """At most so many packets of one of the captures, from anywhere in it, damaged."""
    capture = uncompressed(rng.choice(NAMES))
    records = records_of(capture)
    first = rng.choice((0, rng.randrange(max(1, len(records) - most))))
    capture = capture[:HEADER] + b"".join(records[first : first + most])
    for damage in KINDS[kind]:
        capture = damage(capture, rng)
    return capture


class Outcome(NamedTuple):
    """``failure`` is empty, or the traceback. ``refusal`` is the line a command ended with. A
    command that prints no account has None as ``payload``."""

    failure: str
    refusal: str
    payload: int | None
    unaccounted: int


def _shown(capture: Path, folder: Path) -> list[str]:
    return ["show", str(capture), "--json"]


def _annotated(capture: Path, folder: Path) -> list[str]:
    return ["show", str(capture), "--hex", "--all", "--bodies"]


def _table(capture: Path, folder: Path) -> list[str]:
    return ["table", str(capture), "--out", str(folder / "table"), "--json"]


def _packets(capture: Path, folder: Path) -> list[str]:
    """Reads packet by packet, in Python alone."""
    out = str(folder / "packets")
    return ["table", str(capture), "--out", out, "--packets", "--values", "--json"]


def _audit(capture: Path, folder: Path) -> list[str]:
    return ["audit", str(capture), "--to", "kafka-4.1", "--json"]


def _report(capture: Path, folder: Path) -> list[str]:
    return ["report", str(capture), "--out", str(folder / "report.html")]


def _extract(capture: Path, folder: Path) -> list[str]:
    """Every connection that has frames."""
    source = open_sources([str(capture)])
    numbers = {item.connection.number for item in source if isinstance(item, Exchange)}
    chosen = [f"--connection={number}" for number in sorted(numbers)]
    return ["extract", str(capture), "--out", str(folder / "transcript"), "--raw", *chosen]


def _spark(capture: Path, folder: Path) -> list[str]:
    out = str(folder / "spark")
    return ["spark", str(capture), "--out", out, "--split-bytes", "40000", "--json"]


COMMANDS: Final[dict[str, Callable[[Path, Path], list[str]]]] = {
    "show": _shown,
    "show --hex": _annotated,
    "table": _table,
    "table --packets": _packets,
    "audit": _audit,
    "report": _report,
    "extract": _extract,
    "spark": _spark,
}


def run(command: str, capture: Path, folder: Path) -> Outcome:
    """``folder`` is where the command may write."""
    arguments = COMMANDS[command](capture, folder)
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        expected = isinstance(error, (KprotoError, ClickException))
        ours = isinstance(error, (AccountError, UnaccountedError)) or "job failed" in str(error)
        if not expected or ours:
            return Outcome("".join(traceback.format_exception(error)), "", None, 0)
        return Outcome("", str(error), None, 0)
    account = _account(command, result.stdout, folder)
    if account is None:
        return Outcome("", "", None, 0)
    named = ("frames", "retransmitted", "copies", "anomalies", "tls")
    placed = sum(account.get(name, 0) for name in named)
    return Outcome("", "", account["payload"], abs(account["payload"] - placed))


def _account(command: str, printed: str, folder: Path) -> dict[str, int] | None:
    """Where the bytes went, as the command says."""
    if command == "show":
        found: dict[str, int] = json.loads(printed.splitlines()[-1])["account"]
        return found
    if command.startswith(("table", "spark")):
        found = json.loads(printed)["bytes"]
        return found
    return None


@contextlib.contextmanager
def spark_kept(session: Any) -> Iterator[None]:
    """``wiredump spark`` uses this session, and leaves it running."""
    with (
        patch("wiredump.spark.session.start", lambda *_, **__: session),
        patch.object(session, "stop", lambda: None),
    ):
        yield


def rows(folder: Path) -> dict[str, list[str]]:
    """Every table below a folder but those that name files; rows sorted."""
    return {
        each.name: sorted(
            repr(row) for file in each.rglob("*.parquet") for row in pq.read_table(file).to_pylist()
        )
        for each in sorted(folder.iterdir())
        if each.is_dir() and each.name[0] != "_" and each.name not in ("lineage", "packets")
    }


def _session() -> Any:
    from wiredump.spark.session import start

    settings = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    return start("local[2]", settings=settings)


def main() -> None:
    """Damage captures, run the commands, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=100, help="captures of each kind")
    parser.add_argument("--spark", type=int, default=0, help="of these, how many Spark reads")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=600, help="packets of each")
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    session = _session() if options.spark else None
    kept = spark_kept(session) if session is not None else contextlib.nullcontext()
    counts: Counter[tuple[str, str]] = Counter()
    ends = time.monotonic() + 60 * options.minutes
    with kept:
        for number in range(options.runs):
            for kind in KINDS:
                if time.monotonic() > ends:
                    break
                rng = random.Random(f"{options.seed} {number} {kind}")
                _one(counts, kind, damaged(kind, rng, options.most), number < options.spark)
    print(f"{'command':<16} {'captures':>8} {'refused':>8} {'tracebacks':>10} {'unaccounted':>12}")
    for command in [*COMMANDS, "pure"]:
        told = [counts[command, what] for what in ("runs", "refused", "failed", "unaccounted")]
        print(f"{command:<16} {told[0]:>8} {told[1]:>8} {told[2]:>10} {told[3]:>12}")
    print(f"differing: {counts['', 'differing']}; bytes of payload: {counts['table', 'payload']}")


def _one(counts: Counter[tuple[str, str]], kind: str, data: bytes, with_spark: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = folder / "damaged.pcap"
        capture.write_bytes(data)
        payloads = set()
        commands = [each for each in COMMANDS if with_spark or each != "spark"]
        outcomes = {each: run(each, capture, folder) for each in commands}
        pure = folder / "pure"
        pure.mkdir()
        with native.using(None):
            outcomes["pure"] = run("table", capture, pure)
        for command, outcome in outcomes.items():
            counts[command, "runs"] += 1
            counts[command, "refused"] += bool(outcome.refusal)
            counts[command, "failed"] += bool(outcome.failure)
            counts[command, "unaccounted"] += outcome.unaccounted
            counts[command, "payload"] += outcome.payload or 0
            if outcome.failure:
                print(f"{kind}: {command}: {outcome.failure}")
            if outcome.payload is not None:
                payloads.add(outcome.payload)
        same = len(payloads) <= 1
        for other in ("pure/table", *(["spark"] if with_spark else ())):
            if (folder / "table").exists() and (folder / other).exists():
                same = same and rows(folder / "table") == rows(folder / other)
        if not same:
            counts["", "differing"] += 1
            print(f"{kind}: the commands differ: {payloads}")
            Path(f"{tempfile.gettempdir()}/differing-{counts['', 'differing']}.pcap").write_bytes(
                data
            )


if __name__ == "__main__":
    main()
