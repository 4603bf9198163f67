"""A client that keeps a fixed number of requests in flight on one connection, and counts answers.

The same few lines drive every server that is compared. Frames are prepared before the clock starts
and answers are only cut, not decoded, so that the client is not what is measured; the first answer
is handed back for the caller to decode and check.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from time import perf_counter

__all__ = ["Outcome", "Pipeline"]

_SIZE = struct.Struct(">i")


@dataclass(frozen=True)
class Outcome:
    """``seconds`` of wall time for ``requests`` answered."""

    requests: int
    seconds: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


class Pipeline:
    """One connection. ``frames`` go out round-robin, ``len(frames)`` of them in flight."""

    def __init__(self, address: tuple[str, int], frames: list[bytes]) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._depth = len(frames)
        # Twice over, so that any run of up to ``depth`` frames from any start is one slice.
        self._block = b"".join(frames + frames)
        offsets = [0]
        for frame in frames + frames:
            offsets.append(offsets[-1] + len(frame))
        self._offsets = offsets

    def close(self) -> None:
        self._socket.close()

    def ask(self, frame: bytes) -> bytes:
        """One request and its whole answer, size included."""
        self.send(frame)
        return self.receive()

    def send(self, frame: bytes) -> None:
        """One request, whose answer ``receive`` will return."""
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        """The next whole answer, size included."""
        answer = self._read(4)
        return answer + self._read(_SIZE.unpack(answer)[0])

    def correlation_ids(self) -> list[int]:
        """Those of the answers to one round of the frames sent at once, in order of arrival."""
        self._socket.sendall(self._block[: self._offsets[self._depth]])
        found = []
        for _ in range(self._depth):
            answer = self._read(_SIZE.unpack(self._read(4))[0])
            found.append(_SIZE.unpack_from(answer)[0])
        return found

    def run(self, requests: int) -> Outcome:
        """Send ``requests`` requests, never more than the depth ahead of the answers."""
        depth, block, offsets = self._depth, self._block, self._offsets
        send, receive, unpack = self._socket.sendall, self._socket.recv, _SIZE.unpack_from
        sent = min(depth, requests)
        answered = 0
        pending = b""
        began = perf_counter()
        send(block[: offsets[sent]])
        while answered < requests:
            chunk = receive(262144)
            if not chunk:
                raise ConnectionError(f"closed after {answered} of {requests} answers")
            data = pending + chunk if pending else chunk
            position, end, arrived = 0, len(data), 0
            while end - position >= 4:
                next_position = position + 4 + unpack(data, position)[0]
                if next_position > end:
                    break
                position = next_position
                arrived += 1
            pending = data[position:]
            answered += arrived
            more = min(arrived, requests - sent)
            if more:
                start = sent % depth
                send(block[offsets[start] : offsets[start + more]])
                sent += more
        return Outcome(requests, perf_counter() - began)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("closed within an answer")
            data += chunk
        return data
