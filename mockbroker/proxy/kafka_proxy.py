"""A running proxy: listeners for bootstrapping and for each broker, at each of the upstream's."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import ssl
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec

from kproto.client import BrokerError, Connection, SaslMechanism
from kproto.dialects import Dialect, dialect
from kproto.errors import KprotoError
from kproto.journal import Journal
from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.os_errors import os_error_text
from kproto.schema.versions import Versions
from mockbroker.apis import Session
from mockbroker.errors import ClusterError, UnknownBrokerError
from mockbroker.faults.matching import ActiveFault
from mockbroker.faults.rule import Fault
from mockbroker.options import Limits
from mockbroker.profiles import DEFAULT_PROFILE, Profile
from mockbroker.profiles import profile as profile_of
from mockbroker.proxy.addresses import Role, rewrite
from mockbroker.proxy.connections import Ends, ProxiedConnection, UpstreamSide
from mockbroker.proxy.fault_rules import ProxyFaults
from mockbroker.proxy.passage import Held, Passing
from mockbroker.proxy.proxy_protocol import own_header, proxy_header
from mockbroker.proxy.recorder import Detail, Recorder
from mockbroker.proxy.served_apis import ServedApis
from mockbroker.proxy.server_names import NamePattern, ServerNames
from mockbroker.proxy.targets import BOOTSTRAP, PORTS_BETWEEN, Address, Target, UpstreamListener
from mockbroker.proxy.versions import Clamp, UnknownKeys, consequences
from mockbroker.serving.acceptor import SPARE_FOR_CLIENTS
from mockbroker.serving.endpoints import dialable, show
from mockbroker.serving.limits import BufferBudget
from mockbroker.serving.listeners import BrokerListener
from mockbroker.serving.pacing import Paces, check_place
from mockbroker.serving.preloading import preload
from mockbroker.simulation.operations import (
    PROXY_OPERATIONS,
    BrokerChoice,
    OperationCall,
    Place,
    parse_operation,
)
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.security.sasl import SaslUsers, parse_credentials

__all__ = ["KafkaProxy", "ProxyOptions", "UpstreamListener"]

_log = logging.getLogger("mockbroker.proxy")

_METADATA: Final = 3
_DESCRIBE_CLUSTER: Final = 60
_CONTROLLERS: Final = 2
"""The endpoint type of DescribeCluster that asks for controllers (KIP-919)."""
_MOST_TARGETS: Final = 100_000
_PROBE_SECONDS: Final = 10.0


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``upstream`` are the bootstrap addresses, or ``listeners`` has those of several listeners of
    the upstream, each of which has its own ports here; a client keeps to the listener that it came
    in on. The bootstrap listener is at ``host`` and ``port``; the broker of id n listens on
    ``broker_port_base`` + n, or on a free port; those of each further listener
    ``PORTS_BETWEEN`` above. ``advertise`` is the
    host in answers and, if it has a port, the base of the ports there.

    With ``sasl`` (``MECHANISM:USER:PASSWORD`` texts) clients authenticate to the proxy instead of
    the upstream; with ``upstream_sasl`` the proxy authenticates there, and ``open_to_all`` lets it
    do so for clients that did not authenticate to it.

    A mock cluster of the release ``serve_profile`` answers the API keys ``serve``, in the
    upstream's place; see ``served_apis``.

    ``profile``, ``features`` and ``unknown_keys`` are those of ``Clamp``. ``detail`` is what the
    journal keeps. ``latency_ms`` and ``bandwidth`` (bytes a second of a connection) slow each
    direction down; 0 does not. ``tls`` serves TLS to clients, ``upstream_tls`` uses it to the
    upstream. With ``sni`` brokers have no listeners of their own: a TLS client of the bootstrap
    listener asks for one by its host name. ``send_proxy_header`` names each client to the upstream
    by the PROXY protocol. ``max_targets`` bounds the brokers and controllers that the upstream may
    name, each of which gets a listener.

    Raises ClusterError or UnknownNameError for what cannot be.
    """

    upstream: Sequence[Address] = ()
    listeners: Sequence[UpstreamListener] = ()
    host: str = "127.0.0.1"
    port: int = 0
    broker_port_base: int | None = None
    advertise: tuple[str, int | None] | None = None
    profile: str | None = None
    features: Mapping[str, int] = msgspec.field(default_factory=dict)
    unknown_keys: UnknownKeys = "pass"
    serve: Sequence[int] = ()
    serve_profile: str = DEFAULT_PROFILE
    dialect: Dialect | None = None
    detail: Detail = "headers"
    limits: Limits = msgspec.field(default_factory=Limits)
    tls: ssl.SSLContext | None = None
    upstream_tls: ssl.SSLContext | None = None
    send_proxy_header: bool = False
    sni: NamePattern | None = None
    sasl: Sequence[str] = ()
    upstream_sasl: SaslMechanism | None = None
    open_to_all: bool = False
    latency_ms: int = 0
    bandwidth: int = 0
    max_targets: int = 1000

    def __post_init__(self) -> None:
        if not 1 <= self.max_targets <= _MOST_TARGETS:
            raise ClusterError(
                f"max_targets is {self.max_targets}; it must be between 1 and {_MOST_TARGETS}"
            )
        if bool(self.upstream) == bool(self.listeners):
            raise ClusterError(
                "a proxy needs the address of an upstream broker, or named listeners"
            )
        if len({each.name for each in self.listeners}) != len(self.listeners):
            raise ClusterError("two listeners of the upstream have the same name")
        for each in self.listeners:
            if each.protocol is not None and each.may_use_tls and self.upstream_tls is None:
                raise ClusterError(
                    f"listener {each.name} is {each.protocol}; say which authorities have signed "
                    "its certificates (--upstream-tls)"
                )
        if self.upstream_sasl is not None and not self.sasl and not self.open_to_all:
            raise ClusterError(
                "with credentials for the upstream, clients need users of the proxy's own, or "
                "everybody has the proxy's rights: give --sasl or --open-to-all"
            )
        if self.sni is not None and (self.tls is None or self.advertise is not None):
            raise ClusterError("brokers by host name need TLS, and give the advertised addresses")
        for text in self.sasl:
            # SaslUsers of the mock takes OAUTHBEARER, whose sessions end, which those of a proxy
            # do not.
            parse_credentials(text)

    @property
    def all_listeners(self) -> Sequence[UpstreamListener]:
        """The listeners of the upstream; one that has no name of its own is called ``""``."""
        return self.listeners or [UpstreamListener("", self.upstream)]


