"""OffsetCommit, OffsetFetch and OffsetDelete on the wire, version by version."""

import asyncio
import uuid
from typing import Any

import pytest
from msgspec.structs import astuple

from kproto.error_codes import ErrorCode, message
from mockbroker import MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit, GroupStanding
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.groups.all_groups import Groups as AllGroups
from mockbroker.simulation.log.logs import InternalProducer
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.coordinators.offset_requests import (
    coordinated,
    coordinator_of,
    delete,
    end_transaction,
    fetch,
    offset_commit,
    pend,
)
from tests.mockbroker.simulation.security.enforced import ALICE, ENFORCED, allow
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

GROUP = CoordinatorKind.GROUP
FOO_0, FOO_1, BAR_0 = ("foo", 0), ("foo", 1), ("bar", 0)
NOTHING = (-1, -1, "", 0)

SINCE_4_0 = "kafka-4.4"
PROFILES = {0: "kafka-3.9", 1: "kafka-3.9"}
"""The release that serves a version, if 4.4 does not."""


def broker_for(version: int, cluster: Cluster | None = None, **options: Any) -> DirectBroker:
    profile_name = PROFILES.get(version, SINCE_4_0)
    release = (3, 9) if version in PROFILES else (4, 4)
    return DirectBroker(
        cluster or coordinated(release=release, **options), profile_name=profile_name
    )


def row(offset: int, epoch: int = -1, metadata: str | None = "", **more: Any) -> Any:
    return {
        "committed_offset": offset,
        "committed_leader_epoch": epoch,
        "committed_metadata": metadata,
        **more,
    }


# ---- committing and fetching ---------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-02", "DP-OFFSET-12")
@pytest.mark.parametrize("version", range(1, 11))
def test_what_a_version_commits_every_version_fetches(version: int) -> None:
    cluster = coordinated()
    broker = broker_for(version, cluster)
    epoch = 7 if version >= 6 else -1
    offsets = {FOO_0: row(5, 7, "é"), FOO_1: row(6, -1, None), BAR_0: row(9)}
    assert offset_commit(broker, version, offsets) == {FOO_0: 0, FOO_1: 0, BAR_0: 0}
    wanted = {"foo": [1, 0, 2], "bar": [0]}
    for other in range(1, 11):
        found = fetch(broker_for(other, cluster), other, wanted)
        shown = epoch if other >= 5 else -1
        assert found == {
            FOO_1: (6, -1, "", 0),
            FOO_0: (5, shown, "é", 0),
            ("foo", 2): NOTHING,
            BAR_0: (9, -1, "", 0),
        }
        assert list(found) == [FOO_1, FOO_0, ("foo", 2), BAR_0]


@pytest.mark.requirement("DP-OFFSET-13")
@pytest.mark.parametrize("version", range(1, 11))
def test_an_unknown_group_has_no_offsets_and_no_error(version: int) -> None:
    broker = broker_for(version)
    assert fetch(broker, version, {"foo": [0]}) == {FOO_0: NOTHING}
    if version >= 2:
        assert fetch(broker, version, None) == {}
    if version < 10:
        assert fetch(broker, version, {"none": [3]}) == {("none", 3): NOTHING}


@pytest.mark.requirement("DP-OFFSET-14")
@pytest.mark.parametrize("version", range(2, 11))
def test_all_topics_are_those_with_offsets(version: int) -> None:
    broker = broker_for(version)
    offset_commit(broker, 9, {FOO_1: 1, BAR_0: 2})
    offset_commit(broker, 9, {FOO_0: 3})
    found = fetch(broker, version, None)
    assert found == {FOO_1: (1, -1, "", 0), FOO_0: (3, -1, "", 0), BAR_0: (2, -1, "", 0)}
    assert fetch(broker, version, {}) == {}


