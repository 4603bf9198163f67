"""Kafka's own tools and ours, the same commands on two mock clusters in the same state.

After each command: standard output equal, exit codes equal, the clusters equal, the configs that
were set equal. What differs on purpose is in ``kafka_says`` and ``ours_says`` with its reason; a
difference of one command is in that command's ``Step``.
"""

import inspect
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kproto.client import TopicPartition
from kproto.tools.assignment import place_replicas
from kproto.tools.plan import parse_plan
from kproto.tools.texts import java_error
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.state.cluster_parts import Broker
from tests.support.maven import artifacts
from tests.support.toolchain import require
from tests.tools.commands import Outcome, admin, at
from tests.tools.kafka_tools import RELEASES, KafkaTools

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPICS = ["foo=1,2,3/2,3,4", "bar=1,2,3"]
PROFILES = {"3.9.2": "kafka-3.9", "4.3.1": "kafka-4.3"}


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> Iterator[tuple[str, KafkaTools]]:
    require("java", "maven")
    with KafkaTools(request.param) as tools:
        yield request.param, tools


# ---- what differs, and why -----------------------------------------------------------------------

_TRACE = re.compile(r"\s+at |\s+\.\.\. \d+ more|Caused by: |[\w.$]+(Exception|Error|Exited)(: |$)")


def kafka_says(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not _TRACE.match(line)]  # no stack traces here
    text = "\n".join(lines)
    # An Optional printed as such, in 3.9.
    text = re.sub(r"'Optional\[(.*)\]' does not exist", r"'\1' does not exist", text)
    # 4.3 writes where replicas are; 3.9, and we, write "any".
    text = text.replace('"/var/lib/kafka/data"', '"any"')
    return _same_for_both(text)


def ours_says(text: str) -> list[str]:
    return _same_for_both(text)


def _same_for_both(text: str) -> list[str]:
    text = re.sub(r"TopicId: \S+", "TopicId: X", text)  # Random.
    # Java prints configs, topics and partitions in the order of their hashes; we sort them.
    text = re.sub(r"Configs: (.*)", lambda found: f"Configs: {_sorted(found[1])}", text)
    text = re.sub(r"(?<= partitions )(\S+-\d+, )+\S+-\d+$", lambda found: _in_order(found[0]), text)
    blocks = re.split(r"^(?=Topic: )", text.rstrip("\n"), flags=re.M)
    blocks[1:] = sorted(block.rstrip("\n") for block in blocks[1:])
    lines = "\n".join(block for block in blocks if block).split("\n")
    failed = [n for n, line in enumerate(lines) if line.startswith("Error completing leader")]
    for number, line in zip(failed, sorted(lines[each] for each in failed), strict=True):
        lines[number] = line
    return lines


def _sorted(configs: str) -> str:
    return ",".join(sorted(re.split(r",(?=[a-z.]+=)", configs)))


def _in_order(partitions: str) -> str:
    return ", ".join(sorted(partitions.split(", ")))


def used_wrongly(kafka: Outcome, ours: Outcome) -> bool:
    """Kafka's tools end with 1 and print all options; ours end with 2 and say where they are."""
    return (kafka.code, ours.code) == (1, 2) and kafka.out == ours.out == ""


# ---- the session ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A command; ``differs`` has lines of our output by Kafka's, ``own_words`` excuses the text of
    a usage error, ``only`` is the releases it is for."""

    tool: str
    arguments: tuple[str, ...]
    plan: Any = None
    differs: Mapping[str, str] | None = None
    own_words: bool = False
    bootstrap: str = "--bootstrap-server"
    only: tuple[str, ...] = tuple(RELEASES)


@dataclass(frozen=True)
class Event:
    """Something that happens to both clusters."""

    what: Callable[[MockCluster], Any]


def reassign(*arguments: str, **more: Any) -> Step:
    return Step("reassign-partitions", arguments, **more)


def elect(*arguments: str, **more: Any) -> Step:
    return Step("leader-election", ("--election-type", "preferred", *arguments), **more)


def topics(*arguments: str, **more: Any) -> Step:
    return Step("topics", arguments, **more)


def row(topic: str, partition: Any, replicas: list[int], **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **more}


def plan(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "partitions": [*rows]}


FILE = "FILE"
"""Stands for the file that a step's plan is written to."""
PLAN = ("--reassignment-json-file", FILE)
MOVE = plan(row("foo", 0, [4, 5, 1]), row("bar", 0, [1]))
ADD = plan(row("bar", 0, [1, 2]))

