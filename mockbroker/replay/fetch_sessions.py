"""Fetch sessions (KIP-227) and share sessions (KIP-932).

A request in a session names only what changed and stands for all partitions of the session. One
``FetchSessions`` follows the requests of one connection.
"""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

from kproto.codec.registry import schema_of
from kproto.error_codes import ErrorCode
from mockbroker.replay.partition_names import Key, MessagePart, TopicNames

__all__ = ["FETCH", "SHARE_FETCH", "FetchSessions", "SessionParts", "unchanged_part"]

FETCH: Final = 1
SHARE_FETCH: Final = 78
_FORGOTTEN: Final = "forgotten_topics_data"


class SessionParts(NamedTuple):
    """``parts`` are those the request stands for, None if the session is unknown and ``error_code``
    is the answer. ``incremental``: the request names only some of them."""

    parts: list[MessagePart] | None
    incremental: bool
    error_code: int = 0


class FetchSessions:
    def __init__(self) -> None:
        self._sessions: dict[Any, dict[Key, MessagePart]] = {}
        self._opening: dict[Key, MessagePart] | None = None

    def open(
        self, api_key: int, body: Any, parts: list[MessagePart], version: int, names: TopicNames
    ) -> SessionParts:
        """Return the parts that a request stands for. Share fetches work like fetches here."""
        is_share = api_key == SHARE_FETCH
        epoch = body.share_session_epoch if is_share else body.session_epoch
        session = (body.group_id, body.member_id) if is_share else body.session_id
        self._opening = None
        if epoch <= 0:
            self._sessions.pop(session, None)
            requested = {part.key: part for part in parts}
            if epoch == 0 and is_share:
                self._sessions[session] = requested
            elif epoch == 0:
                self._opening = requested
            return SessionParts(parts, incremental=False)
        known = self._sessions.get(session)
        if known is None:
            missing = (
                ErrorCode.SHARE_SESSION_NOT_FOUND
                if is_share
                else ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            )
            return SessionParts(None, incremental=True, error_code=missing)
        for key in _forgotten(body, version, names):
            known.pop(key, None)
        known.update((part.key, part) for part in parts)
        return SessionParts(list(known.values()), incremental=True)

    def answered(self, session_id: int) -> None:
        """Note the session id in the answer to the last Fetch."""
        if self._opening is not None and session_id:
            self._sessions[session_id] = self._opening
        self._opening = None


def _forgotten(body: Any, version: int, names: TopicNames) -> list[Key]:
    struct = schema_of(type(body)).root.field(_FORGOTTEN).type.inner_struct
    assert struct is not None
    return [
        Key((), names.topic_of(topic, struct, version), index)
        for topic in getattr(body, _FORGOTTEN)
        for index in topic.partitions
    ]


def unchanged_part(part: MessagePart) -> MessagePart:
    """Return the part that a full answer has for a partition that the session's answer omits."""
    *topic, element = part.steps
    quiet = copy.copy(element)
    quiet.records = b""
    for name in ("error_code", "acknowledge_error_code"):
        if hasattr(quiet, name):
            setattr(quiet, name, 0)
    for name in ("aborted_transactions", "acquired_records"):
        if getattr(quiet, name, None):
            setattr(quiet, name, [])
    return part._replace(steps=(*topic, quiet))
