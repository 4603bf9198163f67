"""The demo's seven steps, each with its expected outcome.

A step makes the client call the cluster, moves the mock cluster on by explicit commands (nothing
waits for time to pass), and compares answers, cluster state and frames with Kafka's rules. The
expected values are written here; none is derived from the run.

Every cluster of the story has six brokers and these topics, with one partition each::

    foo  1,2,3   is reassigned to 4,5,6 and completes
    bar  1,2,3   is reassigned to 4,5,6 and cancelled
    baz  6,1,2   is led by 1 though 6 is preferred
    qux  1,2,3   is asked to shrink under the replication-factor guard
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from demo.catalog import ALTER_REASSIGNMENTS, Client
from demo.drivers import NO_OUTCOME, Answer, DriverError
from demo.wire import (
    Profile,
    misdirected,
    negotiation_problems,
    requests,
    version_problems,
    versions_used,
)
from kproto.journal import Entry

__all__ = [
    "BROKERS",
    "CONTROLLER",
    "STEPS",
    "TOPICS",
    "Cluster",
    "Driver",
    "Mark",
    "Outcome",
    "Screen",
    "Step",
    "run",
]

BROKERS = 6
CONTROLLER = 3
"""Not the first broker of the list, so that finding the controller is part of the story."""

TOPICS = ("foo=1,2,3", "bar=1,2,3", "baz=6,1,2", "qux=1,2,3")

INVALID_REPLICATION_FACTOR = 38
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85

GUARD_REFUSAL = "The broker does not support the AllowReplicationFactorChange option"
"""The message of a client that cannot request the guard (KIP-860; text of Kafka 4.1)."""

Mark = Literal["right", "wrong", "lacking", "gap"]
"""``lacking``: the client does not have the call. ``gap``: the client deviates from the protocol in
a way that the catalog lists, while the broker behaves correctly."""


class Cluster(Protocol):
    """What the story needs from a running mock cluster."""

    def ctl(self, *words: str) -> None: ...
    def partition(self, topic: str) -> Mapping[str, Any]: ...
    def entries(self, after: int = 0) -> list[Entry]: ...


class Driver(Protocol):
    """What the story needs from a running client; ``demo.drivers.Driver`` is one."""

    def call(self, op: str, **arguments: Any) -> Answer: ...


class Screen(Protocol):
    """Where the story is shown as it happens."""

    def step(self, title: str) -> None: ...
    def call(self, text: str) -> None: ...
    def move(self, text: str) -> None: ...
    def wire(self, entries: Sequence[Entry]) -> None: ...
    def answer(self, answer: Answer) -> None: ...
    def outcome(self, step: Step, outcome: Outcome) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one step; ``note`` has the reason unless the mark is ``right``."""

    mark: Mark
    note: str = ""


@dataclass(slots=True)
class Run:
    """One client on one cluster: makes calls, shows them, and collects deviations."""

    client: Client
    profile: Profile
    driver: Driver
    cluster: Cluster
    screen: Screen
    problems: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    seen: int = 0

    def call(self, op: str, **arguments: Any) -> Answer:
        self.screen.call(_spelled(op, arguments))
        answer = self.driver.call(op, **arguments)
        self.screen.wire(self.news())
        self.screen.answer(answer)
        return answer

    def succeed(self, op: str, **arguments: Any) -> Any:
        """Make a call that has to succeed. Returns its result, or None and notes a problem."""
        answer = self.call(op, **arguments)
        if not answer.ok:
            self.problems.append(f"{_spelled(op, arguments)} failed: {answer}")
        return answer.result

    def fail(self, code: int, op: str, **arguments: Any) -> Answer:
        """Make a call that has to fail with this error code."""
        answer = self.call(op, **arguments)
        if answer.ok or answer.code != code:
            self.problems.append(f"{_spelled(op, arguments)}: {answer}; right is error {code}")
        return answer

    def ctl(self, *words: str) -> None:
        self.screen.move(" ".join(words))
        self.cluster.ctl(*words)

    def news(self) -> list[Entry]:
        """Return the journal entries since the last call."""
        entries = self.cluster.entries(after=self.seen)
        if entries:
            self.seen = entries[-1].sequence
        return entries

    def check(self, what: str, seen: Any, right: Any) -> None:
        if seen != right:
            self.problems.append(f"{what} is {seen}, right is {right}")

    def check_partition(self, topic: str, **right: Any) -> None:
        """Check the controller's view of partition 0: ``replicas``, ``isr``, ``leader``, ..."""
        state = self.cluster.partition(topic)
        for name, value in right.items():
            self.check(f"{topic}-0 {name}", state[name], value)


