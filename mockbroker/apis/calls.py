"""A decoded request, the session of its connection, and what a handler makes of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from kproto.codec.message import Message
from kproto.dialects import Api
from kproto.journal import ClientSoftware
from kproto.schema.versions import Versions
from mockbroker.profiles import Profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.security.authorizer import (
    ANONYMOUS,
    CLUSTER_NAME,
    AclOperation,
    Authorizer,
    ResourceType,
)
from mockbroker.simulation.security.sasl import SaslRefusedError, SaslSession
from mockbroker.simulation.state.cluster_parts import Broker

__all__ = ["Answer", "Call", "Session"]

Answer: TypeAlias = Message | Awaitable[Message]


class Session(msgspec.Struct):
    """The broker's state of one connection: who is connected.

    ``software`` is the client's own claim (KIP-511), ``principal`` its authenticated identity.
    ``sasl`` is None if the listener needs no authentication; ``passed_mechanism`` is the mechanism
    that a proxy has seen pass. ``ended``: the connection closes after the current answer.
    ``listener`` is the name of the listener that the connection came in on, "" for the only one of
    a broker whose configs name none. ``controller`` is the id of the KRaft controller that has the
    listener, and None for a broker's; the broker is then the one whose view the controller has.
    """

    connection_id: int
    broker_id: int
    peer: str
    software: ClientSoftware | None = None
    principal: str = ANONYMOUS
    sasl: SaslSession | None = None
    ended: bool = False
    passed_mechanism: str | None = None
    listener: str = ""
    controller: int | None = None
    owes_records: bool = False
    """Whether the last fetch was answered without its records, because its client is throttled."""
    at_close: dict[object, Callable[[], None]] = msgspec.field(default_factory=dict)
    """What to call, by any key, when the connection is closed."""
    view: int | tuple[int, str] = -1
    """Sessions with the same view get equal responses to equal requests."""

    node_id: int = -1
    """The broker or the controller that has the connection."""

    def __post_init__(self) -> None:
        self.node_id = self.broker_id if self.controller is None else self.controller
        self.view = (self.node_id, self.listener) if self.listener else self.node_id

    def closed(self) -> None:
        """The connection is closed."""
        calls, self.at_close = self.at_close, {}
        for call in calls.values():
            call()

    @property
    def host(self) -> str:
        """The peer's address without its port, the form used in access rules."""
        return self.peer.rpartition(":")[0]

    @property
    def user(self) -> str:
        """The name of the principal, to which quotas belong."""
        return self.principal.partition(":")[2]

    @property
    def authenticated(self) -> bool:
        """Whether the client has authenticated by SASL, and is not re-authenticating."""
        return self.sasl is not None and self.sasl.user is not None

    @property
    def ends(self) -> bool:
        """Whether the session expires unless the client re-authenticates."""
        return self.sasl is not None and self.sasl.ends_ms is not None

    @property
    def may_use_tokens(self) -> bool:
        """Whether requests about delegation tokens are allowed: the client has authenticated, and
        not by a token."""
        if self.sasl is None:
            return self.principal != ANONYMOUS
        return self.sasl.login is None

    def authenticate(self, token: bytes, now_ms: int) -> bytes:
        """Return the answer to a SASL token; the last one sets the principal. Raises
        SaslRefusedError or UnreadableError, after which the connection ends."""
        self.ended = True
        if self.sasl is None:
            raise SaslRefusedError("Authentication failed: SASL is not enabled")
        answer = self.sasl.step(token, now_ms)
        self.ended = False
        if self.sasl.user is not None:
            self.principal = f"User:{self.sasl.user}"
        return answer


class Call(msgspec.Struct, eq=False):
    """One decoded request, with everything that its answer may depend on. ``api`` is that of the
    request's dialect."""

    api: Api
    version: int
    body: Any
    client_id: str | None
    session: Session
    cluster: Cluster
    profile: Profile
    served_by: Callable[[int], Mapping[int, Versions]]
    authorizer: Authorizer | None = None
    in_parts: bool = False
    """Set by a handler whose answer holds tuples of buffers in place of large bytes."""
    takes_parts: bool = True
    """Whether the answer may hold tuples of buffers."""
    respond: Callable[[], Awaitable[Message]] | None = None
    draws_controller: Callable[[], int] | None = None
    """Set by a handler whose answer has a ``controller_id`` that is drawn for each answer."""

    async def response(self) -> Any:
        """Return what the broker answers, for a function of a test that amends it::

            @mock.on(3, versions="14")
            async def metadata(call):
                response = await call.response()
                response.region = "eu"
                return response

        Whatever the request changes in the cluster has happened then.
        """
        assert self.respond is not None, "only functions of tests amend responses"
        return await self.respond()

    @property
    def advertised(self) -> Mapping[int, Versions]:
        """The versions that the receiving broker serves."""
        return self.served_by(self.session.broker_id)

    def authorizes(
        self,
        operation: AclOperation,
        resource_type: ResourceType = ResourceType.CLUSTER,
        resource_name: str = CLUSTER_NAME,
    ) -> bool:
        """Return whether the caller is allowed the operation."""
        if self.authorizer is None:
            return True
        return self.authorizer.allows(
            self.cluster.acls,
            self.session.principal,
            self.session.host,
            operation,
            resource_type,
            resource_name,
        )

    def named_controller(self) -> int:
        """Return the ``controller_id`` of the answer."""
        view = self.cluster.controller.metadata_view(self.broker_id)
        named, forwarding = self.cluster.named_controller, self.profile.forwarding
        self.draws_controller = named.draw_from(view, forwarding=forwarding)
        if self.draws_controller is not None:
            return self.draws_controller()
        return named.fixed(view, forwarding=forwarding)

    def reached(self, brokers: Iterable[Broker]) -> Iterable[Broker]:
        """Return brokers with their addresses on the listener that the request came in on, without
        those that do not advertise it."""
        listener = self.session.listener
        if not listener:
            return brokers
        return [found for each in brokers if (found := each.at(listener)) is not None]

    @property
    def release(self) -> Release:
        """The release that the broker behaves as."""
        return self.profile.software

    @property
    def broker_id(self) -> int:
        """The broker that received the request."""
        return self.session.broker_id
