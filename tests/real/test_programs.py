"""Random programs without a real cluster: what is drawn, and how it is made smaller.

That Kafka and the mock agree about them is ``test_against_kafka``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.real.compare import Difference
from tests.real.programs.batch import Played
from tests.real.programs.generator import programs
from tests.real.programs.minimiser import coherent, minimise, smaller
from tests.real.programs.mock_side import Brokers, MockSide, View
from tests.real.programs.model import CLUSTER_STEPS, RELEASES, Program, ProgramStep, segments
from tests.real.programs.requests import ask_of

COUNT = 40


def drawn(release: str, seed: str = "a seed", count: int = COUNT) -> list[Program]:
    return programs(seed, 0, count, RELEASES[release], events=8, steps=40)


@pytest.mark.parametrize("release", RELEASES)
def test_a_seed_brings_a_program_back_as_text_does(release: str) -> None:
    first = drawn(release)
    assert first == drawn(release)
    assert first != drawn(release, "another")
    assert [Program.from_json(program.to_json()) for program in first] == first


@pytest.mark.parametrize("release", RELEASES)
def test_programs_of_a_batch_share_the_steps_of_the_cluster_alone(release: str) -> None:
    first, *others = ([group[:1] for group in segments(p.steps)[1:]] for p in drawn(release))
    assert all(step["do"] in CLUSTER_STEPS for (step,) in first)
    assert all(each == first for each in others)


def test_every_kind_of_step_is_drawn() -> None:
    def kinds(release: str) -> Counter[str]:
        return Counter(
            step["do"]
            for seed in range(20)
            for program in drawn(release, str(seed), 4)
            for step in program.steps
        )

    everywhere = {"create", "delete", "partitions", "alter", "elect", "configs", "together",
                  "stop", "start", "freeze", "thaw", "elect-all", "broker-configs"}  # fmt: skip
    assert kinds("4.4").keys() == everywhere | {"kill-controller"}
    zookeeper = kinds("3.9-zk").keys()
    assert zookeeper >= everywhere | {
        "kill",
        "move-controller",
        "submit-plan",
        "submit-election",
        "submit-deletion",
    }


@pytest.mark.parametrize("release", RELEASES)
def test_two_brokers_answer_at_every_moment_and_in_the_end_all(release: str) -> None:
    for seed in range(30):
        (program,) = drawn(release, str(seed), 1)
        stopped: set[int] = set()
        frozen: set[int] = set()
        for step in program.steps:
            _take(step, stopped, frozen)
            assert len(stopped | frozen) <= 2
        assert not stopped | frozen
        assert coherent(program.steps) == list(program.steps)


def _take(step: ProgramStep, stopped: set[int], frozen: set[int]) -> None:
    broker = step.get("broker", 0)
    match step["do"]:
        case "stop" | "kill":
            stopped.add(broker)
        case "start":
            stopped.remove(broker)
        case "freeze":
            frozen.add(broker)
        case "thaw":
            frozen.remove(broker)


def test_smaller_programs_make_sense_and_are_smaller() -> None:
    (program,) = drawn("3.9-zk", count=1)
    candidates = list(smaller(program.steps))
    assert candidates
    assert all(steps == coherent(steps) for steps in candidates)
    assert all(len(str(steps)) < len(str(program.steps)) for steps in candidates)


class _Arena:
    """Where programs differ that reassign partition 1 while broker 3 is frozen."""

    def __init__(self) -> None:
        self.replays = 0

    async def play(self, given: Sequence[Program], patience: float) -> Played:
        self.replays += 1
        (program,) = given
        frozen = False
        for place, step in enumerate(program.steps, 1):
            frozen |= step == {"do": "freeze", "broker": 3}
            if frozen and any(row[1] == 1 for row in step.get("rows", ())):
                found = Difference("a", place, str(step), ("path: 1 / 2",))
                return Played(programs=1, differences=[(program, found)])
        return Played(programs=1)


async def test_what_is_left_of_a_program_is_what_shows_the_difference() -> None:
    alter = {"do": "alter", "rows": [["a", 0, [1]], ["a", 1, [2]]]}
    plain = {"do": "alter", "rows": [["a", 0, [1]]]}
    steps: list[dict[str, Any]] = [
        {"do": "create", "topic": "a", "replicas": [[1], [2]]}, plain, {"do": "stop", "broker": 4},
        {"do": "freeze", "broker": 3}, plain, {"do": "start", "broker": 4}, plain, alter, plain,
    ]  # fmt: skip
    arena: Any = _Arena()
    found = await minimise(arena, Program("long", steps))
    assert found.difference is not None
    assert found.program.steps == [
        {"do": "freeze", "broker": 3},
        {"do": "alter", "rows": [["a", 1, [2]]]},
    ]
    assert found.replays == arena.replays


async def test_what_does_not_happen_again_is_said_so() -> None:
    program = Program("calm", [{"do": "elect", "type": 0, "rows": [["a", 0]]}])
    arena: Any = _Arena()
    found = await minimise(arena, program)
    assert (found.program, found.difference, found.replays) == (program, None, 1)


# ---- the mock's side -------------------------------------------------------------------------


CREATE = {"do": "create", "topic": "a", "replicas": [[1, 2]]}


async def _side(*steps: ProgramStep, brokers: Brokers) -> MockSide:
    """A mock that has played these steps, with these brokers down in the end."""
    asked = 4

    async def act(side: Any, step: ProgramStep, _brokers: Brokers) -> Any:
        ask = ask_of(step, str, asked)
        assert ask is not None
        return await side.ask(ask, 4 if step["do"] == "create" else 0)

    side = MockSide("kafka-4.1", "", zookeeper=False, act=act)
    await side.open()
    for step in steps:
        await side.outcomes([step], brokers, _replicas)
    return side


async def _replicas(side: Any) -> View:
    mock = side.target._mock
    found = mock.cluster.topics.partition("a", 0)
    return {"replicas": list(found.replicas), "isr": sorted(found.isr)}


async def test_replicas_that_can_catch_up_do_and_frozen_ones_do_not() -> None:
    brokers = Brokers(frozen={4})
    side = await _side(CREATE, brokers=brokers)
    alter = {"do": "alter", "rows": [["a", 0, [1, 3]]]}
    (done,) = await side.outcomes([alter], brokers, _replicas)
    assert done.view == {"replicas": [1, 3], "isr": [1, 3]}
    alter = {"do": "alter", "rows": [["a", 0, [2, 4]]]}
    (waiting,) = await side.outcomes([alter], brokers, _replicas)
    assert waiting.view == {"replicas": [2, 4, 1, 3], "isr": [1, 2, 3]}
    await side.close()


async def test_of_two_requests_at_once_every_order_is_an_outcome_and_one_is_chosen() -> None:
    brokers = Brokers()
    side = await _side(CREATE, brokers=brokers)
    steps = [{"do": "alter", "rows": [["a", 0, replicas]]} for replicas in ([3], [4])]
    found = await side.outcomes(steps, brokers, _replicas)
    assert {tuple(each.view["replicas"]) for each in found} == {(3,), (4,)}
    first = next(each for each in found if each.view["replicas"] == [3])
    await side.go_to(first.history)
    alter = {"do": "alter", "rows": [["a", 0, None]]}
    (after,) = await side.outcomes([alter], brokers, _replicas)
    assert after.view["replicas"] == [3]
    await side.close()


async def test_some_replicas_may_have_caught_up_when_the_second_request_comes() -> None:
    brokers = Brokers()
    side = await _side(CREATE, brokers=brokers)
    steps = [{"do": "alter", "rows": [["a", 0, replicas]]} for replicas in ([3, 4], None)]
    before = side.history

    async def epoch(answers: Any) -> View:
        mock = answers.target._mock
        found = mock.cluster.topics.partition("a", 0)
        return {"replicas": found.replicas, "epochs": (found.leader_epoch, found.partition_epoch)}

    common = await side.outcomes(steps, brokers, epoch)
    assert {each.view["replicas"] for each in common} == {(1, 2), (3, 4)}
    await side.go_to(before)
    rare = await side.rare_outcomes(steps, brokers, epoch)
    assert {each.view["replicas"] for each in rare} == {(1, 2), (3, 4)}
    views = [each.view for each in common]
    assert any(each.view not in views for each in rare)
    await side.close()


async def test_who_catches_up_before_a_reassignment_is_done_is_an_outcome_each() -> None:
    """Broker 2 leads and is frozen; broker 1 has come back, and broker 3 is to be added."""
    down = Brokers(frozen={2}, stopped={1})
    side = await _side(CREATE, {"do": "stop", "broker": 1}, brokers=down)
    alter = {"do": "alter", "rows": [["a", 0, [3]]]}
    await side.outcomes([alter], down, _replicas)
    up = Brokers(frozen={2})
    await side.outcomes([{"do": "start", "broker": 1}], up, _replicas)
    thaw = {"do": "thaw", "broker": 2}
    found = await side.outcomes([thaw], Brokers(), _replicas)
    assert len(found) == 2
    assert [each.view for each in found] == [{"replicas": [3], "isr": [3]}] * 2
    await side.close()
