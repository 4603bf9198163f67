"""Real clients in the suite's cases: they fail what they are known to fail, and nothing else.

Known is what the published run has (`scripts.conformance_results`). Two clients share the cases
between them, the others play a few; the run's seed draws both. Under KPROTO_FULL everybody plays
everything. Nothing is known yet of a client or a case that was added after the last publication;
such a client plays what every client plays.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

from kspec.client_catalog import CLIENTS, Client
from kspec.model import CaseFile
from kspec.report.conformance_pages import Run
from kspec.results import Result, new_failures
from kspec.runner.files import choose, load_cases
from kspec.runner.schedule import run
from scripts.conformance_results import published, read
from tests.kspec.which import params, program
from tests.support import seeds
from tests.support.full import FULL


@cache
def published_run() -> Run:
    """Read when the first test needs it: every process collects this module."""
    return read()[0]


SHARING = ("kafka-python", "franz-go")
"""Clients that play half of the cases each, so that every case meets one of them."""
SAMPLE = 6
JOBS_OF_SHARING = 16
"""A play mostly waits, so that more of them take less time; what fails is played again alone."""
JOBS_OF_OTHERS = 4
"""Fewer than the cases, so that a process plays another case after one that it has no part in."""

MOVERS = {"kproto", "kafka-python", "kafkajs", "@platformatic/kafka", "kafka-clients",
          "kafka-clients-3.9", "franz-go", "sarama", "kafka-go", "kafka-ts"}  # fmt: skip
"""Those with calls for reassignments."""
MOVE = "reassignment/001"
PLAYED_BY_ALL = "framing/001"
PASSED_BY = {"kafka-streams": "produce/016", "kafka-streams-4.3": "produce/016"}
"""A case that the client passes, in place of PLAYED_BY_ALL."""

BY_TURNS = {
    ("@platformatic/kafka", "correlation/006-an-answer-that-outlasts-the-time-out"),
    ("kafka-python", "correlation/013-a-bootstrap-broker-that-is-mute"),
    ("kafka-python", "metadata/002-the-first-bootstrap-address-does-not-answer"),
    ("kafka-python", "routing/003-the-controller-stops-while-it-is-asked"),
    ("kafka-python", "tls/017-a-handshake-that-is-not-answered"),
    ("kafka-python", "transactions/011-the-coordinator-moves"),
    ("kafka-clients", "framing/008-a-tls-alert"),
    ("kafka-clients", "framing/009-a-web-server"),
    ("kafka-clients", "framing/020-noise"),
    ("kafka-clients-3.9", "consumer-groups/006-another-subscription"),
    ("kafka-clients-3.9", "framing/008-a-tls-alert"),
    ("kafka-clients-3.9", "framing/009-a-web-server"),
    ("kafka-clients-3.9", "framing/020-noise"),
    ("franz-go", "metadata/011-a-partition-gets-a-leader"),
    ("kafka-go", "fetch/042-a-size-that-is-not-true"),
    ("sarama", "framing/009-a-web-server"),
}
"""Passed in one run and failed in the next: it depends on the broker that the client asks first, on
whether a lost connection has been noticed before the next request, on which of its queues the
client writes first, on whether its metadata are there before an assignment names topics by id, or
on the time that the machine takes to allocate a buffer for an invalid size, and on how much of it
the client touches."""


def unsteady() -> set[tuple[str, str]]:
    """What the published run saw fail once and pass once."""
    return {(each.client, each.case) for each in published_run().results if each.unsteady}


@pytest.mark.slow
@pytest.mark.parametrize("which", params())
async def test_a_client_fails_what_it_is_known_to_fail(
    which: Client, rng: random.Random, note: Callable[[str], None]
) -> None:
    """It passes what every client can, and moves a partition if it has a call for that.

    What fails and is not known to is played once more at the end, and if need be a third time
    with nothing beside it: a verdict that a busy machine gave is none. The last play counts."""
    sharing = which.name in SHARING
    known = published()
    passed, moved = choose(load_cases(), [PASSED_BY.get(which.name, PLAYED_BY_ALL), MOVE])
    drawn = drawn_for(which.name, rng)
    cases = [moved, passed, *(each for each in drawn if each not in (moved, passed))]
    print(f"{which.name} plays {', '.join(case.id for case in cases)}")

    def is_new(result: Result) -> bool:
        return bool(new_failures([result], known)[0])

    jobs = JOBS_OF_SHARING if sharing else JOBS_OF_OTHERS
    results = await run([program(which)], cases, jobs=jobs, again=is_new)
    new, stale = new_failures(results, known)
    if new:
        failed = [each.case for each in new]
        alone = {each.case.id: each for each in await run([program(which)], failed, jobs=1)}
        results = [alone.get(each.case.id, each) for each in results]
        new, _ = new_failures(results, known)
    for each in results:
        if each.unsteady:
            note(f"{which.name} failed {each.case.id} once: {each.unsteady}")
    for _, case in stale:
        note(f"{which.name} passed {case}, which failed in the published run")
    found = {each.case.id: each.judgement.why for each in new}
    for case in [case for case in found if (which.name, case) in BY_TURNS | unsteady()]:
        note(f"{which.name} failed {case}: {found.pop(case)}")
    assert found == {}
    verdicts = {each.case.id: each.judgement.verdict for each in results}
    assert verdicts[passed.id] == "pass"
    assert verdicts[moved.id] == ("pass" if which.name in MOVERS else "unsupported")


def published_cases(client: str) -> list[CaseFile]:
    """Those that the published run has of this client."""
    played = {each.case for each in published_run().results if each.client == client}
    return [each for each in load_cases() if each.id in played]


def drawn_for(client: str, rng: random.Random) -> list[CaseFile]:
    cases = published_cases(client)
    if FULL:
        return cases
    if client not in SHARING:
        return rng.sample(cases, min(SAMPLE, len(cases)))
    (other,) = set(SHARING) - {client}
    of_other = published_cases(other)
    shared = [each for each in cases if each in of_other]
    shuffled = seeds.generator("cases of two clients").sample(shared, len(shared))
    drawn = shuffled[SHARING.index(client) :: len(SHARING)]
    return [*drawn, *(each for each in cases if each not in of_other)]


def test_every_case_is_played_by_one_of_two_clients() -> None:
    played = [each.id for client in SHARING for each in drawn_for(client, random.Random())]
    published_ids = {each.id for client in SHARING for each in published_cases(client)}
    assert sorted(set(played)) == sorted(published_ids)


def test_the_lists_here_are_about_clients_and_cases_that_exist() -> None:
    assert set(published_run().clients) <= {each.name for each in CLIENTS}
    ids = {each.id for each in load_cases()}
    assert {case for _, case in BY_TURNS} <= ids
    assert {client for client, _ in BY_TURNS} <= set(published_run().clients)
