"""The commands that Kafka's tools of the ZooKeeper era are compared by, in their order. Only data.

Each is run on every cluster; between them all clusters come to rest. The last broker is frozen for
a while, so that what moves to it stays in progress, and is stopped in the end. Meanwhile somebody
writes into the znode of what is in progress, and later what was there again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

__all__ = [
    "BROKERS",
    "DRAWN",
    "FILE",
    "LEGACY",
    "MOVE",
    "SESSION",
    "Command",
    "Event",
    "Way",
    "verify",
]

Way = Literal["--zookeeper", "--bootstrap-server"]
Event = Literal["freeze", "thaw", "stop", "overwrite", "restore"]

FILE: Final = "FILE"
"""Stands for the file that holds a command's ``text``."""

DRAWN: Final = "drawn"
"""The topic whose replicas the tool chooses, by lot."""


@dataclass(frozen=True)
class Command:
    """``ways`` are the options that say where the cluster is; ``text`` is the JSON file's.

    ``refusal`` is what our tool says where Kafka's prints something and does nothing. What a
    ``shown`` one prints stands in docs/reference/tools.md.
    """

    tool: str
    arguments: tuple[str, ...]
    text: Any = None
    ways: tuple[Way, ...] = ("--zookeeper",)
    refusal: str | None = None
    shown: bool = False

    def __str__(self) -> str:
        words = f"`{' '.join((self.tool, *self.ways, *self.arguments))}`"
        return words if self.text is None else f"{words}, FILE being `{json.dumps(self.text)}`"


def shown(command: Command) -> Command:
    return replace(command, shown=True)


def topics(*arguments: str) -> Command:
    return Command("topics", arguments)


def configs(*arguments: str) -> Command:
    return Command("configs", ("--entity-type", "topics", *arguments))


def plan(*rows: tuple[str, int, Sequence[int]]) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [{"topic": t, "partition": p, "replicas": list(r)} for t, p, r in rows],
    }


def execute(*rows: tuple[str, int, Sequence[int]], more: tuple[str, ...] = ()) -> Command:
    return _with_plan("--execute", plan(*rows), *more)


def verify(*rows: tuple[str, int, Sequence[int]]) -> Command:
    return _with_plan("--verify", plan(*rows))


def _with_plan(action: str, text: Any, *more: str) -> Command:
    return Command("reassign-partitions", (action, "--reassignment-json-file", FILE, *more), text)


def generate(
    brokers: str, *names: str, more: tuple[str, ...] = (), refusal: str | None = None
) -> Command:
    text = {"version": 1, "topics": [{"topic": name} for name in names]}
    arguments = ("--generate", "--topics-to-move-json-file", FILE, "--broker-list", brokers)
    return Command("reassign-partitions", (*arguments, *more), text, refusal=refusal)


def elect(*rows: tuple[str, int], ways: tuple[Way, ...] = ("--zookeeper",)) -> Command:
    """By the znode, or by the brokers; no rows are all partitions."""
    text = {"partitions": [{"topic": t, "partition": p} for t, p in rows]} if rows else None
    arguments = ("--path-to-json-file", FILE) if rows else ()
    return Command("preferred-replica-election", arguments, text, ways)


def elect_file(text: Any) -> Command:
    return Command("preferred-replica-election", ("--path-to-json-file", FILE), text)


BROKERS: Final[tuple[Way, ...]] = ("--bootstrap-server",)
BOTH: Final[tuple[Way, ...]] = ("--bootstrap-server", "--zookeeper")

MOVE: Final = (("foo", 0, [2, 3]), ("foo", 1, [1, 4]), ("bar", 0, [4]))
"""The first of these is done at once, whether or not the last broker is frozen."""

_THROTTLED: Final = (
    execute(*MOVE, more=("--throttle", "1000000")),
    shown(execute(*MOVE)),
    execute(*MOVE, more=("--throttle", "2000000")),
    execute(("foo", 2, [1])),
    shown(verify(*MOVE)),
)

