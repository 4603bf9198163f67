"""One request on its way through the stages, and what a stage can answer. Plain values.

``dispatch`` makes an ``Exchange`` of each request, hands it from stage to stage, and gives the
first answer to ``delivery``. ``server`` writes what comes of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from kproto.codec.message import Buffer, Message
from kproto.connection import RequestReceived, ServerConnection, UnsupportedRequest
from kproto.dialects import Dialect
from mockbroker.apis import Session
from mockbroker.faults.delivery import Plan

__all__ = [
    "CLOSE",
    "Answer",
    "Close",
    "Exchange",
    "Frames",
    "Outcome",
    "Pending",
    "Reply",
    "Request",
    "Stage",
]

Request: TypeAlias = RequestReceived | UnsupportedRequest


class Close:
    """No answer: the broker closes the connection."""


CLOSE: Final = Close()


class Reply(msgspec.Struct, frozen=True):
    """A response, not encoded yet.

    ``body`` is a message, a whole frame, or None if the request is never answered. ``version`` None
    stands for the request's version. ``event`` marks the response in the journal.
    ``log_offset`` is the length of the action log that the answer depends on, if an equal request
    may get an equal answer until the log grows. ``ends_sasl``: the client counts as authenticated
    once it has this response. ``scripted``: it was made by a script of the test. ``in_parts``: it
    has large values of bytes, which are written without a copy. ``redraw`` draws the
    ``controller_id`` of an equal answer, if it is drawn anew for each.
    """

    body: Message | bytes | None
    version: int | None = None
    event: str = ""
    log_offset: int | None = None
    ends_sasl: bool = False
    scripted: bool = False
    in_parts: bool = False
    redraw: Callable[[], int] | None = None


class Pending(NamedTuple):
    """An answer that takes time. ``wait`` is called once, on the event loop."""

    wait: Callable[[], Awaitable[Reply | Close | Plan]]


Answer: TypeAlias = Reply | Close | Pending
"""What a stage can make of a request."""

Frames: TypeAlias = bytes | list[Buffer]
"""Whole frames, perhaps none: as bytes, or as buffers that follow each other."""

Outcome: TypeAlias = Frames | Close | Awaitable[Frames | Close | Plan]
"""What the socket is given: frames to write, CLOSE, or either of them later. A fault rule gives,
later, a plan of bytes and pauses."""


class Exchange(msgspec.Struct, eq=False):
    """One request, and the connection that it came on.

    ``request`` is an ``UnsupportedRequest`` where the broker serves no such key or version.
    ``mark`` is the journal's event for the request. ``repeatable``: the response cache may answer
    equal bytes.
    """

    connection: ServerConnection
    session: Session
    request: Request
    dialect: Dialect
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    mark: str = ""
    repeatable: bool = True

    def mark_unsupported(self) -> None:
        """From here on treat the request as one that the broker does not serve."""
        self.request = UnsupportedRequest(
            self.request.number, self.api_key, self.version, self.correlation_id, self.client_id,
            self.request.frame,
        )  # fmt: skip


class Stage(Protocol):
    """Answers some of the requests. A chain of stages asks each in turn."""

    def answer(self, exchange: Exchange) -> Answer | None:
        """None leaves the request to the next stage."""
