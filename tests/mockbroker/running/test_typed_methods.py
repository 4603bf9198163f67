"""Declared types agree with what runs: commands, forwarded methods, the members of fault rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

import msgspec
import pytest

from mockbroker import MockCluster
from mockbroker.faults.members import FaultMembers
from mockbroker.faults.rule import Fault
from mockbroker.options import Level
from mockbroker.running.threaded import AsyncMethods, ForwardedMethods, ThreadedCluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.log.log_views import describe_log
from mockbroker.simulation.operations import COMMANDS, Argument, CommandCall, parse_command
from mockbroker.simulation.operations import arguments as kinds
from mockbroker.simulation.operations.group_rows import COORDINATOR_KIND, TARGET
from mockbroker.simulation.operations.log_rows import CORRUPTION_TEXT, RECORDS_TEXT
from mockbroker.simulation.state.cluster_parts import TopicPartition
from tests.mockbroker.control.test_commands import prepare

METHODS = {"propagation": "set_propagation", "delete-znode": "write_znode"}
"""The commands whose method has another name."""
TYPES: list[tuple[kinds.ArgumentType, Any]] = [
    (kinds.BROKER_ID, int),
    (kinds.TOPIC_PARTITION, str | TopicPartition),
    (kinds.MILLISECONDS, int),
    (kinds.COUNT, int),
    (kinds.WORD, str),
    (kinds.SOFTWARE_LEVEL, Level),
    (kinds.TOPIC_TEXT, str),
    (kinds.ADDRESS, str),
    (kinds.DIRECTORY_PATH, str),
    (kinds.ZNODE_PATH, str),
    (kinds.ZNODE_TEXT, str),
    (kinds.ZNODE_TEXT_OR_NULL, str | None),
    (CORRUPTION_TEXT, str),
    (RECORDS_TEXT, str),
    (COORDINATOR_KIND, str | CoordinatorKind),
    (TARGET, Mapping[str, Sequence[str | TopicPartition]]),
]
PROGRAM = (
    "append foo-0 one", "hold-replication foo-0", "append foo-0 two", "replicate foo-0 2",
    "release-replication foo-0 3", "lag-high-watermark foo-0 1", "roll-segment foo-0",
    "apply-retention foo-0", "compact", "corrupt-batch foo-0 0 bit",
    "unclean-election foo-0 3", "jump-log-start foo-0 1", "truncate foo-0 1",
    "join-isr foo-0 1", "unclean-election foo-0 1", "join-isr foo-0 2", "join-isr foo-0 3",
    "forget-producer foo-0", "hold-produces", "release-produces", "hold-fetches foo-0",
    "release-fetches", "complete-fetches", "expire-fetch-session", "diverge foo-0 0",
    "set-offset g foo-0 1", "hold-joins g", "complete-join g", "set-generation g 7",
    "hold-commits g", "release-commits g", "drop-offset g foo-0", "set-offset g foo-0 0",
    "rebalance g", "remove-member g two", "fence-instance g one", "expire-member g one",
    "load-coordinator group g", "finish-loading group g", "move-coordinator group g 2",
    'set-target-assignment c {"one": ["foo-0"]}', "hold-assignment c", "release-assignment c",
    "release-assignor c", "shutdown-application s m",
    "set-delivery-count h foo-0 0 3", "expire-locks h foo-0",
    "expire-share-session h one",
    "hold-markers", "abort-transaction t", "release-markers", "fence-producer t",
    "set-producer-epoch t 7", "expire-transaction u",
    'append foo-0 {"records": [{}], "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}',
    "write-marker foo-0 7 commit",
    "leave-isr foo-0 2", "join-isr foo-0 2", "failover 2", "stop-broker 3", "start-broker 3",
    "fail-log-dir 3", "mend-log-dir 3",
    "close-listener 3", "open-listener 3", "set-level 3 kafka-2.3", "hold-metadata 1",
    "release-metadata 1", "advance 500ms", "propagation 200ms", "hold-elections",
    "release-elections", "write-znode /x hello", "append-znode /s- hi", "delete-znode /x",
    "create-topic bar:2:3", "make-sink bar", "make-source bar one", "add-partitions bar 3",
    "delete-topic bar",
    "advertise 3 localhost:9", "throttle-client c 5ms", "expire-session 3",
    "kill-controller-after 5", "resign-controller",
)  # fmt: skip


def type_of(argument: Argument) -> Any:
    (found,) = (hint for kind, hint in TYPES if kind is argument.type)
    return found | None if argument.optional else found


def method_of(command: str) -> str:
    return METHODS.get(command, command.replace("-", "_"))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_a_typed_method(name: str) -> None:
    method = getattr(ThreadedCluster, method_of(name))
    hints = get_type_hints(method)
    hints.pop("return")
    wanted = [type_of(argument) for argument in COMMANDS[name].arguments]
    if name == "delete-znode":
        wanted.append(str | None)  # a deletion writes None
    assert list(hints.values()) == wanted
    assert list(inspect.signature(method).parameters) == ["self", *hints]


def test_commands_and_methods_do_the_same() -> None:
    assert {text.split()[0] for text in PROGRAM} == set(COMMANDS)

    def by_command(mock: ThreadedCluster, call: CommandCall) -> None:
        mock.run_command(call)

    def by_method(mock: ThreadedCluster, call: CommandCall) -> None:
        arguments = list(call.values.values())
        if call.command.name == "delete-znode":
            arguments.append(None)
        getattr(mock, method_of(call.command.name))(*arguments)

    def state(mock: MockCluster) -> str:
        log = describe_log(mock.cluster.logs, "foo", mock.cluster.topics.partition("foo", 0))
        return f"{mock.groups()} {mock.committed('g')} {mock.transactions()} {log}"

    def run(step: Callable[[ThreadedCluster, CommandCall], None]) -> list[tuple[str, str]]:
        """What each step of the program left: its actions, with broker ids for ports, and the state
        of log, group and transactions."""
        options = {"topics": ["foo=1,2,3"], "profile": "kafka-2.3", "clock": "manual"}
        with ThreadedCluster(4, **options) as mock:
            mock._read(prepare)
            log, done = mock.cluster.cluster.log, []
            ports = {address.split(":")[1]: str(id) for id, address in mock.addresses.items()}
            for text in PROGRAM:
                begun = len(log)
                step(mock, parse_command(text))
                actions = " ".join(map(str, log.since(begun)))
                actions = re.sub(r"UUID\('[^']*'\)", "UUID", actions)  # topic ids are random
                actions = re.sub("[0-9]{4,5}", lambda each: ports.get(each[0], each[0]), actions)
                done.append((actions, mock._read(state)))
            return done

    results = run(by_command)
    assert results == run(by_method)
    states = [state for _, state in results]
    changes = [after != before for before, after in zip(["", *states], states, strict=False)]
    visible = [bool(row[0]) or changed for row, changed in zip(results, changes, strict=True)]
    assert sum(visible) >= len(PROGRAM) * 2 // 3, "most steps change something that is compared"


def test_every_method_of_the_cluster_is_forwarded() -> None:
    """Except those that make, start and stop it, and ``take``, which needs its event loop."""

    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    attributes = set(vars(MockCluster(brokers=1)))
    whole = public(MockCluster) | {name for name in attributes if not name.startswith("_")}
    assert whole - public(ThreadedCluster) - {"options"} == {"take", "operations"}
    forwarded = public(ForwardedMethods)
    assert public(AsyncMethods) == forwarded
    for name in forwarded:
        assert inspect.signature(getattr(ThreadedCluster, name)) == inspect.signature(
            getattr(MockCluster, name)
        )
        assert getattr(ThreadedCluster, name).__doc__ == getattr(MockCluster, name).__doc__


def test_members_of_fault_are_those_of_the_rule() -> None:
    members = get_type_hints(FaultMembers)
    assert list(members) == [field.name for field in msgspec.structs.fields(Fault)]
    for field in msgspec.structs.fields(Fault):
        hint = members[field.name]
        if field.type == tuple[str, ...] or field.name == "unknown_tags":
            element: Any = field.type.__args__[0]
            assert hint == list[element] | field.type
        else:
            assert hint == field.type, field.name