SESSION: Final[Sequence[Command | Event]] = (
    # Topics: created, described, altered.
    topics("--list"),
    topics("--create", "--topic", "foo", "--replica-assignment", "1:2:3,2:3:1"),
    topics("--create", "--topic", "bar", "--replica-assignment", "1:2:3",
           "--config", "retention.ms=5000"),
    topics("--create", "--topic", DRAWN, "--partitions", "3", "--replication-factor", "2"),
    topics("--create", "--topic", "foo", "--partitions", "1", "--replication-factor", "1"),
    topics("--create", "--topic", "foo", "--if-not-exists", "--replica-assignment", "1:2"),
    topics("--create", "--topic", "new", "--partitions", "1", "--replication-factor", "9"),
    topics("--create", "--topic", "new", "--partitions", "0", "--replication-factor", "1"),
    topics("--create", "--topic", "new", "--partitions", "1"),
    topics("--create", "--topic", "new", "--replica-assignment", "1:1"),
    topics("--create", "--topic", "new", "--replica-assignment", "1,2:3"),
    topics("--create", "--topic", "new", "--replica-assignment", "1", "--config", "nope=1"),
    topics("--create", "--topic", "n/w", "--partitions", "1", "--replication-factor", "1"),
    topics("--create", "--topic", "n.w", "--replica-assignment", "2:1"),
    topics("--create", "--topic", "n_w", "--replica-assignment", "2:1"),
    topics("--create", "--topic", "solo", "--replica-assignment", "1"),
    topics("--describe"),
    topics("--describe", "--topic", "foo"),
    topics("--describe", "--topic", "nope"),
    topics("--describe", "--topics-with-overrides"),
    topics("--alter", "--topic", "foo", "--partitions", "3",
           "--replica-assignment", "1:2:3,2:3:1,3:1:2"),
    topics("--alter", "--topic", "foo", "--partitions", "1"),
    topics("--alter", "--topic", "nope", "--partitions", "2"),
    topics("--alter", "--topic", "bar", "--config", "retention.ms=77"),
    topics("--alter", "--topic", "bar", "--delete-config", "retention.ms"),
    configs("--alter", "--entity-name", "foo", "--add-config", "retention.ms=9,segment.ms=8"),
    configs("--alter", "--entity-name", "foo", "--delete-config", "nope"),
    configs("--describe", "--entity-name", "foo"),
    configs("--alter", "--entity-name", "foo", "--delete-config", "retention.ms,segment.ms"),
    topics("--list"),
    # Reassignments: proposed, and refused.
    generate("1,2,3,4", "foo"),
    generate("1,2,3", "foo", "bar", more=("--disable-rack-aware",)),
    generate("1,2,3", "foo", "foo"),
    generate("1,2,2", "foo"),
    generate("1,2", "foo"),
    generate("1,2,3", "nope", refusal="Topic nope not found."),
    execute(),
    execute(("foo", 0, [])),
    shown(execute(("foo", 0, [2, 9]))),
    execute(("foo", 0, [-1])),
    execute(("foo", 0, [2, 2])),
    execute(("foo", 0, [2]), ("foo", 0, [3])),
    execute(("foo", 7, [2])),
    execute(("nope", 0, [2])),
    _with_plan("--execute", {"version": 2}),
    verify(("foo", 0, [4, 3])),
    verify(("nope", 0, [1])),
    Command("reassign-partitions", ("--execute",)),
    Command("reassign-partitions", ("--generate",)),
    Command("reassign-partitions", ("--execute", "--verify")),
    Command("reassign-partitions", ("--verify", "--throttle", "5")),
    # In progress, throttled, busy; done; throttled no more.
    "freeze",
    *_THROTTLED,
    "overwrite",
    verify(("foo", 2, [1])),
    shown(topics("--describe", "--topic", "foo")),
    topics("--describe", "--under-replicated-partitions"),
    "restore",
    "thaw",
    shown(verify(*MOVE)),
    verify(*MOVE),
    topics("--describe", "--topic", "bar"),
    execute(("foo", 0, [1, 2, 3]), ("foo", 1, [2, 3, 1]), ("bar", 0, [1, 2, 3])),
    verify(("foo", 0, [1, 2, 3]), ("foo", 1, [2, 3, 1]), ("bar", 0, [3, 2, 1])),
    # Elections. Changes of an order leave leaders where they are.
    execute(("foo", 0, [2, 1, 3]), ("foo", 2, [1, 2, 3]), ("bar", 0, [3, 1, 2])),
    topics("--describe"),
    shown(elect(("foo", 2), ("nope", 0))),
    elect(("nope", 0)),
    elect_file({"partitions": []}),
    elect_file({}),
    elect(("foo", 2), ("foo", 2)),
    elect(("bar", 0), ways=BROKERS),
    elect(("bar", 0), ways=BROKERS),
    elect(("nope", 0), ways=BROKERS),
    elect(("foo", 1), ways=BOTH),
    elect(("foo", 1), ways=()),
    elect(),
    topics("--describe"),
    elect(ways=BROKERS),
    # Deletions.
    topics("--delete", "--topic", "n.w"),
    topics("--delete", "--topic", "n.w"),
    topics("--delete", "--topic", "n.w", "--if-exists"),
    topics("--list"),
    # A broker that is gone: what leads to it, what it led, what it has of what is deleted.
    execute(("foo", 0, [4, 1, 2]), ("solo", 0, [4])),
    elect(("foo", 0)),
    "stop",
    topics("--describe"),
    topics("--describe", "--unavailable-partitions"),
    execute(("foo", 1, [4])),
    topics("--create", "--topic", "away", "--replica-assignment", "1:4"),
    shown(elect(("foo", 0), ("solo", 0), ("away", 0), ways=BROKERS)),
    # Its replicas cannot all be deleted, and so the topic is not.
    topics("--delete", "--topic", "away"),
    topics("--list"),
    topics("--delete", "--topic", "away"),
    topics("--create", "--topic", "away", "--replica-assignment", "1"),
    elect(("away", 0), ways=BROKERS),
)  # fmt: skip

LEGACY: Final[Sequence[Command | Event]] = (
    topics("--create", "--topic", "foo", "--replica-assignment", "1:2:3,2:3:1"),
    topics("--create", "--topic", "bar", "--replica-assignment", "1:2:3"),
    "freeze",
    *_THROTTLED,
    "thaw",
    verify(*MOVE),
    execute(("foo", 0, [9])),
    execute(("foo", 0, [3, 2, 1]), ("bar", 0, [2, 3])),
    verify(("foo", 0, [3, 2, 1]), ("bar", 0, [2, 3])),
    elect(("foo", 0)),
    elect(),
    topics("--describe"),
    topics("--delete", "--topic", "bar"),
    topics("--list"),
)
"""What users of the tool did before the drafts, on clusters whose controller is a draft's."""
