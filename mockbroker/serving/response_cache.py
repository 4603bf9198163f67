"""Responses by the bytes of their requests. No sockets; nothing is decoded or encoded.

Clients send the same few requests over and over: ApiVersions, Metadata. Such a response depends on
the request's bytes, the receiving broker and the cluster's state alone, so equal bytes get an equal
response until the action log grows. The correlation id is left out of both: it stands at the same
place in every header.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kproto.connection import RequestReceived
from kproto.journal import ClientSoftware
from mockbroker.apis import Session
from mockbroker.apis.api_versions import API_VERSIONS
from mockbroker.serving.exchange import Exchange, Reply
from mockbroker.state.cluster_state import ActionLog

__all__ = ["CachedResponse", "ResponseCache"]

_MAX_REQUEST: Final = 4096
_MAX_RESPONSES: Final = 256

CachedResponse: TypeAlias = tuple[bytes, bytes, int, int, str | None, ClientSoftware | None, str]
"""The response before and behind its correlation id; api key and version; client id; for
ApiVersions, the software that the client names; the dialect."""


class ResponseCache:
    """By receiving broker; bounded; empty again as soon as ``log`` has grown."""

    def __init__(self, log: ActionLog) -> None:
        self._log = log
        self._known: dict[int, dict[bytes, CachedResponse]] = {}
        self._offset = -1

    def responses(self, broker_id: int) -> dict[bytes, CachedResponse] | None:
        """Of one broker, by the request's bytes without its size and correlation id; None if there
        are none that still hold."""
        known = self._known.get(broker_id)
        return None if known is None or self._offset != len(self._log) else known

    def answer(self, exchange: Exchange) -> Reply | None:
        """The response to the same bytes, if it still holds."""
        known = self.responses(exchange.session.broker_id) if exchange.repeatable else None
        if known is None:
            return None
        frame = exchange.request.frame
        found = known.get(frame[4:8] + frame[12:])
        return None if found is None else Reply(found[0] + frame[8:12] + found[1])

    def remember(
        self, session: Session, request: RequestReceived, response: bytes, offset: int
    ) -> None:
        """``response`` held while the log had ``offset`` entries."""
        frame, header = request.frame, request.header
        if len(frame) > _MAX_REQUEST or offset != len(self._log):
            return
        if offset != self._offset:
            self._known.clear()
            self._offset = offset
        known = self._known.setdefault(session.broker_id, {})
        if len(known) >= _MAX_RESPONSES:
            known.clear()
        known[frame[4:8] + frame[12:]] = (
            response[:4],
            response[8:],
            header.request_api_key,
            header.request_api_version,
            header.client_id,
            session.software if header.request_api_key == API_VERSIONS else None,
            request.dialect.name,
        )

    def forget(self) -> None:
        """Drop every response: equal requests are about to be answered otherwise."""
        self._known.clear()
