"""Members of groups and committed offsets, as rules of hypothesis, and a tester who disturbs them.

``transaction_rules`` adds transactional producers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fuzz.stateful import data_bodies
from fuzz.stateful.data_model import Member
from fuzz.stateful.data_rules import DataRules
from fuzz.stateful.strategies import BROKER, PICK
from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import Group
from mockbroker.simulation.operations import parse_operation
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["GroupRules"]

_GROUP = st.sampled_from(["g", "g", "h"])
_MEMBER = st.integers(0, 2)
_SLOT = st.integers(0, 5)
_VERSION = st.integers(0, 20)
_ELSEWHERE = st.none() | st.none() | st.none() | BROKER
_INSTANCES_SINCE = 5
_IDS_REQUIRED_SINCE = 4
_STEPS = st.sampled_from(
    [
        "hold-joins {group}", "complete-join {group}", "rebalance {group}",
        "expire-member {group} {member}", "remove-member {group} {member}", "hold-commits {group}",
        "release-commits {group}", "release-commits {group}",
        "move-coordinator group {group} {broker}", "load-coordinator group {group}",
        "finish-loading group {group}", "finish-loading group {group}",
    ]
)  # fmt: skip


class GroupRules(DataRules):
    def coordinator(self, group: str, at: int | None) -> int:
        """The broker to send to: the coordinator if there is one, or ``at``."""
        if at is not None:
            return at
        coordinators = self.world.cluster.coordinators
        for broker in sorted(self.world.model.live):
            if coordinators.group_error(group, broker) != ErrorCode.NOT_COORDINATOR:
                return broker
        return min(self.world.model.live, default=-1)

    def member(self, group: str, number: int) -> Member:
        members = self.data.members.setdefault(group, [])
        while len(members) <= number:
            instance = f"{group}-static" if len(members) == 2 else None
            members.append(Member(instance=instance))
        return members[number]

    @rule(group=_GROUP, count=st.integers(1, 3), version=_VERSION)
    def form(self, group: str, count: int, version: int) -> None:
        """Some members join, and then sync, as far as the group lets them."""
        for _ in range(2):  # the first time perhaps to learn a member id
            for number in range(count):
                self.join(number, group, number, None, version, 1_000)
        for number in (*range(count), *range(count)):
            self.sync(number, group, number, None, version)

    # ---- members ---------------------------------------------------------------------------------

    @rule(slot=_SLOT, group=_GROUP, number=_MEMBER, at=_ELSEWHERE, version=_VERSION,
          rebalance_ms=st.sampled_from([1_000, 60_000]))  # fmt: skip
    def join(
        self, slot: int, group: str, number: int, at: int | None, version: int, rebalance_ms: int
    ) -> None:
        found, member = self.world.version(11, version), self.member(group, number)
        if found is None or member.joining:
            return
        instance = member.instance if found >= _INSTANCES_SINCE else None
        member.joining = True

        def heard(answer: Any) -> None:
            member.joining = False
            member.generation, member.members = -1, ()
            if answer is None:
                member.member_id = ""
                return
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                assert found >= _IDS_REQUIRED_SINCE
                member.member_id = answer.member_id
            elif answer.error_code:
                member.member_id = ""
            else:
                member.member_id, member.generation = answer.member_id, answer.generation_id
                member.members = [each.member_id for each in answer.members]
                assert len(set(member.members)) == len(member.members), answer

        body = data_bodies.join(group, member.member_id, found, rebalance_ms, instance)
        self.send("join", slot, self.coordinator(group, at), body, found, heard)
        if member.joining and not any(each[1] is heard for each in self.unanswered):
            member.joining = False

    @rule(slot=_SLOT, group=_GROUP, number=_MEMBER, at=_ELSEWHERE, version=_VERSION)
    def sync(self, slot: int, group: str, number: int, at: int | None, version: int) -> None:
        """What a leader assigns says which of its requests assigned it."""
        found, member = self.world.version(14, version), self.member(group, number)
        if found is None or member.joining or member.syncing or member.generation < 0:
            return
        instance = member.instance if found >= 3 else None
        self.data.syncs += 1
        token = f"{group}/{member.generation}/{self.data.syncs}".encode()
        assigned = [(each, token + b"/" + each.encode()) for each in member.members]
        generation, member_id = member.generation, member.member_id
        member.syncing = True

        def heard(answer: Any) -> None:
            member.syncing = False
            if answer is not None and not answer.error_code:
                self.check_assigned(group, generation, member_id, answer.assignment)

        body = data_bodies.sync(found, group, member_id, generation, instance, assigned)
        self.send("sync", slot, self.coordinator(group, at), body, found, heard)
        if member.syncing and not any(each[1] is heard for each in self.unanswered):
            member.syncing = False

    def check_assigned(
        self, group: str, generation: int, member_id: str, assignment: bytes
    ) -> None:
        """All members of a generation have what one request of its leader assigned to them."""
        if not assignment:
            return  # the leader did not know the member
        given, of_generation, call, *_ = assignment.decode().split("/", 3)
        assert (given, of_generation) == (group, str(generation)), (group, generation, assignment)
        assert assignment.decode().endswith(f"/{member_id}"), (member_id, assignment)
        present = self.world.cluster.groups.group(group)
        if isinstance(present, Group) and present.generation == generation:  # else it is gone
            key = (id(present), generation)
            known = self.data.assignments.setdefault(key, (present, call))
            assert known[1] == call, f"generation {generation} of {group} was assigned twice"

    @rule(slot=_SLOT, group=_GROUP, number=_MEMBER, at=_ELSEWHERE, version=_VERSION)
    def heartbeat(self, slot: int, group: str, number: int, at: int | None, version: int) -> None:
        found, member = self.world.version(12, version), self.member(group, number)
        if found is None or member.joining or member.generation < 0:
            return
        instance = member.instance if found >= 3 else None

        def heard(answer: Any) -> None:
            if answer is not None and answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                member.member_id, member.generation = "", -1

        body = data_bodies.heartbeat(group, member.member_id, member.generation, instance)
        self.send("heartbeat", slot, self.coordinator(group, at), body, found, heard)

    @rule(slot=_SLOT, group=_GROUP, number=_MEMBER, at=_ELSEWHERE, version=_VERSION)
    def leave(self, slot: int, group: str, number: int, at: int | None, version: int) -> None:
        found, member = self.world.version(13, version), self.member(group, number)
        if found is None or not member.member_id or member.joining:
            return

        def heard(answer: Any) -> None:
            if answer is None or not answer.error_code:
                member.member_id, member.generation = "", -1

        body = data_bodies.leave(found, group, member.member_id)
        self.send("leave", slot, self.coordinator(group, at), body, found, heard)

    # ---- offsets ---------------------------------------------------------------------------------

    @rule(slot=_SLOT, group=_GROUP, number=st.none() | _MEMBER, pick=PICK, at=_ELSEWHERE,
          offset=st.integers(0, 9), version=_VERSION)  # fmt: skip
    def commit(
        self, slot: int, group: str, number: int | None, pick: int, at: int | None, offset: int,
        version: int,
    ) -> None:  # fmt: skip
        """Commit as a member, or without a group."""
        found, tp = self.world.version(8, version), self.pick(pick)
        if not found:
            return  # version 0 commits to ZooKeeper
        member = Member() if number is None else self.member(group, number)
        body = data_bodies.commit(
            found, group, member.member_id, member.generation, tp, self.ids, offset
        )
        self.decide(
            "commit", slot, at, group, tp, offset, body, found,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )  # fmt: skip

    @rule(slot=_SLOT, group=_GROUP, pick=PICK, at=_ELSEWHERE)
    def delete_offset(self, slot: int, group: str, pick: int, at: int | None) -> None:
        found, tp = self.world.version(47, 0), self.pick(pick)
        if found is None:
            return
        self.decide(
            "delete_offset", slot, at, group, tp, None, data_bodies.delete_offset(group, tp), found,
            lambda answer: answer.error_code or answer.topics[0].partitions[0].error_code,
        )  # fmt: skip

    def decide(
        self, name: str, slot: int, at: int | None, group: str, tp: TopicPartition,
        offset: int | None, body: Any, version: int, code_of: Callable[[Any], int],
    ) -> None:  # fmt: skip
        """Send a request that changes an offset. Without an answer it is in doubt what became of
        it; so it is with an error of the coordinator's log, which may have the record."""
        self.settle()
        self.data.sends_commit(group, tp, offset)

        def heard(answer: Any) -> None:
            if answer is not None:
                code = code_of(answer)
                self.data.commit_is_decided(group, tp, offset, done=not code)

        self.send(name, slot, self.coordinator(group, at), body, version, heard)

    @rule(slot=_SLOT, group=_GROUP, at=_ELSEWHERE, version=_VERSION)
    def delete_group(self, slot: int, group: str, at: int | None, version: int) -> None:
        found = self.world.version(42, version)
        if found is None:
            return

        def heard(answer: Any) -> None:
            if answer is None or not answer.results[0].error_code:
                # Commits of other connections may have come before or after it.
                for tp, offset in self.data.committed.pop(group, {}).items():
                    self.data.sends_commit(group, tp, offset)

        body = data_bodies.delete_groups(group)
        self.send("delete_group", slot, self.coordinator(group, at), body, found, heard)

    @rule(slot=_SLOT, group=_GROUP, at=_ELSEWHERE, version=_VERSION)
    def fetch_offsets(self, slot: int, group: str, at: int | None, version: int) -> None:
        found = self.world.version(9, version)
        if found is None or found < 2:
            return

        def heard(answer: Any) -> None:
            if answer is not None:
                self.check_offsets(group, answer, found)

        body = data_bodies.fetch_offsets(found, group)
        self.send("fetch_offsets", slot, self.coordinator(group, at), body, found, heard)

    def check_offsets(self, group: str, answer: Any, version: int) -> None:
        """A coordinator answers every offset that was committed."""
        whole = answer.groups[0] if version >= 8 else answer
        if whole.error_code:
            return
        names = {each.topic_id: name for name, each in self.world.cluster.topics.items()}
        found = {
            (names.get(topic.topic_id) if version >= 10 else topic.name, part.partition_index): (
                part.committed_offset
            )
            for topic in whole.topics
            for part in topic.partitions
            if not part.error_code
        }
        for tp, offset in self.data.committed.get(group, {}).items():
            allowed = {offset, *self.data.in_doubt.get((group, tp), ())}
            assert found.get(tp) in allowed, (group, tp, found.get(tp), allowed)

    # ---- a tester --------------------------------------------------------------------------------

    @rule(step=_STEPS, group=_GROUP, number=_MEMBER, broker=BROKER)
    def group_tester(self, step: str, group: str, number: int, broker: int) -> None:
        self.settle()
        member_id = self.member(group, number).member_id or "nobody"
        call = parse_operation(step.format(group=group, member=member_id, broker=broker))
        self.step(call.operation.name, self.world.mock.carry_out, call)

    def release(self) -> None:
        super().release()
        for group in ("g", "h"):
            for step in ("finish-loading group", "release-commits", "complete-join"):
                self.world.do(self.world.mock.carry_out, parse_operation(f"{step} {group}"))
