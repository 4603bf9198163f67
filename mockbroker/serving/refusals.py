"""Refusals: of requests without a handler, of an API the broker does not serve, or that failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kproto.codec.message import Message
from kproto.connection import RequestReceived, refusal
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError
from kproto.messages.request_header import RequestHeader
from kproto.schema.versions import Versions
from mockbroker.apis.common.refusals import error_response
from mockbroker.apis.handlers.api_versions import API_VERSIONS
from mockbroker.serving.exchange import CLOSE, Close, Exchange, Reply
from mockbroker.serving.unserved_log import UnservedLog

__all__ = ["RefusalStage", "error_reply"]


_SIZE: Final = 4
_CLIENT_ID: Final = 12
"""Where the length of the client id is in a frame."""
_AFTER_LENGTH: Final = _CLIENT_ID + 2
_TAGS_SINCE_VERSION: Final = 3


class RefusalStage:
    """The last stage: it refuses every request.

    A broker answers ApiVersions at a version above its own, so that the client can come down, and
    closes the connection on any other version it does not serve, and if it cannot read the header
    of that version. With ``reply35`` it answers those
    with error 35, in the nearest version served. ``fallback_row``: the refusal of ApiVersions says
    which versions of ApiVersions there are.
    """

    def __init__(
        self,
        codec: Dialect,
        served_by: Callable[[int], Mapping[int, Versions]],
        *,
        fallback_row: bool,
        reply35: bool,
        unserved: UnservedLog,
    ) -> None:
        self._codec = codec
        self._unserved = unserved
        self._served_by = served_by
        self._fallback_row = fallback_row
        self._reply35 = reply35

    def answer(self, exchange: Exchange) -> Reply | Close:
        if isinstance(exchange.request, RequestReceived):
            self._unserved.without_handler(exchange)
            return error_reply(exchange, ErrorCode.UNSUPPORTED_VERSION, "unimplemented")
        served = self._served_by(exchange.session.broker_id).get(exchange.api_key)
        self._unserved.not_advertised(exchange, served)
        body: Message | None = None
        version = 0
        if served is not None and exchange.api_key == API_VERSIONS:
            if not self._has_header(exchange.request.frame, exchange.version):
                return CLOSE
            body = refusal(self._codec, served if self._fallback_row else None)
        elif served is not None and self._reply35:
            version = min(max(exchange.version, served.lowest), served.highest)
            response = self._codec.apis[exchange.api_key].response
            body = error_response(response, version, ErrorCode.UNSUPPORTED_VERSION)
        return CLOSE if body is None else Reply(body, version, "unsupported")

    def _has_header(self, frame: bytes, version: int) -> bool:
        """Whether Kafka can read the header of an ApiVersions request: since 2.4 that of version 3
        and later has tagged fields. A client id of any negative length is null."""
        size = int.from_bytes(frame[_CLIENT_ID:_AFTER_LENGTH], "big", signed=True)
        end = _AFTER_LENGTH + max(size, 0)
        if len(frame) < end:
            return False
        if version < _TAGS_SINCE_VERSION or not self._fallback_row:
            return True
        try:
            RequestHeader.decode_from(frame[:_CLIENT_ID] + b"\xff\xff" + frame[end:], 2, _SIZE)
        except DecodeError:
            return False
        return True


def error_reply(exchange: Exchange, code: ErrorCode, event: str) -> Reply | Close:
    """A response that says no more than the error; CLOSE if its version has no error code."""
    request = exchange.request
    if not isinstance(request, RequestReceived):
        return CLOSE
    if not request.expects_response:
        return Reply(None, event=event)
    body = error_response(request.api.response, exchange.version, code)
    return CLOSE if body is None else Reply(body, event=event)
