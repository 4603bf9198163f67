"""Values a schema cannot carry: refused with the path, whichever way they are wrong."""

from typing import Any

import pytest

from kproto.errors import EncodeError, UnsupportedVersionError
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    HeartbeatRequest,
    MetadataRequest,
    ReassignablePartition,
    ReassignableTopic,
)


def alter(**partition: Any) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="foo", partitions=[ReassignablePartition(**partition)])]
    )


@pytest.mark.parametrize(
    ("message", "version", "path"),
    [
        (alter(partition_index="0"), 0, "topics[0].partitions[0].partition_index"),
        (alter(partition_index=2**31), 0, "topics[0].partitions[0].partition_index"),
        (alter(partition_index=None), 0, "topics[0].partitions[0].partition_index"),
        (alter(replicas=[1, None]), 0, "topics[0].partitions[0].replicas[1]"),
        (alter(replicas="12"), 0, "topics[0].partitions[0].replicas"),
        (AlterPartitionReassignmentsRequest(topics=None), 0, "topics"),
        (AlterPartitionReassignmentsRequest(topics=[{"name": "foo"}]), 0, "topics[0]"),
        (AlterPartitionReassignmentsRequest(allow_replication_factor_change=None), 1,
         "allow_replication_factor_change"),
        (HeartbeatRequest(group_id=None), 4, "group_id"),
        (HeartbeatRequest(group_id=b"g"), 4, "group_id"),
        (HeartbeatRequest(group_id="g" * 32768), 4, "group_id"),
        (HeartbeatRequest(group_id="g" * 32768), 0, "group_id"),
        (HeartbeatRequest(group_id="\ud800"), 4, "group_id"),
        (DeleteTopicsRequest(topic_names="abc"), 1, "topic_names"),
        (HeartbeatRequest(unknown_tags={-1: b""}), 4, "unknown_tags"),
        (HeartbeatRequest(unknown_tags={1: "text"}), 4, "unknown_tags"),
    ],
)  # fmt: skip
def test_wrong_values(message: Any, version: int, path: str) -> None:
    with pytest.raises(EncodeError) as caught:
        message.encode(version)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("message", "version", "text"),
    [
        (
            AlterPartitionReassignmentsRequest(allow_replication_factor_change=False), 0,
            "Attempted to write a non-default allowReplicationFactorChange at version 0",
        ),
        (
            MetadataRequest(allow_auto_topic_creation=False), 3,
            "Attempted to write a non-default allowAutoTopicCreation at version 3",
        ),
        (
            HeartbeatRequest(unknown_tags={3: b"x"}), 3,
            "Tagged fields were set, but version 3 of this message does not support them.",
        ),
        (HeartbeatRequest(), 99, "HeartbeatRequest has no version 99; its versions are 0-4"),
    ],
)  # fmt: skip
@pytest.mark.requirement("C-04")
def test_versions_that_lack_something(message: Any, version: int, text: str) -> None:
    """Requirement C-04: Java's texts."""
    with pytest.raises(UnsupportedVersionError) as caught:
        message.encode(version)
    assert str(caught.value) == text


@pytest.mark.requirement("C-04")
def test_ignorable_fields_are_dropped() -> None:
    request = CreateTopicsRequest(timeout_ms=5, validate_only=False)
    assert CreateTopicsRequest.decode(request.encode(0), 0) == request
    heartbeat = HeartbeatRequest(group_id="g", group_instance_id=None)
    assert heartbeat.encode(0) == HeartbeatRequest(group_id="g").encode(0)
