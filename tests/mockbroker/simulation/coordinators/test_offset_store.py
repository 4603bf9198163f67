"""How long committed offsets last, and what a tester can do with them."""

import asyncio
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit, GroupStanding
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import Stored
from mockbroker.simulation.groups.all_groups import Groups as AllGroups
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.timers import wait_for_call
from tests.mockbroker.simulation.coordinators.offset_requests import (
    coordinated,
    coordinator_of,
    end_transaction,
    pend,
)

GROUP = CoordinatorKind.GROUP
FOO_0, FOO_1, BAR_0 = ("foo", 0), ("foo", 1), ("bar", 0)
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
CHECK = 10 * MINUTE


class Groups(AllGroups):
    """Groups whose standing a test chooses."""

    def __init__(self, known: AllGroups) -> None:
        self.__dict__.update(known.__dict__)

    present = GroupStanding()
    subscribed: tuple[str, ...] = ()

    def standing(self, group_id: str) -> GroupStanding | None:
        return self.present

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return topic in self.subscribed


def commit(cluster: Cluster, *tps: tuple[str, int], group_id: str = "g", **fields: Any) -> None:
    retention_ms = fields.pop("retention_ms", -1)
    offsets = [(tp, OffsetToCommit(1, **fields)) for tp in tps]
    assert cluster.offsets.groups.validate_commit(GroupCommit(group_id)) == 0
    commitment = cluster.offsets.commit(group_id, offsets, retention_ms=retention_ms)
    assert commitment.results == [0] * len(tps)


def lifetime(cluster: Cluster, tp: tuple[str, int] = FOO_0, most: int = 20 * DAY) -> int | None:
    """The time from now on after which the offset is gone, in whole checks; None: it stays."""
    begin = cluster.timers.now_ms
    while cluster.timers.now_ms - begin < most:
        if tp not in cluster.offsets["g"]:
            return cluster.timers.now_ms - begin
        cluster.turns.advance(CHECK)
    return None


