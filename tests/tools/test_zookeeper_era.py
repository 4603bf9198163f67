"""Kafka's own tools of the ZooKeeper era print the same on real Kafka and on the mock, and ours
print it too; all three clusters come to the same state.

The tools of Kafka 2.4.1 write znodes; a real controller of that release acts on them, and the
mock's. What may differ is normalised in ``zookeeper_era``, or named here with its reason.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kproto.tools import preferred_election
from kproto.tools.assignment import place_replicas
from kproto.tools.plan import parse_plan
from kproto.tools.znode_reassign import FAILED
from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS
from tests.real.kafka import RealKafka
from tests.real.targets import RealTarget
from tests.support.toolchain import require
from tests.tools import tools_page
from tests.tools import zookeeper_era as era
from tests.tools.commands import Outcome
from tests.tools.kafka_tools import JavaTools
from tests.tools.zookeeper_session import (
    BROKERS,
    DRAWN,
    FILE,
    LEGACY,
    MOVE,
    SESSION,
    Command,
    verify,
)

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "maven")
    with RealKafka(era.RELEASE, tmp_path_factory.mktemp("kafka"), zookeeper=True) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    require("java", "maven")
    with era.kafka_tools() as tools:
        yield tools


# ---- what differs, and why -----------------------------------------------------------------------

PROPOSED = "Proposed partition reassignment configuration"

OURS = ("reassign-partitions", "preferred-replica-election")
"""The tools with surfaces of ours that go through ZooKeeper."""

NOT_PRINTED = (
    # KIP-183 has it on standard error.
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.",
    "Use --bootstrap-server instead to specify a broker to connect to.",
    # Of KIP-460, which came after KIP-183.
    "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405",
)
"""Lines of Kafka's tools that ours do not write to standard output."""

OTHERWISE = {
    # Lists as later releases print them.
    "Partitions reassignment failed due to List of topics to reassign contains duplicate entries: "
    "foo": "Partitions reassignment failed due to List of topics to reassign contains duplicate "
           "entries: [foo]",
    "Partitions reassignment failed due to Broker list contains duplicate entries: 2":
        "Partitions reassignment failed due to Broker list contains duplicate entries: [2]",
    # With KIP-236 it may have been cancelled. Of a topic that is not there ours say as Kafka's do.
    **{f"Reassignment of partition {each} failed":
           f"Reassignment of partition {each} was cancelled or failed"
       for each in ("foo-0", "bar-0")},
}  # fmt: skip
"""Lines of ours by Kafka's."""

OWN_WORDS = (
    "Command must include exactly one action: ",  # There are more, of the drafts.
    "Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided",
)
"""Usage errors of Kafka's that are told in words of our own."""


def for_comparison(found: Outcome, command: Command) -> Outcome:
    """Kafka's output, to be compared with Kafka's on another cluster."""
    out, err = era.without_java(found.out), era.without_java(found.err)
    if "--generate" in command.arguments:  # Drawn by lot: see ``_check_proposal``.
        out = out.partition(PROPOSED)[0]
    lines = out.split("\n")
    drawn = f"\tTopic: {DRAWN}\t"
    out = "\n".join(each.partition("Leader:")[0] if drawn in each else each for each in lines)
    return Outcome(found.code, out, err)


def shown_of_state(state: Any) -> Any:
    """All of it, but for what is chance in Kafka.

    Of the topic that is placed by lot only how many replicas there are. Of topics that are being
    deleted not their leaders and who is in sync: replicas are taken out in the order of a hash. Of
    partitions with a replica on a broker that is gone not the leader epoch: while it shuts down, it
    may come back in sync for a moment.
    """
    if not isinstance(state, dict):
        return state
    if "states" in state:
        marked = state["marked for deletion"]
        states = {}
        for key, text in state["states"].items():
            name, _, index = key.rpartition("-")
            replicas = state["topics"].get(name, {"partitions": {}})["partitions"].get(index, ())
            if name not in marked:
                gone = {str(broker) for broker in replicas} - set(state["brokers"])
                states[key] = {**text, "leader_epoch": None} if gone and text else text
        state = {**state, "states": states}
    return {
        key: _counted(each) if str(key).startswith(DRAWN) else shown_of_state(each)
        for key, each in state.items()
    }


