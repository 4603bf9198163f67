"""Declared types agree with what runs: commands, forwarded methods, the members of fault rules."""

import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec
import pytest

from mockbroker import MockCluster
from mockbroker.faults.members import FaultMembers
from mockbroker.faults.rule import Fault
from mockbroker.running.threaded import AsyncMethods, ForwardedMethods, ThreadedCluster
from mockbroker.simulation.log.log_views import describe_log
from mockbroker.simulation.operations import OPERATIONS, OperationCall, parse_operation
from tests.mockbroker.operation_calls import CALLS, prepare


def test_each_operation_is_a_typed_method() -> None:
    for operation in OPERATIONS.values():
        method = getattr(ThreadedCluster, operation.method)
        signature = inspect.signature(method)
        assert signature.return_annotation == operation.returns
        assert ["self", *get_type_hints(method)] == [*signature.parameters, "return"]
        assert method.__doc__.startswith(operation.help)


@pytest.mark.slow
def test_texts_and_methods_do_the_same() -> None:
    def by_command(mock: ThreadedCluster, call: OperationCall) -> None:
        mock.run_command(call)

    def by_method(mock: ThreadedCluster, call: OperationCall) -> None:
        getattr(mock, call.operation.method)(*call.values.values())

    def by_text(mock: ThreadedCluster, call: OperationCall) -> None:
        words = [
            None if value is None else each.type.to_text(value)
            for each, value in zip(call.operation.arguments, call.values.values(), strict=True)
        ]
        getattr(mock, call.operation.method)(*words)

    def state(mock: MockCluster) -> str:
        log = describe_log(mock.cluster.logs, "foo", mock.cluster.topics.partition("foo", 0))
        return f"{mock.groups()} {mock.committed('g')} {mock.transactions()} {log}"

    def run(step: Callable[[ThreadedCluster, OperationCall], None]) -> list[tuple[str, str]]:
        """What each step of the program left: its actions, with broker ids for ports, and the state
        of log, group and transactions."""
        options = {"topics": ["foo=1,2,3"], "profile": "kafka-2.3", "clock": "manual"}
        with ThreadedCluster(4, **options) as mock:
            mock._read(prepare)
            log, done = mock.cluster.cluster.log, []
            ports = {address.split(":")[1]: str(id) for id, address in mock.addresses.items()}
            for text in CALLS:
                begun = len(log)
                step(mock, parse_operation(text))
                actions = " ".join(map(str, log.since(begun)))
                actions = re.sub(r"UUID\('[^']*'\)", "UUID", actions)  # topic ids are random
                actions = re.sub("[0-9]{4,5}", lambda each: ports.get(each[0], each[0]), actions)
                done.append((actions, mock._read(state)))
            return done

    results = run(by_command)
    assert results == run(by_method) == run(by_text)
    states = [state for _, state in results]
    changes = [after != before for before, after in zip(["", *states], states, strict=False)]
    visible = [bool(row[0]) or changed for row, changed in zip(results, changes, strict=True)]
    assert sum(visible) >= len(CALLS) * 2 // 3, "most steps change something that is compared"


def test_every_method_of_the_cluster_is_forwarded() -> None:
    """Except those that make, start and stop it, and ``take``, which needs its event loop."""

    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    attributes = set(vars(MockCluster(brokers=1)))
    whole = public(MockCluster) | {name for name in attributes if not name.startswith("_")}
    assert whole - public(ThreadedCluster) - {"options"} == {"take", "calls"}
    forwarded = public(AsyncMethods)
    forwarded.remove("wait_for")  # of the recorded requests
    assert forwarded == public(ForwardedMethods) | {each.method for each in OPERATIONS.values()}
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
