"""A mock cluster on a real ZooKeeper that hangs, dies, comes back, and expires sessions.

The event loop continues meanwhile. A loop that waited for ZooKeeper, or for a call of kazoo's to
time out, would be blocked as long as the outage (``OUTAGE_SECONDS``). Its pauses are compared with
those of a thread, which the load of the machine stops as well.
"""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import kproto
from kproto.client.zookeeper import KazooStore
from kproto.messages import AlterPartitionReassignmentsRequest
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.loop_pauses import LoopPauses, measured_pauses
from tests.support.requests import request_of
from tests.support.toolchain import require_module
from tests.support.zookeeper import ZooKeeperServer, steerable_server

pytestmark = pytest.mark.java

OUTAGE_SECONDS = 2.0
LONGEST_BLOCK = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    require_module("kazoo")
    with steerable_server() as server:
        yield server


@pytest.fixture
async def pauses(request: pytest.FixtureRequest) -> AsyncIterator[LoopPauses]:
    async with measured_pauses() as measured:
        yield measured
    print(f"{request.node.name}: longest pauses: {vars(measured)} s")
    assert measured.blocked < LONGEST_BLOCK


@pytest.fixture
async def mock(
    server: ZooKeeperServer, request: pytest.FixtureRequest
) -> AsyncIterator[MockCluster]:
    cluster = MockCluster(
        3,
        topics=["foo=1,2"],
        profile="kafka-3.9-zk",
        zookeeper=f"{server.address}/{request.node.name}",
    )
    async with cluster as running:
        yield running


def reassign(*replicas: int) -> AlterPartitionReassignmentsRequest:
    text = {
        "timeoutMs": 60000,
        "topics": [
            {"name": "foo", "partitions": [{"partitionIndex": 0, "replicas": list(replicas)}]}
        ],
    }
    return AlterPartitionReassignmentsRequest.from_json(text, 0)


async def brokers_in_metadata(wire: Wire) -> list[int]:
    return [broker.node_id for broker in (await wire.ask("Metadata", 1, topics=None)).brokers]


async def answered(wire: Wire, body: Any) -> Any:
    """The answer to a request that was sent before."""
    _, answer = wire.codec.decode_response(
        await wire.receive(), api_key=body.API_KEY, api_version=0
    )
    return answer


