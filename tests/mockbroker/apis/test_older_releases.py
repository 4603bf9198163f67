"""Answers that older releases give otherwise, on both sides of each boundary."""

from collections.abc import Sequence
from typing import Any

import pytest

from kproto.error_codes import ErrorCode, message
from kproto.messages import ShareAcknowledgeRequest, ShareFetchRequest
from mockbroker.simulation.security.filter_order import hashed_places
from mockbroker.simulation.state.results import NewTopic
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

Release = tuple[int, ...]


def broker(release: Release, *, zookeeper: bool = True, creates: bool = False) -> DirectBroker:
    cluster = simulated_cluster(
        1,
        topics=["foo=1/1", "bar=1", "__consumer_offsets=1"],
        release=release,
        reassignment="zookeeper" if zookeeper else "kraft",
        broker_configs={"auto.create.topics.enable": str(creates).lower()},
    )
    both = (2, 8) <= release < (4, 0)
    number = ".".join(map(str, (*release, 0) if release == (0, 11) else release))
    name = f"kafka-{number}{'-zk' if zookeeper and both else ''}"
    return DirectBroker(cluster, profile_name=name)


@pytest.mark.requirement("REL-02")
@pytest.mark.parametrize(("release", "operations"), [((2, 4), 0), ((2, 5), -(2**31))])
def test_operations_on_groups_that_were_not_requested(release: Release, operations: int) -> None:
    answer = broker(release).ask("DescribeGroups", 5, groups=["g"])
    assert answer.groups[0].authorized_operations == operations


