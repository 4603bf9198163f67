"""Refusals: of requests without a handler, of an API the broker does not serve, or that failed."""

from __future__ import annotations

from typing import Final

from kproto.codec.message import Message
from kproto.connection import RequestReceived, refusal
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError
from kproto.messages.request_header import RequestHeader
from mockbroker.apis.common.refusals import error_response
from mockbroker.apis.handlers.api_versions import API_VERSIONS
from mockbroker.serving.broker_software import BrokerSoftware
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
    with error 35, in the nearest version served. Since 2.4 the refusal of ApiVersions says which
    versions of ApiVersions there are.
    """

    def __init__(
        self, codec: Dialect, software: BrokerSoftware, *, reply35: bool, unserved: UnservedLog
    ) -> None:
        self._codec = codec
        self._unserved = unserved
        self._software = software
        self._reply35 = reply35

    def answer(self, exchange: Exchange) -> Reply | Close:
        if isinstance(exchange.request, RequestReceived):
            self._unserved.without_handler(exchange)
            return error_reply(exchange, ErrorCode.UNSUPPORTED_VERSION, "unimplemented")
        broker_id = exchange.session.broker_id
        has_row = self._software.profile_of(broker_id).fallback_row
        served = self._software.served_by(broker_id).get(exchange.api_key)
        self._unserved.not_advertised(exchange, served)
        body: Message | None = None
        version = 0
        if served is not None and exchange.api_key == API_VERSIONS:
            if not _has_header(exchange.request.frame, exchange.version, tagged=has_row):
                return CLOSE
            body = refusal(self._codec, served if has_row else None)
        elif served is not None and self._reply35:
            version = min(max(exchange.version, served.lowest), served.highest)
            response = self._codec.apis[exchange.api_key].response
            body = error_response(response, version, ErrorCode.UNSUPPORTED_VERSION)
        return CLOSE if body is None else Reply(body, version, "unsupported")


def _has_header(frame: bytes, version: int, *, tagged: bool) -> bool:
    """Whether Kafka can read the header of an ApiVersions request: since 2.4 that of version 3
    and later has tagged fields. A client id of any negative length is null."""
    size = int.from_bytes(frame[_CLIENT_ID:_AFTER_LENGTH], "big", signed=True)
    end = _AFTER_LENGTH + max(size, 0)
    if len(frame) < end:
        return False
    if version < _TAGS_SINCE_VERSION or not tagged:
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
