"""What a mock cluster is made of: one declaration of each option, which Python, the command line,
the control port, the pytest fixtures and the documentation share.

``mockbroker serve --help`` reads the declarations, so types that need codecs are imported for type
checkers alone.
"""

from __future__ import annotations

import functools
import inspect
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar

from kproto.framing import DEFAULT_MAX_SIZE
from kproto.near_names import with_suggestion
from mockbroker.options.option_types import (
    ADDRESS,
    ADDRESS_BY_BROKER,
    AUTHORIZER,
    BROKERS,
    LEVEL_BY_BROKER,
    RACK_BY_BROKER,
    VERSIONS_BY_API,
)
from mockbroker.options.python_values import check_options
from mockbroker.profiles import DEFAULT_PROFILE
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.option_declarations import option
from mockbroker.simulation.state.option_types import (
    DELAY,
    FIXES,
    FLAG,
    MAX_INTEGER,
    choice,
    integer,
    interval,
    nullable,
    switch,
    text,
    texts,
)
from mockbroker.simulation.state.settings import DataWaits, SimulationOptions

if TYPE_CHECKING:
    from kproto.dialects import Dialect
    from kproto.journal import Journal
    from kproto.schema.versions import Versions
    from kproto.znodes import ZnodeStore
    from mockbroker.profiles import Profile
    from mockbroker.simulation.operations.arguments import Level
    from mockbroker.simulation.security.authorizer import Authorizer

__all__ = [
    "DEFAULT_LIMITS",
    "Clock",
    "ClusterOptions",
    "DataWaits",
    "Limits",
    "takes_cluster_options",
    "unknown_option",
]

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

Clock: TypeAlias = Literal["wall", "manual"]


