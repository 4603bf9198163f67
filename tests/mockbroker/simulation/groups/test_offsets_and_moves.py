"""Groups as their offsets, their coordinator's place and a tester see them."""

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages import ConsumerProtocolSubscription
from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.classic.classic_group import Protocols
from tests.mockbroker.simulation.groups.members import Coordinator

NEWEST = (4, 4)


def commit(
    at: Coordinator,
    member_id: str = "",
    generation: int = -1,
    instance: str | None = None,
    **options: object,
) -> int:
    return at.groups.validate_commit(GroupCommit("g", member_id, instance, generation, **options))  # type: ignore[arg-type]


# ---- commits -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-02", "DP-TXNOFF-01")
@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
@pytest.mark.parametrize("transactional", [False, True])
def test_a_commit_makes_a_simple_group(transactional: bool, release: tuple[int, int]) -> None:
    at = Coordinator(release)
    assert commit(at, transactional=transactional) == ErrorCode.NONE
    assert (at.state, at.group.protocol_type) == ("Empty", None)


@pytest.mark.requirement("DP-TXNOFF-01")
@pytest.mark.parametrize(
    ("release", "code", "state"),
    [((2, 4), 0, "Empty"), ((3, 9), 25, "Empty"), (NEWEST, 22, "none")],
)
def test_a_transaction_of_a_generation_without_its_group(release, code, state):
    at = Coordinator(release)
    if release < (4, 0):
        at.groups.make_simple("g")  # which TxnOffsetCommit does before it asks
    assert commit(at, "m", 5, transactional=True) == code
    assert at.state == state


@pytest.mark.requirement("DP-OFFSET-05", "DP-OFFSET-06")
@pytest.mark.parametrize("release", [(2, 4), (2, 5), (2, 8), (3, 0)])
def test_a_transaction_names_what_it_likes_until_3_0(release: tuple[int, int]) -> None:
    at = Coordinator(release)
    (a,) = at.stable("a")
    checked, all_checked = release >= (2, 5), release >= (3, 0)
    for member, generation, code in (
        ("", -1, 0),
        ("", 1, 25 if all_checked else 0),
        ("", 7, 25 if all_checked else 22),
        (a, -1, 22 if all_checked else 0),
        (a, 1, 0),
        (a, 7, 22),
        ("x", -1, 25),
        ("x", 1, 25),
    ):
        found = commit(at, member, generation, transactional=True)
        assert found == (code if checked else 0), (member, generation)
    assert commit(at, "x", instance="none", transactional=True) == (25 if checked else 0)
    found = commit(at, instance="none", transactional=True)
    assert found == (25 if all_checked else 0)


@pytest.mark.requirement("DP-OFFSET-06")
@pytest.mark.parametrize(("release", "code"), [((2, 4), 0), ((2, 5), 82), ((3, 0), 82)])
def test_a_fenced_instance_commits_in_no_transaction(release: tuple[int, int], code: int) -> None:
    at = Coordinator(release)
    (a,) = at.stable("a")
    at.group.instances["i"] = a
    assert commit(at, "x", 1, instance="i", transactional=True) == code


@pytest.mark.requirement("DP-OFFSET-03")
@pytest.mark.parametrize(
    ("release", "version", "code"), [(NEWEST, 9, 69), (NEWEST, 8, 22), ((3, 9), 9, 22)]
)
def test_a_commit_of_a_generation_needs_its_group(release, version, code):
    at = Coordinator(release)
    assert commit(at, "m", 0, version=version) == code
    assert at.state == "none"


@pytest.mark.requirement("DP-OFFSET-04", "DP-OFFSET-05")
def test_a_commit_without_a_member_needs_an_empty_group() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    assert commit(at) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(at, transactional=True) == ErrorCode.NONE
    at.leave(a)
    assert commit(at) == ErrorCode.NONE
    assert commit(at, generation=2) == ErrorCode.UNKNOWN_MEMBER_ID
    at.group.state = type(at.group.state).DEAD
    assert commit(at) == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.requirement("DP-OFFSET-06")
