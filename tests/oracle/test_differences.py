"""Where our decoding is stricter than Java's on purpose, shown on the same bytes.

Each case is a body that Kafka's own classes take and ours refuse, with what Java makes of it. The
reason is one and the same: such bytes are a mistake (or an attack), the value Java goes on with is
not what the sender wrote, and a tool that shows the wire must not hide that. Encoding is exactly
Java's, so no correct peer ever sends any of these.

The other way round there is one difference: 4.4 bounds the number of elements and of tagged fields
by constants, 3.9 and ours by the bytes that are left.

In JSON, ours refuses a property the message does not have, which Java passes over; and it carries
what Java's loses: the contents of records, and numbers that are not finite.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

import kproto.messages
from kproto import reference
from kproto.errors import DecodeError
from kproto.oracle.oracle import Op, Oracle, Question, Refusal, recoded
from kproto.oracle.pairs import schemas

pytestmark = [pytest.mark.java, pytest.mark.oracle]


class Case(NamedTuple):
    title: str
    message: str
    version: int
    hex: str
    java: dict[str, Any]
    """Some of the properties of Java's JSON for these bytes."""
    offset: int
    path: str
    problem: str


CASES = [
    Case(
        "a byte after the message: Java's decoders stop and leave it",
        "ListPartitionReassignmentsRequest", 0,
        "00000005 00 00 aa",
        {"timeoutMs": 5, "topics": None},
        6, "", "bytes left over after the message: 1",
    ),
    Case(
        "a string that is not UTF-8: Java puts U+FFFD, and would write back three other bytes",
        "ListPartitionReassignmentsRequest", 0,
        "00000005 02 02ff 01 00 00",
        {"topics": [{"name": "\ufffd", "partitionIndexes": []}]},
        5, "topics[0].name", "string field name is not valid UTF-8",
    ),
    Case(
        "a known tagged field whose size is not what its value takes: Java does not look at it",
        "ApiVersionsResponse", 3,
        "0000 01 00000000 01 01 09 0000000000000007",
        {"finalizedFeaturesEpoch": 7},
        8, "finalized_features_epoch",
        "bytes needed: 9, left: 8",
    ),
    Case(
        "the same with bytes to spare: Java takes what the size covers for the next thing",
        "ApiVersionsResponse", 3,
        "0000 01 00000000 02 01 07 0000000000000007 03 01 01",
        {"finalizedFeaturesEpoch": 7, "zkMigrationReady": True},
        8, "finalized_features_epoch",
        "tagged field finalizedFeaturesEpoch has size 7, but its value took 8 bytes",
    ),
    Case(
        "a known tag twice: the last one wins in Java",
        "ApiVersionsResponse", 3,
        "0000 01 00000000 02 01 08 0000000000000007 01 08 0000000000000009",
        {"finalizedFeaturesEpoch": 9},
        18, "", "tag 1 comes after tag 1, but is not higher than it",
    ),
    Case(
        "known tags in descending order: Java takes any order",
        "ApiVersionsResponse", 3,
        "0000 01 00000000 02 03 01 01 01 08 0000000000000007",
        {"finalizedFeaturesEpoch": 7, "zkMigrationReady": True},
        11, "", "tag 1 comes after tag 3, but is not higher than it",
    ),
    Case(
        "an unknown tag twice: Java keeps both, and could not write them back",
        "ListPartitionReassignmentsRequest", 0,
        "00000005 00 02 63 01 aa 63 01 bb",
        {"timeoutMs": 5},
        9, "", "tag 99 comes after tag 99, but is not higher than it",
    ),
    Case(
        "a length below -1: Java takes every negative length for null",
        "MetadataRequest", 1,
        "fffffffe",
        {"topics": None},
        0, "topics", "length -2 is negative, and only -1 means null",
    ),
    Case(
        "a compact length above 2147483647: Java counts below zero, and takes it for null",
        "ListPartitionReassignmentsRequest", 0,
        "00000005 ffffffff0f 00",
        {"timeoutMs": 5, "topics": None},
        4, "topics", "length 4294967294 is above 2147483647",
    ),
    Case(
        "a presence marker that is neither 1 nor -1: Java takes what is negative for null ...",
        "DescribeTopicPartitionsRequest", 0,
        "01 000007d0 fe 00",
        {"cursor": None},
        5, "cursor", "presence marker -2 is neither -1 nor 1",
    ),
    Case(
        "... and all else for a struct",
        "DescribeTopicPartitionsRequest", 0,
        "01 000007d0 05 0261 00000003 00 00",
        {"cursor": {"topicName": "a", "partitionIndex": 3}},
        5, "cursor", "presence marker 5 is neither -1 nor 1",
    ),
    Case(
        "a varint above 2^32-1: Java drops the bits that do not fit",
        "ListPartitionReassignmentsRequest", 0,
        "00000005 81 80 80 80 10 00",
        {"topics": []},
        4, "topics", "unsigned varint is longer than 5 bytes or above 4294967295",
    ),
]  # fmt: skip


def refusal(case: Case) -> tuple[int, str, str]:
    """What our codec, and the reference with it, says of the bytes."""
    data = bytes.fromhex(case.hex)
    found = []
    for decode in (
        lambda: getattr(kproto.messages, case.message).decode(data, case.version),
        lambda: reference.decode(schemas()[case.message], case.version, data),
    ):
        with pytest.raises(DecodeError) as raised:
            decode()
        found.append((raised.value.offset, raised.value.path, raised.value.problem))
    assert found[0] == found[1]
    return found[0]


