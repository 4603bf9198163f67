"""Several clients in one case: each has its own process, options and calls, and members of a group
poll until all have their partitions."""

from __future__ import annotations

from typing import Any

import pytest

from kspec.answers import Answer
from kspec.case_parser import parse_case
from kspec.error_kinds import Failure
from kspec.errors import AdapterError, CaseError
from kspec.results import Greeting, Result
from kspec.runner.schedule import run

CASE = """\
title: t
source: KIP-62
about: a
client: {timeout_ms: 1000, consumer: {group: g, max_wait_ms: 50}}
others: {second: {consumer: {instance_id: two}}, third: {client_id: three}}
steps:
  - {call: subscribe, with: {topics: [foo]}}
  - {call: subscribe, by: second, with: {topics: [foo]}, as: join}
  - {call: list_topics, by: third}
  - together:
      - {call: poll, with: {assigned: 1, ms: 20000}, as: first}
      - {call: poll, by: second, with: {assigned: 2, records: 1, ms: 20000}, as: second}
must:
  - {says: both are done, result: second, success: true}
  - {says: the records of all rounds are delivered, result: second, delivered: {foo-0: [a]}}
wrong: {by: claims-success}
"""
RECORD = {"topic": "foo", "partition": 0, "offset": 0, "key": None, "value": "a"}


class Member:
    """A client whose n-th assignment has so many partitions; the last one stays."""

    wire_only = False
    pid = None
    greeting = Greeting(client="member")

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self.asked: list[str] = []
        self.options: dict[str, object] = {}

    async def call(self, op: str, arguments: dict[str, Any]) -> Answer:
        self.asked.append(op)
        if op == "connect":
            self.options = dict(arguments)
        if op == "poll":
            polls = self.asked.count("poll")
            return Answer(records=[RECORD] if polls == 2 else [], result=[])
        if op == "assignment":
            number = self.asked.count("assignment")
            return Answer(result=["foo-0"] * self._sizes[min(number, len(self._sizes)) - 1])
        return Answer()

    async def stop(self) -> None:
        self.asked.append("stop")


class Members:
    name = "members"

    def __init__(self, *members: Member) -> None:
        self.members = list(members)
        self._left = list(members)

    async def start(self) -> Member:
        return self._left.pop(0)


async def played(*members: Member) -> Result:
    (result,) = await run([Members(*members)], [parse_case(CASE, "x/001-x.yaml")])
    return result


async def test_each_client_has_its_own_options_and_calls():
    members = [Member([1]), Member([2]), Member([0])]
    result = await played(*members)
    assert result.judgement.verdict == "pass", result.judgement
    assert [each.options["client_id"] for each in members] == ["kspec", "second", "three"]
    consumers = [each.options["consumer"] for each in members]
    shared = {"group": "g", "max_wait_ms": 50}
    assert consumers == [shared, {**shared, "instance_id": "two"}, shared]
    assert {each.options["timeout_ms"] for each in members} == {1000}
    assert members[2].asked == ["connect", "list_topics", "close", "stop"]
    assert [each.asked.count("subscribe") for each in members] == [1, 1, 0]


async def test_members_poll_until_all_have_their_partitions():
    """The first has its partition at once, and goes on for the sake of the second, which also needs
    a record."""
    first, second = Member([1]), Member([0, 1, 2])
    assert (await played(first, second, Member([0]))).judgement.verdict == "pass"
    assert first.asked.count("poll") == second.asked.count("poll") == 3


class Unlucky(Member):
    async def call(self, op: str, arguments: dict[str, Any]) -> Answer:
        if op == "assignment":
            return Answer(failure=Failure("E", None, "not now"))
        return await super().call(op, arguments)


async def test_a_poll_that_fails_ends_the_rounds():
    first = Member([0])
    result = await played(first, Unlucky([0]), Member([0]))
    assert "not now" in result.judgement.why
    assert first.asked.count("poll") == 1


class Mortal(Member):
    async def call(self, op: str, arguments: dict[str, Any]) -> Answer:
        if op == "poll":
            raise AdapterError("died")
        return await super().call(op, arguments)


async def test_if_one_dies_all_are_replaced():
    members = [Member([1]), Mortal([0]), Member([0])]
    result = await played(*members)
    assert (result.judgement.verdict, result.judgement.why) == ("fail", "died")
    assert [each.asked[-1] for each in members] == ["stop"] * 3


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("by: third", "by: fourth", r"steps\[2\]: no client is named 'fourth'"),
        ("by: second, with: {assigned", "by: fourth, with: {assigned", r"steps\[3\]: no client"),
        ("instance_id: two", "instance: two", "others.second: Object contains unknown field"),
    ],
)
def test_what_others_are_is_checked(old, new, told):
    assert CASE.count(old) == 1
    with pytest.raises(CaseError, match=told):
        parse_case(CASE.replace(old, new), "x/001-x.yaml")
