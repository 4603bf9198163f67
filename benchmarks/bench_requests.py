"""Requests of data clients without a client: bytes a second, delays, idle groups, memory, starts.

Reproduce::

    .venv/bin/python -m benchmarks.bench_requests
    .venv/bin/python -m benchmarks.bench_requests --rounds 1 --dry-run

mockbroker, franz-go's kfake and librdkafka's mock run as in ``bench_data`` and take turns. Frames
are made beforehand and sent on one connection, four in flight, so the rates are the servers' own;
"server µs" is the processor time of a server's process for 1,000,000 bytes of batches. Fetch reads
the first 1 MiB of a partition again and again; librdkafka's mock, which keeps 5 MB of a partition,
is left out. "End to end" is the time from sending Produce to receiving the answer to a Fetch that
waits on another connection. Heartbeats are those of 1,000 members in groups of ten, one in three
seconds each. Memory is that of a process that only holds a cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import kproto
from benchmarks.bench_broker import TOPIC, Server, librdkafka, mockbroker
from benchmarks.bench_data import kfake
from benchmarks.group_members import Group, form
from benchmarks.pipeline import Pipeline
from benchmarks.report import Mark, Section, conclude, machine
from kproto.messages import FetchRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import Record, build_batch

__all__ = ["address_leader", "fetch_frame", "main", "produce_frame"]

DEPTH: Final = 4
PARTITION: Final = 0
BATCHES: Final = {"1 record": 100, "16 kB": 16_000, "64 kB": 64_000, "1 MB": 950_000}
"""Bytes of values in a batch, in records of 100."""
TURN_BYTES: Final = 16_000_000
LEAST, MOST = 40, 3_000
"""Requests in a turn."""
FETCHES: Final = 100
END_TO_END: Final = 300
GROUPS, MEMBERS, INTERVAL, SECONDS = 100, 10, 3.0, 12.0
DELAY: Final = "group.initial.rebalance.delay.ms=0"
FETCH, DELAYS, IDLE = "fetch", "end to end", "heartbeats"


def produce_frame(data: bytes) -> bytes:
    """A Produce of one batch to the partition."""
    body = ProduceRequest(
        acks=1, timeout_ms=30_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[
            PartitionProduceData(index=PARTITION, records=data)])],
    )  # fmt: skip
    return kproto.encode_request(body, api_version=7, correlation_id=1, client_id="bench")


def fetch_frame(offset: int, wait_ms: int = 0, most: int = 1 << 20) -> bytes:
    """A Fetch of ``most`` bytes of the partition."""
    body = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=50 << 20, session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(
            partition=PARTITION, fetch_offset=offset, partition_max_bytes=most)])],
    )  # fmt: skip
    return kproto.encode_request(body, api_version=11, correlation_id=1, client_id="bench")


def _batch(size: int) -> bytes:
    now_ms = int(time.time() * 1000)
    records = [Record(timestamp=now_ms, value=b"x" * 100) for _ in range(max(size // 100, 1))]
    return build_batch(records)


def _ask(connection: Pipeline, frame: bytes, api_key: int, version: int) -> Any:
    _, body = kproto.decode_response(connection.ask(frame), api_key=api_key, api_version=version)
    return body


def address_leader(server: Server) -> None:
    """Make the address that of the leader of the partition, which librdkafka's mock draws."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    frame = kproto.encode_request(body, api_version=1, correlation_id=1, client_id="bench")
    connection = Pipeline(server.address, [frame])
    try:
        found = _ask(connection, frame, 3, 1)
    finally:
        connection.close()
    leaders = {each.partition_index: each.leader_id for each in found.topics[0].partitions}
    ports = {each.node_id: each.port for each in found.brokers}
    server.address = (server.address[0], ports[leaders[PARTITION]])


# ---- turns ---------------------------------------------------------------------------------------


def _run(server: Server, name: str, frame: bytes, requests: int, size: int) -> None:
    """Note MB a second, and the server's microseconds a MB; ``size`` is that of a request."""
    connection = Pipeline(server.address, [frame] * DEPTH)
    try:
        connection.ask(frame)
        before = server.processor_seconds()
        outcome = connection.run(requests)
        after = server.processor_seconds()
    finally:
        connection.close()
    server.rates.setdefault(name, []).append(outcome.rate * size / 1e6)
    if before is not None and after is not None:
        server.cpu.setdefault(name, []).append((after - before) * 1e6 / (requests * size / 1e6))


