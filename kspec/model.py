"""What a case consists of: plain values, which ``case_parser`` makes from a case file.

Nothing here judges or runs anything. Field names are those of the file;
docs/how-to/writing-cases.md documents them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kspec.adapter_protocol import ADAPTER_CALLS
from mockbroker.profiles import DEFAULT_PROFILE

__all__ = [
    "CALLS",
    "FAULT_MARKS",
    "LEVELS",
    "MAX_TIMEOUT_MS",
    "SEVERITIES",
    "STAGE_STEPS",
    "SUITE",
    "Case",
    "CaseFile",
    "ClientCall",
    "ClientSpec",
    "ClientTlsSpec",
    "ClusterSpec",
    "ConsumerSpec",
    "Expectation",
    "Level",
    "ProducerSpec",
    "Rule",
    "Selector",
    "ServerCertificate",
    "Severity",
    "Step",
    "TelemetrySpec",
    "TlsSpec",
    "Variant",
    "Wait",
    "Wrong",
    "mark_of",
    "without_mark",
]

SUITE: Final = 3
"""The version of the suite. 2 added producers and consumers, 3 groups and transactions."""

MAX_TIMEOUT_MS: Final = 2_000
"""Longest timeout that a case may give the client, so that a case takes seconds."""

CALLS: Final = tuple(each.name for each in ADAPTER_CALLS if each.in_cases)
"""Operations of clients; docs/reference/adapters.md documents their arguments and results."""

Level: TypeAlias = Literal["must", "must_not", "should", "should_not", "may"]
LEVELS: Final[tuple[Level, ...]] = ("must", "must_not", "should", "should_not", "may")

Severity: TypeAlias = Literal[
    "data loss", "security", "wrong result", "crash or hang", "resources", "cosmetic"
]
SEVERITIES: Final[tuple[Severity, ...]] = (
    "data loss", "security", "wrong result", "crash or hang", "resources", "cosmetic",
)  # fmt: skip
"""What a broken expectation means for the client's user, worst first."""

Api: TypeAlias = str | int
Count: TypeAlias = int | str
Rule: TypeAlias = dict[str, Any]
"""A fault rule, as documented in docs/reference/faults.md, perhaps with one of ``FAULT_MARKS``."""

FAULT_MARKS: Final = ("optional", "applies")
"""Members of a rule that say what it means if no request triggers it. It must be triggered by
default; with ``optional: true`` it need not if another rule is, and with ``applies: true`` the case
does not apply to the client."""


def mark_of(rule: Rule) -> str | None:
    """Return the rule's mark, if it has one."""
    return next((mark for mark in FAULT_MARKS if rule.get(mark)), None)


def without_mark(rule: Rule) -> Rule:
    """Return the rule as the mock takes it."""
    return {name: value for name, value in rule.items() if name not in FAULT_MARKS}


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a case file. Unknown fields are errors."""


class Selector(Strict, frozen=True):
    """Selects journal entries. Every field that is set must match."""

    api: Api | list[Api] | None = None
    other_than: Api | list[Api] | None = None
    version: Count | None = None
    broker: int | list[int] | None = None
    connection: int | None = None
    event: str | list[str] | None = None
    note: str | None = None
    client_id: str | None = None
    body: Any = None
    partition: str | None = None
    row: Any = None
    during: str | None = None
    since: str | None = None
    until: str | None = None
    after_first: SubSelector | None = None
    before_first: SubSelector | None = None
    nth: int | None = None


class SubSelector(Strict, frozen=True):
    """The entry from which another selector's ``after_first`` or ``before_first`` counts."""

    direction: Literal["request", "response", "event"] = "request"
    api: Api | list[Api] | None = None
    version: Count | None = None
    broker: int | list[int] | None = None
    event: str | list[str] | None = None
    client_id: str | None = None
    body: Any = None
    partition: str | None = None
    row: Any = None
    nth: int = 1


class Expectation(Strict, frozen=True):
    """One statement about the traffic, a call's result, or the final state of the cluster.

    ``severity`` None is derived from the rest, by ``kspec.judge.severity_of``."""

    says: str
    severity: Severity | None = None
    requests: Selector | None = None
    responses: Selector | None = None
    events: Selector | None = None
    count: Count | None = None
    per: Literal["connection", "broker"] | None = None
    each: Selector | None = None
    gaps_ms: Count | None = None
    growing: bool = False
    distinct: Literal["connection", "broker", "version"] | None = None
    same: list[str] | None = None
    within_ms: Count | None = None
    order: list[Expectation] | None = None
    any_of: list[Expectation] | None = None
    result: str | None = None
    success: bool | None = None
    error: str | list[str] | None = None
    message: str | None = None
    value: Any = None
    outcomes: dict[str, str | list[str]] | None = None
    placed: Literal[True] | None = None
    delivered: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    logs: dict[str, Any] | None = None
    groups: dict[str, Any] | None = None


