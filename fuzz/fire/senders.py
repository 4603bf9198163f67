"""A sender process: opens sockets in batches, sends each its shot, and waits for the connection's
end.

``python -m fuzz.fire.senders`` reads a pickled ``Job`` from standard input and prints a JSON object
per line with its counts so far. It uses blocking sockets and no event loop, so that the server is
the slower side.
"""

from __future__ import annotations

import json
import pickle
import socket
import struct
import sys
from collections import Counter
from typing import Final, NamedTuple

from fuzz.fire.ammunition import ANSWERED_ID, Magazine, Shooter, Shot

__all__ = ["PATIENCE", "Job"]

PATIENCE: Final = 60.0
"""Seconds after which an expected event counts as missing."""
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_MOST_TOLD: Final = 5


class Job(NamedTuple):
    """Send ``frames`` malformed frames on ``connections`` sockets at a time."""

    addresses: list[tuple[str, int]]
    magazine: Magazine
    seed: int
    frames: int
    connections: int


class _Sender:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._shooter = Shooter(job.magazine, job.seed)
        self._seen: Counter[str] = Counter()
        self._other: Counter[str] = Counter()
        self._problems: list[str] = []
        self._next = 0

    def run(self) -> None:
        left = self._job.frames
        while left > 0 and len(self._problems) < _MOST_TOLD:
            before = self._seen.total()
            self._batch(min(left, self._job.connections))
            left -= self._seen.total() - before
            self._tell()

    def _tell(self) -> None:
        document = {"malformed": self._seen, "other": self._other, "problems": self._problems}
        print(json.dumps(document), flush=True)

    def _batch(self, most: int) -> None:
        """Open all connections, send to all, and then judge all; afterwards open and close many
        connections without sending anything."""
        opened: list[tuple[Shot, socket.socket]] = []
        try:
            for _ in range(most):
                opened.append((self._shooter.shot(), self._open()))
            for shot, each in opened:
                self._send(shot, each)
            for shot, each in opened:
                self._judge(shot, each)
            self._storm(most // 16)
        finally:
            for _, each in opened:
                each.close()

    def _open(self) -> socket.socket:
        self._next += 1
        address = self._job.addresses[self._next % len(self._job.addresses)]
        made = socket.create_connection(address, timeout=PATIENCE)
        # Otherwise each connection would occupy one of the sender's ports for a minute.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        return made

    def _storm(self, count: int) -> None:
        for _ in range(count):
            self._open().close()
        self._other["connected and reset"] += count

    def _send(self, shot: Shot, to: socket.socket) -> None:
        try:
            to.sendall(shot.data)
            if shot.half_close:
                to.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed while sending; how it ends is judged below

    def _judge(self, shot: Shot, at: socket.socket) -> None:
        said, reset = _until_end(at)
        problem = ""
        if said is None:
            problem = f"not closed within {PATIENCE:.0f} s"
        elif shot.ends == "refused" and said:
            problem = f"answered, with {said[:40].hex()}"
        elif shot.ends == "answered" and not reset and not _is_answer(said):
            problem = f"the valid frame in front was answered with {said[:40].hex() or 'nothing'}"
        if problem:
            self._problems.append(f"{shot.kind}: {problem}; sent {shot.data[:200].hex()}")
        elif shot.malformed:
            self._seen[shot.kind] += 1
        else:
            self._other[f"{shot.kind}, {'answered' if said else 'refused'}"] += 1


def _until_end(at: socket.socket) -> tuple[bytes | None, bool]:
    """Return what was received, None if the connection does not end, and whether it was reset."""
    said = []
    try:
        while data := at.recv(65536):
            said.append(data)
    except TimeoutError:
        return None, False
    except OSError:
        return b"".join(said), True
    return b"".join(said), False


def _is_answer(said: bytes) -> bool:
    return len(said) > 8 and struct.unpack_from(">ii", said) == (len(said) - 4, ANSWERED_ID)


if __name__ == "__main__":
    _Sender(pickle.load(sys.stdin.buffer)).run()
