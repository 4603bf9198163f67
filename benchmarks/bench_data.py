"""Producing and consuming beside kfake and librdkafka's mock, with one client for all of them.

Reproduce::

    .venv/bin/python -m benchmarks.bench_data
    .venv/bin/python -m benchmarks.bench_data --rounds 1 --records 20000 --dry-run

The servers run in processes of their own, with three brokers and a topic of four partitions:
mockbroker; franz-go's kfake, which Go builds from ``benchmarks/kfake``; and librdkafka's mock,
which confluent-kafka starts for ``test.mock.num.brokers``. The client is confluent-kafka, in this
process, with acks from all replicas. Consumers read the whole of a topic that nothing else writes
to, and the client's queues take all of it: librdkafka stops fetching a partition for a second once
more than ``queued.min.messages`` (100,000 by default) wait for the application, and then that
second is what is measured. The servers take turns in each round, another one first each
time, so that a machine that slows down slows all of them. Compare the ratios, and only those of a
machine that does nothing else: the section states the load before the run.

"Server µs" is the processor time, user and system, of a server's process for a round trip, or for
1,000,000 bytes of values (Linux). The client is often the limit of a rate, and never of that time.
librdkafka's mock keeps only the last 5 MB of a partition, so it is not read from. Without Go, kfake
is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.bench_broker import PARTITIONS, TOPIC, Server, librdkafka, mockbroker, serving
from benchmarks.report import Mark, Section, conclude, machine
from kproto.builds import built, run
from kspec.runner import toolchains

__all__ = ["main"]

RECORDS: Final = 300_000
ROUND_TRIPS: Final = 2_000
VALUE: Final = b"x" * 100
READ_TOPIC: Final = "read"
"""What consumers read; it has exactly the records of one turn."""
PATIENCE: Final = 120.0
ROUND_TRIP, PRODUCE, IDEMPOTENT, CONSUME = "round trip", "produce", "idempotent", "consume"
KFAKE: Final = Path(__file__).resolve().parent / "kfake"

Turn = Callable[[Server, int], float]


@contextlib.contextmanager
def kfake() -> Iterator[Server | None]:
    """Start kfake; None if there is no Go to build it."""
    if toolchains.missing(["go"]):
        yield None
        return
    files = sorted(KFAKE.glob("*"))

    def build(folder: Path) -> None:
        run(["go", "build", "-trimpath", "-o", str(folder / "kfake"), "."], cwd=KFAKE)

    versions = [toolchains.find("go") or ""]
    folder = built("benchmarks/kfake", [*(file.read_text() for file in files), *versions], build)
    command = [str(folder / "kfake"), str(PARTITIONS), TOPIC, READ_TOPIC]
    with serving("kfake", command) as server:
        yield server


# ---- turns ---------------------------------------------------------------------------------------


def _producer(server: Server, **configs: object) -> Producer:
    host, port = server.address
    return Producer(
        {
            "bootstrap.servers": f"{host}:{port}",
            "acks": "all",
            "queue.buffering.max.messages": 2 * RECORDS,
            "log_level": 0,
            **configs,
        }
    )


def _warm_up(producer: Producer) -> None:
    """Connect to the leader of each partition."""
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, VALUE, partition=partition)
    assert producer.flush(PATIENCE) == 0, "the server does not answer"


def _round_trip(server: Server, _records: int) -> float:
    """Return the median microseconds from a record to its acknowledgement."""
    producer = _producer(server, **{"linger.ms": 0})
    _warm_up(producer)
    taken = []
    for number in range(ROUND_TRIPS):
        began = time.perf_counter_ns()
        producer.produce(TOPIC, VALUE, partition=number % PARTITIONS)
        assert producer.flush(PATIENCE) == 0
        taken.append(time.perf_counter_ns() - began)
    return statistics.median(taken) / 1000


def _produced(server: Server, records: int, topic: str = TOPIC, **configs: object) -> float:
    """Return records a second."""
    failed: list[object] = []

    def delivered(error: object, _message: object) -> None:
        failed.append(error)

    # Only failures report: a call into Python for each record would be most of what is measured.
    reports = {"on_delivery": delivered, "delivery.report.only.error": True}
    producer = _producer(server, **{"linger.ms": 5, **reports, **configs})
    if topic == TOPIC:
        _warm_up(producer)
    began = time.perf_counter()
    for number in range(records):
        producer.produce(topic, VALUE, partition=number % PARTITIONS)
        if not number % 10_000:
            producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    assert not failed, failed
    return records / (time.perf_counter() - began)


def _produce(server: Server, records: int) -> float:
    return _produced(server, records)


def _produce_idempotently(server: Server, records: int) -> float:
    configs: dict[str, object] = {"enable.idempotence": True}
    return _produced(server, records, TOPIC, **configs)


def _consume(server: Server, records: int) -> float:
    """Return records a second, from the first record to the last."""
    host, port = server.address
    consumer = Consumer(
        {
            "bootstrap.servers": f"{host}:{port}",
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 10_000_000,
            "queued.max.messages.kbytes": 2_000_000,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(READ_TOPIC, index, 0) for index in range(PARTITIONS)])
        assert consumer.consume(1, PATIENCE), "the server does not answer"
        seen, deadline = 1, time.monotonic() + PATIENCE
        began = time.perf_counter()
        while seen < records:
            found = consumer.consume(min(10_000, records - seen), 1.0)
            assert all(each.error() is None for each in found), found[0].error()
            seen += len(found)
            assert time.monotonic() < deadline, f"{seen} of {records} records came"
        return seen / (time.perf_counter() - began)
    finally:
        consumer.close()


TURNS: Final[dict[str, Turn]] = {
    ROUND_TRIP: _round_trip,
    PRODUCE: _produce,
    IDEMPOTENT: _produce_idempotently,
    CONSUME: _consume,
}


def _take_turn(name: str, server: Server, records: int) -> None:
    before = server.processor_seconds()
    server.rates.setdefault(name, []).append(TURNS[name](server, records))
    after = server.processor_seconds()
    if before is not None and after is not None:
        units = ROUND_TRIPS if name == ROUND_TRIP else records * len(VALUE) / 1e6
        server.cpu.setdefault(name, []).append((after - before) * 1e6 / units)


# ---- the section ---------------------------------------------------------------------------------


def measure(rounds: int, records: int) -> Section:
    load = os.getloadavg()[0]
    read = ["--topic", f"{READ_TOPIC}:{PARTITIONS}:3"]
    with mockbroker(*read) as ours, librdkafka() as theirs, kfake() as built_kfake:
        servers = [each for each in (ours, built_kfake, theirs) if each is not None]
        for server in servers:
            if server is not theirs:
                _produced(server, records, READ_TOPIC)
        for number in range(rounds):
            for name in TURNS:
                first = number % len(servers)
                for server in servers[first:] + servers[:first]:
                    if name != CONSUME or server is not theirs:
                        _take_turn(name, server, records)
    return _section(servers, rounds, records, load)


def _median(server: Server, name: str) -> float:
    return statistics.median(server.rates[name])


def _section(servers: Sequence[Server], rounds: int, records: int, load: float) -> Section:
    rows = [["median of turns", "µs or records/s", "least", "most", "server µs"]]
    for name in TURNS:
        for server in servers:
            if name in server.rates:
                seen = server.rates[name]
                values = (statistics.median(seen), min(seen), max(seen))
                cpu = f"{statistics.median(server.cpu[name]):,.0f}" if name in server.cpu else "-"
                figures = [f"{value:,.0f}" for value in values]
                rows.append([f"{name}, {server.name}", *figures, cpu])
    by_name = {server.name: server for server in servers}
    return Section(
        title="Producing and consuming",
        reproduce=".venv/bin/python -m benchmarks.bench_data",
        text=[
            f"{machine(['confluent-kafka', 'uvloop'])}. {records:,} records of {len(VALUE)} bytes "
            f"in a turn, {ROUND_TRIPS:,} round trips, {PARTITIONS} partitions, three brokers, "
            f"{rounds} interleaved turns. The load of the machine before the run was {load:.1f}."
        ],
        tables=[rows],
        marks=_marks(by_name),
        figures={
            server.name: {"turns": server.rates, "server_us": server.cpu} for server in servers
        },
    )


def _marks(servers: dict[str, Server]) -> list[Mark]:
    """Compare with kfake, or with the better of the others. Round trips are better the shorter."""
    ours = servers["mockbroker"]
    others = [server for name, server in servers.items() if name != "mockbroker"]
    marks = []
    for name in (PRODUCE, IDEMPOTENT):
        ratio = _median(ours, name) / max(_median(server, name) for server in others)
        aim = f"{name}: at least 0.95x the better of the others"
        marks.append(Mark(aim, f"{ratio:.2f}x", ratio >= 0.95))
    if "kfake" not in servers:
        aims = ("round trip: at most 1.3x kfake's", "consume: at least 1.2x kfake's rate")
        return marks + [Mark(aim, "-", None) for aim in aims]
    kfake_server = servers["kfake"]
    ratio = _median(ours, ROUND_TRIP) / _median(kfake_server, ROUND_TRIP)
    marks.append(Mark("round trip: at most 1.3x kfake's", f"{ratio:.2f}x", ratio <= 1.3))
    ratio = _median(ours, CONSUME) / _median(kfake_server, CONSUME)
    marks.append(Mark("consume: at least 1.2x kfake's rate", f"{ratio:.2f}x", ratio >= 1.2))
    for name in (PRODUCE, IDEMPOTENT, CONSUME):
        if name in ours.cpu and name in kfake_server.cpu:
            ratio = statistics.median(ours.cpu[name]) / statistics.median(kfake_server.cpu[name])
            aim = f"{name}: at most kfake's processor time a MB"
            marks.append(Mark(aim, f"{ratio:.2f}x", ratio <= 1))
    return marks


def main() -> None:
    parser = argparse.ArgumentParser(description="Producing and consuming, side by side.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    section = measure(arguments.rounds, arguments.records)
    conclude("data", section, dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
