"""How members of a consumer group get to their targets: give up, wait, take."""

import random
import uuid

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.consumer.consumer_group import Member
from mockbroker.simulation.groups.consumer.partition_reconciliation import (
    ON_RECONCILE,
    ON_TARGET_READ,
    Reconciliation,
    reconcile,
)
from tests.mockbroker.simulation.groups.consumers import Consumers

FIRST, SECOND = ["foo-0", "foo-1", "foo-2"], ["foo-3", "foo-4", "foo-5"]


def two(**options: object) -> Consumers:
    """Member a has everything, b has just joined."""
    at = Consumers(**options)  # type: ignore[arg-type]
    at.join("a")
    at.join("b")
    return at


@pytest.mark.requirement("DP-RECON-01")
def test_a_member_at_its_target_stays() -> None:
    at = Consumers()
    at.join("a")
    member = at.group.members["a"]
    at.beat("a", owned=[])
    assert at.group.members["a"].progress == member.progress


@pytest.mark.requirement("DP-RECON-01")
def test_nothing_of_a_member_at_its_target_changes() -> None:
    tp = (uuid.UUID(int=1), 0)
    member = Member("m", epoch=3, previous_epoch=2, assigned={tp: 1})
    event = Reconciliation(member, 3, frozenset([tp]), frozenset(), lambda _: True)
    assert reconcile(ON_TARGET_READ, ON_RECONCILE, event) is member


@pytest.mark.requirement("DP-RECON-02", "DP-RECON-04", "DP-RECON-06")
def test_partitions_are_given_up_before_others_get_them() -> None:
    at = two()
    assert (at.member_state("b"), at.assigned("b")) == ((2, "UNRELEASED"), [])
    result = at.beat("a")
    assert at.names(result.assignment or ()) == FIRST
    assert result.member_epoch == 1, "it stays at its epoch until it has given them up"
    assert (at.member_state("a"), at.revoking("a")) == ((1, "UNREVOKED"), SECOND)
    for owned in (None, [*FIRST, "foo-5"]):
        assert at.beat("a", owned=owned).assignment is None
        assert at.member_state("a") == (1, "UNREVOKED")
    at.beat("b")
    assert at.assigned("b") == [], "nothing is free"


@pytest.mark.requirement("DP-RECON-03", "DP-RECON-05", "DP-RECON-07")
def test_what_is_given_up_is_free() -> None:
    at = two()
    at.beat("a")
    result = at.beat("a", owned=FIRST)
    assert (result.member_epoch, result.assignment) == (2, None)
    assert at.member_state("a") == (2, "STABLE")
    assert at.state == "Reconciling"
    result = at.beat("b")
    assert (at.names(result.assignment or ()), result.member_epoch) == (SECOND, 2)
    assert (at.member_state("b"), at.state) == ((2, "STABLE"), "Stable")


@pytest.mark.requirement("DP-RECON-02")
def test_a_member_that_has_given_up_already_does_not_wait() -> None:
    at = two()
    result = at.beat("a", owned=FIRST)
    assert (result.member_epoch, at.names(result.assignment or ())) == (2, FIRST)
    assert at.member_state("a") == (2, "STABLE")


@pytest.mark.requirement("DP-RECON-07")
def test_partitions_of_a_member_that_is_gone_are_free() -> None:
    at = two()
    at.leave("a")
    assert at.names(at.beat("b").assignment or ()) == [*FIRST, *SECOND]


@pytest.mark.requirement("DP-RECON-04")
def test_some_may_be_free_before_the_rest() -> None:
    at = two()
    at.settle()
    at.join("c")
    assert (at.target("c"), at.member_state("c")) == (["foo-2", "foo-5"], (3, "UNRELEASED"))
    at.beat("a", owned=["foo-0", "foo-1"])
    assert at.names(at.beat("c").assignment or ()) == ["foo-2"]
    assert at.member_state("c") == (3, "UNRELEASED")
    assert at.beat("c").assignment is None
    at.beat("b", owned=["foo-3", "foo-4"])
    at.beat("c")
    assert (at.assigned("c"), at.state) == (["foo-2", "foo-5"], "Stable")


@pytest.mark.requirement("DP-RECON-05")
def test_a_member_goes_on_to_the_newest_target() -> None:
    at = two()
    at.beat("a")
    at.join("c")
    assert (at.group.target_epoch, at.target("a")) == (3, ["foo-0", "foo-1"])
    result = at.beat("a", owned=FIRST)
    assert at.member_state("a") == (1, "UNREVOKED"), "there is more to give up"
    assert (at.names(result.assignment or ()), at.revoking("a")) == (["foo-0", "foo-1"], ["foo-2"])
    at.beat("a", owned=["foo-0", "foo-1"])
    assert at.member_state("a") == (3, "STABLE")


