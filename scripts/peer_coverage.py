"""Ask mock brokers, and Kafka itself, for every version of every API::

    .venv/bin/python -m scripts.peer_coverage   # all peers that this machine can run
    .venv/bin/python -m scripts.peer_coverage --dry-run --peer kfake --peer mockbroker

The results go to ``docs/reference/peer-coverage.json``, which ``scripts.reference_pages`` renders.
Peers that are not run keep their results. kfake needs Go, tansu Cargo and half an hour for its
first build, Kafka Java and Maven.

Each version of each API gets a request on a connection of its own. Its values come from the schema:
every field has its default, and if that brings no response, a second request has every field
filled. A response counts as served whatever error it carries, except 35 UNSUPPORTED_VERSION: this
measures what a client can send, and not whether the responses are right. A peer that exits is
started again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

import kproto
from benchmarks.bench_broker import librdkafka, mockbroker
from kproto.builds import built, run
from kproto.codec.registry import schema_of
from kproto.codec.structs import MessageStruct
from kproto.error_codes import ErrorCode
from kproto.errors import AbsentError, KprotoError
from kproto.messages import ApiVersionsRequest
from kproto.messages.produce_request import ProduceRequest
from kspec.runner import toolchains
from kspec.vectors.values import instances
from mockbroker.profiles import profile

__all__ = [
    "PEERS",
    "RELEASE",
    "RESULTS",
    "Address",
    "Answer",
    "advertised",
    "behind",
    "main",
    "measured",
    "probe",
    "served_by",
    "spans",
    "table",
    "versions_in",
]

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "docs" / "reference" / "peer-coverage.json"
RELEASE: Final = "4.4.0"
PROFILE: Final = "kafka-4.4"

TANSU: Final = "0.6.0"
PATIENCE: Final = 5.0
"""Seconds for a response."""
START_SECONDS: Final = 60.0

Address: TypeAlias = tuple[str, int]
Peer: TypeAlias = Callable[[], AbstractContextManager[Address]]


class Answer(StrEnum):
    """What became of a request, the most useful first."""

    SERVED = "served"
    UNSUPPORTED = "unsupported"
    MALFORMED = "malformed"
    """It cannot be decoded by Kafka's schema."""
    CLOSED = "closed"
    NONE = "no answer"


# ---- requests ------------------------------------------------------------------------------------


def probe(address: Address, api_key: int, version: int) -> Answer:
    """Send a request of one API at one version. Raises ConnectionError if nobody listens."""
    request = kproto.dialect("kafka").api(api_key).request
    found = []
    body: Any
    for pattern, body in instances(request, schema_of(request), version):
        if pattern in ("default", "filled"):
            if isinstance(body, ProduceRequest):
                body.acks = -1  # 0, the default, has no response
            found.append(_exchange(address, body, version))
            if found[-1] in (Answer.SERVED, Answer.UNSUPPORTED):
                break
    return min(found, key=list(Answer).index)


def _exchange(address: Address, body: Any, version: int) -> Answer:
    frame = kproto.encode_request(body, api_version=version, correlation_id=7, client_id="coverage")
    with socket.create_connection(address, PATIENCE) as connection:
        try:
            connection.sendall(frame)
            response = _receive(connection)
        except TimeoutError:
            return Answer.NONE
        except OSError:
            return Answer.CLOSED
    return Answer.CLOSED if response is None else _judged(response, body.API_KEY, version)


def _receive(connection: socket.socket) -> bytes | None:
    """A whole response; None if the peer closes the connection."""
    response = b""
    size = 4
    while len(response) < size:
        more = connection.recv(size - len(response))
        if not more:
            return None
        response += more
        if len(response) == 4:
            size = 4 + struct.unpack(">i", response)[0]
    return response


def _judged(response: bytes, api_key: int, version: int) -> Answer:
    codes = _error_codes(response, api_key, version)
    if codes is None and api_key == ApiVersionsRequest.API_KEY:
        # Its version 0 answers what the broker does not support.
        codes = _error_codes(response, api_key, 0)
    if codes is None:
        return Answer.MALFORMED
    return Answer.UNSUPPORTED if ErrorCode.UNSUPPORTED_VERSION in codes else Answer.SERVED


