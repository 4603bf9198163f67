"""The texts are what ``kafka.zk``'s encoders of Kafka 2.4.1 and 3.9.2 gave for the same values."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.znodes import MalformedZnodeError
from kproto.znodes.kafka_znodes import (
    BrokerRegistration,
    Endpoint,
    PartitionState,
    TopicAssignment,
    broker_path,
    decode_broker,
    decode_controller,
    decode_controller_epoch,
    decode_partition_state,
    decode_topic,
    encode_broker,
    encode_controller,
    encode_controller_epoch,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_path,
)
from kproto.znodes.plan_znodes import (
    PlannedReplicas,
    decode_preferred_replica_election,
    decode_reassign_partitions,
    delete_topic_path,
    encode_preferred_replica_election,
    encode_reassign_partitions,
)
from kproto.znodes.texts import bytes_of, text_of

ZERO_TO_TWO = range(3)
TOPIC = TopicAssignment(
    partitions={i: [1, 2, 3] for i in ZERO_TO_TWO},
    adding_replicas={i: [3] for i in ZERO_TO_TWO},
    removing_replicas={i: [1] for i in ZERO_TO_TWO},
    topic_id="AAAAAAAAAAAAAAAAAAAAEg",
)
PARTITIONS = '"partitions":{"0":[1,2,3],"1":[1,2,3],"2":[1,2,3]}'
MOVES = '"adding_replicas":{"0":[3],"1":[3],"2":[3]},"removing_replicas":{"0":[1],"1":[1],"2":[1]}'
BROKER = BrokerRegistration(
    endpoints=(Endpoint("PLAINTEXT", "hé", 9092), Endpoint("INTERNAL", "h2", 9093, "SASL_SSL")),
    timestamp=1795237268340,
    rack="r1",
)
STATE = PartitionState(leader=1, leader_epoch=5, controller_epoch=4, isr=(1, 2, 3))
PLAN = {("foo", 0): PlannedReplicas([1, 2]), ("bar", 1): PlannedReplicas([3])}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            encode_topic(TOPIC),
            "{" + PARTITIONS + ',"topic_id":"AAAAAAAAAAAAAAAAAAAAEg",' + MOVES + ',"version":3}',
        ),
        (
            encode_topic(TopicAssignment(partitions=TOPIC.partitions)),
            "{" + PARTITIONS + ',"adding_replicas":{},"removing_replicas":{},"version":3}',
        ),
        (encode_topic(TOPIC, 2), '{"version":2,' + PARTITIONS + "," + MOVES + "}"),
        (encode_topic(TOPIC, 1), '{"version":1,' + PARTITIONS + "}"),
        (
            encode_partition_state(STATE),
            '{"controller_epoch":4,"leader":1,"version":1,"leader_epoch":5,"isr":[1,2,3]}',
        ),
        (
            encode_partition_state(
                PartitionState(
                    leader=1,
                    leader_epoch=5,
                    controller_epoch=4,
                    isr=(1, 2, 3),
                    leader_recovery_state=1,
                )
            ),
            '{"controller_epoch":4,"leader":1,"version":1,"leader_recovery_state":1,'
            '"leader_epoch":5,"isr":[1,2,3]}',
        ),
        (
            encode_broker(BROKER),
            '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT",'
            '"INTERNAL":"SASL_SSL"},"endpoints":["PLAINTEXT://hé:9092","INTERNAL://h2:9093"],'
            '"rack":"r1","jmx_port":-1,"port":9092,"host":"hé","version":5,'
            '"timestamp":"1795237268340"}',
        ),
        (
            encode_broker(
                BrokerRegistration(endpoints=BROKER.endpoints, timestamp=1795237268340), 4
            ),
            '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","INTERNAL":"SASL_SSL"},'
            '"endpoints":["PLAINTEXT://hé:9092","INTERNAL://h2:9093"],"jmx_port":-1,"port":9092,'
            '"host":"hé","version":4,"timestamp":"1795237268340"}',
        ),
        (
            encode_controller(1, 1600000000000),
            '{"version":2,"brokerid":1,"timestamp":"1600000000000","kraftControllerEpoch":-1}',
        ),
        (
            encode_controller(1, 1600000000000, 1),
            '{"version":1,"brokerid":1,"timestamp":"1600000000000"}',
        ),
        (encode_controller_epoch(7), "7"),
        (
            encode_reassign_partitions(PLAN),
            '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2]},'
            '{"topic":"bar","partition":1,"replicas":[3]}]}',
        ),
        (
            encode_preferred_replica_election(PLAN),
            '{"version":1,"partitions":[{"topic":"foo","partition":0},'
            '{"topic":"bar","partition":1}]}',
        ),
    ],
)
def test_texts_are_kafkas(data, text):
    assert data.decode() == text


def test_the_drafts_partition_state_as_it_prints_it():
    state = PartitionState(
        leader=1, leader_epoch=1, controller_epoch=1, isr=(1, 2, 3), target_replicas=(4, 5, 6)
    )
    assert encode_partition_state(state) == (
        b'{"version":1,"leader":1,"leader_epoch":1,"controller_epoch":1,"isr":[1,2,3],'
        b'"targetReplicas":[4,5,6]}'
    )


def test_paths_are_kafkas():
    assert broker_path(3) == "/brokers/ids/3"
    assert topic_path("foo") == "/brokers/topics/foo"
    assert partition_state_path("foo", 1) == "/brokers/topics/foo/partitions/1/state"
    assert delete_topic_path("foo") == "/admin/delete_topics/foo"


TWELVE = "11 0 1 2 3 4 5 6 7 8 9 10"
FORTY = (
    "22 23 24 25 26 27 28 29 30 31 10 32 11 33 12 34 13 35 14 36 15 37 16 38 17 39 18 19 "
    "0 1 2 3 4 5 6 7 8 9 20 21"
)


@pytest.mark.parametrize("order", ["0 1 2 3 4", TWELVE, FORTY], ids=["five", "twelve", "forty"])
def test_partitions_come_in_the_order_of_scalas_maps(order):
    expected = order.split()
    topic = TopicAssignment(partitions={i: [1] for i in range(len(expected))})
    assert list(json.loads(encode_topic(topic))["partitions"]) == expected


# ---- reading -----------------------------------------------------------------------------------

ids = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5).map(tuple)
by_partition = st.dictionaries(st.integers(0, 300), ids, max_size=20)
names = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=":/"), min_size=1, max_size=8
)
int32s = st.integers(-(2**31), 2**31 - 1)


@given(
    st.builds(
        TopicAssignment,
        partitions=by_partition,
        adding_replicas=by_partition,
        removing_replicas=by_partition,
        topic_id=st.none() | names,
    )
)
def test_topics_are_read_back(topic):
    assert decode_topic("/t", encode_topic(topic)) == topic


@given(
    st.builds(
        PartitionState,
        leader=int32s,
        leader_epoch=int32s,
        controller_epoch=int32s,
        isr=ids,
        target_replicas=st.none() | ids,
    )
)
def test_partition_states_are_read_back(state):
    assert decode_partition_state("/s", encode_partition_state(state)) == state


@given(
    st.lists(
        st.builds(Endpoint, names, names | st.just("::1"), st.integers(0, 65535), names),
        unique_by=lambda endpoint: endpoint.listener,
    ),
    st.none() | names,
    st.sampled_from([4, 5]),
)
def test_brokers_are_read_back(endpoints, rack, version):
    broker = BrokerRegistration(endpoints=tuple(endpoints), timestamp=1, rack=rack, jmx_port=9)
    assert decode_broker("/b", encode_broker(broker, version)) == broker


@given(
    st.dictionaries(
        st.tuples(names, st.integers(0, 99)),
        st.builds(PlannedReplicas, ids, st.none() | ids),
        max_size=5,
    )
)
def test_plans_are_read_back(plan):
    assert decode_reassign_partitions("/p", encode_reassign_partitions(plan)) == plan
    assert decode_preferred_replica_election("/p", encode_preferred_replica_election(plan)) == list(
        plan
    )


def test_the_controller_is_read_back():
    assert decode_controller("/controller", encode_controller(3, 0)) == 3
    assert decode_controller("/controller", encode_controller(3, 0, 1)) == 3
    assert decode_controller_epoch("/controller_epoch", encode_controller_epoch(3)) == 3


def test_text_is_read_as_its_bytes_are():
    topic = encode_topic(TOPIC)
    assert decode_topic("/t", topic.decode()) == decode_topic("/t", topic)
    with pytest.raises(MalformedZnodeError, match="/t"):
        decode_topic("/t", text_of(b"\xff"))


@given(st.binary())
def test_bytes_that_are_not_utf_8_survive_as_text(data):
    assert bytes_of(text_of(data)) == data


@pytest.mark.parametrize("text", ["\ud800", "a\udc41\ud800"])
def test_every_text_has_bytes(text):
    """Text from JSON may hold surrogates that no bytes stand for."""
    assert bytes_of(text)


def test_a_plan_that_names_a_partition_twice_takes_the_last():
    text = b"""{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},
                               {"topic": "t", "partition": 0, "replicas": [2]}]}"""
    assert decode_reassign_partitions("/p", text) == {("t", 0): PlannedReplicas((2,))}
    assert decode_preferred_replica_election("/p", text) == [("t", 0)]


ENTRY = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]%s}]}'
WRONG = [
    (decode_reassign_partitions, "", "empty, and not JSON"),
    (decode_reassign_partitions, "{", "Input data was truncated"),
    (decode_reassign_partitions, ENTRY[:-10], "Input data was truncated"),
    (decode_reassign_partitions, "[]", "Expected `object`, got `array`"),
    (decode_reassign_partitions, "{}", "missing required field `partitions`"),
    (decode_reassign_partitions, ENTRY % ',"x":1', "unknown field `x` - at `$.partitions[0]`"),
    (decode_reassign_partitions, ENTRY.replace("[1]%s", "[1.5]"), "got `float`"),
    (decode_reassign_partitions, ENTRY.replace("[1]%s", "[-1]"), "Expected `int` >= 0"),
    (decode_reassign_partitions, ENTRY.replace("[1]%s", "[true]"), "got `bool`"),
    (decode_reassign_partitions, ENTRY.replace("[1]%s", "[2147483648]"), "`int` <= 2147483647"),
    (decode_reassign_partitions, ENTRY.replace("[1]%s", "null"), "Expected `array`, got `null`"),
    (decode_topic, '{"unknown":' + "[" * 1_000_000, "nested too deeply"),
    (decode_preferred_replica_election, '{"partitions":[{"topic":"t"}]}', "field `partition`"),
    (decode_topic, '{"partitions":{"00":[1]}}', "matching regex"),
    (decode_topic, '{"partitions":{"-1":[1]}}', "matching regex"),
    (decode_topic, '{"partitions":{"0":1}}', "Expected `array`, got `int`"),
    (decode_partition_state, '{"leader":1}', "missing required field `leader_epoch`"),
    (decode_broker, '{"endpoints":["h:1"]}', "matching regex"),
    (
        decode_broker,
        '{"endpoints":["A://h:1"],"listener_security_protocol_map":{},"timestamp":"1"}',
        "listener 'A' is not in listener_security_protocol_map",
    ),
    (decode_controller, '{"version":1}', "missing required field `brokerid`"),
    (decode_controller_epoch, "x", "JSON is malformed"),
]


@pytest.mark.parametrize(("decode", "text", "reason"), WRONG)
def test_malformed_text_is_told_by_path_and_reason(decode, text, reason):
    with pytest.raises(MalformedZnodeError) as caught:
        decode("/where/it/is", text.encode())
    assert str(caught.value).startswith("/where/it/is: ")
    assert reason in caught.value.reason
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("decode", sorted({row[0] for row in WRONG}, key=lambda f: f.__name__))
@given(data=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_whatever_is_in_a_znode_only_one_error_comes_out(decode, data):
    with contextlib.suppress(MalformedZnodeError):
        decode("/z", data)
