"""Requests that no client sends: unknown isolation levels, impossible session ids, names beside
ids, cursors past the end. Answers are those of Kafka 4.4.0 unless a release is named."""

from __future__ import annotations

import uuid

import pytest

from kproto.messages import (
    AddPartitionsToTxnRequest,
    AlterReplicaLogDirsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
)
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic
from kproto.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
)
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.messages.describe_log_dirs_request import DescribableLogDirTopic
from kproto.messages.describe_producers_request import TopicRequest as ProducersOf
from kproto.messages.describe_quorum_request import PartitionData, TopicData
from kproto.messages.describe_topic_partitions_request import Cursor, TopicRequest
from kproto.messages.elect_leaders_request import TopicPartitions
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.messages.offset_commit_request import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

ZERO = uuid.UUID(int=0)


def broker(release: tuple[int, int] = (4, 4), *topics: str) -> DirectBroker:
    cluster = simulated_cluster(1, topics=topics or ["foo:2:1"], release=release)
    profile = f"kafka-{release[0]}.{release[1]}"
    return DirectBroker(cluster, profile_name=profile)


def fetch(
    at: DirectBroker, *topics: str, isolation: int = 0, session: tuple[int, int] = (0, -1),
) -> tuple[int, int, list[int]]:  # fmt: skip
    """The error code, the session id, and the error codes of the partitions."""
    rows = [FetchTopic(topic=name, partitions=[FetchPartition()]) for name in topics]
    body = FetchRequest(
        isolation_level=isolation, session_id=session[0], session_epoch=session[1], topics=rows
    )
    answer = at.ask(body, 11)
    codes = [row.error_code for topic in answer.responses for row in topic.partitions]
    return answer.error_code, answer.session_id, codes


@pytest.mark.requirement("DP-SESSION-13")
def test_sessions_that_no_broker_can_have() -> None:
    at = broker()
    for found in (2**31 - 1, 2147483640, -268435455, -(2**31)):
        for epoch in (-1, 0, 1):
            assert fetch(at, "foo", session=(found, epoch)) == (-1, found, [-1])
    for found in (2147483639, -268435454):
        assert fetch(at, "foo", session=(found, 1)) == (70, 0, [])
    assert fetch(broker((3, 7)), "foo", session=(2**31 - 1, 1)) == (70, 0, [])


def test_an_unknown_isolation_level_fails_a_fetch_that_reads() -> None:
    at = broker()
    assert fetch(at, "foo", isolation=2) == (-1, 0, [-1])
    assert fetch(at, "nope", "foo", isolation=2) == (-1, 0, [-1, -1])
    assert fetch(at, "nope", isolation=2) == (0, 0, [3])
    assert fetch(at, isolation=2) == (0, 0, [])
    assert fetch(at, "foo", isolation=2, session=(99, 1)) == (70, 0, [])


@pytest.mark.requirement("DP-LISTOFF-10")
@pytest.mark.requirement("DP-LISTOFF-14")
@pytest.mark.requirement("DP-LISTOFF-15")
def test_an_unknown_isolation_level_fails_each_row_of_list_offsets() -> None:
    rows = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 0, 1)]
    body = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=2,
        topics=[
            ListOffsetsTopic(name="foo", partitions=rows),
            ListOffsetsTopic(name="nope", partitions=[]),
        ],
    )

    def codes(release: tuple[int, int]) -> list[list[int]]:
        answer = broker(release).ask(body, 3)
        return [[row.error_code for row in topic.partitions] for topic in answer.topics]

    assert codes((4, 4)) == [[-1, -1, -1], []]
    assert codes((3, 9)) == [[42, 42, -1], []]
    rows[2].timestamp = -6
    assert [codes(release)[0][2] for release in ((3, 8), (3, 9), (4, 0))] == [-1, 35, -1]
    rows[2].timestamp = -1
    body.replica_id = 1
    assert [codes(release)[0][2] for release in ((3, 9), (4, 0))] == [0, -1]
    body.replica_id = -1
    body.isolation_level = 0
    assert codes((4, 4)) == [[42, 0]]


@pytest.mark.parametrize(
    ("names", "cursor", "code"),
    [
        (["a", "b"], ("", 0), 42),
        (["a"], ("b", 0), 42),
        (["a", "b"], ("b", -1), 42),
        (["a", ""], None, -1),
        (["a", ""], ("a", 0), 0),
    ],
)
def test_cursors_are_among_the_topics(
    names: list[str], cursor: tuple[str, int] | None, code: int
) -> None:
    body = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = broker((4, 4), "a:1:1", "b:1:1").ask(body, 0)
    shown = [(topic.name, topic.error_code) for topic in answer.topics]
    assert shown == ([(name, code) for name in names] if code else [("a", 0)])


def test_producers_of_invalid_topics() -> None:
    body = DescribeProducersRequest(topics=[ProducersOf(name="a b", partition_indexes=[0])])
    row = broker().ask(body, 0).topics[0].partitions[0]
    assert row.error_code == 17
    assert row.error_message.startswith("Topic name is invalid: 'a b' contains one or more")


