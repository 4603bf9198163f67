"""Reassignments drawn at random, by request and by znode, on real Kafka and on the machine alone.

Kafka is four brokers, first all of them in step, then with one frozen, so that whatever needs it
stays under way. After every command the znodes of both are equal: replicas, adding, removing,
leader, leader epoch and ISR, whose order is a matter of who was quicker.
"""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kproto.znodes import ZnodeStore
from kproto.znodes.kafka_znodes import partition_state_path, topic_path
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.zookeeper_story import PLAN, plan_of, submit
from tests.real.kafka import BROKER_IDS, LAGGARD, RealKafka
from tests.real.targets import RealTarget
from tests.support.full import drawn
from tests.support.requests import request_of
from tests.support.toolchain import require, require_module

COMMANDS: Final = 30
"""In each of the two phases."""
PATIENCE: Final = 60.0
SEED: Final = 2026
RELEASES: Final = [("2.4.1", "zookeeper-2.4"), ("3.9.2", "zookeeper")]

Answer = tuple[int, str | None]


class View(NamedTuple):
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    leader: int
    leader_epoch: int
    isr: list[int]


class Real:
    def __init__(self, target: RealTarget, store: ZnodeStore) -> None:
        self._target = target
        self._store = store

    async def create(self, topic: str, replicas: list[int]) -> None:
        assignment = {"partition_index": 0, "broker_ids": replicas}
        body = request_of(
            "CreateTopics",
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[assignment],
            timeout_ms=20_000,
        )
        answer = await self._target.exchange(1, body, 4, None)
        assert answer.topics[0].error_code == 0, answer

    async def alter(self, topic: str, replicas: list[int] | None) -> Answer:
        partition = {"partition_index": 0, "replicas": replicas}
        body = request_of(
            "AlterPartitionReassignments", name=topic, partitions=[partition], timeout_ms=20_000
        )
        row = (await self._target.exchange(1, body, 0, None)).responses[0].partitions[0]
        return row.error_code, row.error_message

    def submit(self, topic: str, replicas: list[int]) -> None:
        self._store.create(PLAN, plan_of({(topic, 0): replicas}).encode())

    async def finish(self) -> None:
        """Wait until the controller has ended what its znodes already show.

        Its one thread answers a list after that. A completion writes the topic's znode first and
        then takes the partition out of the plan, even out of a plan submitted in between: without
        this wait such a plan for the same replicas would be gone before it was read.
        """
        body = request_of("ListPartitionReassignments", topics=None, timeout_ms=20_000)
        answer = await self._target.exchange(1, body, 0, None)
        assert answer.error_code == 0, answer

    def has_plan(self) -> bool:
        return self._store.exists(PLAN) is not None

    def view(self, topic: str) -> View | None:
        """None while the topic is not there yet."""
        if self._store.exists(partition_state_path(topic, 0)) is None:
            return None
        assignment = json.loads(self._store.get(topic_path(topic)).data)
        state = json.loads(self._store.get(partition_state_path(topic, 0)).data)
        return View(
            assignment["partitions"]["0"],
            assignment["adding_replicas"].get("0", []),
            assignment["removing_replicas"].get("0", []),
            state["leader"],
            state["leader_epoch"],
            sorted(state["isr"]),
        )


class Ours:
    def __init__(self, reassignment: str) -> None:
        self._cluster = simulated_cluster(len(BROKER_IDS), reassignment=reassignment)

    def create(self, topic: str, replicas: list[int]) -> None:
        self._cluster.topics.add((topic, [replicas]))

    def alter(self, topic: str, replicas: list[int] | None) -> Answer:
        row = self._cluster.reassignments.alter([(topic, [(0, replicas)])]).topics[0].partitions[0]
        return row.error_code, row.error_message

    def submit(self, topic: str, replicas: list[int]) -> None:
        submit(self._cluster, {(topic, 0): replicas})

    def has_plan(self) -> bool:
        return PLAN in self._cluster.state.znodes

    def catch_up(self, topic: str, brokers: Sequence[int]) -> None:
        for broker in brokers:
            if broker in self._cluster.topics.partition(topic, 0).replicas:
                Operations(self._cluster).join_isr((topic, 0), broker)

    def view(self, topic: str) -> View:
        found = self._cluster.topics.partition(topic, 0)
        return View(
            list(found.replicas),
            list(found.adding),
            list(found.removing),
            found.leader,
            found.leader_epoch,
            sorted(found.isr),
        )


class Both:
    """The two side by side."""

    def __init__(self, real: Real, ours: Ours, seed: int) -> None:
        self._real, self._ours = real, ours
        self._random = random.Random(seed)
        self._topics: list[str] = []
        self._story: list[str] = []
        self.kinds: set[str] = set()

    async def topics(self, prefix: str, brokers: Sequence[int]) -> None:
        for number in range(3):
            replicas = self._random.sample(brokers, self._random.randint(1, len(brokers)))
            topic = f"{prefix}-{number}"
            await self._real.create(topic, replicas)
            self._ours.create(topic, replicas)
            self._topics.append(topic)
        await self.agree(brokers)

    async def command(self, prefix: str, brokers: Sequence[int]) -> None:
        """By znode only where none is there: what comes then is ignored, and never done."""
        topic = self._random.choice([each for each in self._topics if each.startswith(prefix)])
        count = self._random.randint(1, len(BROKER_IDS))
        replicas = self._random.sample(BROKER_IDS, count)
        kind = self._random.choice(["cancel", "alter", "alter", "submit"])
        if kind == "submit" and self._ours.has_plan():
            kind = "alter"
        self._story.append(f"{kind} {topic} {replicas}")
        self.kinds.add(kind)
        if kind == "submit":
            self._real.submit(topic, replicas)
            self._ours.submit(topic, replicas)
        else:
            asked = None if kind == "cancel" else replicas
            assert await self._real.alter(topic, asked) == self._ours.alter(topic, asked)
        await self.agree(brokers)

    async def agree(self, brokers: Sequence[int]) -> None:
        for topic in self._topics:
            self._ours.catch_up(topic, brokers)
        expected = [self._ours.view(topic) for topic in self._topics]
        deadline = time.monotonic() + PATIENCE
        while self._real.has_plan() != self._ours.has_plan() or expected != (
            found := [self._real.view(topic) for topic in self._topics]
        ):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)
        found = [self._real.view(topic) for topic in self._topics]
        assert found == expected, self._story
        assert self._real.has_plan() == self._ours.has_plan(), self._story
        await self._real.finish()


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("K455-01", "K455-42", "K455-60", "K455-63")
@pytest.mark.parametrize(
    ("release", "reassignment"), drawn("random reassignments", RELEASES, few=1)
)
async def test_random_reassignments(release: str, reassignment: str, tmp_path: Path) -> None:
    require("java", "maven")
    require_module("kazoo")
    from kproto.client.zookeeper import KazooStore

    with RealKafka(release, tmp_path, zookeeper=True) as kafka:
        store = KazooStore(kafka.zookeeper_address)
        try:
            async with RealTarget(kafka) as target:
                await target.ready()
                both = Both(Real(target, store), Ours(reassignment), SEED)
                await both.topics("all", BROKER_IDS)
                for _ in range(COMMANDS):
                    await both.command("all", BROKER_IDS)
                others = [each for each in BROKER_IDS if each != LAGGARD]
                await both.topics("some", others)
                kafka.freeze()
                for _ in range(COMMANDS):
                    await both.command("some", others)
                assert both.kinds == {"alter", "cancel", "submit"}
        finally:
            store.close()
