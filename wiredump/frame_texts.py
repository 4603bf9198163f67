"""Decode one frame without its connection: the headers and bodies of the table ``bodies``, for
functions in a query (``wiredump.spark.functions``).

No function raises for a frame's bytes. Secrets are left out, and records are shown by their size,
as in the tables.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from kproto.dialects import Dialect
from wiredump.body_texts import texts_of
from wiredump.frame_boundaries import REQUEST_PREFIX
from wiredump.headers import request_client_id
from wiredump.model import Connection, Exchange, Frame, Place
from wiredump.pairing import response_version
from wiredump.rows.exchanges import error_names

__all__ = ["FrameText", "request_text", "response_text"]

_RESPONSE_PREFIX: Final = 8
_request: Final = Struct(">ihhi").unpack_from
_response: Final = Struct(">ii").unpack_from
_NOWHERE: Final = Connection(0, "", "", 0)


class FrameText(NamedTuple):
    """A frame, as far as it could be read. ``api`` and ``message`` are null for an api that is
    unknown, ``header`` and ``body`` are JSON text or null, ``errors`` the names of the error codes
    in a response, sorted. ``problem`` is why the frame is not whole, or null."""

    api_key: int | None
    api: str | None
    api_version: int | None
    correlation_id: int | None
    client_id: str | None
    message: str | None
    header: str | None
    body: str | None
    errors: list[str] | None
    problem: str | None


def request_text(frame: bytes, codec: Dialect) -> FrameText:
    """Decode a request as a socket carries it, size included."""
    if len(frame) < REQUEST_PREFIX:
        problem = f"a request of {len(frame)} bytes ends before its api key, version and id"
        return FrameText(None, None, None, None, None, None, None, None, None, problem)
    _, key, version, correlation_id = _request(frame)
    exchange = Exchange(
        _NOWHERE, request=_frame("request", frame), api_key=key, api_version=version,
        correlation_id=correlation_id, dialect=codec.name,
    )  # fmt: skip
    texts = texts_of(exchange, codec)
    side = texts.request
    assert side is not None
    return FrameText(
        key, texts.api or None, version, correlation_id, request_client_id(frame),
        side.message or None, side.header, side.body, None, side.problem or None,
    )  # fmt: skip


def response_text(
    frame: bytes, api_key: int | None, api_version: int | None, codec: Dialect
) -> FrameText:
    """Decode a response, size included, to a request of this api key and version."""
    correlation_id = _response(frame)[1] if len(frame) >= _RESPONSE_PREFIX else None
    exchange = Exchange(_NOWHERE, response=_frame("response", frame), dialect=codec.name)
    if api_key is not None and api_version is not None:
        exchange.api_key, exchange.api_version = api_key, api_version
        exchange.response_version = response_version(exchange, frame)
    texts = texts_of(exchange, codec)
    side = texts.response
    assert side is not None
    return FrameText(
        api_key, texts.api or None, exchange.response_version, correlation_id, None,
        side.message or None, side.header, side.body, error_names(texts.codes),
        side.problem or None,
    )  # fmt: skip


def _frame(direction: str, raw: bytes) -> Frame:
    return Frame(direction, 0, len(raw), raw, 0, 0, 0, Place(0, 0))  # type: ignore[arg-type]
