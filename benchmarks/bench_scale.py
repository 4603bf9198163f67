"""A large cluster, and many clients for a long time: starts, Metadata, a broker that stops, memory.

Reproduce::

    .venv/bin/python -m benchmarks.bench_scale
    .venv/bin/python -m benchmarks.bench_scale clusters --dry-run
    .venv/bin/python -m benchmarks.bench_scale clients --seconds 60 --dry-run

The first part serves 1,000 brokers with 100,000 partitions in 1,000 topics, and asks for Metadata
of one topic of ten partitions beside a cluster of ten brokers that has this topic alone. Every
answer lists all live brokers, so the large cluster's is larger; "first" is the first answer after
a change of the cluster, "again" that of an equal request. Then a broker of a topic with 10,000
partitions stops, by the control port.

The second part keeps 2,000 connections open (``ulimit -n`` has to allow them): on each of 1,000
partitions one client produces a record a second, and another fetches it with a request that waits.
The partitions may hold 32 MiB together, so that the oldest records go. Every record has to be
acknowledged at the offset that follows the former one, and has to arrive at its offset. A pause is
the longest time from a request to its acknowledgement, of the client in this process, too. Memory
is that of the server's process, once in ten seconds; the log and the journal fill up first, so that
the second half of the run is what has to be flat.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import statistics
import struct
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import kproto
from benchmarks.bench_broker import Server, started
from benchmarks.pipeline import Pipeline
from benchmarks.report import Mark, Section, conclude, machine
from kproto.messages import FetchRequest, MetadataRequest, ProduceRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import Record, build_batch

__all__ = ["Traffic", "drive", "main"]

TOPIC: Final = "bench"
ONE_TOPIC: Final = f"{TOPIC}:10:3"
TOPICS: Final = 1_000
CLIENTS: Final = 1_000
"""Of each kind: producers and consumers."""
SECONDS: Final = 600.0
ASKED: Final = 200
"""Requests for Metadata."""
_SIZE: Final = struct.Struct(">i")
_OFFSET: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT, _BODY_AT, _LAST_DELTA_AT = 8, 12, 23
"""Where a record batch has its length, what the length counts, and its last offset delta."""


# ---- a large cluster -----------------------------------------------------------------------------


@dataclass
class LargeCluster:
    """What was measured of a cluster without traffic; times are in milliseconds."""

    start: float
    start_cpu: float
    first: float
    again: float
    answer_bytes: int
    resident: float


@contextlib.contextmanager
def _serving(*options: str) -> Iterator[tuple[Server, str]]:
    """Run the mock cluster; yield it with the address of its control port."""
    command = ["serve", "--control", "127.0.0.1:0", *options]
    with started([sys.executable, "-m", "mockbroker", *command]) as (process, line):
        shown = json.loads(line)
        host, _, port = shown["bootstrap"].split(",")[0].rpartition(":")
        yield Server("mockbroker", (host, int(port)), process.pid), shown["control"]


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MB, 0 without /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _metadata() -> bytes:
    body = MetadataRequest(
        topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False
    )
    return kproto.encode_request(body, api_version=9, correlation_id=1, client_id="bench")


def _post(control: str, command: str, **arguments: object) -> float:
    """Return the milliseconds that a command takes at the control port."""
    request = urllib.request.Request(
        f"{control}/{command}", json.dumps(arguments).encode(), {"Content-Type": "application/json"}
    )
    began = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1000


def _large_cluster(brokers: int, topics: Sequence[str]) -> LargeCluster:
    options = [option for topic in topics for option in ("--topic", topic)]
    began = time.perf_counter()
    with _serving("--brokers", str(brokers), *options) as (server, control):
        connection = Pipeline(server.address, [_metadata()])
        try:
            answer = connection.ask(_metadata())
            start = (time.perf_counter() - began) * 1000
            start_cpu = (server.processor_seconds() or 0.0) * 1000
            _, body = kproto.decode_response(answer, api_key=3, api_version=9)
            found: Any = body
            assert (len(found.brokers), len(found.topics[0].partitions)) == (brokers, 10)
            first = []
            for number in range(20):
                _post(control, "stop-broker" if number % 2 == 0 else "start-broker", broker=brokers)
                first.append(_asked(connection))
            again = [_asked(connection) for _ in range(ASKED)]
        finally:
            connection.close()
        return LargeCluster(
            start, start_cpu, statistics.median(first), statistics.median(again), len(answer),
            _resident(server.pid),
        )  # fmt: skip


def _asked(connection: Pipeline) -> float:
    began = time.perf_counter()
    connection.ask(_metadata())
    return (time.perf_counter() - began) * 1000


def _stopped_broker(rounds: int) -> tuple[float, float]:
    """Return the milliseconds and the server's processor milliseconds until a broker of 10,000
    partitions has stopped; of several rounds the fastest."""
    taken, cpu = [], []
    for _ in range(rounds):
        with _serving("--brokers", "3", "--topic", f"{TOPIC}:10000:3") as (server, control):
            before = server.processor_seconds() or 0.0
            taken.append(_post(control, "stop-broker", broker=2))
            cpu.append(((server.processor_seconds() or 0.0) - before) * 1000)
    return min(taken), min(cpu)


# ---- many clients --------------------------------------------------------------------------------


@dataclass
class Traffic:
    """What a run of producers and consumers has seen."""

    produced: int = 0
    consumed: int = 0
    problems: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    """Seconds from each Produce request to its acknowledgement."""
    resident: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and the server's memory in MB."""