@pytest.mark.parametrize(
    ("release", "member", "instance", "generation", "code"),
    [
        (NEWEST, "a", None, 2, 0),
        (NEWEST, "i", "i", 2, 0),
        (NEWEST, "a", "i", 2, 82),
        (NEWEST, "a", "j", 2, 25),
        ((2, 9), "a", "j", 2, 0),
        (NEWEST, "x", None, 2, 25),
        (NEWEST, "a", None, 1, 22),
        (NEWEST, "a", None, -1, 22),
        (NEWEST, "", "i", -1, 82),
    ],
)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_commit_of_a_member(release, member, instance, generation, code, transactional):
    at = Coordinator(release)
    ids = dict(zip("ai", at.stable("a", instances=("i",)), strict=True))
    member_id = ids.get(member, member)
    assert commit(at, member_id, generation, instance, transactional=transactional) == code


@pytest.mark.requirement("DP-OFFSET-06")
@pytest.mark.parametrize(("release", "code"), [((2, 4), 0), ((2, 5), 25)])
def test_transactions_name_members_since_2_5(release: tuple[int, int], code: int) -> None:
    at = Coordinator(release)
    at.stable("a")
    assert commit(at, "x", 1, transactional=True) == code


@pytest.mark.requirement("DP-OFFSET-07")
@pytest.mark.parametrize(("release", "code"), [((2, 3), 27), ((2, 4), 25)])
def test_strangers_meet_the_rebalance_first_until_2_4(release: tuple[int, int], code: int) -> None:
    at = Coordinator(release)
    at.completing("a", "b")
    assert commit(at, "stranger", 2) == code


@pytest.mark.requirement("DP-OFFSET-07", "DP-OFFSET-08")
@pytest.mark.parametrize(
    ("state", "transactional", "code", "renewed"),
    [
        ("completing", False, 27, False),
        ("completing", True, 0, False),
        ("preparing", False, 0, True),
        ("preparing", True, 0, False),
        ("stable", False, 0, True),
        ("stable", True, 0, False),
    ],
)
def test_a_commit_renews_the_session(state, transactional, code, renewed):
    at = Coordinator()
    a, b = getattr(at, state)("a", "b")
    at.advance(9000)
    assert at.beat(b) in (0, 27)
    assert commit(at, a, 2, transactional=transactional) == code
    at.advance(9000)
    assert (a in at.group.members) == renewed


# ---- subscriptions -------------------------------------------------------------------------------


def subscribed(*topics: str, version: int = 0) -> Protocols:
    metadata = ConsumerProtocolSubscription(topics=list(topics)).encode(version)
    return (("range", version.to_bytes(2, "big") + metadata),)


@pytest.mark.requirement("DP-OFFSET-21")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_topics_of_all_members_are_subscribed(version: int) -> None:
    at = Coordinator()
    first = at.join(protocols=subscribed("foo", version=version)).result.member_id
    at.join(protocols=subscribed("bar", "baz", version=version))
    at.join(first, protocols=subscribed("foo", version=version))
    found = {each: at.groups.is_subscribed("g", each) for each in ("foo", "bar", "baz", "other")}
    assert found == {"foo": True, "bar": True, "baz": True, "other": False}


@pytest.mark.requirement("DP-OFFSET-21")
@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\0\0\0\0\0\7x"])
def test_unreadable_metadata_counts_as_subscribed_to_everything(metadata: bytes) -> None:
    at = Coordinator()
    at.join(protocols=(("range", metadata),))
    assert at.groups.is_subscribed("g", "foo")


@pytest.mark.requirement("DP-OFFSET-21")
def test_only_consumers_subscribe() -> None:
    at = Coordinator()
    member = at.join(protocols=subscribed("foo")).result.member_id
    assert at.groups.empty_since_ms("g") is None
    at.advance(500)
    at.leave(member)
    assert not at.groups.is_subscribed("g", "foo")
    assert at.groups.empty_since_ms("g") == 500
    at.join(group="other", protocol_type="connect")
    assert not at.groups.is_subscribed("other", "foo")
    assert not at.groups.is_subscribed("none", "foo")


# ---- deletion ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-20", "DP-GROUP-14")
def test_only_empty_groups_are_deleted() -> None:
    at = Coordinator()
    deleted: list[str] = []
    at.groups.on_deleted.append(deleted.append)
    assert at.groups.delete("g") == ErrorCode.GROUP_ID_NOT_FOUND
    (a,) = at.stable("a")
    assert at.groups.delete("g") == ErrorCode.NON_EMPTY_GROUP
    at.leave(a)
    assert at.groups.delete("g") == ErrorCode.NONE
    assert (at.state, deleted) == ("none", ["g"])