SESSION = [
    # Listing, executing with throttles, verifying, refusing a second, adding one, cancelling.
    reassign("--list"),
    reassign("--execute", *PLAN, "--throttle", "1000", plan=MOVE),
    reassign("--list"),
    reassign("--verify", *PLAN, plan=MOVE),
    topics("--describe", "--topic", "foo"),
    topics("--describe", "--under-replicated-partitions"),
    reassign("--execute", *PLAN, plan=MOVE),
    Event(lambda mock: mock.join_isr("foo-0", 4)),
    reassign("--execute", "--additional", *PLAN, "--throttle", "5", plan=plan(row("foo", 1, [5]))),
    reassign("--list"),
    topics("--describe"),
    reassign("--cancel", *PLAN, plan=MOVE),
    reassign("--cancel", *PLAN, plan=MOVE),
    reassign("--verify", *PLAN, plan=MOVE),
    reassign("--cancel", "--preserve-throttles", *PLAN, plan=plan(row("foo", 1, [5]))),
    # One that only adds replicas: the tool of 3.9 does not cancel it.
    reassign("--execute", *PLAN, plan=ADD, only=("4.3.1",)),
    reassign("--cancel", *PLAN, plan=ADD, only=("4.3.1",)),
    # The guard of KIP-860, which 3.9 does not have.
    reassign("--execute", "--disallow-replication-factor-change", *PLAN, only=("4.3.1",),
             plan=plan(row("foo", 0, [1, 2]), row("bar", 0, [2, 3]), row("foo", 1, [3, 4, 2]))),
    reassign("--verify", "--preserve-throttles", *PLAN, plan=plan(row("foo", 1, [3, 4, 2]))),
    # Plans that cannot be executed.
    *(
        reassign("--execute", *PLAN, plan=each)
        for each in (
            {},
            plan(),
            plan(row("foo", 0, [])),
            plan(row("foo", 0, [1, -1])),
            plan(row("foo", 0, [1, 99])),
            plan(row("foo", 9, [1])),
            plan(row("foo", -1, [1])),
            plan(row("nope", 0, [1])),
            plan(row("foo", 0, [1, 2, 2])),
            plan(row("foo", 0, [1, 2]), row("foo", 0, [1, 2])),
            plan(row("foo", 0, [1], log_dirs=["/x", "/y"])),
            {"version": 2},
        )
    ),
    # Of the wrong form: Kafka does not say where.
    reassign("--execute", *PLAN, plan=[],
             differs={"Error: Expected JSON object, received []":
                      "Error: FILE: expected an object, not []"}),
    reassign("--execute", *PLAN, plan=plan(row("foo", "x", [1])),
             differs={'Error: Expected `Integer` value, received "x"':
                      'Error: FILE: partitions[0].partition: expected an integer, not "x"'}),
    # Log directories; the mock has one a broker and moves none.
    reassign("--verify", "--preserve-throttles", *PLAN,
             plan=plan(row("foo", 0, [1, 2], log_dirs=["/x", "any"]),
                       row("foo", 1, [2, 3], log_dirs=["/var/lib/kafka/data", "any"]),
                       row("foo", 7, [2, 3], log_dirs=["/x", "any"]))),
    reassign("--execute", *PLAN, "--replica-alter-log-dirs-throttle", "7",
             plan=plan(row("foo", 0, [1, 2, 3], log_dirs=["/x", "any", "any"]))),
    # Brokers asked as if they were controllers refuse. An option that 3.9 does not have.
    reassign("--list", bootstrap="--bootstrap-controller", only=("4.3.1",)),
    reassign("--cancel", *PLAN, plan=MOVE, bootstrap="--bootstrap-controller", only=("4.3.1",)),
    # Used wrongly.
    reassign("--verify", *PLAN, plan=MOVE, bootstrap="--bootstrap-controller", only=("4.3.1",)),
    reassign("--verify", "--list"),
    reassign("--verify"),
    reassign("--list", "--throttle", "5"),
    reassign("--list", "--zookeeper", "x", own_words=True),
    # Elections.
    elect("--all-topic-partitions"),
    elect("--topic", "foo", "--partition", "0"),
    elect("--topic", "nope", "--partition", "0"),
    elect("--topic", "foo"),
    elect("--topic", "foo", "--all-topic-partitions"),
    Step("leader-election", ("--election-type", "x", "--all-topic-partitions"), own_words=True),
    elect("--path-to-json-file", FILE, plan={}),
    elect("--path-to-json-file", FILE, plan=plan(row("foo", 1, []), row("foo", 1, []))),
    Event(lambda mock: mock.stop_broker(1)),
    Event(lambda mock: mock.start_broker(1)),
    elect("--topic", "bar", "--partition", "0"),
    Event(lambda mock: mock.join_isr("bar-0", 1)),
    elect("--path-to-json-file", FILE,
          plan=plan(row("foo", 0, []), row("bar", 0, []), row("foo", 1, []))),
    Event(lambda mock: mock.stop_broker(2)),
    topics("--describe", "--under-replicated-partitions"),
    topics("--describe", "--unavailable-partitions"),
    topics("--describe", "--under-min-isr-partitions"),
    topics("--describe", "--at-min-isr-partitions"),
    Event(lambda mock: mock.start_broker(2)),
    # Topics.
    topics("--list"),
    topics("--create", "--topic", "new", "--partitions", "2", "--replication-factor", "3",
           "--config", "retention.ms=5", "--config", "min.insync.replicas = 2"),
    topics("--create", "--topic", "new"),
    topics("--create", "--topic", "new", "--if-not-exists"),
    topics("--create", "--topic", "n.w_2", "--replica-assignment", "1:2,2:3"),
    topics("--create", "--topic", "n3", "--replica-assignment", "1:2,2"),
    topics("--create", "--topic", "n3", "--replica-assignment", "1:1"),
    topics("--create", "--topic", "n3", "--replication-factor", "9"),
    topics("--create", "--topic", "n3", "--partitions", "0"),
    topics("--create", "--topic", "n3", "--replication-factor", "0"),
    topics("--create", "--topic", "n3", "--config", "bad=1"),
    topics("--create", "--topic", "n3", "--config", "bad"),
    topics("--create", "--topic", "n/3"),
    topics("--describe", "--topic", "new|foo"),
    topics("--describe", "--topic", "nope"),
    topics("--describe", "--topic", "nope", "--if-exists"),
    topics("--describe", "--topics-with-overrides"),
    topics("--describe", "--topic-id", "abc"),
    topics("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAACw"),
    topics("--alter", "--topic", "new", "--partitions", "4"),
    topics("--alter", "--topic", "new", "--partitions", "1"),
    topics("--alter", "--topic", "new", "--partitions", "5", "--replica-assignment",
           "1:2:3,1:2:3,1:2:3,1:2:3,5:4:3"),
    topics("--describe", "--topic", "new"),
    topics("--list", "--topic", "n.*,bar"),
    topics("--list", "--topic", "fo["),
    topics("--list", "--create"),
    topics("--create", "--topic", "a", "--replica-assignment", "1", "--partitions", "1"),
    topics("--delete", "--topic", "new"),
    topics("--delete", "--topic", "new"),
    topics("--delete", "--topic", "new", "--if-exists"),
    topics("--list"),
]  # fmt: skip


