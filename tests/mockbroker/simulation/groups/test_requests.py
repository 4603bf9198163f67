"""The requests of groups by version, at a broker without sockets: fields, errors, permissions."""

from collections.abc import Sequence
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.profiles import profile
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import (
    AclOperation,
    Authorizer,
    PatternType,
    ResourceType,
)
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

READ, DESCRIBE, DELETE = 3, 8, 6
NOT_ASKED = -(2**31)


def broker(
    profile_name: str = "kafka-4.4", *, brokers: int = 1, security: Security = OPEN
) -> DirectBroker:
    cluster = simulated_cluster(brokers, release=profile(profile_name).software)
    cluster.coordinators.find(CoordinatorKind.GROUP, "g", 1)
    return DirectBroker(cluster, profile_name=profile_name, security=security, principal="User:ann")


def join(member_id: str = "", **fields: Any) -> Any:
    return request_of(
        "JoinGroup",
        group_id=fields.pop("group_id", "g"),
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=fields.pop("rebalance_timeout_ms", 60_000),
        protocol_type="consumer",
        name="range",
        metadata=b"meta",
        **fields,
    )


def sync(member_id: str, version: int = 4) -> Any:
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    return request_of(
        "SyncGroup",
        group_id="g",
        generation_id=1,
        member_id=member_id,
        assignments={"member_id": member_id, "assignment": b"all"},
        **named,
    )


def stable(at: DirectBroker, version: int = 3) -> str:
    """A stable group with one member, which is static from version 5 on; its id."""
    fields = {"group_instance_id": "i"} if version >= 5 else {}
    joined = at.ask(join(**fields), version)
    assert joined.error_code == ErrorCode.NONE
    synced = at.ask(sync(joined.member_id), 0)
    assert synced.assignment == b"all"
    member_id: str = joined.member_id
    return member_id


# ---- JoinGroup, SyncGroup ------------------------------------------------------------------------


@pytest.mark.requirement("DP-JOIN-21", "DP-JOIN-08", "DP-JOIN-09")
@pytest.mark.parametrize("version", range(10))
def test_the_answer_to_a_join_in_every_version(version: int) -> None:
    at = broker("kafka-3.9")
    refused = at.ask(join("unknown"), version)
    assert (refused.error_code, refused.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, -1)
    assert refused.protocol_name == (None if version >= 7 else "")
    fields = {"group_instance_id": "i"} if version >= 5 else {}
    joined = at.ask(join(**fields), version)
    if version == 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = at.ask(join(joined.member_id), version)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.protocol_name == "range"
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    assert joined.leader == joined.member_id
    (member,) = joined.members
    assert (member.member_id, member.metadata) == (joined.member_id, b"meta")
    assert member.group_instance_id == ("i" if version >= 5 else None)


@pytest.mark.requirement("DP-JOIN-22")
@pytest.mark.parametrize(("version", "timeout"), [(0, 10_000), (1, 60_000), (3, 60_000)])
def test_version_0_has_no_rebalance_timeout(version: int, timeout: int) -> None:
    at = broker("kafka-3.9")
    fields = {} if version else {"rebalance_timeout_ms": -1}
    member_id = at.ask(join(**fields), version).member_id
    group = at.cluster.groups.classic.group("g")
    assert group is not None
    assert group.members[member_id].rebalance_timeout_ms == timeout


