"""Kafka's tools of the ZooKeeper era, and clusters they are run against: a real one and mocks.

A ``Side`` is one cluster as its tools address it, and what a third party sees of it: its znodes and
its Metadata. Knows how to wait until nothing is left to be done, and what of a tool's output is
Java's or Scala's rather than the tool's. Knows no command.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

from kproto.client.zookeeper import KazooStore
from kproto.messages import MetadataRequest
from kproto.znodes import NoNodeError
from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS
from mockbroker import MockCluster
from tests.real.jars import class_path
from tests.real.kafka import BROKER_IDS, COMMON_CONFIGS, LAGGARD, RealKafka
from tests.real.targets import MockTarget, RealTarget
from tests.support.maven import artifacts
from tests.tools.commands import Outcome, admin
from tests.tools.kafka_tools import JavaTools

__all__ = ["RELEASE", "MockSide", "RealSide", "Side", "Tool", "agree", "is_at_rest", "kafka_tools",
           "lenient_tools", "mock_cluster", "our_tool", "printed", "without_java"]  # fmt: skip

RELEASE: Final = "2.4.1"
"""The first with KIP-455's controller, the last but three whose tools reassign by ZooKeeper."""

MAIN_CLASSES: Final = {
    "reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
    "preferred-replica-election": "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "topics": "kafka.admin.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
}

Tool = Callable[..., Awaitable[Outcome]]

_PATIENCE: Final = 90.0
"""Seconds for what takes moments. Never what is measured."""
_POLL_SECONDS: Final = 0.02
_METADATA: Final = 5
_TOO_LATE: Final = {"topic": "foo", "partition": 2, "replicas": [1]}
"""What is written into a plan that is in progress. Nobody ever starts it."""


LENIENT: Final = "1.1.1"
"""The last whose tools read plans with fields that they do not know, as KIP-236 adds one."""
_LENIENT_JARS: Final = (
    ("org.apache.kafka:kafka_2.12", LENIENT),
    ("org.apache.kafka:kafka-clients", LENIENT),
    ("net.sf.jopt-simple:jopt-simple", "5.0.4"),
    ("com.fasterxml.jackson.core:jackson-annotations", "2.9.0"),
    ("com.fasterxml.jackson.core:jackson-core", "2.9.6"),
    ("com.fasterxml.jackson.core:jackson-databind", "2.9.6"),
    ("com.yammer.metrics:metrics-core", "2.2.0"),
    ("org.scala-lang:scala-library", "2.12.4"),
    ("org.scala-lang:scala-reflect", "2.12.4"),
    ("com.typesafe.scala-logging:scala-logging_2.12", "3.8.0"),
    ("org.apache.zookeeper:zookeeper", "3.4.10"),
    ("com.101tec:zkclient", "0.10"),
    ("org.slf4j:slf4j-api", "1.7.25"),
    ("org.slf4j:slf4j-simple", "1.7.25"),
)


def kafka_tools() -> JavaTools:
    return JavaTools(class_path(RELEASE), MAIN_CLASSES)


def lenient_tools() -> JavaTools:
    return JavaTools(os.pathsep.join(map(str, artifacts(_LENIENT_JARS))), MAIN_CLASSES)


async def our_tool(tool: str, *arguments: str) -> Outcome:
    """``kproto admin`` in place of Kafka's."""
    surface = ("--profile", "kip-236-new") if tool == "reassign-partitions" else ()
    return await admin(tool, *surface, *arguments)


def mock_cluster(zookeeper: str, profile: str = "kafka-2.4") -> MockCluster:
    return MockCluster(
        len(BROKER_IDS),
        profile=profile,
        zookeeper=zookeeper,
        broker_configs=COMMON_CONFIGS,
        clock="manual",
    )


# ---- clusters ------------------------------------------------------------------------------------


