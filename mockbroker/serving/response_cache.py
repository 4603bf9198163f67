"""Answers remembered by the bytes of their questions. No sockets; nothing is decoded or encoded.

Clients ask the same few questions over and over: ApiVersions, Metadata. Such an answer depends on
the request's bytes, the receiving broker and the cluster's state alone, so equal bytes get an equal
answer until the action log grows. The correlation id is left out of both: it stands at the same
place in every header.
"""

from __future__ import annotations

import time
from struct import Struct
from typing import Final, TypeAlias

from kproto.connection import RequestReceived
from kproto.journal import ClientSoftware, Journal
from mockbroker.apis import Session
from mockbroker.apis.api_versions import API_VERSIONS
from mockbroker.state.actions import ActionLog

__all__ = ["ResponseCache"]

_MAX_REQUEST: Final = 4096
_MAX_ANSWERS: Final = 256

_PREFIX: Final = Struct(">ihhi")
"""Size, api key, api version, correlation id: how every request begins."""

_Known: TypeAlias = tuple[bytes, bytes, int, int, str | None, ClientSoftware | None, str]
"""An answer before and behind its correlation id; api key and version; client id; for ApiVersions,
who the client says it is; the dialect."""


class ResponseCache:
    """By receiving broker; bounded; empty again as soon as ``log`` has grown."""

    def __init__(self, log: ActionLog, journal: Journal) -> None:
        self._log = log
        self._journal = journal
        self._known: dict[int, dict[bytes, _Known]] = {}
        self._offset = -1

    def answer(self, session: Session, data: bytes, limit: int) -> tuple[list[bytes], int]:
        """The answers to the whole frames at the start of ``data`` whose questions are known, and
        how many bytes those frames take. Both sides go to the journal. Stops once the answers
        have ``limit`` bytes: small questions can have large answers."""
        answers: list[bytes] = []
        at, length, room = 0, len(data), limit
        known = self._known.get(session.broker_id)
        if known is None or self._offset != len(self._log):
            return answers, 0
        record, now = self._journal.record, time.time_ns()
        broker_id, connection_id, peer = session.broker_id, session.connection_id, session.peer
        while room > 0 and length - at >= _PREFIX.size:
            size, _, _, correlation_id = _PREFIX.unpack_from(data, at)
            end = at + 4 + size
            if end > length or size < 8:
                break
            found = known.get(data[at + 4 : at + 8] + data[at + 12 : end])
            if found is None:
                break
            head, tail, api_key, version, client_id, software, dialect_name = found
            if software is not None:
                session.software = software
            answer = head + data[at + 8 : at + 12] + tail
            record(
                now, broker_id, connection_id, "request", peer, api_key, version, correlation_id,
                client_id, session.software, dialect_name, data[at:end],
            )  # fmt: skip
            record(
                now, broker_id, connection_id, "response", peer, api_key, version, correlation_id,
                client_id, session.software, dialect_name, answer,
            )  # fmt: skip
            answers.append(answer)
            room -= len(answer)
            at = end
        return answers, at

    def answer_one(self, session: Session, frame: bytes) -> bytes | None:
        """As ``answer`` for one whole frame, leaving the journal to the caller."""
        if self._offset != len(self._log):
            return None
        found = self._known.get(session.broker_id, {}).get(frame[4:8] + frame[12:])
        return None if found is None else found[0] + frame[8:12] + found[1]

    def remember(
        self, session: Session, request: RequestReceived, answer: bytes, offset: int
    ) -> None:
        """``answer`` was true while the log had ``offset`` entries."""
        frame, header = request.frame, request.header
        if len(frame) > _MAX_REQUEST or offset != len(self._log):
            return
        if offset != self._offset:
            self._known.clear()
            self._offset = offset
        known = self._known.setdefault(session.broker_id, {})
        if len(known) >= _MAX_ANSWERS:
            known.clear()
        known[frame[4:8] + frame[12:]] = (
            answer[:4],
            answer[8:],
            header.request_api_key,
            header.request_api_version,
            header.client_id,
            session.software if header.request_api_key == API_VERSIONS else None,
            request.dialect.name,
        )

    def forget(self) -> None:
        """Answers given so far say nothing about the next."""
        self._known.clear()