@pytest.mark.requirement("DP-OFFSET-15")
@pytest.mark.parametrize("version", [8, 9, 10])
def test_several_groups_have_a_row_each(version: int) -> None:
    broker = broker_for(version)
    offset_commit(broker, 9, {FOO_0: 1}, "g")
    offset_commit(broker, 9, {FOO_0: 2}, "h")
    foo = broker.cluster.topics["foo"]
    topics = [{"name": "foo", "partition_indexes": [0]}]
    if version >= 10:
        unknown = {"topic_id": uuid.UUID(int=5), "partition_indexes": [0]}
        topics = [{"topic_id": foo.topic_id, "partition_indexes": [0]}, unknown]
    groups = [{"group_id": each, "topics": topics} for each in ("h", "g", "i")]
    answer = broker.ask("OffsetFetch", version, groups=groups)
    assert [group.group_id for group in answer.groups] == ["h", "g", "i"]
    found = [group.topics[0].partitions[0].committed_offset for group in answer.groups]
    assert found == [2, 1, -1]
    for group in answer.groups:
        assert group.topics[0].name == ("foo" if version < 10 else "")
        if version >= 10:
            assert group.topics[0].topic_id == foo.topic_id
            assert group.topics[1].topic_id == uuid.UUID(int=5)
            (partition,) = group.topics[1].partitions
            assert (partition.error_code, partition.committed_offset) == (100, -1)


# ---- errors of partitions ------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-01")
@pytest.mark.parametrize("version", range(1, 10))
def test_unknown_partitions_are_refused_whatever_becomes_of_the_others(version: int) -> None:
    broker = broker_for(version)
    offsets = {("none", 0): 1, ("foo", 9): 2, FOO_0: 3}
    codes = offset_commit(broker, version, offsets)
    assert codes == {("none", 0): 3, ("foo", 9): 3, FOO_0: 0}
    assert list(codes) == list(offsets)
    codes = offset_commit(broker, version, offsets, generation_id_or_member_epoch=1, member_id="m")
    assert codes == {("none", 0): 3, ("foo", 9): 3, FOO_0: 25}


@pytest.mark.requirement("DP-OFFSET-01")
def test_partitions_are_looked_up_in_the_brokers_own_metadata() -> None:
    cluster = coordinated(2)
    broker = DirectBroker(cluster)
    coordinator = coordinator_of(cluster, "g")
    Operations(cluster).hold_metadata(coordinator)
    cluster.topics.add("new:1:1")
    assert offset_commit(broker, 9, {("new", 0): 1}) == {("new", 0): 3}
    Operations(cluster).release_metadata(coordinator)
    assert offset_commit(broker, 9, {("new", 0): 1}) == {("new", 0): 0}


@pytest.mark.requirement("DP-OFFSET-01")
def test_unknown_topic_ids_are_refused() -> None:
    broker = DirectBroker(coordinated())
    topics = [
        {"topic_id": topic_id, "partitions": [row(1)]}
        for topic_id in (uuid.UUID(int=5), broker.cluster.topics["foo"].topic_id)
    ]
    answer = broker.ask("OffsetCommit", 10, group_id="g", topics=topics)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [100, 0]
    assert [topic.topic_id for topic in answer.topics] == [each["topic_id"] for each in topics]


@pytest.mark.requirement("DP-OFFSET-09", "DP-COORD-13")
@pytest.mark.parametrize("version", range(1, 11))
def test_metadata_may_be_4096_utf_16_units_long(version: int) -> None:
    broker = broker_for(version)
    offsets = {
        FOO_0: row(1, metadata="é" * 4097),
        FOO_1: row(2, metadata="é" * 4096),
        ("foo", 2): row(3, metadata="😀" * 2048),
        BAR_0: row(4, metadata="😀" * 2048 + "x"),
    }
    codes = offset_commit(broker, version, offsets)
    assert codes == {FOO_0: 12, FOO_1: 0, ("foo", 2): 0, BAR_0: 12}
    assert {tp: found.offset for tp, found in broker.cluster.offsets["g"].items()} == {
        FOO_1: 2,
        ("foo", 2): 3,
    }


@pytest.mark.requirement("DP-OFFSET-02", "DP-OFFSET-09")
@pytest.mark.parametrize(("release", "made"), [((3, 9), True), ((4, 0), False), ((4, 4), False)])
def test_a_commit_that_stores_nothing_makes_no_group(release: tuple[int, int], made: bool) -> None:
    cluster = coordinated(release=release)
    broker = DirectBroker(cluster, profile_name=f"kafka-{release[0]}.{release[1]}")
    assert offset_commit(broker, 7, {FOO_0: row(1, metadata="x" * 4097)}) == {FOO_0: 12}
    assert (cluster.groups.group("g") is not None) is made
    mixed = {FOO_0: row(1, metadata="x" * 4097), FOO_1: row(2)}
    assert offset_commit(broker, 7, mixed) == {FOO_0: 12, FOO_1: 0}
    assert cluster.groups.group("g") is not None


