"""Rebalances of classic groups: when they begin, whom they wait for, how they end."""

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_settings import group_settings
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.groups.members import Coordinator

# ---- beginning -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-GROUP-01")
def test_a_rebalance_before_the_leader_assigned_refuses_the_syncs_that_wait() -> None:
    at = Coordinator()
    a, b = at.completing("a", "b")
    waiting = at.sync(b)
    assert waiting.waits
    at.group.members[a].assignment = b"old"
    at.join(name="c")
    assert at.state == "PreparingRebalance"
    assert waiting.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert at.group.members[a].assignment == b""


@pytest.mark.requirement("DP-GROUP-01")
@pytest.mark.parametrize("state", ["Empty", "CompletingRebalance", "Stable"])
def test_a_new_member_begins_a_rebalance(state: str) -> None:
    at = Coordinator(group_initial_rebalance_delay_ms=1000)
    if state != "Empty":
        at.join()
        at.advance(1000)
    if state == "Stable":
        leader = at.group.leader
        assert leader is not None
        at.sync(leader)
    assert at.state == ("none" if state == "Empty" else state)
    at.join(name="new")
    assert at.state == "PreparingRebalance"


@pytest.mark.requirement("DP-COORD-11")
def test_without_an_initial_delay_the_first_member_is_alone() -> None:
    at = Coordinator()
    assert at.join().result.generation == 1
    assert at.state == "CompletingRebalance"


@pytest.mark.requirement("DP-COORD-11")
def test_the_first_rebalance_does_not_wait_for_ids_that_were_handed_out() -> None:
    at = Coordinator()
    at.join(version=4)
    assert at.join().result.generation == 1


@pytest.mark.requirement("DP-COORD-10", "DP-COORD-11", "DP-COORD-12")
@pytest.mark.parametrize(
    ("release", "longest"), [((1, 1), 300_000), ((2, 2), 300_000), ((2, 3), 1_800_000)]
)
def test_settings_are_those_of_the_release(release: tuple[int, int], longest: int) -> None:
    cluster = simulated_cluster(1, release=release)
    settings = group_settings(cluster.configs, 1)
    assert (settings.min_session_timeout_ms, settings.max_session_timeout_ms) == (6000, longest)
    assert (settings.initial_rebalance_delay_ms, settings.max_size) == (0, 2**31 - 1)


@pytest.mark.requirement("DP-GROUP-02")
def test_the_first_rebalance_waits_for_the_initial_delay() -> None:
    at = Coordinator(group_initial_rebalance_delay_ms=3000)
    answer = at.join()
    at.advance(2999)
    assert answer.waits
    at.advance(1)
    assert answer.result.generation == 1


@pytest.mark.requirement("DP-GROUP-02")
@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
def test_a_new_member_prolongs_the_initial_delay_up_to_its_rebalance_timeout(release):
    at = Coordinator(release, group_initial_rebalance_delay_ms=3000)
    answers = []
    # Members come all the time. 10 s are the longest rebalance time-out: 3 + 3 + 3 + 1.
    for _ in range(9):
        answers.append(at.join(rebalance=10_000))
        assert all(each.waits for each in answers)
        at.advance(1000)
    answers.append(at.join(rebalance=10_000))
    at.advance(999)
    assert all(each.waits for each in answers)
    at.advance(1)
    assert {each.result.generation for each in answers} == {1}


@pytest.mark.requirement("DP-GROUP-02")
@pytest.mark.parametrize(("release", "prolongs"), [((3, 9), False), ((4, 0), True)])
def test_up_to_3_9_only_the_first_generation_is_prolonged(release, prolongs):
    at = Coordinator(release, group_initial_rebalance_delay_ms=3000)
    at.join()
    at.advance(3000)
    (member,) = at.group.members
    at.leave(member)
    assert at.state == "Empty"
    first = at.join()
    at.advance(1000)
    at.join(name="second")
    at.advance(2000)
    assert first.waits == prolongs


