"""Requests that no client sends: unknown isolation levels, impossible session ids, names beside
ids, cursors past the end. Answers are those of Kafka 4.4.0 unless a release is named."""

import uuid

import pytest

from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

ZERO = uuid.UUID(int=0)


def broker(release: tuple[int, int] = (4, 4), *topics: str) -> DirectBroker:
    cluster = simulated_cluster(1, topics=topics or ["foo:2:1"], release=release)
    profile = f"kafka-{release[0]}.{release[1]}"
    return DirectBroker(cluster, profile_name=profile)


def fetch(
    at: DirectBroker, *topics: str, isolation: int = 0, session: tuple[int, int] = (0, -1),
) -> tuple[int, int, list[int]]:  # fmt: skip
    """The error code, the session id, and the error codes of the partitions."""
    rows = [{"topic": name, "partitions": {}} for name in topics]
    answer = at.ask(
        "Fetch",
        11,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=rows,
    )
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


@pytest.mark.requirement("DP-LISTOFF-10", "DP-LISTOFF-14", "DP-LISTOFF-15")
def test_an_unknown_isolation_level_fails_each_row_of_list_offsets() -> None:
    rows = [{"partition_index": index, "timestamp": -1} for index in (0, 0, 1)]
    topics = [{"name": "foo", "partitions": rows}, {"name": "nope", "partitions": []}]
    body = request_of("ListOffsets", replica_id=-1, isolation_level=2, topics=topics)
    last = body.topics[0].partitions[2]

    def codes(release: tuple[int, int]) -> list[list[int]]:
        answer = broker(release).ask(body, 3)
        return [[row.error_code for row in topic.partitions] for topic in answer.topics]

    assert codes((4, 4)) == [[-1, -1, -1], []]
    assert codes((3, 9)) == [[42, 42, -1], []]
    last.timestamp = -6
    assert [codes(release)[0][2] for release in ((3, 8), (3, 9), (4, 0))] == [-1, 35, -1]
    last.timestamp = -1
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
def test_cursors_are_among_the_topics(names, cursor, code):
    answer = broker((4, 4), "a:1:1", "b:1:1").ask(
        "DescribeTopicPartitions",
        0,
        topics=[{"name": name} for name in names],
        cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    shown = [(topic.name, topic.error_code) for topic in answer.topics]
    assert shown == ([(name, code) for name in names] if code else [("a", 0)])


def test_producers_of_invalid_topics() -> None:
    body = request_of("DescribeProducers", name="a b", partition_indexes=[0])
    row = broker().ask(body, 0).topics[0].partitions[0]
    assert row.error_code == 17
    assert row.error_message.startswith("Topic name is invalid: 'a b' contains one or more")


def test_a_quorum_without_errors_has_empty_texts() -> None:
    topic = {"topic_name": "__cluster_metadata", "partition_index": 0}
    answer = broker().ask("DescribeQuorum", 2, topics=[topic])
    assert (answer.error_message, answer.topics[0].partitions[0].error_message) == ("", "")


def test_log_directories_answer_each_partition_once() -> None:
    at = broker()
    topic = {"name": "foo", "partitions": [0, 0]}
    dirs = [{"path": path, "topics": [topic, topic]} for path in ("/x", "/y")]
    (moved,) = at.ask("AlterReplicaLogDirs", 2, dirs=dirs).results
    assert [(row.partition_index, row.error_code) for row in moved.partitions] == [(0, 57)]
    described = [{"topic": "foo", "partitions": [0, 1, 0]}] * 2
    (found,) = at.ask("DescribeLogDirs", 4, topics=described).results
    assert [[row.partition_index for row in each.partitions] for each in found.topics] == [[0, 1]]


@pytest.mark.requirement("REL-79")
@pytest.mark.parametrize(
    ("release", "length", "code"), [((2, 1), 214, 57), ((2, 2), 213, 57), ((2, 2), 214, 17)]
)
def test_replicas_with_long_names_do_not_move(release, length, code):
    topic = {"name": "x" * length, "partitions": [0]}
    body = request_of("AlterReplicaLogDirs", path="/x", topics=[topic])
    (moved,) = broker(release).ask(body, 1).results
    assert moved.partitions[0].error_code == code


def test_an_unknown_election_type_fails_each_row() -> None:
    at = broker()
    topic = {"topic": "foo", "partitions": [0, 0]}
    answer = at.ask(
        "ElectLeaders", 2, election_type=2, topic_partitions=[topic, topic], timeout_ms=100
    )
    codes = [[row.error_code for row in each.partition_result]
             for each in answer.replica_election_results]  # fmt: skip
    assert (answer.error_code, codes) == (42, [[42, 42]] * 2)
    empty = request_of("ElectLeaders", election_type=2, topic_partitions=[], timeout_ms=100)
    assert at.ask(empty, 2).error_code == 0


@pytest.mark.requirement("DP-ADD-20")
@pytest.mark.parametrize(
    ("release", "listed"),
    [((3, 4), [("foo", [0])]), ((3, 5), [("foo", []), ("foo", [0, 0]), ("foo", [0])])],
)
def test_partitions_of_transactions_are_echoed(release, listed):
    at = broker(release)
    made = at.ask("InitProducerId", 1, transactional_id="t", transaction_timeout_ms=1000)
    topics = [{"name": "foo", "partitions": rows} for rows in ([], [0, 0], [0])]
    answer = at.ask(
        "AddPartitionsToTxn",
        3,
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=topics,
    )
    assert [
        (each.name, [row.partition_index for row in each.results_by_partition])
        for each in answer.results_by_topic_v3_and_below
    ] == listed


@pytest.mark.requirement("DP-OFFSET-10")
@pytest.mark.parametrize("release", [(2, 0), (2, 1), (4, 4)])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_commits_may_have_the_longest_retention_time(release, version):
    at = broker(release)
    assert at.cluster.coordinators.find(CoordinatorKind.GROUP, "g", 1) is None
    at.cluster.turns.advance(1)
    row = {"partition_index": 0, "committed_offset": 5}
    topic = {"name": "foo", "partitions": [row]}
    body = request_of("OffsetCommit", group_id="g", retention_time_ms=2**63 - 1, topics=[topic])
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
def test_topics_to_delete_by_name_and_by_id(given, texts, remains):
    at = broker()
    topic_id = at.cluster.topics["foo"].topic_id
    body = request_of(
        "DeleteTopics",
        timeout_ms=1000,
        topics=[
            {"name": "foo" if "n" in each else None, "topic_id": topic_id if "I" in each else ZERO}
            for each in given
        ],
    )
    assert [row.error_message for row in at.ask(body, 6).responses] == texts
    assert ("foo" in at.cluster.topics) == remains
