"""SyncGroup, Heartbeat and LeaveGroup of members, in every state of their group."""

from collections.abc import Callable

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import LeavingMember
from tests.mockbroker.simulation.groups.members import Coordinator

NEWEST, OLD = (4, 4), (1, 1)


def pair(at: Coordinator, state: str) -> list[str]:
    """A dynamic member that leads and a static one, in a group in this state."""
    form: Callable[..., list[str]] = getattr(at, state)
    return form("a", instances=("i",))


# ---- SyncGroup -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SYNC-01", "DP-BEAT-01", "DP-LEAVE-02")
@pytest.mark.parametrize(("release", "code"), [(OLD, 25), ((2, 0), 24), (NEWEST, 24)])
def test_requests_without_a_group_id(release: tuple[int, int], code: int) -> None:
    at = Coordinator(release)
    assert at.sync("m", group="").code == code
    assert at.beat("m", group="") == code
    assert at.groups.leave("", [LeavingMember("m")]) == (
        (code, ()) if code == ErrorCode.INVALID_GROUP_ID else (ErrorCode.NONE, (code,))
    )


@pytest.mark.requirement("DP-SYNC-01", "DP-BEAT-01", "DP-LEAVE-02")
def test_a_group_that_does_not_exist_has_no_members() -> None:
    at = Coordinator()
    assert at.sync("m").code == ErrorCode.UNKNOWN_MEMBER_ID
    assert at.beat("m") == ErrorCode.UNKNOWN_MEMBER_ID
    assert at.leave("m", "n") == (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID)


@pytest.mark.requirement("DP-COORD-05")
@pytest.mark.parametrize(("release", "sync"), [((3, 9), 27), ((4, 0), 14)])
def test_requests_elsewhere_and_while_loading(release: tuple[int, int], sync: int) -> None:
    at = Coordinator(release)
    at.stable("a")
    loading, elsewhere = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR
    assert at.sync("m", error=loading).code == sync
    assert at.sync("m", error=elsewhere).code == elsewhere
    assert at.beat("m", error=loading) == ErrorCode.NONE
    assert at.beat("m", error=elsewhere) == elsewhere
    for error in (loading, elsewhere):
        assert at.groups.leave("g", [LeavingMember("m")], error) == (error, ())
        assert at.groups.delete("g", error) == error


MEMBERS = [
    ("i", "i", 0),
    ("a", None, 0),
    ("a", "i", 82),
    ("x", "i", 82),
    ("x", None, 25),
    ("x", "j", 25),
]
"""Member, its instance id, the error."""


@pytest.mark.requirement("DP-SYNC-02", "DP-BEAT-03", "DP-LEAVE-04")
@pytest.mark.parametrize(
    ("release", "member", "instance", "code"),
    [(release, *each) for release in ((2, 9), (3, 0), NEWEST) for each in MEMBERS]
    + [((2, 9), "a", "j", 0), ((3, 0), "a", "j", 25), (NEWEST, "a", "j", 25)],
)
def test_member_and_instance_belong_together(release, member, instance, code):
    at = Coordinator(release)
    ids = dict(zip("ai", pair(at, "stable"), strict=True))
    member_id = ids.get(member, member)
    assert at.sync(member_id, instance=instance).code == code
    assert at.beat(member_id, instance=instance) == code
    assert at.leave(LeavingMember(member_id, instance)) == (code,)
    assert (member_id in at.group.members) == (member != "x" and code != 0)


@pytest.mark.requirement("DP-SYNC-03", "DP-BEAT-03")
@pytest.mark.parametrize("generation", [-1, 0, 1, 3])
def test_another_generation(generation: int) -> None:
    at = Coordinator()
    a, _ = pair(at, "stable")
    assert at.sync(a, generation=generation).code == ErrorCode.ILLEGAL_GENERATION
    assert at.beat(a, generation) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.requirement("DP-SYNC-04")