def _counted(found: dict[Any, Any]) -> Any:
    if "isr" in found:  # A partition's state.
        return None
    if "partitions" in found:  # The topic's znode.
        counts = {index: len(replicas) for index, replicas in found["partitions"].items()}
        return {**found, "partitions": counts}
    return {index: len(each[2]) for index, each in found.items()}  # Metadata.


def check_ours(command: Command, kafka: Outcome, ours: Outcome) -> None:
    """What our tool printed, by what Kafka's did on a cluster in the same state."""
    if (kafka.code, ours.code, ours.out) == (1, 2, ""):
        # Used wrongly: Kafka's tools end with 1 and print all options; ours say where they are.
        problem = kafka.err.partition("\n")[0]
        assert problem in ours.err or problem.startswith(OWN_WORDS), command
        return
    if command.refusal is not None:
        assert (ours.code, ours.out) == (1, f"{FAILED}{command.refusal}\n"), command
        return
    lines = [each for each in kafka.out.splitlines() if each not in NOT_PRINTED]
    expected = [OTHERWISE.get(each, each) for each in era.printed("\n".join(lines))]
    printed = era.printed(ours.out)
    # Kafka lists the wrong ones here: those that it has just elected.
    expected, printed = ([_unlisted(each) for each in lines] for lines in (expected, printed))
    if "--generate" in command.arguments and ours.code == 0:
        expected, printed = (each[: each.index(PROPOSED)] for each in (expected, printed))
    assert printed == expected, command
    # What failed, Kafka's reassignment tool ends with 0 all the same.
    failed = kafka.code != 0 or kafka.out.startswith(FAILED)
    assert ours.code == failed, command
    # One line on standard error says so, after the warning that KIP-183 has there.
    warned = preferred_election.WARNING in ours.err
    assert warned == (command.tool == OURS[1] and command.ways == ("--zookeeper",)), command
    assert ours.err.count("\n") == warned + failed, command


def _unlisted(line: str) -> str:
    found = re.match("Preferred replica already elected for partitions ", line)
    return found[0] if found else line


# ---- the session ---------------------------------------------------------------------------------


@pytest.mark.requirement("C-07", "K455-60", "K455-61", "K183-20", "K183-21")
async def test_the_tools_print_the_same_on_the_mock_and_ours_print_it_too(kafka, tools, tmp_path):
    compared = 0
    shown: list[tuple[str, list[tuple[str, str]]]] = []
    async with AsyncExitStack() as stack:
        real = await _real(stack, kafka, tools)
        mock = await _mock(stack, kafka, tools, "kafka-2.4", "mock")
        third = await _mock(stack, kafka, tools, "kafka-2.4", "ours")
        sides = [real, mock, third]
        await era.agree(sides, shown_of_state)
        for step in SESSION:
            if not isinstance(step, Command):
                for side in sides:
                    await side.happen(step)
                await era.agree(sides, shown_of_state)
                continue
            expected = await _run(step, real, tmp_path)
            found = await _run(step, mock, tmp_path)
            assert for_comparison(found, step) == for_comparison(expected, step), step
            ours = step.tool in OURS
            again = await _run(step, third, tmp_path, era.our_tool if ours else None)
            if ours:
                check_ours(step, expected, again)
            for outcome in (expected, found, again):
                _check_proposal(step, outcome)
            if step.shown:
                shown.append((str(step), _columns(step, expected, found, again)))
            compared += 1
            await era.agree(sides, shown_of_state)
        for side in (mock, third):
            by_brokers = side.mock.journal.select(api=43, direction="request")
            assert len(by_brokers) == ELECTIONS_BY_BROKERS
    assert compared >= 25
    tools_page.settle("outputs", tools_page.outputs(shown))


ELECTIONS_BY_BROKERS = sum(
    isinstance(step, Command) and step.tool == OURS[1] and step.ways == BROKERS for step in SESSION
)
"""All others go through the znode."""


def _check_proposal(command: Command, outcome: Outcome) -> None:
    """What ``--generate`` proposes is one of what could have been drawn."""
    _, _, text = outcome.out.partition(f"{PROPOSED}\n")
    if not text:
        return
    proposed = dict(parse_plan(text).partitions)
    words = command.arguments
    ids = [int(each) for each in words[words.index("--broker-list") + 1].split(",")]
    for topic in {each.topic for each in proposed}:
        lists = [proposed[each] for each in sorted(proposed) if each.topic == topic]
        assert lists in [
            place_replicas(dict.fromkeys(ids), len(lists), len(lists[0]), start, shift)
            for start in range(len(ids))
            for shift in range(len(ids))
        ], command


