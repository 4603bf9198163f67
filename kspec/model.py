"""What a case is: plain values, as ``reading`` makes them out of a case file.

Nothing here is judged or run. Field names are the file's own; docs/writing-cases.md tells them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

__all__ = [
    "CALLS",
    "LEVELS",
    "MAX_TIMEOUT_MS",
    "Case",
    "CaseFile",
    "ClientCall",
    "ClientSpec",
    "ClusterSpec",
    "Expectation",
    "Level",
    "Rule",
    "Selector",
    "Step",
    "Variant",
    "Wait",
    "Wrong",
]

MAX_TIMEOUT_MS: Final = 2_000
"""What a client may be told as its own time-out, at most: a case is a matter of seconds."""

CALLS: Final = (
    "describe_cluster",
    "describe_topics",
    "list_topics",
    "create_topics",
    "alter_reassignments",
    "list_reassignments",
    "elect_leaders",
)
"""What a client can be asked; docs/adapters.md says what each takes and gives."""

Level: TypeAlias = Literal["must", "must_not", "should", "should_not", "may"]
LEVELS: Final[tuple[Level, ...]] = ("must", "must_not", "should", "should_not", "may")

Api: TypeAlias = str | int
Count: TypeAlias = int | str
Rule: TypeAlias = dict[str, Any]
"""A fault, as docs/faults.md has it."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a case file: a field nobody knows is an error, not a wish."""


class Selector(Strict, frozen=True):
    """Which entries of the journal. Every field given has to fit."""

    api: Api | list[Api] | None = None
    other_than: Api | list[Api] | None = None
    version: Count | None = None
    broker: int | list[int] | None = None
    connection: int | None = None
    event: str | list[str] | None = None
    note: str | None = None
    client_id: str | None = None
    body: Any = None
    during: str | None = None
    since: str | None = None
    until: str | None = None
    after_first: SubSelector | None = None
    before_first: SubSelector | None = None
    nth: int | None = None


class SubSelector(Strict, frozen=True):
    """The entry that another selector's ``after_first`` or ``before_first`` counts from."""

    direction: Literal["request", "response", "event"] = "request"
    api: Api | list[Api] | None = None
    version: Count | None = None
    broker: int | list[int] | None = None
    event: str | list[str] | None = None
    body: Any = None
    nth: int = 1


class Expectation(Strict, frozen=True):
    """One sentence about the wire, about a call's result, or about the cluster in the end."""

    says: str
    requests: Selector | None = None
    responses: Selector | None = None
    events: Selector | None = None
    count: Count | None = None
    per: Literal["connection", "broker"] | None = None
    each: Selector | None = None
    gaps_ms: Count | None = None
    growing: bool = False
    distinct: Literal["connection", "broker", "version"] | None = None
    within_ms: Count | None = None
    order: list[Expectation] | None = None
    any_of: list[Expectation] | None = None
    result: str | None = None
    success: bool | None = None
    error: str | list[str] | None = None
    message: str | None = None
    value: Any = None
    outcomes: dict[str, str | list[str]] | None = None
    state: dict[str, Any] | None = None


class ClusterSpec(Strict, frozen=True):
    """The mock cluster: as ``mockbroker serve`` has it."""

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
    scram_iterations: int | None = None
    scram_final: str | None = None
    broker_configs: dict[str, str] = {}
    propagation_ms: int = 0


class ClientSpec(Strict, frozen=True):
    """How the client is set up. ``bootstrap`` names the brokers it is told of, None all."""

    timeout_ms: int = MAX_TIMEOUT_MS
    bootstrap: list[int] | None = None
    client_id: str = "kspec"
    sasl: dict[str, str] | None = None
    options: dict[str, Any] = {}


class Wait(Strict, frozen=True):
    """Until so many entries are in the journal, or ``ms`` have passed, which is no failure."""

    requests: Selector | None = None
    responses: Selector | None = None
    events: Selector | None = None
    count: int = 1
    ms: int = 2_000


class ClientCall(Strict, frozen=True):
    """One of the calls of a step that asks several at once."""

    call: str
    arguments: dict[str, Any] = msgspec.field(name="with", default_factory=dict)
    name: str | None = msgspec.field(name="as", default=None)


class Step(Strict, frozen=True):
    """One thing that is done: by the client (``call``, ``together``, ``reconnect``) or to the
    cluster."""

    call: str | None = None
    together: list[ClientCall] | None = None
    arguments: dict[str, Any] = msgspec.field(name="with", default_factory=dict)
    name: str | None = msgspec.field(name="as", default=None)
    optional: bool = False
    reconnect: bool = False
    cluster: str | None = None
    faults: list[Rule] | None = None
    clear_faults: bool = False
    wait: Wait | None = None
    pause_ms: int | None = None

    @property
    def calls(self) -> list[ClientCall]:
        """The calls of it: none, one, or several at once."""
        if self.call is not None:
            return [ClientCall(call=self.call, arguments=self.arguments, name=self.name)]
        return self.together or []


class Wrong(Strict, frozen=True):
    """The proof that the case can fail: ``by`` is the misbehaviour that must, or that gets the
    ``verdict`` non-strict where that is all a case can give for it; ``also`` are others that fail
    it too, and ``lax`` others that break no more than a should."""

    by: str
    verdict: Literal["fail", "non-strict"] = "fail"
    also: list[str] = []
    lax: list[str] = []


class Case(Strict, frozen=True):
    """A case file."""

    title: str
    source: str
    about: str
    wrong: Wrong | None = None
    profile: str = "kafka-4.4"
    cluster: ClusterSpec = ClusterSpec()
    client: ClientSpec = ClientSpec()
    faults: list[Rule] = []
    steps: list[Step] = []
    applies: list[Expectation] = []
    must: list[Expectation] = []
    must_not: list[Expectation] = []
    should: list[Expectation] = []
    should_not: list[Expectation] = []
    may: list[Expectation] = []
    variants: list[dict[str, Any]] = []
    # Not in the file: where it is from.
    id: str = ""
    group: str = ""

    @property
    def misbehaviours(self) -> Sequence[str]:
        """Those known to fail it, or to break a should; the one that proves it first."""
        wrong = self.wrong
        return () if wrong is None else (wrong.by, *wrong.also, *wrong.lax)

    def expectations(self) -> Sequence[tuple[Level, Expectation]]:
        """Every expectation but ``applies``, strictest first."""
        return [(level, each) for level in LEVELS for each in getattr(self, level)]

    @property
    def informational(self) -> bool:
        """Nothing is asked of the client: what it does is written down."""
        return not (self.must or self.must_not or self.should or self.should_not)


class Variant(Strict, frozen=True):
    """A case with its parameters filled in. ``name`` is empty where the case has none."""

    name: str
    case: Case


class CaseFile(Strict, frozen=True):
    """A case, once for each set of its parameters: at least once."""

    id: str
    group: str
    variants: list[Variant]

    @property
    def case(self) -> Case:
        """The first: title, source and what else does not vary are everyone's."""
        return self.variants[0].case
