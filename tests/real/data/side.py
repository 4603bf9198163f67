"""One cluster as a session sees it: requests by named connections, names for random values, and the
transcript of what was answered.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from kproto.dialects import dialect
from kproto.messages import (
    CreateTopicsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.schema.versions import Versions
from tests.mockbroker.wire import Wire
from tests.real.data.normal import Names, normal

__all__ = ["CLOSED", "SILENT", "Cluster", "Failed", "Side"]

CLOSED: Final = "the broker closed the connection"
SILENT: Final = "the broker has not answered yet"
PATIENCE: Final = 60.0
POLL_SECONDS: Final = 0.02
CREATE_VERSION: Final = 7
MOMENT_SECONDS: Final = 0.4
"""After this a broker that answers at once has answered, also on a busy machine."""
MINUTE_MS: Final = 60_000
_NOT_READY: Final = frozenset({14, 16})
"""The coordinator loads the partition, or has not begun to."""


class Failed(Exception):
    """A session could not go on: something it needs was refused or never came."""


class Cluster:
    """Addresses of one cluster, the versions it serves, and the broker that coordinates."""

    def __init__(self, addresses: Mapping[int, tuple[str, int]]) -> None:
        self.addresses = addresses
        self.coordinators: dict[int, int] = {}
        """By kind: 0 of groups, 1 of transactions."""

    async def find_coordinator(self) -> None:
        """Create the internal topics by asking for them, and remember who leads them. Wait until
        every broker has producer ids to give."""
        await self.give_ids()
        side = Side(self, "warm-up", 10, 3, {10: Versions(3, 3)})
        try:
            for kind in (1, 0):
                body = FindCoordinatorRequest(key="warm-up", key_type=kind)
                deadline = time.monotonic() + PATIENCE
                while True:
                    answer = await side.exchange(body, 3, 1, "main")
                    if answer is CLOSED or time.monotonic() > deadline:
                        return
                    if answer.error_code == 0:
                        break
                    await asyncio.sleep(POLL_SECONDS)
                await self._loaded(side, answer.node_id, kind, deadline)
                self.coordinators[kind] = answer.node_id
        finally:
            side.close()

    async def give_ids(self) -> None:
        """Wait until every broker has given out its first producer id."""
        side = Side(self, "warm-up", 22, 0, {22: Versions(0, 0)})
        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=MINUTE_MS)
        deadline = time.monotonic() + PATIENCE
        try:
            for broker in self.addresses:
                while time.monotonic() < deadline:
                    answer = await side.exchange(body, 0, broker, "main")
                    if answer is CLOSED or answer.error_code not in _NOT_READY:
                        break
                    await asyncio.sleep(POLL_SECONDS)
        finally:
            side.close()

    async def _loaded(self, side: Side, broker: int, kind: int, deadline: float) -> None:
        """Wait until the coordinator answers."""
        body: Any = HeartbeatRequest(group_id="warm-up", generation_id=1, member_id="nobody")
        if kind == 1:
            body = InitProducerIdRequest(
                transactional_id="warm-up", transaction_timeout_ms=MINUTE_MS
            )
        while time.monotonic() < deadline:
            answer = await side.exchange(body, 1, broker, "main")
            if answer is CLOSED or answer.error_code not in _NOT_READY:
                return
            await asyncio.sleep(POLL_SECONDS)


class Side:
    """One session on one cluster. ``topic`` and ``group`` are names that no other session has."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        api_key: int,
        version: int,
        served: Mapping[int, Versions],
    ) -> None:
        self.topic = self.group = name
        self.version = version
        self.api_key = api_key
        self._noted: list[tuple[str, int, int, Any]] = []
        self.names = Names()
        self.names.coordinators = set(cluster.coordinators.values())
        self.names.own = name
        self.topic_ids: dict[str, uuid.UUID] = {}
        self._cluster = cluster
        self._served = served
        self._wires: dict[tuple[int, str], Wire] = {}
        self._waiting: list[asyncio.Task[Any]] = []
        self.connections = 0
        """How many connections of its own a script has named."""

    @property
    def coordinator(self) -> int:
        """The broker that coordinates groups."""
        return self._cluster.coordinators.get(0, 1)

    @property
    def transactions(self) -> int:
        """The broker that coordinates transactions."""
        return self._cluster.coordinators.get(1, 1)

    @property
    def other_broker(self) -> int:
        """A broker that does not coordinate groups."""
        return self.not_(self.coordinator)

    def not_(self, broker: int) -> int:
        return next(each for each in self._cluster.addresses if each != broker)

    def version_of(self, api_key: int) -> int:
        """The session's version for the API it varies, else the highest that both sides serve."""
        return self.version if api_key == self.api_key else self._served[api_key].highest

    # ---- requests --------------------------------------------------------------------------------

    async def ask(
        self, body: Any, *, version: int | None = None, broker: int | None = None,
        connection: str = "main", quiet: bool = False,
    ) -> Any:  # fmt: skip
        """Send a request and note its answer; None as broker is the coordinator for keys of groups
        and transactions, else broker 1. The answer's message, or CLOSED."""
        if version is None:
            version = self.version_of(body.API_KEY)
        answer = await self.exchange(body, version, self._broker(body, broker), connection)
        if not quiet:
            self.note(body, version, answer)
        return answer

    def start(
        self, body: Any, connection: str, *, version: int | None = None, broker: int | None = None
    ) -> asyncio.Task[Any]:
        """Send a request that may wait, on a connection of its own; pass the task to ``end``."""
        if version is None:
            version = self.version_of(body.API_KEY)
        task = asyncio.ensure_future(
            self._started(body, version, self._broker(body, broker), connection)
        )
        self._waiting.append(task)
        return task

    async def _started(
        self, body: Any, version: int, broker: int, connection: str
    ) -> tuple[Any, int, Any]:
        return body, version, await self.exchange(body, version, broker, connection)

    async def end(self, task: asyncio.Task[Any]) -> Any:
        """Wait for the answer of a started request and note it."""
        body, version, answer = await task
        self.note(body, version, answer)
        return answer

    async def still_waits(self, task: asyncio.Task[Any], seconds: float = MOMENT_SECONDS) -> None:
        """Note whether the broker lets the request wait."""
        done, _ = await asyncio.wait([task], timeout=seconds)
        self.remark("after a moment", "answered" if done else SILENT)

    async def send_only(
        self, body: Any, *, version: int | None = None, broker: int = 1, connection: str = "main"
    ) -> None:
        """Send a request that has no answer."""
        version = self.version_of(body.API_KEY) if version is None else version
        wire = await self._wire(broker, connection)
        wire.send(wire.frame(body, version))

    def note(self, body: Any, version: int, answer: Any) -> None:
        name = type(body).__name__.removesuffix("Request")
        self._noted.append((f"{name} v{version}", body.API_KEY, version, answer))

    def remark(self, label: str, text: str) -> None:
        """Note something that is no answer."""
        self._noted.append((label, -1, 0, text))

    def transcript(self) -> list[tuple[str, Any]]:
        """What was noted, with the names that all of the session gave."""
        return [
            (label, answer if isinstance(answer, str) else normal(answer, key, version, self.names))
            for label, key, version, answer in self._noted
        ]

    async def exchange(
        self,
        body: Any,
        version: int,
        broker: int,
        connection: str,
        patience: float | None = PATIENCE,
        client_id: str = "wire",
    ) -> Any:
        """The answer's message, or CLOSED. Raises Failed if none comes in ``patience`` seconds."""
        wire = await self._wire(broker, connection)
        wire.send(wire.frame(body, version, client_id))
        try:
            async with asyncio.timeout(patience):
                size = await wire.reader.readexactly(4)
                frame = size + await wire.reader.readexactly(int.from_bytes(size, "big"))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            self._wires.pop((broker, connection)).writer.close()
            return CLOSED
        except TimeoutError:
            raise Failed(f"{type(body).__name__} was not answered in {patience} s") from None
        _, answer = wire.codec.decode_response(frame, api_key=body.API_KEY, api_version=version)
        return answer

    def _broker(self, body: Any, broker: int | None) -> int:
        if broker is not None:
            return broker
        if body.API_KEY in _OF_TRANSACTIONS:
            return self.transactions
        return self.coordinator if body.API_KEY in _OF_GROUPS else 1

    async def _wire(self, broker: int, connection: str) -> Wire:
        key = (broker, connection)
        if key not in self._wires:
            reader, writer = await asyncio.open_connection(*self._cluster.addresses[broker])
            self._wires[key] = Wire(reader, writer, dialect("kafka"))
        return self._wires[key]

    async def hang_up(self, connection: str, broker: int = 1) -> None:
        """Close a connection that the session has opened."""
        writer = self._wires.pop((broker, connection)).writer
        writer.close()
        await writer.wait_closed()

    def close(self) -> None:
        for task in self._waiting:
            task.cancel()
        for wire in self._wires.values():
            wire.writer.close()

    # ---- topics ----------------------------------------------------------------------------------

    async def create(
        self, *assignment: list[int], topic: str | None = None, **configs: str
    ) -> None:
        """Create a topic, on broker 1 alone unless an assignment is given, and wait until its
        leaders answer. Underscores in config names stand for dots."""
        name = topic or self.topic
        rows = assignment or ([1],)
        body = CreateTopicsRequest(
            timeout_ms=30_000,
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                        for index, replicas in enumerate(rows)
                    ],
                    configs=[
                        CreatableTopicConfig(name=each.replace("_", "."), value=value)
                        for each, value in configs.items()
                    ],
                )
            ],
        )
        answer = await self.exchange(body, CREATE_VERSION, 1, "main")
        (row,) = answer.topics
        if row.error_code:
            raise Failed(f"{name} was not created: {row.error_code} {row.error_message}")
        self.topic_ids[name] = row.topic_id
        self.names.text(_text(row.topic_id), f"id of {name}")
        for index, replicas in enumerate(rows):
            await self._until_led(name, index, replicas[0])

    async def gone(self, name: str) -> None:
        """Wait until no broker knows a topic that was deleted."""
        body = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        deadline = time.monotonic() + PATIENCE
        for broker in self._cluster.addresses:
            while not (await self.exchange(body, 9, broker, "main")).topics[0].error_code:
                if time.monotonic() > deadline:
                    raise Failed(f"broker {broker} still knows {name}")
                await asyncio.sleep(POLL_SECONDS)

    async def _until_led(self, name: str, index: int, leader: int) -> None:
        body = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)],
                )
            ],
        )
        metadata = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )

        async def led() -> bool:
            for broker in self._cluster.addresses:
                known = await self.exchange(metadata, 9, broker, "main")
                if known is CLOSED or known.topics[0].error_code:
                    return False
                if all(row.leader_id != leader for row in known.topics[0].partitions):
                    return False
            answer = await self.exchange(body, 5, leader, "main")
            return answer is not CLOSED and all(
                row.error_code == 0 for each in answer.topics for row in each.partitions
            )

        deadline = time.monotonic() + PATIENCE
        while not await led():
            if time.monotonic() > deadline:
                raise Failed(f"{name}-{index} has no leader")
            await asyncio.sleep(POLL_SECONDS)


_OF_GROUPS: Final = frozenset(
    {8, 9, 11, 12, 13, 14, 15, 16, 28, 42, 47, 68, 69, 76, 77, 88, 89, 90, 91, 92, 93}
)
_OF_TRANSACTIONS: Final = frozenset({22, 24, 25, 26})


def _text(topic_id: uuid.UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