@pytest.mark.requirement("DP-RECON-08")
@pytest.mark.parametrize(("release", "kept"), [((4, 1), True), ((4, 2), False)])
def test_a_member_loses_topics_that_it_does_not_want(release: tuple[int, int], kept: bool) -> None:
    at = Consumers(release, ["foo:1:1", "bar:1:1"])
    at.join("a", topics=["foo", "bar"])
    at.groups.set_target("g", {"a": [("foo", 0), ("bar", 0)]})
    at.settle()
    at.beat("a", topics=["foo"])
    assert at.assigned("a") == (["bar-0", "foo-0"] if kept else ["foo-0"])
    assert at.revoking("a") == ([] if kept else ["bar-0"])


@pytest.mark.requirement("DP-RECON-08")
def test_the_target_may_be_behind_the_subscription() -> None:
    """Since 4.3 a target is not made at once, but what is not wanted goes at once."""
    topics = ["foo:2:1", "bar:2:1", "far:1:1"]
    at = Consumers((4, 3), topics, group_consumer_assignment_interval_ms=1000)
    at.advance(1)
    at.join("a", topics=["foo", "bar"])
    at.beat("a", topics=["foo"])
    assert (at.group.target_epoch, at.group.epoch) == (2, 3)
    assert (at.member_state("a"), at.revoking("a")) == ((2, "UNREVOKED"), ["bar-0", "bar-1"])
    at.beat("a", topics=["far"])
    assert at.revoking("a") == ["bar-0", "bar-1", "foo-0", "foo-1"]
    assert at.member_state("a") == (2, "UNREVOKED")
    at.beat("a", topics=["bar"], owned=[])
    assert at.assigned("a") == ["bar-0", "bar-1"], "what it gave up itself is free for it"
    at.advance(1000)
    at.beat("a", topics=["foo"], owned=["foo-0"])
    assert at.assigned("a") == ["foo-0", "foo-1"]


@pytest.mark.requirement("DP-RECON-08")
def test_topics_that_are_given_up_already_go_without_a_wait() -> None:
    topics = ["foo:2:1", "bar:2:1"]
    at = Consumers((4, 3), topics, group_consumer_assignment_interval_ms=1000)
    at.advance(1)
    at.join("a", topics=["foo", "bar"])
    at.beat("a", topics=["foo"], owned=["foo-0", "foo-1"])
    assert (at.member_state("a"), at.assigned("a")) == ((2, "STABLE"), ["foo-0", "foo-1"])


@pytest.mark.requirement("DP-RECON-08")
@pytest.mark.parametrize(("release", "state"), [((4, 1), "UNRELEASED"), ((4, 2), "STABLE")])
def test_what_a_member_gives_up_itself_is_free_for_it(release: tuple[int, int], state: str) -> None:
    at = Consumers(release)
    at.join("a")
    at.join("b")
    at.beat("a")
    assert at.revoking("a") == SECOND
    at.leave("b")
    at.beat("a", owned=FIRST)
    assert at.member_state("a") == (3, state)
    at.beat("a")
    assert at.assigned("a") == [*FIRST, *SECOND]


@pytest.mark.requirement("DP-RECON-03", "DP-RECON-07", "DP-CGH-21")
@pytest.mark.parametrize("number", range(20))
def test_no_partition_has_two_owners_and_every_group_settles(number: int) -> None:
    """Random members come, go, change what they want and lose answers."""
    chance = random.Random(number)
    at = Consumers((4, 3), ["foo:5:1", "bar:3:1"])
    owned: dict[str, list[str]] = {}
    for _ in range(60):
        name = chance.choice("abcde")
        topics = chance.choice((["foo"], ["foo", "bar"], ["bar"]))
        if name not in owned:
            result = at.join(name, topics=topics, assignor=chance.choice((None, "range")))
        elif chance.random() < 0.1:
            at.leave(name)
            del owned[name]
            continue
        elif chance.random() < 0.2:
            result = at.beat(name, topics=topics, owned=owned[name])
        else:
            result = at.beat(name, owned=owned[name] if chance.random() < 0.8 else None)
        assert result.error_code == 0
        if result.assignment is not None:
            owned[name] = at.names(result.assignment)
        owned.setdefault(name, [])
        held = [each for member in at.group.members.values() for each in member.held]
        assert len(held) == len(set(held)), "a partition has one owner"
        assert all(count == 1 for count in at.group.holders.values())
        assert set(at.group.holders) == set(held)
    for name in list(owned):
        at.beat(name, owned=at.assigned(name))
    at.settle()
    wanted = at.group.subscribed
    partitions = {f"foo-{i}" for i in range(5)} | {f"bar-{i}" for i in range(3)}
    given = {each for name in at.group.members for each in at.assigned(name)}
    assert given == {each for each in partitions if each.split("-")[0] in wanted}