@pytest.mark.requirement("DP-SYNC-04")
def test_version_5_of_sync_must_name_the_protocol() -> None:
    at = broker()
    member_id = stable(at)
    assert at.ask(sync(member_id, 5), 5).protocol_name == "range"
    assert at.ask(sync(member_id), 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.ask(sync(member_id), 4).error_code == ErrorCode.NONE


@pytest.mark.requirement("DP-JOIN-18", "DP-JOIN-19")
@pytest.mark.parametrize("version", [8, 9])
def test_only_version_9_skips_the_assignment(version: int) -> None:
    at = broker()
    former = stable(at, version=5)
    again = at.ask(join(group_instance_id="i"), version)
    assert again.skip_assignment == (version >= 9)
    assert (again.leader == former) == (version < 9)


@pytest.mark.requirement("DP-COORD-05")
def test_only_the_coordinator_answers() -> None:
    at = broker(brokers=3)
    found = at.cluster.coordinators.find(CoordinatorKind.GROUP, "g", 1)
    assert found is not None
    elsewhere = 1 + found.broker_id % 3
    code = ErrorCode.NOT_COORDINATOR
    leave = request_of("LeaveGroup", group_id="g", members={"member_id": "m"})
    beat = request_of("Heartbeat", group_id="g", generation_id=1, member_id="m")
    for request, version in ((join(), 9), (sync("m"), 4), (beat, 4), (leave, 5)):
        assert at.ask(request, version, broker_id=elsewhere).error_code == code
    described = at.ask("DescribeGroups", 6, groups=["g"], broker_id=elsewhere)
    assert (described.groups[0].error_code, described.groups[0].group_state) == (code, "")
    new = at.ask("ConsumerGroupDescribe", 1, group_ids=["g"], broker_id=elsewhere)
    assert new.groups[0].error_code == code
    deleted = at.ask("DeleteGroups", 2, groups_names=["g"], broker_id=elsewhere)
    assert deleted.results[0].error_code == code


@pytest.mark.requirement("DP-COORD-06", "DP-COORD-07")
def test_a_group_moves_with_the_leader_of_its_partition() -> None:
    at = broker(brokers=3)
    found = at.cluster.coordinators.find(CoordinatorKind.GROUP, "g", 1)
    assert found is not None
    joined = at.ask(join(), 3, broker_id=found.broker_id)
    at.ask(sync(joined.member_id), 4, broker_id=found.broker_id)
    Operations(at.cluster).stop_broker(found.broker_id)
    after = at.cluster.coordinators.find(CoordinatorKind.GROUP, "g", 1 + found.broker_id % 3)
    assert after is not None
    beat = request_of("Heartbeat", group_id="g", generation_id=1, member_id=joined.member_id)
    assert at.ask(beat, 4, broker_id=after.broker_id).error_code == ErrorCode.NONE
    assert at.ask(sync(joined.member_id), 4, broker_id=after.broker_id).assignment == b"all"


# ---- LeaveGroup ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-LEAVE-01", "DP-LEAVE-02", "DP-LEAVE-06")
@pytest.mark.parametrize("version", range(6))
def test_who_leaves_in_every_version(version: int) -> None:
    at = broker("kafka-3.9")

    def leave(*members: str) -> Any:
        if version < 3:
            return request_of("LeaveGroup", group_id="g", member_id=members[0])
        reason = {"reason": "closing time"} if version >= 5 else {}
        named = [{"member_id": each, **(reason)} for each in members]
        return request_of("LeaveGroup", group_id="g", members=named)

    def errors(*members: str) -> tuple[int, list[int]]:
        answer = at.ask(leave(*members), version)
        return answer.error_code, [each.error_code for each in answer.members]

    unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
    assert errors("m") == ((unknown, []) if version < 3 else (0, [unknown]))
    member_id = stable(at)
    if version < 3:
        assert errors("m") == (unknown, [])
        assert errors(member_id) == (0, [])
    else:
        assert errors("m", member_id) == (0, [unknown, 0])
    if version >= 5:
        assert any(b"closing time" in entry.raw for entry in at.journal)


# ---- DescribeGroups ------------------------------------------------------------------------------


@pytest.mark.requirement("REL-32")
@pytest.mark.parametrize(
    ("name", "version", "shown"),
    [("kafka-3.6", 7, ""), ("kafka-3.7", 6, ""), ("kafka-3.7", 7, None), ("kafka-4.4", 9, None)],
)
def test_an_empty_name_of_a_protocol_is_null_since_3_7(name, version, shown):
    at = broker(name)
    request = join(at.ask(join(), version).member_id)
    request.protocols[0].name = ""
    joined = at.ask(request, version)
    assert (joined.error_code, joined.protocol_name) == (0, shown)


def described(at: DirectBroker, version: int, group: str = "g", **fields: Any) -> Any:
    (found,) = at.ask("DescribeGroups", version, groups=[group], **fields).groups
    return found


@pytest.mark.requirement("DP-OFFSET-23")
@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_is_described(version: int) -> None:
    at = broker()
    member_id = stable(at, version=5)
    found = described(at, version)
    assert (found.error_code, found.group_state) == (ErrorCode.NONE, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id) == (member_id, "test")
    assert member.client_host == "/127.0.0.1"
    assert (member.member_metadata, member.member_assignment) == (b"meta", b"all")
    assert member.group_instance_id == ("i" if version >= 4 else None)


@pytest.mark.requirement("DP-OFFSET-23")
@pytest.mark.parametrize(("name", "assignment"), [("kafka-3.9", b""), ("kafka-4.0", b"all")])
def test_only_a_stable_group_shows_metadata(name: str, assignment: bytes) -> None:
    at = broker(name)
    stable(at)
    at.cluster.groups.owner("g").force_rebalance("g")
    found = described(at, 5)
    assert (found.group_state, found.protocol_type) == ("PreparingRebalance", "consumer")
    assert found.protocol_data == ""
    (member,) = found.members
    assert (member.member_metadata, member.member_assignment) == (b"", assignment)


@pytest.mark.requirement("DP-OFFSET-23")
@pytest.mark.parametrize(
    ("name", "state"), [("kafka-1.0", "AwaitingSync"), ("kafka-1.1", "CompletingRebalance")]
)
def test_the_name_of_a_state_changed_in_1_1(name: str, state: str) -> None:
    at = broker(name)
    at.ask(join(), 1)
    assert described(at, 0).group_state == state


@pytest.mark.requirement("DP-OFFSET-23")
@pytest.mark.parametrize("version", range(7))
def test_a_group_that_does_not_exist_is_dead(version: int) -> None:
    found = described(broker(), version, "none")
    missing = version >= 6
    assert found.group_state == "Dead"
    assert found.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE)
    assert found.error_message == ("Group none not found." if missing else None)