class TelemetrySpec(Strict, frozen=True):
    """The metrics that clients are to push (KIP-714): prefixes of names, none without any, and how
    often. ``match`` has patterns such as ``client_id=a``."""

    metrics: list[str] = []
    interval_ms: int = 300_000
    match: list[str] = []


ServerCertificate: TypeAlias = Literal[
    "valid",
    "intermediate",
    "expired",
    "not-yet-valid",
    "other-host",
    "similar-host",
    "address-only",
    "other-ca",
    "client-only",
]


class TlsSpec(Strict, frozen=True):
    """TLS at every listener. ``version`` None is any from 1.2 on."""

    certificate: ServerCertificate = "valid"
    client_certificate: Literal["asked", "required"] | None = None
    version: Literal["1.2", "1.3"] | None = None


class ClientTlsSpec(Strict, frozen=True):
    """A client that uses TLS, and its own certificate, if it has one."""

    certificate: Literal["valid", "other-ca"] | None = None


class ClusterSpec(Strict, frozen=True):
    """The mock cluster, with the options of ``mockbroker serve``.

    ``controller`` is the controller, which Metadata then names; None leaves both to the profile.
    ``acls`` are texts of ``kspec.access_rules``; None is a cluster without an authorizer, and None
    for ``telemetry`` one that takes no metrics."""

    brokers: int = 3
    topics: list[str] = []
    controller: int | None = None
    apis: dict[str, str | bool] = {}
    reply35: bool = False
    implemented_only: bool = False
    auto_progress_ms: int | None = None
    auto_create_topics: bool = False
    clock: Literal["wall", "manual"] = "wall"
    sasl: list[str] = []
    acls: list[str] | None = None
    telemetry: TelemetrySpec | None = None
    tls: TlsSpec | None = None
    scram_iterations: int | None = None
    scram_first: str | None = None
    scram_final: str | None = None
    broker_configs: dict[str, str] = {}
    group_configs: dict[str, dict[str, str]] = {}
    propagation_ms: int = 0


class ProducerSpec(Strict, frozen=True):
    """The producer's configuration; None is the client's default."""

    acks: Literal["all", 0, 1] | None = None
    idempotence: bool | None = None
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = None
    linger_ms: int | None = None
    batch_bytes: int | None = None
    max_in_flight: int | None = None
    metadata_age_ms: int | None = None
    delivery_timeout_ms: int = 4_000
    transactional_id: str | None = None
    transaction_timeout_ms: int | None = None
    partitioner: Literal["murmur2"] | None = None


class ConsumerSpec(Strict, frozen=True):
    """The consumer's configuration; None is the client's default. It commits on its own only with
    ``auto_commit_ms``."""

    group: str | None = None
    offset_reset: Literal["earliest", "latest", "none"] | None = None
    isolation: Literal["read_uncommitted", "read_committed"] | None = None
    max_wait_ms: int = 100
    partition_max_bytes: int | None = None
    rack: str | None = None
    protocol: Literal["classic", "consumer", "streams", "share"] | None = None
    instance_id: str | None = None
    session_timeout_ms: int | None = None
    heartbeat_ms: int | None = None
    metadata_age_ms: int | None = None
    max_poll_ms: int | None = None
    assignors: list[Literal["range", "roundrobin", "sticky", "cooperative-sticky"]] | None = None
    remote_assignor: str | None = None
    auto_commit_ms: int | None = None
    acknowledgement: Literal["implicit", "explicit"] | None = None


class ClientSpec(Strict, frozen=True):
    """The client's configuration. ``bootstrap`` names the bootstrap brokers; None means all."""

    timeout_ms: int = MAX_TIMEOUT_MS
    bootstrap: list[int] | None = None
    client_id: str = "kspec"
    sasl: dict[str, str] | None = None
    tls: ClientTlsSpec | None = None
    producer: ProducerSpec = ProducerSpec()
    consumer: ConsumerSpec = ConsumerSpec()
    options: dict[str, Any] = {}


class Wait(Strict, frozen=True):
    """Wait for a number of journal entries, or until ``ms`` have passed, which is not a failure.

    With a right client the entries come in time, unless the wait is ``optional``."""

    requests: Selector | None = None
    responses: Selector | None = None
    events: Selector | None = None
    count: int = 1
    ms: int = 2_000
    optional: bool = False


