"""Any bytes on a connection, from either side, in chunks of any size.

**Holds:** ``FrameSplitter`` returns the same frames, and then the same error, whether it is fed at
once or in chunks, and holds no more than it was fed. ``ServerConnection`` and ``ClientConnection``
return the same events for both; these account for every byte up to the first error, which is then
repeated. Every dialect decodes or rejects each frame. ``auto`` decodes what one of its dialects
decodes, in that dialect, and a decoded request encodes to a frame that decodes to an equal request.

**Accepted:** DecodeError from ``Dialect.decode_*`` (including UnsupportedFrameError), and
UnsupportedVersionError if the requested response is not in the dialect; RemoteProtocolError from
the splitter and both connections.

The input: the chunk size (1 byte), the dialect (1), the API key (2) and version (1) of responses,
the stream.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import kproto
from fuzz import bounds, message_choice
from fuzz.mutations import Mutate, telling
from kproto.connection import ClientConnection, ServerConnection
from kproto.dialects import AUTO_ORDER, DIALECTS, AutoDialect
from kproto.errors import DecodeError, RemoteProtocolError, UnsupportedVersionError
from kproto.framing import FrameSplitter, encode_frame
from kproto.messages import ApiVersionsRequest, MetadataRequest, RequestHeader, SaslHandshakeRequest

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 2000
MAX_SIZE: Final = 4096
HEAD: Final = 5


def check(data: bytes) -> None:
    head, stream = data[:HEAD].ljust(HEAD, b"\0"), data[HEAD:]
    step = head[0] or len(stream) or 1
    whole = _told(_splitter(), stream, len(stream) or 1)
    assert _told(_splitter(), stream, step) == whole
    for connection in (_server, _client):
        assert _told(connection(), stream, step) == _told(connection(), stream, len(stream) or 1)
    frames = [frame for kind, frame in whole if kind == "frame"]
    assert b"".join(frames) == stream[: sum(map(len, frames))]
    codec = kproto.dialect(DIALECTS[head[1] % len(DIALECTS)])
    api_key, version = int.from_bytes(head[2:4], "big", signed=True), head[4]
    for frame in [*frames, stream]:
        request = bounds.allocating(partial(_request, codec, frame), frame, a_byte=A_BYTE)
        response = _response(codec, frame, api_key, version)
        if isinstance(codec, AutoDialect):
            _as_the_first_that_reads(frame, request, lambda each, f: _request(each, f))
            _as_the_first_that_reads(
                frame, response, lambda each, f: _response(each, f, api_key, version)
            )


def _request(codec: Any, frame: bytes) -> Any:
    try:
        header, body = codec.decode_request(frame)
    except DecodeError as error:
        assert 0 <= error.offset <= len(frame)
        return None
    owner = codec.identify_request(frame)[0] if isinstance(codec, AutoDialect) else codec
    again = owner.encode_request(
        body,
        api_version=header.request_api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        unknown_tags=header.unknown_tags,
    )
    assert repr(owner.decode_request(again)) == repr((header, body))
    return owner.name, repr((header, body))


def _response(codec: Any, frame: bytes, api_key: int, version: int) -> Any:
    try:
        header, body = codec.decode_response(frame, api_key=api_key, api_version=version)
    except DecodeError as error:
        assert 0 <= error.offset <= len(frame)
        return None
    except UnsupportedVersionError:
        return None
    owner = codec
    if isinstance(codec, AutoDialect):
        owner = codec.identify_response(frame, api_key=api_key, api_version=version)[0]
    again = owner.encode_response(
        body,
        api_version=version,
        correlation_id=header.correlation_id,
        unknown_tags=header.unknown_tags,
    )
    read = owner.decode_response(again, api_key=api_key, api_version=version)
    assert repr(read) == repr((header, body))
    return owner.name, repr((header, body))


def _as_the_first_that_reads(frame: bytes, found: Any, read: Callable[[Any, bytes], Any]) -> None:
    each = (read(kproto.dialect(name), frame) for name in AUTO_ORDER)
    assert found == next((one for one in each if one is not None), None)


# ---- connections ---------------------------------------------------------------------------------


class _Splitting:
    """A splitter with the methods of a connection."""

    def __init__(self) -> None:
        self._splitter = FrameSplitter(MAX_SIZE, keep_size=True)

    def receive_data(self, data: bytes) -> None:
        before = self._splitter.buffered
        self._splitter.feed(data)
        assert self._splitter.buffered <= before + len(data)

    def next_event(self) -> bytes | None:
        return self._splitter.next_frame()


def _splitter() -> _Splitting:
    return _Splitting()


def _server() -> ServerConnection:
    return ServerConnection(codec=kproto.dialect("auto"), max_size=MAX_SIZE)


def _client() -> ClientConnection:
    """Return a connection with outstanding requests, so that responses are expected."""
    connection = ClientConnection(first_correlation_id=1)
    connection.send_request(MetadataRequest(topics=None), 9)
    connection.send_request(MetadataRequest(topics=[]), 0)
    connection.send_request(ApiVersionsRequest(), 2)
    connection.send_request(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    return connection


def _told(connection: Any, stream: bytes, step: int) -> list[tuple[str, Any]]:
    """Return the events of a stream in chunks of ``step`` bytes."""
    events: list[tuple[str, Any]] = []
    for at in range(0, len(stream), step):
        connection.receive_data(stream[at : at + step])
        while True:
            try:
                event = connection.next_event()
            except RemoteProtocolError as error:
                _goes_on_refusing(connection, str(error))
                return [*events, ("error", str(error))]
            if event is None:
                break
            events.append(_described(event))
            _answer(connection, event)
    return events


def _goes_on_refusing(connection: Any, problem: str) -> None:
    connection.receive_data(bytes(8))
    try:
        connection.next_event()
    except RemoteProtocolError as error:
        assert str(error) == problem
        return
    raise AssertionError("the error was not repeated")


def _described(event: Any) -> tuple[str, Any]:
    if isinstance(event, bytes):
        return "frame", event
    parts = {name: getattr(event, name) for name in ("frame", "token", "error", "body")
             if hasattr(event, name)}  # fmt: skip
    return type(event).__name__, repr(parts)


def _answer(connection: Any, event: Any) -> None:
    """Clear SASL's state, so that the connection does not wait."""
    if isinstance(connection, ServerConnection) and getattr(event, "expects_response", False):
        connection.drop_response(event)


