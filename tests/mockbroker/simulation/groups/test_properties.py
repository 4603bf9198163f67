"""Classic groups under any order of requests, time and a tester's steps: what always holds.

Generations only grow; a generation has at most one set of assignments; a member is in one place;
whatever waits belongs to a member, and is answered once all time-outs have run, unless the member
sent the same request again: then only the last is answered.
"""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.classic.classic_group import GroupState, LeavingMember, SyncResult
from tests.mockbroker.simulation.groups.members import Answer, Coordinator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("DP-GROUP-03", "DP-GROUP-09", "DP-GROUP-11", "DP-GROUP-16"),
]

RELEASES = [(1, 1), (2, 1), (2, 4), (2, 8), (3, 9), (4, 4)]
INSTANCES = [None, None, "i", "j"]
PROTOCOLS = [(("a", b"1"), ("b", b"2")), (("b", b"2"), ("a", b"1")), (("b", b"3"),)]
JOIN_CODES = {0, 15, 16, 23, 25, 26, 27, 79, 81, 82, -1}
SYNC_CODES = {0, 15, 16, 22, 23, 25, 27, 82}
LONGEST_MS = 120_000


class GroupMachine(RuleBasedStateMachine):
    """One group; members are those that any answer named."""

    release: tuple[int, int]

    def __init__(self) -> None:
        super().__init__()
        self.at = Coordinator(
            self.release, group_max_size=4, group_initial_rebalance_delay_ms=self.delay_ms
        )
        self.joins: list[tuple[str, Answer[Any]]] = []
        self.syncs: list[tuple[int, str, Answer[SyncResult]]] = []
        self.known: list[str] = ["", "stranger"]
        self.generation = 0
        self.assigned: dict[tuple[int, str], bytes] = {}
        self.count = 0

    delay_ms = 0

    # ---- steps -------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        instance=st.sampled_from(INSTANCES),
        version=st.sampled_from([3, 5, 9]),
        protocols=st.sampled_from(PROTOCOLS),
        session=st.sampled_from([6000, 10_000]),
        rebalance=st.sampled_from([5000, 60_000]),
    )
    def join(self, data: st.DataObject, instance: str | None, **options: Any) -> None:
        member_id = data.draw(st.sampled_from(self.known))
        answer = self.at.join(member_id, instance=instance, **options)
        group = self.at.groups.group("g")
        if answer.waits and group is not None and member_id in group.joins:
            self.joins = [row for row in self.joins if row[0] != member_id or not row[1].waits]
        self.joins.append((member_id, answer))
        self._learn()

    @rule(data=st.data(), stale=st.booleans())
    def sync(self, data: st.DataObject, stale: bool) -> None:
        member_id = data.draw(st.sampled_from(self.known))
        generation = self._generation() - stale
        self.count += 1
        group = self.at.groups.group("g")
        members = [] if group is None else list(group.members)
        assignments = {each: f"{self.count}-{each}".encode() for each in members}
        answer = self.at.sync(member_id, assignments, generation=generation)
        if answer.waits:
            self.syncs = [row for row in self.syncs if row[1] != member_id or not row[2].waits]
        self.syncs.append((generation, member_id, answer))

    @rule(data=st.data(), instance=st.sampled_from(INSTANCES))
    def beat(self, data: st.DataObject, instance: str | None) -> None:
        self.at.beat(data.draw(st.sampled_from(self.known)), instance=instance)

    @rule(data=st.data(), instance=st.sampled_from(INSTANCES))
    def leave(self, data: st.DataObject, instance: str | None) -> None:
        members = data.draw(st.lists(st.sampled_from(self.known), min_size=1, max_size=2))
        self.at.groups.leave("g", [LeavingMember(each, instance) for each in members])

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(self.known))
        self.at.groups.validate_commit(GroupCommit("g", member_id, None, self._generation()))

    @rule(milliseconds=st.sampled_from([1, 1000, 5000, 10_000, 60_000]))
    def advance(self, milliseconds: int) -> None:
        self.at.advance(milliseconds)

    @precondition(lambda self: self.at.groups.group("g") is not None)
    @rule()
    def move(self) -> None:
        self.at.groups.unload(["g"])
        assert not any(each.waits for _, each in self.joins)
        assert not any(each.waits for _, _, each in self.syncs)
        self.at.groups.load(["g"], self.at.cluster.offsets.keeps)
        self.generation = self._generation()
        self.assigned.clear()
        self.syncs.clear()

    @rule()
    def delete(self) -> None:
        if self.at.groups.delete("g") == ErrorCode.NONE:
            assert not any(each.waits for _, each in self.joins)
            self.generation = 0
            self.assigned.clear()
            self.syncs.clear()

    # ---- what holds --------------------------------------------------------------------------

    def _generation(self) -> int:
        group = self.at.groups.group("g")
        return -1 if group is None else group.generation

    def _learn(self) -> None:
        for _, answer in self.joins:
            if not answer.waits and answer.result.member_id not in self.known:
                self.known.append(answer.result.member_id)

    @invariant()
    def generations_only_grow(self) -> None:
        if self.at.groups.group("g") is not None:
            assert self._generation() >= self.generation
            self.generation = self._generation()

    @invariant()
    def a_member_is_in_one_place(self) -> None:
        group = self.at.groups.group("g")
        if group is None:
            return
        assert not group.members.keys() & group.pending.keys()
        assert group.joins.keys() | group.syncs.keys() <= group.members.keys()
        assert not group.joins.keys() & group.syncs.keys()
        assert all(group.members[m].instance_id == i for i, m in group.instances.items())
        assert len(group.instances) == sum(each.is_static for each in group.members.values())
        assert (group.leader in group.members) == bool(group.members)
        assert (
            bool(group.members) == (group.state is not GroupState.EMPTY)
            or group.pending
            or (group.state is GroupState.PREPARING)
        )

    @invariant()
    def what_waits_fits_the_state(self) -> None:
        group = self.at.groups.group("g")
        waiting_joins = sum(each.waits for _, each in self.joins)
        waiting_syncs = sum(each.waits for _, _, each in self.syncs)
        assert waiting_joins == (0 if group is None else len(group.joins))
        assert waiting_syncs == (0 if group is None else len(group.syncs))
        if group is not None:
            assert not group.joins or group.state is GroupState.PREPARING
            assert not group.syncs or group.state is GroupState.COMPLETING

    @invariant()
    def answers_are_those_of_the_protocol(self) -> None:
        for _, answer in self.joins:
            if not answer.waits:
                assert answer.code in JOIN_CODES
        for generation, member_id, sync in self.syncs:
            if sync.waits:
                continue
            assert sync.code in SYNC_CODES
            if sync.code == ErrorCode.NONE and sync.result.assignment:
                key = (generation, member_id)
                assignment = self.assigned.setdefault(key, sync.result.assignment)
                assert assignment == sync.result.assignment, "one assignment a generation"

    @invariant()
    def the_group_is_not_larger_than_it_may_be(self) -> None:
        group = self.at.groups.group("g")
        if group is not None and group.state in (GroupState.COMPLETING, GroupState.STABLE):
            assert len(group.members) <= (4 if self.release >= (2, 6) else 100)

    def teardown(self) -> None:
        """Once all are silent for long enough, none of them waits and the group is empty, unless
        the release has a bug: KAFKA-7610 and KAFKA-9752."""
        for _ in range(8):
            self.at.advance(LONGEST_MS)
        self.what_waits_fits_the_state()
        assert not any(each.waits for _, each in self.joins)
        group = self.at.groups.group("g")
        if group is not None and self.release >= (2, 5):
            assert group.state is GroupState.EMPTY
            assert not group.members
            assert not group.pending


def _case(of_release: tuple[int, int], of_delay_ms: int) -> Any:
    class Machine(GroupMachine):
        release = of_release
        delay_ms = of_delay_ms

    Machine.__name__ = f"GroupOf{of_release[0]}_{of_release[1]}"
    return Machine.TestCase


TestOf1x1 = _case((1, 1), 0)
TestOf2x4 = _case((2, 4), 3000)
TestOf2x8 = _case((2, 8), 0)
TestOf3x9 = _case((3, 9), 3000)
TestOf4x4 = _case((4, 4), 0)
TestOf4x4WithDelay = _case((4, 4), 3000)
