"""A running mock cluster: the simulated one, its brokers' sockets, its clock and its journal.

This is where the pure state meets the event loop. It knows no wire format and no HTTP: frames are
``dispatch``'s business, the control port is ``control``'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, TypeAlias

from kproto.dialects import Dialect
from kproto.dialects import dialect as _dialect
from kproto.journal import Journal
from kproto.schema.versions import Versions
from kproto.znodes import ZnodeStore
from mockbroker.cluster import Cluster
from mockbroker.errors import ClusterError
from mockbroker.inter_broker.software_versions import INTER_BROKER
from mockbroker.profiles import DEFAULT_PROFILE, Profile
from mockbroker.profiles import profile as _profile
from mockbroker.reassignment import reassignment_controller
from mockbroker.security.authorizer import Authorizer
from mockbroker.security.policy import Security
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.endpoints import Advertised, dialable, show
from mockbroker.serving.fault_controls import FaultControls
from mockbroker.serving.inter_broker_controls import InterBrokerControls, Level, brokers_of
from mockbroker.serving.limits import DEFAULTS, BufferBudget, Limits
from mockbroker.serving.operations import Operations, SuspendedOperations
from mockbroker.serving.scripted_answers import ScriptedAnswers
from mockbroker.serving.served_versions import check_release, served_versions
from mockbroker.serving.server import BrokerListener, BrokerProtocol
from mockbroker.serving.step_controls import StepControls
from mockbroker.state.model import Broker
from mockbroker.timers import Alarm, wall_ms

__all__ = ["Clock", "MockCluster"]

_SESSION_TIMEOUT = "zookeeper.session.timeout.ms"
_SESSION_TIMEOUT_MS = 6_000

Clock: TypeAlias = Literal["wall", "manual"]


class MockCluster(StepControls, FaultControls, ScriptedAnswers, InterBrokerControls):
    """Brokers that real Kafka clients can connect to, in this process::

        async with MockCluster(brokers=4, topics=["foo=1,2,3"], profile="kafka-4.1") as mock:
            admin = SomeClient(bootstrap_servers=mock.bootstrap)
            ...                                     # the client starts a reassignment of foo-0
            mock.join_isr("foo-0", 4)               # and it goes on when the test says so
            assert mock.journal.select(api=45, direction="request")

    ``brokers`` is how many (ids 1..N, controller 1) or the brokers themselves; ``topics`` are
    ``--topic`` texts or (name, assignment) pairs. ``host`` and ``port`` are what broker 1 listens
    on; with a port other than 0 broker n takes ``port + n - 1``. ``advertise`` is the (host, port)
    that Metadata gives for broker 1, port None being each broker's own. ``apis`` overrides the
    profile's versions, None hiding a key; ``implemented_only`` hides what has no handler.
    ``broker_configs`` are static configs of every broker, by Kafka's names; unlike Kafka's brokers
    these create no topic because Metadata asked for it, unless ``auto_create_topics``.
    ``dialect`` is a name, or what ``kproto.load_dialect`` returned; "auto" takes the released
    protocol and the drafts of KIP-455, and answers each request in its own.

    ``zookeeper`` is where a controller of the ZooKeeper kind keeps what it knows:
    "host:port[,host:port...][/chroot]" of a real one (needs the ``zookeeper`` extra), a session on
    whatever you like, or None for one of this process's own. There, ``zxid`` is the last one before
    this cluster's.

    ``clock`` "wall" lets the simulated time follow real time, "manual" only ``advance``;
    ``auto_progress_ms`` lets one replica join an ISR each time it has passed. ``reply35`` answers
    versions that are not served with error 35, where brokers close the connection.

    ``sasl`` are ``MECHANISM:USER:PASSWORD`` texts: with any, clients must authenticate, and are
    User:<name> from then on. ``scram_iterations`` is what SCRAM's first answer claims in place of
    the truth, to see what clients make of it: nobody can authenticate then; ``scram_final`` stands
    in place of the broker's proof. ``tls`` is what every listener serves with (a server's context);
    where it asks for client certificates, their owners are the principals. ``authorizer`` enforces
    the access rules; without one everybody may do everything.

    ``propagation_ms`` is how long every broker takes to hear of a change. ``busy_elections_fail``:
    while an election is in KIP-183's queue, others are told 7 at once, and do not wait.

    ``inter_broker``: a controller of the ZooKeeper kind sends its brokers what the log says it does
    (LeaderAndIsr, StopReplica, UpdateMetadata), on sockets apart from their clients', and into the
    same journal. None, the default, does so for the profiles of proposals, whose subject that is,
    and where there are external brokers; of released ones the journal holds what clients say.
    ``external_brokers`` are brokers of other processes, by id: it sends to them too, at (host,
    port), and Metadata shows them. ``broker_levels`` are brokers that start with other software.

    ``max_frame_bytes`` to ``idle_timeout_ms`` are what clients may take, ``journal_entries`` and
    ``journal_bytes`` what is kept of it without a ``journal``: see ``mockbroker.serving.limits``.

    ``strict_faults``: a rule of faults that was never hit is an AssertionError where the ``async
    with`` ends.

    Raises ClusterError or UnknownNameError for what makes no sense, OSError from ``start`` when an
    address is taken. Everything must be called from the event loop that ran ``start``.
    """

    def __init__(
        self,
        brokers: int | Iterable[Broker] = 3,
        *,
        topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = (),
        profile: str | Profile = DEFAULT_PROFILE,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: tuple[str, int | None] | None = None,
        apis: Mapping[int, Versions | None] | None = None,
        implemented_only: bool = False,
        dialect: str | Dialect | None = None,
        auto_progress_ms: int | None = None,
        clock: Clock = "wall",
        auto_create_topics: bool = False,
        broker_configs: Mapping[str, str] = MappingProxyType({}),
        reply35: bool = False,
        journal: Journal | None = None,
        max_frame_bytes: int = DEFAULTS.max_frame_bytes,
        max_connections: int = DEFAULTS.max_connections,
        max_buffered_bytes: int = DEFAULTS.max_buffered_bytes,
        idle_timeout_ms: int | None = DEFAULTS.idle_timeout_ms,
        journal_entries: int = DEFAULTS.journal_entries,
        journal_bytes: int = DEFAULTS.journal_bytes,
        sasl: Iterable[str] = (),
        scram_iterations: int | None = None,
        scram_final: str | None = None,
        tls: ssl.SSLContext | None = None,
        authorizer: Authorizer | None = None,
        zookeeper: str | ZnodeStore | None = None,
        zxid: int = 0,
        propagation_ms: int = 0,
        busy_elections_fail: bool = False,
        inter_broker: bool | None = None,
        external_brokers: Mapping[int, tuple[str, int]] = MappingProxyType({}),
        broker_levels: Mapping[int, Level] = MappingProxyType({}),
        strict_faults: bool = False,
    ) -> None:
        limits = Limits(
            max_frame_bytes, max_connections, max_buffered_bytes, idle_timeout_ms,
            journal_entries, journal_bytes,
        )  # fmt: skip
        self.profile = _profile(profile) if isinstance(profile, str) else profile
        spoken = self.profile.dialect if dialect is None else dialect
        self.dialect = _dialect(spoken) if isinstance(spoken, str) else spoken
        self.journal = limits.journal() if journal is None else journal
        self.clock: Clock = clock
        self._skipped_ms = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        check_release(self.profile, self.dialect, apis or {})
        self.operations = Operations()
        self._znodes = self._znode_store(zookeeper, zxid, broker_configs)
        served = served_versions(
            self.profile, self.dialect, apis, implemented_only=implemented_only
        )
        self._external = dict(external_brokers)
        self.cluster = Cluster(
            brokers_of(brokers, self._external, self.profile, self.dialect, served, broker_levels),
            topics=topics,
            now_ms=wall_ms() if clock == "wall" else 0,
            auto_progress_ms=auto_progress_ms,
            completion=self.profile.completion,
            machine=self.profile.machine,
            elections=self.profile.elections,
            busy_elections_fail=busy_elections_fail,
            administration=self.profile.administration,
            config_release=self.profile.line,
            znodes=self._znodes,
            zxid=zxid,
            newest={key: each.highest for key, each in served.items() if key in INTER_BROKER},
            broker_configs={
                "auto.create.topics.enable": str(auto_create_topics).lower(),
                **broker_configs,
            },
        )
        self.cluster.turn = self.operations.turn
        self.cluster.on_death = lambda broker_id: self._soon(self._close(broker_id))
        self._alarm = Alarm(lambda: self._loop, self._due)
        if clock == "wall":
            self.cluster.when_due = self._set_alarm
        self._propagation_ms = propagation_ms
        self.auto_progress_ms = auto_progress_ms
        self._dispatcher = Dispatcher(
            cluster=self.cluster,
            profile=self.profile,
            codec=self.dialect,
            served=served,
            journal=self.journal,
            reply35=reply35,
            follow_clock=self.follow_clock,
            security=Security.of(authorizer, sasl, scram_iterations, scram_final),
            operations=self.operations,
            perform_step=self._perform,
        )
        self._strict_faults = strict_faults
        self._room = BufferBudget(limits)
        self._advertised = Advertised(advertise)
        idle_ms = limits.idle_timeout_ms
        self._listeners = {
            broker_id: BrokerListener(
                broker_id, host, port + place if port else 0, self._make_protocol, tls, idle_ms
            )
            for place, broker_id in enumerate(self.cluster.brokers)
            if broker_id not in self._external
        }
        self._network = self._inter_broker_network(
            self.profile.proposed or bool(self._external) if inter_broker is None else inter_broker
        )
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- life --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()
        if self._strict_faults and error is None:
            self.assert_faults_used()

    async def start(self) -> None:
        """Open every live broker's listener; on return clients can connect."""
        self._loop = asyncio.get_running_loop()
        self.operations.bind(self._loop)
        try:
            for broker in self.cluster.brokers.values():
                if broker.live and broker.broker_id not in self._external:
                    await self._open(broker.broker_id)
            if self._network is not None:
                await self._network.start()
        except OSError:
            await self.stop()
            raise
        if self._propagation_ms:
            # From here on: everybody knows where everybody listens.
            await self.take(self.set_propagation, self._propagation_ms)
        self._schedule_tick()

    async def stop(self) -> None:
        """Close every listener and connection. Calling it twice does no harm."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._alarm.cancel()
        self._loop = None
        if self._znodes is not None:
            await asyncio.to_thread(self._znodes.close)
        self.operations.bind(None)
        if self._network is not None:
            await self._network.stop()
        for listener in self._listeners.values():
            await listener.close()

    @property
    def bootstrap(self) -> str:
        """``host:port`` of every broker, comma-separated: where the listeners are."""
        return ",".join(self.addresses.values())

    @property
    def addresses(self) -> dict[int, str]:
        """Broker id -> ``host:port`` it listens on, as something that can be dialled."""
        return {
            broker_id: show(dialable(listener.host), listener.port)
            for broker_id, listener in self._listeners.items()
        }

    @property
    def served(self) -> Mapping[int, Versions]:
        """What ApiVersions says: api key -> versions."""
        return self._dispatcher.served

    def connections(self, broker_id: int) -> int:
        """How many clients are connected to a broker now; of one of another process nobody here
        knows (0)."""
        self.cluster.broker(broker_id)
        listener = self._listeners.get(broker_id)
        return 0 if listener is None else len(listener.connections)

    # ---- znodes ------------------------------------------------------------------------------

    def _znode_store(
        self, zookeeper: str | ZnodeStore | None, zxid: int, configs: Mapping[str, str]
    ) -> ZnodeStore | None:
        if not 0 <= zxid < 2**63 or (zxid and zookeeper is not None):
            raise ClusterError(
                f"zxid {zxid}: give 0 to {2**63 - 1}, of a ZooKeeper of this process's own"
            )
        if (zookeeper is not None or zxid) and not reassignment_controller(
            self.profile.machine
        ).keeps_znodes:
            raise ClusterError(
                f"profile {self.profile.name} keeps nothing in ZooKeeper; `mockbroker profiles` "
                "lists those that do"
            )
        if not isinstance(zookeeper, str):
            return zookeeper
        from kproto.client.zookeeper import KazooStore  # kazoo is an extra

        self.operations = operations = SuspendedOperations()
        return KazooStore(
            zookeeper,
            session_timeout=int(configs.get(_SESSION_TIMEOUT, _SESSION_TIMEOUT_MS)) / 1000,
            wakeup=self._woken,
            suspend=operations.suspend,
        )

    def _woken(self) -> None:
        """There are watch events to take. Called on a thread of kazoo's."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._react)

    def _react(self) -> None:
        if self._loop is None:
            return
        self.follow_clock()
        if self._znodes is not None and self._znodes.expired:
            self.operations.preempt()
        self.operations.spawn(self.cluster.react)

    def _soon(self, coroutine: Coroutine[Any, Any, None]) -> None:
        if self._loop is None:
            return coroutine.close()
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        return task.add_done_callback(self._tasks.discard)

    def _make_protocol(self, broker_id: int, connections: set[BrokerProtocol]) -> BrokerProtocol:
        return BrokerProtocol(self._dispatcher, broker_id, connections, self._room)

    async def _open(self, broker_id: int) -> None:
        listener = self._listeners[broker_id]
        await listener.open()
        place = list(self.cluster.brokers).index(broker_id)
        host, port = self._advertised.endpoint(place, listener.host, listener.port)
        await self.take(self.cluster.set_endpoint, broker_id, host, port)

    async def _close(self, broker_id: int) -> None:
        """The broker's process has ended, if it is in this one."""
        listener = self._listeners.get(broker_id)
        if listener is not None:
            await listener.close()
        if self._network is not None:
            await self._network.close(broker_id)

    async def _reopen(self, broker_id: int) -> None:
        """Listen again, on the same port."""
        listener = self._listeners.get(broker_id)
        if listener is not None and not listener.listening:
            await self._open(broker_id)
        if self._network is not None:
            await self._network.open(broker_id)

    # ---- the clock ---------------------------------------------------------------------------

    def follow_clock(self) -> None:
        """Bring the simulated time up to the real one, where it follows that."""
        if self.clock == "wall" and self._now() > self.cluster.now_ms and not self.operations.busy:
            self.operations.spawn(partial(self.cluster.follow, self._now))

    def _now(self) -> int:
        return wall_ms() + self._skipped_ms

    def _set_alarm(self, due_ms: int | None) -> None:
        self._alarm.set(None if due_ms is None else due_ms - self.cluster.now_ms)

    def _due(self) -> None:
        self.follow_clock()
        # Timers may be a moment early.
        self._set_alarm(self.cluster.next_due_ms)

    def _schedule_tick(self) -> None:
        if self.clock == "wall" and self.auto_progress_ms is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.auto_progress_ms / 1000, self._tick)

    def _tick(self) -> None:
        self.follow_clock()
        self._schedule_tick()
