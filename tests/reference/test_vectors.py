"""Bytes made by Kafka's own classes.

Each was written by the generated class of Kafka 4.4.0 (kafka-clients, kafka-metadata and
kafka-group-coordinator from Maven Central, JDK 17): fields set through its setters, sized and
written through ``Message.size`` and ``Message.write`` into a ``ByteBufferAccessor``.
"""

import uuid
from functools import partial
from typing import Any

import pytest

from kproto import reference
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from kproto.schema.model import MessageSchema
from tests.support.roundtrip import assert_roundtrip
from tests.support.schemas import released

SCHEMAS = released()

ALTER: dict[str, Any] = {
    "timeout_ms": 60000,
    "topics": [
        {
            "name": "foo",
            "partitions": [
                {"partition_index": 0, "replicas": [4, 5, 6]},
                {"partition_index": 1, "replicas": None},
            ],
        }
    ],
}
FETCH: dict[str, Any] = {
    "cluster_id": "c",
    "replica_state": {"replica_id": 3, "replica_epoch": 5},
    "max_wait_ms": 500,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "isolation_level": 1,
    "session_id": 9,
    "session_epoch": 0,
    "topics": [
        {
            "topic_id": uuid.UUID(int=(1 << 64) + 2),
            "partitions": [
                {
                    "partition": 1,
                    "current_leader_epoch": 4,
                    "fetch_offset": 8,
                    "partition_max_bytes": 16,
                }
            ],
        }
    ],
    "unknown_tags": {5: b"", 300: b"\x09"},
}
MEMBER: dict[str, Any] = {
    "instance_id": "i",
    "rack_id": None,
    "client_id": "c",
    "client_host": "h",
    "subscribed_topic_names": ["a", "b"],
    "subscribed_topic_regex": None,
    "rebalance_timeout_ms": 1,
    "server_assignor": None,
}
CLASSIC = {
    "session_timeout_ms": 10,
    "supported_protocols": [{"name": "range", "metadata": b"\1\2\3"}],
}
PARTITION: dict[str, Any] = {
    "partition_id": 1,
    "topic_id": uuid.UUID(int=(1 << 64) + 2),
    "replicas": [1],
    "isr": [1],
    "leader": 1,
    "leader_epoch": 2,
    "partition_epoch": 3,
    "directories": [uuid.UUID(int=(3 << 64) + 4)],
    "eligible_leader_replicas": [],
    "last_known_elr": None,
}
HEADER = {
    "request_api_key": 45,
    "request_api_version": 1,
    "correlation_id": 7,
    "client_id": "acc\u00e9",
}

VECTORS = [
    pytest.param(
        "AlterPartitionReassignmentsRequest",
        1,
        {**ALTER, "allow_replication_factor_change": False},
        "0000ea60 00 02 04666f6f 03 00000000 04 000000040000000500000006 00 00000001 00 00 00 00",
        id="a field of a later version, and a null array",
    ),
    pytest.param(
        "AlterPartitionReassignmentsRequest",
        0,
        {**ALTER, "unknown_tags": {77: b"\1\2"}},
        "0000ea60 02 04666f6f 03 00000000 04 000000040000000500000006 00 00000001 00 00 00"
        "01 4d02 0102",
        id="an unknown tag",
    ),
    pytest.param(
        "RequestHeader",
        2,
        HEADER,
        "002d 0001 00000007 0005616363c3a9 00",
        id="the client id of a flexible header is not compact",
    ),
    pytest.param(
        "RequestHeader",
        2,
        {"request_api_key": 18, "request_api_version": 4, "correlation_id": -1, "client_id": None},
        "0012 0004 ffffffff ffff 00",
        id="a null client id",
    ),
    pytest.param(
        "FetchRequest",
        17,
        FETCH,
        "000001f4 00000001 00100000 01 00000009 00000000 02 00000000000000010000000000000002"
        "02 00000001 00000004 0000000000000008 ffffffff ffffffffffffffff 00000010 00 00"
        "01 01 04 00 02 0263 01 0d 00000003 0000000000000005 00 05 00 ac02 01 09",
        id="known and unknown tags in one order, one a struct",
    ),
    pytest.param(
        "DescribeTopicPartitionsRequest",
        0,
        {"topics": [{"name": "t"}], "response_partition_limit": 2000, "cursor": None},
        "02 0274 00 000007d0 ff 00",
        id="a null struct",
    ),
    pytest.param(
        "DescribeTopicPartitionsRequest",
        0,
        {
            "topics": [],
            "response_partition_limit": 2000,
            "cursor": {"topic_name": "t", "partition_index": 3},
        },
        "01 000007d0 01 0274 00000003 00 00",
        id="a nullable struct that is there",
    ),
    pytest.param(
        "ConsumerGroupMemberMetadataValue",
        0,
        MEMBER,
        "0269 00 0263 0268 03 0261 0262 00 00000001 00 00",
        id="a nullable struct in a tag, at its default, which is not null",
    ),
    pytest.param(
        "ConsumerGroupMemberMetadataValue",
        0,
        {**MEMBER, "classic_member_metadata": None},
        "0269 00 0263 0268 03 0261 0262 00 00000001 00 01 00 01 00",
        id="a nullable struct in a tag, null",
    ),
    pytest.param(
        "ConsumerGroupMemberMetadataValue",
        0,
        {**MEMBER, "classic_member_metadata": CLASSIC},
        "0269 00 0263 0268 03 0261 0262 00 00000001 00"
        "01 00 12 01 0000000a 02 0672616e6765 04010203 00 00",
        id="a nullable struct in a tag, set",
    ),
    pytest.param("MetadataRequest", 1, {"topics": None}, "ffffffff", id="null, not flexible"),
    pytest.param("MetadataRequest", 9, {"topics": None}, "00 01 00 00 00", id="null, flexible"),
    pytest.param("MetadataRequest", 0, {"topics": [{"name": "x"}]}, "00000001 000178", id="plain"),
    pytest.param(
        "PartitionRecord",
        2,
        PARTITION,
        "00000001 00000000000000010000000000000002 02 00000001 02 00000001 01 01"
        "00000001 00000002 00000003 02 00000000000000030000000000000004 01 01 01 01",
        id="an empty array in a tag whose default is null",
    ),
]


