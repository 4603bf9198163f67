"""A running mock cluster with znodes: on a real ZooKeeper, over the control port, and dying."""

import asyncio
import io
import json
from typing import Any

import pytest

from kproto.client.zookeeper import KazooStore
from kproto.znodes.requests import MAX_REQUEST_BYTES
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.errors import ClusterError, ControllerDiedError
from tests.mockbroker.wire import PATIENCE, connect

JSON = {"Content-Type": "application/json"}


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.java
async def test_what_a_tool_writes_to_a_real_zookeeper_happens(zookeeper: str) -> None:
    place = f"{zookeeper}/served"
    async with MockCluster(3, topics=["foo=1"], profile="kip-455-new", zookeeper=place) as mock:
        tool = KazooStore(place)
        try:
            registered = json.loads(tool.get("/brokers/ids/2").data)
            assert f"127.0.0.1:{registered['port']}" == mock.addresses[2]
            tool.create("/brokers/topics/bar", b'{"version":1,"partitions":{"0":[2,3]}}')
            await until(lambda: "bar" in mock.cluster.topics)
            tool.create("/admin/delete_topics/foo")
            await until(lambda: "foo" not in mock.cluster.topics)
            async with connect(mock) as wire:
                answer = await wire.ask("Metadata", 1, topics=None)
            assert [topic.name for topic in answer.topics] == ["bar"]
        finally:
            tool.close()
    tool = KazooStore(place)
    try:
        assert tool.children("/brokers/ids") == []
        assert tool.children("/brokers/topics") == ["bar"]
    finally:
        tool.close()


async def refused(address: str) -> None:
    """Wait until nobody listens there."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection(*address.split(":"))
            except ConnectionRefusedError:
                return
            writer.close()
            await asyncio.sleep(0.01)


def test_a_profile_without_znodes_takes_no_zookeeper() -> None:
    with pytest.raises(ClusterError, match=r"kafka-4\.1 does not use ZooKeeper"):
        MockCluster(profile="kafka-4.1", zookeeper="127.0.0.1:1")


@pytest.fixture
async def control() -> Any:
    aiohttp = pytest.importorskip("aiohttp")
    async with MockCluster(3, topics=["foo=1"], profile="kip-455-new") as mock:
        server = ControlServer(mock)
        await server.start()
        async with aiohttp.ClientSession(server.url) as session:
            yield mock, session
        await server.stop()


async def test_znodes_over_the_control_port(control: Any) -> None:
    _, session = control
    path = "/brokers/topics/bar"
    body = {"path": path, "text": '{"version":1,"partitions":{"0":[2,3]}}'}
    async with session.post("/write-znode", json=body) as response:
        kinds = [action["kind"] for action in (await response.json())["actions"]]
    assert kinds[0] == "ZnodeWritten"
    assert "TopicCreated" in kinds
    async with session.get("/znode", params={"path": path}) as response:
        found = await response.json()
    assert (found["text"], found["stat"]["version"]) == (body["text"], 0)
    assert found["children"] == ["partitions"]
    async with session.post("/append-znode", json={"path": "/a/n_", "text": "x"}) as response:
        (action,) = (await response.json())["actions"]
    assert action["path"] == "/a/n_0000000000"
    async with session.post("/write-znode", json={"path": "no/slash", "text": ""}) as response:
        assert response.status == 400
        assert "BadArguments" in (await response.json())["error"]
    async with session.post("/write-znode", json={"path": path, "text": None}) as response:
        assert response.status == 400
        assert "NotEmpty" in (await response.json())["error"]
    path = action["path"]
    async with session.post("/write-znode", json={"path": path, "text": None}) as response:
        assert response.status == 200
    async with session.get("/znode", params={"path": path}) as response:
        assert response.status == 404
        assert await response.json() == {"error": f"no znode {path}"}


@pytest.mark.requirement("K236-03")
async def test_a_plan_as_large_as_a_znode_goes_through_the_control_port(control: Any) -> None:
    """Of characters that JSON writes with six bytes each; and one that ZooKeeper does not take."""
    _, session = control

    async def write(text: str) -> tuple[int, Any]:
        data = io.BytesIO(json.dumps({"path": "/mine", "text": text}).encode())
        async with session.post("/write-znode", data=data, headers=JSON) as response:
            return response.status, await response.json()

    plan = {"version": 1, "partitions": [{"topic": "é" * 100, "partition": 0, "replicas": [1]}]}
    one = json.dumps(plan, ensure_ascii=False)
    text = one * ((MAX_REQUEST_BYTES - 1000) // len(one.encode()))
    assert (await write(text))[0] == 200
    async with session.get("/znode", params={"path": "/mine"}) as response:
        assert (await response.json())["text"] == text
    status, answer = await write("é" * (MAX_REQUEST_BYTES // 2 + 1))
    assert status == 400
    assert "jute.maxbuffer" in answer["error"] or "ConnectionLoss" in answer["error"]
    assert (await write("x" * 9_000_000))[0] == 413


async def test_a_controller_that_dies_in_the_midst_of_a_request(control: Any) -> None:
    """It answers nothing, its port refuses, another takes over and says what was on record."""
    mock, session = control
    async with session.post("/kill-controller-after", json={"changes": 1}) as response:
        assert response.status == 200
    async with connect(mock, 1) as wire:
        dialect = mock.dialect
        request = dialect.message("AlterPartitionReassignmentsRequest")
        topic = dialect.message("AlterPartitionReassignmentsRequest.ReassignableTopic")
        partition = dialect.message("AlterPartitionReassignmentsRequest.ReassignablePartition")
        wire.send(
            wire.frame(
                request(
                    topics=[
                        topic(name="foo", partitions=[partition(partition_index=0, replicas=[3])])
                    ]
                ),
                0,
            )
        )
        assert await wire.closed() == b""
    assert mock.cluster.state.controller_id == 2
    assert mock.cluster.topics.partition("foo", 0).target == (3,)
    await refused(mock.addresses[1])
    assert [entry.event for entry in mock.journal.select(event="controller-died")]


async def test_a_controller_that_dies_in_the_midst_of_a_step() -> None:
    async with MockCluster(3, topics=["foo=1,2"], profile="kip-455-new") as mock:
        mock.kill_controller_after(0)
        with pytest.raises(ControllerDiedError, match="broker 1 died during this command"):
            mock.leave_isr("foo-0", 2)
        assert mock.cluster.state.controller_id == 2
        assert not mock.cluster.controller.broker(1).live
        with pytest.raises(ClusterError, match="must be 0 or more"):
            mock.kill_controller_after(-1)


@pytest.mark.requirement("K236-57")
async def test_a_reassignment_is_identified_by_a_zxid_of_more_than_32_bits() -> None:
    before = 5 << 32
    mock = MockCluster(3, topics=["foo=1,2"], profile="kip-236-old", zxid=before, clock="manual")
    async with mock:
        mock.cluster.reassignments.alter([("foo", [(0, [2, 3])])])
        found = mock.read_znode("/admin/reassignments/foo/0")
        assert found is not None
        assert before < found[1].czxid < before + 1000


@pytest.mark.parametrize(
    "options", [{"zxid": -1}, {"zxid": 2**63}, {"zxid": 1, "profile": "kafka-4.1"},
                {"zxid": 1, "zookeeper": "127.0.0.1:1"}]
)  # fmt: skip
def test_a_zxid_is_of_a_tree_of_its_own(options: dict[str, Any]) -> None:
    with pytest.raises(ClusterError):
        MockCluster(**{"profile": "kafka-2.4", **options})
