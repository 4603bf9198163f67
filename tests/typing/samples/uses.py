"""Correct uses of the public API: type checkers infer these types and report nothing."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, assert_type

import kproto
from kproto.client import Connection
from kproto.codec.message import Message, RequestMessage
from kproto.journal import Entry
from kproto.messages import (
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from kproto.messages.request_header import RequestHeader
from mockbroker import ClusterOptions, MockCluster
from mockbroker.apis.registry import Call
from mockbroker.faults.matching import ActiveFault
from mockbroker.faults.rule import Fault
from mockbroker.running.fixture import MockKafka, MockKafkaFactory
from mockbroker.running.recorded_requests import Request, Requests
from mockbroker.running.threaded import ThreadedCluster
from mockbroker.simulation.groups.group_views import GroupView
from mockbroker.simulation.log.batches.record_documents import LoggedRecord
from mockbroker.simulation.state.actions import Action
from mockbroker.simulation.state.cluster_parts import Partition


async def client(connection: Connection, frame: bytes, draft: Any) -> None:
    assert_type(await connection.request(HeartbeatRequest(), 4, timeout=1.0), HeartbeatResponse)
    assert_type(await connection.request(ProduceRequest()), ProduceResponse | None)
    assert_type(connection.api_versions, ApiVersionsResponse | None)
    header, body = kproto.decode_request(frame)
    assert_type(header, RequestHeader)
    assert_type(await connection.request(body), Message)
    await connection.request(draft(topics=[]))


async def send(connection: Connection, bodies: list[RequestMessage[MetadataResponse]]) -> None:
    bodies.append(MetadataRequest(topics=None))
    for body in bodies:
        assert_type(await connection.request(body), MetadataResponse)


def metadata(call: Call) -> MetadataResponse | None:
    return None if call.broker_id == 1 else MetadataResponse(controller_id=2)


def threaded(mock: ThreadedCluster) -> None:
    assert_type(mock.bootstrap, str)
    assert_type(mock.addresses, dict[int, str])
    assert_type(mock.join_isr("foo-0", 4), Partition)
    assert_type(mock.join_isr(("foo", 0), broker_id=4), Partition)
    assert_type(mock.run_command("failover 2"), list[Action])
    mock.stop_broker(2)
    mock.set_level(2, "kafka-2.3")
    rule = mock.fault(api="Metadata", error=41, steps_before=["failover self"], delay="50ms")
    assert_type(rule, ActiveFault)
    mock.fault(Fault(api=45, times=1))
    mock.fault(api=3, never_answer=True, when=lambda call: call.broker_id == 1)
    mock.wait_for_hit(rule, hits=2)
    mock.on(3)(metadata)

    @mock.on(3, times=1)
    def reply(call: Call) -> Mapping[str, Any]:
        return {"controllerId": call.version}

    assert_type(mock.faults, list[ActiveFault])


def data(mock: ThreadedCluster) -> None:
    assert_type(mock.produce("foo", key="k", value=b"v", headers={"a": None}), LoggedRecord)
    assert_type(mock.records("foo", committed=True), list[LoggedRecord])
    assert_type(mock.assert_produced("foo", value="v", times=1)[0].offset, int)
    assert_type(mock.committed("g"), dict[tuple[str, int], int])
    assert_type(mock.groups(), dict[str, GroupView])
    assert_type(mock.wait_for_group("g", state="Stable", members=2), GroupView)
    mock.assert_committed("g", {"foo-0": 3})
    mock.assert_committed("g", mock.committed("g"))
    mock.hold_replication("foo-0")
    mock.hold_replication(("foo", 0), broker=2)
    mock.set_offset("g", "foo-0", offset=3)
    mock.truncate("foo-0", "5")
    mock.throttle_client("c", "1s")
    assert_type(mock.expire_locks("g"), int)
    mock.fault(api="Fetch", group="g*", corrupt="crc")


async def coroutines(mock: ThreadedCluster, kafka: MockKafka) -> None:
    assert_type(await mock.aio.join_isr("foo-0", 4), Partition)
    assert_type(await mock.aio.wait_for_group("g", generation=1), GroupView)
    assert_type(await mock.aio.records("foo"), list[LoggedRecord])
    await kafka.aio.stop_broker(2)
    assert_type(await kafka.aio.wait_for(MetadataRequest), Request[MetadataRequest])


async def embedded() -> None:
    async with MockCluster(4, topics=["foo=1,2,3"], profile="kafka-2.4") as mock:
        assert_type(mock.fault(api=45, error="NOT_CONTROLLER", times=1), ActiveFault)
        assert_type(mock.journal.select(api="Metadata", direction="request"), list[Entry])
        mock.advance(500)
        mock.advance("500ms")
        assert_type(mock.delete_znode("/x"), None)
        assert_type(await mock.stop_broker(2), None)
    MockCluster.from_options(ClusterOptions(brokers=1))


def fixture(mock: MockKafka, factory: MockKafkaFactory) -> None:
    assert_type(mock.requests(MetadataRequest), Requests[MetadataRequest])
    assert_type(mock.requests(MetadataRequest)[0].body.topics is None, bool)
    assert_type(mock.wait_for(api=HeartbeatRequest, timeout=2).body.group_id, str)
    assert_type(mock.wait_for("Metadata", after=mock.journal.last_sequence), Request[Any])
    assert_type(mock.requests("Metadata", broker_id=1)[0].header.client_id, str | None)
    mock.assert_requested(45, times=1, version=0, client_id="admin")
    mock.assert_not_requested(MetadataRequest)
    mock.assert_order("ApiVersions", MetadataRequest, 45)
    assert_type(factory(6, topics=["foo=1,2,3"]), MockKafka)
    assert_type(factory(brokers=6), MockKafka)


def names(mock: ThreadedCluster) -> list[Callable[[int], Awaitable[None] | None]]:
    return [mock.stop_broker, mock.failover, mock.aio.stop_broker, mock.aio.failover]