@pytest.mark.requirement("DP-COORD-13")
def test_the_limit_of_metadata_is_a_config() -> None:
    broker = DirectBroker(coordinated(broker_configs={"offset.metadata.max.bytes": "2"}))
    assert offset_commit(broker, 9, {FOO_0: row(1, metadata="abc")}) == {FOO_0: 12}
    assert offset_commit(broker, 9, {FOO_0: row(1, metadata="ab")}) == {FOO_0: 0}


# ---- errors of groups ----------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-03")
@pytest.mark.parametrize(
    ("profile_name", "release", "expected"),
    [
        (SINCE_4_0, (4, 4), {2: 22, 5: 22, 8: 22, 9: 69, 10: 69}),
        ("kafka-3.9", (3, 9), {1: 22, 8: 22, 9: 22}),
        ("kafka-2.4", (2, 4), {1: 22, 8: 22}),
    ],
)
def test_a_generation_of_an_unknown_group_is_refused(profile_name, release, expected):
    broker = DirectBroker(coordinated(release=release), profile_name=profile_name)
    for version, code in expected.items():
        codes = offset_commit(
            broker, version, {FOO_0: 1, BAR_0: 1}, member_id="m", generation_id_or_member_epoch=0
        )
        assert codes == {FOO_0: code, BAR_0: code}
    assert not broker.cluster.offsets["g"]


class Groups(AllGroups):
    """Groups whose answers a test chooses."""

    def __init__(self, known: AllGroups) -> None:
        self.__dict__.update(known.__dict__)

    commit_error = fetch_error = delete_error = ErrorCode.NONE
    subscribed: tuple[str, ...] = ()
    asked: tuple[object, ...] = ()

    def validate_commit(self, commit: GroupCommit) -> ErrorCode:
        self.asked = astuple(commit)[:5]
        return self.commit_error

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        self.asked = (group_id, member_id, member_epoch)
        return self.fetch_error

    def validate_offset_delete(self, group_id: str) -> ErrorCode:
        return self.delete_error

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return topic in self.subscribed

    def standing(self, group_id: str) -> GroupStanding | None:
        return GroupStanding("consumer", "Stable")


def with_groups(cluster: Cluster) -> Groups:
    groups = cluster.offsets.groups = Groups(cluster.groups)
    return groups


@pytest.mark.requirement("DP-OFFSET-04", "DP-OFFSET-05", "DP-OFFSET-06", "DP-OFFSET-07")
@pytest.mark.parametrize("code", [15, 22, 25, 27, 82])
def test_what_the_group_says_is_the_error_of_each_partition(code: int) -> None:
    broker = DirectBroker(coordinated())
    groups = with_groups(broker.cluster)
    groups.commit_error = ErrorCode(code)
    member = {"member_id": "m", "group_instance_id": "i", "generation_id_or_member_epoch": 3}
    assert offset_commit(broker, 9, {FOO_0: 1, FOO_1: 1}, **member) == {FOO_0: code, FOO_1: code}
    assert groups.asked == ("g", "m", "i", 3, 9)
    groups.commit_error = ErrorCode.NONE
    assert offset_commit(broker, 9, {FOO_0: 1}, **member) == {FOO_0: 0}


@pytest.mark.requirement("DP-COORD-05", "DP-OFFSET-18")
@pytest.mark.parametrize("version", range(1, 11))
def test_other_brokers_and_loading_coordinators_refuse(version: int) -> None:
    cluster = coordinated(2)
    broker = broker_for(version, cluster)
    offset_commit(broker, version, {FOO_0: 5})
    coordinator = coordinator_of(cluster, "g")

    def answers(broker_id: int) -> tuple[int, ...]:
        (committed,) = offset_commit(broker, version, {FOO_0: 6}, broker_id=broker_id).values()
        found = fetch(broker, version, {"foo": [0]}, broker_id=broker_id)
        if isinstance(found, int):
            assert version >= 2
            return committed, found
        ((offset, _, _, code),) = found.values()
        assert (version < 2 and offset == -1) or not code
        return committed, code

    assert answers(3 - coordinator) == (16, 16)
    Operations(cluster).load_coordinator(GROUP, "g")
    assert answers(coordinator) == (14, 14)
    Operations(cluster).finish_loading(GROUP, "g")
    assert answers(coordinator) == (0, 0)


