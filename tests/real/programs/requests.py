"""What steps of programs are on the wire, and in ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from kproto.messages import CreatePartitionsRequest, DeleteTopicsRequest
from kproto.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
)
from tests.real.programs.model import ProgramStep
from tests.real.steps import BROKER, TOPIC, Ask, Submit, alter, change, elect, try_to_create

__all__ = ["CONFIG_CHANGES", "RATES", "SUBMISSIONS", "ask_of", "writes_of"]

RATES: Final = tuple(f"{role}.replication.throttled.rate" for role in ("leader", "follower"))
"""The configs of brokers that programs change."""

WAIT_MS: Final = 20_000
"""How long brokers may wait for what they were asked to do with topics."""

PLAN: Final = "/admin/reassign_partitions"
ELECTION: Final = "/admin/preferred_replica_election"
SUBMISSIONS: Final = (PLAN, ELECTION)
CONFIG_CHANGES: Final = "/config/changes/config_change_"

Name = Callable[[str], str]


def ask_of(step: ProgramStep, name: Name, broker_id: int) -> Ask | None:
    """The request that the step is; None for one that is none. ``name`` gives topics theirs."""
    made = _REQUESTS.get(step["do"])
    if made is None:
        return None
    ask = made(step, name)
    return Ask(ask.body, version=ask.version, broker_id=broker_id)


def _create(step: ProgramStep, name: Name) -> Ask:
    return try_to_create(
        name(step["topic"]), *step["replicas"], wait_ms=WAIT_MS, **step.get("configs", {})
    )


def _delete(step: ProgramStep, name: Name) -> Ask:
    """By names; the last version that has nothing but them."""
    names = [name(topic) for topic in step["topics"]]
    return Ask(DeleteTopicsRequest(timeout_ms=WAIT_MS, topic_names=names), version=5)


def _partitions(step: ProgramStep, name: Name) -> Ask:
    rows = [CreatePartitionsAssignment(broker_ids=list(row)) for row in step["replicas"]]
    topic = CreatePartitionsTopic(name=name(step["topic"]), count=step["count"], assignments=rows)
    return Ask(CreatePartitionsRequest(timeout_ms=WAIT_MS, topics=[topic]))


def _alter(step: ProgramStep, name: Name) -> Ask:
    rows = [(name(topic), index, replicas) for topic, index, replicas in step["rows"]]
    return alter(*rows, factor_may_change=not step.get("guard"))


def _elect(step: ProgramStep, name: Name) -> Ask:
    by_topic: dict[str, list[int]] = {}
    for topic, index in step["rows"]:
        by_topic.setdefault(name(topic), []).append(index)
    return elect(step["type"], *by_topic.items())


def _configs(step: ProgramStep, name: Name) -> Ask:
    return change((TOPIC, name(step["topic"]), [tuple(each) for each in step["operations"]]))


def _broker_configs(step: ProgramStep, name: Name) -> Ask:
    operations = [tuple(each) for each in step["operations"]]
    return change((BROKER, str(step["broker"]), operations))


_REQUESTS: Final[Mapping[str, Callable[[ProgramStep, Name], Ask]]] = {
    "create": _create,
    "delete": _delete,
    "partitions": _partitions,
    "alter": _alter,
    "elect": _elect,
    "elect-all": lambda step, _name: elect(step["type"], everything=True),
    "configs": _configs,
    "broker-configs": _broker_configs,
}


def writes_of(step: ProgramStep, name: Name) -> list[Submit]:
    """The znodes that the step writes. A path that ends with "_" is a sequence's."""
    match step["do"]:
        case "submit-plan":
            rows = [
                {"topic": name(topic), "partition": index, "replicas": replicas}
                for topic, index, replicas in step["rows"]
            ]
            return [Submit(PLAN, json.dumps({"version": 1, "partitions": rows}))]
        case "submit-election":
            rows = [{"topic": name(topic), "partition": index} for topic, index in step["rows"]]
            return [Submit(ELECTION, json.dumps({"version": 1, "partitions": rows}))]
        case "submit-deletion":
            return [Submit(f"/admin/delete_topics/{name(step['topic'])}", "")]
        case "submit-config":
            topic = name(step["topic"])
            config = {"version": 1, "config": step["configs"]}
            changed = {"version": 2, "entity_path": f"topics/{topic}"}
            return [
                Submit(f"/config/topics/{topic}", json.dumps(config)),
                Submit(CONFIG_CHANGES, json.dumps(changed)),
            ]
        case _:
            return []