@pytest.mark.requirement("DP-OFFSET-20")
@pytest.mark.parametrize(("release", "code"), [((1, 1), 24), ((2, 0), 69), (NEWEST, 69)])
def test_deleting_a_group_without_an_id(release: tuple[int, int], code: int) -> None:
    assert Coordinator(release).groups.delete("") == code


@pytest.mark.requirement("DP-GROUP-14")
def test_a_group_goes_with_its_last_offset_unless_it_has_members() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    assert not at.groups.forget_if_empty("g")
    at.leave(a)
    pending = at.join(version=4).result.member_id
    assert at.groups.forget_if_empty("g"), "an id that may join does not keep it"
    assert at.join(pending, version=4).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not at.groups.forget_if_empty("g")
    assert at.state == "none"


# ---- moving --------------------------------------------------------------------------------------


def move(at: Coordinator) -> None:
    at.groups.unload(["g"])
    at.groups.load(["g"], at.cluster.offsets.keeps)


@pytest.mark.requirement("DP-COORD-06")
def test_what_waits_is_answered_when_the_coordinator_moves() -> None:
    at = Coordinator()
    a, _ = at.preparing("a", "b")
    join = at.join(a)
    move(at)
    assert (join.code, join.result.member_id) == (ErrorCode.NOT_COORDINATOR, a)

    at = Coordinator()
    _, b = at.completing("a", "b")
    sync = at.sync(b)
    move(at)
    assert sync.code == ErrorCode.NOT_COORDINATOR


@pytest.mark.requirement("DP-COORD-07")
def test_a_new_coordinator_has_the_last_generation_that_was_assigned() -> None:
    at = Coordinator()
    a, i = at.stable("a", instances=("i",))
    at.join(name="new")
    assert at.state == "PreparingRebalance"
    at.advance(9000)
    move(at)
    assert (at.state, at.group.generation) == ("Stable", 2)
    assert list(at.group.members) == [a, i]
    assert (at.group.instances, at.group.leader, at.group.protocol_name) == ({"i": i}, a, "range")
    assert at.sync(i, instance="i").result.assignment == b"i"
    # Sessions began anew, and what the former coordinator had set is over.
    at.advance(9999)
    assert at.state == "Stable"
    at.beat(a)
    at.advance(1)
    assert (at.state, list(at.group.members)) == ("PreparingRebalance", [a])


@pytest.mark.requirement("DP-COORD-07", "DP-COORD-15")
@pytest.mark.parametrize(("release", "state"), [((3, 9), "none"), ((4, 0), "Empty")])
def test_a_group_that_was_never_assigned_has_no_members_left(release, state):
    at = Coordinator(release)
    at.completing("a", "b")
    move(at)
    assert at.state == state


@pytest.mark.requirement("DP-COORD-07")
def test_an_empty_group_stays_empty() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.leave(a)
    move(at)
    assert (at.state, at.group.generation, at.group.protocol_type) == ("Empty", 2, "consumer")


@pytest.mark.requirement("DP-COORD-07", "DP-COORD-12")
def test_a_group_that_is_too_large_rebalances_as_it_is_loaded() -> None:
    at = Coordinator()
    ids = at.stable("a", "b", "c")
    at.limit_to(2)
    move(at)
    assert at.state == "PreparingRebalance"
    assert list(at.group.members) == ids


@pytest.mark.requirement("DP-COORD-06", "DP-COORD-07")
def test_groups_move_with_the_leader_of_their_partition() -> None:
    at = Coordinator()
    at.groups.unload(["unknown"])
    at.groups.load(["unknown"], at.cluster.offsets.keeps)
    assert at.groups.groups == {}


# ---- steps of a tester ---------------------------------------------------------------------------


@pytest.mark.requirement("DP-CTL-18")
def test_joins_are_held_until_the_tester_completes_them() -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    at.groups.hold_joins("g")
    answers = [at.join(a), at.join(b)]
    at.advance(60_000)
    assert all(each.waits for each in answers)
    at.groups.complete_join("g")
    assert {each.result.generation for each in answers} == {3}
    assert not at.group.held