# ---- inputs --------------------------------------------------------------------------------------


def seeds() -> Iterator[bytes]:
    """Yield frames of a few vectors: requests, and responses to the client's requests."""
    for number, (choice, body) in enumerate(message_choice.of_vectors(23)):
        cls = choice.message
        if cls.API_KEY is None or len(body) > 300:
            continue
        api = kproto.dialect(choice.dialect).api(cls.API_KEY)
        place = DIALECTS.index(choice.dialect if number % 2 else "auto")
        head = (
            bytes((number % 5, place)) + api.api_key.to_bytes(2, "big") + bytes((choice.version,))
        )
        if cls.MESSAGE_TYPE == "request":
            head_of_frame = RequestHeader(
                request_api_key=api.api_key,
                request_api_version=choice.version,
                correlation_id=number,
            ).encode(api.request_header_version(choice.version))
        else:
            tags = bytes(api.response_header_version(choice.version))
            head_of_frame = (1 + number % 3).to_bytes(4, "big") + tags
        yield head + encode_frame(head_of_frame + body) * (1 + number % 2)


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Mutate, and usually restore the frames' sizes."""
    head, stream = data[:HEAD], data[HEAD:]
    splitter = FrameSplitter(MAX_SIZE)
    splitter.feed(stream)
    frames: list[bytes] = []
    with contextlib.suppress(RemoteProtocolError):
        frames += splitter.frames()
    if not frames or rng.random() < 0.2:
        return head + telling(stream, rng)
    at = rng.randrange(len(frames))
    frames[at] = telling(frames[at], rng) if rng.random() < 0.5 else plainly(frames[at], max_size)
    if rng.random() < 0.1:
        frames.insert(at, rng.choice(frames))
    return head + b"".join(map(encode_frame, frames))