def test_a_quorum_without_errors_has_empty_texts() -> None:
    topic = TopicData(
        topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
    )
    answer = broker().ask(DescribeQuorumRequest(topics=[topic]), 2)
    assert (answer.error_message, answer.topics[0].partitions[0].error_message) == ("", "")


def test_log_directories_answer_each_partition_once() -> None:
    at = broker()
    topic = AlterReplicaLogDirTopic(name="foo", partitions=[0, 0])
    dirs = [AlterReplicaLogDir(path=path, topics=[topic, topic]) for path in ("/x", "/y")]
    (moved,) = at.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    assert [(row.partition_index, row.error_code) for row in moved.partitions] == [(0, 57)]
    described = [DescribableLogDirTopic(topic="foo", partitions=[0, 1, 0])] * 2
    (found,) = at.ask(DescribeLogDirsRequest(topics=described), 4).results
    assert [[row.partition_index for row in each.partitions] for each in found.topics] == [[0, 1]]


@pytest.mark.requirement("REL-79")
@pytest.mark.parametrize(
    ("release", "length", "code"),
    [((2, 1), 214, 57), ((2, 2), 213, 57), ((2, 2), 214, 17)],
)
def test_replicas_with_long_names_do_not_move(
    release: tuple[int, int], length: int, code: int
) -> None:
    topic = AlterReplicaLogDirTopic(name="x" * length, partitions=[0])
    body = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/x", topics=[topic])])
    (moved,) = broker(release).ask(body, 1).results
    assert moved.partitions[0].error_code == code


def test_an_unknown_election_type_fails_each_row() -> None:
    at = broker()
    topic = TopicPartitions(topic="foo", partitions=[0, 0])
    answer = at.ask(
        ElectLeadersRequest(election_type=2, topic_partitions=[topic, topic], timeout_ms=100), 2
    )
    codes = [[row.error_code for row in each.partition_result]
             for each in answer.replica_election_results]  # fmt: skip
    assert (answer.error_code, codes) == (42, [[42, 42]] * 2)
    empty = ElectLeadersRequest(election_type=2, topic_partitions=[], timeout_ms=100)
    assert at.ask(empty, 2).error_code == 0


@pytest.mark.requirement("DP-ADD-20")
@pytest.mark.parametrize(
    ("release", "listed"),
    [((3, 4), [("foo", [0])]), ((3, 5), [("foo", []), ("foo", [0, 0]), ("foo", [0])])],
)
def test_partitions_of_transactions_are_echoed(
    release: tuple[int, int], listed: list[tuple[str, list[int]]]
) -> None:
    at = broker(release)
    body = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
    made = at.ask(body, 1)
    topics = [AddPartitionsToTxnTopic(name="foo", partitions=rows) for rows in ([], [0, 0], [0])]
    answer = at.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=made.producer_id,
            v3_and_below_producer_epoch=made.producer_epoch,
            v3_and_below_topics=topics,
        ),
        3,
    )
    assert [
        (each.name, [row.partition_index for row in each.results_by_partition])
        for each in answer.results_by_topic_v3_and_below
    ] == listed


@pytest.mark.requirement("DP-OFFSET-10")
@pytest.mark.parametrize("release", [(2, 0), (2, 1), (4, 4)])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_commits_may_have_the_longest_retention_time(
    release: tuple[int, int], version: int
) -> None:
    at = broker(release)
    assert at.cluster.coordinators.find(CoordinatorKind.GROUP, "g", 1) is None
    at.cluster.turns.advance(1)
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="foo", partitions=[row])
    body = OffsetCommitRequest(group_id="g", retention_time_ms=2**63 - 1, topics=[topic])
    (answered,) = at.ask(body, version).topics
    assert (answered.name, [each.error_code for each in answered.partitions]) == ("foo", [0])


BOTH = "You may not specify both topic name and topic id."
NEITHER = "Neither topic name nor id were specified."
NAMED_TOO = "The provided topic name maps to an ID that was already supplied."


@pytest.mark.parametrize(
    ("given", "texts", "remains"),
    [
        (["nI"], [BOTH], True),
        (["nI", "n"], [BOTH, None], False),
        (["nI", "nI", "I"], [BOTH, None, BOTH], False),
        (["", ""], [NEITHER, NEITHER], True),
        (["I", "n"], [NAMED_TOO], True),
        (["n", "I"], [NAMED_TOO], True),
        (["I", "I"], ["Duplicate topic id."], True),
        (["I", "I", "n"], ["Duplicate topic id.", NAMED_TOO], True),
        (["I", "n", "n"], [None, "Duplicate topic name."], False),
    ],
)
def test_topics_to_delete_by_name_and_by_id(
    given: list[str], texts: list[str | None], remains: bool
) -> None:
    at = broker()
    topic_id = at.cluster.topics["foo"].topic_id
    body = DeleteTopicsRequest(
        timeout_ms=1000,
        topics=[
            DeleteTopicState(
                name="foo" if "n" in each else None, topic_id=topic_id if "I" in each else ZERO
            )
            for each in given
        ],
    )
    assert [row.error_message for row in at.ask(body, 6).responses] == texts
    assert ("foo" in at.cluster.topics) == remains
