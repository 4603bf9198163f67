"""Misuses of the public API that type checkers must catch.

The comment ``# error: MYPY PYRIGHT`` names the code that each checker reports on its line, without
pyright's ``report``.
"""

from kproto import decode_request, encode_request, load_dialect
from kproto.client import Admin, Connection
from kproto.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from mockbroker import MockCluster
from mockbroker.running.fixture import MockKafka, MockKafkaFactory
from mockbroker.running.threaded import ThreadedCluster


async def client(connection: Connection, admin: Admin) -> None:
    heartbeat = await connection.request(HeartbeatRequest(group_id="g"))
    print(heartbeat.error)  # error: attr-defined AttributeAccessIssue
    wrong: HeartbeatResponse
    wrong = await connection.request(MetadataRequest())  # error: arg-type AssignmentType
    print(wrong)
    await connection.request(HeartbeatResponse())  # error: call-overload CallIssue
    produced = await connection.request(ProduceRequest(acks=0))
    print(produced.responses)  # error: union-attr OptionalMemberAccess
    admin.alter_partition_reassignments({"foo-0": [1]})  # error: dict-item ArgumentType


def messages(frame: bytes) -> None:
    HeartbeatRequest(group="g")  # error: call-arg CallIssue
    HeartbeatRequest(generation_id="1")  # error: arg-type ArgumentType
    response = MetadataResponse()
    encode_request(response, api_version=1, correlation_id=1)  # error: arg-type ArgumentType
    header, _body = decode_request(frame)
    print(header.api_key)  # error: attr-defined AttributeAccessIssue
    load_dialect("schemas", bases="kafka")  # error: call-arg CallIssue


def threaded(mock: ThreadedCluster) -> None:
    mock.joins_isr("foo-0", 4)  # error: attr-defined AttributeAccessIssue
    mock.join_isr("foo-0", 4.0)  # error: arg-type ArgumentType
    mock.produce("foo", "value")  # error: call-arg CallIssue
    mock.hold_replication(7)  # error: arg-type ArgumentType
    mock.fault(api=1, corrupt="all")  # error: arg-type ArgumentType
    mock.fault(api=45, eror=41)  # error: call-arg CallIssue
    mock.fault(api=45, error_at="everywhere")  # error: arg-type ArgumentType
    ThreadedCluster(broker=3)  # error: call-arg CallIssue
    print(mock.bootstrap.servers)  # error: attr-defined AttributeAccessIssue


async def embedded(mock: MockCluster) -> None:
    mock.fault(api=45, times="2")  # error: arg-type ArgumentType
    mock.fault(steps_before="failover 2")  # error: arg-type ArgumentType


async def fixture(mock: MockKafka, factory: MockKafkaFactory) -> None:
    mock.assert_requested("Metadata", time=1)  # error: call-overload CallIssue
    request = mock.wait_for(MetadataRequest)
    print(request.body.topic)  # error: attr-defined AttributeAccessIssue
    print(mock.requests()[0].versions)  # error: attr-defined AttributeAccessIssue
    print((await mock.aio.failover(2)).leader)  # error: attr-defined AttributeAccessIssue
    factory(broker=3)  # error: call-arg CallIssue
