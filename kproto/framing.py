"""Split a byte stream into Kafka frames. No I/O: ``client`` and ``mockbroker`` own the sockets.

A frame is an int32 size followed by that many bytes (a request, a response, or a raw SASL token).
This module does not know what is inside, and never trusts the size: it allocates nothing according
to it, so it never holds more than the bytes that were fed and not yet returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from kproto.errors import LocalProtocolError, RemoteProtocolError

__all__ = ["DEFAULT_MAX_SIZE", "SIZE_LENGTH", "FrameSplitter", "encode_frame"]

DEFAULT_MAX_SIZE: Final = 104_857_600
"""The default of Kafka's ``socket.request.max.bytes``: 100 MiB."""

SIZE_LENGTH: Final = 4
"""The length of a frame's size in bytes."""

_SIZE: Final = Struct(">i")
_read_size: Final = _SIZE.unpack_from
_MAX_INT32: Final = 2**31 - 1
_SMALL: Final = 4096


def encode_frame(payload: bytes) -> bytes:
    """Return ``payload`` preceded by its size. Raises LocalProtocolError if the size exceeds
    int32."""
    if len(payload) > _MAX_INT32:
        raise LocalProtocolError(f"a frame of {len(payload)} bytes does not fit an int32 size")
    return _SIZE.pack(len(payload)) + payload


class FrameSplitter:
    """Splits bytes into frames. The result does not depend on how the bytes were chunked.

    ``max_size`` bounds the announced size, which excludes the size field itself. With
    ``keep_size``, frames include their size, as ``Dialect.decode_*`` and the journal expect.

    Each byte is copied a bounded number of times however it arrives. A chunk that begins on a
    frame's first byte is sliced in place. The chunks of an incomplete frame are collected in
    ``_more``, and joined once when the frame's size is known and once when they complete it. Small
    chunks are collected in one, since each would take more memory than its bytes.
    """

    __slots__ = ("_data", "_error", "_more", "_needed", "_offset", "_skip", "buffered", "max_size")

    def __init__(self, max_size: int = DEFAULT_MAX_SIZE, *, keep_size: bool = False) -> None:
        self.max_size = max_size
        self._skip = 0 if keep_size else SIZE_LENGTH
        self._data = b""
        self._offset = 0
        self._more: list[bytes | bytearray] = []
        # Bytes that the next frame needs, as far as known: its size field, later the whole frame.
        self._needed = SIZE_LENGTH
        self._error: str | None = None
        self.buffered = 0
        """Bytes that were fed and not yet returned. At the end of a stream, any remainder is a
        truncated frame."""

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes from the socket. Never raises; after a bad size the bytes are discarded."""
        if self._error is not None:
            return
        if self._offset == len(self._data) and not self._more:
            self._data = bytes(data)
            self._offset = 0
        else:
            self._collect(data)
        self.buffered += len(data)

    def _collect(self, data: bytes | bytearray | memoryview) -> None:
        more = self._more
        if len(data) >= _SMALL:
            more.append(bytes(data))
        elif more and isinstance(more[-1], bytearray):
            more[-1] += data
        else:
            more.append(bytearray(data))

    def next_frame(self) -> bytes | None:
        """Return the next frame, or None until more bytes are fed.

        A bad size (negative, or more than ``max_size``) raises RemoteProtocolError only after every
        good frame before it was returned, and again on each later call. The result therefore does
        not depend on how the stream was chunked.
        """
        offset = self._offset
        data = self._data
        start = offset + SIZE_LENGTH
        if start <= len(data):
            (size,) = _read_size(data, offset)
            end = start + size
            if 0 <= size <= self.max_size and end <= len(data):
                self._offset = end
                self.buffered -= end - offset
                return data[offset + self._skip : end]
        elif not self.buffered and self._error is None:
            return None
        return self._next_frame_slowly()

    def frames(self) -> Iterator[bytes]:
        """Yield all complete frames, then raise RemoteProtocolError if a bad size follows."""
        while (frame := self.next_frame()) is not None:
            yield frame

    def _next_frame_slowly(self) -> bytes | None:
        """Handle a frame that is not complete in ``_data``: wait, join the chunks, or refuse its
        size."""
        if self._error is not None:
            raise RemoteProtocolError(self._error)
        if self._offset < len(self._data):
            self._more.insert(0, self._data[self._offset :])
            self._data, self._offset = b"", 0
        if self.buffered < self._needed:
            return None
        data = b"".join(self._more)
        (size,) = _read_size(data, 0)
        self._check(size)
        self._needed = SIZE_LENGTH + size
        if self.buffered < self._needed:
            self._more = [data]
            return None
        self._data, self._offset, self._more, self._needed = data, 0, [], SIZE_LENGTH
        return self.next_frame()

    def _check(self, size: int) -> None:
        if 0 <= size <= self.max_size:
            return
        why = "is negative" if size < 0 else f"is more than the {self.max_size} allowed"
        self._error = f"frame size {size} {why}"
        self._data, self._offset, self._more, self.buffered = b"", 0, [], 0
        raise RemoteProtocolError(self._error)