def _produce(server: Server, name: str) -> None:
    data = _batch(BATCHES[name])
    frame = produce_frame(data)
    connection = Pipeline(server.address, [frame])
    try:
        answer = _ask(connection, frame, 0, 7)
    finally:
        connection.close()
    assert answer.responses[0].partition_responses[0].error_code == 0, (server.name, answer)
    requests = min(max(TURN_BYTES // len(data), LEAST), MOST)
    _run(server, f"produce, {name}", frame, requests, len(data))


def _fetch(server: Server) -> None:
    frame = fetch_frame(0)
    connection = Pipeline(server.address, [frame])
    try:
        answer = _ask(connection, frame, 1, 11)
    finally:
        connection.close()
    size = len(answer.responses[0].partitions[0].records)
    assert size > 500_000, f"{server.name}: only {size} bytes came"
    _run(server, FETCH, frame, FETCHES, size)


def _end_offset(connection: Pipeline) -> int:
    body = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[
            ListOffsetsPartition(partition_index=PARTITION, timestamp=-1)])],
    )  # fmt: skip
    frame = kproto.encode_request(body, api_version=1, correlation_id=1, client_id="bench")
    return int(_ask(connection, frame, 2, 1).topics[0].partitions[0].offset)


def _end_to_end(server: Server) -> None:
    """Note the median microseconds from a record to the fetch that waited for it."""
    frame = produce_frame(_batch(100))
    producer, consumer = Pipeline(server.address, [frame]), Pipeline(server.address, [frame])
    taken = []
    try:
        end = _end_offset(consumer)
        for offset in range(end, end + END_TO_END):
            consumer.send(fetch_frame(offset, wait_ms=30_000))
            time.sleep(0.001)  # until it waits
            began = time.perf_counter_ns()
            producer.send(frame)
            consumer.receive()
            taken.append(time.perf_counter_ns() - began)
            producer.receive()
    finally:
        producer.close()
        consumer.close()
    server.rates.setdefault(DELAYS, []).append(statistics.median(taken) / 1000)


async def _idle_groups(server: Server) -> None:
    """Note the share of one core that heartbeats take."""
    groups = [Group(f"idle-{number}", MEMBERS) for number in range(GROUPS)]
    await form(groups, server.address)
    before = server.processor_seconds()
    await asyncio.gather(*(group.heartbeats(SECONDS, INTERVAL) for group in groups))
    after = server.processor_seconds()
    for group in groups:
        group.close()
    if before is not None and after is not None:
        server.rates.setdefault(IDLE, []).append((after - before) / SECONDS * 100)


# ---- mockbroker alone ----------------------------------------------------------------------------


MEMORY: Final = """
import json, os
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import read_header
from kproto.records import Record, build_batch

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def batch(size):
    return build_batch([Record(timestamp=1, value=b"x" * 100) for _ in range(size // 100)])

made = {"16 kB": batch(16_000), "300 kB": batch(300_000)}
first = Cluster(1, topics=["first:1:1"])
first.logs.append(("first", 0), made["16 kB"], read_header(made["16 kB"]))
before = resident()
cluster = Cluster(1, topics=["empty:1000:1"])
empty = resident() - before
for index in range(1000):
    cluster.logs.data(("empty", index))
logs = resident() - before
figures = {"1,000 partitions, MB": empty / 1e6, "their logs, MB": logs / 1e6}
for name, data in made.items():
    before, stored = resident(), 0
    while stored < 64_000_000:
        sent = bytes(bytearray(data))  # each request brings bytes of its own
        cluster.logs.append(("empty", 0), sent, read_header(sent))
        stored += len(sent)
    figures[name] = (resident() - before) / stored
print(json.dumps(figures))
"""

STARTS: Final = """
import asyncio, time
from mockbroker import MockCluster

async def main():
    async with MockCluster(brokers=3):
        pass
    began = time.perf_counter()
    for _ in range(100):
        async with MockCluster(brokers=3):
            pass
    print((time.perf_counter() - began) * 10_000)

asyncio.run(main())
"""


def _output(script: str) -> str:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _first_metadata() -> float:
    """Return the milliseconds from starting the command to the first answer to Metadata."""
    began = time.perf_counter()
    with mockbroker() as server:
        address_leader(server)
        return (time.perf_counter() - began) * 1000


async def _formed(server: Server, round_number: int) -> tuple[float, float]:
    """Return the milliseconds that a group of three takes, and 100 groups of ten."""
    three = [Group(f"three-{round_number}", 3)]
    many = [Group(f"many-{round_number}-{number}", MEMBERS) for number in range(GROUPS)]
    taken = []
    for groups in (three, many):
        taken.append(await form(groups, server.address) * 1000)
        for group in groups:
            group.close()
    return taken[0], taken[1]


def _alone(rounds: int) -> dict[str, float]:
    memory = json.loads(_output(MEMORY)) if os.path.exists("/proc/self/statm") else {}
    figures = {f"memory, {name}": value for name, value in memory.items()}
    figures["start to Metadata"] = min(_first_metadata() for _ in range(rounds))
    figures["1,000 clusters"] = float(_output(STARTS))
    with mockbroker("--broker-config", DELAY) as server:
        formed = [asyncio.run(_formed(server, number)) for number in range(rounds)]
    figures["group of 3"] = min(each[0] for each in formed)
    figures["100 groups of 10"] = min(each[1] for each in formed)
    return figures


# ---- the section ---------------------------------------------------------------------------------


