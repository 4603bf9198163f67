"""How long others wait beside clients that flood a server: 0, 1 and 10 of them, of each kind.

Reproduce::

    .venv/bin/python -m benchmarks.bench_fairness
    .venv/bin/python -m benchmarks.bench_fairness --rounds 1 --seconds 1 --dry-run

mockbroker (on uvloop, on asyncio, and behind ``mockbroker proxy``), franz-go's kfake and
librdkafka's mock run as in ``bench_data``. A process floods one of them (``flood``): each of its
connections always has as many requests under way as the system takes, and reads every answer.
Meanwhile this process sends ApiVersions every two milliseconds on a connection of its own, and
every five milliseconds a request to the control port, and notes how long each answer takes. The
kinds are ApiVersions, Metadata of one topic, Produce of one record of 100 bytes, and Fetch of
64 KiB. All servers are measured in each round, one after the other. Servers, flood and probes need
two cores that do nothing else: a third busy process makes every figure worse.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import kproto
from benchmarks.bench_broker import PARTITIONS, TOPIC, Server, librdkafka, started
from benchmarks.bench_data import kfake
from benchmarks.bench_requests import address_leader, fetch_frame, produce_frame
from benchmarks.flood import flooding
from benchmarks.pipeline import Pipeline
from benchmarks.report import Mark, Section, conclude, machine
from kproto.messages import ApiVersionsRequest, MetadataRequest
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.records import Record, build_batch

__all__ = ["main"]

CLIENTS: Final = (1, 10)
NOTHING: Final = "nothing"
FETCHED: Final = 64 * 1024
FILLING: Final = 100
"""Batches of 10 kB that are there to be fetched."""
PAUSE, CONTROL_PAUSE = 0.002, 0.005
SETTLING: Final = 0.3
"""Seconds of a flood before others are measured."""
AIMS: Final = {("probe", 1): 20.0, ("control", 1): 50.0, ("probe", 10): 100.0,
               ("control", 10): 100.0}  # fmt: skip
"""Milliseconds at the 99th percentile, by the number of flooding clients."""
WITHOUT_UVLOOP: Final = """
import sys
sys.modules["uvloop"] = None
from mockbroker.cli import main
main()
"""

Cell = tuple[str, int]
"""A kind of flood, and the number of clients."""


@dataclass
class Measured:
    """A server, and the milliseconds of each answer by probe and cell."""

    server: Server
    control: str | None = None
    waits: dict[tuple[str, Cell], list[float]] = field(default_factory=dict)
    rates: dict[Cell, list[float]] = field(default_factory=dict)

    def note(self, probe: str, cell: Cell, found: list[float]) -> None:
        self.waits.setdefault((probe, cell), []).extend(found)

    def add(self, other: Measured) -> None:
        """Add what another round found."""
        for (probe, cell), found in other.waits.items():
            self.note(probe, cell, found)
        for cell, rates in other.rates.items():
            self.rates.setdefault(cell, []).extend(rates)


def _frame(body: ApiVersionsRequest | MetadataRequest, version: int) -> bytes:
    return kproto.encode_request(body, api_version=version, correlation_id=1, client_id="x")


PROBE: Final = _frame(ApiVersionsRequest(), 0)


def _batch(size: int) -> bytes:
    return build_batch([Record(timestamp=int(time.time() * 1000), value=b"x" * size)])


def _kinds() -> dict[str, bytes]:
    topic = MetadataRequestTopic(name=TOPIC)
    metadata = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
    # Fetch is before Produce: librdkafka's mock soon drops what was there to be fetched.
    return {
        "ApiVersions": PROBE,
        "Metadata": _frame(metadata, 4),
        "Fetch": fetch_frame(0, most=FETCHED),
        "Produce": produce_frame(_batch(100)),
    }


# ---- servers -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ours(name: str, command: list[str]) -> Iterator[Measured]:
    options = ["--control", "127.0.0.1:0"]
    with started([sys.executable, *command, *options]) as (process, line):
        first = json.loads(line)
        host, _, port = first["bootstrap"].split(",")[0].rpartition(":")
        yield Measured(Server(name, (host, int(port)), process.pid), first["control"])


def _serving(name: str, *python: str) -> contextlib.AbstractContextManager[Measured]:
    topic = f"{TOPIC}:{PARTITIONS}:3"
    return _ours(name, [*python, "serve", "--brokers", "3", "--topic", topic])


@contextlib.contextmanager
def _proxying(name: str) -> Iterator[Measured]:
    with _serving("upstream", "-m", "mockbroker") as upstream:
        host, port = upstream.server.address
        command = ["-m", "mockbroker", "proxy", "--upstream", f"{host}:{port}"]
        with _ours(name, command) as proxy:
            yield proxy


@contextlib.contextmanager
def _servers() -> Iterator[list[Measured]]:
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        found = [
            enter(_serving("mockbroker", "-m", "mockbroker")),
            enter(_serving("mockbroker, asyncio", "-c", WITHOUT_UVLOOP)),
            enter(_proxying("mockbroker proxy")),
        ]
        found += [Measured(each) for each in (enter(kfake()), enter(librdkafka())) if each]
        for each in found:
            address_leader(each.server)
            _fill(each.server)
        yield found


def _fill(server: Server) -> None:
    frame = produce_frame(_batch(10_000))
    connection = Pipeline(server.address, [frame])
    try:
        for _ in range(FILLING):
            connection.ask(frame)
    finally:
        connection.close()


# ---- probes --------------------------------------------------------------------------------------


def _waits(ask: Callable[[], object], pause: float, until: float) -> list[float]:
    """Return how many milliseconds each of these took."""
    found = []
    while (before := time.perf_counter()) < until:
        ask()
        found.append((time.perf_counter() - before) * 1000)
        time.sleep(pause)
    return found


def _probe(server: Server, until: float) -> list[float]:
    connection = Pipeline(server.address, [PROBE])
    try:
        return _waits(lambda: connection.ask(PROBE), PAUSE, until)
    finally:
        connection.close()


def _control_probe(url: str, until: float) -> list[float]:
    place = urlsplit(url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)

    def ask() -> None:
        connection.request("GET", "/faults")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status

    try:
        return _waits(ask, CONTROL_PAUSE, until)
    finally:
        connection.close()


def _measure(each: Measured, cell: Cell, seconds: float) -> None:
    until = time.perf_counter() + seconds

    def control(url: str) -> None:
        each.note("control", cell, _control_probe(url, until))

    other = None
    if each.control is not None:
        other = threading.Thread(target=control, args=(each.control,))
        other.start()
    each.note("probe", cell, _probe(each.server, until))
    if other is not None:
        other.join()


def measure(rounds: int, seconds: float) -> Section:
    load, kinds = os.getloadavg()[0], _kinds()
    total: dict[str, Measured] = {}
    for _ in range(rounds):
        # New ones in each round: what Produce leaves behind is memory.
        with _servers() as servers:
            for each in servers:
                _measure(each, (NOTHING, 0), seconds)
            for kind, frame in kinds.items():
                for clients in CLIENTS:
                    for each in servers:
                        with flooding(each.server.address, frame, clients) as flood:
                            time.sleep(SETTLING)
                            _measure(each, (kind, clients), seconds)
                        each.rates.setdefault((kind, clients), []).append(flood.rate / 1e6)
            for each in servers:
                total.setdefault(each.server.name, Measured(each.server, each.control)).add(each)
    return _section(list(total.values()), list(kinds), rounds, seconds, load)


# ---- the section ---------------------------------------------------------------------------------


def percentile(values: list[float], share: float) -> float:
    """The value that this share of the others does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _shown(values: list[float] | None) -> str:
    if not values:
        return "-"
    figures = (percentile(values, 0.5), percentile(values, 0.99), max(values))
    return " / ".join(f"{value:,.1f}" for value in figures)


