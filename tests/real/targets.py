"""A cluster that sessions are played on: one of real brokers, one of simulated ones.

Both are asked over TCP with the same bytes. What differs is only how one waits: replicas of real
brokers catch up by themselves, those of the mock when told to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Protocol, Self

from kproto.client.zookeeper import KazooStore
from kproto.dialects import dialect
from kproto.messages import (
    ApiVersionsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    UnregisterBrokerRequest,
)
from kproto.schema.versions import Versions
from kproto.znodes import NodeExistsError, NoNodeError, ZnodeStore
from mockbroker import MockCluster
from tests.mockbroker.wire import Wire
from tests.real.kafka import BROKER_IDS, COMMON_CONFIGS, LAGGARD, KafkaFailed, RealKafka
from tests.real.steps import Ask, CatchUp

__all__ = ["CLOSED", "MockTarget", "RealTarget", "Target"]

CLOSED: Final = "the broker closed the connection"

PATIENCE: Final = 120.0
"""Seconds a cluster may take for what it does within moments. Never what is measured. Longer than
requests let a broker take, 60 s unless they say otherwise: once, Kafka 3.9.2 with ZooKeeper had not
answered an ElectLeaders within them."""

_TOPIC_IDS_SINCE: Final = 10


class Target(Protocol):
    """What a session is played on."""

    async def ask(self, ask: Ask, body: Any, version: int) -> Any: ...
    async def settle(self, topics: list[str]) -> None: ...
    async def catch_up(self, step: CatchUp) -> None: ...
    async def freeze(self) -> None: ...
    async def stop_laggard(self, topics: list[str]) -> None: ...
    async def read_znode(self, path: str) -> str | None: ...
    async def write_znode(self, path: str, text: str | None) -> None: ...
    async def append_znode(self, prefix: str, text: str) -> None: ...


class _Wires:
    """One connection to each broker, opened when first needed and again after it was closed."""

    def __init__(self, addresses: dict[int, tuple[str, int]]) -> None:
        self._addresses = addresses
        self._wires: dict[int, Wire] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for wire in self._wires.values():
            wire.writer.close()
        await self._stack.aclose()

    async def hang_up(self) -> None:
        """Connections are opened anew from here on: brokers have come and gone."""
        for wire in self._wires.values():
            wire.writer.close()
        self._wires.clear()

    async def exchange_alone(self, broker_id: int, body: Any, version: int) -> Any:
        """On a connection of its own, so that several are on their way at once."""
        async with _Wires(self._addresses) as wires:
            return await wires.exchange(broker_id, body, version, None)

    async def exchange(self, broker_id: int, body: Any, version: int, forged: int | None) -> Any:
        """The answer's body, or CLOSED. A forged version is answered at version 0, as brokers do
        for ApiVersions."""
        wire = await self._wire(broker_id)
        frame = bytearray(wire.frame(body, version))
        if forged is not None:
            frame[6:8] = forged.to_bytes(2, "big")
        wire.send(bytes(frame))
        try:
            async with asyncio.timeout(PATIENCE):
                size = await wire.reader.readexactly(4)
                answer = size + await wire.reader.readexactly(int.from_bytes(size, "big"))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            del self._wires[broker_id]
            wire.writer.close()
            return CLOSED
        _, decoded = wire.codec.decode_response(
            answer, api_key=body.API_KEY, api_version=version if forged is None else 0
        )
        return decoded

    async def _wire(self, broker_id: int) -> Wire:
        if broker_id not in self._wires:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection(*self._addresses[broker_id])
            self._wires[broker_id] = Wire(reader, writer, dialect("kafka"))
        return self._wires[broker_id]


class RealTarget(_Wires):
    """Kafka. Waiting is asking again until it is so."""

    def __init__(self, kafka: RealKafka) -> None:
        super().__init__({i: ("127.0.0.1", port) for i, port in kafka.ports.items()})
        self._kafka = kafka
        self._store: ZnodeStore | None = None
        self._borrowed: RealTarget | None = None
        self.served: dict[int, Versions] = {}

    async def ready(self) -> None:
        """Every broker lists every broker, and what they serve is known."""
        for broker_id in BROKER_IDS:
            await self.until_listed(broker_id, BROKER_IDS)
        answer = await self.exchange(1, ApiVersionsRequest(), 0, None)
        self.served = {row.api_key: Versions(row.min_version, row.max_version)
                       for row in answer.api_keys}  # fmt: skip

    def beside(self) -> RealTarget:
        """The same cluster by connections of its own, for somebody who asks at the same time."""
        other = RealTarget(self._kafka)
        other._borrowed = self._borrowed or self
        return other

    async def until_listed(self, broker_id: int, listed: Sequence[int]) -> None:
        """Wait until a broker lists these brokers, and no other."""

        async def lists() -> bool:
            answer = await self.exchange(broker_id, MetadataRequest(topics=[]), 4, None)
            if answer is CLOSED:
                return False
            return sorted(broker.node_id for broker in answer.brokers) == sorted(listed)

        await self.until(lists, f"broker {broker_id} to list {listed}")

    async def ask(self, ask: Ask, body: Any, version: int) -> Any:
        return await self.exchange(ask.broker_id, body, version, ask.forged)

    async def settle(self, topics: list[str]) -> None:
        await self.until(lambda: self._settled(topics), f"{topics} to settle")

    async def _settled(self, topics: list[str]) -> bool:
        ongoing = await self.exchange(1, ListPartitionReassignmentsRequest(topics=None), 0, None)
        for row in ongoing.topics:
            # One that adds what it removes, which Kafka 4.3 and later can come to, never ends.
            if row.name in topics and any(
                not set(each.adding_replicas) & set(each.removing_replicas)
                for each in row.partitions
            ):
                return False
        for topic in await self._metadata(topics):
            for partition in topic.partitions:
                dead = set(partition.offline_replicas)
                if not set(partition.replica_nodes) - dead <= set(partition.isr_nodes):
                    return False
        return True

    async def catch_up(self, step: CatchUp) -> None:
        async def in_sync() -> bool:
            (topic,) = await self._metadata([step.topic])
            return any(
                partition.partition_index == step.partition
                and step.broker_id in partition.isr_nodes
                for partition in topic.partitions
            )

        await self.until(in_sync, str(step))

    async def bring_back(self, broker_id: int, via: int) -> None:
        """Start a broker that was stopped. A KRaft controller refuses it as long as the session of
        its earlier life may go on, which is for half an hour here; so it forgets that life."""
        if not self._kafka.zookeeper:
            body = UnregisterBrokerRequest(broker_id=broker_id)
            await self.exchange(via, body, 0, None)
        await asyncio.to_thread(self._kafka.start, broker_id)

    async def freeze(self) -> None:
        self._kafka.freeze()

    async def stop_laggard(self, topics: list[str]) -> None:
        self._kafka.thaw()
        await self.settle(topics)
        await asyncio.to_thread(self._kafka.stop_laggard)
        live = [broker_id for broker_id in BROKER_IDS if broker_id != LAGGARD]
        for broker_id in live:
            await self.until_listed(broker_id, live)

    async def read_znode(self, path: str) -> str | None:
        return await asyncio.to_thread(self._read_znode, path)

    def _read_znode(self, path: str) -> str | None:
        try:
            return self._znodes().get(path).data.decode()
        except NoNodeError:
            return None

    async def znode_children(self, path: str) -> list[str]:
        return list(await asyncio.to_thread(self._znodes().children, path))

    async def write_znode(self, path: str, text: str | None) -> None:
        await asyncio.to_thread(self._write_znode, path, text)

    async def append_znode(self, prefix: str, text: str) -> None:
        store = self._znodes()
        await asyncio.to_thread(store.create, prefix, text.encode(), sequential=True)

    def _write_znode(self, path: str, text: str | None) -> None:
        store = self._znodes()
        if text is None:
            store.delete(path)
            return
        try:
            store.create(path, text.encode())
        except NodeExistsError:
            store.set(path, text.encode())

    def _znodes(self) -> ZnodeStore:
        """A session of a user's own."""
        if self._borrowed is not None:
            return self._borrowed._znodes()
        if self._store is None:
            self._store = KazooStore(self._kafka.zookeeper_address)
            self._stack.callback(self._store.close)
        return self._store

    async def _metadata(self, topics: list[str]) -> list[Any]:
        body = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])
        answer = await self.exchange(1, body, 5, None)
        found: list[Any] = answer.topics
        return found

    async def until(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not await condition():
            self._kafka.check_running()
            if time.monotonic() > deadline:
                raise KafkaFailed(f"waited {PATIENCE} s in vain for {what}")
            await asyncio.sleep(0.02)


class MockTarget(_Wires):
    """The mock. Waiting is telling it that what is waited for has happened."""

    def __init__(self, mock: MockCluster) -> None:
        addresses = {}
        for broker_id, address in mock.addresses.items():
            host, port = address.rsplit(":", 1)
            addresses[broker_id] = (host, int(port))
        super().__init__(addresses)
        self._mock = mock

    @staticmethod
    def cluster(profile: str, port: int = 0) -> MockCluster:
        """A mock of the cluster that ``RealKafka`` starts; ``port`` is the first broker's."""
        return MockCluster(
            len(BROKER_IDS),
            profile=profile,
            broker_configs=COMMON_CONFIGS,
            clock="manual",
            port=port,
        )

    async def ask(self, ask: Ask, body: Any, version: int) -> Any:
        return await self.exchange(ask.broker_id, body, version, ask.forged)

    async def settle(self, topics: list[str]) -> None:
        await self._mock.take(self._settle, topics)

    def _settle(self, topics: list[str]) -> None:
        with self._mock.calls.turn():
            for name in topics:
                topic = self._mock.cluster.topics.get(name)
                for index in range(len(topic.partitions) if topic else 0):
                    self._settle_partition(name, index)

    def _settle_partition(self, name: str, index: int) -> None:
        live = {i for i, broker in self._mock.cluster.brokers.items() if broker.live}
        for broker_id in self._mock.cluster.topics.partition(name, index).replicas:
            partition = self._mock.cluster.topics.partition(name, index)
            if broker_id in live and broker_id in partition.replicas and partition.leader != -1:
                self._mock.join_isr((name, index), broker_id)

    async def catch_up(self, step: CatchUp) -> None:
        await self._mock.take(self._mock.join_isr, (step.topic, step.partition), step.broker_id)

    async def freeze(self) -> None:
        """Its replicas stay where they are anyway."""

    async def stop_laggard(self, topics: list[str]) -> None:
        await self.settle(topics)
        await self._mock.stop_broker(LAGGARD)

    async def read_znode(self, path: str) -> str | None:
        found = await self._mock.take(self._mock.read_znode, path)
        return None if found is None else found[0]

    async def write_znode(self, path: str, text: str | None) -> None:
        await self._mock.take(self._mock.write_znode, path, text)

    async def append_znode(self, prefix: str, text: str) -> None:
        await self._mock.take(self._mock.append_znode, prefix, text)
