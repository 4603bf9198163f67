"""ShareGroupHeartbeat: who is refused, what a member gets, when it is fenced."""

import uuid
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.share.share_assignor import simple
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.groups.modern_members import refused
from tests.mockbroker.simulation.groups.sharers import Sharers

# ---- the request itself --------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-01", "DP-SHARE-20")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"member": " "}, "MemberId can't be empty."),
        ({"group": " "}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"topics": None}, "SubscribedTopicNames must be set in first request."),
        ({"topics": []}, "SubscribedTopicNames must be set in first request."),
    ],
)
def test_a_member_that_joins_says_what_it_wants(fields: dict[str, Any], text: str) -> None:
    at = Sharers()
    assert refused(at.join(**fields)) == (ErrorCode.INVALID_REQUEST, text)
    assert at.groups.group("g") is None


@pytest.mark.requirement("DP-SHARE-20")
def test_there_is_no_epoch_below_minus_one() -> None:
    at = Sharers()
    at.join()
    assert refused(at.beat(epoch=-2)) == (ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    assert at.beat(epoch=-1).error_code == 0


# ---- the group -----------------------------------------------------------------------------------


# ---- the member ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-25")
def test_members_have_the_epoch_of_the_coordinator_or_the_one_before() -> None:
    at = Sharers()
    at.settle("a")
    assert at.group.members["a"].epoch == 3
    assert at.beat("a", 2).error_code == 0
    assert at.beat("a", 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert at.join("a").member_epoch == 3


# ---- targets -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-26", "DP-SHARE-27")
def test_partitions_are_assigned_once_their_state_exists() -> None:
    at = Sharers()
    joined = at.join("a")
    assert (joined.member_epoch, joined.assignment, joined.interval_ms) == (2, frozenset(), 5000)
    second = at.beat("a")
    assert (second.member_epoch, len(second.assignment or ())) == (3, 2)
    third = at.beat("a")
    assert (third.member_epoch, third.assignment) == (3, None)
    full = at.beat("a", topics=["foo"])
    assert (full.member_epoch, len(full.assignment or ())) == (3, 2)


@pytest.mark.requirement("DP-SHARE-26")
def test_other_topics_ask_for_another_target() -> None:
    at = Sharers(topics=("foo:2:1", "bar:1:1"))
    at.settle("a")
    assert at.assigned("a") == ["foo-0", "foo-1"]
    changed = at.beat("a", topics=["bar"])
    assert (changed.member_epoch, changed.assignment) == (4, frozenset())
    at.beat("a")
    assert at.assigned("a") == ["bar-0"]
    at.cluster.topics.add_partitions([("bar", 2, None)])
    assert at.beat("a").member_epoch == 6
    at.beat("a")
    assert at.assigned("a") == ["bar-0", "bar-1"]


@pytest.mark.requirement("DP-SHARE-22", "DP-SHARE-28")
def test_the_next_member_of_an_empty_group_has_a_target_at_once() -> None:
    at = Sharers(group_share_assignment_interval_ms=1000)
    at.advance(5)
    at.settle("a")
    at.beat("a", -1)
    assert (at.group.target_epoch, at.group.target_ms) == (at.group.epoch, 0)
    at.join("b")
    assert at.group.target_epoch == at.group.epoch


@pytest.mark.requirement("DP-SHARE-26")
def test_a_member_that_joins_raises_the_epoch_once() -> None:
    at = Sharers()
    at.settle("a")
    epoch, made_ms = at.group.epoch, at.group.target_ms
    at.advance(10)
    at.beat("a")
    assert (at.group.epoch, at.group.target_ms) == (epoch, made_ms)
    at.join("b")
    assert at.group.epoch == epoch + 1
    at.beat("b")
    assert at.group.epoch == epoch + 1


@pytest.mark.requirement("DP-SHARE-26")
def test_a_topic_that_goes_raises_the_epoch() -> None:
    at = Sharers(topics=("foo:2:1", "bar:1:1"))
    at.join("a", topics=["bar", "foo"])
    at.beat("a")
    assert at.assigned("a") == ["bar-0", "foo-0", "foo-1"]
    epoch = at.group.epoch
    at.cluster.topics.delete([("bar", uuid.UUID(int=0))])
    at.beat("a")
    assert at.group.epoch == epoch + 1
    at.beat("a")
    assert at.assigned("a") == ["foo-0", "foo-1"]


@pytest.mark.requirement("DP-SHARE-28")
def test_targets_do_not_follow_one_another_at_once_since_4_3() -> None:
    for release, waits in (((4, 2), False), ((4, 3), True)):
        at = Sharers(release, group=())
        at.configure("share.auto.offset.reset", "earliest")
        if release >= (4, 3):
            at.configure("share.assignment.interval.ms", "1000")
        at.advance(1)
        at.join("a")
        at.beat("a")
        assert (at.assigned("a") == []) is waits
        at.advance(999)
        at.beat("a")
        assert (at.assigned("a") == []) is waits
        at.advance(1)
        at.beat("a")
        assert at.assigned("a") == ["foo-0", "foo-1"]


# ---- the assignor --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-02")
def test_members_share_partitions_if_there_are_too_few() -> None:
    at = Sharers()
    at.settle("a", "b", "c")
    every = [at.assigned(each) for each in ("a", "b", "c")]
    assert all(every), "nobody is idle"
    assert {tp for each in every for tp in each} == {"foo-0", "foo-1"}


@pytest.mark.requirement("DP-SHARE-02")
@pytest.mark.parametrize("members", range(1, 8))
@pytest.mark.parametrize("partitions", range(1, 6))
def test_the_assignor_balances(members: int, partitions: int) -> None:
    topic = Sharers().key()[0]
    every = [(topic, index) for index in range(partitions)]
    names = [f"m{number}" for number in range(members)]
    topics = dict.fromkeys(names, frozenset({topic}))
    targets = simple(topics, every, {})
    sizes = [len(each) for each in targets.values()]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    assert frozenset().union(*targets.values()) == frozenset(every)
    assert simple(topics, every, targets) == targets, "what a member has stays with it"


@pytest.mark.requirement("DP-SHARE-02")
def test_the_first_of_javas_hash_table_gets_the_larger_share() -> None:
    """As on 4.4.0."""
    topic = Sharers().key()[0]
    topics = dict.fromkeys(("-1.x", "m1", "\u00e9"), frozenset({topic}))
    targets = simple(topics, [(topic, 0), (topic, 1)], {})
    assert {name: len(each) for name, each in targets.items()} == {"m1": 2, "\u00e9": 1, "-1.x": 1}


@pytest.mark.requirement("DP-SHARE-02")
def test_subscriptions_may_differ() -> None:
    at = Sharers(topics=("foo:2:1", "bar:1:1"))
    at.join("a", topics=["foo"])
    at.join("b", topics=["bar"])
    for each in ("a", "b", "a", "b"):
        at.beat(each)
    assert (at.assigned("a"), at.assigned("b")) == (["foo-0", "foo-1"], ["bar-0"])


# ---- steps of a tester, and what is written ------------------------------------------------------


@pytest.mark.requirement("DP-CTL-36")
def test_steps_on_a_share_group() -> None:
    at = Sharers()
    at.settle("a")
    epoch = at.group.epoch
    Operations(at.cluster).rebalance("g")
    assert at.group.epoch == epoch + 1
    Operations(at.cluster).hold_assignment("g")
    assert at.beat("a").member_epoch == epoch
    with pytest.raises(ClusterError, match="is held already"):
        Operations(at.cluster).hold_assignment("g")
    Operations(at.cluster).release_assignment("g")
    with pytest.raises(ClusterError, match="is not held"):
        Operations(at.cluster).release_assignment("g")
    assert at.beat("a").member_epoch == epoch + 1
    with pytest.raises(ClusterError, match="no member 'z'; its members: a"):
        Operations(at.cluster).expire_member("g", "z")
    with pytest.raises(ClusterError, match="it has no instances"):
        Operations(at.cluster).fence_instance("g", "i")
    with pytest.raises(ClusterError, match="it has no generations"):
        Operations(at.cluster).set_generation("g", 1)
    with pytest.raises(ClusterError, match="is a share group: it has no joins"):
        Operations(at.cluster).hold_joins("g")
    Operations(at.cluster).remove_member("g", "a")
    assert at.group.state == "Empty"


@pytest.mark.requirement("DP-SHARE-29")
def test_the_coordinator_writes_what_changes() -> None:
    at = Sharers()
    written: list[tuple[str, bool]] = []

    def write(_group_id: str, records: Any) -> None:
        written.extend((type(key).__name__, value is None) for key, value in records)

    at.groups.membership._write = write
    at.join("a")
    assert written == [
        ("ShareGroupMemberMetadataKey", False),
        ("ShareGroupMetadataKey", False),
        ("ShareGroupTargetAssignmentMetadataKey", False),
        ("ShareGroupCurrentMemberAssignmentKey", False),
        ("ShareGroupStatePartitionMetadataKey", False),
        ("ShareGroupStatePartitionMetadataKey", False),
    ]
    written.clear()
    at.beat("a")
    assert written == [
        ("ShareGroupMetadataKey", False),
        ("ShareGroupTargetAssignmentMemberKey", False),
        ("ShareGroupTargetAssignmentMetadataKey", False),
        ("ShareGroupCurrentMemberAssignmentKey", False),
    ]
    written.clear()
    at.beat("a", -1)
    assert written[:3] == [
        ("ShareGroupCurrentMemberAssignmentKey", True),
        ("ShareGroupTargetAssignmentMemberKey", True),
        ("ShareGroupMemberMetadataKey", True),
    ]
    written.clear()
    assert at.cluster.groups.delete("g") is ErrorCode.NONE
    assert written == [
        ("ShareGroupTargetAssignmentMetadataKey", True),
        ("ShareGroupStatePartitionMetadataKey", True),
        ("ShareGroupMetadataKey", True),
    ]
    assert at.fetches.partitions_of("g") == []


@pytest.mark.requirement("REL-25", "DP-SHARE-25")
@pytest.mark.parametrize(("release", "code"), [((4, 1), 110), ((4, 2), 0)])
def test_a_member_joins_again_with_epoch_0(release: tuple[int, int], code: int) -> None:
    at = Sharers(release)
    for member in ("a", "b", "c"):
        at.join(member)
        at.beat("a")
    assert at.group.members["a"].previous_epoch > 0
    assert at.join("a").error_code == code


@pytest.mark.requirement("DP-SHARE-29")
@pytest.mark.parametrize(("release", "time_ms"), [((4, 2), 0), ((4, 3), 7)])
def test_when_a_target_was_made_is_written_since_4_3(release, time_ms):
    at = Sharers(release)
    at.advance(7)
    targets: list[Any] = []

    def write(_group_id: str, records: Any) -> None:
        kind = "ShareGroupTargetAssignmentMetadataKey"
        targets.extend(value for key, value in records if type(key).__name__ == kind)

    at.groups.membership._write = write
    at.join("a")
    assert [each.assignment_timestamp for each in targets] == [time_ms]


@pytest.mark.requirement("DP-SHARE-29")
def test_another_coordinator_goes_on() -> None:
    at = Sharers()
    at.settle("a")
    at.groups.unload(["g", "other"])
    at.advance(100_000)
    assert list(at.group.members) == ["a"], "no sessions run"
    at.groups.load(["g", "other"])
    at.advance(44_999)
    assert list(at.group.members) == ["a"]
    at.advance(1)
    assert not at.group.members