@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        ((None, None), 0),
        (("consumer", "range"), 0),
        (("consumer", "sticky"), 23),
        (("connect", "range"), 23),
        ((None, "sticky"), 23),
        (("connect", None), 23),
    ],
)
def test_sync_names_the_protocol(protocol: tuple[str | None, str | None], code: int) -> None:
    at = Coordinator()
    a, _ = pair(at, "stable")
    answer = at.sync(a, protocol=protocol)
    assert answer.code == code
    if not code:
        assert (answer.result.protocol_type, answer.result.protocol_name) == ("consumer", "range")


@pytest.mark.requirement("DP-SYNC-05", "DP-BEAT-04")
def test_an_empty_group_has_no_members() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.leave(a)
    assert at.sync(a).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert at.beat(a) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-SYNC-06")
def test_sync_during_a_rebalance() -> None:
    at = Coordinator()
    a, _ = pair(at, "preparing")
    assert at.sync(a).code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.requirement("DP-SYNC-07", "DP-GROUP-11")
def test_sync_waits_for_the_leader() -> None:
    at = Coordinator()
    a, i = pair(at, "completing")
    follower = at.sync(i)
    assert follower.waits
    leader = at.sync(a, {a: b"1", i: b"2", "stranger": b"3"})
    assert (leader.result.assignment, follower.result.assignment) == (b"1", b"2")
    assert (follower.result.protocol_type, follower.result.protocol_name) == ("consumer", "range")
    assert at.state == "Stable"


@pytest.mark.requirement("DP-SYNC-07")
def test_a_sync_that_is_repeated_gets_the_answer() -> None:
    at = Coordinator()
    a, i = pair(at, "completing")
    first, second = at.sync(i), at.sync(i)
    at.sync(a, {i: b"2"})
    assert first.waits, "its client has given it up"
    assert second.result.assignment == b"2"


@pytest.mark.requirement("DP-SYNC-08")
@pytest.mark.parametrize(("release", "renewed"), [((3, 9), True), ((4, 0), False)])
def test_sync_in_a_stable_group(release: tuple[int, int], renewed: bool) -> None:
    at = Coordinator(release)
    a, i = pair(at, "stable")
    at.advance(9000)
    at.beat(a)
    assert at.sync(i).result.assignment == b"i"
    at.advance(9000)
    assert (i in at.group.members) == renewed


@pytest.mark.requirement("DP-SYNC-08", "DP-GROUP-10")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
def test_sync_in_a_stable_group_counts_as_this_generation_s(release: tuple[int, int]) -> None:
    at = Coordinator(release)
    a, b = at.completing("a", "b")
    at.sync(a, {b: b"2"})
    assert at.sync(b).result.assignment == b"2"
    for _ in range(10):
        at.advance(9000)
        assert at.beat(a) == at.beat(b) == ErrorCode.NONE


# ---- Heartbeat -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-BEAT-04", "DP-BEAT-05")
@pytest.mark.parametrize(
    ("release", "state", "code", "renewed"),
    [
        ((1, 1), "completing", 27, False),
        ((2, 0), "completing", 27, False),
        ((2, 5), "completing", 27, False),
        ((2, 6), "completing", 0, True),
        (NEWEST, "completing", 0, True),
        (OLD, "preparing", 27, True),
        (NEWEST, "preparing", 27, True),
        (OLD, "stable", 0, True),
        (NEWEST, "stable", 0, True),
    ],
)
def test_a_heartbeat_renews_the_session(release, state, code, renewed):
    at = Coordinator(release)
    a, b = getattr(at, state)("a", "b")
    at.advance(9000)
    assert at.beat(a) == code
    at.advance(9000)
    assert (a in at.group.members) == renewed
    assert b not in at.group.members


@pytest.mark.requirement("DP-BEAT-05")
@pytest.mark.parametrize(("release", "code"), [((2, 2), 27), ((2, 3), 22), (NEWEST, 22)])
def test_up_to_2_2_no_generation_counts_before_the_leader_assigned(release, code):
    at = Coordinator(release)
    a, _ = at.completing("a", "b")
    assert at.beat(a, 17) == code
    assert at.beat("x", 17) == ErrorCode.UNKNOWN_MEMBER_ID


