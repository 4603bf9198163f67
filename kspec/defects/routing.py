"""Defects about the cluster: addresses, leaders, and how long they are valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import BrokerError
from kspec.reference_client.rules import Outcomes

__all__: list[str] = []

_CREATE_TOPICS: Final = 19
_UNKNOWN_TOPIC_OR_PARTITION: Final = 3
_LEADER_NOT_AVAILABLE: Final = 5
_NOT_CONTROLLER: Final = 41


@defect("keeps-the-first-address")
class KeepsTheFirstAddress(Client):
    """Uses the first address it learned for a broker, whatever Metadata says later."""

    first: dict[int, tuple[str, int]]

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.first = {}

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        self.first = brokers | self.first
        super().learn_brokers({key: self.first[key] for key in brokers}, controller_id)


@defect("remembers-the-first-failure")
class RemembersTheFirstFailure(Client):
    """Never looks for a controller again after it found none."""

    lost: bool

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.lost = False

    async def refresh(self) -> None:
        if self.lost:
            raise BrokerError(41, "no controller is known")
        await super().refresh()
        self.lost = self.controller_id not in self.brokers


@defect("describes-from-memory")
class DescribesFromMemory(Client):
    """Describes a topic as it was when first described."""

    described: dict[str, dict[str, Any]]

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.described = {}

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if op != "describe_topics":
            return await super().call(op, arguments)
        key = ",".join(arguments["topics"])
        if key not in self.described:
            self.described[key] = await super().call(op, arguments)
        return self.described[key]


@defect("waits-for-unknown-topics")
class WaitsForUnknownTopics(Client):
    """Asks for an unknown topic, almost without a pause, until it exists."""

    unknown: bool

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.unknown = False

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        def code(answer: Any) -> int:
            topics = getattr(answer, "topics", ())
            codes = (getattr(each, "error_code", 0) for each in topics)
            self.unknown = _UNKNOWN_TOPIC_OR_PARTITION in codes
            return _UNKNOWN_TOPIC_OR_PARTITION if self.unknown else int(code_of(answer))

        return await super().ask(where, body, code, *more)

    def pause(self, attempt: int) -> float:
        return 0.01 if self.unknown else super().pause(attempt)


@defect("takes-the-first-replica-for-the-leader")
class TakesTheFirstReplicaForTheLeader(Client):
    """Reports a partition's first replica as leader when there is none."""

    def success(self, result: Any) -> dict[str, Any]:
        topics = result.values() if isinstance(result, dict) else ()
        for topic in topics:
            partitions = topic.values() if isinstance(topic, dict) else ()
            for row in partitions:
                if isinstance(row, dict) and row.get("leader") == -1:
                    row["leader"] = row["replicas"][0]
        return super().success(result)


@defect("waits-for-a-newer-epoch")
class WaitsForANewerEpoch(Client):
    """Repeats Metadata until a partition's leader epoch is at least the highest one it has seen."""

    epochs: dict[tuple[str, int], int]

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.epochs = {}

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        def code(answer: Any) -> int:
            for topic in getattr(answer, "topics", ()):
                for row in getattr(topic, "partitions", ()):
                    key, epoch = (topic.name, row.partition_index), getattr(row, "leader_epoch", -1)
                    if epoch < self.epochs.get(key, epoch):
                        return _LEADER_NOT_AVAILABLE
                    self.epochs[key] = epoch
            return int(code_of(answer))

        return await super().ask(where, body, code, *more)


@defect("overlooks-not-controller-of-a-topic")
class OverlooksNotControllerOfATopic(Client):
    """Looks for the controller again on a top-level NOT_CONTROLLER but not on a topic's."""

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        if body.API_KEY == _CREATE_TOPICS:
            return await super().ask(where, body, lambda _answer: 0, *more)
        return await super().ask(where, body, code_of, *more)


@defect("takes-replicas-for-the-isr")
class TakesReplicasForTheIsr(Client):
    """Reports every replica of a partition as in sync."""

    def success(self, result: Any) -> dict[str, Any]:
        topics = result.values() if isinstance(result, dict) else ()
        for topic in topics:
            for row in topic.values() if isinstance(topic, dict) else ():
                if isinstance(row, dict) and "isr" in row:
                    row["isr"] = row["replicas"]
        return super().success(result)


@defect("takes-the-first-broker-for-the-controller")
class TakesTheFirstBrokerForTheController(Client):
    """Reports the broker with the lowest id as the controller."""

    def success(self, result: Any) -> dict[str, Any]:
        if isinstance(result, dict) and "controller" in result:
            result["controller"] = min(result["brokers"])
        return super().success(result)


@defect("takes-not-controller-for-success")
class TakesNotControllerForSuccess(OverlooksNotControllerOfATopic):
    """Reports a topic as created although the answer says NOT_CONTROLLER for it."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        created = {
            key: (0, None) if row[0] == _NOT_CONTROLLER else row for key, row in rows.items()
        }
        return super().outcomes(wanted, created)


@defect("describes-unknown-topics")
class DescribesUnknownTopics(Client):
    """Describes an unknown topic as one without partitions."""

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        reply = await super().call(op, arguments)
        result = reply.get("result")
        if not isinstance(result, dict):
            return reply
        unknown = [
            key
            for key, row in result.items()
            if isinstance(row, dict) and row.get("code") == _UNKNOWN_TOPIC_OR_PARTITION
        ]
        blank: Any = {} if op == "describe_topics" else None
        return {**reply, "result": result | dict.fromkeys(unknown, blank)}