def _error_codes(response: bytes, api_key: int, version: int) -> set[int] | None:
    """All error codes; None if the response cannot be decoded at the version. Trailing bytes are
    ignored: librdkafka's mock ends a flexible Metadata with one too many."""
    api = kproto.dialect("kafka").api(api_key, version)
    header = kproto.dialect("kafka").message("ResponseHeader")
    try:
        _, at = header.decode_from(response, api.response_header_version(version), 4)
        body, _ = api.response.decode_from(response, version, at)
    except KprotoError:
        return None
    return set(_codes_in(body))


def _codes_in(value: object) -> Iterator[int]:
    if isinstance(value, list):
        for each in value:
            yield from _codes_in(each)
    elif isinstance(value, MessageStruct):
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            if name == "error_code":
                yield inner
            else:
                yield from _codes_in(inner)


def advertised(address: Address) -> dict[int, tuple[int, int]]:
    """The lowest and highest version of each API in a response to ApiVersions."""
    frame = kproto.encode_request(
        ApiVersionsRequest(), api_version=0, correlation_id=7, client_id="coverage"
    )
    with socket.create_connection(address, PATIENCE) as connection:
        connection.sendall(frame)
        response = _receive(connection)
    if response is None:
        raise ConnectionError("the peer closes the connection on ApiVersions 0")
    body: Any
    _, body = kproto.decode_response(response, api_key=18, api_version=0)
    return {row.api_key: (row.min_version, row.max_version) for row in body.api_keys}


# ---- peers ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _mockbroker() -> Iterator[Address]:
    with mockbroker("--profile", PROFILE, "--client-telemetry") as server:
        yield server.address


@contextlib.contextmanager
def _librdkafka() -> Iterator[Address]:
    with librdkafka() as server:
        yield server.address


@contextlib.contextmanager
def _kfake() -> Iterator[Address]:
    from benchmarks.bench_data import kfake

    with kfake() as server:
        if server is None:
            raise AbsentError("; ".join(toolchains.missing(["go"])))
        yield server.address


@contextlib.contextmanager
def _tansu() -> Iterator[Address]:
    from tests.support.ports import free_ports

    missing = toolchains.missing(["rust"])
    if missing:
        raise AbsentError("; ".join(missing))

    def build(folder: Path) -> None:
        features = ("--no-default-features", "--features", "dynostore")
        install = ["cargo", "install", f"tansu@{TANSU}", "--locked", "--debug", "--quiet"]
        run([*install, *features, "--root", str(folder)], cwd=folder)

    folder = built("benchmarks/tansu", [TANSU, toolchains.find("rust") or ""], build)
    (port,) = free_ports(1)
    url = f"tcp://127.0.0.1:{port}"
    command = [str(folder / "bin" / "tansu"), "broker", "--storage-engine", "memory://tansu/"]
    urls = ["--listener-url", url, "--advertised-listener-url", url]
    quiet = subprocess.DEVNULL  # it prints a stack trace for each request that it cannot answer
    with subprocess.Popen([*command, *urls], stdout=quiet, stderr=quiet) as process:
        try:
            _wait_for(("127.0.0.1", port), process)
            yield "127.0.0.1", port
        finally:
            process.kill()