# ---- retention -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-COORD-14", "DP-OFFSET-21")
@pytest.mark.parametrize(
    ("release", "expected"),
    # Releases before KIP-211 keep an offset until its end has passed, later ones until it comes.
    [((1, 1), DAY + CHECK), ((2, 0), 7 * DAY + CHECK), ((2, 1), 7 * DAY), ((4, 4), 7 * DAY)],
)
def test_offsets_of_a_simple_group_last_from_the_commit_on(release, expected):
    cluster = coordinated(release=release)
    commit(cluster, FOO_0, FOO_1)
    cluster.turns.advance(DAY // 2)
    commit(cluster, FOO_1)
    assert lifetime(cluster) == expected - DAY // 2
    assert set(cluster.offsets["g"]) == {FOO_1}
    assert lifetime(cluster, FOO_1) == DAY // 2
    assert cluster.groups.group("g") is None


@pytest.mark.requirement("DP-COORD-14")
def test_retention_and_the_interval_of_its_checks_are_configs() -> None:
    configs = {"offsets.retention.minutes": "3", "offsets.retention.check.interval.ms": "7000"}
    cluster = coordinated(broker_configs=configs)
    due = [cluster.timers.next_due_ms]
    commit(cluster, FOO_0)
    due.append(cluster.timers.next_due_ms)
    assert due == [None, 7000]
    cluster.turns.advance(3 * MINUTE)
    assert FOO_0 in cluster.offsets["g"]  # the next check is at 182 s
    cluster.turns.advance(1999)
    assert FOO_0 in cluster.offsets["g"]
    cluster.turns.advance(1)
    assert not cluster.offsets["g"]
    assert cluster.timers.next_due_ms is None


CONSUMERS = GroupStanding("consumer", "Stable")
MEMBERS = GroupStanding("connect", "Stable")
REBALANCING = GroupStanding("consumer", "PreparingRebalance")
EMPTY_SINCE_4_DAYS = GroupStanding("consumer", "Empty", 4 * DAY)
EMPTY_CONNECT = GroupStanding("connect", "Empty", 4 * DAY)


@pytest.mark.requirement("DP-OFFSET-21")
@pytest.mark.parametrize(
    ("release", "standing", "subscribed", "expected"),
    [
        ((2, 0), CONSUMERS, ("foo",), 7 * DAY + CHECK),
        ((2, 0), EMPTY_SINCE_4_DAYS, (), 7 * DAY + CHECK),
        ((2, 1), GroupStanding(), (), 7 * DAY),
        ((2, 1), EMPTY_SINCE_4_DAYS, (), 11 * DAY),
        ((2, 1), EMPTY_CONNECT, (), 11 * DAY),
        ((2, 1), GroupStanding("consumer", "Empty"), (), 7 * DAY),
        ((2, 1), CONSUMERS, ("foo",), None),
        ((2, 1), CONSUMERS, (), None),
        ((2, 4), CONSUMERS, ("foo",), None),
        ((2, 4), CONSUMERS, ("bar",), 7 * DAY),
        ((2, 4), REBALANCING, ("bar",), 7 * DAY),
        ((2, 4), MEMBERS, (), None),
        ((2, 8, 1), REBALANCING, ("bar",), 7 * DAY),
        ((2, 8, 2), REBALANCING, ("bar",), None),
        ((2, 8), CONSUMERS, ("bar",), 7 * DAY),
        ((4, 4), CONSUMERS, ("bar",), 7 * DAY),
        ((4, 4), CONSUMERS, ("foo",), None),
        ((4, 4), MEMBERS, (), None),
        ((4, 4), EMPTY_SINCE_4_DAYS, (), 11 * DAY),
        ((4, 4), GroupStanding(), (), 7 * DAY),
    ],
)
def test_what_a_group_is_decides_how_long_its_offsets_last(release, standing, subscribed, expected):
    cluster = coordinated(release=release)
    groups = cluster.offsets.groups = Groups(cluster.groups)
    groups.present, groups.subscribed = standing, subscribed
    commit(cluster, FOO_0)
    assert lifetime(cluster) == expected


@pytest.mark.requirement("DP-OFFSET-10")
@pytest.mark.parametrize(
    ("release", "fields", "expected"),
    [
        ((2, 0), {"retention_ms": 2 * HOUR}, 2 * HOUR + CHECK),
        ((2, 0), {"timestamp_ms": HOUR}, 7 * DAY + HOUR + CHECK),
        ((2, 0), {"timestamp_ms": HOUR, "retention_ms": HOUR}, 2 * HOUR + CHECK),
        ((2, 1), {"retention_ms": 2 * HOUR}, 2 * HOUR),
        ((2, 1), {"timestamp_ms": HOUR}, 7 * DAY + HOUR),
        ((4, 4), {"retention_ms": 2 * HOUR}, 2 * HOUR),
        ((4, 4), {"retention_ms": 8 * DAY}, 8 * DAY),
        ((4, 4), {}, 7 * DAY),
    ],
)
def test_a_commit_may_set_its_own_end(release, fields, expected):
    cluster = coordinated(release=release)
    commit(cluster, FOO_0, **fields)
    assert lifetime(cluster) == expected


@pytest.mark.requirement("DP-OFFSET-10")
@pytest.mark.parametrize("release", [(2, 0), (2, 1), (4, 4)])
def test_an_end_behind_the_last_millisecond_has_passed(release: tuple[int, int]) -> None:
    cluster = coordinated(release=release)
    cluster.turns.advance(1)
    commit(cluster, FOO_0, retention_ms=2**63 - 2)
    commit(cluster, FOO_1, retention_ms=2**63 - 1)
    assert lifetime(cluster, FOO_1) == CHECK
    assert FOO_0 in cluster.offsets["g"]


@pytest.mark.requirement("DP-OFFSET-10", "DP-OFFSET-21")
def test_its_own_end_does_not_count_while_the_group_uses_the_offset() -> None:
    cluster = coordinated()
    groups = cluster.offsets.groups = Groups(cluster.groups)
    groups.present, groups.subscribed = CONSUMERS, ("foo",)
    commit(cluster, FOO_0, retention_ms=HOUR)
    assert lifetime(cluster) is None


@pytest.mark.requirement("DP-OFFSET-21")
def test_a_partition_without_a_coordinator_expires_nothing() -> None:
    cluster = coordinated()
    commit(cluster, FOO_0)
    Operations(cluster).load_coordinator(GROUP, "g")
    assert lifetime(cluster) is None
    Operations(cluster).finish_loading(GROUP, "g")
    assert lifetime(cluster) == CHECK


# ---- deletion ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-22")
def test_offsets_of_a_deleted_topic_go_at_once() -> None:
    cluster = coordinated()
    commit(cluster, FOO_0, BAR_0)
    commit(cluster, FOO_1, group_id="h")
    pend(cluster.offsets, 9, "p", [(FOO_0, OffsetToCommit(5)), (BAR_0, OffsetToCommit(6))])
    topic_id = cluster.topics["foo"].topic_id
    cluster.topics.delete([(None, topic_id)])
    assert set(cluster.offsets["g"]) == {BAR_0}
    assert not cluster.offsets["h"]
    end_transaction(cluster, 9, committed=True)
    assert set(cluster.offsets["p"]) == {BAR_0}
    cluster.topics.add("foo:3:1")
    assert set(cluster.offsets["g"]) == {BAR_0}


@pytest.mark.requirement("DP-OFFSET-22")
def test_the_offsets_are_in_their_topic_and_go_with_it() -> None:
    cluster = coordinated()
    commit(cluster, FOO_0)
    cluster.topics.delete([(None, cluster.topics["__consumer_offsets"].topic_id)])
    assert not cluster.offsets["g"]


@pytest.mark.requirement("DP-OFFSET-22")
def test_pending_offsets_keep_their_group_and_what_they_replace() -> None:
    cluster = coordinated()
    commit(cluster, FOO_0, FOO_1)
    pend(cluster.offsets, 9, "g", [(FOO_0, OffsetToCommit(5))])
    cluster.turns.advance(8 * DAY)
    assert set(cluster.offsets["g"]) == {FOO_0}
    end_transaction(cluster, 9, committed=False)
    cluster.turns.advance(CHECK)
    assert not cluster.offsets["g"]
    assert cluster.groups.group("g") is None
    commit(cluster, FOO_0)
    cluster.offsets.delete("g", [FOO_0])
    pend(cluster.offsets, 9, "g", [(FOO_0, OffsetToCommit(5))])
    cluster.turns.advance(DAY)
    assert cluster.groups.group("g") is not None
    end_transaction(cluster, 9, committed=False)
    cluster.turns.advance(CHECK)
    assert cluster.groups.group("g") is None


@pytest.mark.requirement("DP-OFFSET-16", "DP-OFFSET-22")
def test_a_transaction_does_not_overwrite_a_later_commit() -> None:
    cluster = coordinated()
    store = cluster.offsets
    pend(store, 9, "g", [(FOO_0, OffsetToCommit(5)), (FOO_1, OffsetToCommit(6))])
    assert store.has_pending("g")
    assert store.has_pending("g", FOO_0)
    assert not store.has_pending("g", BAR_0)
    assert set(store.pending) == {9}
    commit(cluster, FOO_0)
    assert not store["g"].keys() - {FOO_0}
    end_transaction(cluster, 9, committed=True)
    assert {tp: each.offset for tp, each in store["g"].items()} == {FOO_0: 1, FOO_1: 6}
    assert not store.has_pending("g")
    assert not store.pending


def test_offsets_go_with_their_group() -> None:
    cluster = coordinated()
    commit(cluster, FOO_0)
    pend(cluster.offsets, 9, "g", [(FOO_1, OffsetToCommit(5))])
    assert cluster.groups.delete("g") == 0
    assert not cluster.offsets["g"]
    assert not cluster.offsets.has_pending("g")


# ---- coordinators --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-COORD-07")
def test_a_new_coordinator_has_the_offsets() -> None:
    cluster = coordinated(3)
    commit(cluster, FOO_0)
    Operations(cluster).stop_broker(coordinator_of(cluster, "g"))
    assert cluster.offsets.fetch("g", [FOO_0])[0].offset == 1


@pytest.mark.requirement("DP-COORD-08")
@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ((3, 9), {3: 15, 19: 15, 20: 15, 7: 7, 6: 16, 56: 16, 10: 28, 18: 28, 4: 28, 87: 87}),
        ((4, 4), {3: 15, 19: 15, 20: 15, 7: 15, 6: 16, 56: 16, 10: -1, 18: -1, 4: -1, 87: 87}),
    ],
)
def test_errors_of_the_append_are_translated(release, expected):
    cluster = coordinated(release=release)
    commit(cluster, BAR_0)
    offsets = [
        (FOO_0, OffsetToCommit(1)),
        (FOO_1, OffsetToCommit(1, metadata="x" * 4097)),
        (BAR_0, OffsetToCommit(2)),
    ]
    for code, shown in expected.items():
        cluster.offsets.store = lambda group_id, updates, producer, code=code: Stored(
            ErrorCode(code)
        )  # type: ignore[misc]
        assert cluster.offsets.commit("g", offsets).results == [shown, 12, shown]
    assert {tp: each.offset for tp, each in cluster.offsets["g"].items()} == {BAR_0: 1}