@pytest.mark.requirement("DP-CTL-18")
def test_a_tester_ends_a_rebalance_without_those_who_are_late() -> None:
    at = Coordinator()
    a, _ = at.preparing("a", "b")
    answer = at.join(a)
    at.groups.complete_join("g")
    assert answer.result.generation == 3
    assert list(at.group.members) == [a]


@pytest.mark.requirement("DP-CTL-18")
def test_holding_joins_of_a_stable_group_may_be_undone() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.groups.hold_joins("g")
    at.groups.complete_join("g")
    assert at.join(a).result.generation == 2


@pytest.mark.requirement("DP-CTL-19")
def test_a_tester_begins_a_rebalance() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.groups.force_rebalance("g")
    assert at.beat(a) == ErrorCode.REBALANCE_IN_PROGRESS
    assert at.join(a).result.generation == 2


@pytest.mark.requirement("DP-CTL-20")
@pytest.mark.parametrize("waits", [True, False])
def test_a_tester_ends_a_session(waits: bool) -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    answer = at.join(b) if waits else None
    at.groups.expire_member("g", b)
    assert list(at.group.members) == [a]
    if answer is not None:
        assert answer.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert at.beat(b) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_client_id_names_the_only_member_that_has_it() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    client_id = at.group.members[a].client_id
    at.groups.expire_member("g", client_id)
    assert at.beat(a) == ErrorCode.UNKNOWN_MEMBER_ID
    for each in at.preparing("b", "c"):
        at.group.members[each].client_id = client_id
    with pytest.raises(ClusterError, match="has no member"):
        at.groups.expire_member("g", client_id)


def test_an_asterisk_names_the_only_member() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.groups.expire_member("g", "*")
    assert at.beat(a) == ErrorCode.UNKNOWN_MEMBER_ID
    at.preparing("b", "c")
    with pytest.raises(ClusterError, match="has no member"):
        at.groups.expire_member("g", "*")


@pytest.mark.requirement("DP-CTL-21")
def test_a_tester_removes_members() -> None:
    at = Coordinator()
    a, _, _ = at.stable("a", "b", instances=("i",))
    at.groups.remove_member("g", "i")
    assert at.state == "PreparingRebalance"
    pending = at.join(version=4).result.member_id
    at.groups.remove_member("g", pending)
    at.groups.remove_member("g", a)
    assert len(at.group.members) == 1


@pytest.mark.requirement("DP-CTL-22")
def test_a_stranger_takes_an_instance_id() -> None:
    at = Coordinator()
    a, i = at.preparing("a", instances=("i",))
    join = at.join(i, instance="i")
    stranger = at.groups.fence_instance("g", "i")
    assert join.code == ErrorCode.FENCED_INSTANCE_ID
    assert at.beat(i, instance="i") == ErrorCode.FENCED_INSTANCE_ID
    assert list(at.group.members) == [a, stranger]


@pytest.mark.requirement("DP-CTL-23")
def test_a_tester_sets_the_generation() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.groups.set_generation("g", 17)
    assert at.beat(a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert at.beat(a, 17) == ErrorCode.NONE
    move(at)
    assert at.group.generation == 17


@pytest.mark.requirement("DP-CTL-18", "DP-CTL-19", "DP-CTL-20", "DP-CTL-22", "DP-CTL-23")
def test_steps_that_cannot_be_taken() -> None:
    at = Coordinator()
    for step in (at.groups.hold_joins, at.groups.complete_join, at.groups.force_rebalance):
        with pytest.raises(ClusterError, match="there is no group 'g'"):
            step("g")
    (a,) = at.stable("a")
    with pytest.raises(ClusterError, match="group 'g' is Stable: it has no rebalance to end"):
        at.groups.complete_join("g")
    with pytest.raises(ClusterError, match=f"has no member 'x'; its members: {a}"):
        at.groups.expire_member("g", "x")
    with pytest.raises(ClusterError, match="has no instance 'x'; its instances: none"):
        at.groups.fence_instance("g", "x")
    with pytest.raises(ClusterError, match="a generation is a number from 0"):
        at.groups.set_generation("g", -1)
    at.groups.hold_joins("g")
    with pytest.raises(ClusterError, match="held already"):
        at.groups.hold_joins("g")
    at.leave(a)
    with pytest.raises(ClusterError, match="PreparingRebalance: only a group of a generation"):
        at.groups.force_rebalance("g")
