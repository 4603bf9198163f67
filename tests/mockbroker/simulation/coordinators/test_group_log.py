"""What consumers of ``__consumer_offsets`` read: commits, deletions, generations of groups."""

import uuid
from typing import Any

import pytest

from kproto.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kproto.messages.offset_commit_value import OffsetCommitValue
from kproto.records import Record, RecordBatches
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.coordinators.group_log import group_record, offset_record
from mockbroker.simulation.coordinators.offset_rules import CommittedOffset, OffsetToCommit
from mockbroker.simulation.groups.classic.classic_group import (
    JoinRequest,
    JoinResult,
    SyncRequest,
    SyncResult,
)
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import NEWEST, Release
from tests.mockbroker.simulation.coordinators.offset_requests import coordinated

FOO_0, FOO_1, BAR_0 = ("foo", 0), ("foo", 1), ("bar", 0)
DAY = 24 * 3_600_000

# Printed by java/OffsetRecords.java with the classes of Kafka 4.4.0.
OFFSET_KEY = "00010001670003666f6f00000002"
OFFSET_4 = "0004000000000000000500000007026d00000000000003e801001000000000000000010000000000000002"
OFFSET_1 = "0001000000000000000500016d00000000000003e80000000000002328"
GROUP_KEY = "0002000167"
GROUP_3 = (
    "00030008636f6e73756d657200000003000572616e676500036d2d3100000000000003e80000000100036d2d31"
    "ffff000163000a2f3132372e302e302e31000493e00000afc80000000201020000000103"
)
MEMBER = MemberMetadata(
    member_id="m-1", client_id="c", client_host="/127.0.0.1", rebalance_timeout=300_000,
    session_timeout=45_000, subscription=b"\1\2", assignment=b"\3",
)  # fmt: skip
GENERATION = GroupMetadataValue(
    protocol_type="consumer", generation=3, protocol="range", leader="m-1",
    current_state_timestamp=1000, members=[MEMBER],
)  # fmt: skip


@pytest.mark.requirement("DP-COORD-09")
def test_records_are_kafkas_bytes() -> None:
    topic_id = uuid.UUID(int=(1 << 64) + 2)
    for expires_ms, value in ((None, OFFSET_4), (9000, OFFSET_1)):
        offset = CommittedOffset(5, 7, "m", 1000, expires_ms, 1)
        record = offset_record(NEWEST, "g", ("foo", 2), offset, topic_id)
        assert record == Record(key=bytes.fromhex(OFFSET_KEY), value=bytes.fromhex(value))
    gone = offset_record(NEWEST, "g", ("foo", 2), None, topic_id)
    assert gone == Record(key=bytes.fromhex(OFFSET_KEY), value=None)
    group = group_record(NEWEST, "g", GENERATION)
    assert group == Record(key=bytes.fromhex(GROUP_KEY), value=bytes.fromhex(GROUP_3))
    gone = group_record(NEWEST, "g", None)
    assert gone == Record(key=bytes.fromhex(GROUP_KEY), value=None)


@pytest.mark.requirement("DP-COORD-09")
@pytest.mark.parametrize(
    ("release", "offset_version", "group_version"),
    [
        ((4, 1), 4, 3),
        ((4, 0), 3, 3),
        ((2, 3), 3, 3),
        ((2, 1), 3, 2),
        ((2, 0), 1, 1),
        ((0, 10), 1, 0),
    ],
)
def test_each_release_writes_its_versions(release, offset_version, group_version):
    for ends, version in ((None, offset_version), (9000, 1)):
        offset = CommittedOffset(5, -1, "", 0, ends, 1)
        record = offset_record(Release(release), "g", FOO_0, offset)
        assert record.value is not None
        assert record.value[:2] == version.to_bytes(2, "big")
        assert OffsetCommitValue.decode(record.value[2:], version).offset == 5
    record = group_record(Release(release), "g", GENERATION)
    assert record.value is not None
    assert record.value[:2] == group_version.to_bytes(2, "big")
    assert GroupMetadataValue.decode(record.value[2:], group_version).generation == 3


def records_of(cluster: Cluster, group_id: str = "g") -> list[tuple[int, int, bool]]:
    """(timestamp, type of the key, whether it deletes) of each record of the group's partition."""
    tp = cluster.coordinators.partition_of(CoordinatorKind.GROUP, group_id)
    log = cluster.logs.log(tp)
    assert log.high_watermark == log.end_offset
    data = b"".join(log.read(0, log.end_offset, 1 << 20, at_least_one=True))
    return [
        (record.timestamp, int.from_bytes((record.key or b"")[:2], "big"), record.value is None)
        for batch in RecordBatches(data)
        for record in batch
    ]


