"""Offsets of consumer groups, what the log gets, and coordinators that move."""

from typing import Any

import pytest

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kproto.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kproto.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kproto.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
from kproto.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from kproto.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kproto.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.log.batches.record_documents import LoggedRecord
from mockbroker.simulation.log.seeding import read_records
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.simulation.groups.consumers import Consumers
from tests.mockbroker.simulation.groups.test_mixed_groups import Mixed

STALE, OLD = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION
FOO_0, FOO_5 = ("foo", 0), ("foo", 5)


def commit(at: Consumers, member: str, epoch: int, **fields: Any) -> int:
    fields.setdefault("version", 9)
    fields.setdefault("partitions", [FOO_0])
    instance = fields.pop("instance", None)
    return at.cluster.groups.validate_commit(GroupCommit("g", member, instance, epoch, **fields))


# ---- OffsetCommit --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-MIGRATE-06")
def test_a_member_commits_with_its_epoch() -> None:
    at = Consumers()
    at.join("a")
    at.join("b")
    at.settle()
    assert commit(at, "a", 2) == 0
    assert commit(at, "nobody", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(at, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(at, "a", 3) == STALE
    assert commit(at, "a", 2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    at.leave("a")
    at.leave("b")
    assert commit(at, "", -1, version=2) == 0, "whoever has no group may commit to an empty one"
    assert commit(at, "a", 2) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-MIGRATE-06")
@pytest.mark.parametrize(("release", "code"), [((4, 2), STALE), ((4, 3), 0)])
def test_an_earlier_epoch_will_do_for_what_the_member_had(release, code):
    at = Consumers(release)
    first = at.join("a").member_epoch
    at.join("b")
    at.beat("a")
    assert commit(at, "a", first) == 0
    at.beat("a", owned=["foo-0", "foo-1", "foo-2"])
    at.beat("b")
    assert commit(at, "a", first) == code
    assert commit(at, "a", first, partitions=[FOO_0, FOO_5]) == STALE, "it has no foo-5"
    assert commit(at, "b", first, partitions=[FOO_5]) == STALE, "it had none of it then"
    assert commit(at, "a", first, partitions=[("nowhere", 0)]) == STALE
    at.join("c")
    at.beat("a")
    assert at.revoking("a") == ["foo-2"]
    given_up = commit(at, "a", first, partitions=[("foo", 2)])
    assert given_up == code, "it has it until it gives it up"


@pytest.mark.requirement("DP-MIGRATE-06")
def test_a_static_member_that_came_back_has_its_partitions_from_the_beginning() -> None:
    at = Consumers((4, 3))
    at.join("a", instance_id="one")
    at.groups.force_rebalance("g")
    at.settle()
    at.leave("a", -2, instance_id="one")
    at.join("b", instance_id="one")
    assert commit(at, "b", 1) == 0


@pytest.mark.requirement("DP-MIGRATE-06")
def test_classic_members_have_the_errors_of_their_protocol() -> None:
    at = Mixed()
    at.join("a")
    member = at.classic_join().result.member_id
    assert commit(at, member, 2, version=2) == 0
    assert commit(at, member, 3, version=2) == OLD
    assert commit(at, member, 1, version=2) == OLD


@pytest.mark.requirement("DP-MIGRATE-06")
def test_a_transaction_may_name_no_member() -> None:
    at = Consumers()
    at.join("a")
    assert commit(at, "", -1, version=2, transactional=True) == 0
    assert commit(at, "a", 1, version=2, transactional=True) == 0
    assert commit(at, "a", 2, version=2, transactional=True) == OLD, "it has no error for epochs"
    assert commit(at, "", -1, transactional=True, instance="one") == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-MIGRATE-07")
def test_a_fetch_of_offsets_may_name_a_member() -> None:
    at = Mixed()
    at.join("a")
    groups = at.cluster.groups
    assert groups.validate_fetch("g", None, -1) == 0
    assert groups.validate_fetch("g", "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.validate_fetch("g", None, 1) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.validate_fetch("g", "nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.validate_fetch("g", "a", 1) == 0
    assert groups.validate_fetch("g", "a", 0) == STALE
    member = at.classic_join().result.member_id
    assert groups.validate_fetch("g", member, 2) == 0
    assert groups.validate_fetch("g", member, 1) == OLD
    assert groups.validate_fetch("unknown", "a", 7) == 0


# ---- administration ------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-19", "DP-OFFSET-20")
def test_groups_and_offsets_are_deleted() -> None:
    at = Consumers()
    Operations(at.cluster).set_offset("g", "foo-0", 3)
    at.join("a")
    groups = at.cluster.groups
    assert groups.delete("g") == ErrorCode.NON_EMPTY_GROUP
    assert groups.validate_offset_delete("g") == 0
    assert groups.is_subscribed("g", "foo")
    assert not groups.is_subscribed("g", "bar")
    at.leave("a")
    assert not groups.is_subscribed("g", "foo")
    assert groups.delete("g") == 0
    assert (groups.group("g"), dict(at.cluster.offsets["g"])) == (None, {})
    assert groups.delete("g") == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.requirement("DP-OFFSET-21")
def test_offsets_expire_unless_a_member_subscribes() -> None:
    at = Consumers(topics=["foo:1:1", "bar:1:1"], offsets_retention_minutes=1)
    Operations(at.cluster).set_offset("g", "foo-0", 1)
    Operations(at.cluster).set_offset("g", "bar-0", 1)
    at.join("a")
    for _ in range(20):
        at.advance(40_000)
        at.beat("a")
    assert list(at.cluster.offsets["g"]) == [("foo", 0)]
    at.leave("a")
    at.advance(600_000)
    assert at.cluster.groups.group("g") is None, "it goes with its last offset"


# ---- the log -------------------------------------------------------------------------------------


VALUES: dict[int, type[Message]] = {
    3: ConsumerGroupMetadataValue,
    4: ConsumerGroupPartitionMetadataValue,
    5: ConsumerGroupMemberMetadataValue,
    6: ConsumerGroupTargetAssignmentMetadataValue,
    7: ConsumerGroupTargetAssignmentMemberValue,
    8: ConsumerGroupCurrentMemberAssignmentValue,
    16: ConsumerGroupRegularExpressionValue,
}


def logged(at: Consumers, since: int = 0) -> list[tuple[int, Any]]:
    """The records of consumer groups in the log: (type, value or None)."""
    tp = at.cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    found = []
    for each in read_records(tp, at.cluster.logs.log(tp)):
        assert isinstance(each, LoggedRecord)
        assert each.key is not None
        kind = int.from_bytes(each.key[:2], "big")
        if kind in VALUES:
            assert each.key[2:].endswith(b"g") or b"g" in each.key[2:]
            value = None if each.value is None else VALUES[kind].decode(each.value[2:], 0)
            found.append((kind, value))
    return found[since:]


def kinds(records: list[tuple[int, Any]]) -> list[int]:
    return [kind if value is not None else -kind for kind, value in records]


def coordinated(release: tuple[int, int] = (4, 3), **options: Any) -> Consumers:
    at = Consumers(release, **options)
    Operations(at.cluster).set_offset("other", "foo-0", 0)  # makes the internal topic
    return at


@pytest.mark.requirement("DP-CGH-22", "DP-CGH-28")
def test_groups_are_written_as_kafka_writes_them() -> None:
    at = coordinated()
    at.advance(77)
    at.join("a", instance_id="one", rack_id="r", assignor="range")
    records = logged(at)
    assert kinds(records) == [5, 3, 7, 6, 8]
    member, group, target, target_epoch, current = (value for _, value in records)
    assert (member.instance_id, member.rack_id, member.server_assignor) == ("one", "r", "range")
    assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["foo"], "")
    assert (member.rebalance_timeout_ms, member.classic_member_metadata) == (60_000, None)
    assert (group.epoch, group.metadata_hash != 0) == (2, True)
    assert [each.partitions for each in target.topic_partitions] == [[0, 1, 2, 3, 4, 5]]
    assert (target_epoch.assignment_epoch, target_epoch.assignment_timestamp) == (2, 77)
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (2, 0, 0)
    assert current.assigned_partitions[0].assignment_epochs == [2] * 6
    at.beat("a", instance_id="one")
    assert len(logged(at)) == 5, "a heartbeat that changes nothing writes nothing"
    at.join("b")
    at.beat("a", instance_id="one")
    current = logged(at)[-1][1]
    assert (current.state, current.member_epoch, current.previous_member_epoch) == (1, 2, 2)
    assert current.partitions_pending_revocation[0].partitions == [3, 4, 5]


@pytest.mark.requirement("DP-CGH-28")
def test_what_is_gone_is_deleted_from_the_log() -> None:
    at = coordinated()
    at.join("a")
    count = len(logged(at))
    at.leave("a")
    assert kinds(logged(at, count)) == [-8, -7, -5, 3]
    count = len(logged(at))
    assert at.cluster.groups.delete("g") == 0
    assert kinds(logged(at, count)) == [-6, -4, -3]
    tp = at.cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    newest = [*read_records(tp, at.cluster.logs.log(tp))][-1]
    assert isinstance(newest, LoggedRecord)
    assert (newest.key or b"")[:2] == b"\0\3", "nothing of a classic group follows"


@pytest.mark.requirement("DP-CGH-28", "DP-CGH-22")
def test_the_target_of_an_empty_group_has_no_time() -> None:
    at = coordinated((4, 4))
    at.advance(5)
    at.join("a")
    count = len(logged(at))
    at.leave("a")
    records = logged(at, count)
    assert kinds(records) == [-8, -7, -5, 3, 6]
    assert (records[-1][1].assignment_epoch, records[-1][1].assignment_timestamp) == (3, 0)
    at.join("b")
    assert at.group.target_epoch == 4, "its next member does not wait for the interval"


@pytest.mark.requirement("DP-CGH-28")
def test_the_deletions_of_offsets_come_before_that_of_the_group() -> None:
    at = coordinated((4, 4))
    at.join("a")
    Operations(at.cluster).set_offset("g", "foo-0", 3)
    at.leave("a")
    tp = at.cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    log = at.cluster.logs.log(tp)
    count = len(list(read_records(tp, log)))
    assert at.cluster.groups.delete("g") == 0
    deletions = [each for each in read_records(tp, log) if isinstance(each, LoggedRecord)][count:]
    assert [each.value for each in deletions] == [None] * len(deletions)
    assert [int.from_bytes((each.key or b"")[:2], "big") for each in deletions] == [1, 6, 4, 3]


@pytest.mark.requirement("DP-CGH-28")
def test_regular_expressions_are_written() -> None:
    at = coordinated()
    at.advance(5)
    at.join("a", topic_regex="f.*")
    records = logged(at)
    assert kinds(records) == [5, 8, 16, 3]
    assert (records[2][1].topics, records[2][1].timestamp) == (["foo"], 5)
    count = len(records)
    at.join("a", topic_regex="")
    assert -16 in kinds(logged(at, count))


@pytest.mark.requirement("DP-CGH-28")
def test_a_static_member_that_returns_is_written_anew() -> None:
    at = coordinated()
    at.join("a", instance_id="one")
    at.leave("a", -2, instance_id="one")
    current = logged(at)[-1][1]
    assert (current.member_epoch, current.assigned_partitions[0].assignment_epochs) == (-2, [0] * 6)
    count = len(logged(at))
    at.join("b", instance_id="one")
    assert kinds(logged(at, count)) == [-8, -7, -5, 5, 7, 8, 8]


@pytest.mark.requirement("DP-CGH-28")
@pytest.mark.parametrize(
    ("release", "written", "epochs", "timestamp"),
    [((4, 0), [5, 4, 3, 7, 6, 8], [], 0), ((4, 2), [5, 3, 7, 6, 8], [], 0)],
)
def test_earlier_releases_write_something_else(release, written, epochs, timestamp):
    at = coordinated(release)
    at.advance(5)
    at.join("a")
    records = logged(at)
    assert kinds(records) == written
    values = dict(records)
    assert values[8].assigned_partitions[0].assignment_epochs == epochs
    assert values[6].assignment_timestamp == timestamp
    assert (values[3].metadata_hash == 0) == (release < (4, 1))
    if release < (4, 1):
        (topic,) = values[4].topics
        assert (topic.topic_name, topic.num_partitions) == ("foo", 6)


@pytest.mark.requirement("DP-CGH-21")
@pytest.mark.parametrize(("release", "epoch"), [((4, 0), 1), ((4, 1), 2)])
def test_racks_count_since_4_1(release: tuple[int, int], epoch: int) -> None:
    brokers = [Broker(1, rack="x"), Broker(2, rack="y")]
    at = Consumers(release, ["foo=1"], brokers)
    at.join("a")
    at.cluster.reassignments.alter([("foo", [(0, [1, 2])])])
    at.beat("a")
    assert at.group.epoch == epoch


# ---- coordinators that move ----------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-28", "DP-COORD-07")
def test_another_coordinator_goes_on() -> None:
    at = coordinated(brokers=3)
    at.join("a", rebalance_timeout_ms=20_000)
    at.join("b")
    at.beat("a")
    assert at.revoking("a") == ["foo-3", "foo-4", "foo-5"]
    at.advance(10_000)
    at.beat("b")
    leader = at.cluster.topics.partition(
        *at.cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    )
    other = next(i for i in leader.isr if i != leader.leader)
    Operations(at.cluster).move_coordinator("group", "g", other)
    assert at.member_state("a") == (2, "UNREVOKED")
    at.advance(19_999)
    assert "a" in at.group.members, "its time begins anew"
    at.advance(1)
    assert "a" not in at.group.members
    assert at.beat("b", owned=[]).error_code == 0
    at.advance(45_000)
    assert at.state == "Empty"


@pytest.mark.requirement("DP-CGH-28", "DP-COORD-07")
def test_a_coordinator_that_loads_fences_nobody() -> None:
    at = coordinated(brokers=3)
    at.join("a")
    Operations(at.cluster).load_coordinator("group", "g")
    at.advance(100_000)
    assert "a" in at.group.members
    Operations(at.cluster).finish_loading("group", "g")
    at.advance(44_999)
    assert "a" in at.group.members
    at.advance(1)
    assert at.state == "Empty"


@pytest.mark.requirement("DP-CGH-28", "DP-MIGRATE-02", "DP-MIGRATE-04")
def test_conversions_are_written() -> None:
    at = Mixed()
    Operations(at.cluster).set_offset("other", "foo-0", 0)
    at.classic_group()
    at.join("a")
    written = kinds(logged(at))
    assert written[:9] == [5, 5, 3, 7, 7, 6, 8, 8, 5]
    count = len(written)
    at.leave("a")
    gone = kinds(logged(at, count))
    assert gone == [-8, -7, -5, -8, -8, -7, -7, -6, -5, -5, -4, -3]
    assert at.kind == "classic"