@pytest.mark.requirement("DP-GROUP-02")
def test_a_member_that_leaves_does_not_end_the_initial_delay() -> None:
    at = Coordinator(group_initial_rebalance_delay_ms=3000)
    stays, leaves = at.join(), at.join()
    gone = list(at.group.members)[1]
    at.leave(gone)
    assert stays.waits
    assert leaves.code == ErrorCode.UNKNOWN_MEMBER_ID
    at.join(next(iter(at.group.members)))
    assert at.state == "PreparingRebalance"


# ---- completing ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-GROUP-03", "DP-GROUP-09")
def test_a_rebalance_completes_when_everybody_has_joined() -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    first = at.join(a)
    assert first.waits
    second = at.join(b)
    assert at.state == "CompletingRebalance"
    assert first.result.generation == second.result.generation == 3
    assert first.result.leader == second.result.leader == a
    assert [each.member_id for each in first.result.members] == [a, b]
    assert [each.metadata for each in first.result.members] == [b"meta", b"meta"]
    assert second.result.members == ()
    assert (second.result.protocol_type, second.result.protocol_name) == ("consumer", "range")


@pytest.mark.requirement("DP-GROUP-03")
def test_a_rebalance_that_everybody_has_joined_completes_as_it_begins() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    assert at.join(a).result.generation == 2


@pytest.mark.requirement("DP-GROUP-03", "DP-JOIN-08")
def test_a_rebalance_waits_for_ids_that_were_handed_out() -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    pending = at.join(version=4).result.member_id
    answers = [at.join(a), at.join(b)]
    assert all(each.waits for each in answers)
    answers.append(at.join(pending, version=4))
    assert {each.result.generation for each in answers} == {3}


@pytest.mark.requirement("DP-GROUP-04", "DP-GROUP-05")
def test_late_members_are_removed_when_the_longest_rebalance_timeout_is_over() -> None:
    at = Coordinator()
    a, b = at.stable("a", "b")
    at.group.members[a].rebalance_timeout_ms = 5000
    at.group.members[b].rebalance_timeout_ms = 8000
    at.groups.force_rebalance("g")
    answer = at.join(a, rebalance=5000)
    at.advance(7999)
    assert answer.waits
    at.advance(1)
    assert answer.result.generation == 3
    assert list(at.group.members) == [a]


@pytest.mark.requirement("DP-GROUP-05")
def test_late_static_members_stay() -> None:
    at = Coordinator()
    a, b = at.stable("a", instances=("i",))
    at.groups.force_rebalance("g")
    at.group.members[b].session.stop()
    answer = at.join(a)
    at.advance(60_000)
    assert answer.result.generation == 3
    assert [each.instance_id for each in answer.result.members] == [None, "i"]


@pytest.mark.requirement("DP-GROUP-06")
def test_the_first_member_that_joined_leads_if_the_leader_is_late() -> None:
    at = Coordinator()
    a, b, c = at.stable(instances=("i", "j", "k"))
    at.group.members[a].session.stop()
    at.groups.force_rebalance("g")
    answers = [at.join(c, instance="k"), at.join(b, instance="j")]
    at.advance(60_000)
    assert {each.result.leader for each in answers} == {b}
    assert list(at.group.members) == [a, b, c]


@pytest.mark.requirement("DP-GROUP-07")
def test_a_rebalance_that_no_static_member_joined_goes_on() -> None:
    at = Coordinator()
    a, b = at.stable(instances=("i", "j"))
    for member in at.group.members.values():
        member.session.stop()
    at.groups.force_rebalance("g")
    at.advance(60_000)
    assert (at.state, at.group.generation) == ("PreparingRebalance", 2)
    answer = at.join(b, instance="j")
    at.advance(59_999)
    assert answer.waits
    at.advance(1)
    assert (answer.result.generation, answer.result.leader) == (3, b)
    assert list(at.group.members) == [a, b]


@pytest.mark.requirement("DP-GROUP-08")
def test_a_rebalance_without_members_leaves_an_empty_group() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.leave(a)
    assert (at.state, at.group.generation) == ("Empty", 2)
    assert (at.group.protocol_type, at.group.protocol_name) == ("consumer", None)
    assert at.group.leader is None
    assert at.cluster.groups.group("g") is at.group
    assert at.group.sync_timer is None