# ---- ConsumerGroupDescribe -----------------------------------------------------------------------


def described_as_new(name: str) -> list[tuple[int, str | None]]:
    """(error, text) of a classic group and of one that does not exist."""
    at = broker(name)
    stable(at)
    version = profile(name).versions[69].highest
    groups = at.ask("ConsumerGroupDescribe", version, group_ids=["g", "none"]).groups
    assert [each.group_id for each in groups] == ["g", "none"]
    return [(each.error_code, each.error_message) for each in groups]


@pytest.mark.requirement("DP-MIGRATE-08")
def test_a_classic_group_is_no_consumer_group() -> None:
    code = ErrorCode.GROUP_ID_NOT_FOUND
    assert described_as_new("kafka-4.0") == [
        (code, "Group g is not a consumer group."),
        (code, "Group none not found."),
    ]


@pytest.mark.requirement("DP-VER-06")
def test_consumer_groups_need_their_feature() -> None:
    assert described_as_new("kafka-3.9") == [(ErrorCode.UNSUPPORTED_VERSION, None)] * 2


# ---- authorized operations -----------------------------------------------------------------------


@pytest.mark.requirement("REL-08", "DP-OFFSET-23")
@pytest.mark.parametrize(
    ("name", "bits"),
    [("kafka-3.9", {READ, DESCRIBE, DELETE}), ("kafka-4.0", {READ, DESCRIBE, DELETE, 10, 11})],
)
def test_authorized_operations_of_a_group(name: str, bits: set[int]) -> None:
    at = broker(name)
    stable(at)
    shown = described(at, 5, include_authorized_operations=True).authorized_operations
    assert {bit for bit in range(32) if shown >> bit & 1} == bits
    assert described(at, 5).authorized_operations == NOT_ASKED


# ---- ListGroups and DeleteGroups -----------------------------------------------------------------


def listed(at: DirectBroker, version: int = 5, **filters: Sequence[str]) -> list[str]:
    answer = at.ask("ListGroups", version, **{k: list(v) for k, v in filters.items()})
    assert answer.error_code == ErrorCode.NONE
    return [each.group_id for each in answer.groups]