def java_takes(oracle: Oracle, case: Case) -> bool:
    data = bytes.fromhex(case.hex)
    name = f"{case.message}Data"
    (shown,) = oracle.ask([Question(Op.TO_JSON, name, case.version, data)])
    if isinstance(shown, Refusal):
        return False
    document = json.loads(shown)
    assert {key: document[key] for key in case.java} == case.java
    return True


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_java_accepts_what_we_refuse(case: Case, oracles: Mapping[str, Oracle]):
    for oracle in oracles.values():
        assert java_takes(oracle, case), oracle.release
    assert refusal(case) == (case.offset, case.path, case.problem)


def test_trailing_bytes_are_left_by_java(oracles: Mapping[str, Oracle]):
    data = bytes.fromhex("00000005 00 00 aa")
    for oracle in oracles.values():
        (again,) = oracle.ask(
            [Question(Op.RECODE, "ListPartitionReassignmentsRequestData", 0, data)]
        )
        assert recoded(again) == (6, data[:6])


def test_java_cannot_write_back_an_unknown_tag_it_took_twice(oracles: Mapping[str, Oracle]):
    data = bytes.fromhex("00000005 00 02 63 01 aa 63 01 bb")
    for oracle in oracles.values():
        (again,) = oracle.ask(
            [Question(Op.RECODE, "ListPartitionReassignmentsRequestData", 0, data)]
        )
        assert isinstance(again, Refusal)
        assert "tag 99 comes after tag 99, but is not higher than it" in again.text


@pytest.mark.parametrize("case", ["elements", "tags"])
def test_bounds_that_only_4_4_has(case: str, oracles: Mapping[str, Oracle]):
    message = kproto.messages.ListPartitionReassignmentsRequest
    topic = kproto.messages.list_partition_reassignments_request.ListPartitionReassignmentsTopics
    if case == "elements":
        value = message(topics=[topic(name="a", partition_indexes=[7] * 1_000_001)])
    else:
        value = message(unknown_tags=dict.fromkeys(range(10_001), b""))
    data = value.encode(0)
    assert message.decode(data, 0) == value
    question = Question(Op.RECODE, "ListPartitionReassignmentsRequestData", 0, data)
    (old,), (new,) = oracles["3.9.2"].ask([question]), oracles["4.4.0"].ask([question])
    assert recoded(old) == (len(data), data)
    assert isinstance(new, Refusal), new
    assert {"elements": "1000000", "tags": "10000"}[case] in new.text


def test_json_with_an_unknown_property(oracles: Mapping[str, Oracle]):
    text = '{"timeoutMs": 5, "topics": null, "timeout": 7}'
    question = Question(Op.ENCODE, "ListPartitionReassignmentsRequestData", 0, text.encode())
    for oracle in oracles.values():
        assert oracle.ask([question]) == [bytes.fromhex("00000005 00 00")]
    with pytest.raises(
        DecodeError, match="ListPartitionReassignmentsRequest has no field 'timeout'"
    ):
        kproto.messages.ListPartitionReassignmentsRequest.from_json(text, 0)


@pytest.mark.parametrize(
    ("number", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")]
)
def test_json_numbers_that_are_not_finite(number: float, text: str, oracles: Mapping[str, Oracle]):
    """Java writes them as strings, as we do, but does not read them back."""
    response = kproto.messages.DescribeClientQuotasResponse
    module = kproto.messages.describe_client_quotas_response
    value = module.ValueData(key="k", value=number)
    message = response(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        entries=[module.EntryData(entity=[], values=[value])],
    )
    data, ours = message.encode(1), message.to_json(1)
    assert json.loads(ours)["entries"][0]["values"][0]["value"] == text
    assert response.from_json(ours, 1).encode(1) == data
    name = "DescribeClientQuotasResponseData"
    for oracle in oracles.values():
        shown, read = oracle.ask(
            [Question(Op.TO_JSON, name, 1, data), Question(Op.ENCODE, name, 1, ours.encode())]
        )
        assert isinstance(shown, bytes)
        assert json.loads(shown) == json.loads(ours)
        assert isinstance(read, Refusal)
        assert "expected a floating point type, but got STRING" in read.text


def test_json_records(oracles: Mapping[str, Oracle]):
    """Java reads records from base64 as we write them, and writes the empty string."""
    request = kproto.messages.ProduceRequest
    module = kproto.messages.produce_request
    partition = module.PartitionProduceData(index=1, records=b"not looked into")
    topic = module.TopicProduceData(name="a", partition_data=[partition])
    message = request(acks=1, timeout_ms=2, topic_data=[topic])
    data, ours = message.encode(9), message.to_json(9)
    assert request.from_json(ours, 9) == message
    for oracle in oracles.values():
        shown, read = oracle.ask(
            [
                Question(Op.TO_JSON, "ProduceRequestData", 9, data),
                Question(Op.ENCODE, "ProduceRequestData", 9, ours.encode()),
            ]
        )
        assert read == data
        assert isinstance(shown, bytes)
        partition.records = b""
        assert json.loads(shown) == json.loads(message.to_json(9))
        partition.records = b"not looked into"
