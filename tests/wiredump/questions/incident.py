"""Captures of incidents that were made up: seven things go wrong at once, each once or several
times, among clients that have nothing to complain about."""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

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
    OffsetCommitRequest,
    OffsetCommitResponse,
    ProduceRequest,
    ProduceResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.wiredump.unread_captures import START_NS, Line, merged

__all__ = ["Client", "Incident", "incident", "quiet"]

_ERRORS: Final = {47: "INVALID_PRODUCER_EPOCH", 90: "PRODUCER_FENCED"}


class Incident(NamedTuple):
    """``planted`` has, for each thing that goes wrong, how findings about it begin: one of these
    must be among the first ten."""

    capture: bytes
    planted: tuple[list[str], ...]


class Client:
    """One connection, on which each request waits for its response."""

    def __init__(
        self, number: int, client_id: str, port: int = 9092, start_ns: int = START_NS
    ) -> None:
        self.port = 50_000 + number
        self.line = Line(port, client_port=self.port, start_ns=start_ns + number * 10**6)
        self._client_id = client_id
        self._number = 0

    def request(
        self, request: tuple[type[Any], dict[str, Any]], response: tuple[type[Any], dict[str, Any]],
        version: int, seconds: float = 0, *, answered: bool = True,
    ) -> None:  # fmt: skip
        """Exchange bodies, given as JSON, or send the request alone."""
        self._number += 1
        bodies = [kind.from_json(json, version) for kind, json in (request, response)]
        frame = kproto.encode_request(
            bodies[0], api_version=version, correlation_id=self._number, client_id=self._client_id
        )
        self.line.send(0, frame)
        self.line.wait(seconds)
        if not answered:
            return
        answer = kproto.encode_response(bodies[1], api_version=version, correlation_id=self._number)
        self.line.send(1, answer)

    def fetch(
        self, version: int, seconds: float = 0, *, offset: int = -1, end: int = 0,
        records: str | None = None,
    ) -> None:  # fmt: skip
        """Fetch payments-0 from an offset, or nothing."""
        request: dict[str, Any] = {
            "replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1 << 20,
            "isolationLevel": 0, "topics": [],
        }  # fmt: skip
        response: dict[str, Any] = {"throttleTimeMs": 0, "responses": []}
        if offset >= 0:
            wanted = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
            request["topics"] = [{"topic": "payments", "partitions": [wanted]}]
            found = {
                "partitionIndex": 0, "errorCode": 0, "highWatermark": end, "lastStableOffset": end,
                "abortedTransactions": [], "records": records,
            }  # fmt: skip
            response["responses"] = [{"topic": "payments", "partitions": [found]}]
        if version < 4:
            del request["isolationLevel"]
        if version < 3:
            del request["maxBytes"]
        self.request((FetchRequest, request), (FetchResponse, response), version, seconds)

    def produce(self, error: int = 0, throttled: int = 0, partition: int = 0) -> None:
        request = {
            "transactionalId": None, "acks": -1, "timeoutMs": 1000,
            "topicData": [
                {"name": "payments", "partitionData": [{"index": partition, "records": None}]}
            ],
        }  # fmt: skip
        part = {"index": partition, "errorCode": error, "baseOffset": 0, "logAppendTimeMs": -1}
        response = {
            "responses": [{"name": "payments", "partitionResponses": [part]}],
            "throttleTimeMs": throttled,
        }
        self.request((ProduceRequest, request), (ProduceResponse, response), 3)

    def commit(self, group: str, offset: int) -> None:
        part = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}
        request = {
            "groupId": group, "generationIdOrMemberEpoch": 1, "memberId": "m",
            "retentionTimeMs": -1, "topics": [{"name": "payments", "partitions": [part]}],
        }  # fmt: skip
        done = [{"name": "payments", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]
        bodies = (OffsetCommitRequest, request), (OffsetCommitResponse, {"topics": done})
        self.request(*bodies, 2)

    def heartbeat(self, error: int = 0, seconds: float = 0, *, answered: bool = True) -> None:
        request = {"groupId": "calm", "generationId": 1, "memberId": "m"}
        response = {"throttleTimeMs": 0, "errorCode": error}
        bodies = (HeartbeatRequest, request), (HeartbeatResponse, response)
        self.request(*bodies, 1, seconds, answered=answered)

    def init_producer_id(self, error: int) -> None:
        request = {"transactionalId": "ledger", "transactionTimeoutMs": 1000}
        response = {"throttleTimeMs": 0, "errorCode": error, "producerId": -1, "producerEpoch": -1}
        self.request((InitProducerIdRequest, request), (InitProducerIdResponse, response), 1)

    def rebalance(self, generation: int, seconds: float = 0, group: str = "orders") -> None:
        """``seconds`` are the time that JoinGroup waits."""
        join = {
            "groupId": group, "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 60_000,
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
            "groupId": group, "generationId": generation, "memberId": "m",
            "assignments": [{"memberId": "m", "assignment": ""}],
        }  # fmt: skip
        synced = {"throttleTimeMs": 0, "errorCode": 0, "assignment": ""}
        self.request((SyncGroupRequest, sync), (SyncGroupResponse, synced), 1)


def quiet(rng: random.Random, first: int = 0) -> list[Client]:
    """Clients that have nothing to complain about: long polls, a few rebalances and errors that
    clients handle by themselves, a segment that was sent again."""
    clients = [Client(first + each, f"calm-{each}") for each in range(rng.randint(1, 5))]
    for client in clients:
        for _ in range(rng.randint(1, 30)):
            client.heartbeat(error=27 if rng.random() < 0.02 else 0)
            client.fetch(4, seconds=rng.choice((0, 0.3, 0.49)))
            client.produce(partition=rng.randrange(3))
        for generation in range(rng.randrange(4)):
            client.rebalance(generation + 1, rng.randrange(50), group=f"calm-{client.port}")
        client.line.again(rng.randrange(2), b"x" * rng.randint(2, 50), rng.randint(50, 60))
    return clients


def incident(seed: object) -> Incident:
    rng = random.Random(f"{seed} incident")
    leader, slow, other = rng.sample(range(9093, 9100), 3)  # the quiet ones use 9092
    clients = quiet(rng, 100)
    planted: tuple[list[str], ...] = tuple([] for _ in range(7))

    def client(name: str, broker: int) -> Client:
        clients.append(Client(len(clients), name, broker))
        return clients[-1]

    for number in range(rng.randint(1, 4)):
        member, times, pause = client("member", other), rng.randint(5, 20), rng.randint(1, 30)
        for generation in range(1, times + 1):
            member.rebalance(generation, group=f"orders-{number}")
            member.line.wait(pause)
        planted[0].append(f"group orders-{number} rebalanced {times} times")
    consumer, late, soon = client("consumer", slow), rng.randint(3, 30), rng.randint(0, 20)
    for _ in range(soon):
        consumer.fetch(4)
    for _ in range(late):
        consumer.fetch(4, seconds=rng.uniform(0.8, 5))
    planted[1].append(f"broker 10.0.0.2:{slow} answered {late} of {late + soon} fetches")
    for partition in range(rng.randint(1, 12)):
        producer, times = client("producer", leader), rng.randint(3, 20)
        for _ in range(times):
            producer.produce(error=6, partition=partition)
        failed = f"payments-{partition} from broker 10.0.0.2:{leader}: {times} responses to Produce"
        planted[2].append(f"NOT_LEADER_OR_FOLLOWER for {failed}")
    for number in range(rng.randint(1, 12)):
        greedy, times, wait = (
            client(f"greedy-{number}", other),
            rng.randint(1, 9),
            rng.randint(1, 9),
        )
        for _ in range(times):
            greedy.produce(throttled=100 * wait)
        throttled = f"throttled in {times} responses, for {100 * wait * times} ms in all"
        planted[3].append(f"client greedy-{number} was {throttled}")
    for _ in range(rng.randint(1, 3)):
        lossy, size = client("lossy", other), rng.randint(1_000, 100_000)
        lossy.produce()
        lossy.line.skip(0, size)
        lossy.produce()
        ends = f"10.0.0.1:{lossy.port} and 10.0.0.2:{other}"
        planted[4].append(f"between {ends} {size} bytes were never captured")
    for number in range(rng.randint(1, 5)):
        version = rng.randint(1, 3)
        client(f"ancient-{number}", other).fetch(version)
        planted[5].append(f"client ancient-{number} sends Fetch in version {version}")
    for error in rng.sample(sorted(_ERRORS), rng.randint(1, 2)):
        client("fenced", other).init_producer_id(error)
        responses = f"broker 10.0.0.2:{other}: 1 responses to InitProducerId"
        planted[6].append(f"{_ERRORS[error]} from {responses}")
    return Incident(merged(*(each.line for each in clients)), planted)