async def until(condition: Any) -> None:
    async with asyncio.timeout(2 * PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def outage(mock: MockCluster, wires: tuple[Wire, Wire, Wire]) -> None:
    """What clients see while ZooKeeper does not answer: nothing of the controller, and everything
    else as ever."""
    alter, listing, other = wires
    alter.send(alter.frame(reassign(2, 3), 0))
    await until(lambda: mock.calls.busy)  # it is under way before the next is sent
    listing.send(listing.frame(request_of("ListPartitionReassignments", topics=None), 0))
    assert await brokers_in_metadata(other) == [1, 2, 3]
    with pytest.raises(ClusterError, match="the cluster waits for ZooKeeper"):
        mock.join_isr("foo-0", 3)
    await asyncio.sleep(OUTAGE_SECONDS)
    assert await brokers_in_metadata(other) == [1, 2, 3]


async def afterwards(mock: MockCluster, wires: tuple[Wire, Wire, Wire]) -> None:
    """Everything is answered, in order."""
    alter, listing, _ = wires
    done = await answered(alter, reassign(2, 3))
    assert [row.error_code for row in done.responses[0].partitions] == [0]
    listed = await answered(listing, request_of("ListPartitionReassignments"))
    assert listed.topics[0].partitions[0].adding_replicas == [3]
    await mock.take(mock.join_isr, "foo-0", 3)
    assert mock.cluster.topics.partition("foo", 0).replicas == (2, 3)
    assert mock.cluster.state.controller_epoch == 1


async def test_a_server_that_hangs_stops_the_controller_and_nothing_else(server, mock, pauses):
    async with connect(mock, 1) as alter, connect(mock, 1) as listing, connect(mock, 2) as other:
        wires = (alter, listing, other)
        server.hang()
        try:
            await outage(mock, wires)
        finally:
            server.go_on()
        await afterwards(mock, wires)


async def test_a_server_that_dies_and_comes_back(server, mock, pauses):
    async with connect(mock, 1) as alter, connect(mock, 1) as listing, connect(mock, 2) as other:
        wires = (alter, listing, other)
        server.kill()
        try:
            await outage(mock, wires)
        finally:
            await asyncio.to_thread(server.restart)
        await afterwards(mock, wires)
    assert mock.cluster.log.since(0)  # and what tools write is seen as before
    tool = await asyncio.to_thread(KazooStore, f"{server.address}/{_place(mock)}")
    try:
        await asyncio.to_thread(
            tool.set, "/brokers/topics/foo", b'{"version":1,"partitions":{"0":[2,3],"1":[1]}}'
        )
        await until(lambda: len(mock.cluster.topics["foo"].partitions) == 2)
    finally:
        await asyncio.to_thread(tool.close)


def _place(mock: MockCluster) -> str:
    store: Any = mock._znodes
    return str(store._chroot).lstrip("/")


async def expire(mock: MockCluster, server: ZooKeeperServer) -> None:
    """End the session as the server sees it: another client opens it, and closes it."""
    from kazoo.client import KazooClient

    store: Any = mock._znodes

    def end() -> None:
        twin = KazooClient(server.address, client_id=store._client.client_id)
        twin.start()
        twin.stop()
        twin.close()

    await asyncio.to_thread(end)


async def test_after_its_session_expired_the_brokers_register_and_elect(
    server: ZooKeeperServer, mock: MockCluster, pauses: LoopPauses, caplog: Any
) -> None:
    before = [mock.cluster.memories.epoch(broker) for broker in (1, 2, 3)]
    for epoch in (2, 3):
        await expire(mock, server)
        await until(lambda: mock.cluster.state.controller_epoch == epoch)  # noqa: B023
    tool = await asyncio.to_thread(KazooStore, f"{server.address}/{_place(mock)}")
    try:
        assert await asyncio.to_thread(tool.children, "/brokers/ids") == ["1", "2", "3"]
        controller = await asyncio.to_thread(tool.get, "/controller")
        assert json.loads(controller.data)["brokerid"] == mock.cluster.state.controller_id == 1
        after = [mock.cluster.memories.epoch(broker) for broker in (1, 2, 3)]
        assert all(new > old for new, old in zip(after, before, strict=True))
        async with connect(mock, 1) as wire:
            done = await wire.ask(reassign(2, 3), 0)
            assert [row.error_code for row in done.responses[0].partitions] == [0]
        await mock.take(mock.join_isr, "foo-0", 3)
        assert mock.cluster.topics.partition("foo", 0).replicas == (2, 3)
        await asyncio.to_thread(tool.delete, "/controller")  # watches are there again
        await until(lambda: mock.cluster.state.controller_id == 2)
    finally:
        await asyncio.to_thread(tool.close)
    assert "Traceback" not in caplog.text


# ---- processes -----------------------------------------------------------------------------------


_SHORT_SESSION = """
import asyncio, sys
from mockbroker import MockCluster

async def main():
    configs = {"zookeeper.session.timeout.ms": "1500"}
    where = {"zookeeper": sys.argv[1], "broker_configs": configs}
    async with MockCluster(2, profile="kafka-3.9-zk", **where):
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the line by which it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def test_serve_ends_on_a_signal_while_the_server_hangs(server: ZooKeeperServer) -> None:
    place = f"{server.address}/serve"
    options = ("--topic", "foo=1,2", "--profile", "kafka-3.9-zk", "--zookeeper", place)
    with started("-m", "mockbroker", "serve", *options) as (process, ready):
        host, port = json.loads(ready)["brokers"]["1"].split(":")
        server.hang()
        try:
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
                request = kproto.encode_request(reassign(2, 3), api_version=0, correlation_id=1)
                client.sendall(request)
                client.settimeout(0.5)
                # On a busy machine the session may expire meanwhile, which is answered.
                with contextlib.suppress(TimeoutError):
                    client.recv(1)
            process.terminate()
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            server.go_on()
    assert process.returncode == 0
    assert "Traceback" not in errors, errors


def test_a_process_that_was_frozen_beyond_its_session(server: ZooKeeperServer) -> None:
    place = f"{server.address}/frozen"
    with started("-c", _SHORT_SESSION, place) as (process, _):
        tool = KazooStore(place)
        try:
            process.send_signal(signal.SIGSTOP)
            poll(lambda: tool.exists("/brokers/ids/1") is None)
            process.send_signal(signal.SIGCONT)
            poll(lambda: tool.children("/brokers/ids") == ["1", "2"])
            poll(lambda: tool.exists("/controller") is not None)
            poll(lambda: int(tool.get("/controller_epoch").data) >= 2)  # written last
        finally:
            tool.close()
        process.kill()
        _, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors, errors


def poll(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
