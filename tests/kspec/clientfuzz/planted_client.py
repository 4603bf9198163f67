"""A client with one bug of choice, as a program that speaks the lines of
docs/reference/adapters.md.

It asks the first broker of the bootstrap list on a connection per call, and reads the answer
strictly; the bug is what it does where that fails.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import Any

import kproto
from kproto.errors import DecodeError
from kproto.messages import ListPartitionReassignmentsRequest
from kspec.adapters.python.lines import Returned, client_call, serve

BUG = sys.argv[1] if len(sys.argv) > 1 else ""

kept: list[Any] = []
poisoned = False


class Adapter:
    client = f"planted {BUG}".strip()
    version = "1"

    def operations(self) -> Any:
        return {"list_reassignments": self.list_reassignments}

    def options(self) -> Any:
        return {"timeout": "timeout_ms"}

    def connect(self, call: Any) -> Returned:
        host, _, port = call["bootstrap"].split(",")[0].rpartition(":")
        self._address = host, int(port)
        self._timeout = call["timeout_ms"] / 1000
        return Returned(None, None)

    def close(self) -> None:
        """Nothing is kept."""

    def list_reassignments(self, _call: Any) -> Returned:
        with client_call():
            ongoing = self._list()
        return Returned(ongoing, ongoing)

    def _list(self) -> Any:
        if poisoned:
            raise ConnectionError("no more of this")
        frame = kproto.encode_request(
            ListPartitionReassignmentsRequest(topics=None),
            api_version=0, correlation_id=7, client_id="planted",
        )  # fmt: skip
        with socket.create_connection(self._address, timeout=self._timeout) as link:
            link.sendall(frame)
            answer = _answer(link)
        try:
            header, body = kproto.decode_response(answer, api_key=46, api_version=0)
        except DecodeError as error:
            return _misread(error)
        if header.correlation_id != 7:
            _poison()
            raise ConnectionError("somebody else's answer")
        if body.error_code:
            raise ConnectionError(f"error {body.error_code}")
        return {
            f"{topic.name}-{each.partition_index}": {
                "replicas": each.replicas if BUG != "swaps" else each.adding_replicas,
                "adding": each.adding_replicas,
                "removing": each.removing_replicas,
            }
            for topic in body.topics
            for each in topic.partitions
        }


def _answer(link: socket.socket) -> bytes:
    head = _exactly(link, 4)
    size = int.from_bytes(head, "big", signed=True)
    if size < 0:
        if BUG == "hang":
            time.sleep(3600)
        raise ConnectionError("a negative size")
    if size > 1 << 20:
        raise ConnectionError("too much")
    return head + _exactly(link, size)


def _exactly(link: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = link.recv(length - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def _misread(error: DecodeError) -> Any:
    problem = error.problem
    if BUG == "crash" and "null" in problem:
        os.abort()
    if BUG == "memory" and "collection" in problem:
        kept.append(b"\x01" * (256 << 20))
    if BUG == "cpu" and "varint" in problem:
        threading.Thread(target=_spin, daemon=True).start()
    if BUG == "slip" and "UTF-8" in problem:
        return None + 1  # type: ignore[operator]  # that is the slip
    if BUG == "wrong" and "bytes needed" in problem:
        return {}
    raise ConnectionError(str(error))


def _spin() -> None:
    while True:
        pass


def _poison() -> None:
    global poisoned
    poisoned = BUG == "stuck"


if __name__ == "__main__":
    serve(Adapter())
