"""A client's answer, in each shape that adapters give it, becomes the outcome of one partition."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from demo.drivers import NO_OUTCOME, Answer, Driver
from kspec.answers import Answer as AdapterAnswer

NOT_MOVING = {"error": "KError", "code": 85, "message": "not moving"}
WRAPPED = {"error": "wrapError", "code": None, "message": "foo-0: x", "errors": [NOT_MOVING]}
WHOLE = {"ok": False, "error": "ResponseError", "code": None, "message": "it failed"}


def asked(op: str, said: dict[str, Any]) -> Answer:
    """What the demo makes of a line that an adapter says."""

    async def call(name, given):
        return AdapterAnswer.of(said)

    greeting = SimpleNamespace(client="a client", version="1")
    with asyncio.Runner() as runner:
        driver = Driver(SimpleNamespace(greeting=greeting, call=call), runner)
        arguments = {"partitions": []} if op == "list" else {"topic": "foo", "partition": 0}
        return driver.call(op, **arguments, replicas=None)


@pytest.mark.parametrize("op", ["alter", "elect"])
@pytest.mark.parametrize(
    ("said", "right"),
    [
        ({"ok": True, "result": None}, Answer(True)),
        ({"ok": True, "result": {"foo-0": None}}, Answer(True)),
        ({"ok": True, "result": {"foo-0": NOT_MOVING}},
         Answer(False, error="KError", code=85, message="not moving")),
        ({**WHOLE, "partitions": {"foo-0": NOT_MOVING}},
         Answer(False, error="KError", code=85, message="not moving")),
        ({**WHOLE, "partitions": {"foo-0": WRAPPED}},
         Answer(False, error="wrapError", code=85, message="foo-0: x")),
        ({**WHOLE, "cause": WRAPPED},
         Answer(False, error="ResponseError", code=85, message="it failed")),
        (WHOLE, Answer(False, error="ResponseError", message="it failed")),
        ({"unsupported": "no call"}, Answer(False, unsupported="no call")),
    ],
)  # fmt: skip
def test_the_outcome_of_the_partition_is_the_answer(op, said, right):
    assert asked(op, said) == right


@pytest.mark.parametrize("result", [{}, {"foo-1": None}])
def test_outcomes_that_leave_out_the_partition_are_no_success(result):
    answer = asked("alter", {"ok": True, "result": result})
    assert (answer.ok, answer.error) == (False, NO_OUTCOME)


def test_a_list_is_its_result_and_fails_as_a_whole():
    moving = {"foo-0": {"replicas": [1], "adding": [], "removing": []}}
    assert asked("list", {"ok": True, "result": moving}) == Answer(True, moving)
    assert asked("list", {"ok": True, "result": {}}) == Answer(True, {})
    assert asked("list", WHOLE) == Answer(False, error="ResponseError", message="it failed")
