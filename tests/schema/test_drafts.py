"""The draft schemas, field for field as the requirements reconstruct them."""

from functools import cache
from typing import Any

import pytest

from kproto.schema.layout import FieldLayout, layout
from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import MessageSchema

SCHEMAS = schemas_directory()
DRAFTS = ("kip_183", "kip_240", "kip_455_old", "kip_455_new", "kip_455_named", "kip_860")


@cache
def drafts(folder: str) -> dict[str, MessageSchema]:
    return load_directory(SCHEMAS / folder)


def draft(folder: str, name: str) -> MessageSchema:
    return drafts(folder)[name]


def shape(schema: MessageSchema, version: int) -> Any:
    """Names, types and nullability in wire order: ``("Topics", "[]?", [...])``."""
    return members(schema.root, layout(schema, version).fields, version)


def members(struct: Any, fields: tuple[FieldLayout, ...], version: int) -> list[Any]:
    named = [item for item in struct.fields if version in item.versions]
    assert len(named) == len(fields)
    shown: list[Any] = []
    for item, found in zip(named, fields, strict=True):
        kind = found.type + ("?" if found.nullable else "")
        if found.members is None:
            shown.append(f"{item.name} {kind}")
        else:
            inner = members(item.type.inner_struct, found.members, version)
            shown.append((f"{item.name} {kind.replace('struct', '')}", inner))
    return shown


ALTER = ["TimeoutMs int32", ("Topics []?", ["Name string", (
    "Partitions []?", ["PartitionIndex int32", "Replicas []int32?"])])]  # fmt: skip
ALTERED = ["ThrottleTimeMs int32", ("Responses []", ["ErrorCode int16", "ErrorString string?"])]
LISTED = [
    "ThrottleTimeMs int32", "ErrorCode int16", "ErrorMessage string?", ("Topics []", [
        "Name string", ("Partitions []", [
            "PartitionId int32", "CurrentReplicas []int32", "TargetReplicas []int32"])]),
]  # fmt: skip
STATE = [
    "PartitionIndex int32", "ControllerEpoch int32", "LeaderKey int32", "LeaderEpoch int32",
    "IsrReplicas []int32", "ZkVersion int32", "Replicas []int32",
]  # fmt: skip
LIVE = ("LiveLeaders []", ["BrokerId int32", "HostName string", "Port int32"])
CONTROLLER = ["ControllerId int32", "ControllerEpoch int32"]
ERROR = ["ThrottleTimeMs int32", "ErrorCode int16", "ErrorMessage string?"]

TABLES: list[tuple[str, str, int, int, Any]] = [
    ("kip_455_old", "AlterPartitionAssignmentsRequest", 45, 0, ALTER),
    ("kip_455_new", "AlterPartitionReassignmentsRequest", 45, 0, ALTER),
    ("kip_455_old", "AlterPartitionAssignmentsResponse", 45, 0, ALTERED),
    ("kip_455_new", "AlterPartitionReassignmentsResponse", 45, 0, ALTERED),
    ("kip_455_old", "ListPartitionReassignmentsRequest", 46, 0,
     ["TimeoutMs int32", ("Topics []?", ["PartitionIds []int32"])]),
    ("kip_455_new", "ListPartitionReassignmentsRequest", 46, 0,
     ["TimeoutMs int32", ("Topics []?", ["PartitionIds []int32?"])]),
    ("kip_455_old", "ListPartitionReassignmentsResponse", 46, 0, LISTED),
    ("kip_455_new", "ListPartitionReassignmentsResponse", 46, 0, LISTED),
    ("kip_183", "ElectPreferredLeadersRequest", 43, 0,
     [("TopicPartitions []?", ["Topic string", "PartitionId []int32"]), "TimeoutMs int32"]),
    ("kip_183", "ElectPreferredLeadersResponse", 43, 0,
     ["ThrottleTimeMs int32", ("ReplicaElectionResults []", ["Topic string", ("PartitionResult []",
      ["PartitionId int32", "ErrorCode int16", "ErrorMessage string?"])])]),
    ("kip_240", "ListReassignmentsRequest", 32240, 0,
     ["TimeoutMs int32", ("TopicPartitions []?", ["Topic string", "PartitionIds []int32"])]),
    ("kip_240", "ListReassignmentsResponse", 32240, 0,
     [*ERROR, ("Reassignments []", ["Topic string", ("TopicReassignments []",
      ["PartitionId int32", "ReassignmentId int64"])])]),
    ("kip_240", "DescribeReassignmentsRequest", 32241, 0,
     [("TopicReassignments []?", ["Topic string", ("Reassignments []",
      ["PartitionId int32", "ReassignmentId int64"])]), "TimeoutMs int32"]),
    ("kip_240", "DescribeReassignmentsResponse", 32241, 0,
     [*ERROR, ("Descriptions []", [
         "ReassignmentId int64", "StartTime int64", "LeaderId int32", "LeaderThrottle int64",
         ("NewAssigned []", ["BrokerId int32", "FollowerThrottle int64"])])]),
    ("kip_860", "AlterPartitionReassignmentsRequest", 45, 1,
     ["TimeoutMs int32", "AllowReplicationFactorChange bool", ("Topics []", ["Name string", (
         "Partitions []", ["PartitionIndex int32", "Replicas []int32?"])])]),
    ("kip_860", "AlterPartitionReassignmentsResponse", 45, 1,
     ["ThrottleTimeMs int32", "AllowReplicationFactorChange bool", *ERROR[1:], ("Responses []", [
         "Name string", ("Partitions []",
          ["PartitionIndex int32", "ErrorCode int16", "ErrorMessage string?"])])]),
]  # fmt: skip


