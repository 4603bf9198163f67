"""JSON as Kafka's JsonConverter has it; the oracle compares every message, this pins the rules."""

import json
import math
import uuid
from typing import Any

import pytest

from kproto.codec.classes import make_message_class
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsResponse,
    ConsumerProtocolSubscription,
    MetadataResponse,
)
from kproto.messages.metadata_response import MetadataResponseTopic
from kproto.schema.load import parse_message


def test_text_is_compact_and_in_field_order() -> None:
    request = AlterPartitionReassignmentsRequest(topics=[])
    assert request.to_json(1) == (
        '{"timeoutMs":60000,"allowReplicationFactorChange":true,"topics":[]}'
    )
    assert request.to_json(0) == '{"timeoutMs":60000,"topics":[]}'


def test_uuid_and_bytes_have_two_alphabets() -> None:
    topic = MetadataResponseTopic(name="t", topic_id=uuid.UUID(int=2**128 - 1))
    value = MetadataResponse(topics=[topic]).to_json_value(12)
    assert value["topics"][0]["topicId"] == "_____________________w"
    subscription = ConsumerProtocolSubscription(user_data=b"\xff\xfe")
    assert subscription.to_json_value(0)["userData"] == "//4="
    assert ConsumerProtocolSubscription.from_json(subscription.to_json(0), 0) == subscription


def test_tagged_fields_are_left_out_at_their_default() -> None:
    assert "finalizedFeaturesEpoch" not in ApiVersionsResponse().to_json_value(3)
    given = ApiVersionsResponse(finalized_features_epoch=4)
    assert given.to_json_value(3)["finalizedFeaturesEpoch"] == 4
    assert ApiVersionsResponse.from_json(given.to_json(3), 3) == given


@pytest.mark.parametrize(
    ("data", "path", "text"),
    [
        ({"topics": []}, "timeoutMs",
         "unable to locate field 'timeoutMs', which is mandatory in version 0"),
        ({"timeoutMs": "5", "topics": []}, "timeoutMs", "is not int32"),
        ({"timeoutMs": True, "topics": []}, "timeoutMs", "is not int32"),
        ({"timeoutMs": 2**31, "topics": []}, "timeoutMs", "is not int32"),
        ({"timeoutMs": 1, "topics": None}, "topics", "is null"),
        ({"timeoutMs": 1, "topics": {}}, "topics", "expected an array, got an object"),
        ({"timeoutMs": 1, "topics": [3]}, "topics[0]", "expected an object, got a number"),
        ({"timeoutMs": 1, "topics": [], "typo": 1}, "", "has no field 'typo'"),
        ("{", "", "not JSON"),
        ("[" * 100_000, "", "not JSON"),
        ("[]", "", "expected an object, got an array"),
    ],
)  # fmt: skip
def test_bad_json(data: Any, path: str, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        AlterPartitionReassignmentsRequest.from_json(data, 0)
    assert text in str(caught.value)
    assert caught.value.path == path


def test_versions_and_ignorable_are_enforced_both_ways() -> None:
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False)
    with pytest.raises(UnsupportedVersionError, match="allowReplicationFactorChange at version 0"):
        request.to_json(0)
    data = {"timeoutMs": 1, "topics": [], "allowReplicationFactorChange": False}
    with pytest.raises(UnsupportedVersionError):
        AlterPartitionReassignmentsRequest.from_json(data, 0)
    data["allowReplicationFactorChange"] = True
    assert AlterPartitionReassignmentsRequest.from_json(data, 0).timeout_ms == 1
    with pytest.raises(EncodeError):
        AlterPartitionReassignmentsRequest(topics=None).to_json(0)  # type: ignore[arg-type]


def test_floats_that_json_has_no_number_for() -> None:
    cls = make_message_class(
        parse_message(
            '{"type": "data", "name": "F", "validVersions": "0", "flexibleVersions": "none",'
            ' "fields": [{"name": "X", "type": "float64", "versions": "0+"}]}'
        )
    )
    for value in (math.inf, -math.inf, 1.5, 3.0):
        assert cls.from_json(cls(x=value).to_json(0), 0).x == value
    assert json.loads(cls(x=math.nan).to_json(0)) == {"x": "NaN"}
    assert math.isnan(cls.from_json('{"x": "NaN"}', 0).x)


def test_names_of_older_releases_are_read() -> None:
    """A field renamed between releases is read from the JSON of either."""
    cls = make_message_class(
        parse_message(
            '{"type": "data", "name": "R", "validVersions": "0", "flexibleVersions": "none",'
            ' "fields": [{"name": "NewName", "type": "int32", "versions": "0+",'
            ' "aliases": ["OldName"]}]}'
        )
    )
    assert cls.from_json({"oldName": 4}, 0) == cls.from_json({"newName": 4}, 0) == cls(new_name=4)
    with pytest.raises(DecodeError, match="twice"):
        cls.from_json({"oldName": 4, "newName": 5}, 0)
    with pytest.raises(DecodeError) as caught:
        cls.from_json({"oldName": "x"}, 0)
    assert caught.value.path == "oldName"