@pytest.mark.requirement("DP-OFFSET-18")
@pytest.mark.parametrize("version", [8, 9, 10])
def test_each_group_has_its_own_error(version: int) -> None:
    cluster = coordinated(2)
    ids = {coordinator_of(cluster, name): name for name in ("g", "h")}
    groups = [{"group_id": each, "topics": None} for each in (ids[1], ids[2])]
    answer = DirectBroker(cluster).ask("OffsetFetch", version, groups=groups, broker_id=1)
    assert [group.error_code for group in answer.groups] == [0, 16]


@pytest.mark.requirement("DP-OFFSET-17")
@pytest.mark.parametrize("code", [0, 25, 113])
def test_members_of_newer_groups_may_be_refused(code: int) -> None:
    broker = DirectBroker(coordinated())
    groups = with_groups(broker.cluster)
    groups.fetch_error = ErrorCode(code)
    row_ = {"group_id": "g", "member_id": "m", "member_epoch": 4, "topics": None}
    assert broker.ask("OffsetFetch", 9, groups=[row_]).groups[0].error_code == code
    assert groups.asked == ("g", "m", 4)


# ---- deleting ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-19")
def test_offsets_are_deleted_where_nobody_subscribes() -> None:
    broker = DirectBroker(coordinated())
    assert delete(broker, {"foo": [0]}) == 69
    offset_commit(broker, 9, {FOO_0: 1, FOO_1: 2, BAR_0: 3})
    groups = with_groups(broker.cluster)
    groups.subscribed = ("bar",)
    wanted = {"bar": [0], "none": [0], "foo": [2, 0, 9]}
    codes = delete(broker, wanted)
    assert codes == {BAR_0: 86, ("none", 0): 3, ("foo", 2): 0, FOO_0: 0, ("foo", 9): 3}
    assert set(broker.cluster.offsets["g"]) == {FOO_1, BAR_0}
    for code in (68, 69):
        groups.delete_error = ErrorCode(code)
        assert delete(broker, {"foo": [1]}) == code
    assert set(broker.cluster.offsets["g"]) == {FOO_1, BAR_0}


@pytest.mark.requirement("DP-OFFSET-26")
@pytest.mark.parametrize(("release", "left"), [((3, 9), []), ((4, 0), ["g", "h"])])
def test_up_to_3_9_an_empty_group_goes_with_its_last_offset(release, left):
    cluster = coordinated(release=release)
    broker = DirectBroker(cluster)
    offset_commit(broker, 8, {FOO_0: 1, FOO_1: 1})
    assert delete(broker, {"foo": [0]}) == {FOO_0: 0}
    assert cluster.groups.group("g") is not None, "it has an offset left"
    offset_commit(broker, 8, {BAR_0: 1}, "h")
    assert delete(broker, {"foo": [1]}) == {FOO_1: 0}
    cluster.topics.delete([("bar", uuid.UUID(int=0))])
    assert sorted(cluster.groups.groups) == left


@pytest.mark.requirement("DP-OFFSET-26")
def test_a_transaction_keeps_a_group_without_offsets() -> None:
    cluster = coordinated(release=(3, 9))
    broker = DirectBroker(cluster)
    cluster.offsets.commit(
        "g", [(FOO_0, OffsetToCommit(1, -1, ""))], producer=InternalProducer(7, 0)
    )
    cluster.groups.classic.make_simple("g")
    assert delete(broker, {"foo": [0]}) == delete(broker, {"foo": [0]}) == {FOO_0: 0}
    tp = cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
    cluster.offsets.end_transaction(7, tp, committed=True)
    assert not cluster.offsets["g"]
    assert delete(broker, {"foo": [0]}) == {FOO_0: 0}
    assert delete(broker, {"foo": [0]}) == 69