# ---- steps of a tester ---------------------------------------------------------------------------


@pytest.mark.requirement("DP-CTL-28")
def test_offsets_can_be_set_and_dropped() -> None:
    cluster = coordinated()
    Operations(cluster).set_offset("g", FOO_0, 7)
    (found,) = cluster.offsets.fetch("g", None)
    assert (found.tp, found.offset, found.leader_epoch, found.metadata) == (FOO_0, 7, -1, "")
    assert cluster.groups.group("g") is not None
    Operations(cluster).set_offset("g", FOO_0, 3)
    assert cluster.offsets["g"][FOO_0].offset == 3
    Operations(cluster).drop_offset("g", FOO_0)
    assert not cluster.offsets["g"]
    with pytest.raises(ClusterError, match="group 'g' has no offset for foo-0"):
        Operations(cluster).drop_offset("g", FOO_0)
    with pytest.raises(ClusterError, match="there is no partition foo-9"):
        Operations(cluster).set_offset("g", ("foo", 9), 1)
    with pytest.raises(ClusterError, match="0 or more"):
        Operations(cluster).set_offset("g", FOO_0, -1)
    cluster.offsets.store = lambda group_id, updates, producer: Stored(
        ErrorCode.NOT_ENOUGH_REPLICAS
    )
    with pytest.raises(ClusterError, match="cannot be written: error COORDINATOR_NOT_AVAILABLE"):
        Operations(cluster).set_offset("g", FOO_0, 1)


