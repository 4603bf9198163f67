"""Fetch requests and records, short to write, for the tests of this folder."""

import uuid
from collections.abc import Awaitable, Mapping
from typing import Any

from kproto.messages.fetch_response import FetchResponse, PartitionData
from kproto.records import Record, RecordBatches, build_batch
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import read_header
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of

FOO = ("foo", 0)
TopicPartition = tuple[str, int]


def append(cluster: Cluster, *values: bytes, tp: TopicPartition = FOO, **batch: Any) -> int:
    """Append a batch of records with these values and return the offset of the first."""
    data = build_batch([Record(timestamp=1, value=value) for value in values], **batch)
    return cluster.logs.append(tp, data, read_header(data))


def request(
    offsets: Mapping[TopicPartition, int | Mapping[str, Any]],
    *,
    ids: Mapping[str, uuid.UUID] | None = None,
    session: tuple[int, int] = (0, -1),
    forget: tuple[TopicPartition, ...] = (),
    replica_id: int = -1,
    state_replica_id: int = -1,
    partition_max_bytes: int = 1 << 20,
    **fields: Any,
) -> Any:
    """A request for partitions from these offsets, or with these fields. ``ids``: by topic id."""
    topics: list[Any] = []
    for (name, index), given in offsets.items():
        rest = {"fetch_offset": given} if isinstance(given, int) else dict(given)
        row = {**({"partition": index, "partition_max_bytes": partition_max_bytes, **rest})}
        if ids is None:
            topics.append({"topic": name, "partitions": [row]})
        else:
            topics.append({"topic_id": ids[name], "partitions": [row]})
    forgotten = [
        {"topic": name, "partitions": [index]}
        if ids is None
        else {"topic_id": ids[name], "partitions": [index]}
        for name, index in forget
    ]
    return request_of(
        "Fetch",
        topics=topics,
        forgotten_topics_data=forgotten,
        session_id=session[0],
        session_epoch=session[1],
        replica_id=replica_id,
        replica_state={"replica_id": state_replica_id},
        **{"max_wait_ms": 0, "min_bytes": 1, **fields},
    )


def ask(
    broker: DirectBroker,
    offsets: Mapping[TopicPartition, int | Mapping[str, Any]],
    version: int = 12,
    *,
    broker_id: int = 1,
    **fields: Any,
) -> FetchResponse:
    """The answer to a request, which must come at once."""
    answer = broker.ask(request(offsets, **fields), version, broker_id=broker_id)
    assert isinstance(answer, FetchResponse)
    return answer


def rows(answer: FetchResponse) -> dict[tuple[str, int], PartitionData]:
    """The partitions of an answer by name and index, in its order."""
    return {
        (topic.topic, row.partition_index): row
        for topic in answer.responses
        for row in topic.partitions
    }


def row(answer: FetchResponse) -> PartitionData:
    """The only partition of an answer."""
    (topic,) = answer.responses
    (only,) = topic.partitions
    return only


def values(found: PartitionData) -> list[bytes | None]:
    """The values of the records, those before the requested offset included."""
    return [each.value for batch in RecordBatches(found.records or b"") for each in batch]


def begin(broker: DirectBroker, body: Any, version: int = 12) -> Awaitable[Any] | bytes:
    """What the broker makes of a request that may have to wait."""
    outcome = broker.send(
        broker.codec.encode_request(body, api_version=version, correlation_id=1, client_id="test")
    )
    assert isinstance(outcome, bytes | Awaitable)
    return outcome


def decoded(broker: DirectBroker, frame: bytes, version: int = 12) -> FetchResponse:
    """The body of a frame that ``begin`` gave."""
    _, body = broker.codec.decode_response(frame, api_key=1, api_version=version)
    assert isinstance(body, FetchResponse)
    return body