@pytest.mark.requirement("DP-OFFSET-31")
@pytest.mark.parametrize(("release", "left"), [((3, 9), []), ((4, 0), ["g"]), ((4, 4), ["g"])])
def test_since_4_0_another_coordinator_reads_deleted_commits(release, left):
    cluster = coordinated(2, release=release)
    owner = coordinator_of(cluster, "g")
    cluster.groups.classic.make_simple("g")
    pend(cluster.offsets, 7, "g", [(FOO_0, OffsetToCommit(1))])
    cluster.offsets.delete_at_request("g", [FOO_0])
    end_transaction(cluster, 7, committed=True)
    assert list(cluster.groups.groups) == ["g"]
    Operations(cluster).move_coordinator("group", "g", 3 - owner)
    assert list(cluster.groups.groups) == left
    for each in left:
        assert cluster.groups.delete(each) == 0
        cluster.groups.classic.make_simple(each)
        Operations(cluster).move_coordinator("group", each, owner)
        assert not cluster.groups.groups, "what was read there is of a group that is deleted"


@pytest.mark.requirement("DP-OFFSET-01")
def test_of_topics_without_partitions_only_unknown_ones_are_answered() -> None:
    cluster = coordinated()
    answer = DirectBroker(cluster).ask(
        "OffsetCommit",
        9,
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[{"name": name, "partitions": []} for name in ("foo", "none")],
    )
    assert [topic.name for topic in answer.topics] == ["none"]


@pytest.mark.requirement("DP-OFFSET-27")
@pytest.mark.parametrize(("release", "names"), [((3, 9), []), ((4, 0), ["foo"])])
@pytest.mark.parametrize("version", [5, 8])
def test_since_4_0_topics_without_partitions_are_fetched(release, names, version):
    broker = DirectBroker(coordinated(release=release))
    if version < 8:
        asked = request_of(
            "OffsetFetch", group_id="g", topics={"name": "foo", "partition_indexes": []}
        )
        topics = broker.ask(asked, version).topics
    else:
        row = {"name": "foo", "partition_indexes": []}
        group = {"group_id": "g", "topics": [row]}
        topics = broker.ask("OffsetFetch", version, groups=[group]).groups[0].topics
    assert [topic.name for topic in topics] == names


@pytest.mark.requirement("DP-OFFSET-19")
def test_topics_without_partitions_are_left_out_of_a_deletion() -> None:
    broker = DirectBroker(coordinated())
    offset_commit(broker, 9, {FOO_0: 1})
    assert delete(broker, {"foo": [], "bar": [0]}) == {BAR_0: 0}
    asked = request_of("OffsetDelete", group_id="g", name="foo", partitions=[])
    assert broker.ask(asked, 0).topics == []


@pytest.mark.requirement("DP-OFFSET-19", "DP-COORD-05")
def test_deleting_needs_the_coordinator_and_a_group_id() -> None:
    cluster = coordinated(2)
    broker = DirectBroker(cluster)
    assert delete(broker, {"foo": [0]}, "") == 24
    assert delete(broker, {"foo": [0]}, broker_id=3 - coordinator_of(cluster, "g")) == 16
    Operations(cluster).load_coordinator(GROUP, "g")
    assert delete(broker, {"foo": [0]}) == 14


# ---- ZooKeeper -----------------------------------------------------------------------------------


def in_zookeeper() -> DirectBroker:
    cluster = coordinated(3, reassignment="zookeeper-2.4", release=(2, 4))
    return DirectBroker(cluster, profile_name="kafka-2.4")


