"""A capture of an incident that was made up: seven things go wrong at once."""

from __future__ import annotations

from typing import Any, Final

import kproto
from kproto.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ProduceRequest,
    ProduceResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.wiredump.unread_captures import START_NS, Line, merged

__all__ = ["PLANTED", "Client", "incident", "quiet"]

PLANTED: Final = (
    "group orders rebalanced 8 times",
    "broker 10.0.0.2:9093 answered 10 of 10 fetches",
    "NOT_LEADER_OR_FOLLOWER for payments-3 from broker 10.0.0.2:9092: 6 responses to Produce",
    "client greedy was throttled in 5 responses, for 1500 ms in all",
    "between 10.0.0.1:50005 and 10.0.0.2:9092 20000 bytes were never captured",
    "client ancient sends Fetch in version 2",
    "INVALID_PRODUCER_EPOCH from broker 10.0.0.2:9092: 1 responses to InitProducerId",
)
"""How the findings begin that the incident must have."""


class Client:
    """One connection, on which each request waits for its response."""

    def __init__(self, number: int, client_id: str, port: int = 9092) -> None:
        self.line = Line(port, client_port=50_000 + number, start_ns=START_NS + number * 10**6)
        self._client_id = client_id
        self._number = 0

    def request(
        self, request: tuple[type[Any], dict[str, Any]], response: tuple[type[Any], dict[str, Any]],
        version: int, seconds: int = 0,
    ) -> None:  # fmt: skip
        """Exchange bodies, given as JSON."""
        self._number += 1
        bodies = [kind.from_json(json, version) for kind, json in (request, response)]
        frame = kproto.encode_request(
            bodies[0], api_version=version, correlation_id=self._number, client_id=self._client_id
        )
        self.line.send(0, frame)
        self.line.wait(seconds)
        answer = kproto.encode_response(bodies[1], api_version=version, correlation_id=self._number)
        self.line.send(1, answer)

    def fetch(self, version: int, seconds: int = 0) -> None:
        request: dict[str, Any] = {
            "replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1 << 20,
            "isolationLevel": 0, "topics": [],
        }  # fmt: skip
        response: dict[str, Any] = {"throttleTimeMs": 0, "responses": []}
        if version < 4:
            del request["maxBytes"], request["isolationLevel"]
        self.request((FetchRequest, request), (FetchResponse, response), version, seconds)

    def produce(self, error: int = 0, throttled: int = 0) -> None:
        request = {
            "transactionalId": None, "acks": -1, "timeoutMs": 1000,
            "topicData": [
                {"name": "payments", "partitionData": [{"index": 3, "records": None}]}
            ],
        }  # fmt: skip
        part = {"index": 3, "errorCode": error, "baseOffset": 0, "logAppendTimeMs": -1}
        response = {
            "responses": [{"name": "payments", "partitionResponses": [part]}],
            "throttleTimeMs": throttled,
        }
        self.request((ProduceRequest, request), (ProduceResponse, response), 3)

    def heartbeat(self) -> None:
        request = {"groupId": "calm", "generationId": 1, "memberId": "m"}
        response = {"throttleTimeMs": 0, "errorCode": 0}
        self.request((HeartbeatRequest, request), (HeartbeatResponse, response), 1)

    def init_producer_id(self, error: int) -> None:
        request = {"transactionalId": "ledger", "transactionTimeoutMs": 1000}
        response = {"throttleTimeMs": 0, "errorCode": error, "producerId": -1, "producerEpoch": -1}
        self.request((InitProducerIdRequest, request), (InitProducerIdResponse, response), 1)

    def rebalance(self, generation: int, seconds: int = 0) -> None:
        """``seconds`` are the time that JoinGroup waits."""
        join = {
            "groupId": "orders", "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 60_000,
            "memberId": "m", "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": ""}],
        }  # fmt: skip
        joined = {
            "throttleTimeMs": 0, "errorCode": 0, "generationId": generation,
            "protocolName": "range", "leader": "m", "memberId": "m",
            "members": [{"memberId": "m", "metadata": ""}],
        }  # fmt: skip
        self.request((JoinGroupRequest, join), (JoinGroupResponse, joined), 2, seconds)
        sync = {
            "groupId": "orders", "generationId": generation, "memberId": "m",
            "assignments": [{"memberId": "m", "assignment": ""}],
        }  # fmt: skip
        synced = {"throttleTimeMs": 0, "errorCode": 0, "assignment": ""}
        self.request((SyncGroupRequest, sync), (SyncGroupResponse, synced), 1)


def quiet() -> list[Client]:
    """Clients that have nothing to complain about."""
    clients = [Client(number, f"calm-{number}") for number in range(10, 13)]
    for client in clients:
        for _ in range(30):
            client.heartbeat()
            client.fetch(4)
            client.produce()
    return clients


def incident() -> bytes:
    member, consumer, producer, greedy, ancient, lossy, fenced = (
        Client(number, name, port)
        for number, (name, port) in enumerate((
            ("member", 9092), ("consumer", 9093), ("producer", 9092), ("greedy", 9092),
            ("ancient", 9092), ("lossy", 9092), ("fenced", 9092),
        ))
    )  # fmt: skip
    for generation in range(1, 9):
        member.rebalance(generation)
        member.line.wait(5)
    for _ in range(10):
        consumer.fetch(4, seconds=2)
        ancient.fetch(2)
    for _ in range(6):
        producer.produce(error=6)
    for _ in range(5):
        greedy.produce(throttled=300)
    lossy.produce()
    lossy.line.skip(0, 20_000)
    lossy.produce()
    fenced.init_producer_id(error=47)
    clients = [member, consumer, producer, greedy, ancient, lossy, fenced, *quiet()]
    return merged(*(client.line for client in clients))
