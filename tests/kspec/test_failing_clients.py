"""Clients whose every call fails: cases in which a call has to fail must not flatter them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kspec.answers import Answer
from kspec.error_kinds import Failure
from kspec.results import FEWEST_CALLS, Greeting
from kspec.runner.adapters import Adapter
from kspec.runner.clients import Local
from kspec.runner.files import load_cases
from kspec.runner.schedule import run
from tests.support.full import FULL

FAILED = Answer(failure=Failure("Error", None, "no"))
SETTING_UP = ("connect", "close")
SAMPLE = 24


class Dead:
    """Connects to nothing: every call fails at once."""

    name = "dead"
    wire_only = False
    pid = None
    greeting = Greeting(
        client="dead", capabilities=["acknowledge"], connect=["oauthbearer"], records=["headers"]
    )

    async def start(self) -> Dead:
        return self

    async def call(self, op, _arguments):
        return Answer() if op in SETTING_UP else FAILED

    async def stop(self) -> None:
        pass


class Pessimist:
    """Does as the reference client, and then reports that the call failed."""

    name = "pessimist"
    wire_only = False
    pid = None

    def __init__(self, inner: Adapter) -> None:
        self._inner = inner
        self.greeting = inner.greeting

    async def call(self, op, arguments):
        answer = await self._inner.call(op, arguments)
        return answer if op in SETTING_UP or answer.unsupported is not None else FAILED

    async def stop(self) -> None:
        await self._inner.stop()


class Pessimists:
    name = "pessimist"

    async def start(self) -> Pessimist:
        return Pessimist(await Local("reference").start())


@pytest.mark.slow
async def test_a_client_that_never_connects_fails_every_case():
    cases = [case for case in load_cases() if case.case.client.tls is None]
    results = await run([Dead()], cases, jobs=32)
    # All that this one asks is that a call fails; that none succeeds elsewhere shows nothing.
    unjudged = {each.case.id for each in results if each.judgement.verdict == "unsupported"}
    assert unjudged == {"oauthbearer/004-there-is-no-token"}
    found = Counter(each.judgement.verdict for each in results)
    assert found == {"fail": len(cases) - 1, "unsupported": 1}


@pytest.mark.slow
async def test_a_client_whose_calls_never_succeed_passes_no_case(rng: random.Random):
    """Where a call has to fail there is no verdict; most cases want one that succeeds."""
    cases = load_cases() if FULL else rng.sample(load_cases(), SAMPLE)
    results = await run([Pessimists()], cases, jobs=16)
    made = Counter(call.request for each in results for v in each.variants for call in v.calls)
    often = {name for name, count in made.items() if count >= FEWEST_CALLS}
    good = [
        each
        for each in results
        if each.judgement.verdict in ("pass", "non-strict", "informational")
        and {call.request for v in each.variants for call in v.calls} <= often
    ]
    assert good == []
    assert any(each.judgement.verdict == "fail" for each in results)