@pytest.mark.requirement("DP-OFFSET-11")
def test_version_0_keeps_offsets_in_zookeeper() -> None:
    broker = in_zookeeper()
    path = "/consumers/g/offsets/foo/0"
    assert fetch(broker, 0, {"foo": [0]}) == {FOO_0: (-1, -1, "", 3)}
    anywhere = 1 + coordinator_of(broker.cluster, "g") % 3
    codes = offset_commit(
        broker,
        0,
        {FOO_0: row(5, metadata="m"), ("none", 0): 1, FOO_1: row(1, metadata="x" * 4097)},
        broker_id=anywhere,
    )
    assert codes == {FOO_0: 0, ("none", 0): 3, FOO_1: 12}
    znode = broker.cluster.znodes.read(path)
    assert znode is not None
    assert znode[0] == "5"
    assert fetch(broker, 0, {"foo": [0, 9]}, broker_id=anywhere) == {
        FOO_0: (5, -1, "", 0),
        ("foo", 9): (-1, -1, "", 3),
    }
    Operations(broker.cluster).write_znode(path, "8")
    assert fetch(broker, 0, {"foo": [0]}) == {FOO_0: (8, -1, "", 0)}
    Operations(broker.cluster).write_znode(path, "eight")
    assert fetch(broker, 0, {"foo": [0]}) == {FOO_0: (-1, -1, "", -1)}
    assert fetch(broker, 1, {"foo": [0]}) == {FOO_0: NOTHING}
    assert not broker.cluster.offsets["g"]


@pytest.mark.requirement("DP-OFFSET-11")
def test_version_0_is_refused_without_zookeeper() -> None:
    broker = broker_for(0)
    assert offset_commit(broker, 0, {FOO_0: 5, ("foo", 9): 1}) == {FOO_0: 35, ("foo", 9): 35}
    assert offset_commit(broker, 0, {("foo", 9): 1}) == {("foo", 9): 3}
    assert fetch(broker, 0, {"foo": [0]}) == {FOO_0: (-1, -1, "", 35)}


# ---- stable offsets ------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-16")
@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_pending_offsets_of_a_transaction_are_unstable(version: int) -> None:
    broker = broker_for(version)
    store = broker.cluster.offsets
    offset_commit(broker, 9, {FOO_0: 5, FOO_1: 6})
    pend(store, 99, "g", [(FOO_0, OffsetToCommit(7))])
    plain = {FOO_0: (5, -1, "", 0), FOO_1: (6, -1, "", 0)}
    wanted = {"foo": [0, 1]}
    assert fetch(broker, version, wanted) == plain
    unstable = {FOO_0: (-1, -1, "", 88), FOO_1: (6, -1, "", 0)}
    assert fetch(broker, version, wanted, require_stable=True) == unstable
    assert fetch(broker, version, None, require_stable=True) == unstable
    end_transaction(broker.cluster, 99, committed=True)
    assert fetch(broker, version, {"foo": [0]}, require_stable=True) == {FOO_0: (7, -1, "", 0)}


@pytest.mark.requirement("DP-CTL-29", "DP-OFFSET-16")
async def test_held_commits_are_answered_when_they_are_released() -> None:
    async with MockCluster(topics=["foo:1:1"], brokers=1) as mock:
        cluster = mock.cluster
        cluster.coordinators.find(GROUP, "g", 1)
        topic = {"name": "foo", "partitions": [row(5)]}
        request = request_of("OffsetCommit", group_id="g", topics=[topic])
        Operations(cluster).hold_commits("g")
        async with connect(mock) as committing, connect(mock) as fetching:
            committing.send(committing.frame(request, 9))
            wanted = {"group_id": "g", "name": "foo", "partition_indexes": [0]}

            async def fetched(stable: bool) -> tuple[int, int]:
                answer = await fetching.ask(
                    "OffsetFetch", 9, groups=[wanted], require_stable=stable
                )
                (partition,) = answer.groups[0].topics[0].partitions
                return partition.committed_offset, partition.error_code

            async with asyncio.timeout(10):
                while await fetched(True) != (-1, 88):
                    await asyncio.sleep(0)
            assert await fetched(False) == (-1, 0)
            Operations(cluster).release_commits("g")
            _, answer = mock.dialect.decode_response(
                await committing.receive(), api_key=8, api_version=9
            )
            assert answer.topics[0].partitions[0].error_code == 0
            assert await fetched(True) == (5, 0)


# ---- access rules --------------------------------------------------------------------------------


def as_alice(version: int) -> DirectBroker:
    release = (3, 9) if version in PROFILES else (4, 4)
    return DirectBroker(
        coordinated(release=release),
        profile_name=PROFILES.get(version, SINCE_4_0),
        security=ENFORCED,
        principal=ALICE,
    )


