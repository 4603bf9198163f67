"""Cut a byte stream into Kafka frames. No I/O: ``client`` and the mock's server own the sockets.

A frame is an int32 size, then that many bytes (a request, a response, or a raw SASL token). This
file knows nothing of what is inside, and never trusts the size: nothing is allocated from it, so
what is held is never more than what was fed and not yet handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from kproto.errors import LocalProtocolError, RemoteProtocolError

__all__ = ["DEFAULT_MAX_SIZE", "SIZE_LENGTH", "FrameSplitter", "encode_frame"]

DEFAULT_MAX_SIZE: Final = 104_857_600
"""Kafka's ``socket.request.max.bytes``, which its brokers leave at 100 MiB."""

SIZE_LENGTH: Final = 4

_SIZE: Final = Struct(">i")
_read_size: Final = _SIZE.unpack_from
_MAX_INT32: Final = 2**31 - 1


def encode_frame(payload: bytes) -> bytes:
    """``payload`` with its size in front. Raises LocalProtocolError past int32."""
    if len(payload) > _MAX_INT32:
        raise LocalProtocolError(f"a frame of {len(payload)} bytes does not fit an int32 size")
    return _SIZE.pack(len(payload)) + payload


class FrameSplitter:
    """Bytes in, frames out; the frames do not depend on how the bytes were chunked.

    ``max_size`` bounds the announced size (the size field itself not counted). With ``keep_size``
    frames come as the socket carried them, size included, which is what ``Dialect.decode_*`` and
    the journal take.

    Each byte is copied a bounded number of times however it arrives: a chunk that starts on a
    frame's first byte is sliced in place; anything fed behind unfinished bytes gathers in
    ``_more`` and is joined once, when it completes a frame (or shows that frame's size).
    """

    __slots__ = ("_data", "_error", "_more", "_needed", "_offset", "_skip", "max_size")

    def __init__(self, max_size: int = DEFAULT_MAX_SIZE, *, keep_size: bool = False) -> None:
        self.max_size = max_size
        self._skip = 0 if keep_size else SIZE_LENGTH
        self._data = b""
        self._offset = 0
        self._more = bytearray()
        # Bytes the next frame takes as far as known: its size field, later all of it.
        self._needed = SIZE_LENGTH
        self._error: str | None = None

    @property
    def buffered(self) -> int:
        """Bytes fed and not handed out: not 0 at the end of a stream means a cut frame."""
        return len(self._data) - self._offset + len(self._more)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take what the socket gave. Never raises; after a bad size the bytes are dropped."""
        if self._error is not None:
            return
        if self._offset == len(self._data) and not self._more:
            self._data = bytes(data)
            self._offset = 0
        else:
            self._more += data

    def next_frame(self) -> bytes | None:
        """Return the next frame, or None until more is fed.

        Pull-style on purpose: a bad size (negative, or more than ``max_size``) raises
        RemoteProtocolError only after every good frame before it was handed out, and again on
        each later call.
        """
        offset = self._offset
        data = self._data
        start = offset + SIZE_LENGTH
        if start <= len(data):
            (size,) = _read_size(data, offset)
            end = start + size
            if 0 <= size <= self.max_size and end <= len(data):
                self._offset = end
                return data[offset + self._skip : end]
        return self._next_frame_slowly()

    def frames(self) -> Iterator[bytes]:
        """Every frame that is complete by now, then RemoteProtocolError if a bad size follows."""
        while (frame := self.next_frame()) is not None:
            yield frame

    def _next_frame_slowly(self) -> bytes | None:
        """The next frame is not whole in ``_data``: wait, join, or refuse its size."""
        if self._error is not None:
            raise RemoteProtocolError(self._error)
        if self._offset:
            self._data = self._data[self._offset :]
            self._offset = 0
        while len(self._data) + len(self._more) >= self._needed:
            if self._more:
                self._data += self._more
                self._more = bytearray()
            (size,) = _read_size(self._data, 0)
            self._check(size)
            self._needed = SIZE_LENGTH + size
            if len(self._data) >= self._needed:
                self._offset, self._needed = self._needed, SIZE_LENGTH
                return self._data[self._skip : self._offset]
        return None

    def _check(self, size: int) -> None:
        if 0 <= size <= self.max_size:
            return
        why = "is negative" if size < 0 else f"is more than the {self.max_size} allowed"
        self._error = f"frame size {size} {why}"
        self._data, self._offset, self._more = b"", 0, bytearray()
        raise RemoteProtocolError(self._error)
