"""What a mock cluster is made of: the one description that Python, the command line, the control
port and the pytest fixture share.
"""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar

import msgspec

from kproto.dialects import Dialect
from kproto.framing import DEFAULT_MAX_SIZE
from kproto.journal import DEFAULT_MAX_BYTES, DEFAULT_MAX_ENTRIES, Journal
from kproto.schema.versions import Versions
from kproto.znodes import ZnodeStore
from mockbroker.errors import ClusterError
from mockbroker.profiles import DEFAULT_PROFILE, Profile
from mockbroker.simulation.operations.arguments import Level
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.settings import DataWaits, SimulationOptions

__all__ = [
    "DEFAULT_LIMITS",
    "Clock",
    "ClusterOptions",
    "DataWaits",
    "Level",
    "Limits",
    "takes_cluster_options",
]

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

Clock: TypeAlias = Literal["wall", "manual"]


_LONGEST: Final = 10**12
"""The longest idle timeout, in milliseconds: some thirty years."""


def _between(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ClusterError(f"{name} is {value}; it must be between {lowest} and {highest}")


class Limits(msgspec.Struct, frozen=True):
    """Limits of a cluster.

    ``max_frame_bytes`` is the largest size that a request may announce, and ``max_connections`` the
    number of connections per broker. ``max_buffered_bytes`` bounds incomplete requests, requests in
    a queue and unsent answers, of all connections together. A connection without traffic for
    ``idle_timeout_ms`` is closed; None disables that. The journal in memory keeps the newest
    ``journal_entries``, of at most ``journal_bytes``.

    Raises ClusterError for values out of range.
    """

    max_frame_bytes: int = DEFAULT_MAX_SIZE
    max_connections: int = 1000
    max_buffered_bytes: int = 512 * 1024 * 1024
    idle_timeout_ms: int | None = 600_000
    journal_entries: int = DEFAULT_MAX_ENTRIES
    journal_bytes: int = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        _between("max_frame_bytes", self.max_frame_bytes, 1, DEFAULT_MAX_SIZE)
        _between("max_connections", self.max_connections, 1, 1_000_000)
        _between("max_buffered_bytes", self.max_buffered_bytes, 1, 2**63 - 1)
        if self.idle_timeout_ms is not None:
            _between("idle_timeout_ms", self.idle_timeout_ms, 1, _LONGEST)
        _between("journal_entries", self.journal_entries, 1, 2**63 - 1)
        _between("journal_bytes", self.journal_bytes, 0, 2**63 - 1)

    def journal(self) -> Journal:
        """Return a new journal of this size."""
        return Journal(max_entries=self.journal_entries, max_bytes=self.journal_bytes)


DEFAULT_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class ClusterOptions(SimulationOptions):
    """The options of a ``MockCluster``. Only types and limits are checked here: ``MockCluster``
    raises ClusterError or UnknownNameError for options that contradict each other."""

    brokers: int | Iterable[Broker] = 3
    """The number of brokers (ids 1 to N, controller 1), or the brokers themselves."""
    _: KW_ONLY
    topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = ()
    """``NAME:PARTITIONS:REPLICAS`` or ``NAME=1,2,3/2,3,4``, or (name, broker ids of each
    partition) pairs."""
    profile: str | Profile = DEFAULT_PROFILE
    """The release to behave as; ``mockbroker profiles`` lists them."""
    dialect: str | Dialect | None = None
    """The message schemas: a name, or the result of ``kproto.load_dialect``; None is the
    profile's. ``auto`` accepts released requests and those of KIP-455's drafts, and answers each in
    its own dialect."""
    apis: Mapping[int, Versions | None] | None = None
    """API versions that differ from the profile's; None hides an API key."""
    implemented_only: bool = False
    """Whether to hide the APIs that have no handler."""
    client_telemetry: bool = False
    """Whether brokers have a receiver of clients' metrics (KIP-714), and so serve
    GetTelemetrySubscriptions and PushTelemetry. Off by default, as in Kafka without a plugin:
    clients that find these APIs send them by themselves."""
    reply35: bool = False
    """Whether to answer unsupported versions with error 35. Kafka's brokers close the
    connection."""

    # ---- addresses ---------------------------------------------------------------------------
    host: str = "127.0.0.1"
    """The address that every broker listens on."""
    port: int = 0
    """The port of broker 1; broker n listens on ``port + n - 1``. 0 takes free ports."""
    advertise: tuple[str, int | None] | None = None
    """The (host, port) that Metadata gives for broker 1; port None stands for each broker's
    own."""

    # ---- time --------------------------------------------------------------------------------
    clock: Clock = "wall"
    """``wall``: the simulated time follows real time. ``manual``: only ``advance`` moves it."""
    propagation_ms: int = 0
    """How long changes take to reach the metadata of each broker."""

    # ---- behaviour ---------------------------------------------------------------------------
    auto_create_topics: bool = False
    """Whether Metadata creates unknown topics, as Kafka's brokers do by default."""
    racks: Mapping[int, str] = field(default_factory=dict)
    """The racks of brokers, by broker id."""
    strict_faults: bool = False
    """Whether leaving the ``async with`` block raises AssertionError for fault rules that no
    request has hit."""

    # ---- ZooKeeper ---------------------------------------------------------------------------
    zookeeper: str | ZnodeStore | None = None
    """Where a ZooKeeper-mode controller keeps its state: ``host:port[,host:port...][/chroot]`` of
    a real server (needs the ``zookeeper`` extra), a session of your own, or None for a store in
    this process."""

    # ---- security ----------------------------------------------------------------------------
    sasl: Iterable[str] = ()
    """``MECHANISM:USER:PASSWORD``, or ``OAUTHBEARER[:OPTION=VALUE,...]`` for tokens without a
    signature, with options of Kafka's validator (``requiredScope=a b``). If there are any, clients
    must authenticate, and their principal is ``User:USER``."""
    oauth_clients: Iterable[str] = ()
    """``ID:SECRET[:SCOPE ...]`` of clients to which the control port gives signed tokens, at
    ``/oauth/token``. If there are any, OAUTHBEARER accepts only these tokens, and its options are
    ``expectedAudience``, ``expectedIssuer``, ``clockSkewSeconds`` and ``tokenLifetimeSeconds``."""
    scram_iterations: int | None = None
    """A false iteration count for SCRAM's first answer, to test how clients react. No client
    can authenticate then."""
    scram_final: str | None = None
    """Replaces the server's proof at the end of SCRAM."""
    tls: ssl.SSLContext | None = None
    """A server-side context for every listener. If it requests client certificates, their owners
    are the principals."""
    authorizer: Authorizer | None = None
    """Enforces access rules; None allows everything."""

    # ---- inter-broker requests ---------------------------------------------------------------
    inter_broker: bool | None = None
    """Whether a ZooKeeper-mode controller sends LeaderAndIsr, StopReplica and UpdateMetadata to its
    brokers, on sockets apart from the clients' and into the same journal. None: only with the
    profiles of proposals and with external brokers, so that with a released profile the journal
    holds nothing but clients' traffic."""
    external_brokers: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """(host, port) of brokers that run in other processes, by broker id. The controller sends to
    them too, and Metadata lists them."""
    broker_levels: Mapping[int, Level] = field(default_factory=dict)
    """Brokers that start with other software, by broker id."""

    # ---- limits ------------------------------------------------------------------------------
    max_frame_bytes: int = DEFAULT_LIMITS.max_frame_bytes
    max_connections: int = DEFAULT_LIMITS.max_connections
    max_buffered_bytes: int = DEFAULT_LIMITS.max_buffered_bytes
    idle_timeout_ms: int | None = DEFAULT_LIMITS.idle_timeout_ms
    journal_entries: int = DEFAULT_LIMITS.journal_entries
    journal_bytes: int = DEFAULT_LIMITS.journal_bytes
    """See ``Limits``. The last two size the journal in memory, unless there is a
    ``journal``."""
    journal: Journal | None = None
    """Where to record the traffic; None makes a journal of the size above."""

    @property
    def limits(self) -> Limits:
        """Raises ClusterError for a limit out of range."""
        return Limits(
            self.max_frame_bytes,
            self.max_connections,
            self.max_buffered_bytes,
            self.idle_timeout_ms,
            self.journal_entries,
            self.journal_bytes,
        )


def _with_arguments_of(
    options: Callable[P, ClusterOptions],
) -> Callable[[Callable[Concatenate[T, ...], R]], Callable[Concatenate[T, P], R]]:
    def decorate(method: Callable[Concatenate[T, ...], R]) -> Callable[Concatenate[T, P], R]:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        taken = inspect.signature(options)
        method.__signature__ = inspect.signature(method).replace(  # type: ignore[attr-defined]
            parameters=[own, *taken.parameters.values()]
        )
        return method

    return decorate


takes_cluster_options = _with_arguments_of(ClusterOptions)
"""Give a method the arguments of ``ClusterOptions``, for type checkers and for ``inspect``."""