@dataclass(frozen=True)
class Limits:
    """Limits of a cluster or of a proxy. Raises ClusterError for values out of range."""

    _: KW_ONLY
    max_frame_bytes: int = option(
        DEFAULT_MAX_SIZE, integer(1, DEFAULT_MAX_SIZE), "The largest request. A connection that "
        "announces a larger one is closed.", "Limits",
    )  # fmt: skip
    max_connections: int = option(
        1000, integer(1, 1_000_000), "The most connections of one broker. Further ones are closed "
        "at once.", "Limits",
    )  # fmt: skip
    max_buffered_bytes: int = option(
        512 << 20, integer(1), "The most bytes of incomplete requests, pending requests and unread "
        "answers, over all connections. Beyond it, the connection with the most is closed.",
        "Limits",
    )  # fmt: skip
    idle_timeout_ms: int | None = option(
        600_000, interval(MAX_INTEGER), "Close connections that are idle for this long.", "Limits",
        json_help="Close connections that are idle for this long; null for never.",
    )  # fmt: skip
    journal_entries: int = option(
        100_000, integer(1), "The most entries that the journal in memory keeps.", "Limits"
    )
    journal_bytes: int = option(
        64 << 20, integer(0), "The most bytes of frames, client ids and notes that the journal in "
        "memory keeps.", "Limits",
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_options(self)

    def new_journal(self) -> Journal:
        """Return a journal of this size."""
        from kproto.journal import Journal

        return Journal(max_entries=self.journal_entries, max_bytes=self.journal_bytes)


DEFAULT_LIMITS: Final = Limits()


@dataclass(frozen=True)
class ClusterOptions(Limits, SimulationOptions):
    """The options of a ``MockCluster``. Only types and limits are checked here: ``MockCluster``
    raises ClusterError or UnknownNameError for options that contradict each other."""

    brokers: int | Iterable[Broker] = option(
        3, BROKERS, "The number of brokers (ids 1 to N), or their first and last id. The first is "
        "the controller.", "Cluster",
        json_help="The number of brokers (ids 1 to N), of which the first is the controller; or "
        "the first and the last id as a text, such as 0-2.",
    )  # fmt: skip
    """In Python, the number or the brokers themselves."""
    _: KW_ONLY
    profile: str | Profile = option(
        DEFAULT_PROFILE, text("NAME"), "The release to behave as; see `mockbroker profiles`.",
        "Cluster",
    )  # fmt: skip
    fixes: Mapping[str, bool] = option(
        {}, FIXES, "Give brokers a fix of Kafka that the profile's release lacks, or take one from "
        "them; see `mockbroker profiles --fixes`.", "Behaviour", flag="--fix",
        json_help="Whether brokers have a fix of Kafka, whatever the profile's release.",
    )  # fmt: skip
    topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = option(
        (), texts("NAME:PARTITIONS:REPLICAS", ["foo:2:3", "bar=1,2,3/2,3,4"]), "Create a topic. "
        "NAME=1,2,3/2,3,4 gives the replicas of each partition.", "Cluster", flag="--topic",
    )  # fmt: skip
    """In Python, also (name, broker ids of each partition) pairs."""
    auto_create_topics: bool = option(
        False, FLAG, "Let Metadata create unknown topics if the client allows.", "Behaviour"
    )
    controllers: int = option(
        0, integer(0, 9), "Run this many KRaft controllers apart from the brokers, with ids from "
        "3000 and a listener each, for --bootstrap-controller of Kafka's tools. Default: the "
        "controller is broker 1, and only brokers listen.", "Cluster",
        json_help="The number of KRaft controllers apart from the brokers, with ids from 3000.",
    )  # fmt: skip
    """Brokers whose configs have ``process.roles=broker,controller`` are controllers themselves."""
    racks: Mapping[int, str] = option(
        {}, RACK_BY_BROKER, "Put a broker into a rack.", "Cluster", flag="--rack"
    )

    # ---- protocol ----------------------------------------------------------------------------
    apis: Mapping[int, Versions | str | None] | None = option(
        None, VERSIONS_BY_API, "Serve an API key at these versions (45=0-0), or not at all "
        "(45=off). APIs with a handler cannot have newer versions than the profile's release.",
        "Protocol", flag="--api",
    )  # fmt: skip
    """In Python the versions are ``Versions`` or a text; None hides an API key, as "off" does."""
    implemented_only: bool = option(False, FLAG, "Hide APIs without a handler.", flag="--advertise")
    client_telemetry: bool = option(
        False, FLAG, "Take the metrics that clients push (KIP-714), as a broker with a receiver "
        "does: serve GetTelemetrySubscriptions and PushTelemetry.", "Protocol",
    )  # fmt: skip
    """Off by default, as in Kafka without a plugin: clients that find these APIs send them by
    themselves."""
    reply35: bool = option(
        False, FLAG, "Answer unsupported versions with error 35; Kafka's brokers close the "
        "connection.", "Protocol",
    )  # fmt: skip
    dialect: str | Dialect | None = option(
        None, text(), "The message schemas, by name; by default the profile's. auto accepts "
        "released requests and those of KIP-455's drafts, and answers each in its own dialect.",
        flag="--dialect",
    )  # fmt: skip
    """In Python, a name or the result of ``kproto.load_dialect``."""

    # ---- addresses ---------------------------------------------------------------------------
    host: str = option(
        "127.0.0.1", text(), "The address that every broker listens on.", flag="--listen"
    )
    port: int = option(
        0, integer(0, 65535), "The port of broker 1; broker n listens on port + n - 1. 0 takes "
        "free ports.", flag="--listen",
    )  # fmt: skip
    advertise: tuple[str, int | None] | None = option(
        None, ADDRESS, "The HOST[:PORT] of broker 1 in Metadata; without a port, each broker's "
        "own.", flag="--advertise",
    )  # fmt: skip
    """In Python, a (host, port) pair."""

    # ---- time --------------------------------------------------------------------------------
    clock: Clock = option(
        "wall", choice("wall", "manual"), "manual: only the operation `advance` moves the "
        "simulated time.", "Time",
    )  # fmt: skip
    propagation_ms: int = option(
        0, DELAY, "Delay the metadata of every broker, for example by 200ms.", "Time",
        json_help="How long changes take to reach each broker's metadata.",
    )  # fmt: skip

    # ---- ZooKeeper ---------------------------------------------------------------------------
    zookeeper: str | ZnodeStore | None = option(
        None, text("HOST:PORT[/CHROOT]", "127.0.0.1:2181/mock"), "Store the state of a "
        "ZooKeeper-mode controller in this server, where tools can reach it. Default: a ZooKeeper "
        "in this process.", "ZooKeeper",
    )  # fmt: skip
    """Needs the ``zookeeper`` extra. Several servers have commas between. In Python, also a session
    of your own."""

    # ---- inter-broker requests ---------------------------------------------------------------
    inter_broker: bool | None = option(
        None, nullable(switch("on", "off", on="on")), "Whether a ZooKeeper-mode controller sends "
        "LeaderAndIsr, StopReplica and UpdateMetadata to its brokers, on sockets apart from the "
        "clients' and into the same journal. off: it only logs them. Default: on with the profiles "
        "of proposals (kip-...) and with external brokers.", "Inter-broker requests",
        json_help="Whether a ZooKeeper-mode controller sends requests to its brokers. Default: "
        "only with the profiles of proposals and with external brokers.",
    )  # fmt: skip
    broker_levels: Mapping[int, Level] = option(
        {}, LEVEL_BY_BROKER, "Give a broker other software: versions of an API key (3:4=0-2), no "
        "support for it (3:45=off), or the versions of a release (3:kafka-2.3).",
        "Inter-broker requests", flag="--broker-api",
        json_help="The software of brokers that differ, by id.",
    )  # fmt: skip
    external_brokers: Mapping[int, tuple[str, int]] = option(
        {}, ADDRESS_BY_BROKER, "Declare that a broker runs in another process: Metadata lists this "
        "address, and the controller sends its requests there.", "Inter-broker requests",
        flag="--external-broker",
    )  # fmt: skip
    """In Python, (host, port) pairs."""

    # ---- security ----------------------------------------------------------------------------
    sasl: Iterable[str] = option(
        (), texts("MECHANISM:USER:PASSWORD", ["PLAIN:alice:secret"]), "Require clients to "
        "authenticate, and add a user. MECHANISM is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. "
        "OAUTHBEARER alone accepts unsecured tokens of any user; options of Kafka's validator may "
        "follow, such as OAUTHBEARER:requiredScope=kafka. A user can have several mechanisms.",
        "Security",
    )  # fmt: skip
    """A client's principal is ``User:USER``."""
    oauth_clients: Iterable[str] = option(
        (), texts("ID:SECRET[:SCOPE ...]", ["ci:secret:read write"]), "Give signed tokens to this "
        "client at /oauth/token of the control port; OAUTHBEARER then accepts only these. Options "
        "of the broker may follow that word, such as OAUTHBEARER:expectedAudience=kafka.",
        "Security", flag="--oauth-client",
    )  # fmt: skip
    """The options of OAUTHBEARER are then ``expectedAudience``, ``expectedIssuer``,
    ``clockSkewSeconds`` and ``tokenLifetimeSeconds``."""
    scram_iterations: int | None = option(
        None, nullable(integer(1, 2**31 - 1)), "A false iteration count for SCRAM's first answer, "
        "to test how clients react. Authentication then fails.",
    )  # fmt: skip
    scram_first: str | None = option(
        None, nullable(text()), "Replaces the server's first message of SCRAM, which {} stands "
        "for, as in m=x,{}.",
    )  # fmt: skip
    scram_final: str | None = option(
        None, nullable(text()), "Replaces the server's proof at the end of SCRAM. {} stands for "
        "it, and {:.20} for its first 20 characters.",
    )  # fmt: skip
    authorizer: Authorizer | Mapping[str, Any] | None = option(
        None,
        AUTHORIZER,
        "Enforces access rules. Default: everything is allowed.",
        flag="--authorizer",
    )
    """In Python an Authorizer, or ``{"super_users": ["User:admin"]}``; ``{}`` without any."""
    tls: ssl.SSLContext | None = None
    """A server-side context for every listener. If it requests client certificates, their owners
    are the principals."""

    # ---- tests -------------------------------------------------------------------------------
    strict_faults: bool = option(
        False, FLAG, "Whether the end of the cluster reports fault rules that no request has hit, "
        "or that could not do what they are for.", flag="--faults-must-hit",
    )  # fmt: skip
    """In Python, leaving the ``async with`` block then raises AssertionError."""
    journal: Journal | None = None
    """Where to record the traffic; None makes a journal of ``journal_entries`` and
    ``journal_bytes``."""


def unknown_option(names: Iterable[str]) -> str | None:
    """Return ``no option NAME`` for the first name that is not an option, with a suggestion."""
    known = ClusterOptions.__dataclass_fields__
    for name in names:
        if name not in known:
            return with_suggestion(f"no option {name!r}", name, known, most=1)
    return None


def _with_arguments_of(
    options: Callable[P, ClusterOptions],
) -> Callable[[Callable[Concatenate[T, ...], R]], Callable[Concatenate[T, P], R]]:
    def decorate(method: Callable[Concatenate[T, ...], R]) -> Callable[Concatenate[T, P], R]:
        @functools.wraps(method)
        def checked(self: T, /, *arguments: P.args, **given: P.kwargs) -> R:
            problem = unknown_option(given)
            if problem is not None:
                raise TypeError(f"{type(self).__name__} has {problem}")
            return method(self, *arguments, **given)

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        taken = inspect.signature(options)
        checked.__signature__ = taken.replace(  # type: ignore[attr-defined]
            parameters=[own, *taken.parameters.values()]
        )
        return checked

    return decorate


takes_cluster_options = _with_arguments_of(ClusterOptions)
"""Give a method the arguments of ``ClusterOptions``, for type checkers and for ``inspect``. It then
raises TypeError for another name, with a suggestion."""