@pytest.mark.requirement("DP-GROUP-09")
def test_a_generation_starts_sessions_anew() -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    at.join(a)
    at.advance(9999)
    at.join(b)
    at.advance(9999)
    assert set(at.group.members) == {a, b}
    at.advance(1)
    assert at.group.members == {}


# ---- assigning -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-GROUP-11")
def test_a_member_without_an_assignment_gets_empty_bytes() -> None:
    at = Coordinator()
    a, b = at.completing("a", "b")
    follower = at.sync(b)
    leader = at.sync(a, {a: b"all"})
    assert (leader.result.assignment, follower.result.assignment) == (b"all", b"")
    assert at.state == "Stable"


@pytest.mark.requirement("DP-GROUP-10", "DP-GROUP-09", "DP-GROUP-11", "DP-SYNC-07")
@pytest.mark.parametrize(
    ("release", "removed"), [((2, 8), False), ((2, 8, 1), True), ((3, 0), True)]
)
@pytest.mark.parametrize("leader_syncs", [True, False])
def test_members_that_do_not_sync_are_removed_since_2_8_1(release, removed, leader_syncs):
    at = Coordinator(release)
    a, b, c = at.completing("a", "b", "c")
    for member in at.group.members.values():
        member.session_timeout_ms = 120_000
        at.groups.machine.renew(member)
    syncs = [at.sync(b)]
    if leader_syncs:
        syncs.append(at.sync(a, {a: b"1"}))
    before = at.state
    at.advance(59_999)
    assert (at.state, set(at.group.members)) == (before, {a, b, c})
    at.advance(1)
    assert at.state == ("PreparingRebalance" if removed else before)
    gone = {c} if leader_syncs else {a, c}
    assert set(at.group.members) == {a, b, c} - (gone if removed else set())
    if removed and not leader_syncs:
        assert syncs[0].code == ErrorCode.REBALANCE_IN_PROGRESS
        assert at.group.leader == b


@pytest.mark.requirement("DP-GROUP-10")
def test_nobody_is_removed_if_all_members_have_synced() -> None:
    at = Coordinator()
    a, b = at.stable("a", "b")
    for _ in range(10):
        at.advance(9000)
        assert at.beat(a) == at.beat(b) == ErrorCode.NONE
    assert at.state == "Stable"


@pytest.mark.requirement("DP-GROUP-10")
def test_a_rebalance_stops_the_wait_for_syncs() -> None:
    at = Coordinator()
    a, b = at.completing("a", "b")
    at.advance(5000)
    at.join(a, protocols=(("range", b"other"),))
    at.join(b)
    assert (at.state, at.group.generation) == ("CompletingRebalance", 3)
    at.group.members[a].session_timeout_ms = at.group.members[b].session_timeout_ms = 600_000
    for member in at.group.members.values():
        at.groups.machine.renew(member)
    at.advance(59_999)
    assert (at.state, at.group.generation) == ("CompletingRebalance", 3)


# ---- sessions ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-GROUP-12", "DP-LEAVE-05")
def test_a_session_that_ends_starts_a_rebalance() -> None:
    at = Coordinator()
    a, _b = at.stable("a", "b")
    at.advance(6000)
    assert at.beat(a) == ErrorCode.NONE
    at.advance(4000)
    assert at.state == "PreparingRebalance"
    assert list(at.group.members) == [a]


@pytest.mark.requirement("DP-GROUP-12")
@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
def test_a_session_that_ends_completes_the_rebalance_that_waited(release: tuple[int, int]) -> None:
    at = Coordinator(release)
    a, _ = at.preparing("a", "b")
    answer = at.join(a)
    at.advance(9999)
    assert answer.waits
    at.advance(1)
    assert answer.result.generation == 3
    assert list(at.group.members) == [a]


@pytest.mark.requirement("DP-GROUP-12")
@pytest.mark.parametrize(("release", "completes"), [((3, 9), False), ((4, 0), True)])
def test_since_4_0_a_member_whose_session_ends_may_cut_the_initial_delay(release, completes):
    at = Coordinator(release, group_initial_rebalance_delay_ms=1_000_000)
    at.join(rebalance=900_000)
    at.advance(100_000)
    answer = at.join(rebalance=900_000)
    at.advance(200_000)
    assert len(at.group.members) == 1
    assert answer.waits != completes