class ClientCall(Strict, frozen=True):
    """One call of a step. ``by`` names one of the case's other clients."""

    call: str
    arguments: dict[str, Any] = msgspec.field(name="with", default_factory=dict)
    name: str | None = msgspec.field(name="as", default=None)
    by: str | None = None


class Step(Strict, frozen=True):
    """One step: of the client (``call``, ``together``, ``reconnect``) or of the cluster."""

    call: str | None = None
    together: list[ClientCall] | None = None
    arguments: dict[str, Any] = msgspec.field(name="with", default_factory=dict)
    name: str | None = msgspec.field(name="as", default=None)
    by: str | None = None
    optional: bool = False
    reconnect: bool = False
    cluster: str | None = None
    unreachable: int | None = None
    silent: int | None = None
    certificate: ServerCertificate | None = None
    acls: list[str] | None = None
    telemetry: TelemetrySpec | None = None
    faults: list[Rule] | None = None
    clear_faults: bool = False
    wait: Wait | None = None
    pause_ms: int | None = None

    @property
    def calls(self) -> list[ClientCall]:
        """The step's calls: none, one, or several in parallel."""
        if self.call is not None:
            arguments, name = self.arguments, self.name
            return [ClientCall(call=self.call, arguments=arguments, name=name, by=self.by)]
        return self.together or []


STAGE_STEPS: Final = (
    "cluster", "unreachable", "silent", "certificate", "acls", "telemetry", "faults",
    "clear_faults", "wait", "pause_ms",
)  # fmt: skip
"""The steps that are not the client's."""


class Wrong(Strict, frozen=True):
    """The proof that the case can fail.

    ``by`` names the defect that must fail it, or must get ``verdict`` non-strict if the case
    can give no worse. ``also`` names others that fail it too, and ``lax`` others that only break a
    should.
    """

    by: str
    verdict: Literal["fail", "non-strict"] = "fail"
    also: list[str] = []
    lax: list[str] = []


class Case(Strict, frozen=True):
    """A case file. ``since`` is the version of the suite that added it; by default this one."""

    title: str
    source: str
    about: str
    since: int = SUITE
    wrong: Wrong | None = None
    profile: str = DEFAULT_PROFILE
    cluster: ClusterSpec = ClusterSpec()
    client: ClientSpec = ClientSpec()
    others: dict[str, dict[str, Any]] = {}
    faults: list[Rule] = []
    steps: list[Step] = []
    applies: list[Expectation] = []
    must: list[Expectation] = []
    must_not: list[Expectation] = []
    should: list[Expectation] = []
    should_not: list[Expectation] = []
    may: list[Expectation] = []
    variants: list[dict[str, Any]] = []
    # These two come from the file's path.
    id: str = ""
    group: str = ""

    @property
    def defects(self) -> Sequence[str]:
        """The defects that are known to fail it or to break a should, the proof's first."""
        wrong = self.wrong
        return () if wrong is None else (wrong.by, *wrong.also, *wrong.lax)

    def client_of(self, name: str | None) -> ClientSpec:
        """Return the configuration of one of the other clients, or with None that of ``client``.

        Another client is configured like ``client`` apart from what ``others`` says; its client id
        is its name. Raises msgspec.ValidationError.
        """
        if name is None:
            return self.client
        given: dict[str, Any] = msgspec.to_builtins(self.client)
        for key, value in {"client_id": name, **self.others[name]}.items():
            is_part = isinstance(value, dict) and isinstance(given.get(key), dict)
            given[key] = {**given[key], **value} if is_part else value
        return msgspec.convert(given, ClientSpec)

    def expectations(self) -> Sequence[tuple[Level, Expectation]]:
        """Return every expectation except ``applies``, strictest level first."""
        return [(level, each) for level in LEVELS for each in getattr(self, level)]

    @property
    def reads_state(self) -> bool:
        """Whether an expectation is about the final state of the cluster."""
        every = [each for _, each in self.expectations()] + list(self.applies)
        while every:
            each = every.pop()
            if each.state is not None:
                return True
            every += [*(each.order or ()), *(each.any_of or ())]
        return False

    @property
    def informational(self) -> bool:
        """Whether the case requires nothing and only records what the client does."""
        return not (self.must or self.must_not or self.should or self.should_not)


class Variant(Strict, frozen=True):
    """A case with its parameters filled in. ``name`` is empty if the case has no parameters."""

    name: str
    case: Case


class CaseFile(Strict, frozen=True):
    """A case, once for each set of its parameters."""

    id: str
    group: str
    variants: list[Variant]

    @property
    def case(self) -> Case:
        """The first variant, for the title, source and other members that do not vary."""
        return self.variants[0].case
