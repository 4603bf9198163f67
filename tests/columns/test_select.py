"""What may be chosen, what it is called and typed, and what is said of the rest."""

from typing import Any

import pytest

from kproto.columns import Field, select
from kproto.errors import SelectionError, UnknownNameError, UnsupportedVersionError
from kproto.messages import (
    ApiVersionsResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupMemberMetadataValue,
    FetchResponse,
    HeartbeatRequest,
    MetadataRequest,
    MetadataResponse,
)


def test_the_deepest_array_is_the_row():
    paths = ["topics.partitions.replica_nodes", "topics.name", "throttle_time_ms"]
    selection = select(MetadataResponse, 12, paths)
    assert selection.row == "topics.partitions"
    assert selection.fields == (
        Field(paths[0], paths[0], "array", "int32", False),
        Field(paths[1], paths[1], "string", None, True),  # from version 12 on
        Field(paths[2], paths[2], "int32", None, False),
    )
    assert [field.format for field in selection.fields] == ["+l", "u", "i"]
    assert select(MetadataResponse, 12, ["topics.name"]).row == "topics"
    assert select(MetadataResponse, 12, ["cluster_id"]).row == ""
    assert "MetadataResponse v12: topics.name" in repr(
        select(MetadataResponse, 12, ["topics.name"])
    )


def test_json_names_and_names_of_ones_own():
    chosen = {"topic": "topics.name", "index": "topics.partitions.partitionIndex"}
    selection = select(MetadataResponse, 9, chosen)
    assert [field.name for field in selection.fields] == ["topic", "index"]
    assert selection.fields[1].path == "topics.partitions.partition_index"
    table = selection.read([])
    assert list(table.to_pydict()) == ["frame", "topic", "index"]
    assert table["topic"].name == "topic"
    with pytest.raises(
        UnknownNameError, match=r"no column 'name'; the columns are frame, topic, index"
    ):
        table["name"]


@pytest.mark.parametrize(
    ("version", "paths", "error", "text"),
    [
        (9, ["topics.nam"], UnknownNameError,
         "topics of MetadataResponse has no field 'nam'; it has error_code, name, topic_id, "),
        (9, ["clusterid"], UnknownNameError, "MetadataResponse has no field 'clusterid'; it has "),
        (9, [""], UnknownNameError, "MetadataResponse has no field ''"),
        (9, ["topics"], SelectionError,
         "topics is an array of structs: select from its fields topics.error_code, topics.name, "),
        (9, ["cluster_id.length"], SelectionError,
         "cluster_id is string: it has no field 'length'"),
        (9, ["topics.partitions.isr_nodes.x"], SelectionError,
         "topics.partitions.isr_nodes is an array of int32: it has no field 'x'"),
        (9, ["topics.partitions.leader_id", "cluster_id", "brokers.host"], SelectionError,
         "brokers and topics.partitions of MetadataResponse are arrays side by side"),
        (9, [], SelectionError, "no field was selected"),
        (9, ["topics.name", "topics.name"], SelectionError, "topics.name was selected twice"),
        (9, ["cluster_id", "clusterId"], SelectionError, "cluster_id was selected twice"),
        (9, {"frame": "cluster_id"}, SelectionError, "frame is always a column"),
        (99, ["cluster_id"], UnsupportedVersionError, "MetadataResponse has no version 99"),
    ],
)  # fmt: skip
def test_what_cannot_be_chosen(version, paths, error, text):
    with pytest.raises(error) as caught:
        select(MetadataResponse, version, paths)
    assert text in str(caught.value)


def test_a_struct_is_no_column_and_its_fields_are():
    with pytest.raises(SelectionError, match="is a struct: select from its fields"):
        select(ConsumerGroupMemberMetadataValue, 0, ["classic_member_metadata"])
    path = "classic_member_metadata.session_timeout_ms"
    (field,) = select(ConsumerGroupMemberMetadataValue, 0, [path]).fields
    assert (field.kind, field.nullable) == ("int32", True)  # the struct may be null


def test_one_path_is_not_a_list_of_paths():
    with pytest.raises(TypeError, match="must be a list"):
        select(HeartbeatRequest, 4, "group_id")


def test_tagged_absent_and_null():
    """Defaults as decoding has them, whatever the reason that the bytes hold no value."""
    paths = ["supported_features.name", "error_code", "finalized_features_epoch"]
    assert select(ApiVersionsResponse, 0, paths).read([ApiVersionsResponse().encode(0)]).rows == 0
    epoch = select(ApiVersionsResponse, 0, paths[1:]).read([ApiVersionsResponse().encode(0)])
    assert epoch.to_pydict() == {"frame": [0], "error_code": [0], "finalized_features_epoch": [-1]}

    partition = FetchResponse.STRUCTS["PartitionData"]
    topic = FetchResponse.STRUCTS["FetchableTopicResponse"]
    leader = FetchResponse.STRUCTS["LeaderIdAndEpoch"]
    whole = FetchResponse(
        responses=[
            topic(
                partitions=[
                    partition(records=None),
                    partition(records=b"r", current_leader=leader(leader_id=7)),
                ]
            )
        ]
    )
    prefix = "responses.partitions."
    table = select(
        FetchResponse, 13, [prefix + "records", prefix + "current_leader.leader_id"]
    ).read([whole.encode(13)])
    assert [column.to_list() for column in table] == [[None, b"r"], [-1, 7]]
    older = FetchResponse(responses=[topic(partitions=[partition(), partition()])])
    old = select(FetchResponse, 4, [prefix + "current_leader.leader_id"]).read([older.encode(4)])
    assert old.columns[0].to_list() == [-1, -1]

    member = ConsumerGroupHeartbeatRequest(subscribed_topic_names=["a", ""])
    names = select(ConsumerGroupHeartbeatRequest, 0, ["subscribed_topic_names", "rack_id"])
    found = names.read([member.encode(0), ConsumerGroupHeartbeatRequest().encode(0)])
    assert found["subscribed_topic_names"].to_list() == [["a", ""], None]
    assert found["rack_id"].to_list() == [None, None]


def test_an_array_that_is_null_has_no_rows():
    """As an empty one: what was chosen above it is then seen nowhere."""
    selection = select(MetadataRequest, 9, ["topics.name", "allow_auto_topic_creation"])
    none_and_empty: tuple[Any, ...] = (None, [])
    bodies = [MetadataRequest(topics=topics).encode(9) for topics in none_and_empty]
    assert selection.read(bodies).rows == 0