@pytest.mark.requirement("REL-41")
@pytest.mark.parametrize(
    ("release", "listed"),
    [
        ((2, 5), [("foo", [1, 0]), ("foo", [1, 0]), ("bar", [0])]),
        ((2, 6), [("foo", [1, 0]), ("bar", [0])]),
        ((3, 9), [("foo", [1, 0]), ("bar", [0])]),
        ((4, 0), [("foo", [1]), ("bar", [0]), ("foo", [0, 0])]),
    ],
)
def test_deleted_offsets(release: Release, listed: list[tuple[str, list[int]]]) -> None:
    at = broker(release, zookeeper=release < (4, 0))
    commit = request_of(
        "OffsetCommit", group_id="g", name="foo", partition_index=0, committed_offset=1
    )
    assert at.ask(commit, 7).topics[0].partitions[0].error_code == 0
    empty = request_of("OffsetDelete", group_id="g", name="unknown")
    answered = [each.name for each in at.ask(empty, 0).topics]
    assert answered == (["unknown"] if release >= (3, 5) else [])
    topics = [
        {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in (("foo", [1]), ("bar", [0]), ("foo", [0, 0]))
    ]
    answer = at.ask("OffsetDelete", 0, group_id="g", topics=topics)
    assert answer.error_code == 0
    rows = [(each.name, [row.partition_index for row in each.partitions]) for each in answer.topics]
    assert rows == listed


@pytest.mark.requirement("REL-42")
@pytest.mark.parametrize(
    ("release", "listed"), [((2, 7), [("foo", [0, 1])]), ((2, 8), [("foo", [0, 0]), ("foo", [1])])]
)
def test_ends_of_epochs(release: Release, listed: list[tuple[str, list[int]]]) -> None:
    topics = [
        {"topic": "foo", "partitions": [{"partition": each, "leader_epoch": 0} for each in rows]}
        for rows in ([0, 0], [1])
    ]
    answer = broker(release).ask("OffsetForLeaderEpoch", 3, topics=topics)
    assert [(t.topic, [row.partition for row in t.partitions]) for t in answer.topics] == listed


@pytest.mark.requirement("REL-43")
@pytest.mark.parametrize(
    ("release", "creates", "code"),
    [((2, 7), False, 3), ((2, 7), True, 17), ((2, 8), False, 17), ((2, 8), True, 17)],
)
def test_metadata_of_an_invalid_name(release: Release, creates: bool, code: int) -> None:
    answer = broker(release, creates=creates).ask("Metadata", 1, name="a b")
    assert answer.topics[0].error_code == code


@pytest.mark.requirement("REL-44")
@pytest.mark.parametrize(
    ("release", "name", "code", "explained"),
    [
        ((2, 8), "a b", 3, False),
        ((2, 8), "unknown", 3, False),
        ((3, 0), "a b", 17, True),
        ((3, 0), "unknown", 3, True),
    ],
)
def test_producers_of_unknown_topics(release, name, code, explained):
    request = request_of("DescribeProducers", name=name, partition_indexes=[0])
    (row,) = broker(release).ask(request, 0).topics[0].partitions
    assert (row.error_code, row.error_message is not None) == (code, explained)


@pytest.mark.requirement("REL-45")
@pytest.mark.parametrize(
    ("release", "listed"),
    [
        ((2, 5), [("foo", [1])]),
        ((2, 6), [("foo", [1]), ("bar", [])]),
        ((3, 6), [("foo", [1]), ("bar", [])]),
        ((3, 7), [("foo", [1])]),
    ],
)
def test_topics_of_log_directories(release: Release, listed: list[tuple[str, list[int]]]) -> None:
    request = request_of("DescribeLogDirs", topic="foo", partitions=[1])
    (directory,) = broker(release).ask(request, 1).results
    rows = [(t.name, [each.partition_index for each in t.partitions]) for t in directory.topics]
    assert [row for row in rows if row[0] != "__consumer_offsets"] == listed


@pytest.mark.requirement("REL-55")
@pytest.mark.parametrize(
    ("release", "zookeeper", "count"),
    [
        ((3, 2), False, 0),
        ((3, 3), False, 3),
        ((3, 5), False, 3),
        ((3, 5), True, 0),
        ((4, 4), False, 0),
    ],
)
def test_internal_configs_of_new_topics(release: Release, zookeeper: bool, count: int) -> None:
    cluster = broker(release, zookeeper=zookeeper).cluster
    (created,) = cluster.topics.create([NewTopic("new")])
    hidden = {"remote.storage.enable", "local.retention.ms", "local.retention.bytes"}
    if release >= (4, 0):
        hidden = {"internal.segment.bytes"}
    assert len(hidden & {each.name for each in created.configs}) == count


@pytest.mark.requirement("REL-46")
@pytest.mark.parametrize(("release", "codes"), [((2, 2), [0, 3]), ((2, 3), [0, 0, 3])])
def test_topics_that_are_deleted_twice(release: Release, codes: list[int]) -> None:
    answer = broker(release).ask(
        "DeleteTopics", 3, topic_names=["foo", "foo", "none"], timeout_ms=5000
    )
    assert [each.error_code for each in answer.responses] == codes


def rule(**elements: Any) -> Any:
    good = {
        "resource_type": 2, "resource_name": "foo", "resource_pattern_type": 3,
        "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3,
    }  # fmt: skip
    return {**(good | elements)}


@pytest.mark.requirement("REL-47")
@pytest.mark.parametrize(("release", "text"), [((2, 4), None), ((2, 5), "")])
def test_texts_about_access_rules(release: Release, text: str | None) -> None:
    at = broker(release)
    created = at.ask("CreateAcls", 1, creations=[rule()]).results[0]
    assert (created.error_code, created.error_message) == (0, text)
    every = request_of(
        "DescribeAcls",
        resource_type_filter=1,
        pattern_type_filter=1,
        operation=1,
        permission_type=1,
    )
    assert at.ask(every, 1).error_message == text
    filters = [
        at.ask("CreateAcls", 1, creations=[rule(**{name: 1})])
        for name in ("resource_type", "resource_pattern_type", "operation", "permission_type")
    ]
    assert [each is None for each in filters] == [text is None] * 4


@pytest.mark.requirement("ACL-01", "REL-48")
@pytest.mark.parametrize(("release", "explained"), [((2, 5), True), ((2, 6), False)])
def test_failures_of_access_rules(release: Release, explained: bool) -> None:
    at = broker(release)
    rules = [
        rule(), rule(principal="nobody"), rule(operation=99), rule(resource_name="bar"),
    ]  # fmt: skip
    rows = at.ask("CreateAcls", 1, creations=rules).results
    assert [each.error_code for each in rows] == [-1, -1, 42, 0]
    principal = (
        "java.lang.IllegalArgumentException: expected a string in format "
        "principalType:principalName but got nobody"
    )
    text = principal if explained else None
    assert [each.error_message for each in rows] == [text, text, "Failed to create ACL", ""]
    assert [each.resource_name for each in at.cluster.acls] == ["bar"]
    (row,) = at.ask("CreateAcls", 1, creations=[rule(operation=1)]).results
    assert row.error_message == ("operation must not be ANY" if explained else None)


@pytest.mark.requirement("REL-77")
@pytest.mark.parametrize(("release", "is_read"), [((2, 4), True), ((2, 5), False)])
def test_filters_of_access_rules_with_unknown_elements(release: Release, is_read: bool) -> None:
    at = broker(release)
    every: dict[str, Any] = {"pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    described = at.ask("DescribeAcls", 1, resource_type_filter=0, **every)
    unknown = {"resource_type_filter": 0, **(every)}
    deleted = at.ask("DeleteAcls", 1, filters=[unknown])
    assert [each is not None for each in (described, deleted)] == [is_read] * 2
    if is_read:
        assert (described.resources, deleted.filter_results[0].matching_acls) == ([], [])


@pytest.mark.requirement("REL-77")
@pytest.mark.parametrize(("release", "is_read"), [((2, 4), True), ((2, 5), False)])
def test_rules_with_unknown_elements(release: Release, is_read: bool) -> None:
    answer = broker(release).ask("CreateAcls", 0, creations=[rule(operation=0), rule()])
    codes = answer and [each.error_code for each in answer.results]
    assert codes == ([42, 0] if is_read else None)


@pytest.mark.requirement("REL-83")
@pytest.mark.parametrize("zookeeper", [True, False])
def test_rules_that_several_filters_match(zookeeper: bool) -> None:
    at = broker((3, 9), zookeeper=zookeeper)
    at.ask("CreateAcls", 1, creations=[rule(), rule(resource_name="bar")])
    filters = [
        {
            "resource_type_filter": 2,
            "principal_filter": None,
            "host_filter": None,
            "resource_name_filter": name,
            "pattern_type_filter": 3,
            "operation": 1,
            "permission_type": 1,
        }
        for name in ("foo", None)
    ]
    results = at.ask("DeleteAcls", 1, filters=filters).filter_results
    names = [sorted(each.resource_name for each in row.matching_acls) for row in results]
    assert names == [["foo"], ["bar"] if zookeeper else ["bar", "foo"]]
    assert not at.cluster.acls


@pytest.mark.requirement("REL-78")
@pytest.mark.parametrize(("release", "code"), [((2, 3), -1), ((2, 7), -1), ((2, 8), 42)])
@pytest.mark.parametrize("kind", [2, 99])
def test_unknown_kinds_of_coordinators(release: Release, code: int, kind: int) -> None:
    answer = broker(release).ask("FindCoordinator", 1, key="g", key_type=kind)
    assert (answer.error_code, answer.error_message) == (code, message(ErrorCode(code)))
    assert broker((2, 2)).ask("FindCoordinator", 1, key="g", key_type=kind) is None


@pytest.mark.requirement("REL-85")
@pytest.mark.parametrize(("release", "listed"), [((2, 2), ["g", "h"]), ((2, 3), ["g", "h", "g"])])
def test_groups_that_are_described_twice(release: Release, listed: list[str]) -> None:
    answer = broker(release).ask("DescribeGroups", 0, groups=["g", "h", "g"])
    assert [each.group_id for each in answer.groups] == listed


@pytest.mark.requirement("REL-56")
@pytest.mark.parametrize("release", [(1, 0), (1, 1), (2, 3), (2, 4)])
def test_valid_names_of_access_rules(release: Release) -> None:
    rules = [
        rule(resource_type=32, principal="nobody"), rule(operation=99, principal="nobody"),
        rule(operation=99, resource_name=""), rule(permission_type=-2), rule(),
    ]  # fmt: skip
    answer = broker(release).ask("CreateAcls", 0, creations=rules)
    if release >= (2, 4):
        codes = [each.error_code for each in answer.results]
        assert codes == [42, 42, 42, 42, 0]
        assert "valid names" not in str(answer)
        return
    names = "Topic,Group,Cluster,TransactionalId" + (",DelegationToken" * (release >= (1, 1)))
    operations = (
        "Read,Write,Create,Delete,Alter,Describe,ClusterAction,AlterConfigs,DescribeConfigs,"
        "IdempotentWrite,All"
    )
    assert [(each.error_code, each.error_message) for each in answer.results] == [
        (42, f"UNKNOWN not a valid resourceType name. The valid names are {names}"),
        (42, "expected a string in format principalType:principalName but got nobody"),
        (42, f"UNKNOWN not a valid operation name. The valid names are {operations}"),
        (42, "UNKNOWN not a valid permissionType name. The valid names are Allow,Deny"),
        (0, None),
    ]


@pytest.mark.requirement("REL-56")
@pytest.mark.parametrize(
    ("release", "text"),
    [((2, 3), "patternType must not be UNKNOWN"), ((2, 4), "Failed to create ACL")],
)
def test_unknown_pattern_types_of_access_rules(release: Release, text: str) -> None:
    rules = [rule(resource_pattern_type=8), rule(resource_pattern_type=8, operation=99)]
    found = broker(release).ask("CreateAcls", 1, creations=rules).results
    assert [each.error_code for each in found] == [42, 42]
    assert found[0].error_message == text
    assert (found[1].error_message != text) == (release == (2, 3))


@pytest.mark.requirement("DP-MARK-01")
@pytest.mark.parametrize(
    ("release", "epoch", "code"),
    [((3, 9), -2, 47), ((3, 9), -1, -1), ((4, 4), -2, 47), ((4, 4), -1, -1)],
)
def test_markers_without_a_producer_epoch(release: Release, epoch: int, code: int) -> None:
    marker = {"producer_id": 1, "producer_epoch": epoch, "name": "foo", "partition_indexes": [0]}
    answer = broker(release, zookeeper=False).ask("WriteTxnMarkers", 1, markers=[marker])
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode(code)


@pytest.mark.requirement("REL-70")
@pytest.mark.parametrize(("release", "generation"), [((2, 1), 0), ((2, 2), -1)])
def test_generations_of_refused_joins(release: Release, generation: int) -> None:
    answer = broker(release).ask(
        "JoinGroup",
        2,
        group_id="g",
        session_timeout_ms=30000,
        member_id="stranger",
        protocol_type="consumer",
    )
    assert (answer.error_code, answer.generation_id) == (25, generation)


def offsets_query(*, isolation_level: int = 0, partitions: Sequence[int] = (0,)) -> Any:
    rows = [{"partition_index": each, "timestamp": -1} for each in partitions]
    topics = [{"name": name, "partitions": rows} for name in ("foo", "foo")]
    return request_of("ListOffsets", isolation_level=isolation_level, topics=topics)


def fetch_query(*, isolation_level: int = 0, **fields: Any) -> Any:
    row = {"partition": 0, "partition_max_bytes": 1000}
    topics = [{"topic": "foo", "partitions": [row]}]
    return request_of(
        "Fetch", max_bytes=1000, isolation_level=isolation_level, topics=topics, **fields
    )


@pytest.mark.requirement("REL-71")
@pytest.mark.parametrize(
    ("request_", "version", "until"),
    [
        (request_of("FindCoordinator", key="g", key_type=-128), 1, (2, 3)),
        (fetch_query(isolation_level=-128), 4, (2, 7)),
        (offsets_query(isolation_level=2), 2, (2, 7)),
    ],
)
def test_requests_that_cannot_be_read(request_: Any, version: int, until: Release) -> None:
    before = (until[0], until[1] - 1)
    assert broker(before).ask(request_, version) is None
    assert broker(until).ask(request_, version) is not None


@pytest.mark.requirement("DP-FETCH-27")
@pytest.mark.parametrize(("release", "rows"), [((3, 0), 1), ((3, 1), 3)])
def test_a_fetch_that_fails_as_a_whole_and_names_a_partition_again(
    release: Release, rows: int
) -> None:
    request = fetch_query(isolation_level=2)
    request.topics *= 3
    answer = broker(release).ask(request, 8)
    assert answer.error_code == -1
    assert [each.error_code for topic in answer.responses for each in topic.partitions] == (
        [-1] * rows
    )


@pytest.mark.requirement("REL-72")
@pytest.mark.parametrize(("release", "codes"), [((1, 1), [0, 3]), ((2, 0), [3, 3])])
def test_offsets_of_partitions_that_do_not_exist(release: Release, codes: list[int]) -> None:
    rows = [{"partition_index": 9, "committed_offset": 1}]
    topics = [{"name": name, "partitions": rows} for name in ("foo", "none")]
    answer = broker(release).ask("OffsetCommit", 3, group_id="g", topics=topics)
    found = {each.name: each.partitions[0].error_code for each in answer.topics}
    assert [found["foo"], found["none"]] == codes


@pytest.mark.requirement("REL-73")
@pytest.mark.parametrize(("release", "mechanisms"), [((1, 0), ["GSSAPI"]), ((1, 1), [])])
def test_mechanisms_of_listeners_without_authentication(release, mechanisms):
    answer = broker(release).ask("SaslHandshake", 0, mechanism="PLAIN")
    assert (answer.error_code, answer.mechanisms) == (34, mechanisms)


@pytest.mark.requirement("REL-74")
@pytest.mark.parametrize(
    ("release", "isolation_level", "offset"),
    [((2, 0), 0, -1), ((2, 0), 1, 0), ((2, 1), 0, 0), ((2, 1), 1, 0)],
)
def test_last_stable_offsets(release: Release, isolation_level: int, offset: int) -> None:
    answer = broker(release).ask(fetch_query(isolation_level=isolation_level), 5)
    assert answer.responses[0].partitions[0].last_stable_offset == offset


@pytest.mark.requirement("DP-FETCH-26")
@pytest.mark.parametrize(
    ("release", "replica_id", "code"),
    [
        ((0, 11), 7, -1), ((1, 0), 7, 0), ((0, 11), 1, -1), ((2, 3), 1, -1), ((2, 4), 1, 0),
    ],
)  # fmt: skip
def test_fetches_of_replicas_that_are_none(release: Release, replica_id: int, code: int) -> None:
    answer = broker(release).ask(fetch_query(replica_id=replica_id), 5)
    assert answer.responses[0].partitions[0].error_code == code


@pytest.mark.requirement("REL-112")
@pytest.mark.parametrize(("release", "once"), [((3, 4), True), ((3, 5), False)])
def test_groups_whose_offsets_are_fetched_twice(release: Release, once: bool) -> None:
    groups = [
        {"group_id": group, "topics": [{"name": name, "partition_indexes": [0]}]}
        for group, name in (("g", "foo"), ("h", "foo"), ("g", "none"))
    ]
    answer = broker(release).ask("OffsetFetch", 8, groups=groups)
    rows = [(each.group_id, each.topics[0].name) for each in answer.groups]
    every = [("g", "foo"), ("h", "foo"), ("g", "none")]
    assert rows == ([("g", "none"), ("h", "foo")] if once else every)


@pytest.mark.requirement("DP-LISTOFF-16")
@pytest.mark.parametrize(("release", "code"), [((2, 0), 9), ((2, 1), 3)])
def test_replicas_that_a_debugger_asks_for(release: Release, code: int) -> None:
    for version in (0, 1):
        for replica_id, partitions, expected in (
            (-2, [9], [code]), (-1, [9], [3]), (-2, [0], [0]),
        ):  # fmt: skip
            request = offsets_query(partitions=partitions)
            request.replica_id, request.topics = replica_id, request.topics[:1]
            answer = broker(release).ask(request, version)
            assert [each.error_code for each in answer.topics[0].partitions] == expected


@pytest.mark.requirement("DP-LISTOFF-14")
@pytest.mark.parametrize(
    ("release", "version", "partitions", "codes"),
    [
        ((2, 6), 2, [0], [[42]]), ((2, 7), 2, [0], [[42], [42]]), ((2, 6), 0, [0], [[0]]),
        ((2, 6), 2, [], []), ((2, 7), 2, [], [[], []]),
    ],
)  # fmt: skip
def test_partitions_whose_offsets_are_listed_twice(release, version, partitions, codes):
    answer = broker(release).ask(offsets_query(partitions=partitions), version)
    assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == codes


@pytest.mark.requirement("DP-MARK-01")
@pytest.mark.parametrize(("epoch", "code"), [(-2, 52), (-1, 0)])
def test_markers_of_coordinators_before_the_first(epoch: int, code: int) -> None:
    marker = {
        "producer_id": 1,
        "producer_epoch": 0,
        "coordinator_epoch": epoch,
        "name": "foo",
        "partition_indexes": [0],
    }
    answer = broker((0, 11)).ask("WriteTxnMarkers", 0, markers=[marker])
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode(code)


@pytest.mark.requirement("DP-MARK-01")
def test_markers_without_a_producer() -> None:
    marker = {"producer_id": -1, "producer_epoch": 0, "name": "foo", "partition_indexes": [0]}
    (row,) = broker((3, 9)).ask("WriteTxnMarkers", 1, markers=[marker]).markers
    assert (row.producer_id, row.topics[0].partitions[0].error_code) == (-1, -1)


@pytest.mark.requirement("DP-SHARE-03")
@pytest.mark.parametrize(("release", "code"), [((4, 2), -1), ((4, 3), 42)])
@pytest.mark.parametrize("request_type", [ShareFetchRequest, ShareAcknowledgeRequest])
def test_share_sessions_without_a_group(release: Release, code: int, request_type: Any) -> None:
    request = request_type(group_id=None, member_id="m")
    answer = broker(release, zookeeper=False).ask(request, 1)
    assert (answer.error_code, answer.error_message) == (code, None)


@pytest.mark.requirement("DP-SHARE-03")
@pytest.mark.parametrize(("release", "code"), [((4, 2), -1), ((4, 3), 42)])
@pytest.mark.parametrize("request_type", [ShareFetchRequest, ShareAcknowledgeRequest])
def test_share_sessions_without_a_member(release: Release, code: int, request_type: Any) -> None:
    request = request_type(group_id="g", member_id=None)
    answer = broker(release, zookeeper=False).ask(request, 1)
    assert (answer.error_code, answer.error_message) == (code, None)


@pytest.mark.requirement("DP-API-33")
@pytest.mark.parametrize(
    ("release", "text"),
    [
        ((3, 6), "Unknown resource type 16"),
        (
            (3, 9),
            "AlterConfigs is only supported for topics and brokers, but resource type is "
            "CLIENT_METRICS",
        ),
    ],
)
def test_subscriptions_of_metrics_in_zookeeper_mode(release: tuple[int, int], text: str) -> None:
    """As Kafka 3.9.2 answers. The config type came with 3.7."""
    configs = [{"name": "interval.ms", "value": "100"}]
    resource = {"resource_type": 16, "resource_name": "x", "configs": configs}
    for request in ("AlterConfigs", "IncrementalAlterConfigs"):
        (row,) = broker(release).ask(request, 1, resources=[resource]).responses
        assert (row.error_code, row.error_message) == (42, text)


@pytest.mark.requirement("DP-API-33")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x", "Config type client-metrics is only supported on KRaft clusters"),
        ("", "Client metrics subscription name must not be empty"),
    ],
)
def test_described_subscriptions_in_zookeeper_mode(name: str, text: str) -> None:
    resource = {"resource_type": 16, "resource_name": name, "configuration_keys": None}
    (row,) = broker((3, 9)).ask("DescribeConfigs", 4, resources=[resource]).results
    assert (row.error_code, row.error_message, row.configs) == (42, text, [])