@pytest.mark.requirement("DP-GROUP-02", "DP-GROUP-13")
@pytest.mark.parametrize(("release", "completes"), [((3, 9), False), ((4, 0), True)])
def test_since_4_0_an_id_that_is_forgotten_may_cut_the_initial_delay(release, completes):
    at = Coordinator(release, group_initial_rebalance_delay_ms=30_000)
    at.join(version=4, session=6000)
    answer = at.join(session=60_000)
    at.advance(6000)
    assert answer.waits != completes


@pytest.mark.requirement("DP-GROUP-13")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
def test_an_id_that_does_not_join_is_forgotten(release: tuple[int, int]) -> None:
    at = Coordinator(release)
    a, b = at.preparing("a", "b")
    pending = at.join(version=4, session=9000).result.member_id
    answers = [at.join(a), at.join(b)]
    at.advance(8999)
    assert all(each.waits for each in answers)
    at.advance(1)
    assert {each.result.generation for each in answers} == {3}
    assert at.join(pending, version=4).code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-GROUP-13")
def test_an_id_that_does_not_join_disturbs_no_stable_group() -> None:
    at = Coordinator()
    (a,) = at.stable("a")
    at.join(version=4, session=6000)
    at.advance(6000)
    assert (at.state, at.group.pending) == ("Stable", {})
    assert at.beat(a) == ErrorCode.NONE


@pytest.mark.requirement("DP-GROUP-16")
def test_a_join_or_a_sync_that_waits_keeps_the_session() -> None:
    at = Coordinator()
    a, b = at.preparing("a", "b")
    at.group.members[b].session_timeout_ms = 100_000
    at.groups.machine.renew(at.group.members[b])
    answer = at.join(a)
    at.advance(50_000)
    assert answer.waits
    assert set(at.group.members) == {a, b}

    at = Coordinator()
    a, b = at.completing("a", "b")
    at.group.members[a].session_timeout_ms = 100_000
    at.groups.machine.renew(at.group.members[a])
    sync = at.sync(b)
    at.advance(50_000)
    assert sync.waits
    at.sync(a, {b: b"x"})
    assert sync.result.assignment == b"x"
    at.advance(10_000)
    assert list(at.group.members) == [a], "the session began anew with the answer"


@pytest.mark.requirement("DP-GROUP-16")
@pytest.mark.parametrize(
    ("release", "removed"), [((2, 1), False), ((2, 1, 1), True), ((2, 2), True)]
)
def test_since_2_1_1_a_new_member_waits_for_five_minutes_at_most(release, removed):
    at = Coordinator(release)
    (a,) = at.stable("a")
    member = at.group.members[a]
    member.session_timeout_ms = member.rebalance_timeout_ms = 900_000
    at.groups.machine.renew(member)
    answer = at.join(name="new")
    at.advance(299_999)
    assert answer.waits
    at.advance(1)
    assert bool(answer.results) == removed
    if removed:
        assert (answer.code, answer.result.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


# ---- protocols -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-GROUP-15")
@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        (["range roundrobin", "roundrobin range"], "range"),
        (["roundrobin range", "range roundrobin"], "roundrobin"),
        (["range roundrobin", "roundrobin range", "roundrobin range"], "roundrobin"),
        (["cooperative range", "range", "range sticky"], "range"),
        (["a b c", "c b", "b c a"], "b"),
    ],
)
def test_members_vote_for_a_protocol_that_all_support(preferences: list[str], chosen: str) -> None:
    at = Coordinator()
    protocols = [tuple((name, name.encode()) for name in each.split()) for each in preferences]
    leader = at.join(protocols=protocols[0]).result.member_id
    answers = [at.join(protocols=each) for each in protocols[1:]]
    answers.append(at.join(leader, protocols=protocols[0]))
    assert {each.result.protocol_name for each in answers} == {chosen}
    assert {each.metadata for each in answers[-1].result.members} == {chosen.encode()}