@pytest.mark.requirement("DP-COORD-09")
def test_commits_and_deletions_are_in_the_log() -> None:
    cluster = coordinated(now_ms=5)
    offsets = [(FOO_0, OffsetToCommit(1)), (FOO_1, OffsetToCommit(2, metadata="x" * 5000))]
    cluster.offsets.groups.validate_commit(GroupCommit("g"))
    assert cluster.offsets.commit("g", offsets).results == [0, 12]
    assert records_of(cluster) == [(5, 1, False)]
    Operations(cluster).set_offset("g", FOO_1, 7)
    cluster.offsets.delete("g", [FOO_0, ("foo", 2)])
    assert records_of(cluster)[1:] == [(5, 1, False), (5, 1, True)]
    cluster.turns.advance(8 * DAY)
    *_, offset, group = records_of(cluster)
    assert [offset[1:], group[1:]] == [(1, True), (2, True)]
    assert offset[0] == group[0] > 7 * DAY


@pytest.mark.requirement("DP-COORD-09")
@pytest.mark.parametrize(("release", "made"), [((2, 4), 0), ((4, 4), 1)])
def test_generations_are_in_the_log(release: tuple[int, int], made: int) -> None:
    """Besides ``made`` records of the new group."""
    cluster = coordinated(release=release)
    joined: list[JoinResult] = []
    synced: list[SyncResult] = []
    protocols = (("range", b"\0\1\0\0\0\1\0\3foo\xff\xff\xff\xff\0\0\0\0"),)
    request = JoinRequest("g", "", "consumer", protocols, 10_000, 60_000)
    cluster.groups.join(request, joined.append)
    cluster.turns.advance(5000)
    (member,) = joined
    sync = SyncRequest("g", member.member_id, 1, assignments=((member.member_id, b"a"),))
    cluster.groups.sync(sync, synced.append)
    assert [each.error_code for each in synced] == [0]
    assert [each[1:] for each in records_of(cluster)][made:] == [(2, False)]
    cluster.turns.advance(20_000)  # the session ends, and the empty group is written
    assert [each[1:] for each in records_of(cluster)][made:] == [(2, False)] * 2
    assert cluster.groups.delete("g") == 0
    assert [each[1:] for each in records_of(cluster)][made:][2:] == [(2, True)]


@pytest.mark.requirement("DP-COORD-15")
@pytest.mark.parametrize(("release", "written"), [((3, 9), 0), ((4, 0), 1)])
def test_since_4_0_a_new_group_is_written_before_it_has_members(release, written):
    cluster = coordinated(release=release)
    request = JoinRequest(
        "g", "", "consumer", (("range", b""),), 10_000, 60_000, needs_member_id=True
    )
    for _ in range(2):
        cluster.groups.join(request, lambda result: None)
    log = cluster.logs.log(cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g"))
    data = b"".join(log.storage.read(0, len(log.storage)))
    records = [record for batch in RecordBatches(data) for record in batch]
    assert len(records) == written
    for record in records:
        assert record.value is not None
        value = GroupMetadataValue.decode(record.value[2:], 3)
        assert (value.protocol_type, value.generation, value.members) == ("", 0, [])
        assert (value.protocol, value.leader) == (None, None)


@pytest.mark.requirement("DP-COORD-09")
@pytest.mark.parametrize(("release", "written"), [((2, 4), 1), ((4, 4), 2)])
def test_a_simple_group_is_deleted_in_the_log_since_4_0(release, written):
    cluster = coordinated(release=release)
    Operations(cluster).set_offset("g", FOO_0, 1)
    before = len(records_of(cluster))
    assert cluster.groups.delete("g") == 0
    assert len(records_of(cluster)) == before + written


@pytest.mark.requirement("DP-COORD-09")
def test_offsets_are_deleted_in_the_log_before_their_group() -> None:
    cluster = coordinated()
    Operations(cluster).set_offset("g", FOO_0, 1)
    assert cluster.groups.delete("g") == 0
    assert [each[1:] for each in records_of(cluster)][-2:] == [(1, True), (2, True)]


@pytest.mark.requirement("DP-COORD-08")
def test_commits_fail_while_the_log_has_too_few_replicas() -> None:
    cluster = coordinated(2)
    Operations(cluster).set_offset("g", FOO_0, 1)
    config = ("min.insync.replicas", 0, "2")
    cluster.config_changes.alter_incrementally([(2, "__consumer_offsets", [config])])
    name, index = cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    leader = cluster.topics.partition(name, index).leader
    Operations(cluster).leave_isr((name, index), 3 - leader)
    assert cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))]).results == [15]
    with pytest.raises(ClusterError, match="COORDINATOR_NOT_AVAILABLE"):
        Operations(cluster).set_offset("g", FOO_0, 2)
    assert cluster.offsets["g"][FOO_0].offset == 1
    Operations(cluster).drop_offset("g", FOO_0)
    assert not cluster.offsets["g"]
    Operations(cluster).join_isr((name, index), 3 - leader)
    assert cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))]).results == [0]


