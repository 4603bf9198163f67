"""Requests a second of the mock cluster beside librdkafka's: one connection, 32 in flight.

Reproduce::

    .venv/bin/python -m benchmarks.bench_broker
    .venv/bin/python -m benchmarks.bench_broker --rounds 3 --dry-run

Both servers run in processes of their own, with three brokers and the same topic; librdkafka's is
the one confluent-kafka starts for ``test.mock.num.brokers``. One client, the same code for both,
takes turns between them. Versions are the highest both advertise, so both read the same bytes.
"Server µs" is the processor time, user and system, of the server's process a request (Linux).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import kproto
from benchmarks.pipeline import Pipeline
from benchmarks.report import Mark, Section, conclude, machine
from kproto.messages import ApiVersionsRequest, MetadataRequest, ResponseHeader
from kproto.messages.metadata_request import MetadataRequestTopic

__all__ = [
    "PARTITIONS",
    "TOPIC",
    "Server",
    "librdkafka",
    "main",
    "mockbroker",
    "serving",
    "started",
]

DEPTH = 32
REQUESTS = 20_000
TOPIC = "bench"
PARTITIONS = 4
APIS = {"ApiVersions": 18, "Metadata": 3}
HIGHEST = {"ApiVersions": 3, "Metadata": 9}
"""The highest versions to use: those that clients commonly send, and that both servers support."""

_SCHEDULED = 2
"""Names the clock of a process that counts user and system time (``CPUCLOCK_SCHED``)."""

LIBRDKAFKA = f"""
import sys, time
from confluent_kafka import Producer
producer = Producer({{"test.mock.num.brokers": 3, "log_level": 0}})
seen = producer.list_topics({TOPIC!r}, timeout=30)
deadline = time.monotonic() + 30
while seen.topics[{TOPIC!r}].error is not None and time.monotonic() < deadline:
    time.sleep(0.1)
    seen = producer.list_topics({TOPIC!r}, timeout=30)
broker = seen.brokers[min(seen.brokers)]
print(f"{{broker.host}}:{{broker.port}}", flush=True)
sys.stdin.read()
"""


@dataclass
class Server:
    """A running server: the address of its first broker, and its process."""

    name: str
    address: tuple[str, int]
    pid: int
    rates: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)

    def processor_seconds(self) -> float | None:
        """Return user and system time so far; None where only Linux has such a clock.

        The clock of the process counts nanoseconds; /proc counts ticks of 10 ms, which is a third
        of what some turns take.
        """
        if not sys.platform.startswith("linux"):
            return None
        return time.clock_gettime((~self.pid << 3) | _SCHEDULED)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the server ended before it was up; its error is above")
    return line


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server, which ends when its standard input is closed; yield its first line, too."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process, _first_line(process)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    return host, int(port)


@contextlib.contextmanager
def serving(name: str, command: list[str]) -> Iterator[Server]:
    """Run a server that prints the addresses of its brokers, separated by commas."""
    with started(command) as (process, line):
        yield Server(name, _address(line.split(",")[0]), process.pid)


def librdkafka() -> contextlib.AbstractContextManager[Server]:
    """Run librdkafka's mock cluster."""
    return serving("librdkafka", [sys.executable, "-c", LIBRDKAFKA])


@contextlib.contextmanager
def mockbroker(*options: str) -> Iterator[Server]:
    """Run this project's mock cluster, with further options of ``mockbroker serve``."""
    serve = ["serve", "--brokers", "3", "--topic", f"{TOPIC}:{PARTITIONS}:3", *options]
    with started([sys.executable, "-m", "mockbroker", *serve]) as (process, line):
        first = json.loads(line)["bootstrap"].split(",")[0]
        yield Server("mockbroker", _address(first), process.pid)


def _body(api: str) -> Any:
    if api == "ApiVersions":
        return ApiVersionsRequest(client_software_name="benchmark", client_software_version="1")
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False
    )


def _frames(api: str, version: int) -> list[bytes]:
    return [
        kproto.encode_request(
            _body(api), api_version=version, correlation_id=number, client_id="benchmark"
        )
        for number in range(DEPTH)
    ]