@pytest.mark.requirement("DP-CTL-29")
async def test_held_commits_complete_in_order() -> None:
    cluster = coordinated()
    Operations(cluster).hold_commits("g")
    with pytest.raises(ClusterError, match="already held"):
        Operations(cluster).hold_commits("g")
    first = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(1))])
    second = cluster.offsets.commit("g", [(FOO_0, OffsetToCommit(2))])
    other = cluster.offsets.commit("h", [(FOO_0, OffsetToCommit(3))])
    assert (first.results, second.results, other.results) == (None, None, [0])
    assert not cluster.offsets["g"]
    assert cluster.offsets.is_unstable("g", FOO_0)
    assert not cluster.offsets.is_unstable("g", FOO_1)
    waits = asyncio.ensure_future(wait_for_call(first.when_done, 10_000))
    await asyncio.sleep(0)
    Operations(cluster).release_commits("g")
    assert await waits
    assert (first.results, second.results) == ([0], [0])
    assert cluster.offsets["g"][FOO_0].offset == 2
    with pytest.raises(ClusterError, match="not held"):
        Operations(cluster).release_commits("g")


@pytest.mark.requirement("DP-CTL-29", "DP-COORD-06")
def test_held_commits_are_lost_with_their_coordinator() -> None:
    cluster = coordinated(2)
    Operations(cluster).hold_commits("g")
    commitment = cluster.offsets.commit(
        "g", [(FOO_0, OffsetToCommit(1)), (FOO_1, OffsetToCommit(2))]
    )
    Operations(cluster).stop_broker(coordinator_of(cluster, "g"))
    assert commitment.results == [16, 16]
    Operations(cluster).release_commits("g")
    assert not cluster.offsets["g"]