@pytest.mark.requirement("K455-58", "K860-04", "K860-16")
async def test_the_same_session_prints_the_same(kafka, tmp_path: Path):
    release, tools = kafka
    path = tmp_path / "plan.json"
    compared = 0
    async with _cluster(release) as theirs, _cluster(release) as mine:
        for step in SESSION:
            if isinstance(step, Event):
                for mock in (theirs, mine):
                    happening = step.what(mock)
                    if inspect.isawaitable(happening):
                        await happening
                continue
            if release not in step.only:
                continue
            path.write_text(json.dumps(step.plan))
            arguments = [str(path) if each == FILE else each for each in step.arguments]
            words = (step.tool, *arguments, step.bootstrap)
            expected = await tools.run(*words, theirs.bootstrap)
            printed = await admin(*words, mine.bootstrap)
            _compare(step, expected, printed, path)
            assert _state(mine) == _state(theirs), step
            assert _configs_set(mine) == _configs_set(theirs), step
            compared += 1
    assert compared >= 70


def _cluster(release: str, racks: str | None = None) -> MockCluster:
    brokers = [Broker(each, rack=racks[each - 1] if racks else None) for each in range(1, 6)]
    return MockCluster(brokers=brokers, topics=TOPICS, profile=PROFILES[release], clock="manual")