def measure(rounds: int) -> Section:
    load = os.getloadavg()[0]
    with mockbroker() as ours, librdkafka() as theirs, kfake() as built_kfake:
        servers = [each for each in (ours, built_kfake, theirs) if each is not None]
        for server in servers:
            address_leader(server)
        for number in range(rounds):
            first = number % len(servers)
            turns = servers[first:] + servers[:first]
            for name in BATCHES:
                for server in turns:
                    _produce(server, name)
            for server in turns:
                if server is not theirs:
                    _fetch(server)
                    _end_to_end(server)
        for server in servers:
            if server is not theirs:
                asyncio.run(_idle_groups(server))
    return _section(servers, _alone(min(rounds, 3)), rounds, load)


def _section(
    servers: Sequence[Server], alone: dict[str, float], rounds: int, load: float
) -> Section:
    names = [*(f"produce, {name}" for name in BATCHES), FETCH]
    rates = [["median of turns", "MB/s", "server µs a MB"]]
    for name in names:
        for server in servers:
            if name in server.rates:
                cpu = f"{statistics.median(server.cpu[name]):,.0f}" if name in server.cpu else "-"
                rate = f"{statistics.median(server.rates[name]):,.1f}"
                rates.append([f"{name}, {server.name}", rate, cpu])
    others = [["mock clusters", *(server.name for server in servers)]]
    for name, unit in ((DELAYS, "µs"), (IDLE, "% of a core")):
        row = [
            f"{statistics.median(s.rates[name]):,.1f}" if name in s.rates else "-" for s in servers
        ]
        others.append([f"{name}, {unit}", *row])
    ours = [["mockbroker alone", ""]] + [[name, f"{value:,.2f}"] for name, value in alone.items()]
    return Section(
        title="Requests of data clients",
        reproduce=".venv/bin/python -m benchmarks.bench_requests",
        text=[
            f"{machine(['uvloop'])}. One connection, {DEPTH} requests in flight, three brokers, "
            f"{rounds} interleaved turns. Starts and groups are in milliseconds, stored batches in "
            "bytes of memory a byte. The load of the machine before the run was "
            f"{load:.1f}."
        ],
        tables=[rates, others, ours],
        marks=_marks({server.name: server for server in servers}, alone),
        figures={
            "alone": alone,
            **{server.name: {"turns": server.rates, "server_us": server.cpu} for server in servers},
        },
    )


def _marks(servers: dict[str, Server], alone: dict[str, float]) -> list[Mark]:
    ours, other = servers["mockbroker"], servers.get("kfake")

    def rate(server: Server, name: str) -> float:
        return statistics.median(server.rates[name])

    def most(aim: str, value: float | None, limit: float, unit: str) -> Mark:
        seen = "-" if value is None else f"{value:,.2f} {unit}"
        return Mark(aim, seen, None if value is None else value <= limit)

    produced, fetched = rate(ours, "produce, 1 MB"), rate(ours, FETCH)
    marks = [
        Mark("produce, 1 MB: at least 300 MB/s", f"{produced:,.0f} MB/s", produced >= 300),
        Mark("fetch: at least 1,000 MB/s", f"{fetched:,.0f} MB/s", fetched >= 1000),
    ]
    if other is not None:
        for name, least in (("produce, 1 record", 0.5), ("produce, 64 kB", 1.0)):
            ratio = rate(ours, name) / rate(other, name)
            aim = f"{name}: at least {least}x kfake's rate"
            marks.append(Mark(aim, f"{ratio:.2f}x", ratio >= least))
        for name in ("produce, 16 kB", "produce, 64 kB", "produce, 1 MB", FETCH):
            if name in ours.cpu and name in other.cpu:
                ratio = statistics.median(ours.cpu[name]) / statistics.median(other.cpu[name])
                aim = f"{name}: at most kfake's processor time a MB"
                marks.append(Mark(aim, f"{ratio:.2f}x", ratio <= 1))
    idle = rate(ours, IDLE) if IDLE in ours.rates else None
    return [
        *marks,
        most("end to end with a waiting fetch: at most 500 µs", rate(ours, DELAYS), 500, "µs"),
        most("1,000 idle members: less than 5 % of a core", idle, 5, "%"),
        most("stored batches of 16 kB: at most 1.1", alone.get("memory, 16 kB"), 1.1, ""),
        most("stored batches of 300 kB: at most 1.1", alone.get("memory, 300 kB"), 1.1, ""),
        most(
            "1,000 empty partitions: at most 20 MB", alone.get("memory, their logs, MB"), 20, "MB"
        ),
        most("start to first Metadata: at most 300 ms", alone["start to Metadata"], 300, "ms"),
        most("1,000 clusters: at most a minute", alone["1,000 clusters"] / 1000, 60, "s"),
        most("a group of 3: at most 50 ms", alone["group of 3"], 50, "ms"),
        most("100 groups of 10: at most 2 s", alone["100 groups of 10"] / 1000, 2, "s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Requests of data clients, without a client.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    conclude("requests", measure(arguments.rounds), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
