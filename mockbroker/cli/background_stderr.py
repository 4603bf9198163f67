"""A stderr that never blocks. A parent process may not read the pipe of ``mockbroker serve``, and a
full pipe would block the event loop, including the control port.

Text goes to a bounded queue that a thread writes out. If the queue is full, lines are dropped and
counted; the count is written once there is room again.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from kproto.cli.terminal import guard_streams

__all__ = ["background_stderr"]

_MAX_BYTES: Final = 1 << 20
_END_SECONDS: Final = 1.0
"""How long the process waits for a reader when it ends."""


@contextlib.contextmanager
def background_stderr(max_bytes: int = _MAX_BYTES) -> Iterator[None]:
    """Replace ``sys.stderr`` inside the block; the queue holds at most ``max_bytes``."""
    before = sys.stderr
    try:
        before.flush()
        raw = _Queue(before.fileno(), max_bytes)
    except (AttributeError, OSError, ValueError):  # not a file: captured by a test, or pythonw
        yield
        return
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=before.encoding, line_buffering=True
    )
    guard_streams()
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        sys.stderr = before
        raw.end(_END_SECONDS)


class _Queue(io.RawIOBase):
    def __init__(self, descriptor: int, max_bytes: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="stderr", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = bytes(data)
        with self._changed:
            if self._size + len(text) > self._max_bytes:
                self._dropped += max(text.count(b"\n"), 1)
            else:
                self._waiting.append(text)
                self._size += len(text)
                self._changed.notify()
        return len(text)

    def end(self, seconds: float) -> None:
        """Wait until everything is written, or the time is over."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while (text := self._next()) is not None:
            while text:
                try:
                    text = text[os.write(self._descriptor, text) :]
                except OSError:  # the reader has gone
                    return

    def _next(self) -> bytes | None:
        with self._changed:
            while not self._waiting and not self._dropped and not self._ended:
                self._changed.wait()
            if self._waiting:
                text = self._waiting.popleft()
                self._size -= len(text)
                return text
            dropped, self._dropped = self._dropped, 0
        if dropped:
            return b"mockbroker: dropped %d lines because stderr was not read\n" % dropped
        return None