def _versions(server: Server) -> dict[str, int]:
    """Return the highest version of each API key that ``server`` advertises."""
    frames = _frames("ApiVersions", 0)
    pipeline = Pipeline(server.address, frames)
    try:
        answer = pipeline.ask(frames[0])
    finally:
        pipeline.close()
    body: Any
    _, body = kproto.decode_response(answer, api_key=18, api_version=0)
    ranges = {key.api_key: key.max_version for key in body.api_keys}
    return {api: ranges[key] for api, key in APIS.items()}


def _check(api: str, version: int, answer: bytes) -> None:
    """Check that a response is right, before any are counted."""
    found = kproto.dialect("kafka").api(APIS[api], version)
    _, at = ResponseHeader.decode_from(answer, found.response_header_version(version), 4)
    body: Any
    body, end = found.response.decode_from(answer, version, at)
    # Not strict: librdkafka's mock ends a flexible Metadata with one byte too many.
    assert len(answer) - end <= 1, answer
    if api == "ApiVersions":
        assert body.error_code == 0
        return
    (topic,) = body.topics
    assert (topic.error_code, topic.name) == (0, TOPIC), topic
    assert (len(body.brokers), len(topic.partitions)) == (3, PARTITIONS), body


def _turn(server: Server, api: str, version: int) -> None:
    frames = _frames(api, version)
    pipeline = Pipeline(server.address, frames)
    try:
        answer = pipeline.ask(frames[0])
        _check(api, version, answer)
        server.answers[api] = len(answer)
        assert pipeline.correlation_ids() == list(range(DEPTH))
        pipeline.run(REQUESTS // 10)
        before = server.processor_seconds()
        outcome = pipeline.run(REQUESTS)
        after = server.processor_seconds()
    finally:
        pipeline.close()
    server.rates.setdefault(api, []).append(outcome.rate)
    if before is not None and after is not None:
        server.cpu.setdefault(api, []).append((after - before) * 1e6 / REQUESTS)


def measure(rounds: int) -> Section:
    with mockbroker() as ours, librdkafka() as theirs:
        servers = [ours, theirs]
        shown = [_versions(server) for server in servers]
        versions = {api: min(HIGHEST[api], *(versions[api] for versions in shown)) for api in APIS}
        for _ in range(rounds):
            for api in APIS:
                for server in servers:
                    _turn(server, api, versions[api])
    return _section(ours, theirs, versions, rounds)


def _section(ours: Server, theirs: Server, versions: dict[str, int], rounds: int) -> Section:
    rows = [["requests per second", "response, bytes", "fastest", "median", "server µs"]]
    marks = []
    for api, version in versions.items():
        for server in (ours, theirs):
            cpu = f"{min(server.cpu[api]):.1f}" if api in server.cpu else "-"
            rows.append(
                [f"{api} v{version}, {server.name}", str(server.answers[api]),
                 f"{max(server.rates[api]):,.0f}", f"{statistics.median(server.rates[api]):,.0f}",
                 cpu]
            )  # fmt: skip
        seen = max(ours.rates[api]) / max(theirs.rates[api])
        marks.append(
            Mark(f"{api}: at least librdkafka's rate (fastest turns)", f"{seen:.2f}x", seen >= 1)
        )
    return Section(
        title="Mock broker",
        reproduce=".venv/bin/python -m benchmarks.bench_broker",
        text=[
            f"{machine(['confluent-kafka', 'uvloop'])}. One connection on loopback with {DEPTH} "
            f"requests in flight, {REQUESTS:,} requests per turn, {rounds} interleaved turns, "
            f"three brokers, one topic of {PARTITIONS} partitions."
        ],
        tables=[rows],
        marks=marks,
        figures={
            server.name: {"rates": server.rates, "server_us": server.cpu, "bytes": server.answers}
            for server in (ours, theirs)
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Mock brokers side by side.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    conclude("broker", measure(arguments.rounds), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