class _Listener(msgspec.Struct):
    """What the proxy has for one listener of the upstream; it is the one of this ``place``."""

    upstream: UpstreamListener
    place: int
    bootstrap: Target
    passing: Passing
    brokers: dict[int, Target] = msgspec.field(default_factory=dict)


class KafkaProxy:
    """``async with KafkaProxy(options) as proxy`` listens until the end of the block."""

    def __init__(self, options: ProxyOptions) -> None:
        self.options = options
        profile: Profile | None = None if options.profile is None else profile_of(options.profile)
        named = "kafka" if profile is None else profile.dialect
        self.dialect = dialect(named) if options.dialect is None else options.dialect
        self.served = None
        if options.serve:
            self.served = ServedApis(options.serve, options.serve_profile, self.dialect)
        self.clamp = Clamp(
            self.dialect, profile=profile, features=options.features,
            unknown_keys=options.unknown_keys,
            served=None if self.served is None else self.served.versions,
        )  # fmt: skip
        self.journal: Journal = options.limits.new_journal()
        self.budget = BufferBudget(options.limits)
        self.users = Security.of(None, options.sasl).sasl
        self.paces = Paces(options.latency_ms / 1000, options.bandwidth)
        self.recorder = Recorder(self.journal, self.dialect, options.detail)
        self._faults = ProxyFaults(self.dialect, self.recorder, self._carry_out_step, self.served)
        self._upstreams = {
            each.name: _Listener(
                each,
                place,
                Target("bootstrap", BOOTSTRAP, each, list(each.addresses)),
                Passing(
                    self.dialect, self.clamp, self.recorder, partial(self._endpoint_for, each.name),
                    self._faults.concerned, partial(self._learn, place),
                ),
            )
            for place, each in enumerate(options.all_listeners)
        }  # fmt: skip
        self._first = next(iter(self._upstreams.values()))
        self.upstream_versions: Mapping[int, Versions] | None = None
        self._names = None if options.sni is None else ServerNames(
            cast(ssl.SSLContext, options.tls)
        )  # fmt: skip
        self._controllers: dict[Address, Target] = {}
        self._listeners: dict[int, BrokerListener[ProxiedConnection]] = {}
        self._connection_ids = itertools.count(1)
        self._opening: set[asyncio.Task[None]] = set()
        self._connecting = 0
        """Clients whose connection to the upstream is not open yet."""

    # ---- life --------------------------------------------------------------------------------

    async def __aenter__(self) -> KafkaProxy:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, and open a listener for each broker that the upstream names. Raises OSError if an
        address is not available. An upstream that does not answer yet is only logged, except if
        API keys are served here: then its brokers and topics are needed. Raises ClusterError."""
        preload(self.dialect, self.dialect.apis)
        for listener in self._upstreams.values():
            port = self.options.port and self.options.port + listener.place * PORTS_BETWEEN
            await self._listener_of(listener.bootstrap, port).open()
        self._faults.start()
        await asyncio.gather(*map(self._begin, self._upstreams.values()))
        await self._all_open()

    async def _begin(self, listener: _Listener) -> None:
        """Open a listener for each broker that the upstream names at a listener of its own."""
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                metadata = await self._probe(listener)
            if self.served is not None and listener is self._first:
                await self.served.start(metadata)
        except (OSError, KprotoError) as error:  # TimeoutError is an OSError
            where = ", ".join(show(*each) for each in listener.upstream.addresses)
            text = os_error_text(error) if isinstance(error, OSError) else str(error)
            reason = text or f"no answer within {_PROBE_SECONDS:g} s"
            if self.served is not None and listener is self._first:
                await self.stop()
                raise ClusterError(
                    f"serving APIs needs the upstream's brokers and topics, but {where}: {reason}"
                ) from None
            _log.warning(
                "upstream %s: %s; the brokers' listeners open when a client asks", where, reason
            )

    async def stop(self) -> None:
        self._faults.stop()
        await self._all_open()
        for listener in self._listeners.values():
            await listener.close()
        if self.served is not None:
            await self.served.stop()

    async def _all_open(self) -> None:
        if self._opening:
            await asyncio.gather(*self._opening, return_exceptions=True)

    async def _probe(self, listener: _Listener) -> Any:
        """Learn the upstream's versions and brokers, or its controllers at a listener for those.
        Returns its Metadata with the proxy's addresses, with all topics if API keys are served
        here."""
        problem: Exception | None = None
        for host, port in listener.upstream.addresses:
            try:
                connection = await self._open(listener.upstream, host, port, own_header())
            except (OSError, KprotoError) as error:
                problem = error
                continue
            async with connection:
                versions = connection.peer_versions
                if versions is not None and _METADATA not in versions:
                    version = connection.version_for(_DESCRIBE_CLUSTER)
                    request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
                    found = await connection.request(request, version)
                    rewrite(_DESCRIBE_CLUSTER, version, found, listener.passing.endpoint_for)
                    return found
                self.upstream_versions = versions
                version = connection.version_for(_METADATA, self.clamp.limit(_METADATA))
                # In version 0 an empty list stands for all topics.
                wants_all = version and self.served is not None
                body = await connection.request(
                    MetadataRequest(topics=None if wants_all else []), version
                )
                rewrite(_METADATA, version, body, listener.passing.endpoint_for)
                return body
        assert problem is not None
        raise problem

    # ---- listeners ---------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the bootstrap listener, for a client on this machine: of several
        listeners, of the first."""
        return self._address(self._first.bootstrap)

    @property
    def addresses(self) -> dict[int, str]:
        """Broker id -> ``host:port`` of its listener, for a client on this machine: of several
        listeners, of the first."""
        return self._addresses_at(self._first)

    @property
    def listeners(self) -> dict[str, dict[str, Any]]:
        """The upstream's listeners by name, each with ``bootstrap`` and ``brokers`` as above."""
        return {
            name: {
                "bootstrap": self._address(each.bootstrap),
                "brokers": {str(key): at for key, at in self._addresses_at(each).items()},
            }
            for name, each in self._upstreams.items()
            if name
        }

    @property
    def brokers(self) -> dict[int, Target]:
        """The brokers that the upstream has named; at several listeners, at the first."""
        return self._first.brokers

    def _addresses_at(self, listener: _Listener) -> dict[int, str]:
        return {
            broker_id: self._address(target)
            for broker_id, target in sorted(listener.brokers.items())
        }

    def _address(self, target: Target) -> str:
        listener = self._listeners[id(target)]
        return show(dialable(listener.host), listener.port)

    @property
    def connections(self) -> list[ProxiedConnection]:
        """The open connections, of all listeners."""
        listeners = {id(each): each for each in self._listeners.values()}
        return [each for listener in listeners.values() for each in listener.connections]

    def _connections_of(self, target: Target) -> list[ProxiedConnection]:
        connections = self._listeners[id(target)].connections
        return [each for each in connections if each.target is target]

    def _listener_of(self, target: Target, port: int) -> BrokerListener[ProxiedConnection]:
        listener: BrokerListener[ProxiedConnection] = BrokerListener(
            target.node_id,
            self.options.host,
            port,
            lambda _node_id, connections: ProxiedConnection(self, target, connections),
            self._client_tls(target.upstream),
            self.options.limits.idle_timeout_ms,
            self._note_refused,
            # Each client needs one more descriptor, for its connection to the upstream.
            lambda: SPARE_FOR_CLIENTS + self._connecting,
        )
        self._listeners[id(target)] = listener
        return listener

    def _client_tls(self, upstream: UpstreamListener) -> ssl.SSLContext | None:
        return self.options.tls if upstream.may_use_tls else None

    def _endpoint_for(
        self, listener_name: str, role: Role, node_id: int, host: str, port: int
    ) -> Address:
        """Return the address that stands for this one, which the upstream gave at a listener. One
        that is new gets its listener first, except for a broker that clients ask for by its host
        name. Raises ClusterError if it cannot have one."""
        its = self._upstreams[listener_name]
        sni = self.options.sni if its.upstream.may_use_tls else None
        above = its.place * PORTS_BETWEEN
        if role == "broker":
            target = its.brokers.get(node_id)
            if target is None:
                self._check_number()
                target = Target(f"broker {node_id}", node_id, its.upstream)
                base = self.options.broker_port_base
                if sni is not None:
                    self._listeners[id(target)] = self._listeners[id(its.bootstrap)]
                else:
                    self._listen(target, 0 if base is None else base + above + node_id)
                its.brokers[node_id] = target
        else:
            target = self._controllers.get((host, port))
            if target is None:
                self._check_number()
                target = Target(f"controller {node_id}", node_id, its.upstream)
                self._listen(target, 0)
                self._controllers[host, port] = target
        if target.addresses != [(host, port)]:
            target.addresses = [(host, port)]
        listener = self._listeners[id(target)]
        if sni is not None and role == "broker":
            return sni.host(node_id), sni.port or listener.port
        if self.options.advertise is None:
            return dialable(listener.host), listener.port
        advertised, base = self.options.advertise
        own_port = base is None or role != "broker"
        if own_port:
            return advertised, listener.port
        return advertised, base + above + node_id  # type: ignore[operator]

    def _check_number(self) -> None:
        """Raises ClusterError if the upstream may name no more brokers and controllers."""
        most = self.options.max_targets
        brokers = sum(len(each.brokers) for each in self._upstreams.values())
        if brokers + len(self._controllers) >= most:
            raise ClusterError(
                f"the upstream names more than {most} brokers and controllers (--max-targets)"
            )

    def _listen(self, target: Target, port: int) -> None:
        """Take a port now, so that its number is known, and accept connections soon."""
        if port > 65535:
            raise ClusterError(f"{target.name} would listen on port {port}, which is above 65535")
        listener = self._listener_of(target, port)
        try:
            listener.reserve()
        except OSError as error:
            del self._listeners[id(target)]
            where = show(self.options.host, port)
            raise ClusterError(
                f"{target.name} cannot listen on {where}: {error.strerror or error}"
            ) from None
        task = asyncio.get_running_loop().create_task(listener.open())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    # ---- for connections ---------------------------------------------------------------------

    def next_connection_id(self) -> int:
        """Connections are counted from 1, over all listeners."""
        return next(self._connection_ids)

    def passing_of(self, target: Target) -> Passing:
        """Return what the connections to this target share."""
        return self._upstreams[target.listener].passing

    def users_of(self, target: Target) -> SaslUsers | None:
        """Return the users that may authenticate here; None needs no authentication."""
        return self.users if target.upstream.may_use_sasl else None

    def target_of(self, target: Target, tls: Any) -> Target:
        """Return the target of a connection that the listener of ``target`` has accepted, with this
        SSL object."""
        sni = self.options.sni
        its = self._upstreams[target.listener]
        if sni is None or self._names is None or target is not its.bootstrap:
            return target
        broker_id = sni.broker_id(self._names.requested(tls))
        if broker_id is None:
            return target
        found = its.brokers.get(broker_id)
        return found or Target(f"broker {broker_id}", broker_id, its.upstream)

    def _note_refused(self, node_id: int, peer: str, event: str, note: str) -> None:
        session = Session(self.next_connection_id(), node_id, peer)
        self.recorder.event(session, event, note)

    def closed(self, connection_id: int) -> None:
        """A client's connection is closed."""
        if self.served is not None:
            self.served.closed(connection_id)

    async def connect(self, upstream: UpstreamSide, target: Target, ends: Ends) -> None:
        """Connect to the first address that accepts. Raises OSError."""
        if target.refused:
            raise ClusterError("connections are refused (refuse-upstream)")
        problem: OSError | None = None
        header = proxy_header(*ends)
        self._connecting += 1
        try:
            for host, port in list(target.addresses):
                try:
                    await self._connect(upstream, target.upstream, host, port, header)
                except OSError as error:
                    problem = error
                else:
                    return
        finally:
            self._connecting -= 1
        raise OSError("no address is known") if problem is None else problem

    async def _connect(
        self, upstream: UpstreamSide, at: UpstreamListener, host: str, port: int, header: bytes
    ) -> None:
        if self.options.upstream_sasl is None or not at.may_use_sasl:
            tls = self.options.upstream_tls if at.may_use_tls else None
            place: dict[str, Any] = {"host": host, "port": port}
            if self.options.send_proxy_header:
                place = {
                    "sock": await _dial(host, port, header),
                    "server_hostname": None if tls is None else host,
                }
            await asyncio.get_running_loop().create_connection(lambda: upstream, ssl=tls, **place)
            return
        connection = await self._open(at, host, port, header)
        try:
            connection.hand_over(upstream)
        except BaseException:
            await connection.close()
            raise

    async def _open(self, at: UpstreamListener, host: str, port: int, header: bytes) -> Connection:
        """Connect as a client of its own. Raises OSError or KprotoError."""
        sock = await _dial(host, port, header) if self.options.send_proxy_header else None
        tls = self.options.upstream_tls if at.may_use_tls else None
        try:
            connection = await Connection.open(host, port, ssl=tls, sock=sock)
        except BrokerError as error:
            raise ClusterError(f"the upstream says: {error}") from None
        mechanism = self.options.upstream_sasl
        if mechanism is None or not at.may_use_sasl:
            return connection
        try:
            await connection.authenticate(mechanism.mechanism, mechanism.exchange())
        except BrokerError as error:
            await connection.close()
            raise ClusterError(f"the upstream says: {error}") from None
        except BaseException:
            await connection.close()
            raise
        return connection

    async def take_over(self, connection: ProxiedConnection, held: Held) -> None:
        """Deal with a request that a rule of faults may take."""
        await self._faults.take_over(connection, held)

    def _learn(self, place: int, body: Any, api_key: int) -> None:
        if api_key == _METADATA:
            self._faults.topics.learn(body)
            if self.served is not None and not place:
                self.served.learn(body)

    @property
    def _targets(self) -> list[Target]:
        found: list[Target] = []
        for each in self._upstreams.values():
            found += [each.bootstrap, *(each.brokers[key] for key in sorted(each.brokers))]
        return [*found, *self._controllers.values()]

    def to_dict(self) -> dict[str, Any]:
        """The listeners, what stands behind each, and the settings, as JSON values."""
        return {
            "bootstrap": self.bootstrap,
            "profile": self.options.profile,
            "detail": self.recorder.detail,
            "serve": [] if self.served is None else list(self.served.versions),
            "buffered_bytes": self.budget.held,
            "listeners": [
                {
                    "name": target.name,
                    "node_id": target.node_id,
                    "listener": target.listener,
                    "address": self._address(target),
                    "upstream": [show(*each) for each in target.addresses],
                    "connections": len(self._connections_of(target)),
                    "refused": target.refused,
                    **self.paces.of(target.node_id, target.listener).to_dict(),
                }
                for target in self._targets
            ],
        }

    # ---- rules of faults ---------------------------------------------------------------------

    def load_faults(self, faults: Sequence[Fault]) -> list[ActiveFault]:
        """Add these rules, in this order, in front of the existing ones. Raises FaultError if one
        of them cannot be used here, and then adds none."""
        self._faults.follow_clock()
        return self._faults.rules.add(faults)

    @property
    def faults(self) -> list[ActiveFault]:
        """Every rule in the order in which they are tried, including those that have ended."""
        self._faults.follow_clock()
        return [*self._faults.rules]

    def remove_fault(self, rule: ActiveFault | str) -> None:
        """Remove a rule, given as an object or by name. Raises FaultError if there is none."""
        self._faults.rules.remove(rule)

    def clear_faults(self) -> None:
        """Remove every rule."""
        self._faults.rules.clear()

    async def wait_for_hit(self, rule: ActiveFault, hits: int = 1) -> None:
        """Wait until the rule has this many hits in total. Raises FaultError once that is
        impossible. Callers set their own limit, for example with ``asyncio.timeout``."""
        await rule.wait_for_hits(hits, self._faults.follow_clock)

    def unused_faults(self) -> list[ActiveFault]:
        """The rules that no request has hit."""
        return self._faults.rules.unused()

    def failed_faults(self) -> list[ActiveFault]:
        """The rules that could not do what they are for; ``failed`` of each says what."""
        return self._faults.rules.failed()

    # ---- operations --------------------------------------------------------------------------

    def run_command(self, text: str) -> None:
        """Carry out an operation, such as ``drop-upstream 2``. Raises ClusterError."""
        self.run_call(parse_operation(text, operations=PROXY_OPERATIONS))

    def run_call(self, call: OperationCall) -> None:
        """Carry out an operation that was parsed before. Raises ClusterError."""
        call.run(self)

    def _carry_out_step(self, text: str, receiver: int) -> None:
        """Carry out a step of a rule, for a request that this broker's listener received."""
        call = parse_operation(text, relative_brokers=True, operations=PROXY_OPERATIONS)

        def broker_id(choice: BrokerChoice) -> int:
            if isinstance(choice, int):
                return choice
            if choice == "self":
                return receiver
            other = next((each for each in sorted(self.brokers) if each != receiver), None)
            if other is None:
                raise ClusterError(f"no broker other than {receiver} is known")
            return other

        self.run_call(call.with_broker(broker_id))

    def _targets_of(self, broker_id: int) -> list[Target]:
        """Return a broker at all listeners. Raises UnknownBrokerError."""
        found = [each for each in self._targets if each.node_id == broker_id]
        if not found:
            raise UnknownBrokerError(f"the upstream has named no broker {broker_id} yet")
        return found

    def drop_upstream(self, broker_id: int) -> None:
        """Close the connections to an upstream broker, and those of their clients."""
        for target in self._targets_of(broker_id):
            for connection in self._connections_of(target):
                connection.drop(f"drop-upstream {broker_id}")

    def refuse_upstream(self, broker_id: int) -> None:
        """Close new connections for an upstream broker at once."""
        for target in self._targets_of(broker_id):
            target.refused = True

    def allow_upstream(self, broker_id: int) -> None:
        """Accept connections for an upstream broker again."""
        for target in self._targets_of(broker_id):
            target.refused = False

    def set_latency(self, milliseconds: int, place: Place | None = None) -> None:
        """Delay everything that passes, in each direction. Raises ClusterError for an unknown
        place."""
        self._check_place(place)
        self.paces.set_latency(milliseconds / 1000, place)

    def set_bandwidth(self, bytes_per_second: int, place: Place | None = None) -> None:
        """Limit the bytes a second of each connection, in each direction; 0 ends it. Raises
        ClusterError for an unknown place."""
        self._check_place(place)
        self.paces.set_bandwidth(bytes_per_second, place)

    def _check_place(self, place: Place | None) -> None:
        found: dict[int, list[str]] = {}
        for each in self._targets:
            found.setdefault(each.node_id, []).append(each.listener)
        check_place(place, found)

    # ---- what clients lose -------------------------------------------------------------------

    def notices(self) -> list[str]:
        """What the user who starts the proxy should know, a line each."""
        lines = [self._sasl_notice()]
        if self.served is not None:
            names = ", ".join(self.dialect.api(key).name for key in self.served.versions)
            lines.append(
                f"a mock cluster of {self.served.profile.name} answers {names}; the cluster learns "
                "nothing of these requests"
            )
        if self.clamp.profile is not None:
            name = self.clamp.profile.name
            lost = consequences(self.clamp, self.upstream_versions)
            lines += [f"--profile {name}: {each}" for each in lost]
        return lines

    def _sasl_notice(self) -> str:
        upstream = "no authentication"
        if self.options.upstream_sasl is not None:
            upstream = f"{self.options.upstream_sasl.mechanism} of its own"
        if self.users is not None:
            names = ", ".join(self.users.mechanisms)
            return f"SASL ends here: clients authenticate to the proxy ({names}), which uses " + (
                f"{upstream} to the upstream"
            )
        if self.options.upstream_sasl is not None:
            return f"SASL is the proxy's: it uses {upstream} to the upstream, for every client"
        return (
            "SASL passes through: clients authenticate to the upstream (PLAIN, SCRAM and "
            "OAUTHBEARER; GSSAPI fails, because it depends on the broker's host name)"
        )


async def _dial(host: str, port: int, header: bytes) -> socket.socket:
    """Connect, and send this ahead of everything, TLS included. Raises OSError."""
    loop = asyncio.get_running_loop()
    problem: OSError | None = None
    for family, kind, protocol, _, place in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        found = socket.socket(family, kind, protocol)
        found.setblocking(False)
        try:
            await loop.sock_connect(found, place)
            await loop.sock_sendall(found, header)
        except OSError as error:
            found.close()
            problem = error
        except BaseException:
            found.close()
            raise
        else:
            return found
    raise OSError("no address is known") if problem is None else problem
