"""A client that can only produce, or only consume, is judged where a case needs just some
request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from kspec.answers import Answer
from kspec.defects.catalog import wrong_client
from kspec.results import Greeting, Result
from kspec.runner.adapters import Adapter, LocalAdapter
from kspec.runner.files import load_cases
from kspec.runner.schedule import run, run_pairs
from kspec.runner.stand_ins import needs_some_request
from tests.support.full import drawn

CASES = [each for each in load_cases() if needs_some_request(each.case)]
NARROW = {"producer": ("produce",), "consumer": ("assign", "poll")}


class NarrowAdapter(LocalAdapter):
    """The reference client, or a wrong one, of which only some calls are there."""

    def __init__(self, wrong: str, calls: tuple[str, ...]) -> None:
        super().__init__(wrong_client(wrong))
        self.greeting: Greeting = msgspec.structs.replace(self.greeting, capabilities=list(calls))

    async def call(self, op: str, arguments: Mapping[str, Any]) -> Answer:
        if op not in ("connect", "close", *self.greeting.capabilities):
            return Answer(unsupported=f"no call {op}")
        return await super().call(op, arguments)


@dataclass(frozen=True)
class Narrow:
    name: str
    calls: tuple[str, ...]
    wrong: str = ""

    async def start(self) -> Adapter:
        return NarrowAdapter(self.wrong, self.calls)


def failing(results: list[Result]) -> dict[str, str]:
    return {
        each.case.id: f"{each.judgement.verdict}: {each.judgement.why}"
        for each in results
        if each.judgement.verdict not in ("pass", "informational")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
async def test_a_right_client_passes_with_a_part_of_its_calls(name: str) -> None:
    cases = drawn(f"cases of a {name}", CASES, 12)
    results = await run(
        [Narrow(name, NARROW[name])], cases, jobs=8, again=lambda each: bool(failing([each]))
    )
    assert failing(results) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
async def test_a_defect_shows_with_a_part_of_the_calls(name: str) -> None:
    """Not every one: some are about the list of topics, which nobody asks for here."""
    cases = drawn(f"defects of a {name}", [each for each in CASES if each.case.wrong], 12)
    pairs = [(Narrow(each.id, NARROW[name], each.case.defects[0]), each) for each in cases]
    results = await run_pairs(pairs, jobs=8)
    passed = [each.client for each in results if each.judgement.verdict == "pass"]
    assert len(passed) <= len(cases) // 2, passed
