"""``mockbroker proxy`` beside a plain asyncio TCP proxy and Toxiproxy: what each adds to a round
trip, and what passes through it a second.

Reproduce::

    .venv/bin/python -m benchmarks.bench_proxy
    .venv/bin/python -m benchmarks.bench_proxy --rounds 3 --dry-run

An upstream of ours answers every request at once (``proxy_peers``), so that the proxy is what is
measured. All run in processes of their own, and take turns in one run; "direct" is without a proxy.
The plain proxy copies bytes and knows nothing of Kafka; like ours it runs on uvloop. Round trips
are those of one connection with one request at a time. Toxiproxy (without toxics) is built by Go,
and left out where there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import kproto
from benchmarks.bench_broker import Server, serving
from benchmarks.proxy_peers import FETCHED_BYTES
from benchmarks.report import Mark, Section, conclude, machine
from kproto.messages.fetch_request import FetchRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

ROUND_TRIPS: Final = 3_000
PIPELINED: Final = 20_000
BATCHES: Final = 8_000
FETCHES: Final = 300
DEPTH: Final = 32
BATCH: Final = 16 * 1024
TOXIPROXY: Final = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"

AIM_ADDED: Final = 1.5
AIM_THROUGHPUT: Final = 0.8
GOAL_ADDED_US: Final = 150.0
GOAL_MB: Final = 300.0
GOAL_REQUESTS: Final = 20_000.0


@dataclass
class Way:
    """A way to the upstream, and what was measured on it, by workload."""

    server: Server
    median_us: list[float] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """``count`` requests, ``DEPTH`` in flight; ``size`` bytes of each are payload."""

    name: str
    frame: bytes
    count: int
    size: int
    depth: int = DEPTH


def _frame(body: Any, version: int) -> bytes:
    return kproto.encode_request(body, api_version=version, correlation_id=1, client_id="bench")


def _workloads() -> list[Workload]:
    data = [PartitionProduceData(index=0, records=b"r" * BATCH)]
    produce = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    return [
        Workload("small requests", _frame(HeartbeatRequest(group_id="g"), 4), PIPELINED, 0),
        Workload("Produce v9, 16 kB", _frame(produce, 9), BATCHES, BATCH),
        Workload("Produce v12, 16 kB", _frame(produce, 12), BATCHES, BATCH),
        Workload("Fetch v12, 1 MB", _frame(FetchRequest(), 12), FETCHES, FETCHED_BYTES, 4),
        Workload("Fetch v17, 1 MB", _frame(FetchRequest(), 17), FETCHES, FETCHED_BYTES, 4),
    ]


# ---- the proxies ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _ours(upstream: Server, detail: str) -> Iterator[Server]:
    host, port = upstream.address
    command = [
        sys.executable, "-m", "mockbroker", "proxy", "--upstream", f"{host}:{port}",
        "--journal-detail", detail,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())["bootstrap"]
        bound, _, number = first.rpartition(":")
        yield Server(f"mockbroker proxy, {detail}", (bound, int(number)), process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _peer(*words: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.proxy_peers", *words]


@contextlib.contextmanager
def _toxiproxy(upstream: Server) -> Iterator[Server | None]:
    """Toxiproxy, or None where it cannot be built."""
    from kproto.builds import built
    from kproto.builds import run as run_installer
    from kspec.runner import toolchains

    go = toolchains.find("go")
    if go is None:
        yield None
        return
    folder = built(
        "suites/toxiproxy",
        [TOXIPROXY, go],
        lambda into: run_installer(
            ["go", "install", TOXIPROXY], cwd=into, environment={"GOBIN": str(into)}
        ),
    )
    control, listener = _free_port(), _free_port()
    process = subprocess.Popen(
        [str(folder / "server"), "-port", str(control)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        host, port = upstream.address
        proxy = {"name": "bench", "listen": f"127.0.0.1:{listener}",
                 "upstream": f"{host}:{port}", "enabled": True}  # fmt: skip
        request = urllib.request.Request(
            f"http://127.0.0.1:{control}/proxies", json.dumps(proxy).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(request, timeout=5).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield Server("Toxiproxy", ("127.0.0.1", listener), process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# ---- measuring -----------------------------------------------------------------------------------


def _dial(way: Way) -> socket.socket:
    found = socket.create_connection(way.server.address, timeout=60)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def _receive(from_: socket.socket, count: int) -> None:
    """Read this many bytes."""
    buffer = bytearray(1 << 18)
    while count:
        got = from_.recv_into(buffer, min(count, len(buffer)))
        if not got:
            raise RuntimeError("the connection ended")
        count -= got


def _answer_size(way: Way, frame: bytes) -> int:
    with _dial(way) as line:
        line.sendall(frame)
        size = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big")
        _receive(line, size)
        return size + 4


def _round_trips(way: Way, frame: bytes) -> None:
    answer = _answer_size(way, frame)
    times = []
    with _dial(way) as line:
        for number in range(ROUND_TRIPS + 200):
            before = time.perf_counter()
            line.sendall(frame)
            _receive(line, answer)
            if number >= 200:
                times.append(time.perf_counter() - before)
    way.median_us.append(statistics.median(times) * 1e6)


def _run(way: Way, workload: Workload) -> None:
    answer = _answer_size(way, workload.frame)
    burst = workload.frame * workload.depth
    with _dial(way) as line:
        line.sendall(burst)
        _receive(line, answer * workload.depth)
        cpu = way.server.processor_seconds()
        began = time.perf_counter()
        line.sendall(burst)
        # Half a burst at a time, so that requests are always in flight.
        half = workload.depth // 2
        for _ in range(workload.count // half - 2):
            _receive(line, answer * half)
            line.sendall(workload.frame * half)
        _receive(line, answer * workload.depth)
        took = time.perf_counter() - began
        after = way.server.processor_seconds()
    way.rates.setdefault(workload.name, []).append(workload.count / took)
    if cpu is not None and after is not None:
        way.cpu.setdefault(workload.name, []).append((after - cpu) / workload.count)


def measure(rounds: int) -> Section:
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(serving("direct", _peer("upstream")))
        host, port = upstream.address
        plain = stack.enter_context(
            serving("plain asyncio proxy", _peer("plain", f"{host}:{port}"))
        )
        servers = [upstream, plain, stack.enter_context(_ours(upstream, "headers")),
                   stack.enter_context(_ours(upstream, "frames"))]  # fmt: skip
        toxiproxy = stack.enter_context(_toxiproxy(upstream))
        ways = [Way(each) for each in (*servers, toxiproxy) if each is not None]
        workloads = _workloads()
        for _ in range(rounds):
            for way in ways:
                _round_trips(way, workloads[0].frame)
            for workload in workloads:
                for way in ways:
                    _run(way, workload)
    return _section(ways, workloads, rounds)


def _section(ways: list[Way], workloads: list[Workload], rounds: int) -> Section:
    direct, plain, ours = ways[0], ways[1], ways[2]
    base = min(direct.median_us)
    added = {way.server.name: min(way.median_us) - base for way in ways}
    trips = [["round trip, one connection", "median, us", "added, us"]]
    trips += [
        [way.server.name, f"{min(way.median_us):.0f}",
         "-" if way is direct else f"{added[way.server.name]:.0f}"]
        for way in ways
    ]  # fmt: skip
    small, produce = workloads[0].name, workloads[1].name
    rows = [["workload", "way", "a second", "MB/s", "CPU, us a request", "CPU, ms a MB"]]
    for workload in workloads:
        for way in ways:
            rate = max(way.rates[workload.name])
            cpu = min(way.cpu[workload.name]) if workload.name in way.cpu else None
            rows.append(
                [workload.name, way.server.name, f"{rate:,.0f}",
                 f"{rate * workload.size / 1e6:,.0f}" if workload.size else "-",
                 "-" if cpu is None else f"{cpu * 1e6:.1f}",
                 "-" if cpu is None or not workload.size
                 else f"{cpu * 1e3 / (workload.size / 1e6):.2f}"]
            )  # fmt: skip
    name = ours.server.name
    ratio = added[name] / max(added[plain.server.name], 1.0)
    through = max(ours.rates[produce]) / max(plain.rates[produce])
    megabytes = max(max(ours.rates[each.name]) * each.size / 1e6 for each in workloads[1:4])
    requests = 1 / min(ours.cpu[small]) if small in ours.cpu else None
    marks = [
        Mark(f"added round trip at most {AIM_ADDED}x the plain proxy's", f"{ratio:.2f}x",
             ratio <= AIM_ADDED),
        Mark(f"16 kB batches: at least {AIM_THROUGHPUT}x the plain proxy's rate", f"{through:.2f}x",
             through >= AIM_THROUGHPUT),
        Mark(f"at most {GOAL_ADDED_US:.0f} us added at the median", f"{added[name]:.0f} us",
             added[name] <= GOAL_ADDED_US),
        Mark(f"at least {GOAL_MB:.0f} MB/s of relayed bytes", f"{megabytes:,.0f} MB/s",
             megabytes >= GOAL_MB),
        Mark(f"at least {GOAL_REQUESTS:,.0f} small requests a second of a core",
             "-" if requests is None else f"{requests:,.0f}",
             None if requests is None else requests >= GOAL_REQUESTS),
    ]  # fmt: skip
    return Section(
        title="Proxy",
        reproduce=".venv/bin/python -m benchmarks.bench_proxy",
        text=[
            f"{machine(['uvloop'])}. Loopback, one connection; up to {DEPTH} requests in flight "
            f"where a rate is given; {rounds} interleaved turns, of which the best counts. The "
            "upstream answers at once. `headers` and `frames` are what the proxy's journal keeps. "
            "Answers to Produce 12 and Fetch 17 may name addresses, for which the proxy looks."
        ],
        tables=[trips, rows],
        marks=marks,
        figures={
            way.server.name: {"median_us": way.median_us, "rates": way.rates, "cpu": way.cpu}
            for way in ways
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Proxies side by side.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the results without writing them"
    )
    arguments = parser.parse_args()
    conclude("proxy", measure(arguments.rounds), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()