def _wait_for(address: Address, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(address, PATIENCE).close()
        except ConnectionError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


@contextlib.contextmanager
def _kafka() -> Iterator[Address]:
    from tests.real.kafka import RealKafka

    missing = toolchains.missing(["java", "maven"])
    if missing:
        raise AbsentError("; ".join(missing))
    with (
        tempfile.TemporaryDirectory() as folder,
        RealKafka(RELEASE, Path(folder), zookeeper=False, broker_ids=(1,)) as kafka,
    ):
        yield "127.0.0.1", kafka.ports[1]


PEERS: Final[Mapping[str, Peer]] = {
    "Kafka": _kafka,
    "mockbroker": _mockbroker,
    "kfake": _kfake,
    "librdkafka's mock": _librdkafka,
    "tansu": _tansu,
}


# ---- results -------------------------------------------------------------------------------------


@dataclass
class _Running:
    """A peer that is started again when it has exited."""

    peer: Peer
    exits: list[list[int]] = field(default_factory=list)
    """The requests, as key and version, after which the peer had exited."""

    def __enter__(self) -> _Running:
        self._stack = contextlib.ExitStack()
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        self._stack.close()
        self.address = self._stack.enter_context(self.peer())

    def probe(self, api_key: int, version: int) -> Answer:
        found = Answer.CLOSED
        try:
            found = probe(self.address, api_key, version)
            socket.create_connection(self.address, PATIENCE).close()
        except ConnectionRefusedError:
            self.exits.append([api_key, version])
            self._start()
        return found


def measured(peer: Peer, keys: Iterable[int]) -> dict[str, Any]:
    """For each API the versions that a peer advertises, and those with each answer."""
    with _Running(peer) as running:
        listed = advertised(running.address)
        apis: dict[str, dict[str, str]] = {}
        for key in keys:
            found: dict[Answer, list[int]] = {}
            for version in kproto.dialect("kafka").api(key).valid_versions:
                found.setdefault(running.probe(key, version), []).append(version)
            apis[str(key)] = {answer: spans(versions) for answer, versions in found.items()}
            if key in listed:
                low, high = listed[key]
                apis[str(key)]["advertised"] = spans(range(low, high + 1))
        return {"apis": apis, "exits": running.exits}


def spans(versions: Iterable[int]) -> str:
    """``0-2, 4`` for ascending versions."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def versions_in(text: str) -> set[int]:
    """The versions in a text of ``spans``."""
    ends = [each.split("-") for each in text.split(", ") if each]
    return {version for each in ends for version in range(int(each[0]), int(each[-1]) + 1)}


def served_by(peer: Mapping[str, Any]) -> set[tuple[int, int]]:
    """The keys and versions that a peer serves, from its results."""
    return {
        (int(key), version)
        for key, row in peer["apis"].items()
        for version in versions_in(row.get(Answer.SERVED, ""))
    }


# ---- the page ------------------------------------------------------------------------------------


def table() -> Iterator[list[str]]:
    """The rows of the table of all APIs, with its head and the totals."""
    peers = json.loads(RESULTS.read_text("utf-8"))["peers"]
    names = [name for name in PEERS if name in peers]
    titles = {"Kafka": f"Kafka {RELEASE}", "tansu": f"tansu {TANSU}"}
    yield ["key", "API", *(titles.get(name, name) for name in names)]
    for key in sorted(peers["Kafka"]["apis"], key=int):
        api = kproto.dialect("kafka").api(int(key)).request.__name__.removesuffix("Request")
        yield [key, api, *(_cell(peers[name]["apis"][key]) for name in names)]
    served = {name: served_by(peers[name]) for name in names}
    yield ["", "APIs", *(str(len({key for key, _ in served[name]})) for name in names)]
    yield ["", "versions", *(str(len(served[name])) for name in names)]
    shared = [str(len(served[name] & served["Kafka"])) for name in names]
    yield ["", f"versions that Kafka {RELEASE} serves", *shared]


def _cell(row: Mapping[str, str]) -> str:
    malformed = row.get(Answer.MALFORMED)
    parts = [row.get(Answer.SERVED, ""), f"malformed: {malformed}" if malformed else ""]
    return "; ".join(part for part in parts if part)


def behind() -> str:
    """A sentence about what Kafka serves and mockbroker does not."""
    peers = json.loads(RESULTS.read_text("utf-8"))["peers"]
    lacking = sorted(served_by(peers["Kafka"]) - served_by(peers["mockbroker"]))
    if not lacking:
        return f"mockbroker serves every version that Kafka {RELEASE} serves.\n"
    keys = sorted({key for key, _ in lacking})
    apis = [
        f"{kproto.dialect('kafka').api(key).request.__name__.removesuffix('Request')} ({key})"
        for key in keys
    ]
    return (
        f"Kafka {RELEASE} serves {len(lacking)} versions of {len(keys)} APIs that mockbroker does "
        f"not: {', '.join(apis)}.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Which APIs mock brokers serve, beside Kafka.")
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="repeatable")
    parser.add_argument("--dry-run", action="store_true", help="print instead of writing the file")
    arguments = parser.parse_args()
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"peers": {}}
    keys = sorted(profile(PROFILE).versions)
    for name in arguments.peer or PEERS:
        try:
            stored["peers"][name] = measured(PEERS[name], keys)
        except AbsentError as absent:
            print(f"{name} is not run: {absent}", file=sys.stderr)
            continue
        served = served_by(stored["peers"][name])
        print(f"{name}: {len(dict(served))} of {len(keys)} APIs, {len(served)} versions")
    text = json.dumps(stored, indent=1, sort_keys=True) + "\n"
    if arguments.dry_run:
        print(text)
    else:
        RESULTS.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