# ---- LeaveGroup ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-LEAVE-03")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
def test_an_instance_id_alone_removes_its_member(release: tuple[int, int]) -> None:
    at = Coordinator(release)
    a, _ = pair(at, "stable")
    codes = at.leave(LeavingMember("", "i"), LeavingMember("", "i"), LeavingMember(""))
    assert codes == (0, 25, 25)
    assert list(at.group.members) == [a]
    assert (at.group.instances, at.state) == ({}, "PreparingRebalance")


@pytest.mark.requirement("DP-LEAVE-04", "DP-LEAVE-05")
@pytest.mark.parametrize(("release", "state"), [((3, 9), "Stable"), ((4, 0), "PreparingRebalance")])
def test_a_handed_out_id_leaves(release: tuple[int, int], state: str) -> None:
    at = Coordinator(release)
    at.stable("a")
    pending = at.join(version=4).result.member_id
    assert at.leave(pending) == (ErrorCode.NONE,)
    assert at.group.pending == {}
    # The new coordinator rebalances after any success.
    assert at.state == state


@pytest.mark.requirement("DP-LEAVE-04")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
def test_a_handed_out_id_that_leaves_is_waited_for_no_longer(release: tuple[int, int]) -> None:
    at = Coordinator(release)
    (a,) = at.preparing("a", "b")[:1]
    at.groups.expire_member("g", list(at.group.members)[1])
    pending = at.join(version=4).result.member_id
    answer = at.join(a)
    assert answer.waits
    at.leave(pending)
    assert answer.result.generation == 3


@pytest.mark.requirement("DP-LEAVE-05")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
@pytest.mark.parametrize("state", ["completing", "stable"])
def test_a_member_that_leaves_begins_a_rebalance(release: tuple[int, int], state: str) -> None:
    at = Coordinator(release)
    a, b = getattr(at, state)("a", "b")
    assert at.leave(a) == (ErrorCode.NONE,)
    assert (at.state, at.group.leader) == ("PreparingRebalance", b)


@pytest.mark.requirement("DP-LEAVE-05", "DP-GROUP-03")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
def test_a_member_that_leaves_completes_the_rebalance_that_waited(release):
    at = Coordinator(release)
    a, b, c = at.preparing("a", "b", "c")
    stays, leaves = at.join(a), at.join(b)
    at.leave(b)
    assert stays.waits
    assert (leaves.code, leaves.result.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    at.leave(c)
    assert stays.result.generation == 3


@pytest.mark.requirement("DP-LEAVE-05")
@pytest.mark.parametrize(("release", "state"), [((3, 9), "P"), ((4, 0), "C")])
def test_since_4_0_several_members_leave_together(release: tuple[int, int], state: str) -> None:
    at = Coordinator(release)
    a, b, c = at.preparing("a", "b", "c")
    joins = [at.join(a), at.join(b)]
    assert at.leave(c, b) == (ErrorCode.NONE, ErrorCode.NONE)
    # Up to 3.9 the rebalance completes as the first leaves, and the second begins another.
    assert at.state == {"P": "PreparingRebalance", "C": "CompletingRebalance"}[state]
    assert {each.code for each in joins} == ({0} if state == "P" else {0, 25})


@pytest.mark.requirement("DP-LEAVE-05")
def test_a_sync_that_waits_is_answered_when_its_member_leaves() -> None:
    at = Coordinator()
    _, b = at.completing("a", "b")
    sync = at.sync(b)
    at.leave(b)
    assert sync.code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-LEAVE-05")
def test_members_that_were_refused_begin_no_rebalance() -> None:
    at = Coordinator()
    at.stable("a")
    assert at.leave("x") == (ErrorCode.UNKNOWN_MEMBER_ID,)
    assert at.state == "Stable"
