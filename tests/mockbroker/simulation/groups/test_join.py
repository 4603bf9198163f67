"""JoinGroup: who is refused, who waits, who gets an answer at once."""

import re

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.classic import classic_settings as settings
from mockbroker.simulation.groups.classic import join_rules
from mockbroker.simulation.groups.classic.classic_group import GroupState, Protocols
from tests.mockbroker.simulation.groups.members import RANGE, Coordinator

BOTH: Protocols = (("range", b"r"), ("sticky", b"s"))
OTHER: Protocols = (("sticky", b"s"),)


# ---- refusals before the group -------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-01")
def test_a_group_has_an_id() -> None:
    at = Coordinator()
    answer = at.join("m", group="")
    assert (answer.code, answer.result.member_id) == (ErrorCode.INVALID_GROUP_ID, "m")


@pytest.mark.requirement("DP-JOIN-02", "DP-COORD-10")
@pytest.mark.parametrize(
    ("session", "code"), [(5999, 26), (6000, 0), (7000, 0), (7001, 26), (-1, 26)]
)
def test_a_session_timeout_has_limits(session: int, code: int) -> None:
    at = Coordinator(group_max_session_timeout_ms=7000)
    assert at.join(session=session).code == code


@pytest.mark.requirement("DP-JOIN-03")
def test_a_group_that_does_not_exist_has_no_members() -> None:
    at = Coordinator()
    answer = at.join("m")
    assert (answer.code, answer.result.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")
    assert at.state == "none"


@pytest.mark.requirement("DP-COORD-05")
@pytest.mark.parametrize(("release", "code", "named"), [((3, 9), 16, "m"), ((4, 0), 26, "")])
def test_the_new_coordinator_checks_the_session_timeout_first(release, code, named):
    at = Coordinator(release)
    elsewhere = ErrorCode.NOT_COORDINATOR
    assert at.join(session=1, error=elsewhere).code == code
    assert at.join(group="", error=elsewhere).code == ErrorCode.INVALID_GROUP_ID
    refused = at.join("m", error=elsewhere)
    assert (refused.code, refused.result.member_id) == (ErrorCode.NOT_COORDINATOR, named)


# ---- size ----------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-05", "DP-COORD-12")
@pytest.mark.parametrize(
    ("release", "code"), [((2, 1), 0), ((2, 2), 81), ((2, 6), 81), ((4, 4), 81)]
)
def test_a_full_group_refuses_new_members(release: tuple[int, int], code: int) -> None:
    at = Coordinator(release, group_max_size=2)
    a, b = at.stable("a", "b")
    answer = at.join(name="c")
    assert at.state == ("Stable" if code else "PreparingRebalance")
    if code:
        assert (answer.code, answer.result.member_id) == (code, "")
        # Its members may always join again.
        assert at.join(b).result.generation == 2
        assert at.join(a).waits


@pytest.mark.requirement("DP-JOIN-05")
@pytest.mark.parametrize(
    ("release", "completes"), [((2, 6), True), ((3, 9), True), ((4, 0), False)]
)
def test_since_2_6_the_members_that_join_last_are_shed(release, completes):
    at = Coordinator(release, group_max_size=3)
    a, b, c = at.preparing("a", "b", "c")
    at.limit_to(2)
    first, second = at.join(a), at.join(b)
    assert at.join(a).waits, "a member that waits may ask again"
    last = at.join(c)
    assert (last.code, last.result.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert set(at.group.members) == {a, b}
    assert second.waits != completes
    assert first.waits, "that join was given up"
    at.advance(60_000)
    assert second.result.generation == 3


@pytest.mark.requirement("DP-JOIN-05")
def test_from_2_2_to_2_5_a_group_that_is_too_large_sheds_whoever_joins() -> None:
    at = Coordinator((2, 5), group_max_size=3)
    a, b, c = at.preparing("a", "b", "c")
    at.limit_to(2)
    assert at.join(a).code == ErrorCode.GROUP_MAX_SIZE_REACHED
    answers = [at.join(b), at.join(c)]
    assert {each.result.generation for each in answers} == {3}
    assert set(at.group.members) == {b, c}


@pytest.mark.requirement("DP-JOIN-05")
def test_the_refused_member_may_have_been_the_last_that_was_missing_in_2_5() -> None:
    at = Coordinator((2, 5), group_max_size=3)
    a, b, c = at.preparing("a", "b", "c")
    waiting = [at.join(a), at.join(b)]
    at.limit_to(2)
    assert at.join(c).code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert {each.result.generation for each in waiting} == {3}


@pytest.mark.requirement("DP-JOIN-05")
@pytest.mark.parametrize("version", [3, 4])
def test_this_mock_bounds_members_and_handed_out_ids(monkeypatch, version):
    monkeypatch.setattr(join_rules, "MOST_MEMBERS", 3)
    at = Coordinator(group_initial_rebalance_delay_ms=1000)
    for _ in range(3):
        at.join(version=version)
    assert at.join(version=version).code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.requirement("DP-JOIN-05")
def test_this_mock_bounds_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockbroker.simulation.groups.classic.classic_groups.MOST_GROUPS", 2)
    at = Coordinator()
    assert [at.join(group=each).code for each in "abc"] == [0, 0, 15]
    assert at.groups.validate_commit(GroupCommit("d")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert at.join(group="a", name="more").waits
    assert settings.MOST_GROUPS > 2


# ---- group ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-06", "DP-SYNC-01", "DP-BEAT-02", "DP-OFFSET-20")
@pytest.mark.parametrize(("release", "code"), [((2, 2), 25), ((2, 3), 15), ((4, 4), 15)])
def test_a_group_that_is_being_removed(release: tuple[int, int], code: int) -> None:
    at = Coordinator(release)
    (a,) = at.stable("a")
    at.group.state = GroupState.DEAD
    assert at.join(a).code == code
    assert (at.join().code, at.join().result.member_id) == (code, "")
    assert at.sync(a).code == code
    assert at.beat(a) == code
    assert at.groups.delete("g") == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.requirement("DP-JOIN-07")
@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("", RANGE), ("consumer", ())], ids=["type", "protocols"]
)
def test_the_first_member_brings_a_type_and_a_protocol(protocol_type, protocols):
    at = Coordinator()
    answer = at.join(protocol_type=protocol_type, protocols=protocols)
    assert answer.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.state == "Empty", "the group was made before"


@pytest.mark.requirement("DP-JOIN-07")
@pytest.mark.parametrize(("release", "needs"), [((1, 0), False), ((1, 1), True)])
def test_the_first_member_needs_a_type_since_1_1(release: tuple[int, int], needs: bool) -> None:
    at = Coordinator(release=release)
    (member,) = at.stable("a")
    at.leave(member)
    assert at.state == "Empty"
    assert at.join("unknown", protocol_type="").code == (23 if needs else 25)
    assert at.join("unknown", protocol_type="", protocols=()).code == 23


@pytest.mark.requirement("DP-JOIN-07")
@pytest.mark.parametrize(
    ("protocol_type", "protocols", "fits"),
    [
        ("consumer", BOTH, True),
        ("consumer", OTHER, False),
        ("connect", RANGE, False),
        ("", RANGE, False),
        ("consumer", (), False),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_members_agree_on_type_and_protocol(protocol_type, protocols, fits, known):
    at = Coordinator()
    _a, b = at.stable("a", "b")
    answer = at.join(b if known else "", protocol_type=protocol_type, protocols=protocols)
    if fits:
        assert answer.waits
    else:
        assert answer.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert answer.result.member_id == (b if known else "")
        assert at.state == "Stable"


# ---- new members ---------------------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-08", "DP-JOIN-12", "DP-JOIN-20")
def test_a_dynamic_member_gets_an_id_first() -> None:
    at = Coordinator()
    answer = at.join(version=4, name="client")
    assert answer.code == ErrorCode.MEMBER_ID_REQUIRED
    member = answer.result.member_id
    assert re.fullmatch(r"client-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", member)
    assert (at.state, at.group.members) == ("Empty", {})
    joined = at.join(member, version=4, name="client")
    assert (joined.code, joined.result.member_id) == (ErrorCode.NONE, member)
    assert at.group.pending == {}


@pytest.mark.requirement("DP-JOIN-09")
def test_an_old_client_is_added_at_once() -> None:
    at = Coordinator()
    answer = at.join(version=3, name="client")
    assert answer.code == ErrorCode.NONE
    assert answer.result.member_id.startswith("client-")


@pytest.mark.requirement("DP-JOIN-10", "DP-JOIN-20")
def test_a_new_instance_is_added_at_once() -> None:
    at = Coordinator()
    answer = at.join(version=9, name="client", instance="i")
    assert answer.code == ErrorCode.NONE
    assert answer.result.member_id.startswith("i-")
    assert answer.result.members[0].instance_id == "i"
    assert not answer.result.skip_assignment


@pytest.mark.requirement("DP-JOIN-20")
def test_member_ids_are_the_same_in_each_run() -> None:
    first, second = Coordinator().stable("a", "b"), Coordinator().stable("a", "b")
    assert first == second
    assert first[0] != first[1]


@pytest.mark.requirement("DP-JOIN-12")
def test_a_handed_out_id_with_an_instance_id_fails_as_in_kafka() -> None:
    at = Coordinator()
    member = at.join(version=4).result.member_id
    answer = at.join(member, instance="i", version=5)
    assert (answer.code, answer.result.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")


# ---- members that join again ---------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-13")
@pytest.mark.parametrize("release", [(2, 3), (3, 0), (4, 4)])
@pytest.mark.parametrize(
    ("member", "instance", "code"),
    [
        ("a", "j", 25),
        ("b", "i", 0),
        ("a", "i", 82),
        ("x", "i", 82),
        ("x", None, 25),
        ("x", "j", 25),
    ],
)
def test_member_and_instance_belong_together(release, member, instance, code):
    at = Coordinator(release)
    ids = dict(zip("ab", at.stable("a", instances=("i",)), strict=True))
    answer = at.join(ids.get(member, member), instance=instance)
    assert answer.code == code
    assert answer.result.member_id == ids.get(member, member)


@pytest.mark.requirement("DP-JOIN-17", "DP-JOIN-13")
def test_an_empty_group_knows_no_member_id() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.leave(a)
    assert at.join(a).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert at.state == "Empty"


@pytest.mark.requirement("DP-JOIN-14")
@pytest.mark.parametrize(("release", "taken"), [((3, 3), False), ((3, 3, 2), True), ((3, 4), True)])
def test_a_member_that_joins_again_brings_protocols_and_since_3_3_2_timeouts(release, taken):
    at = Coordinator(release)
    a, b = at.preparing("a", "b")
    assert at.join(b, protocols=(("range", b"new"),), session=20_000, rebalance=90_000).waits
    member = at.group.members[b]
    assert member.protocols == (("range", b"new"),)
    timeouts = (member.session_timeout_ms, member.rebalance_timeout_ms)
    assert timeouts == ((20_000, 90_000) if taken else (10_000, 60_000))
    leader = at.join(a)
    assert [each.metadata for each in leader.result.members] == [b"meta", b"new"]


@pytest.mark.requirement("DP-JOIN-15")
def test_before_the_leader_assigned_the_same_protocols_get_the_same_generation() -> None:
    at = Coordinator()
    a, b = at.completing("a", "b")
    follower, leader = at.join(b), at.join(a)
    assert follower.result.generation == leader.result.generation == 2
    assert follower.result.members == ()
    assert [each.member_id for each in leader.result.members] == [a, b]
    assert at.state == "CompletingRebalance"


@pytest.mark.requirement("DP-JOIN-15")
def test_before_the_leader_assigned_other_protocols_begin_a_rebalance() -> None:
    at = Coordinator()
    a, b = at.completing("a", "b")
    answer = at.join(b, protocols=(("range", b"new"),))
    assert answer.waits
    assert at.state == "PreparingRebalance"
    assert [each.metadata for each in at.join(a).result.members] == [b"meta", b"new"]
    assert answer.result.generation == 3


@pytest.mark.requirement("DP-JOIN-16")
@pytest.mark.parametrize(
    ("who", "protocols", "rebalances"),
    [(0, RANGE, True), (0, BOTH, True), (1, RANGE, False), (1, BOTH, True)],
)
def test_who_begins_a_rebalance_in_a_stable_group(who, protocols, rebalances):
    at = Coordinator()
    ids = at.stable("a", "b")
    answer = at.join(ids[who], protocols=protocols)
    assert at.state == ("PreparingRebalance" if rebalances else "Stable")
    assert answer.waits == rebalances
    if rebalances:
        at.join(ids[1 - who])
        assert at.group.members[ids[who]].protocols == protocols
    assert answer.result.generation == (3 if rebalances else 2)


@pytest.mark.requirement("DP-JOIN-14")
def test_a_join_that_is_repeated_gets_the_answer() -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    first = at.join(a)
    second = at.join(a)
    at.join(b)
    assert first.waits, "its client has given it up"
    assert second.result.generation == 3


# ---- static members ------------------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-11", "DP-JOIN-18")
@pytest.mark.parametrize("release", [(3, 3), (4, 4)])
@pytest.mark.parametrize("who", [0, 1])
def test_a_static_member_is_replaced_without_a_rebalance(release, who):
    at = Coordinator(release)
    ids = at.stable(instances=("i", "j"))
    answer = at.join(instance="ij"[who], version=9, protocols=(("range", b"new"),))
    assert (at.state, answer.code, answer.result.generation) == ("Stable", 0, 2)
    member = answer.result.member_id
    assert member != ids[who]
    assert at.group.members[member].protocols == (("range", b"new"),)
    leads = who == 0
    assert answer.result.skip_assignment == leads
    assert answer.result.leader == (member if leads else ids[0])
    assert len(answer.result.members) == (2 if leads else 0)
    # It has the assignment of its predecessor, which is fenced.
    assert at.sync(member).result.assignment == b"ij"[who : who + 1]
    assert at.beat(ids[who], instance="ij"[who]) == ErrorCode.FENCED_INSTANCE_ID
    assert at.beat(ids[who]) == ErrorCode.UNKNOWN_MEMBER_ID
    at.advance(9999)
    assert member in at.group.members
    at.advance(1)
    assert member not in at.group.members, "its session began with its join"


@pytest.mark.requirement("DP-JOIN-19")
@pytest.mark.parametrize("release", [(2, 3), (2, 5), (2, 6), (4, 4)])
@pytest.mark.parametrize("who", [0, 1])
def test_a_replaced_leader_is_told_its_former_id_below_version_9(release, who):
    at = Coordinator(release)
    ids = at.stable(instances=("i", "j"))
    answer = at.join(instance="ij"[who], version=5)
    assert answer.result.leader == ids[0]
    assert answer.result.members == ()
    assert not answer.result.skip_assignment
    assert at.group.leader == (answer.result.member_id if who == 0 else ids[0])


@pytest.mark.requirement("DP-JOIN-18")
@pytest.mark.parametrize(
    ("release", "rebalances"), [((2, 6), False), ((2, 6, 1), True), ((2, 7), True), ((4, 4), True)]
)
def test_a_replacement_that_changes_the_protocol_rebalances_since_2_6_1(release, rebalances):
    at = Coordinator(release)
    member = at.join(instance="i", protocols=BOTH).result.member_id
    at.sync(member, {member: b"1"})
    answer = at.join(instance="i", protocols=tuple(reversed(BOTH)), version=9)
    assert answer.result.generation == (2 if rebalances else 1)
    assert at.group.protocol_name == ("sticky" if rebalances else "range")


@pytest.mark.requirement("DP-JOIN-18")
@pytest.mark.parametrize(
    ("release", "rebalances"), [((2, 4), False), ((2, 5), True), ((4, 4), True)]
)
def test_a_replacement_before_the_leader_assigned_rebalances_since_2_5(release, rebalances):
    at = Coordinator(release)
    at.completing(instances=("i", "j"))
    assert at.join(instance="j", version=9).waits == rebalances
    assert at.state == ("PreparingRebalance" if rebalances else "CompletingRebalance")


@pytest.mark.requirement("DP-JOIN-18")
def test_whoever_waits_with_the_former_id_is_fenced() -> None:
    at = Coordinator()
    a, b = at.preparing(instances=("i", "j"))
    former = at.join(b, instance="j")
    answer = at.join(instance="j")
    assert (former.code, former.result.member_id) == (ErrorCode.FENCED_INSTANCE_ID, b)
    assert answer.waits
    at.join(a, instance="i")
    assert answer.result.generation == 3

    at = Coordinator()
    a, b = at.completing(instances=("i", "j"))
    sync = at.sync(b, instance="j")
    assert at.join(instance="j").waits
    assert sync.code == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.requirement("DP-JOIN-18", "DP-JOIN-19")
@pytest.mark.parametrize("version", [8, 9])
def test_a_replacement_survives_a_move_of_the_coordinator(version: int) -> None:
    at = Coordinator()
    at.stable(instances=("i", "j"))
    member = at.join(instance="j", version=version).result.member_id
    at.groups.unload(["g"])
    at.groups.load(["g"], at.cluster.offsets.keeps)
    assert at.sync(member, instance="j").result.assignment == b"j"