class Side:
    """``zookeeper`` and ``bootstrap`` are what tools take; ``run`` is whose tools these are."""

    def __init__(
        self, zookeeper: str, bootstrap: str, target: RealTarget | MockTarget, run: Tool
    ) -> None:
        self.zookeeper = zookeeper
        self.bootstrap = bootstrap
        self.target = target
        self.run = run
        self._store = KazooStore(zookeeper)
        self._plan = b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store.close()
        await self.target.__aexit__(kind, error, trace)

    async def go_on(self) -> None:
        """Let replicas catch up that can."""

    async def happen(self, event: str) -> None:
        """One of ``zookeeper_session``'s events."""
        await getattr(self, event)()

    async def freeze(self) -> None:
        """The last broker goes on living, and does nothing."""
        await self.target.freeze()

    async def thaw(self) -> None: ...

    async def stop(self) -> None:
        """The last broker leaves the cluster."""
        await self.target.stop_laggard(list((await self.state())["metadata"]))

    async def overwrite(self) -> None:
        """Somebody adds to the plan that is in progress, which is too late."""
        self._plan = self._store.get(REASSIGN_PARTITIONS).data
        text = json.loads(self._plan)
        text["partitions"].append(_TOO_LATE)
        self._store.set(REASSIGN_PARTITIONS, json.dumps(text).encode())

    async def restore(self) -> None:
        self._store.set(REASSIGN_PARTITIONS, self._plan)

    def json(self, path: str) -> Any:
        """A znode's text, read; None without the znode, "" where it is empty."""
        try:
            data = self._store.get(path).data
        except NoNodeError:
            return None
        return json.loads(data) if data else ""

    async def state(self) -> dict[str, Any]:
        """Everything that tools can see, and that they change."""
        topics = self._below("/brokers/topics")
        admin = self._below("/admin")
        return {
            "brokers": self._names("/brokers/ids"),
            "metadata": await self._metadata(),
            "topics": {name: self.json(f"/brokers/topics/{name}") for name in topics},
            "states": {
                f"{name}-{index}": _sorted_isr(
                    self.json(f"/brokers/topics/{name}/partitions/{index}/state")
                )
                for name in topics
                for index in self._names(f"/brokers/topics/{name}/partitions")
            },
            "configs": {
                f"{kind}/{name}": text["config"]
                for kind in ("topics", "brokers")
                for name, text in self._below(f"/config/{kind}").items()
                # Emptied, or never there: nobody can tell.
                if text and text["config"]
            },
            "admin": {name: _in_order(text) for name, text in admin.items()},
            "marked for deletion": self._names("/admin/delete_topics"),
        }

    def _names(self, path: str) -> list[str]:
        try:
            return sorted(self._store.children(path))
        except NoNodeError:
            return []

    def _below(self, path: str) -> dict[str, Any]:
        found = {name: self.json(f"{path}/{name}") for name in self._names(path)}
        return {name: text for name, text in found.items() if text is not None}

    async def _metadata(self) -> dict[str, Any]:
        answer = await self.target.exchange(1, MetadataRequest(topics=None), _METADATA, None)
        return {
            topic.name: {
                each.partition_index: (
                    each.error_code, each.leader_id, each.replica_nodes, sorted(each.isr_nodes),
                    each.offline_replicas,
                )
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            }
            for topic in sorted(answer.topics, key=lambda each: each.name)
        }  # fmt: skip


class RealSide(Side):
    def __init__(self, kafka: RealKafka, target: RealTarget, run: Tool) -> None:
        bootstrap = ",".join(f"127.0.0.1:{port}" for port in kafka.ports.values())
        super().__init__(kafka.zookeeper_address, bootstrap, target, run)
        self._kafka = kafka

    async def thaw(self) -> None:
        self._kafka.thaw()

    async def go_on(self) -> None:
        self._kafka.check_running()


class MockSide(Side):
    def __init__(self, mock: MockCluster, zookeeper: str, run: Tool) -> None:
        super().__init__(zookeeper, mock.bootstrap, MockTarget(mock), run)
        self.mock = mock
        self._frozen = False

    async def freeze(self) -> None:
        self._frozen = True

    async def thaw(self) -> None:
        self._frozen = False

    async def go_on(self) -> None:
        await self.mock.take(self._all_catch_up)

    def _all_catch_up(self) -> None:
        with self.mock.calls.turn():
            for name, topic in list(self.mock.cluster.topics.items()):
                for each in topic.partitions:
                    for broker_id in (*each.replicas, *(each.target or ())):
                        self._catch_up((name, each.index), broker_id)

    def _catch_up(self, tp: tuple[str, int], broker_id: int) -> None:
        partition = self.mock.cluster.topics.partition(*tp)
        lags = self._frozen and broker_id == LAGGARD
        live = (
            self.mock.cluster.controller.broker(broker_id).live
            if broker_id in BROKER_IDS
            else False
        )
        # With the drafts of KIP-455 replicas come one by one.
        wanted = broker_id in (*partition.replicas, *(partition.target or ()))
        if live and not lags and partition.leader != -1 and wanted:
            self.mock.join_isr(tp, broker_id)