def _columns(
    command: Command, real: Outcome, mock: Outcome, ours: Outcome
) -> list[tuple[str, str]]:
    kafka = f"Kafka {era.RELEASE}'s tool"
    columns = [
        (f"{kafka}, on Kafka {era.RELEASE}", for_comparison(real, command).out),
        (f"{kafka}, on the mock", for_comparison(mock, command).out),
    ]
    if command.tool in OURS:
        columns.append(("`kproto admin`, on the mock", ours.out))
    return columns


async def _real(stack: AsyncExitStack, kafka: RealKafka, tools: JavaTools) -> era.RealSide:
    target = RealTarget(kafka)
    await target.ready()
    return await stack.enter_async_context(era.RealSide(kafka, target, tools.run))


async def _mock(
    stack: AsyncExitStack, kafka: RealKafka, tools: JavaTools, profile: str, name: str
) -> era.MockSide:
    """In the same ZooKeeper as the real cluster, at a path of its own."""
    where = f"{kafka.zookeeper_address}/{name}"
    mock = await stack.enter_async_context(era.mock_cluster(where, profile))
    return await stack.enter_async_context(era.MockSide(mock, where, tools.run))


async def _run(
    command: Command, side: era.Side, folder: Path, tool: era.Tool | None = None
) -> Outcome:
    path = folder / "file.json"
    path.write_text(json.dumps(command.text), "utf-8")
    places = {"--zookeeper": side.zookeeper, "--bootstrap-server": side.bootstrap}
    words = [word for way in command.ways for word in (way, places[way])]
    words += [str(path) if each == FILE else each for each in command.arguments]
    return await (tool or side.run)(command.tool, *words)


# ---- controllers of the drafts -------------------------------------------------------------------

DRAFTS = ("kip-183", "kip-236-old", "kip-236-new", "kip-240", "kip-455-old", "kip-455-new")


@pytest.mark.requirement("K236-07", "K236-67", "K455-60", "K455-61")
async def test_users_of_old_tools_see_no_difference_with_controllers_of_drafts(
    kafka: RealKafka, tools: JavaTools, tmp_path: Path
) -> None:
    """The tools are those of Kafka 1.1.1: see ``_check_fields_that_a_draft_adds``."""
    async with AsyncExitStack() as stack:
        lenient = stack.enter_context(era.lenient_tools())
        real = await _real(stack, kafka, lenient)
        mocks = {name: await _mock(stack, kafka, lenient, name, name) for name in DRAFTS}
        sides = [real, *mocks.values()]
        frozen = False
        for step in LEGACY:
            if isinstance(step, Command):
                expected = for_comparison(await _run(step, real, tmp_path), step)
                for name, mock in mocks.items():
                    found = for_comparison(await _run(step, mock, tmp_path), step)
                    assert found == expected, (name, step)
            else:
                if frozen := step == "freeze":
                    assert not in_progress(await real.state())
                else:
                    await _check_fields_that_a_draft_adds(mocks, tools, tmp_path)
                for side in sides:
                    await side.happen(step)
            await era.agree(sides, in_progress if frozen else seen_by_tools)


async def _check_fields_that_a_draft_adds(
    mocks: Mapping[str, era.MockSide], tools: JavaTools, folder: Path
) -> None:
    """KIP-236 says that tools go on as they did, and adds a field to each partition of the plan.
    Since 2.0 Kafka's tools refuse plans with fields that they do not know, and quietly so."""
    for name in ("kip-236-old", "kip-236-new"):
        (bar, foo) = sorted(
            mocks[name].json(REASSIGN_PARTITIONS)["partitions"], key=lambda each: each["topic"]
        )
        assert (bar["original_replicas"], foo["original_replicas"]) == ([1, 2, 3], [2, 3, 1])
    for name, how in [("kip-236-new", "failed"), ("kip-455-new", "is still in progress")]:
        outcome = await _run(verify(*MOVE), mocks[name], folder, tools.run)
        assert f"Reassignment of partition bar-0 {how}\n" in outcome.out


def in_progress(state: Any) -> Any:
    """While something is, drafts differ in the steps that they take."""
    plan = state["admin"].get("reassign_partitions") or {"partitions": []}
    return {(each["topic"], each["partition"]): each["replicas"] for each in plan["partitions"]}


def seen_by_tools(state: Any) -> Any:
    return in_progress(state), state["metadata"], state["configs"], state["marked for deletion"]