class _Connection(asyncio.Protocol):
    """One request at a time, and the whole frame of its answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        if len(self._data) < 4 or len(self._data) < 4 + _SIZE.unpack_from(self._data)[0]:
            return
        frame, self._data = self._data, b""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the broker closed: {error}"))

    async def ask(self, frame: bytes) -> bytes:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        return await self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def _connected(address: tuple[str, int]) -> _Connection:
    _, protocol = await asyncio.get_running_loop().create_connection(_Connection, *address)
    return protocol


def _produce(partition: int, batch: bytes) -> bytes:
    body = ProduceRequest(
        acks=-1, timeout_ms=30_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[
            PartitionProduceData(index=partition, records=batch)])],
    )  # fmt: skip
    return kproto.encode_request(body, api_version=7, correlation_id=1, client_id="producer")


def _fetch(partition: int, offset: int) -> bytes:
    body = FetchRequest(
        max_wait_ms=5_000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)])],
    )  # fmt: skip
    return kproto.encode_request(body, api_version=11, correlation_id=1, client_id="consumer")


def _end_of(records: bytes, offset: int) -> int:
    """Return the offset behind whole batches; -1 if they do not begin at ``offset``, or have a
    gap."""
    at = 0
    while at < len(records):
        if _OFFSET.unpack_from(records, at)[0] != offset:
            return -1
        offset += _LENGTH.unpack_from(records, at + _LAST_DELTA_AT)[0] + 1
        at += _BODY_AT + _LENGTH.unpack_from(records, at + _LENGTH_AT)[0]
    return offset


class _Pair:
    """A producer and a consumer of one partition."""

    def __init__(self, traffic: Traffic, partition: int, leader: tuple[str, int]) -> None:
        self._traffic = traffic
        self._partition = partition
        self._leader = leader
        self._acknowledged = 0
        self._ended = False

    async def produce(self, ends: float, interval: float) -> None:
        traffic, partition = self._traffic, self._partition
        connection = await _connected(self._leader)
        batch = build_batch([Record(timestamp=int(time.time() * 1000), value=b"x" * 100)])
        frame = _produce(partition, batch)
        due = time.monotonic() + interval * (partition % 100) / 100
        while due < ends:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            began = time.monotonic()
            answer = await connection.ask(frame)
            traffic.pauses.append(time.monotonic() - began)
            _, body = kproto.decode_response(answer, api_key=0, api_version=7)
            found: Any = body
            row = found.responses[0].partition_responses[0]
            if (row.error_code, row.base_offset) != (0, self._acknowledged):
                traffic.problems.append(f"{partition}: {row}, expected {self._acknowledged}")
            self._acknowledged = row.base_offset + 1
            traffic.produced += 1
            due += interval
        self._ended = True
        connection.close()

    async def consume(self) -> None:
        traffic, partition, offset = self._traffic, self._partition, 0
        connection = await _connected(self._leader)
        while not self._ended or offset < self._acknowledged:
            answer = await connection.ask(_fetch(partition, offset))
            _, body = kproto.decode_response(answer, api_key=1, api_version=11)
            found: Any = body
            row = found.responses[0].partitions[0]
            end = _end_of(row.records or b"", offset)
            if row.error_code or end < 0:
                traffic.problems.append(f"{partition}: fetch at {offset}: {row}")
                break
            traffic.consumed += end - offset
            offset = end
        connection.close()


async def drive(
    addresses: dict[int, tuple[str, int]],
    leaders: Sequence[int],
    *,
    seconds: float,
    interval: float = 1.0,
    pid: int | None = None,
    between: float = 10.0,
) -> Traffic:
    """Produce to each partition once in ``interval`` seconds, and consume it. ``leaders`` are the
    ids of the partitions' leaders; the memory of process ``pid`` is noted now and then."""
    traffic = Traffic()
    began = time.monotonic()
    pairs = [_Pair(traffic, number, addresses[leader]) for number, leader in enumerate(leaders)]
    consumers = [asyncio.create_task(pair.consume()) for pair in pairs]
    producers = [asyncio.create_task(pair.produce(began + seconds, interval)) for pair in pairs]
    watcher = asyncio.create_task(_watch(traffic, began, pid, between))
    try:
        await asyncio.gather(*producers, *consumers)
    finally:
        watcher.cancel()
    return traffic


