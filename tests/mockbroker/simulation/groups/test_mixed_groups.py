"""Members of the classic protocol in consumer groups, and groups that turn into the other kind."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from mockbroker.simulation.groups.classic.classic_group import (
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
)
from mockbroker.simulation.groups.consumer_protocol import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.groups.consumers import Consumers
from tests.mockbroker.simulation.groups.members import Answer

NO_GROUP = ErrorCode.GROUP_ID_NOT_FOUND
CANNOT = "Cannot upgrade classic group g to consumer group because "


def subscription(
    *topics: str, owned: tuple[str, ...] = (), version: int = 3, rack: str | None = None
) -> bytes:
    found: dict[str, list[int]] = {}
    for each in owned:
        name, _, index = each.rpartition("-")
        found.setdefault(name, []).append(int(index))
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[TopicPartition(topic=t, partitions=p) for t, p in found.items()],
        rack_id=rack,
    )
    return version.to_bytes(2, "big") + message.encode(version)


def assignment(*partitions: str, user_data: bytes | None = None) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for each in partitions:
        name, _, index = each.rpartition("-")
        by_topic.setdefault(name, []).append(int(index))
    data = write_assignment(by_topic.items(), 1)
    return data if user_data is None else data[:-4] + len(user_data).to_bytes(4, "big") + user_data


class Mixed(Consumers):
    """Consumer groups, and members of the classic protocol in them."""

    def classic_join(
        self,
        member: str = "",
        *,
        topics: tuple[str, ...] = ("foo",),
        owned: tuple[str, ...] = (),
        version: int = 3,
        protocols: tuple[tuple[str, bytes], ...] | None = None,
        **fields: Any,
    ) -> Answer[JoinResult]:
        answer = Answer[JoinResult]()
        metadata = subscription(*topics, owned=owned)
        request = JoinRequest(
            group_id="g",
            member_id=member,
            protocol_type=fields.pop("protocol_type", "consumer"),
            protocols=(("range", metadata),) if protocols is None else protocols,
            session_timeout_ms=fields.pop("session", 10_000),
            rebalance_timeout_ms=fields.pop("rebalance", 60_000),
            client_id="c",
            client_host="/127.0.0.1",
            needs_member_id=version >= 4,
            can_skip_assignment=version >= 9,
            **fields,
        )
        self.cluster.groups.join(request, answer)
        return answer

    def classic_sync(
        self, member: str, generation: int, given: dict[str, bytes] | None = None, **fields: Any
    ) -> Answer[Any]:
        answer = Answer[Any]()
        request = SyncRequest(
            "g", member, generation, assignments=tuple((given or {}).items()), **fields
        )
        self.cluster.groups.sync(request, answer)
        return answer

    def classic_beat(self, member: str, generation: int, instance: str | None = None) -> int:
        return self.cluster.groups.heartbeat("g", member, instance, generation)

    def partitions(self, member: str, generation: int) -> list[str]:
        """What SyncGroup gives a member."""
        result = self.classic_sync(member, generation).result
        assert result.error_code == 0
        read = read_assignment(result.assignment)
        assert read is not None
        return [f"{t.topic}-{i}" for t in read.assigned_partitions for i in t.partitions]

    def classic_group(self, **given: bytes) -> list[str]:
        """A stable classic group of two members, with the ids of its members."""
        one = self.classic_join().result.member_id
        second = self.classic_join()
        rejoin = self.classic_join(one)
        two = second.result.member_id
        generation = rejoin.result.generation
        given_to = {
            one: given.get("one", assignment("foo-0", "foo-1", "foo-2")),
            two: given.get("two", assignment("foo-3", "foo-4", "foo-5")),
        }
        self.classic_sync(two, generation)
        self.classic_sync(one, generation, given_to)
        return [one, two]

    @property
    def kind(self) -> str:
        return next(each.group_type for each in self.cluster.groups.list_groups())

    @property
    def shown(self) -> str:
        return next(each.state for each in self.cluster.groups.list_groups())


# ---- empty groups --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-MIGRATE-05")
def test_an_empty_classic_group_becomes_a_consumer_group() -> None:
    at = Mixed()
    member = at.classic_join().result.member_id
    at.cluster.groups.leave("g", [LeavingMember(member)])
    assert (at.kind, at.shown) == ("classic", "Empty")
    assert at.beat("a", 1).error_message == "Group g is not a consumer group."
    assert at.join("a").member_epoch == 1, "it is a new group"
    assert (at.kind, len(list(at.cluster.groups.list_groups()))) == ("consumer", 1)


@pytest.mark.requirement("DP-MIGRATE-05")
def test_offsets_survive_a_change_of_kind() -> None:
    at = Mixed()
    Operations(at.cluster).set_offset("g", "foo-0", 7)
    assert at.kind == "classic"
    at.join("a", topics=[])
    assert at.kind == "consumer"
    at.leave("a")
    at.classic_join()
    assert (at.kind, at.cluster.offsets["g"]["foo", 0].offset) == ("classic", 7)


@pytest.mark.requirement("DP-MIGRATE-05")
def test_an_empty_consumer_group_becomes_a_classic_one() -> None:
    at = Mixed()
    at.join("a")
    at.leave("a")
    joined = at.classic_join()
    assert (joined.code, joined.result.generation) == (0, 1)
    assert (at.kind, at.groups.group("g")) == ("classic", None)


# ---- upgrade -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-MIGRATE-02")
def test_a_classic_group_is_upgraded_by_a_member_that_joins() -> None:
    at = Mixed()
    one, two = at.classic_group()
    generation = at.cluster.groups.classic.groups["g"].generation
    result = at.join("a")
    assert (at.kind, at.group.epoch, result.member_epoch) == (
        "consumer", generation + 1, generation + 1,
    )  # fmt: skip
    assert list(at.group.members) == [one, two, "a"]
    assert (at.assigned(one), at.assigned(two)) == (
        ["foo-0", "foo-1", "foo-2"], ["foo-3", "foo-4", "foo-5"],
    )  # fmt: skip
    assert at.classic_beat(one, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = at.classic_join(one, owned=("foo-0", "foo-1", "foo-2"))
    assert rejoined.result.generation == generation, "it has to revoke first"
    assert at.partitions(one, generation) == ["foo-0", "foo-1"]
    assert at.classic_beat(one, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = at.classic_join(one, owned=("foo-0", "foo-1"))
    assert rejoined.result.generation == generation + 1
    at.classic_join(two, owned=("foo-3", "foo-4"))
    at.beat("a")
    assert (at.state, len(at.assigned("a"))) == ("Stable", 2)
    assert at.classic_beat(two, generation + 1) == 0


@pytest.mark.requirement("DP-MIGRATE-02")
def test_an_upgrade_ends_a_rebalance() -> None:
    at = Mixed()
    one, _ = at.classic_group()
    waiting = at.classic_join(one)
    assert waiting.waits
    at.join("a")
    assert waiting.code == ErrorCode.REBALANCE_IN_PROGRESS
    sync = Mixed()
    one = sync.classic_join().result.member_id
    two_joins = sync.classic_join()
    first = sync.classic_join(one)
    waiting_sync = sync.classic_sync(two_joins.result.member_id, first.result.generation)
    sync.join("a")
    assert waiting_sync.code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.requirement("DP-MIGRATE-02")
def test_an_upgraded_member_has_its_own_session() -> None:
    at = Mixed()
    _, two = at.classic_group()
    at.join("a")
    at.advance(9_999)
    at.classic_beat(two, 2)
    at.advance(1)
    assert list(at.group.members) == [two, "a"]
    assert at.group.members[two].rebalance_timeout_ms == 60_000


@pytest.mark.requirement("DP-MIGRATE-01", "DP-MIGRATE-02")
@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_may_forbid_upgrades(policy: str) -> None:
    at = Mixed(group_consumer_migration_policy=policy)
    at.classic_group()
    result = at.join("a")
    assert (result.error_code, result.error_message) == (
        NO_GROUP, CANNOT + "online upgrade is disabled.",
    )  # fmt: skip
    assert at.kind == "classic"


@pytest.mark.requirement("DP-MIGRATE-02")
def test_only_groups_of_consumers_are_upgraded() -> None:
    at = Mixed()
    at.classic_join(protocol_type="connect")
    result = at.join("a")
    text = "the group does not use the consumer embedded protocol."
    assert (result.error_code, result.error_message) == (NO_GROUP, CANNOT + text)
    large = Mixed(group_consumer_max_size=1)
    large.classic_group()
    text = "the group size exceeds the consumer group maximum size."
    assert large.join("a").error_message == CANNOT + text
    full = Mixed(group_consumer_max_size=2)
    full.classic_group()
    assert full.join("a").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert full.kind == "classic", "a refused member changes nothing"


@pytest.mark.requirement("DP-MIGRATE-02")
def test_metadata_has_to_be_readable() -> None:
    malformed = CANNOT + "the embedded consumer protocol is malformed."
    at = Mixed()
    at.classic_join(protocols=(("range", b"\x00\x00\x00\x00\x00\x09"),))
    assert at.join("a").error_message == malformed
    at = Mixed()
    at.classic_group(one=b"\x00\x00\x00")
    waiting = at.classic_join()
    assert at.join("a").error_message == malformed
    assert waiting.result.error_code == ErrorCode.REBALANCE_IN_PROGRESS, "asked to join again"
    custom = Mixed()
    custom.classic_group(one=assignment("foo-0", user_data=b"mine"))
    assert custom.join("a").error_message == (
        CANNOT + "an unsupported custom assignor is in use. Please refer to the documentation or "
        "switch to a default assignor before re-attempting the upgrade."
    )


# ---- members of the classic protocol -------------------------------------------------------------


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_classic_member_joins_a_consumer_group() -> None:
    at = Mixed()
    at.join("a")
    required = at.classic_join(version=9)
    assert required.code == ErrorCode.MEMBER_ID_REQUIRED
    member = required.result.member_id
    assert member not in at.group.members
    joined = at.classic_join(member, version=9).result
    assert (joined.error_code, joined.generation) == (0, 2)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert (joined.leader, joined.members, joined.skip_assignment) == ("", (), False)
    assert at.partitions(member, 2) == []
    at.beat("a", owned=at.assigned("a")[:3])
    assert at.classic_beat(member, 2) == ErrorCode.REBALANCE_IN_PROGRESS, "they are free now"
    at.classic_join(member)
    assert at.partitions(member, 2) == ["foo-3", "foo-4", "foo-5"]
    assert at.classic_beat(member, 2) == 0
    assert at.classic_join(version=3).result.error_code == 0, "old clients get an id at once"


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_static_classic_member_joins_at_once() -> None:
    at = Mixed()
    at.join("a")
    joined = at.classic_join(version=9, instance_id="one").result
    assert (joined.error_code, at.group.instances) == (0, {"one": joined.member_id})
    again = at.classic_join(version=9, instance_id="one").result
    assert again.error_code == 0
    assert again.member_id
    assert at.group.instances == {"one": again.member_id}
    assert joined.member_id not in at.group.members
    assert at.classic_beat(joined.member_id, 2, "one") == ErrorCode.FENCED_INSTANCE_ID
    fenced = at.classic_join(joined.member_id, instance_id="one")
    assert fenced.code == ErrorCode.FENCED_INSTANCE_ID
    unknown = at.classic_join("m", instance_id="two")
    assert unknown.code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-MIGRATE-03")
@pytest.mark.parametrize(
    ("release", "code"),
    [((4, 2, 1), -1), ((4, 2, 2), 23), ((4, 3), -1), ((4, 4), 23)],
)
def test_classic_members_need_a_readable_subscription(release: tuple[int, int], code: int) -> None:
    at = Mixed(release)
    at.join("a")
    for data in (b"", b"\0", b"\xff\xff", b"meta"):
        assert at.classic_join(protocols=(("range", data),)).code == code


@pytest.mark.requirement("DP-MIGRATE-03")
def test_classic_members_need_a_protocol_in_common() -> None:
    at = Mixed()
    at.join("a")
    other = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.classic_join(protocol_type="connect").code == other
    assert at.classic_join(protocols=()).code == other
    assert at.classic_join().code == 0
    assert at.classic_join(protocols=(("sticky", subscription("foo")),)).code == other
    assert at.classic_join(session=1).code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_protocol_that_a_classic_member_sends_twice_counts_twice() -> None:
    """Kafka 4.4.0 compares the count with that of the members, even if there is no other one."""
    at = Mixed()
    at.join("a")
    twice = (("range", subscription("foo")),) * 2
    member = at.classic_join(protocols=twice).result.member_id
    assert at.classic_join(member).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.classic_join().code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_full_group_takes_no_classic_members() -> None:
    at = Mixed(group_consumer_max_size=2)
    at.join("a")
    member = at.classic_join().result.member_id
    assert at.classic_join().code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert at.classic_join(member).code == 0


@pytest.mark.requirement("REL-26", "DP-MIGRATE-03")
@pytest.mark.parametrize(("release", "code"), [((4, 3), 81), ((4, 4), 0)])
def test_a_static_classic_member_returns_to_a_full_group(release, code):
    at = Mixed(release, group_consumer_max_size=2)
    at.join("a")
    assert at.classic_join(instance_id="i").code == 0
    assert at.classic_join(instance_id="j").code == 81
    assert at.classic_join(instance_id="i").code == code


@pytest.mark.requirement("DP-MIGRATE-01")
@pytest.mark.parametrize(("release", "code"), [((4, 2), 0), ((4, 3), 23)])
def test_the_policy_may_forbid_mixed_groups(release: tuple[int, int], code: int) -> None:
    at = Mixed(release, group_consumer_migration_policy="disabled")
    at.join("a")
    assert at.classic_join().code == code
    upgrade = Mixed(release, group_consumer_migration_policy="upgrade")
    upgrade.join("a")
    assert upgrade.classic_join().code == 0


@pytest.mark.requirement("DP-MIGRATE-03")
def test_syncs_and_heartbeats_are_checked() -> None:
    at = Mixed()
    at.join("a")
    member = at.classic_join().result.member_id
    unknown, other = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION
    assert at.classic_sync("nobody", 2).code == unknown
    assert at.classic_sync("a", 1).code == unknown, "it does not speak this protocol"
    assert at.classic_sync(member, 1).code == other
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.classic_sync(member, 2, protocol_type="connect").code == inconsistent
    assert at.classic_sync(member, 2, protocol_name="sticky").code == inconsistent
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    result = at.classic_sync(member, 2, **named).result
    assert (result.protocol_type, result.protocol_name) == ("consumer", "range")
    assert at.classic_beat("nobody", 2) == unknown
    assert at.classic_beat(member, 1) == other
    assert at.classic_beat(member, 2, "one") == unknown
    at.join("b")
    assert at.classic_sync(member, 2).code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.requirement("DP-MIGRATE-03")
def test_classic_members_are_fenced_by_their_time_outs() -> None:
    at = Mixed()
    at.join("a")
    silent = at.classic_join(session=10_000).result.member_id
    at.classic_sync(silent, 2)
    at.advance(10_000)
    assert silent not in at.group.members, "its session is over"
    late = at.classic_join(session=60_000, rebalance=20_000).result.member_id
    at.advance(20_000)
    assert late not in at.group.members, "it has not sent SyncGroup"
    slow = at.classic_join(session=60_000, rebalance=20_000).result
    at.classic_sync(slow.member_id, slow.generation)
    at.join("b")
    assert at.classic_beat(slow.member_id, slow.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    at.advance(15_000)
    at.classic_beat(slow.member_id, slow.generation)
    at.advance(4_999)
    assert slow.member_id in at.group.members
    at.advance(1)
    assert slow.member_id not in at.group.members, "it has not joined again"


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_sync_that_is_late_begins_the_wait_for_a_join() -> None:
    at = Mixed()
    at.join("a")
    member = at.classic_join(session=60_000, rebalance=20_000).result.member_id
    at.classic_sync(member, 2)
    at.join("b")
    at.advance(5_000)
    assert at.classic_sync(member, 2).code == ErrorCode.REBALANCE_IN_PROGRESS
    at.advance(19_999)
    assert member in at.group.members
    at.advance(1)
    assert member not in at.group.members


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_join_stops_the_wait_for_it() -> None:
    at = Mixed()
    at.join("a")
    member = at.classic_join(session=60_000, rebalance=20_000).result.member_id
    at.classic_sync(member, 2)
    at.join("b")
    at.classic_beat(member, 2)
    at.advance(19_000)
    joined = at.classic_join(member, session=60_000, rebalance=20_000).result
    at.classic_sync(member, joined.generation)
    at.advance(10_000)
    assert member in at.group.members


@pytest.mark.requirement("DP-MIGRATE-03")
def test_members_leave_by_leave_group() -> None:
    at = Mixed()
    at.join("a")
    at.join("s", instance_id="one")
    member = at.classic_join().result.member_id
    unknown, fenced = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
    assert at.cluster.groups.leave(
        "g",
        [
            LeavingMember("nobody"),
            LeavingMember("s", "two"),
            LeavingMember("a", "one"),
            LeavingMember(member),
            LeavingMember("", "one"),
        ],
    ) == (0, (unknown, unknown, fenced, 0, 0))
    assert (list(at.group.members), at.group.epoch) == (["a"], 4)


# ---- downgrade -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-MIGRATE-04")
def test_the_last_consumer_member_makes_it_a_classic_group() -> None:
    at = Mixed()
    at.join("a")
    member = at.classic_join().result.member_id
    at.beat("a", owned=at.assigned("a")[:3])
    at.classic_join(member)
    at.classic_sync(member, 2)
    at.leave("a")
    assert (at.kind, at.shown) == ("classic", "PreparingRebalance")
    group = at.cluster.groups.classic.groups["g"]
    assert (group.generation, group.leader, list(group.members)) == (2, member, [member])
    read = read_assignment(group.members[member].assignment)
    assert read is not None
    assert read.assigned_partitions[0].partitions == [3, 4, 5]
    assert at.classic_beat(member, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = at.classic_join(member).result
    assert (joined.error_code, joined.generation, joined.leader) == (0, 3, member)


@pytest.mark.requirement("DP-MIGRATE-04")
def test_an_expired_consumer_member_makes_it_a_classic_group() -> None:
    at = Mixed()
    at.join("a")
    member = at.classic_join(session=60_000).result.member_id
    at.classic_sync(member, 2)
    at.advance(45_000)
    assert at.kind == "classic"
    assert list(at.cluster.groups.classic.groups["g"].members) == [member]


@pytest.mark.requirement("DP-MIGRATE-04")
@pytest.mark.parametrize(("release", "code"), [((4, 2), -1), ((4, 3), 0)])
def test_a_member_without_a_target_keeps_the_group_from_its_downgrade(release, code) -> None:
    """It subscribes to nothing, so that no target was made. By bytecode so in 4.2.2, not in 4.3.1;
    found beside Kafka 4.1.2."""
    at = Mixed(release)
    at.join("a")
    member = at.classic_join(topics=()).result.member_id
    assert at.leave("a").error_code == code
    assert at.kind == ("consumer" if code else "classic")
    if code:
        assert at.cluster.groups.leave("g", [LeavingMember(member)]) == (0, (0,))
        assert at.leave("a").error_code == 0


@pytest.mark.requirement("DP-MIGRATE-01", "DP-MIGRATE-04")
@pytest.mark.parametrize(
    "configs",
    [{"group_consumer_migration_policy": "upgrade"}, {"group_max_size": 1}],
    ids=["policy", "size"],
)
def test_a_group_may_have_to_stay_a_consumer_group(configs: dict[str, object]) -> None:
    at = Mixed(**configs)  # type: ignore[arg-type]
    at.join("a")
    at.classic_join()
    at.classic_join()
    at.leave("a")
    assert (at.kind, len(at.group.members), at.group.epoch) == ("consumer", 2, 4)


@pytest.mark.requirement("DP-MIGRATE-04")
def test_a_static_consumer_member_may_be_replaced_by_a_classic_one() -> None:
    at = Mixed()
    at.join("a", instance_id="one")
    result = at.classic_join(instance_id="one").result
    assert (result.error_code, result.generation) == (0, 1)
    assert (at.kind, at.shown) == ("classic", "Stable"), "the subscription is the same"
    assert at.partitions(result.member_id, 1) == [f"foo-{i}" for i in range(6)]
    changed = Mixed(topics=["foo:6:1", "bar:1:1"])
    changed.join("a", instance_id="one")
    changed.classic_join(instance_id="one", topics=("bar",))
    assert (changed.kind, changed.shown) == ("classic", "PreparingRebalance")


@pytest.mark.requirement("DP-MIGRATE-03", "DP-MIGRATE-04")
def test_a_replaced_member_among_others_changes_no_kind() -> None:
    at = Mixed()
    at.join("a", instance_id="one")
    at.join("b")
    at.settle()
    had = at.assigned("a")
    result = at.classic_join(instance_id="one", owned=tuple(had)).result
    assert (at.kind, result.generation) == ("consumer", 2)
    assert at.partitions(result.member_id, 2) == had


@pytest.mark.requirement("DP-MIGRATE-03")
def test_a_regular_expression_ends_with_the_member_that_had_it() -> None:
    at = Mixed(topics=["foo:1:1", "far:1:1"])
    at.join("a", instance_id="one", topic_regex="f.*")
    at.join("b")
    at.classic_join(instance_id="one")
    assert not at.group.resolved
    assert set(at.group.subscribed) == {"foo"}


# ---- bytes ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-MIGRATE-03")
def test_embedded_messages_of_any_version_are_read() -> None:
    for version in range(4):
        read = read_subscription(subscription("foo", version=version))
        assert read is not None
        assert read.topics == ["foo"]
    newer = b"\x00\x09" + subscription("foo")[2:] + b"more"
    assert version_of(newer) == 3
    assert read_subscription(newer) is not None
    for bad in (b"", b"\x00", b"\xff\xff", b"\x00\x00", b"\x00\x01\x00\x00\x00\x09"):
        assert read_subscription(bad) is None
        assert read_assignment(bad) is None