@pytest.mark.parametrize(("folder", "name", "key", "version", "expected"), TABLES)
@pytest.mark.requirement(
    "K455-11", "K455-14", "K455-18", "A-03", "A-07", "A-23", "A-27", "A-35", "K860-05"
)
def test_tables(folder: str, name: str, key: int, version: int, expected: Any) -> None:
    schema = draft(folder, name)
    assert (schema.api_key, schema.valid_versions.highest) == (key, version)
    assert shape(schema, version) == expected
    assert schema.is_flexible(0) == (folder == "kip_860"), "A-03: drafts are not flexible"


@pytest.mark.parametrize("folder", ["kip_455_old", "kip_455_new"])
@pytest.mark.requirement("K455-15", "K455-16", "A-38")
def test_leader_and_isr(folder: str) -> None:
    """K455-15, K455-16 and A-38, at each version of the draft."""
    schema = draft(folder, "LeaderAndIsrRequest")
    versions = {
        0: [*CONTROLLER, ("PartitionStatesV0 []", ["TopicName string", *STATE]), LIVE],
        1: [*CONTROLLER, ("PartitionStatesV0 []", ["TopicName string", *STATE, "IsNew bool"]),
            LIVE],
        2: [*CONTROLLER, "BrokerEpoch int64", ("TopicStates []", ["Name string", (
            "PartitionStates []", [*STATE, "IsNew bool"])]), LIVE],
        3: [*CONTROLLER, "BrokerEpoch int64", ("TopicStates []", ["Name string", (
            "PartitionStates []", [*STATE, "TargetReplicas []int32?", "IsNew bool"])]), LIVE],
    }  # fmt: skip
    assert {version: shape(schema, version) for version in schema.valid_versions} == versions
    target = schema.struct("LeaderAndIsrPartitionState").field("TargetReplicas")
    assert target.ignorable
    assert target.default is None
    answer = draft(folder, "LeaderAndIsrResponse")
    fields = ["TopicName string", "PartitionIndex int32", "ErrorCode int16"]
    assert [shape(answer, version) for version in answer.valid_versions] == [
        ["ErrorCode int16", ("Partitions []", fields)]
    ] * 4


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("name", ["LeaderAndIsrRequest", "LeaderAndIsrResponse"])
@pytest.mark.requirement("K455-16")
def test_versions_the_draft_did_not_touch_are_the_shipped_ones(name: str, version: int) -> None:
    ours, shipped = draft("kip_455_new", name), draft("kafka", name)
    assert bytes_of(ours, version) == bytes_of(shipped, version)


def bytes_of(schema: MessageSchema, version: int) -> Any:
    def plain(fields: tuple[FieldLayout, ...]) -> Any:
        return [(item.type, item.nullable, item.compact, plain(item.members or ()))
                for item in fields]  # fmt: skip

    return plain(layout(schema, version).fields)


@pytest.mark.requirement("K455-13", "K860-05")
def test_defaults() -> None:
    assert draft("kip_455_new", TABLES[1][1]).root.field("TimeoutMs").default == 60000
    assert draft("kip_455_new", "ListPartitionReassignmentsRequest").root.field(
        "TimeoutMs"
    ).default == 60000  # fmt: skip
    request = draft("kip_860", "AlterPartitionReassignmentsRequest")
    assert request.root.field("AllowReplicationFactorChange").default is True
    assert not request.root.field("AllowReplicationFactorChange").ignorable
    answer = draft("kip_860", "AlterPartitionReassignmentsResponse")
    assert answer.root.field("AllowReplicationFactorChange").default is True
    assert answer.root.field("AllowReplicationFactorChange").ignorable
    assert request.struct("ReassignablePartition").field("Replicas").default is None


def test_only_what_a_draft_changes_and_a_line_about_each() -> None:
    sizes = {folder: len(load_directory(SCHEMAS / folder)) for folder in DRAFTS}
    assert sizes == {
        "kip_183": 2, "kip_240": 4, "kip_455_old": 6, "kip_455_new": 6, "kip_455_named": 2,
        "kip_860": 2,
    }  # fmt: skip
    for folder in DRAFTS:
        for schema in load_directory(SCHEMAS / folder).values():
            assert schema.about
            assert "\n" not in schema.about


def test_prose_is_ours_and_only_about_the_messages_we_exist_for() -> None:
    ours = {3, 4, 5, 6, 18, 43, 45, 46, 60}
    for schema in load_directory(SCHEMAS / "kafka").values():
        wanted = schema.type in ("request", "response") and schema.api_key in ours
        assert bool(schema.about) == wanted, schema.name
        assert not any(item.about for struct in schema.structs for item in struct.fields)
    for path in SCHEMAS.rglob("*.json"):
        text = path.read_text("utf-8")
        assert "Licensed to" not in text
        assert "://" not in text or path.name == "releases.json"
