"""A rule about a topic or partition: those fail, and the others are answered as ever."""

from typing import Any

import pytest

from kproto.messages import (
    AlterPartitionRequest,
    DescribeProducersRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from mockbroker.faults import Fault
from tests.mockbroker.faults.faulty import Faulty
from tests.support.requests import request_of

TO_3 = [3, 2, 1]


def reassign(**topics: list[int]) -> Any:
    return request_of(
        "AlterPartitionReassignments",
        topics=[
            {"name": name, "partitions": [{"partition_index": p, "replicas": TO_3} for p in parts]}
            for name, parts in topics.items()
        ],
    )


def codes(answer: Any, topics: str = "topics", partitions: str = "partitions") -> dict[str, int]:
    return {
        f"{getattr(topic, 'name', None) or topic.topic}-{getattr(each, 'partition_index', None)}":
        each.error_code
        for topic in getattr(answer, topics)
        for each in getattr(topic, partitions)
    }  # fmt: skip


def test_what_fails_is_not_carried_out_and_the_rest_is():
    asked = Faulty(Fault(api=45, topic="foo", partition=1, error=85, error_message="no"))
    answer: Any = asked.answer(reassign(foo=[2, 1, 0], bar=[0]), 1)
    assert codes(answer, "responses") == {"foo-2": 0, "foo-1": 85, "foo-0": 0, "bar-0": 0}
    order = [(t.name, [p.partition_index for p in t.partitions]) for t in answer.responses]
    assert order == [("foo", [2, 1, 0]), ("bar", [0])]
    assert answer.responses[0].partitions[1].error_message == "no"
    changed = {
        f"{topic.name}-{p.index}"
        for topic in asked.cluster.topics.values()
        for p in topic.partitions
        if list(p.replicas)[:3] == TO_3
    }
    assert "foo-1" not in changed
    assert changed >= {"foo-2", "foo-0", "bar-0"}


def test_applied_and_told_otherwise():
    asked = Faulty(Fault(api=45, topic="foo", error=7, apply=True))
    answer: Any = asked.answer(reassign(foo=[1], bar=[0]), 1)
    assert codes(answer, "responses") == {"foo-1": 7, "bar-0": 0}
    assert list(asked.cluster.topics.partition("foo", 1).replicas) == TO_3


def test_without_any_of_the_rest_nothing_is_carried_out():
    asked = Faulty(Fault(api=20, topic="*", error=44))
    answer: Any = asked.answer(
        request_of("DeleteTopics", topic_names=["foo", "bar"], timeout_ms=1000), 5
    )
    assert {each.name: each.error_code for each in answer.responses} == {"foo": 44, "bar": 44}
    assert set(asked.cluster.topics) == {"foo", "bar"}


def test_a_topic_taken_out_of_a_list_of_names():
    asked = Faulty(Fault(api=20, topic="foo", error=44))
    answer: Any = asked.answer(
        request_of("DeleteTopics", topic_names=["foo", "bar"], timeout_ms=1000), 5
    )
    assert [(e.name, e.error_code) for e in answer.responses] == [("foo", 44), ("bar", 0)]
    assert set(asked.cluster.topics) == {"foo"}


def test_where_all_are_asked_for_the_code_overwrites_theirs():
    asked = Faulty(Fault(api=43, topic="foo", partition=2, error=80))
    answer: Any = asked.answer(
        request_of("ElectLeaders", topic_partitions=None, election_type=0), 2
    )
    found = {
        (topic.topic, each.partition_id): each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    assert found["foo", 2] == 80
    assert 80 not in {code for key, code in found.items() if key != ("foo", 2)}


def test_a_config_resource_is_the_topic_it_names():
    body = IncrementalAlterConfigsRequest.from_json(
        {
            "resources": [
                {"resourceType": 2, "resourceName": name,
                 "configs": [{"name": "retention.ms", "configOperation": 0, "value": "7"}]}
                for name in ("foo", "bar")
            ],
            "validateOnly": False,
        },
        1,
    )  # fmt: skip
    asked = Faulty(Fault(api=44, topic="bar", error="POLICY_VIOLATION"))
    answer: Any = asked.answer(body, 1)
    assert [(e.resource_name, e.error_code) for e in answer.responses] == [("foo", 0), ("bar", 44)]
    assert asked.cluster.configs.topic("foo", "retention.ms").value == "7"
    assert asked.cluster.configs.topic("bar", "retention.ms").value != "7"


@pytest.mark.parametrize("topics", [None, ["bar", "foo"]])
def test_metadata_of_a_partition(topics):
    body = MetadataRequest.from_json(
        {"topics": topics and [{"name": each} for each in topics], "allowAutoTopicCreation": False,
         "includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False}, 9
    )  # fmt: skip
    asked = Faulty(Fault(api=3, topic="foo", partition=1, error="LEADER_NOT_AVAILABLE"))
    answer: Any = asked.answer(body, 9)
    assert codes(answer) == {"foo-0": 0, "foo-1": 5, "foo-2": 0, "bar-0": 0}
    assert len(answer.brokers) == 3


def test_metadata_of_a_topic_that_is_said_not_to_be_there():
    asked = Faulty(Fault(api=3, topic="foo", error=3, error_at="topic"))
    answer: Any = asked.answer(request_of("Metadata", topics=None), 9)
    found = {each.name: (each.error_code, len(each.partitions)) for each in answer.topics}
    assert found == {"foo": (3, 0), "bar": (0, 1)}


def test_apis_that_the_mock_does_not_implement():
    """AlterPartition is a broker's request to its controller."""
    partitions = [
        {"partitionIndex": index, "leaderEpoch": 1, "newIsr": [1], "partitionEpoch": 1}
        for index in (0, 1)
    ]
    topics = [{"topicName": "foo", "partitions": partitions}]
    body = AlterPartitionRequest.from_json({"brokerId": 1, "brokerEpoch": 1, "topics": topics}, 0)
    for fault, expected in (
        (Fault(api=56, topic="foo", partition=1, error=57), [0, 57]),
        (Fault(api=56, error=57, error_at="partition"), [57, 57]),
    ):
        answer: Any = Faulty(fault).answer(body, 0)
        (topic,) = answer.topics
        assert topic.topic_name == "foo"
        assert [each.error_code for each in topic.partitions] == expected


def test_other_fields_that_say_which_partition_are_repeated():
    body = ListOffsetsRequest.from_json(
        {"replicaId": -1, "isolationLevel": 0, "topics": [{"name": "foo", "partitions": [
            {"partitionIndex": 2, "currentLeaderEpoch": 1, "timestamp": 5}]}]}, 6
    )  # fmt: skip
    answer: Any = Faulty(Fault(api=2, error=6)).answer(body, 6)
    assert codes(answer) == {"foo-2": 6}
    producers = DescribeProducersRequest.from_json(
        {"topics": [{"name": "foo", "partitionIndexes": [0, 9]}]}, 0
    )
    answer = Faulty(Fault(api=61, topic="foo", partition=9, error=6)).answer(producers, 0)
    assert codes(answer)["foo-9"] == 6
    assert codes(answer)["foo-0"] != 6