@pytest.mark.requirement("DP-OFFSET-24")
def test_groups_are_listed_by_state_and_type() -> None:
    at = broker()
    member_id = stable(at)
    at.cluster.groups.validate_commit(GroupCommit("simple"))
    assert listed(at) == listed(at, 0) == ["g", "simple"]
    assert listed(at, states_filter=["sTABLE"]) == ["g"]
    assert listed(at, states_filter=["stable", "empty"]) == ["g", "simple"]
    assert listed(at, states_filter=["nonsense"]) == []
    assert listed(at, types_filter=["CLASSIC"]) == ["g", "simple"]
    assert listed(at, types_filter=["consumer"]) == []
    (first, second) = at.ask("ListGroups", 5).groups
    assert (first.protocol_type, first.group_state, first.group_type) == (
        "consumer", "Stable", "classic",
    )  # fmt: skip
    assert (second.protocol_type, second.group_state) == ("", "Empty")
    assert member_id


@pytest.mark.requirement("DP-OFFSET-24")
def test_a_broker_lists_the_groups_that_it_coordinates() -> None:
    at = broker(brokers=3)
    for index in range(20):
        at.cluster.groups.validate_commit(GroupCommit(f"g{index}"))
    lists = [
        {each.group_id for each in at.ask("ListGroups", 5, broker_id=i).groups} for i in (1, 2, 3)
    ]
    assert set.union(*lists) == {f"g{index}" for index in range(20)}
    assert sum(map(len, lists)) == 20
    Operations(at.cluster).load_coordinator(CoordinatorKind.GROUP, "g0")
    codes = [at.ask("ListGroups", 5, broker_id=i).error_code for i in (1, 2, 3)]
    assert sorted(codes) == [0, 0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


@pytest.mark.requirement("DP-OFFSET-20")
@pytest.mark.parametrize("version", range(4))
def test_groups_are_deleted_one_by_one(version: int) -> None:
    at = broker()
    stable(at)
    at.cluster.groups.validate_commit(GroupCommit("simple"))
    names = ["simple", "g", "none", "simple"]
    results = at.ask("DeleteGroups", version, groups_names=names).results
    assert [(each.group_id, each.error_code) for each in results] == [
        ("simple", ErrorCode.NONE),
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert listed(at) == ["g"]


# ---- permissions ---------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-23", "DP-OFFSET-24", "DP-OFFSET-20")
def test_groups_that_the_caller_may_not_use() -> None:
    at = broker(security=Security(authorizer=Authorizer(frozenset({"User:root"}))))
    at.cluster.groups.validate_commit(GroupCommit("mine"))
    at.cluster.groups.validate_commit(GroupCommit("other"))
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    leave = request_of("LeaveGroup", group_id="g", members={"member_id": "m"})
    beat = request_of("Heartbeat", group_id="g", generation_id=1, member_id="m")
    for request, version in ((join(), 9), (sync("m"), 4), (beat, 4), (leave, 5)):
        assert at.ask(request, version).error_code == code
    assert listed(at) == []
    at.cluster.acls.create([allowed("mine", AclOperation.DESCRIBE)])
    at.cluster.acls.create([allowed("mine", AclOperation.DELETE)])
    assert listed(at) == ["mine"]
    new = at.ask("ConsumerGroupDescribe", 1, group_ids=["mine", "other"]).groups
    assert [(each.group_id, each.error_code) for each in new] == [("other", code), ("mine", 69)]
    groups = at.ask("DescribeGroups", 6, groups=["mine", "other"]).groups
    assert [(each.group_id, each.error_code) for each in groups] == [("other", code), ("mine", 0)]
    results = at.ask("DeleteGroups", 2, groups_names=["other", "mine"]).results
    assert [(each.group_id, each.error_code) for each in results] == [("mine", 0), ("other", code)]
    assert at.cluster.groups.group("other") is not None


def allowed(group: str, operation: AclOperation) -> AclBinding:
    return AclBinding(ResourceType.GROUP, group, PatternType.LITERAL, "User:ann", "*", operation, 3)


def test_find_coordinator_serves_groups() -> None:
    assert broker().ask("FindCoordinator", 4, coordinator_keys=["g"]).coordinators[0].node_id == 1