@pytest.mark.parametrize(("name", "version", "tree", "data"), VECTORS)
@pytest.mark.requirement("C-06")
def test_bytes_of_kafka(name: str, version: int, tree: dict[str, Any], data: str) -> None:
    schema = SCHEMAS[name]
    expected = bytes.fromhex(data)
    assert reference.encode(schema, version, tree).hex() == expected.hex()
    assert_roundtrip(
        reference.decode(schema, version, expected),
        encode=partial(reference.encode, schema, version),
        decode=partial(reference.decode, schema, version),
        data=expected,
    )
    assert _within(tree, reference.decode(schema, version, expected))


def _within(part: Any, whole: Any) -> bool:
    """Whether ``whole`` says all that ``part`` says."""
    if isinstance(part, dict):
        return all(key in whole and _within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(_within, part, whole))
    return bool(part == whole)


# What the same classes refused to write, with their texts.
@pytest.mark.parametrize(
    ("name", "version", "tree", "text"),
    [
        (
            "AlterPartitionReassignmentsRequest",
            0,
            {**ALTER, "allow_replication_factor_change": False},
            "Attempted to write a non-default allowReplicationFactorChange at version 0",
        ),
        ("FetchRequest", 12, FETCH, "Attempted to write a non-default replicaState at version 12"),
        (
            "MetadataRequest",
            8,
            {"topics": [], "unknown_tags": {1: b"\1"}},
            "Tagged fields were set, but version 8 of this message does not support them.",
        ),
    ],
)
@pytest.mark.requirement("C-04")
def test_what_a_version_lacks(name: str, version: int, tree: dict[str, Any], text: str) -> None:
    with pytest.raises(UnsupportedVersionError) as refused:
        reference.encode(SCHEMAS[name], version, tree)
    assert str(refused.value) == text


# What the same classes refused to read, with their texts; where ours begin is test_errors' matter.
@pytest.mark.parametrize(
    ("name", "version", "data", "text"),
    [
        (
            "ListGroupsRequest",
            4,
            "020000",
            "non-nullable field statesFilter element was serialized as null",
        ),
        ("ListGroupsRequest", 4, "0000", "non-nullable field statesFilter was serialized as null"),
        (
            "ListGroupsRequest",
            4,
            "0281800400",
            "string field statesFilter element had invalid length 65536",
        ),
        (
            "FetchRequest",
            12,
            "ffffffff 00000000 00000000 00000000 00 00000000 00000000 01 01 01 01 01 00",
            "Tag 1 is not valid for version 12",
        ),
    ],
)
@pytest.mark.requirement("C-04")
def test_texts_of_kafka(name: str, version: int, data: str, text: str) -> None:
    with pytest.raises(DecodeError) as refused:
        reference.decode(SCHEMAS[name], version, bytes.fromhex(data))
    assert refused.value.problem == text


# What they read all the same: the varint of the count is a byte too long, the bool is 2.
@pytest.mark.parametrize(
    ("name", "version", "data", "again"),
    [
        ("ListGroupsRequest", 4, "810000", "0100"),
        ("AlterPartitionReassignmentsRequest", 1, "0000ea60020100", "0000ea60010100"),
    ],
)
def test_read_but_never_written(name: str, version: int, data: str, again: str) -> None:
    schema = SCHEMAS[name]
    tree = reference.decode(schema, version, bytes.fromhex(data))
    assert reference.encode(schema, version, tree).hex() == again


def test_an_absent_field_decodes_to_a_fresh_default() -> None:
    schema: MessageSchema = SCHEMAS["FetchRequest"]
    body = reference.encode(schema, 4, {"max_wait_ms": 1})
    first, second = (reference.decode(schema, 4, body) for _ in range(2))
    assert first["replica_state"] == {"replica_id": -1, "replica_epoch": -1, "unknown_tags": {}}
    assert first["forgotten_topics_data"] == []
    first["replica_state"]["replica_id"] = 9
    first["forgotten_topics_data"].append(1)
    assert second == reference.decode(schema, 4, body)


def test_null_where_it_is_not_allowed_is_not_written() -> None:
    with pytest.raises(EncodeError, match="non-nullable field topics is null"):
        reference.encode(SCHEMAS["MetadataRequest"], 0, {"topics": None})