def _spelled(op: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as the demo shows it: ``alter foo-0 [4, 5, 6]``."""
    words = [op.replace("_", " ")]
    if "topic" in arguments:
        words.append(f"{arguments['topic']}-{arguments['partition']}")
    if "replicas" in arguments:
        target = arguments["replicas"]
        words.append("cancel" if target is None else f"to {target}")
    if arguments.get("allow_replication_factor_change") is False:
        words.append("with allowReplicationFactorChange=false")
    return " ".join(words)


# ---- the steps ------------------------------------------------------------------------------


def _negotiate(run: Run) -> None:
    result = run.succeed("describe_cluster")
    if result is not None:
        brokers = list(range(1, BROKERS + 1))
        run.check("the client's list of brokers", result["brokers"], brokers)
        if run.profile.forwards:
            # A KRaft broker names any live broker as controller: each one forwards requests.
            run.check("the controller is a broker", result["controller"] in brokers, True)
        else:
            run.check("the client's controller", result["controller"], CONTROLLER)
    entries = run.cluster.entries()
    run.problems += negotiation_problems(entries, run.client, run.profile)


def _guard(run: Run) -> None:
    before = run.seen
    answer = run.call(
        "alter", topic="qux", partition=0, replicas=[1, 2], allow_replication_factor_change=False
    )
    talk = run.cluster.entries(after=before)
    if run.profile.guards_replication_factor:
        _guard_holds(run, answer, talk)
    else:
        sent = requests(talk, ALTER_REASSIGNMENTS)
        _GUARD_ON_OLD_BROKER[run.client.guard or "raises"](run, answer, sent)


def _guard_holds(run: Run, answer: Answer, talk: Sequence[Entry]) -> None:
    """A broker with the guard refuses, and states by how much the replication factor would
    change."""
    right = (INVALID_REPLICATION_FACTOR, "The replication factor is changed from 3 to 2")
    run.check("the broker's answer", _partition_error(talk), right)
    run.check_partition("qux", replicas=[1, 2, 3], adding=[], removing=[])
    if run.client.misreads_guard:
        run.check("the client's error", answer.error, NO_OUTCOME)
        run.gaps.append("misreads the answer to version 1: no error, and no outcome for qux-0")
    else:
        code, text = right
        # A client may prefix the broker's text with its own words for the code.
        shown = text if text in answer.message else answer.message
        run.check("the client's error", (answer.code, shown), (code, text))


def _partition_error(talk: Sequence[Entry]) -> tuple[int, str | None] | None:
    """Return code and text of the first partition in the first alter response of the journal."""
    for entry in talk:
        if entry.direction == "response" and entry.api_key == ALTER_REASSIGNMENTS:
            body = entry.decode().body
            row = body.responses[0].partitions[0]
            return row.error_code, row.error_message
    return None


def _guard_raises(run: Run, answer: Answer, sent: Sequence[Entry]) -> None:
    run.check("the client's error", (answer.ok, answer.error),
              (False, "UnsupportedVersionException"))  # fmt: skip
    run.check("the client's text", answer.message[: len(GUARD_REFUSAL)], GUARD_REFUSAL)
    run.check("AlterPartitionReassignments on the wire", len(sent), 0)
    run.check_partition("qux", replicas=[1, 2, 3], adding=[], removing=[])


def _guard_drops(run: Run, answer: Answer, sent: Sequence[Entry]) -> None:
    """A version 0 request cannot carry the flag, so the broker carries out the request."""
    run.check("the answer", answer.ok, True)
    run.check("AlterPartitionReassignments on the wire", versions_used(sent).get(45), [0])
    run.check_partition("qux", replicas=[1, 2], adding=[], removing=[])
    run.gaps.append("sends v0 without the flag: the replication factor changed, guard or not")


def _guard_sends(run: Run, answer: Answer, sent: Sequence[Entry]) -> None:
    """Brokers close the connection on an unknown version."""
    run.check("the answer", answer.ok, False)
    run.check("AlterPartitionReassignments on the wire", versions_used(sent).get(45), [1])
    run.check_partition("qux", replicas=[1, 2, 3], adding=[], removing=[])
    run.gaps.append("sends v1 to a broker that advertises 0-0, which closes the connection")


_GUARD_ON_OLD_BROKER: Mapping[str, Callable[[Run, Answer, Sequence[Entry]], None]] = {
    "raises": _guard_raises,
    "drops": _guard_drops,
    "sends": _guard_sends,
}


def _reassign(run: Run) -> None:
    run.succeed("alter", topic="foo", partition=0, replicas=[4, 5, 6])
    run.check_partition("foo", adding=[4, 5, 6], removing=[1, 2, 3], isr=[1, 2, 3], leader=1)


FOO_UNDER_WAY = {
    "foo-0": {"replicas": [4, 5, 6, 1, 2, 3], "adding": [4, 5, 6], "removing": [1, 2, 3]}
}


def _list(run: Run) -> None:
    run.check("the list", _listed(run), FOO_UNDER_WAY)


def _complete(run: Run) -> None:
    run.ctl("join-isr", "foo-0", "4")
    run.ctl("join-isr", "foo-0", "5")
    run.check("the list with two of three in the ISR", _listed(run), FOO_UNDER_WAY)
    run.ctl("join-isr", "foo-0", "6")
    run.check("the list at the end", _listed(run), {})
    run.check_partition("foo", replicas=[4, 5, 6], adding=[], removing=[])
    state = run.cluster.partition("foo")
    run.check("foo-0 isr", sorted(state["isr"]), [4, 5, 6])
    run.check("foo-0 leader is one of 4, 5, 6", state["leader"] in (4, 5, 6), True)


def _cancel(run: Run) -> None:
    run.succeed("alter", topic="bar", partition=0, replicas=[4, 5, 6])
    run.check_partition("bar", adding=[4, 5, 6], removing=[1, 2, 3])
    run.ctl("join-isr", "bar-0", "5")
    run.succeed("alter", topic="bar", partition=0, replicas=None)
    run.check_partition("bar", replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, adding=[], removing=[])
    run.check("the list", _listed(run), {})
    run.fail(NO_REASSIGNMENT_IN_PROGRESS, "alter", topic="bar", partition=0, replicas=None)


def _elect(run: Run) -> None:
    run.check_partition("baz", replicas=[6, 1, 2], leader=1)
    run.succeed("elect", topic="baz", partition=0)
    run.check_partition("baz", leader=6)
    run.fail(ELECTION_NOT_NEEDED, "elect", topic="baz", partition=0)


def _listed(run: Run) -> Any:
    return run.succeed("list", partitions=[["foo", 0], ["bar", 0]])


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its column in the table, its purpose, the fact that it proves, and how to play it."""

    name: str
    title: str
    holds: str
    play: Callable[[Run], None]


STEPS = (
    Step(
        "negotiate",
        "Negotiate versions and find the controller",
        "each request in the newest version both sides know; all brokers found",
        _negotiate,
    ),
    Step(
        "guard",
        "Ask that the replication factor may not change",
        "the client says why not, and qux-0 keeps its three replicas",
        _guard,
    ),
    Step(
        "reassign",
        "Start moving foo-0 from 1,2,3 to 4,5,6",
        "foo-0 is adding 4,5,6 and removing 1,2,3, and 1 still leads it",
        _reassign,
    ),
    Step("list", "List what is under way", "the client sees the move in progress", _list),
    Step(
        "complete",
        "4, 5 and 6 catch up: the move completes",
        "it ended with the last of the three, not before; foo-0 is on 4,5,6",
        _complete,
    ),
    Step(
        "cancel",
        "Start another and cancel it",
        "bar-0 is on 1,2,3 again, and cancelling twice is an error",
        _cancel,
    ),
    Step(
        "elect",
        "Elect the preferred leader of baz-0",
        "6 leads baz-0 again, and electing it twice is an error",
        _elect,
    ),
)


def run(
    client: Client, profile: Profile, driver: Driver, cluster: Cluster, screen: Screen
) -> dict[str, Outcome]:
    """Play every step that the client has the calls for. If the driver dies, the remaining steps
    fail."""
    here = Run(client, profile, driver, cluster, screen)
    outcomes: dict[str, Outcome] = {}
    dead = ""
    for step in STEPS:
        if step.name in client.lacks:
            outcomes[step.name] = Outcome("lacking", client.lacks[step.name])
        elif dead:
            outcomes[step.name] = Outcome("wrong", dead)
        else:
            screen.step(step.title)
            dead = _play(here, step)
            outcomes[step.name] = _judge(here)
        screen.outcome(step, outcomes[step.name])
    return outcomes


def _play(run: Run, step: Step) -> str:
    """Play one step into ``run.problems``. Returns why the driver died, if it did."""
    run.problems, run.gaps = [], []
    start = run.seen
    try:
        step.play(run)
    except DriverError as error:
        run.problems.append(str(error))
        return str(error)
    except Exception as error:
        # A cluster that refuses a command, or an answer of an unknown shape, fails the step only.
        run.problems.append(f"{type(error).__name__}: {error}")
    if not run.gaps:
        _check_wire(run, start)
    return ""


def _check_wire(run: Run, start: int) -> None:
    """Check the requests of every step: versions that both sides support, sent to the right
    broker."""
    history = run.cluster.entries()
    news = [entry for entry in history if entry.sequence > start]
    run.problems += version_problems(news, history, run.client, run.profile)
    run.problems += misdirected(news, run.profile, CONTROLLER)


def _judge(run: Run) -> Outcome:
    if run.problems:
        return Outcome("wrong", "; ".join(dict.fromkeys(run.problems)))
    if run.gaps:
        return Outcome("gap", "; ".join(run.gaps))
    return Outcome("right")
