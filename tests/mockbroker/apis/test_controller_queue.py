"""Requests to a KRaft controller that have no time, answered as by Kafka 3.9.2 and 4.4.0."""

from typing import Any

import pytest

from kproto.messages import AlterPartitionReassignmentsRequest, ElectLeadersRequest
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of

KRAFT = ("kafka-3.0", "kafka-3.9", "kafka-4.4")
NONE = (0, -1)


def broker_of(profile: str) -> DirectBroker:
    return DirectBroker(Cluster(topics=["foo=1,2", "bar=2,1"]), profile_name=profile)


def elected(answer: Any) -> list[tuple[str, list[tuple[int, int, str | None]]]]:
    return [
        (
            each.topic,
            [
                (row.partition_id, row.error_code, row.error_message)
                for row in each.partition_result
            ],
        )
        for each in answer.replica_election_results
    ]


@pytest.mark.parametrize("timeout_ms", NONE)
@pytest.mark.parametrize("profile", ["kafka-3.1", *KRAFT[1:]])
@pytest.mark.requirement("A-56")
def test_elections_without_time(profile: str, timeout_ms: int) -> None:
    broker = broker_of(profile)
    topics = [{"topic": "foo", "partitions": [0, 7]}, {"topic": "nope", "partitions": [0]}]
    body = {"electionType": 0, "topicPartitions": topics, "timeoutMs": timeout_ms}
    named = [("foo", [(0, 7, None), (7, 7, None)]), ("nope", [(0, 7, None)])]
    for version in range(3):
        answer = broker.ask(ElectLeadersRequest.from_json(body, 2), version)
        assert elected(answer) == named
        assert answer.error_code == (7 if version else 0)
    answer = broker.ask(ElectLeadersRequest.from_json({**body, "topicPartitions": None}, 2), 2)
    assert (answer.error_code, elected(answer)) == (7, [])
    answer = broker.ask(ElectLeadersRequest.from_json({**body, "topicPartitions": []}, 2), 2)
    assert (answer.error_code, elected(answer)) == (0, [])


@pytest.mark.parametrize("timeout_ms", NONE)
@pytest.mark.parametrize("profile", KRAFT)
@pytest.mark.requirement("A-56")
def test_reassignments_without_time(profile: str, timeout_ms: int) -> None:
    broker = broker_of(profile)
    partitions = [
        {"partitionIndex": 0, "replicas": [3, 1]},
        {"partitionIndex": 7, "replicas": None},
    ]
    body = {"timeoutMs": timeout_ms, "topics": [{"name": "foo", "partitions": partitions}]}
    answer = broker.ask(AlterPartitionReassignmentsRequest.from_json(body, 0), 0)
    assert (answer.error_code, answer.error_message) == (7, None)
    ((topic),) = answer.responses
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, 7),
        (7, 7),
    ]
    assert not broker.cluster.topics.partition("foo", 0).reassigning
    answer = broker.ask(AlterPartitionReassignmentsRequest.from_json({**body, "topics": []}, 0), 0)
    assert (answer.error_code, answer.responses) == (0, [])


@pytest.mark.parametrize("profile", ["kafka-3.1", *KRAFT[1:]])
@pytest.mark.requirement("A-56")
def test_topics_that_are_named_twice_do_not_wait(profile: str) -> None:
    broker = broker_of(profile)
    once, twice = [{"name": "new", "count": 3}], [{"name": "foo", "count": 3}] * 2

    def answers(topics: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
        """The codes of CreatePartitions and CreateTopics."""
        grown = request_of(
            "CreatePartitions", topics=[{**each, "assignments": None} for each in topics],
            timeout_ms=0,
        )  # fmt: skip
        created = request_of(
            "CreateTopics",
            topics=[
                {"name": each["name"], "num_partitions": 1, "replication_factor": 1}
                for each in topics
            ],
            timeout_ms=0,
        )
        return (
            [each.error_code for each in broker.ask(grown, 3).results],
            [each.error_code for each in broker.ask(created, 7).topics],
        )

    assert answers(once) == ([7], [7])
    assert answers(twice) == ([42], [42])
    assert answers(once + twice) == ([7] * 3, [7] * 3)


@pytest.mark.requirement("A-56")
def test_the_first_kraft_controller_had_no_deadlines() -> None:
    broker = broker_of("kafka-2.8")
    deletion = request_of("DeleteTopics", topic_names=["foo"], timeout_ms=0)
    assert [row.error_code for row in broker.ask(deletion, 5).responses] == [0]
