"""The steps of a program about consumer groups (KIP-848), on one side.

A step names a member by the id that it sends. The member knows the epoch and the partitions that
the coordinator gave it, and reports partitions as the step says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kproto.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.consumer_group_heartbeat_request import TopicPartitions
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from tests.real.data.normal import normal
from tests.real.data.side import CLOSED, Failed
from tests.real.programs.model import ProgramStep
from tests.real.walks.generator import CONSUMER_GROUPS

if TYPE_CHECKING:
    from tests.real.walks.walker import Walker

__all__ = ["HEARTBEAT", "Consumers"]

HEARTBEAT: Final = 68
DESCRIBE: Final = 69
REGEX_SINCE: Final = 1
GROUP: Final = 32
INTERVAL: Final = "consumer.assignment.interval.ms"
LONG_MS: Final = 600_000
PATIENCE: Final = 60.0
POLL_SECONDS: Final = 0.02

_Place = tuple[UUID, int]


@dataclass
class _Consumer:
    """``given`` are the partitions of the newest assignment, ``owned`` those reported last."""

    epoch: int = 0
    given: frozenset[_Place] = frozenset()
    owned: frozenset[_Place] = frozenset()


class Consumers:
    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._known: dict[tuple[str, str], _Consumer] = {}
        self.steps: Mapping[str, Callable[[ProgramStep], Awaitable[None]]] = {"beat": self._beat}

    def epoch(self, group: str, member: str) -> int:
        known = self._known.get((group, member))
        return -1 if known is None else known.epoch

    async def prepare(self) -> None:
        """Let targets follow one another at once, where the release has an interval."""
        for group in CONSUMER_GROUPS:
            await self._without_interval(f"{self._walker.group}.{group}")

    async def _without_interval(self, name: str) -> None:
        walker = self._walker
        change = AlterableConfig(name=INTERVAL, config_operation=0, value="0")
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=[change])
        body = IncrementalAlterConfigsRequest(resources=[resource])
        answer = await walker.exchange(body, 1, 1, "main")
        if answer is CLOSED or answer.responses[0].error_code:
            return
        look = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=GROUP, resource_name=name)]
        )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = await walker.exchange(look, 2, walker.coordinator, "main")
            values = {each.name: each.value for each in answer.results[0].configs}
            if values.get(INTERVAL) == "0":
                return
            await asyncio.sleep(POLL_SECONDS)
        raise Failed(f"waited {PATIENCE} s for configs of {name}")

    async def described(self, group: str) -> Any:
        """What the coordinator shows of a group, comparable with the other side."""
        walker = self._walker
        version = walker.served_version(DESCRIBE)
        body = ConsumerGroupDescribeRequest(group_ids=[f"{walker.group}.{group}"])
        answer = await walker.exchange(body, version, walker.coordinator, "main")
        return answer if answer is CLOSED else normal(answer, DESCRIBE, version, walker.names)

    async def describe(self, group: str) -> None:
        version = self._walker.served_version(DESCRIBE)
        body = ConsumerGroupDescribeRequest(group_ids=[f"{self._walker.group}.{group}"])
        await self._walker.ask(body, version=version)

    # ---- heartbeats --------------------------------------------------------------------------

    async def _beat(self, step: ProgramStep) -> None:
        walker = self._walker
        reads_regex = walker.served_version(HEARTBEAT) >= REGEX_SINCE
        since = REGEX_SINCE if reads_regex and "regex" in step else 0
        version = walker.use(HEARTBEAT, step, since=since)
        known = self._known.setdefault((step["group"], step["member"]), _Consumer())
        owned = self._reported(step, known)
        epoch = {"join": 0, "stay": known.epoch, "leave": -1, "away": -2}[step["how"]]
        topics = step.get("topics")
        body = ConsumerGroupHeartbeatRequest(
            group_id=f"{walker.group}.{step['group']}",
            member_id=step["member"],
            member_epoch=epoch + step.get("epoch", 0),
            instance_id=step.get("instance"),
            rack_id=step.get("rack"),
            rebalance_timeout_ms=LONG_MS if step["how"] == "join" else step.get("timeout", -1),
            subscribed_topic_names=(
                None if topics is None else [f"{walker.topic}.{each}" for each in topics]
            ),
            server_assignor=step.get("assignor"),
            topic_partitions=None if owned is None else _rows(sorted(owned)),
        )
        if version >= REGEX_SINCE and "regex" in step:
            prefix = walker.topic.replace(".", "[.]")
            body.subscribed_topic_regex = step["regex"] and f"{prefix}[.]{step['regex']}"
        answer = await walker.exchange(body, version, walker.coordinator, "main")
        walker.note(body, version, answer)
        if answer is CLOSED or answer.error_code:
            return
        known.epoch = answer.member_epoch
        if step["how"] == "join":
            known.given = known.owned = frozenset()
        elif owned is not None:
            known.owned = owned
        if answer.assignment is not None:
            known.given = frozenset(
                (row.topic_id, index)
                for row in answer.assignment.topic_partitions
                for index in row.partitions
            )

    @staticmethod
    def _reported(step: ProgramStep, known: _Consumer) -> frozenset[_Place] | None:
        """The partitions that a request reports; None where it leaves them out."""
        if step["how"] == "join":
            return frozenset()
        match step.get("owned"):
            case "given":
                return known.given
            case "owned":
                return known.owned
            case "less":
                return frozenset(sorted(known.given)[1:])
            case "more":
                return known.given | known.owned
            case "nothing":
                return frozenset()
            case _:
                return None


def _rows(places: Sequence[_Place]) -> list[TopicPartitions]:
    found: dict[UUID, list[int]] = {}
    for topic_id, index in places:
        found.setdefault(topic_id, []).append(index)
    return [TopicPartitions(topic_id=each, partitions=rows) for each, rows in found.items()]