@pytest.mark.requirement("DP-COORD-09")
def test_offsets_can_be_set_before_there_is_a_log() -> None:
    cluster = Cluster(1, topics=["foo:1:1"])
    cluster.offsets.set_offset("g", FOO_0, 1)
    assert cluster.offsets["g"][FOO_0].offset == 1
    assert "__consumer_offsets" not in cluster.topics


# ---- replication ---------------------------------------------------------------------------------


def with_held_replication(
    release: tuple[int, int] = (4, 4), **options: Any
) -> tuple[Cluster, tuple[str, int]]:
    cluster = coordinated(2, release=release, **options)
    Operations(cluster).set_offset("g", FOO_0, 1)
    tp = cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    Operations(cluster).hold_replication(tp)
    return cluster, tp


@pytest.mark.requirement("DP-COORD-08", "DP-OFFSET-16")
def test_commits_wait_for_the_replicas() -> None:
    cluster, tp = with_held_replication()
    first = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))])
    second = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(3))])
    assert (first.results, second.results) == (None, None)
    assert cluster.offsets["g"][FOO_0].offset == 1
    assert cluster.offsets.is_unstable("g", FOO_0)
    Operations(cluster).release_replication(tp)
    assert (first.results, second.results) == ([0], [0])
    assert cluster.offsets["g"][FOO_0].offset == 3
    assert not cluster.offsets.is_unstable("g", FOO_0)
    cluster.turns.advance(5000)
    assert cluster.offsets["g"][FOO_0].offset == 3


@pytest.mark.requirement("DP-COORD-08")
@pytest.mark.parametrize(("release", "code"), [((3, 9), 7), ((4, 4), 15)])
def test_commits_time_out_after_five_seconds(release: tuple[int, int], code: int) -> None:
    cluster, tp = with_held_replication(release)
    commitment = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))])
    cluster.turns.advance(4999)
    results = [commitment.results]
    cluster.turns.advance(1)
    results.append(commitment.results)
    assert results == [None, [code]]
    Operations(cluster).release_replication(tp)
    assert cluster.offsets["g"][FOO_0].offset == 1


@pytest.mark.requirement("DP-COORD-08")
def test_the_time_that_commits_wait_is_a_config() -> None:
    cluster, _ = with_held_replication(broker_configs={"offsets.commit.timeout.ms": "100"})
    commitment = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))])
    cluster.turns.advance(100)
    assert commitment.results == [15]


@pytest.mark.requirement("DP-COORD-06", "DP-COORD-08")
def test_commits_that_are_not_replicated_are_lost_with_their_leader() -> None:
    cluster, tp = with_held_replication()
    commitment = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))])
    Operations(cluster).stop_broker(cluster.topics.partition(*tp).leader)
    assert commitment.results == [16]
    assert cluster.offsets["g"][FOO_0].offset == 1
    assert cluster.logs.log(tp).end_offset == 1


@pytest.mark.requirement("DP-OFFSET-22")
def test_commits_for_a_topic_that_is_deleted_meanwhile_are_not_kept() -> None:
    cluster, tp = with_held_replication()
    commitment = cluster.offsets.commit(
        "g", [(FOO_0, OffsetToCommit(2)), (BAR_0, OffsetToCommit(4))]
    )
    cluster.topics.delete([(None, cluster.topics["foo"].topic_id)])
    Operations(cluster).release_replication(tp)
    assert commitment.results == [0, 0]
    assert set(cluster.offsets["g"]) == {BAR_0}
