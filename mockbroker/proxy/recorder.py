"""The proxy's entries in the journal. No other module of the proxy writes it.

``frames`` records each frame, so that the journal can be decoded and replayed. ``headers`` records
only what the head of a request says, so that nothing has to be kept or copied. Passwords are left
out as by the mock (``mockbroker.serving.redaction``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from kproto.dialects import Dialect
from kproto.journal import UPSTREAM_ANSWER, Direction, Journal
from mockbroker.apis import Session
from mockbroker.proxy.request_heads import RequestHead
from mockbroker.serving.redaction import redacted_response

__all__ = ["DETAILS", "Detail", "Recorder"]

Detail: TypeAlias = Literal["frames", "headers", "events"]

DETAILS: Final[tuple[Detail, ...]] = ("frames", "headers", "events")


class Recorder:
    """Writes to ``journal``, in ``detail``: every frame, their heads, or only events of
    connections."""

    def __init__(self, journal: Journal, codec: Dialect, detail: Detail = "headers") -> None:
        self.journal = journal
        self.detail: Detail = detail
        self._codec = codec

    @property
    def frames(self) -> bool:
        """Whether whole frames are recorded."""
        return self.detail == "frames"

    def request(
        self, session: Session, head: RequestHead, raw: bytes, event: str = "", note: str = ""
    ) -> None:
        if self.detail != "events" or event:
            self._frame(session, "request", head, head.version, raw, event, note)

    def run(
        self, session: Session, direction: Direction, head: RequestHead, ids: Sequence[int]
    ) -> None:
        """Record frames of this head with these correlation ids, without their bytes."""
        if self.detail != "events":
            self.journal.record_run(
                time.time_ns(), session.broker_id, session.connection_id, direction, session.peer,
                head.api_key, head.version, ids, head.client_id, session.software,
                self._codec.name,
            )  # fmt: skip

    def response(
        self, session: Session, head: RequestHead, version: int, raw: bytes, event: str = ""
    ) -> None:
        """Record the answer to the request of this head. ``version`` is the answer's own."""
        if self.detail != "events" or event:
            raw = redacted_response(self._codec, head.api_key, version, raw)
            self._frame(session, "response", head, version, raw, event, "")

    def upstream_answer(
        self, session: Session, head: RequestHead, version: int, raw: bytes
    ) -> None:
        """Record what the upstream answered, where clients get something else."""
        if self.frames:
            raw = redacted_response(self._codec, head.api_key, version, raw)
            self._frame(session, "event", head, version, raw, UPSTREAM_ANSWER, "")

    def token(self, session: Session, direction: Direction, raw: bytes) -> None:
        """Record a raw SASL token, as a frame; empty if it may hold a password."""
        if self.detail != "events":
            self.journal.record(
                time.time_ns(), session.broker_id, session.connection_id, direction, session.peer,
                client_software=session.software, dialect=self._codec.name, raw=raw,
                event="sasl-token",
            )  # fmt: skip

    def event(self, session: Session, event: str, note: str = "", raw: bytes = b"") -> None:
        """Record something that happened to a connection."""
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "event", session.peer,
            client_software=session.software, dialect=self._codec.name, raw=raw, event=event,
            note=note,
        )  # fmt: skip

    def _frame(
        self,
        session: Session,
        direction: Direction,
        head: RequestHead,
        version: int,
        raw: bytes,
        event: str,
        note: str,
    ) -> None:
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, direction, session.peer,
            head.api_key, version, head.correlation_id, head.client_id, session.software,
            self._codec.name, raw, event, note,
        )  # fmt: skip
