"""A running mock cluster: the simulated cluster with its sockets, clock and journal.

This module joins the parts and gives tests one object to call. It knows no wire format and no
HTTP; the parts are in ``serving``, the control port in ``control``.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack

from kproto.dialects import Dialect, dialect
from kproto.schema.versions import Versions
from kproto.transcript import Transcript
from kproto.znodes import Stat, ZnodeStore
from mockbroker.errors import ClusterError, FaultError, raise_together
from mockbroker.faults.documents import fault_of
from mockbroker.faults.matching import ActiveFault, Predicate
from mockbroker.faults.members import FaultMembers
from mockbroker.faults.rule import Fault
from mockbroker.options import Clock, ClusterOptions, takes_cluster_options
from mockbroker.options.listener_configs import of_listeners
from mockbroker.options.option_types import api_overrides
from mockbroker.profiles import Profile, profile, with_fixes
from mockbroker.running.data_methods import DataMethods
from mockbroker.running.operation_methods import LoopOperations
from mockbroker.serving.broker_sockets import BrokerSockets
from mockbroker.serving.client_listeners import (
    all_listeners,
    apart_listeners,
    broker_listeners,
    controller_ids,
    made_listeners,
    unnamed,
)
from mockbroker.serving.cluster_clock import ClusterClock
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.endpoints import Advertised
from mockbroker.serving.fault_operations import FaultOperations
from mockbroker.serving.inter_broker_setup import (
    brokers_to_register,
    inter_broker_network,
    software_versions,
)
from mockbroker.serving.limits import Admission, BufferBudget, idle_timeout_ms
from mockbroker.serving.listeners import BrokerListener
from mockbroker.serving.pacing import Paces
from mockbroker.serving.preloading import preload
from mockbroker.serving.replay_stage import Replay
from mockbroker.serving.saved_state import ClusterSnapshots
from mockbroker.serving.scripts import EVERY_VERSION, Script, Scripted
from mockbroker.serving.served_versions import check_release, controller_versions, served_versions
from mockbroker.serving.server import BrokerProtocol, Listener
from mockbroker.serving.suspended_calls import Calls, SuspendedCalls
from mockbroker.simulation.brokers.inter_broker.broker_memory import BrokerMemory
from mockbroker.simulation.brokers.inter_broker.software_versions import INTER_BROKER
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations import OperationCall, RunningCluster, parse_operation
from mockbroker.simulation.operations.arguments import Level
from mockbroker.simulation.reassignment import keeps_znodes
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.state.actions import Action
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, BrokerEndpoint
from mockbroker.simulation.state.settings import ClusterSettings
from mockbroker.simulation.state.timers import Alarm, sleep, wall_ms
from mockbroker.simulation.state.turns import no_wait

__all__ = ["Clock", "ClusterOptions", "MockCluster"]

_log = logging.getLogger("mockbroker")

P = ParamSpec("P")
T = TypeVar("T")

_SESSION_TIMEOUT = "zookeeper.session.timeout.ms"
_SESSION_TIMEOUT_MS = 6_000


class MockCluster(DataMethods, LoopOperations):
    """Brokers that real Kafka clients can connect to, in this process::

        async with MockCluster(brokers=4, topics=["foo=1,2,3"], profile="kafka-4.1") as mock:
            admin = SomeClient(bootstrap_servers=mock.bootstrap)
            ...                                     # the client starts a reassignment of foo-0
            mock.join_isr("foo-0", 4)               # the reassignment proceeds
            assert mock.journal.select(api=45, direction="request")

    The arguments are those of ``ClusterOptions``, which documents them; ``from_options`` takes the
    object itself.

    Raises ClusterError or UnknownNameError for options that make no sense, and OSError from
    ``start`` if an address is not available. Call everything from the event loop that ran
    ``start``.

    Operations such as ``join_isr`` are plain methods. With a real ZooKeeper server, use
    ``await mock.run_command("join-isr foo-0 4")`` or ``await mock.take(mock.join_isr, "foo-0", 4)``
    instead: these wait for the server without blocking the event loop.
    """

    @takes_cluster_options
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._set_up(ClusterOptions(*arguments, **options))

    @classmethod
    def from_options(cls, options: ClusterOptions) -> Self:
        """A cluster with these options."""
        made = cls.__new__(cls)
        made._set_up(options)
        return made

    def _set_up(self, options: ClusterOptions) -> None:
        self.options = options
        release = options.profile
        base = profile(release) if isinstance(release, str) else release
        if not isinstance(base, Profile):
            raise ClusterError(f'"profile" must be a name or a Profile, not {base!r:.80}')
        self.profile = with_fixes(base, options.fixes)
        named = self.profile.dialect if options.dialect is None else options.dialect
        self.dialect = dialect(named) if isinstance(named, str) else named
        if not isinstance(self.dialect, Dialect):
            raise ClusterError(f'"dialect" must be a name or a Dialect, not {named!r:.80}')
        self.journal = options.new_journal() if options.journal is None else options.journal
        self.clock: Clock = options.clock
        self.auto_progress_ms = options.auto_progress_ms
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._overrides = api_overrides(options.apis or {})
        check_release(self.profile, self.dialect, self._overrides)
        self.calls = Calls()
        self._znodes = self._znode_store(options)
        served = self._served_by_release(self.profile)
        self.cluster = self._simulated_cluster(options, served)
        configs = self.cluster.configs
        self._configured = broker_listeners(options, self.cluster.brokers)
        listeners = all_listeners(options, self._configured)
        nodes = controller_ids(options, self._configured, self.cluster.brokers)
        if nodes:
            self.cluster.quorum.use_nodes(nodes)
        names = {each.name for each in listeners}
        unknown = [each for each in configs.unknown() if not of_listeners(each, names)]
        for problem, listed in (
            ("broker configs that the mock does not know have no effect", unknown),
            ("these configs have no effect here", configs.ineffective(self.profile.software)),
        ):
            if listed:
                _log.warning("%s: %s", problem, ", ".join(listed))
        self.cluster.turns.on_succession.append(
            lambda broker_id: self._schedule(self._sockets.close(broker_id))
        )
        self._clock = ClusterClock(
            self.cluster,
            self.calls,
            partial(Alarm, lambda: self._loop),
            follows_wall=options.clock == "wall",
        )
        authorizer = options.authorizer
        assert not isinstance(authorizer, Mapping), "read when the options were made"
        security = Security.of(
            authorizer, options.sasl, options.scram_iterations, options.scram_first,
            options.scram_final,
            options.oauth_clients, self.profile.software,
            authenticates=any(each.authenticates for each in listeners),
        )  # fmt: skip
        self.token_issuer = None if security.sasl is None else security.sasl.issuer
        """Gives signed tokens to OAuth clients; None without any."""
        if security.sasl is not None:
            security.sasl.use_stored(self.cluster.scram)
            security.sasl.use_tokens(self.cluster.tokens.login)
        self._dispatcher = self._make_dispatcher(security, served, self._served_by_release)
        self._controllers = self._controller_dispatcher(security) if nodes else self._dispatcher
        self._budget = BufferBudget(options)
        self._paces = Paces()
        self._admissions: dict[int, Admission] = {}
        self._sockets = BrokerSockets(
            self.cluster,
            made_listeners(
                options, self.cluster.brokers, self._configured, security.sasl, self._make_listener
            ),
            inter_broker_network(
                self._dispatcher, self.journal, options.external_brokers, options.inter_broker
            ),
            Advertised(options.advertise),
            self._set_endpoint,
            self._paces,
            apart_listeners(
                options,
                nodes if options.controllers else (),
                len(self.cluster.brokers),
                security.sasl,
                self._make_listener,
            ),
        )
        self._saved = ClusterSnapshots(
            (self._dispatcher, self._controllers),
            self._sockets,
            self._clock,
            self.journal,
            outside=isinstance(options.zookeeper, str),
        )
        self._fault_operations = FaultOperations(
            self.cluster,
            self._clock,
            self._sockets,
            self._saved,
            self._software,
            self._dispatcher.software.release,
            self._schedule,
        )
        self._target = RunningCluster(
            self.cluster,
            self._sockets,
            self._saved,
            self._clock.advance,
            self._software,
            self._dispatcher.software.release,
            lambda change: self.calls.run(change),
            _now,
        )

    def _controller_dispatcher(self, security: Security) -> Dispatcher:
        """For the listeners of KRaft controllers."""

        def served(release: Profile) -> dict[int, Versions]:
            return controller_versions(release, self.dialect, self._overrides)

        return self._make_dispatcher(security, served(self.profile), served, self._dispatcher)

    def _make_dispatcher(
        self,
        security: Security,
        served: dict[int, Versions],
        serve: Callable[[Profile], dict[int, Versions]],
        beside: Dispatcher | None = None,
    ) -> Dispatcher:
        """``served`` are the versions of the cluster's release, and ``serve`` returns those of
        another one."""
        return Dispatcher(
            cluster=self.cluster,
            profile=self.profile,
            codec=self.dialect,
            served=served,
            journal=self.journal,
            reply35=self.options.reply35,
            follow_clock=self._clock.follow,
            security=security,
            calls=self.calls,
            carry_out=lambda call, broker_id: self._fault_operations.carry_out(call, broker_id),
            serve=serve,
            beside=beside,
        )

    def _served_by_release(self, release: Profile) -> dict[int, Versions]:
        """What brokers of a release serve. After an upgrade, the options and overrides hold as far
        as the new release has the APIs."""
        options = self.options
        upgraded = release is not self.profile
        overrides = self._overrides
        if upgraded:
            overrides = {
                key: each and (each.intersect(release.versions[key]) or None)
                for key, each in overrides.items()
                if key in release.versions
            }
        return served_versions(
            release, self.dialect, overrides, implemented_only=options.implemented_only,
            client_telemetry=options.client_telemetry
            and (bool(release.optional_versions) or not upgraded),
            unstable=options.broker_configs.get("unstable.api.versions.enable", "") == "true",
        )  # fmt: skip

    def _simulated_cluster(
        self, options: ClusterOptions, served: Mapping[int, Versions]
    ) -> Cluster:
        may_wait = isinstance(self.calls, SuspendedCalls)
        return Cluster(
            brokers_to_register(
                options.brokers, options.external_brokers, self.profile, self.dialect, served,
                options.broker_levels, options.racks,
            ),
            topics=options.topics,
            settings=ClusterSettings(
                release=self.profile.software,
                profile=self.profile.name,
                is_proposal=self.profile.is_proposal,
                reassignment=self.profile.reassignment,
                elections=self.profile.elections,
                newest={key: each.highest for key, each in served.items() if key in INTER_BROKER},
                now_ms=wall_ms() if options.clock == "wall" else 0,
            ),
            options=replace(
                options,
                broker_configs={
                    "auto.create.topics.enable": str(options.auto_create_topics).lower(),
                    **options.broker_configs,
                },
            ),
            znodes=self._znodes,
            take_turn=self.calls.turn if may_wait else no_wait,
        )  # fmt: skip

    def _make_listener(
        self, broker_id: int, host: str, port: int, named: Listener, tls: ssl.SSLContext | None
    ) -> BrokerListener[BrokerProtocol]:
        return BrokerListener(
            broker_id,
            host,
            port,
            partial(self._make_protocol, named),
            tls,
            idle_timeout_ms(self.cluster.configs, broker_id, self.options),
            self._dispatcher.note_refused,
        )

    async def _set_endpoint(
        self, broker_id: int, host: str, port: int, endpoints: Sequence[BrokerEndpoint]
    ) -> None:
        await self.take(self.cluster.brokers.set_endpoint, broker_id, host, port, endpoints)

    def _make_protocol(
        self, named: Listener, broker_id: int, connections: set[BrokerProtocol]
    ) -> BrokerProtocol:
        dispatcher = self._dispatcher
        if named.controller is not None:
            dispatcher = self._controllers
            if broker_id not in self.cluster.state.brokers:
                return self._controller_protocol(named, connections)
        admission = self._admissions.get(broker_id)
        if admission is None:
            admission = self._admissions[broker_id] = Admission(self.cluster.configs, broker_id)
        return BrokerProtocol(
            dispatcher, broker_id, connections, self._budget, admission, named,
            partial(self.connections, broker_id), self._paces.of(broker_id, self._name_of(named)),
        )  # fmt: skip

    def _name_of(self, listener: Listener) -> str:
        return listener.name or unnamed(self.options)

    def _controller_protocol(
        self, named: Listener, connections: set[BrokerProtocol]
    ) -> BrokerProtocol:
        """A connection to a controller apart from brokers, which knows what the broker does that
        stands for the active one."""
        state = self.cluster.state
        broker_id = state.controller_id
        if broker_id == NO_CONTROLLER:
            broker_id = min(state.brokers)
        assert named.controller is not None
        return BrokerProtocol(
            self._controllers, broker_id, connections, self._budget, None, named,
            pacing=self._paces.of(named.controller, named.name),
        )  # fmt: skip

    # ---- starting and stopping ---------------------------------------------------------------

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
        if error is None:
            self.check()

    async def start(self) -> None:
        """Open every live broker's listener. Once this returns, clients can connect."""
        preload(self.dialect, self.served)
        self._loop = asyncio.get_running_loop()
        self.calls.bind(self._loop)
        try:
            await self._sockets.start()
        except OSError:
            await self.stop()
            raise
        if self.options.propagation_ms:
            # Only now, so that every broker knows all addresses from the start.
            await self.take(self.set_propagation, self.options.propagation_ms)
        self._clock.start()

    async def stop(self) -> None:
        """Close every listener and connection. Stopping twice is harmless."""
        self._clock.stop()
        self._loop = None
        if self._znodes is not None:
            await asyncio.to_thread(self._znodes.close)
        self.calls.bind(None)
        await self._sockets.stop()

    @property
    def bootstrap(self) -> str:
        """``host:port`` of every broker's listener, of several the first, comma-separated."""
        return ",".join(self.addresses.values())

    def bootstrap_of(self, listener: str) -> str:
        """``host:port`` of every broker's listener of this name, comma-separated. Raises
        ClusterError if no broker has it."""
        found = [each[listener] for each in self.listeners.values() if listener in each]
        if not found:
            names = {name: None for each in self.listeners.values() for name in each}
            raise ClusterError(f"no listener {listener!r}; there are {', '.join(names)}")
        return ",".join(found)

    @property
    def addresses(self) -> dict[int, str]:
        """Broker id -> ``host:port`` that a client on this machine can dial. Of several listeners,
        this is the first."""
        return self._sockets.addresses

    @property
    def listeners(self) -> dict[int, dict[str, str]]:
        """Broker id -> name of a listener -> ``host:port`` that a client on this machine can dial.
        A broker whose configs name no listeners has one, named after its protocol."""
        return self._sockets.named_addresses

    @property
    def served(self) -> Mapping[int, Versions]:
        """API key -> versions, as ApiVersions lists them."""
        return self._dispatcher.served

    @property
    def has_snapshot(self) -> bool:
        """Whether there is a snapshot that ``reset`` returns to."""
        return self._saved.exists

    def connections(self, broker_id: int) -> int:
        """The number of open client connections to a broker; 0 for a broker of another process."""
        self.cluster.controller.broker(broker_id)
        return sum(
            len(each.socket.connections) for each in self._sockets.listeners.get(broker_id, ())
        )

    def follow_clock(self) -> None:
        """Bring the simulated time up to real time, unless the clock is manual."""
        self._clock.follow()

    def _software(self, level: Level) -> Mapping[int, Versions | None]:
        return software_versions(level, self.profile, self.dialect, self.served)

    def _schedule(self, coroutine: Coroutine[Any, Any, None]) -> None:
        if self._loop is None:
            return coroutine.close()
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        return task.add_done_callback(self._tasks.discard)

    # ---- operations --------------------------------------------------------------------------

    async def run_command(self, command: str | OperationCall) -> list[Action]:
        """Carry out an operation of ``mockbroker ctl`` and return the actions that followed::

            await mock.run_command("join-isr foo-0 4")

        Waits for its turn, and for ZooKeeper, without blocking the event loop. Raises ClusterError
        for text that is not an operation, and if the cluster cannot carry it out.
        """
        call = parse_operation(command) if isinstance(command, str) else command
        offset = len(self.cluster.log)
        await self.take(self.carry_out, call)
        return list(self.cluster.log.since(offset))

    def carry_out(self, call: OperationCall) -> Any:
        """Carry out an operation. Raises ClusterError if the cluster cannot."""
        self._clock.follow()
        return call.run(self._target)

    async def take(
        self, method: Callable[P, T | Awaitable[T]], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Call a method and wait for it without blocking the event loop::

            await mock.take(mock.join_isr, "foo-0", 4)

        This matters with a real ZooKeeper server only. A method that is called directly there
        blocks until the server answers, and raises ClusterError while another one waits.
        """
        done = await self.calls.run(partial(method, *arguments, **options))
        return await done if inspect.isawaitable(done) else done

    def read_znode(self, path: str) -> tuple[str, Stat] | None:
        """The text and stat of a znode; None if there is none at this path."""
        return self.cluster.znodes.read(path)

    # ---- inter-broker requests ---------------------------------------------------------------

    async def settled(self, timeout: float = 10.0) -> None:
        """Wait until every broker has answered all requests that the action log says the controller
        sent. Raises ClusterError after ``timeout`` seconds, naming the brokers that have not."""
        if self._sockets.network is not None:
            await self._sockets.network.settled(timeout)

    def broker_knows(self, broker_id: int) -> BrokerMemory:
        """What a broker of this process has learnt from LeaderAndIsr, StopReplica and
        UpdateMetadata since it started. Await ``settled`` first."""
        self.cluster.controller.broker(broker_id)
        return self.cluster.memories[broker_id]

    # ---- faults ------------------------------------------------------------------------------

    def fault(
        self,
        fault: Fault | None = None,
        /,
        *,
        when: Predicate | None = None,
        **members: Unpack[FaultMembers],
    ) -> ActiveFault:
        """Add a rule in front of the existing ones: a ``Fault``, or its members::

            rule = mock.fault(api=45, error="NOT_CONTROLLER", times=1)

        ``when`` is a further condition: a function of the ``Call`` that handlers take. Raises
        FaultError.
        """
        if fault is not None and members:
            raise FaultError("give a Fault or its members, not both")
        (added,) = self.load_faults([fault_of(members) if fault is None else fault], when=when)
        return added

    def load_faults(
        self, faults: Sequence[Fault], *, when: Predicate | None = None
    ) -> list[ActiveFault]:
        """Add these rules, in this order, in front of the existing ones. Raises FaultError if one
        of them cannot be used, and then adds none."""
        self._clock.follow()
        return self._dispatcher.faults.add(faults, when)

    @property
    def faults(self) -> list[ActiveFault]:
        """Every rule in the order in which they are tried, including those that have ended."""
        self._clock.follow()
        return [*self._dispatcher.faults]

    def remove_fault(self, rule: ActiveFault | str) -> None:
        """Remove a rule, given as an object or by name. Raises FaultError if there is none."""
        self._dispatcher.faults.remove(rule)

    def clear_faults(self) -> None:
        """Remove every rule."""
        self._dispatcher.faults.clear()

    async def wait_for_hit(self, rule: ActiveFault | str, hits: int = 1) -> None:
        """Wait until the rule has this many hits in total. Raises FaultError once that is
        impossible. Callers set their own limit, for example with ``asyncio.timeout``."""
        found = self._dispatcher.faults.find(rule) if isinstance(rule, str) else rule
        await found.wait_for_hits(hits, self._clock.follow)

    def unused_faults(self) -> list[ActiveFault]:
        """The rules that no request has hit."""
        return self._dispatcher.faults.unused()

    def failed_faults(self) -> list[ActiveFault]:
        """The rules that could not do what they are for; ``failed`` of each says what."""
        return self._dispatcher.faults.failed()

    def assert_faults_used(self) -> None:
        """Raise AssertionError if there are rules that no request has hit, or that could not do
        what they are for."""
        problems = self.fault_problems()
        if problems:
            raise AssertionError("; ".join(problems))

    def fault_problems(self) -> list[str]:
        """A line for each rule that no request has hit, and for each thing that a rule was to do
        and could not."""
        return [
            *(
                f"fault rule that no request has hit: {rule.name} ({rule.fault.describe()})"
                for rule in self.unused_faults()
            ),
            *(
                f"fault rule {rule.name} failed: {text}"
                for rule in self.failed_faults()
                for text in rule.failed
            ),
        ]

    # ---- scripted answers --------------------------------------------------------------------

    def on(
        self, api_key: int, *, versions: str | None = None, times: int | None = None
    ) -> Callable[[Script], Script]:
        """Register the decorated function to answer an API key in place of the broker::

            @mock.on(3)
            def metadata(call):
                return None if call.broker_id == 1 else MetadataResponse(...)

        It returns a response message, or its JSON, in which missing fields have their defaults, or
        None to leave the request to the broker. ``await call.response()`` is the broker's answer,
        which the function may amend. ``versions`` are those of requests, such as ``"9-14"``. An
        exception is answered with UNKNOWN_SERVER_ERROR(-1), journalled, and raised by ``check`` at
        the latest. ``times`` limits the number of requests. The function added last is called
        first.
        """
        self._check_served(api_key)
        chosen = EVERY_VERSION if versions is None else Versions.parse(versions)

        def register(script: Script) -> Script:
            self._dispatcher.scripts.add(api_key, script, times, chosen)
            return script

        return register

    def script(self, api_key: int, reply: Scripted, *, times: int | None = None) -> None:
        """Answer an API key with this response: a message, or JSON for the requested version."""
        self._check_served(api_key)
        self._dispatcher.scripts.add(api_key, lambda _call: reply, times)

    def clear_scripts(self, api_key: int | None = None) -> None:
        """Return to the broker's own answers, for one API key or for all."""
        self._dispatcher.scripts.clear(api_key)

    def take_handler_errors(self) -> list[Exception]:
        """Return and forget the exceptions that functions given to ``on`` and ``fault(when=...)``
        have raised, and those of replies that could not be sent. A test that provokes one takes it;
        otherwise ``check`` raises it."""
        errors = self._dispatcher.scripts.errors
        taken = list(errors)
        errors.clear()
        return taken

    def check(self) -> None:
        """Raise what a test must not pass with: the errors of ``take_handler_errors``, and
        AssertionError for fault rules that no request has hit or that failed if the option
        ``strict_faults`` is on. Leaving the ``with`` block without an exception calls it."""
        raise_together("handlers of the test failed", self.take_handler_errors())
        if self.options.strict_faults:
            self.assert_faults_used()

    def replay(self, transcript: Transcript, *, latency: bool = False) -> None:
        """Answer from a transcript if it has an answer, otherwise as without it; the latter is
        journalled as ``replay-miss``. ``latency`` repeats the recorded response times.

        This affects connections opened from now on, so call it before ``start``.
        """
        self._dispatcher.replay(Replay(transcript, self.cluster, latency=latency, sleep=sleep))

    def _check_served(self, api_key: int) -> None:
        if api_key not in self.served:
            raise ClusterError(f"API key {api_key} is not served; its requests never arrive")

    # ---- ZooKeeper ---------------------------------------------------------------------------

    def _znode_store(self, options: ClusterOptions) -> ZnodeStore | None:
        zookeeper, zxid = options.zookeeper, options.zxid
        if not 0 <= zxid < 2**63 or (zxid and zookeeper is not None):
            raise ClusterError(
                f"zxid {zxid}: must be 0 to {2**63 - 1}, and 0 with a ZooKeeper server"
            )
        if (zookeeper is not None or zxid) and not keeps_znodes(self.profile.reassignment):
            raise ClusterError(
                f"profile {self.profile.name} does not use ZooKeeper; `mockbroker profiles` lists "
                "those that do"
            )
        if not isinstance(zookeeper, str):
            return zookeeper
        from kproto.client.zookeeper import KazooStore  # kazoo is an extra

        self.calls = calls = SuspendedCalls()
        timeout_ms = int(options.broker_configs.get(_SESSION_TIMEOUT, _SESSION_TIMEOUT_MS))
        return KazooStore(
            zookeeper,
            session_timeout=timeout_ms / 1000,
            wakeup=self._on_watch_events,
            suspend=calls.suspend,
        )

    def _on_watch_events(self) -> None:
        """Called on one of kazoo's threads."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._react)

    def _react(self) -> None:
        if self._loop is None:
            return
        self._clock.follow()
        if self._znodes is not None and self._znodes.expired:
            self.calls.preempt()
        self.calls.spawn(self.cluster.turns.react)


async def _now(change: Callable[[], Awaitable[None] | None]) -> None:
    changing = change()
    if changing is not None:
        await changing