def _section(
    servers: list[Measured], kinds: list[str], rounds: int, seconds: float, load: float
) -> Section:
    cells = [(NOTHING, 0), *((kind, clients) for kind in kinds for clients in CLIENTS)]
    tables = []
    for probe, title in (("probe", "another connection"), ("control", "the control port")):
        shown = [each for each in servers if probe == "probe" or each.control is not None]
        rows = [[f"{title}: p50 / p99 / max, ms", *(each.server.name for each in shown)]]
        for kind, clients in cells:
            beside = kind if not clients else f"{kind}, {clients}"
            found = [_shown(each.waits.get((probe, (kind, clients)))) for each in shown]
            rows.append([beside, *found])
        tables.append(rows)
    rates = [["answers to the flood, MB/s", *(each.server.name for each in servers)]]
    for cell in cells[1:]:
        rates.append([f"{cell[0]}, {cell[1]}"] + [
            f"{statistics.median(each.rates[cell]):,.1f}" if cell in each.rates else "-"
            for each in servers
        ])  # fmt: skip
    return Section(
        title="Fairness",
        reproduce=".venv/bin/python -m benchmarks.bench_fairness",
        text=[
            f"{machine(['confluent-kafka', 'uvloop'])}. How long one request waits beside "
            f"{' and '.join(map(str, CLIENTS))} clients that flood the server with requests of a "
            f"kind and read all answers. {rounds} rounds of {seconds:g} s a cell. The load of the "
            f"machine before the run was {load:.1f}."
        ],
        tables=[*tables, rates],
        marks=_marks(servers, kinds),
        figures={each.server.name: _figures(each) for each in servers},
    )


def _figures(each: Measured) -> dict[str, object]:
    return {
        f"{probe} beside {clients} {kind}": {
            "p50": percentile(found, 0.5), "p99": percentile(found, 0.99), "max": max(found),
            "count": len(found),
        }
        for (probe, (kind, clients)), found in each.waits.items()
    }  # fmt: skip


def _marks(servers: list[Measured], kinds: list[str]) -> list[Mark]:
    """The worst kind of flood counts."""
    names = {"probe": "another connection", "control": "the control port"}
    marks = []
    for each in servers:
        if each.control is None:
            continue
        for (probe, clients), limit in AIMS.items():
            found = [each.waits.get((probe, (kind, clients))) for kind in kinds]
            worst = max((percentile(values, 0.99) for values in found if values), default=None)
            aim = (
                f"{each.server.name}: {names[probe]} within {limit:g} ms (p99) beside {clients} "
                f"flooding client{'s' if clients > 1 else ''}"
            )
            seen = "-" if worst is None else f"{worst:,.1f} ms"
            marks.append(Mark(aim, seen, None if worst is None else worst <= limit))
    return marks


def main() -> None:
    parser = argparse.ArgumentParser(description="What others wait beside clients that flood.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of a cell")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    section = measure(arguments.rounds, arguments.seconds)
    conclude("fairness", section, dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