async def agree(sides: list[Side], shown: Callable[[Any], Any]) -> list[Any]:
    """Wait until the first cluster, a real one, has done what there is to do, and all look the same
    in what is ``shown`` of their states, which are given.

    AssertionError with the first two that differ, where they do not in time.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        for side in sides:
            await side.go_on()
        states = [await side.state() for side in sides]
        seen = [shown(state) for state in states]
        if is_at_rest(states[0]) and all(each == seen[0] for each in seen):
            return states
        if time.monotonic() > deadline:
            assert is_at_rest(states[0]), states[0]
            for side, other in zip(sides, seen, strict=True):
                assert other == seen[0], f"{side.zookeeper}:\n{other}\nbut Kafka:\n{seen[0]}"
        await asyncio.sleep(_POLL_SECONDS)


def is_at_rest(state: dict[str, Any]) -> bool:
    """Nothing waits for the controller, and brokers have heard of what is on record. What is marked
    for deletion waits for a broker that is gone."""
    if "preferred_replica_election" in state["admin"]:
        return False
    marked = state["marked for deletion"]
    if not all(_waits_for_a_broker(state, name) for name in marked):
        return False
    started = {
        (name, int(index))
        for name, text in state["topics"].items()
        for index in text.get("adding_replicas", {})
    }
    plan = state["admin"].get("reassign_partitions") or {"partitions": []}
    entries = [each for each in plan["partitions"] if each != _TOO_LATE]
    if not {(each["topic"], each["partition"]) for each in entries} <= started:
        return False
    on_record = {
        f"{name}-{index}": replicas
        for name, text in state["topics"].items()
        for index, replicas in text["partitions"].items()
        if name not in marked
    }
    known = {
        f"{name}-{index}": each
        for name, partitions in state["metadata"].items()
        for index, each in partitions.items()
    }
    if not on_record.keys() == known.keys() <= state["states"].keys():
        return False
    return all(
        (leader, replicas) == (state["states"][name]["leader"], on_record[name])
        and isr == state["states"][name]["isr"]
        for name, (_, leader, replicas, isr, _) in known.items()
    )


def _waits_for_a_broker(state: dict[str, Any], name: str) -> bool:
    replicas = state["topics"].get(name, {"partitions": {}})["partitions"].values()
    return not {str(broker) for each in replicas for broker in each} <= set(state["brokers"])


def _sorted_isr(state: Any) -> Any:
    """Replicas that join at once do so in any order."""
    return state and {**state, "isr": sorted(state["isr"])}


def _in_order(text: Any) -> Any:
    """The partitions of a plan, which are a set."""
    if isinstance(text, dict) and "partitions" in text:
        entries = sorted(text["partitions"], key=lambda each: (each["topic"], each["partition"]))
        return {**text, "partitions": entries}
    return text


# ---- what tools print ----------------------------------------------------------------------------

_TRACE: Final = re.compile(r"\s+at |\s+\.\.\. \d+ more|Caused by: |[\w.$]+(Exception|Error): ")
_COLLECTION: Final = re.compile(r"\b(?:HashSet|Set|ListBuffer)\(([^()]*)\)")
_PARTITIONS: Final = re.compile(r"(?<=[ (])([\w.-]+-\d+(?:, ?[\w.-]+-\d+)+)(?=\)|$)", re.M)

_OF_A_PARTITION: Final = (
    "Reassignment of partition ",
    "Error completing preferred leader election for partition: ",
    "\tSuppressed: ",
)


def without_java(text: str) -> str:
    """Without stack traces, which name the machinery of one JVM, and identities of objects; with
    those in sync in order, which join in any, and partitions, which come as hashes have them."""
    kept = [line for line in text.splitlines(keepends=True) if not line.startswith("\tat ")]
    text = re.sub(r"\[I@[0-9a-f]+", "[I@", "".join(kept))
    lines = [_sorted_plan(line) for line in text.split("\n")]
    text = _PARTITIONS.sub(_sorted, "\n".join(_in_hash_order(lines)))
    return re.sub(r"(?<=\tIsr: )([\d,]+)", _sorted, text)


def printed(text: str) -> list[str]:
    """Lines of either tool, in one notation: without stack traces and the names of Scala's
    collections, and with what comes in the order of hashes sorted."""
    text = "\n".join(line for line in text.splitlines() if not _TRACE.match(line))
    text = _PARTITIONS.sub(_sorted, _COLLECTION.sub(r"\1", text)).strip("\n")
    return _in_hash_order([_sorted_plan(line) for line in text.split("\n")])


def _in_hash_order(lines: list[str]) -> list[str]:
    """Lines about one partition each, sorted."""
    which = [n for n, line in enumerate(lines) if line.startswith(_OF_A_PARTITION)]
    for number, line in zip(which, sorted(lines[each] for each in which), strict=True):
        lines[number] = line
    return lines


def _sorted(found: re.Match[str]) -> str:
    return ",".join(sorted(re.split(", ?", found[1])))


def _sorted_plan(line: str) -> str:
    if not line.startswith("{"):
        return line
    return json.dumps(_in_order(json.loads(line)))
