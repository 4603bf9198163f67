"""Every case of the suite passes for the reference client, fails for the defect it names, and
for no other of its group's; and a case that cannot fail is found out."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kspec.case_parser import parse_case
from kspec.defects.catalog import DEFECTS
from kspec.runner.files import CASES, load_cases
from kspec.runner.proof import confirmed, prove, suspected
from tests.support.full import FULL

GROUPS = sorted(path.parent.name for path in CASES.glob("*/001-*.yaml"))
NEIGHBOURS = 4
SAMPLE = 12


class Plays:
    """A queue for the plays of this module, which several processes of pytest may run.

    Many groups are played at the same time, but a play that has to confirm a flaw is alone. Who
    waits to be alone lets no other one begin, so the wait is as long as what was begun before.
    """

    def __init__(self, folder: Path) -> None:
        self._turn = folder / "kspec-turn.lock"
        self._plays = folder / "kspec-plays.lock"

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        with self._hold(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._hold(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _hold(self, kind: int) -> Iterator[None]:
        with self._plays.open("w") as plays:  # closing a file unlocks it
            with self._turn.open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                fcntl.flock(plays, kind)
            yield


@pytest.fixture(scope="session")
def plays(tmp_path_factory: pytest.TempPathFactory) -> Plays:
    folder = tmp_path_factory.getbasetemp()
    several = "PYTEST_XDIST_WORKER" in os.environ
    return Plays(folder.parent if several else folder)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
async def test_every_case_can_be_passed_and_failed(
    group: str, rng: random.Random, plays: Plays
) -> None:
    """A sample by the run's seed, each beside some of it; all beside all in a full run."""
    every = load_cases()
    cases = [each for each in every if each.group == group]
    with plays.beside_others():
        if FULL:
            pairs = await suspected(cases, every)
        else:
            cases = rng.sample(cases, min(SAMPLE, len(cases)))
            parts = [cases[at : at + NEIGHBOURS] for at in range(0, len(cases), NEIGHBOURS)]
            found = await asyncio.gather(*(suspected(part, part, jobs=16) for part in parts))
            pairs = [pair for each in found for pair in each]
    if pairs:
        with plays.alone():
            assert await confirmed(pairs) == []


@pytest.mark.slow
async def test_a_sample_can_be_passed_and_failed(plays: Plays) -> None:
    """By `prove` itself."""
    first = {each.group: each for each in reversed(load_cases())}
    cases = [each for each in first.values() if each.group in ("negotiation", "reassignment")]
    with plays.alone():
        assert await prove(cases, cases) == []


SOUND = """\
title: t
source: KIP-455
about: a
cluster: {topics: ["foo=1,2,3"]}
steps:
  - {call: alter_reassignments, with: {assignments: {foo-0: [3, 2, 1]}}}
must:
  - {says: it sends the request, requests: {api: AlterPartitionReassignments}}
wrong: {by: claims-success}
"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SOUND, "claims-success does not fail it: pass"),
        (SOUND.replace("claims-success", "unheard-of"), "'unheard-of' is not a defect"),
        (SOUND.replace("count: 1", "").replace("AlterPartitionReassignments}", "Produce}"),
         "the reference client: fail: not met: it sends the request"),
        (SOUND.replace("wrong: {by: claims-success}", ""), "no `wrong`: name the defect"),
        (SOUND.replace("by: claims-success", "by: claims-success, also: [hides-the-error]"),
         "hides-the-error is declared to fail it too, but does not"),
        (SOUND.replace("by: claims-success", "by: claims-success, lax: [hides-the-error]"),
         "hides-the-error is declared to be non-strict in it: pass"),
    ],
)  # fmt: skip
async def test_a_case_that_proves_nothing_is_found_out(text, problem):
    case = parse_case(text, "x/001-x.yaml")
    flaws = [str(flaw) for flaw in await prove([case], [case])]
    assert any(problem in flaw for flaw in flaws), flaws


def test_every_case_of_the_suite_names_what_proves_it():
    judging = [each for each in load_cases() if not each.case.informational]
    assert [each.id for each in judging if not each.case.defects] == []


def test_every_defect_is_caught_by_a_case():
    caught = {name for each in load_cases() for name in each.case.defects}
    assert caught == set(DEFECTS)


def test_every_defect_says_what_is_wrong_and_is_of_use():
    assert all(each.about and "\n" not in each.about for each in DEFECTS.values())
    assert all(each.client.name == f"wrong:{name}" for name, each in DEFECTS.items())
