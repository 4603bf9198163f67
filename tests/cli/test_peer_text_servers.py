"""The standard error of ``mockbroker serve`` and ``proxy`` while hostile clients and brokers use
them."""

import json
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto.messages import ListPartitionReassignmentsRequest, MetadataRequest, MetadataResponse
from kproto.messages.metadata_response import MetadataResponseBroker
from mockbroker.running.threaded import ThreadedCluster
from tests.cli.hostile import FORMULA, WIRE, check

KAFKA = kproto.dialect("kafka")
NAME = WIRE.replace("\U000e0041", "")
"""Without a character that JSON escapes as two, which YAML does not join."""
SECONDS = 60

pytestmark = pytest.mark.slow


class Server:
    """A running command: the object of its first line, and what it wrote once it has ended."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mockbroker", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.errors = ""
        line = self._process.stdout.readline()
        if not line:
            self.end()
            pytest.fail(self.errors)
        self.first_line: dict[str, Any] = json.loads(line)

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        out, err = self._process.communicate(timeout=SECONDS)
        check(out)
        self.errors = check(err)


@contextmanager
def running(*arguments: str) -> Iterator[Server]:
    server = Server(*arguments)
    try:
        yield server
    finally:
        server.end()


def exchange(address: str, *frames: bytes) -> bytes:
    """Send frames, and return the last answer; empty if the broker closes the connection."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS) as link:
        answer = b""
        for frame in frames:
            link.sendall(frame)
            head = link.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return b""
            answer = head + link.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
        return answer


def request(body: Any, version: int, client_id: str) -> bytes:
    return KAFKA.encode_request(body, api_version=version, correlation_id=1, client_id=client_id)


def test_a_mock_cluster(tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text(
        json.dumps([{"name": NAME, "api": 3, "client_id": NAME, "error": "NOT_CONTROLLER"}])
    )
    with running("serve", "--brokers", "1", "--api", "46=off", "--faults", str(faults)) as server:
        address = server.first_line["bootstrap"]
        for client_id in (WIRE, FORMULA, "\r\nFAKE"):
            exchange(address, request(ListPartitionReassignmentsRequest(), 0, client_id))
        exchange(address, b"\x1b[2J\r\nFAKE" * 10)
    assert "client id '[red]R3D" in server.errors
    assert f"client id '{FORMULA}'" in server.errors
    assert "no request hit [red]R3D" in server.errors


def test_a_proxy() -> None:
    with ThreadedCluster(brokers=1) as upstream:
        host, _, port = upstream.bootstrap.rpartition(":")
        brokers = [
            MetadataResponseBroker(node_id=1, host=host, port=int(port)),
            MetadataResponseBroker(node_id=7, host=WIRE, port=9, rack=WIRE),
        ]
        upstream.script(3, MetadataResponse(brokers=brokers, cluster_id=WIRE, controller_id=7))
        with running("proxy", "--upstream", upstream.bootstrap) as server:
            address = server.first_line["bootstrap"]
            answer = exchange(address, request(MetadataRequest(), 9, WIRE))
            _, body = KAFKA.decode_response(answer, api_key=3, api_version=9)
            own = {each.node_id: f"{each.host}:{each.port}" for each in body.brokers}
            exchange(own[7], request(MetadataRequest(), 9, WIRE))
    assert "[red]R3D" in server.errors
