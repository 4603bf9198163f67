"""Which function answers which api key, and what such a function is given. No sockets, no bytes.

Each module of this package handles one api key and registers itself::

    @register(46, "0")
    def list_partition_reassignments(call: Call) -> ListPartitionReassignmentsResponse: ...

An answer is a response message, or an awaitable of one where the broker itself would wait. Bytes,
versions a listener advertises, order on the connection: ``mockbroker.dispatch``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kproto.journal import ClientSoftware
from kproto.schema.versions import Versions

if TYPE_CHECKING:
    from kproto.codegen.base import Message
    from mockbroker.cluster import Cluster
    from mockbroker.profiles import Profile

__all__ = ["HANDLERS", "Answer", "Call", "Handler", "Session", "register"]

Answer: TypeAlias = "Message | Awaitable[Message]"


@dataclass(slots=True)
class Session:
    """What a broker remembers of one connection: who sits at the other end (KIP-511)."""

    connection_id: int
    broker_id: int
    peer: str
    software: ClientSoftware | None = None


@dataclass(slots=True)
class Call:
    """One decoded request, and all that an answer may depend on."""

    version: int
    body: Any
    client_id: str | None
    session: Session
    cluster: Cluster
    profile: Profile
    advertised: Mapping[int, Versions]

    @property
    def broker_id(self) -> int:
        """The broker that received the request."""
        return self.session.broker_id

    @property
    def refused_as_not_controller(self) -> bool:
        """Whether a request meant for the controller gets NOT_CONTROLLER(41) here.

        KRaft brokers forward it (KIP-590), so there it never happens.
        """
        return not self.profile.forwarding and not self.cluster.is_controller(self.broker_id)


@dataclass(frozen=True, slots=True)
class Handler:
    """``versions`` are those implemented. ``cacheable``: the answer depends on nothing but the
    request's bytes, the receiving broker and its view of the cluster."""

    api_key: int
    versions: Versions
    answer: Callable[[Call], Answer]
    cacheable: bool


HANDLERS: Final[dict[int, Handler]] = {}
"""api key -> handler, complete once ``mockbroker.apis`` is imported."""


def register(
    api_key: int, versions: str, *, cacheable: bool = False
) -> Callable[[Callable[[Call], Answer]], Callable[[Call], Answer]]:
    """Make the decorated function the answer to ``api_key`` at ``versions`` (``"0-2"``)."""

    def keep(answer: Callable[[Call], Answer]) -> Callable[[Call], Answer]:
        if api_key in HANDLERS:
            raise ValueError(f"api key {api_key} has a handler already")
        HANDLERS[api_key] = Handler(api_key, Versions.parse(versions), answer, cacheable)
        return answer

    return keep