@pytest.mark.requirement("DP-OFFSET-01")
@pytest.mark.parametrize("version", range(11))
def test_commits_need_read_on_the_group_and_each_topic(version: int) -> None:
    broker = as_alice(version)
    offsets = {FOO_0: 1, BAR_0: 2}
    assert set(offset_commit(broker, version, offsets).values()) == {30}
    allow(broker.cluster, AclOperation.DESCRIBE, "g", ResourceType.GROUP)
    assert set(offset_commit(broker, version, offsets).values()) == {30}
    allow(broker.cluster, AclOperation.READ, "g", ResourceType.GROUP)
    assert set(offset_commit(broker, version, offsets).values()) == {29}
    allow(broker.cluster, AclOperation.READ, "foo", ResourceType.TOPIC)
    expected = {FOO_0: 0, BAR_0: 29} if version else {FOO_0: 35, BAR_0: 35}  # no ZooKeeper
    assert offset_commit(broker, version, offsets) == expected


@pytest.mark.requirement("DP-OFFSET-14", "DP-OFFSET-18")
@pytest.mark.parametrize("version", range(1, 11))
def test_fetches_need_describe_on_the_group_and_each_topic(version: int) -> None:
    broker = as_alice(version)
    Operations(broker.cluster).set_offset("g", FOO_0, 1)
    Operations(broker.cluster).set_offset("g", BAR_0, 2)
    wanted = {"bar": [0], "foo": [0]}
    denied = {BAR_0: (-1, -1, "", 30), FOO_0: (-1, -1, "", 30)}
    assert fetch(broker, version, wanted) == (30 if version >= 2 else denied)
    allow(broker.cluster, AclOperation.DESCRIBE, "g", ResourceType.GROUP)
    allow(broker.cluster, AclOperation.DESCRIBE, "foo", ResourceType.TOPIC)
    found = (1, -1, "", 0)
    assert fetch(broker, version, wanted) == {BAR_0: (-1, -1, "", 29), FOO_0: found}
    if version >= 2:
        assert fetch(broker, version, None) == {FOO_0: found}


@pytest.mark.requirement("DP-OFFSET-11", "DP-OFFSET-18")
def test_version_0_of_a_fetch_has_the_error_in_each_partition() -> None:
    broker = as_alice(0)
    assert fetch(broker, 0, {"foo": [0, 1]}) == {FOO_0: (-1, -1, "", 30), FOO_1: (-1, -1, "", 30)}


@pytest.mark.requirement("DP-OFFSET-19")
def test_deleting_needs_delete_on_the_group_and_read_on_each_topic() -> None:
    broker = as_alice(0)
    Operations(broker.cluster).set_offset("g", FOO_0, 1)
    Operations(broker.cluster).set_offset("g", BAR_0, 2)
    assert delete(broker, {"foo": [0]}) == 30
    allow(broker.cluster, AclOperation.DELETE, "g", ResourceType.GROUP)
    allow(broker.cluster, AclOperation.READ, "foo", ResourceType.TOPIC)
    assert delete(broker, {"bar": [0], "foo": [0]}) == {BAR_0: 29, FOO_0: 0}
    assert set(broker.cluster.offsets["g"]) == {BAR_0}


@pytest.mark.requirement("DP-COORD-04")
@pytest.mark.parametrize("version", range(1, 7))
def test_finding_a_coordinator_needs_describe_on_the_key(version: int) -> None:
    broker = as_alice(2)
    needs = ((0, 30, ResourceType.GROUP), (1, 53, ResourceType.TRANSACTIONAL_ID))
    for key_type, code, kind in needs:

        def search(key_type: int = key_type) -> tuple[int, str | None]:
            keys: dict[str, Any] = {"key": "k"} if version < 4 else {"coordinator_keys": ["k"]}
            answer = broker.ask("FindCoordinator", version, key_type=key_type, **keys)
            (row,) = answer.coordinators if version >= 4 else [answer]
            return row.error_code, row.error_message

        assert search() == (code, "" if version >= 4 else message(code))
        allow(broker.cluster, AclOperation.DESCRIBE, "k", kind)
        assert search()[0] in (0, 15)