def _compare(step: Step, kafka: Outcome, ours: Outcome, path: Path) -> None:
    if used_wrongly(kafka, ours):
        text = ours.err.removeprefix("kproto: ").partition(" (see ")[0]
        assert step.own_words or text == kafka.err.splitlines()[0], step
        return
    assert ours.code == kafka.code, (step, kafka, ours)
    expected = kafka_says(kafka.out)
    if step.differs is not None:
        assert set(step.differs) <= {*expected}, step
        expected = [step.differs.get(line, line) for line in expected]
    assert ours_says(ours.out.replace(str(path), FILE)) == expected, step
    # And a failure is one line on standard error besides.
    assert ours.err.count("\n") == (ours.code != 0), step


def _state(mock: MockCluster) -> dict[str, Any]:
    return mock.cluster.describe()


def _configs_set(mock: MockCluster) -> list[str]:
    """Every change by IncrementalAlterConfigs; brokers are asked in any order."""
    requests = [entry.decode().body for entry in mock.journal.select(api=44, direction="request")]
    changes = {
        (each.resource_type, each.resource_name, config.name, config.config_operation, config.value)
        for body in requests
        for each in body.resources
        for config in each.configs
    }
    return sorted(map(repr, changes))


@pytest.mark.parametrize("racks", [None, "aabbb", "abcab"])
async def test_generate_proposes_what_kafka_could_have(kafka, tmp_path: Path, racks: str | None):
    """Kafka draws where to begin: its proposal has to be one of ours, for some beginning."""
    release, tools = kafka
    path = tmp_path / "topics.json"
    path.write_text('{"version": 1, "topics": [{"topic": "foo"}, {"topic": "bar"}]}')
    asked = ("--generate", "--topics-to-move-json-file", str(path), "--broker-list", "1,2,3,5")
    async with _cluster(release, racks) as mock:
        words = ("reassign-partitions", *asked)
        kafka_printed = await tools.run(*words, "--bootstrap-server", mock.bootstrap)
        printed = await at(mock, *words)
        again = await at(mock, *words)
    assert printed == again
    present, proposed = _halves("\n".join(ours_says(printed.out)))
    kafka_present, kafka_proposed = _halves("\n".join(kafka_says(kafka_printed.out)))
    assert present == kafka_present
    assert proposed.keys() == kafka_proposed.keys()
    brokers = {each: racks[each - 1] if racks else None for each in (1, 2, 3, 5)}
    # The tool of 4.3 places as the controller does; ours keeps to the older placement.
    for lists in (proposed, kafka_proposed) if release == "3.9.2" else (proposed,):
        for topic, count in (("foo", 2), ("bar", 1)):
            placed = [lists[TopicPartition(topic, index)] for index in range(count)]
            possible = [
                place_replicas(brokers, count, 3, start, shift)
                for start in range(4)
                for shift in range(4)
            ]
            assert placed in possible


def _halves(text: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    first, empty, second = text.partition("\n\n")
    assert first.startswith("Current partition replica assignment\n")
    assert second.startswith("Proposed partition reassignment configuration\n")
    assert empty
    present, proposed = (parse_plan(half.partition("\n")[2]) for half in (first, second))
    return dict(present.partitions), dict(proposed.partitions)


def test_errors_are_printed_by_the_names_of_kafkas_exceptions():
    require("java", "maven")
    jars = artifacts([("org.apache.kafka:kafka-clients", "4.3.1"), *RELEASES["4.3.1"]])
    program = Path(__file__).with_name("ErrorClasses.java")
    command = ["java", "-cp", os.pathsep.join(map(str, jars)), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    theirs = dict(line.split() for line in done.stdout.splitlines())
    assert len(theirs) > 130
    ours = {code: java_error(int(code), "").removesuffix(": ") for code in theirs}
    # The one of another package, which no request of these tools is answered with.
    assert theirs.pop("87") == "org.apache.kafka.common.InvalidRecordException"
    assert {code: ours[code] for code in theirs} == theirs
