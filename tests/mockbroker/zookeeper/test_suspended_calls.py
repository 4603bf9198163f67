"""Operations that ZooKeeper keeps waiting: their turns, and what clients get after an expiry.

The store is the embedded one behind a gate, so that a test decides when ZooKeeper answers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages import AlterPartitionReassignmentsRequest, CreateTopicsRequest
from kproto.znodes import EmbeddedStore, Stat, ZnodeStore, ZnodeTree
from mockbroker import ClusterOptions, MockCluster
from mockbroker.errors import ClusterError
from mockbroker.serving.suspended_calls import SuspendedCalls
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.requests import request_of

pytest.importorskip("greenlet")


class GatedStore(EmbeddedStore):
    """While it hangs, writes wait; on ``go_on`` they are done, or meet the end of the session."""

    def __init__(self, **options: Any) -> None:
        self.tree = ZnodeTree()
        super().__init__(self.tree, lambda: 0, **options)
        self.suspend: Callable[[Any], bool] = lambda _: False
        self.hangs = False
        self._waiting: list[Callable[[], None]] = []

    def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        if self.hangs:
            self.suspend(self._waiting.append)
        return super().set(path, data, version)

    def go_on(self) -> None:
        self.hangs = False
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()

    @property
    def waits(self) -> bool:
        return bool(self._waiting)


class GatedCluster(MockCluster):
    def __init__(self, store: GatedStore) -> None:
        super().__init__(3, topics=["foo=1,2"], profile="kafka-3.9-zk", zookeeper=store)

    def _znode_store(self, options: ClusterOptions) -> ZnodeStore | None:
        store = options.zookeeper
        assert isinstance(store, GatedStore)
        self.calls = calls = SuspendedCalls()
        store.suspend = calls.suspend
        return store


@pytest.fixture
def store() -> GatedStore:
    return GatedStore()


@pytest.fixture
async def mock(store: GatedStore) -> AsyncIterator[MockCluster]:
    async with GatedCluster(store) as running:
        yield running


def reassign() -> AlterPartitionReassignmentsRequest:
    partitions = [{"partitionIndex": 0, "replicas": [2, 3]}]
    text = {"timeoutMs": 60000, "topics": [{"name": "foo", "partitions": partitions}]}
    return AlterPartitionReassignmentsRequest.from_json(text, 0)


async def send(wire: Wire, body: Any, version: int = 0) -> None:
    """And let the broker begin with it."""
    wire.send(wire.frame(body, version))
    await asyncio.sleep(0.05)


async def answer(wire: Wire, body: Any, version: int = 0) -> Any:
    _, found = wire.codec.decode_response(
        await wire.receive(), api_key=body.API_KEY, api_version=version
    )
    return found


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def test_requests_take_turns_and_metadata_does_not_wait(mock, store):
    async with connect(mock, 1) as first, connect(mock, 1) as second, connect(mock, 2) as third:
        store.hangs = True
        await send(first, reassign())
        await until(lambda: store.waits)
        listing = request_of("ListPartitionReassignments", topics=None)
        await send(second, listing)
        assert len((await third.ask("Metadata", 1, topics=None)).brokers) == 3
        with pytest.raises(ClusterError, match=r"await mock\.take"):
            mock.failover(2)
        step = asyncio.ensure_future(mock.take(mock.failover, 2))
        await asyncio.sleep(0.05)
        assert not step.done()
        store.go_on()
        assert (await answer(first, reassign())).responses[0].partitions[0].error_code == 0
        assert (await answer(second, listing)).topics[0].partitions[0].adding_replicas == [3]
        await step
        assert mock.cluster.state.controller_id == 2


async def test_a_command_waits_for_its_turn(mock: MockCluster, store: GatedStore) -> None:
    async with connect(mock, 1) as wire:
        store.hangs = True
        await send(wire, reassign())
        await until(lambda: store.waits)
        commands = [
            asyncio.ensure_future(mock.run_command(text))
            for text in ("failover 2", "stop-broker 1")
        ]
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in commands)
        store.go_on()
        await asyncio.gather(*commands)
    assert (mock.cluster.state.controller_id, mock.cluster.controller.broker(1).live) == (2, False)


async def test_a_client_that_leaves_does_not_stop_its_request(mock, store):
    store.hangs = True
    async with connect(mock, 1) as wire:
        await send(wire, reassign())
        await until(lambda: store.waits)
    await until(lambda: mock.connections(1) == 0)
    store.go_on()
    await until(lambda: mock.cluster.topics.partition("foo", 0).target == (2, 3))


async def test_requests_that_wait_when_the_session_expires(mock, store):
    """What is under way meets the end of the session, -1; what waits in the controller's queue is
    preempted, NOT_CONTROLLER; what brokers do themselves goes on in the new session."""
    async with connect(mock, 1) as first, connect(mock, 1) as second, connect(mock, 1) as third:
        store.hangs = True
        await send(first, reassign())
        await until(lambda: store.waits)
        await send(second, reassign())
        store.tree.end_session(store.session_id, now_ms=0)
        store.go_on()
        mock._react()
        assert (await answer(first, reassign())).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await answer(second, reassign())).error_code == ErrorCode.NOT_CONTROLLER
        await until(lambda: mock.cluster.state.controller_epoch == 2)
        create = CreateTopicsRequest.from_json(
            {
                "topics": [
                    {
                        "name": "bar",
                        "numPartitions": 1,
                        "replicationFactor": 1,
                        "assignments": [],
                        "configs": [],
                    }
                ],
                "timeoutMs": 60000,
            },
            0,
        )
        assert (await third.ask(create, 0)).topics[0].error_code == 0


async def test_stopping_ends_what_waits(mock: MockCluster, store: GatedStore) -> None:
    async with connect(mock, 1) as wire:
        store.hangs = True
        await send(wire, reassign())
        await until(lambda: store.waits)
        step = asyncio.ensure_future(mock.take(mock.failover, 2))
        await asyncio.sleep(0.02)
        async with asyncio.timeout(PATIENCE):
            await mock.stop()
        with pytest.raises(ClusterError, match="the cluster has stopped"):
            await step