async def _watch(traffic: Traffic, began: float, pid: int | None, between: float) -> None:
    while pid is not None:
        traffic.resident.append((time.monotonic() - began, _resident(pid)))
        await asyncio.sleep(between)


def _long_run(seconds: float) -> tuple[Traffic, float]:
    """Return what the clients have seen, and the share of a core that the server took."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = ["--log-bytes", "32MiB", "--topic", f"{TOPIC}:{CLIENTS}:3", "--max-connections"]
    with _serving(*options, str(2 * CLIENTS)) as (server, _):
        connection = Pipeline(server.address, [_metadata()])
        _, body = kproto.decode_response(connection.ask(_metadata()), api_key=3, api_version=9)
        connection.close()
        found: Any = body
        addresses = {each.node_id: (each.host, each.port) for each in found.brokers}
        leaders = [each.leader_id for each in found.topics[0].partitions]
        gc.freeze()  # so that the client itself pauses less
        before = server.processor_seconds() or 0.0
        began = time.monotonic()
        traffic = asyncio.run(drive(addresses, leaders, seconds=seconds, pid=server.pid))
        used = (server.processor_seconds() or 0.0) - before
        return traffic, used / (time.monotonic() - began)


# ---- the section ---------------------------------------------------------------------------------


def _load() -> str:
    return f"The load of the machine before the run was {os.getloadavg()[0]:.1f}."


def measure_clusters() -> Section:
    load = _load()
    large = _large_cluster(1_000, [ONE_TOPIC, *(f"t{each}:100:3" for each in range(TOPICS))])
    small = _large_cluster(10, [ONE_TOPIC])
    wall, cpu = _stopped_broker(5)
    rows = [["", "1,000 brokers, 100,010 partitions", "10 brokers, 10 partitions"]]
    for name, values in {
        "start to first Metadata, ms": (large.start, small.start),
        "server's processor time until then, ms": (large.start_cpu, small.start_cpu),
        "Metadata of one topic, first, ms": (large.first, small.first),
        "Metadata of one topic, again, ms": (large.again, small.again),
        "bytes of that answer": (large.answer_bytes, small.answer_bytes),
        "resident memory, MB": (large.resident, small.resident),
    }.items():
        rows.append([name, *(f"{value:,.2f}".removesuffix(".00") for value in values)])
    stop = [
        ["10,000 partitions, three replicas", "ms"],
        ["stop-broker", f"{wall:,.0f}"],
        ["stop-broker, server's processor time", f"{cpu:,.0f}"],
    ]
    return Section(
        title="A large cluster",
        reproduce=".venv/bin/python -m benchmarks.bench_scale clusters",
        text=[f"{machine(['uvloop'])}. {load} Starting and stopping: the fastest of several."],
        tables=[rows, stop],
        marks=_cluster_marks(large, wall),
        figures={"large": vars(large), "small": vars(small), "stopped": [wall, cpu]},
    )


def _cluster_marks(large: LargeCluster, stopped: float) -> list[Mark]:
    start = large.start / 1000
    return [
        Mark(
            "1,000 brokers, 100,000 partitions: start in less than 5 s", f"{start:.2f} s", start < 5
        ),
        Mark(
            "stop-broker with 10,000 partitions: less than 200 ms",
            f"{stopped:,.0f} ms",
            stopped < 200,
        ),
    ]


def measure_clients(seconds: float) -> Section:
    load = _load()
    traffic, share = _long_run(seconds)
    for problem in traffic.problems[:5]:
        print(problem, file=sys.stderr)
    pauses = sorted(traffic.pauses)
    late = [memory for at, memory in traffic.resident if at >= seconds / 2] or [0.0]
    rows = [
        ["2,000 connections", f"{seconds:,.0f} s"],
        ["records produced and acknowledged", f"{traffic.produced:,}"],
        ["records consumed", f"{traffic.consumed:,}"],
        ["lost, repeated or refused", f"{len(traffic.problems):,}"],
        ["acknowledgement, median, ms", f"{statistics.median(pauses) * 1000:,.1f}"],
        ["acknowledgement, 99.9 %, ms", f"{pauses[len(pauses) * 999 // 1000] * 1000:,.1f}"],
        ["acknowledgement, worst, ms", f"{pauses[-1] * 1000:,.1f}"],
        ["server's share of a core", f"{share:.0%}"],
        ["server's memory, second half: least, MB", f"{min(late):,.1f}"],
        ["server's memory, second half: most, MB", f"{max(late):,.1f}"],
    ]
    return Section(
        title="Many clients",
        reproduce=".venv/bin/python -m benchmarks.bench_scale clients",
        text=[f"{machine(['uvloop'])}. {load} The clients run beside the server, in one process."],
        tables=[rows],
        marks=_client_marks(traffic, late),
        figures={
            "share": share, "produced": traffic.produced, "consumed": traffic.consumed,
            "problems": traffic.problems[:100], "worst": pauses[-1], "resident": traffic.resident,
        },
    )  # fmt: skip


def _client_marks(traffic: Traffic, late: Sequence[float]) -> list[Mark]:
    lost = len(traffic.problems) + abs(traffic.produced - traffic.consumed)
    growth = max(late) / min(late) - 1 if min(late) else 0.0
    return [
        Mark("2,000 connections: no answer lost", f"{lost} lost", lost == 0),
        Mark(
            "2,000 connections: memory grows by less than 5 % in the second half",
            f"{growth:.1%}",
            growth < 0.05,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="A large cluster, and many clients.")
    parser.add_argument("part", nargs="?", choices=["clusters", "clients"], help="default: both")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the clients' run")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    if arguments.part != "clients":
        conclude("scale", measure_clusters(), dry_run=arguments.dry_run)
    if arguments.part != "clusters":
        conclude("clients", measure_clients(arguments.seconds), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