@pytest.mark.requirement("FEAT-16")
def test_the_first_update_of_a_feature_counts_in_zookeeper_mode() -> None:
    """As Kafka 3.9.2 answers."""
    updates = [
        {"feature": "transaction.version", "max_version_level": level, "upgrade_type": 1}
        for level in (2, 0)
    ]
    (row,) = broker((3, 9)).ask("UpdateFeatures", 1, feature_updates=updates).results
    assert row.error_message == (
        "Could not apply finalized feature update because the provided feature is not supported."
    )


@pytest.mark.requirement("DP-OFFSET-11")
def test_offsets_in_zookeeper_are_committed_one_by_one() -> None:
    """As Kafka 3.9.2 answers, also for a partition that comes again."""
    topic = {"name": "foo", "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    found = broker((3, 9)).ask("OffsetCommit", 0, group_id="g", topics=[topic, topic]).topics
    assert [[row.error_code for row in each.partitions] for each in found] == [[0, 0]]


@pytest.mark.requirement("DP-API-33")
@pytest.mark.parametrize(("zookeeper", "value"), [(True, "1"), (False, " 1 ")])
def test_configs_of_a_new_topic_are_shown_as_given_by_kraft(zookeeper: bool, value: str) -> None:
    """As Kafka 3.9.2 answers with ZooKeeper, and 4.1.2."""
    topic = {
        "name": "new",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": " 1 "}],
    }
    at = broker((3, 9), zookeeper=zookeeper)
    (row,) = at.ask("CreateTopics", 6, topics=[topic], timeout_ms=5000).topics
    assert {each.name: each.value for each in row.configs}["retention.ms"] == value


@pytest.mark.requirement("REL-75")
@pytest.mark.parametrize(
    ("count", "factor", "text"),
    [
        (0, 1, "number of partitions must be larger than 0"),
        (1, 0, "replication factor must be larger than 0"),
        (1, 2, "replication factor: 2 larger than available brokers: 1"),
    ],
)
def test_texts_about_counts_of_new_topics(count: int, factor: int, text: str) -> None:
    topic = {"name": "new", "num_partitions": count, "replication_factor": factor}
    request = request_of("CreateTopics", topics=[topic], timeout_ms=5000)
    former, later = (
        broker(release).ask(request, 2).topics[0].error_message for release in ((0, 11), (1, 0))
    )
    assert (former, later) == (text, f"{text[0].upper()}{text[1:]}.")


@pytest.mark.requirement("REL-93")
@pytest.mark.parametrize(("release", "code"), [((1, 0), 42), ((1, 1), 0)])
def test_configs_of_brokers(release: Release, code: int) -> None:
    config = {"name": "retention.ms", "value": "1"}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    body = request_of("AlterConfigs", resources=[resource], validate_only=True)
    (row,) = broker(release).ask(body, 0).responses
    text = "AlterConfigs is only supported for topics, but resource type is BROKER"
    assert (row.error_code, row.error_message) == (code, text if code else None)
    described = request_of("DescribeConfigs", resource_type=4, resource_name="")
    (shown,) = broker(release).ask(described, 0).results
    text = "Broker id must be an integer, but it is: "
    assert (shown.error_code, shown.error_message) == (code, text if code else None)


OLDEST, NEXT = (0, 10, 2), (0, 11)


@pytest.mark.requirement("REL-94", "REL-30")
@pytest.mark.parametrize(
    ("name", "text", "later"),
    [
        ("", "topic name is illegal, can't be empty", "Topic name is illegal, it can't be empty"),
        (".", 'topic name cannot be "." or ".."', 'Topic name cannot be "." or ".."'),
        ("n" * 250, "topic name is illegal, can't be longer than 249 characters",
         "Topic name is illegal, it can't be longer than 249 characters, topic name: " + "n" * 250),
        ("a b", "topic name a b is illegal, contains a character other than ASCII alphanumerics, "
         "'.', '_' and '-'", 'Topic name "a b" is illegal, it contains a character other than '
         "ASCII alphanumerics, '.', '_' and '-'"),
    ],
)  # fmt: skip
def test_texts_about_names_of_topics(name: str, text: str, later: str) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    for release, expected in ((OLDEST, text), (NEXT, later)):
        (row,) = broker(release).ask("CreateTopics", 1, topics=[topic]).topics
        assert (row.error_code, row.error_message) == (17, expected)


@pytest.mark.requirement("REL-94")
@pytest.mark.parametrize(
    ("release", "text"),
    [(OLDEST, "Unknown Log configuration x.y."), (NEXT, "Unknown topic config name: x.y")],
)
def test_texts_about_unknown_configs_of_topics(release: Release, text: str) -> None:
    config = {"name": "x.y", "value": "1"}
    topic = {"name": "n", "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    (row,) = broker(release).ask("CreateTopics", 1, topics=[topic]).topics
    assert (row.error_code, row.error_message) == (40, text)


@pytest.mark.requirement("REL-95")
@pytest.mark.parametrize(("release", "is_read"), [(OLDEST, False), (NEXT, True)])
def test_nulls_that_cannot_be_read(release: Release, is_read: bool) -> None:
    config = {"name": "retention.ms", "value": None}
    topic = {"name": "n", "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    data = {"name": "foo", "index": 0}
    produce = request_of("Produce", acks=1, timeout_ms=0, topic_data=[data])
    for body, version in ((request_of("CreateTopics", topics=[topic]), 1), (produce, 2)):
        assert (broker(release).ask(body, version) is not None) == is_read


@pytest.mark.requirement("REL-96")
@pytest.mark.parametrize("release", [(2, 4), (3, 9)])
def test_names_of_resources_are_those_of_znodes(release: Release) -> None:
    at = broker(release)
    names = (".", "a/b", "ok", "ok/b")
    rules = [rule(resource_name=name) for name in names]
    literal = at.ask("CreateAcls", 1, creations=rules[:3]).results
    below = at.ask("CreateAcls", 1, creations=rules[3:]).results
    assert [each.error_code for each in (*literal, *below)] == [-1, -1, 0, 0]
    texts = [
        'java.lang.IllegalArgumentException: Invalid path string "/kafka-acl/Topic/." caused by '
        "relative paths not allowed @17",
        "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for "
        "/kafka-acl/Topic/a/b",
    ]
    assert [each.error_message for each in literal[:2]] == (
        texts if release == (2, 4) else [None, None]
    )
    prefixed = rule(resource_name="..", resource_pattern_type=4)
    (refused,) = at.ask("CreateAcls", 1, creations=[prefixed]).results
    assert (refused.error_code, refused.error_message) == (
        (-1, texts[0].replace("/kafka-acl/Topic/.", "/kafka-acl-extended/prefixed/Topic/..")
             .replace("@17", "@36")) if release == (2, 4) else (-1, None)
    )  # fmt: skip


@pytest.mark.requirement("REL-97")
@pytest.mark.parametrize(("release", "code"), [((3, 8), 0), ((3, 9), 42)])
def test_principals_without_a_colon(release: Release, code: int) -> None:
    body = request_of("CreateAcls", creations=[rule(principal="nobody")])
    (row,) = broker(release, zookeeper=False).ask(body, 1).results
    assert row.error_code == code


@pytest.mark.requirement("CONFIG-21")
@pytest.mark.parametrize("release", [(2, 4), (2, 6)])
def test_null_values_of_incremental_changes(release: Release) -> None:
    at = broker(release)
    answers = []
    for name, how in (("retention.ms", 0), ("retention.ms", 2), ("retention.ms", 1)):
        config = {"name": name, "config_operation": how, "value": None}
        resource = {"resource_type": 2, "resource_name": "foo", "configs": [config]}
        body = request_of("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        answers.append(at.ask(body, 0).responses[0].error_code)
    assert answers == ([-1, 42, 0] if release == (2, 4) else [42, 42, 0])


@pytest.mark.requirement("REL-111")
@pytest.mark.parametrize(("release", "code"), [((4, 3), 0), ((4, 4), 42)])
def test_rules_without_a_host(release: Release, code: int) -> None:
    body = request_of("CreateAcls", creations=[rule(host="")])
    (row,) = broker(release, zookeeper=False).ask(body, 1).results
    assert row.error_code == code


@pytest.mark.requirement("REL-106")
@pytest.mark.parametrize(
    ("release", "count", "place"),
    [((2, 3), 2, 1), ((2, 3), 3, 2), ((2, 3), 8, 2), ((2, 4), 2, 0), ((2, 4), 8, 0)],
)
def test_rules_that_several_filters_match_until_2_4(release, count, place):
    at = broker(release)
    at.ask("CreateAcls", 1, creations=[rule()])
    every = {
        "resource_type_filter": 2,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    rows = at.ask("DeleteAcls", 1, filters=[every] * count).filter_results
    assert [each for each, row in enumerate(rows) if row.matching_acls] == [place]


@pytest.mark.requirement("REL-106")
def test_order_of_many_filters() -> None:
    for count in (12, 13, 100):
        assert sorted(hashed_places(count)) == list(range(count))
    assert hashed_places(12) != hashed_places(13)[:-1]


@pytest.mark.requirement("REL-107")
@pytest.mark.parametrize(
    ("release", "form"),
    [
        ((2, 2), "[partitionId],[brokerId]:[partitionId],[brokerId]:..."),
        ((2, 3), "[partitionId]:[brokerId],[partitionId]:[brokerId],..."),
    ],
)
@pytest.mark.parametrize("side", ["leader", "follower"])
def test_form_of_throttled_replicas(release: Release, form: str, side: str) -> None:
    config = {"name": f"{side}.replication.throttled.replicas", "value": "x"}
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    (row,) = broker(release).ask("CreateTopics", 1, topics=[topic]).topics
    assert row.error_code == 40
    assert row.error_message.endswith(f"following format: {form}")