# ---- held by a tester ----------------------------------------------------------------------------


@pytest.mark.requirement("DP-CTL-25")
def test_an_assignment_can_be_held() -> None:
    at = two()
    at.groups.hold_assignment("g")
    for _ in range(3):
        at.beat("a", owned=FIRST)
        at.beat("b")
    assert (at.member_state("a"), at.member_state("b")) == ((1, "UNREVOKED"), (2, "UNRELEASED"))
    assert at.assigned("b") == []
    for _ in range(20):
        at.advance(10_000)
        at.beat("a", owned=FIRST)
        at.beat("b")
    assert sorted(at.group.members) == ["a", "b"], "its rebalance time-out does not run"
    at.groups.release_assignment("g")
    at.advance(40_000)
    at.beat("a")
    at.beat("b")
    at.advance(19_999)
    assert "a" in at.group.members
    at.advance(1)
    assert "a" not in at.group.members
    at.settle()
    assert at.assigned("b") == [*FIRST, *SECOND]


@pytest.mark.requirement("DP-CTL-24", "DP-ASSIGN-06")
def test_a_target_can_be_set_by_hand() -> None:
    at = two()
    at.settle()
    at.join("c", instance_id="three")
    at.groups.set_target("g", {"b": [("foo", 0)], "three": [("foo", 5), ("foo", 4)]})
    assert (at.target("a"), at.target("b"), at.target("c")) == ([], ["foo-0"], ["foo-4", "foo-5"])
    at.settle()
    assert (at.assigned("a"), at.assigned("b"), at.assigned("c")) == (
        [], ["foo-0"], ["foo-4", "foo-5"],
    )  # fmt: skip
    at.join("d")
    assert at.target("d") == [], "the next target is that of the tester, too"
    at.groups.release_assignor("g")
    at.settle()
    assert {len(at.assigned(each)) for each in "abcd"} == {1, 2}


@pytest.mark.requirement("DP-CTL-19")
def test_a_rebalance_can_be_forced() -> None:
    at = two()
    at.settle()
    at.groups.force_rebalance("g")
    assert (at.group.epoch, at.state) == (3, "Assigning")
    assert at.beat("a").member_epoch == 3


@pytest.mark.requirement("DP-CTL-20", "DP-CTL-21")
def test_members_can_be_expired_and_removed() -> None:
    at = Consumers()
    at.join("a", instance_id="one")
    at.join("b")
    at.groups.expire_member("g", "one")
    assert at.beat("a", 1, instance_id="one").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    at.groups.remove_member("g", "b")
    assert (at.state, at.group.epoch) == ("Empty", 4)


def test_a_client_id_names_its_only_member() -> None:
    at = Consumers()
    at.join("a", client_id="one")
    at.join("b", client_id="two")
    at.join("c", client_id="two")
    at.groups.expire_member("g", "one")
    assert at.beat("a", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(ClusterError, match="has no member 'two'; its members: b, c"):
        at.groups.expire_member("g", "two")


def test_an_asterisk_names_the_only_member() -> None:
    at = Consumers()
    at.join("a")
    at.groups.expire_member("g", "*")
    assert at.beat("a", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    at.join("b")
    at.join("c")
    with pytest.raises(ClusterError, match="has no member"):
        at.groups.expire_member("g", "*")


@pytest.mark.requirement("DP-CTL-22")
def test_an_instance_can_be_fenced() -> None:
    at = Consumers()
    at.join("a", instance_id="one")
    stranger = at.groups.fence_instance("g", "one")
    assert at.beat("a", 1, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert at.group.instances == {"one": stranger}
    at.advance(45_000)
    assert at.state == "Empty", "the stranger sends no heartbeats"


@pytest.mark.requirement("DP-CTL-23")
def test_the_epoch_can_be_set() -> None:
    at = two()
    at.settle()
    at.groups.set_generation("g", 9)
    assert (at.group.epoch, at.state) == (9, "Stable")
    assert at.beat("a", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    stale = at.groups.validate_commit(
        GroupCommit("g", "a", None, 2, version=9, partitions=[("foo", 0)])
    )
    assert stale == ErrorCode.STALE_MEMBER_EPOCH
    assert at.beat("a", 9).error_code == 0


@pytest.mark.requirement("DP-RECON-09")
def test_a_member_that_takes_an_instance_id_waits_for_the_next_target() -> None:
    at = two()
    back = at.join("a", instance_id="i")
    assert (back.member_epoch, back.assignment) == (2, frozenset())
    assert at.target("a") == FIRST
    assert at.beat("a", instance_id="i").assignment is None
    assert at.names(at.beat("b").assignment or ()) == SECOND
    at.join("c", instance_id="j")
    assert at.beat("a", instance_id="i").assignment == at.ids(at.target("a")) != frozenset()
