"""Clients that send one request over and over, as fast as a server takes it, and read all answers.

``python -m benchmarks.flood HOST:PORT CONNECTIONS FRAME`` runs until its standard input is closed,
and then prints the number of bytes of answers and the seconds. It writes ``ready`` once every
connection has had some. ``FRAME`` is hexadecimal. It must cost little: answers are dropped unread.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Flood", "flooding"]

_COPIES: Final = 2000
"""Requests in one write, as far as the system takes them."""
_READ: Final = 1 << 18


@dataclass
class Flood:
    """The bytes of answers a second, once the flood has ended."""

    rate: float = 0.0


@contextlib.contextmanager
def flooding(address: tuple[str, int], frame: bytes, connections: int) -> Iterator[Flood]:
    """Flood a server from another process."""
    place = f"{address[0]}:{address[1]}"
    command = [sys.executable, "-m", "benchmarks.flood", place, str(connections), frame.hex()]
    pipe = subprocess.PIPE
    flood = Flood()
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("the flood ended before it began; its error is above")
            yield flood
            process.stdin.close()
            size, seconds = process.stdout.readline().split()
            flood.rate = int(size) / float(seconds)
        finally:
            process.terminate()
            process.wait(timeout=30)


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    block = memoryview(bytes.fromhex(sys.argv[3]) * _COPIES)
    selector, buffer = selectors.DefaultSelector(), bytearray(_READ)
    sent: dict[int, int] = {}
    silent = set[int]()
    for _ in range(int(sys.argv[2])):
        line = socket.create_connection((host, int(port)), timeout=30)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.setblocking(False)
        selector.register(line, selectors.EVENT_READ | selectors.EVENT_WRITE, line)
        sent[line.fileno()] = 0
        silent.add(line.fileno())
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ, None)
    began, received = 0.0, 0
    while True:
        for key, ready in selector.select():
            if key.data is None:
                print(received, time.perf_counter() - began, flush=True)
                return
            if ready & selectors.EVENT_READ:
                size = key.data.recv_into(buffer)
                if not size:
                    raise SystemExit("the server closed a connection")
                received += size
                if silent:
                    silent.discard(key.fd)
                    if not silent:
                        began, received = time.perf_counter(), 0
                        print("ready", flush=True)
            if ready & selectors.EVENT_WRITE:
                with contextlib.suppress(BlockingIOError):
                    at = sent[key.fd]
                    sent[key.fd] = (at + key.data.send(block[at:])) % len(block)


if __name__ == "__main__":
    main()
