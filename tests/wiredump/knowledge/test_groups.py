"""Rebalances as tables have them, of exchanges with the coordinator."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kproto.messages.consumer_group_heartbeat_request import TopicPartitions as Owned
from kproto.messages.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.messages.leave_group_request import MemberIdentity
from kproto.messages.streams_group_heartbeat_request import TaskIds as OwnedTasks
from kproto.messages.streams_group_heartbeat_response import TaskIds
from tests.wiredump.rows.tabled import connection, exchange, tables_of
from wiredump.body_texts import texts_of
from wiredump.knowledge.excerpts import excerpt_of
from wiredump.knowledge.groups import Groups
from wiredump.model import Exchange

SECOND = 10**9
REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, MEMBER_ID_REQUIRED = 27, 25, 79
NOT_COORDINATOR, FENCED_MEMBER_EPOCH = 16, 110


def rows(items: list[Exchange]) -> list[dict[str, Any]]:
    found = tables_of(items, tables=["groups"])["groups"]
    shuffled = random.Random(3).sample(items, len(items))  # known in another order than asked
    assert tables_of(shuffled, tables=["groups"])["groups"] == found
    return found


def brief(items: list[Exchange], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows(items)]


# ---- classic groups --------------------------------------------------------------------------


def join(
    at: int, member: str, generation: int = 1, *, took: int = 1, sent: str | None = None,
    error: int = 0, reason: str | None = None, members: int = 0, answered: bool = True,
    group: str = "g",
) -> Exchange:  # fmt: skip
    """``sent`` is the member id of the request, by default the same."""
    request = JoinGroupRequest(
        group_id=group, member_id=member if sent is None else sent, protocol_type="consumer",
        reason=reason,
    )  # fmt: skip
    answer = JoinGroupResponse(
        error_code=error, generation_id=-1 if error else generation, protocol_name="range",
        leader="a", member_id=member,
        members=[JoinGroupResponseMember(member_id=f"m{n}") for n in range(members)],
    )  # fmt: skip
    return exchange(
        request, answer if answered else None, 9, at=at, took=took, client_id=f"client-{member}"
    )


def sync(at: int, member: str, generation: int = 1, *, error: int = 0) -> Exchange:
    request = SyncGroupRequest(group_id="g", member_id=member, generation_id=generation)
    return exchange(request, SyncGroupResponse(error_code=error), 5, at=at)


def beat(at: int, member: str, generation: int = 1, *, error: int = 0) -> Exchange:
    request = HeartbeatRequest(group_id="g", member_id=member, generation_id=generation)
    return exchange(request, HeartbeatResponse(error_code=error), 4, at=at)


def leave(at: int, *members: str, reason: str | None = None, version: int = 5) -> Exchange:
    if version < 3:
        request = LeaveGroupRequest(group_id="g", member_id=members[0])
    else:
        request = LeaveGroupRequest(
            group_id="g", members=[MemberIdentity(member_id=m, reason=reason) for m in members]
        )
    return exchange(request, LeaveGroupResponse(), version, at=at)


def first_generation() -> list[Exchange]:
    """Two members join; the coordinator gives them their ids."""
    return [
        join(1, "a", sent="", error=MEMBER_ID_REQUIRED, reason="not a member yet"),
        join(3, "a", took=7, members=2),
        join(4, "b", sent="", error=MEMBER_ID_REQUIRED),
        join(6, "b", took=4),
        sync(11, "a"),
        sync(12, "b"),
        beat(20, "a"),
    ]


def test_a_generation_is_a_row() -> None:
    (row,) = rows(first_generation())
    assert row == {
        "coordinator": "10.0.0.2:9092", "group_id": "g", "protocol": "classic", "generation": 1,
        "outcome": "completed", "assignor": "range", "leader": "a", "members": 2,
        "members_joined": 2, "members_left": 0, "reasons": ["not a member yet"], "errors": [],
        "client_ids": ["client-a", "client-b"], "began_ns": SECOND, "ended_ns": 13 * SECOND,
        "duration_ns": 12 * SECOND, "connection": 0, "request_offset": 1000,
    }  # fmt: skip


def test_the_leader_knows_of_members_that_were_not_captured() -> None:
    assert brief([join(1, "a", members=5), sync(3, "a")], "members", "members_joined") == [(5, 0)]


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_a_member_that_leaves_begins_a_rebalance(version: int) -> None:
    reason = "the consumer is being closed" if version >= 5 else None
    items = [
        *first_generation(),
        leave(30, "b", reason=reason, version=version),
        beat(32, "a", error=REBALANCE_IN_PROGRESS),
        join(34, "a", 2, reason="heartbeat"),
        sync(36, "a", 2),
    ]
    _, row = rows(items)
    assert (row["generation"], row["members"], row["members_left"]) == (2, 1, 1)
    assert row["reasons"] == sorted(filter(None, ["heartbeat", reason]))
    assert row["errors"] == ["REBALANCE_IN_PROGRESS"]
    assert (row["began_ns"], row["duration_ns"]) == (30 * SECOND, 7 * SECOND)
    assert row["request_offset"] == 30_000


def test_the_last_member_that_leaves_begins_none() -> None:
    items = [*first_generation(), leave(30, "b"), leave(31, "a")]
    assert brief(items, "generation", "outcome") == [(1, "completed")]
    later = [*items, join(90, "c", 2), sync(92, "c", 2)]
    assert brief(later, "began_ns", "members_left") == [(SECOND, 0), (90 * SECOND, 0)]


def test_a_rebalance_that_another_follows() -> None:
    items = [
        join(1, "a", 1), join(2, "b", 1), sync(4, "a", 1),
        sync(5, "b", 1, error=REBALANCE_IN_PROGRESS),
        join(6, "a", 2), join(7, "b", 2), sync(9, "a", 2),
    ]  # fmt: skip
    assert brief(items, "generation", "outcome", "errors") == [
        (1, "superseded", ["REBALANCE_IN_PROGRESS"]),
        (2, "in progress", []),
    ]


def test_a_leave_during_the_rebalance_does_not_hold_it_up() -> None:
    items = [join(1, "a", took=9), join(2, "b", took=8), leave(5, "b", reason="gone")]
    items.append(sync(12, "a"))
    (row,) = rows(items)
    assert (row["outcome"], row["members_left"], row["reasons"]) == ("completed", 1, ["gone"])


def test_of_a_rebalance_without_a_generation_there_is_what_was_seen() -> None:
    failing = [join(1, "a", error=UNKNOWN_MEMBER_ID, reason="r"), beat(3, "a", -1, error=22)]
    assert brief(failing, "generation", "outcome", "errors", "ended_ns", "reasons") == [
        (None, "failed", ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"], None, ["r"])
    ]
    asked = [join(1, "a", answered=False)]
    assert brief(asked, "generation", "outcome", "members") == [(None, "in progress", 0)]
    told = [*first_generation(), beat(40, "a", error=REBALANCE_IN_PROGRESS)]
    assert brief(told, "generation", "outcome") == [(1, "completed"), (None, "failed")]


def test_what_says_nothing_of_a_rebalance_makes_no_row() -> None:
    assert rows([join(1, "a", error=NOT_COORDINATOR), beat(3, "a", error=NOT_COORDINATOR)]) == []
    assert rows([beat(1, "a"), sync(3, "a"), leave(5, "a")]) == []
    again = [*first_generation(), join(40, "a")]  # it is given the generation that there is
    assert brief(again, "generation", "ended_ns") == [(1, 13 * SECOND)]


def test_a_group_that_was_deleted_counts_anew() -> None:
    items = [join(1, "a"), sync(3, "a"), leave(5, "a"), join(50, "x"), sync(52, "x")]
    assert brief(items, "generation", "began_ns", "outcome") == [
        (1, SECOND, "completed"),
        (1, 50 * SECOND, "completed"),
    ]


def test_a_group_of_many_generations_has_them_all() -> None:
    items = [
        each
        for n in range(1, 30)
        for each in (join(4 * n, "a", n), join(4 * n + 1, "b", n), sync(4 * n + 3, "a", n))
    ]
    assert brief(items, "generation") == [(n,) for n in range(1, 30)]


def test_groups_of_one_name_belong_to_their_coordinators() -> None:
    items = [join(1, "a"), join(2, "b", group="h")]
    elsewhere = join(3, "c")
    elsewhere.connection = connection(7, broker="10.0.0.9:9092")
    assert brief([*items, elsewhere], "group_id", "coordinator", "members") == [
        ("g", "10.0.0.2:9092", 1),
        ("g", "10.0.0.9:9092", 1),
        ("h", "10.0.0.2:9092", 1),
    ]


# ---- consumer, share and streams groups ------------------------------------------------------


def consumer(
    at: int, member: str, sent: int, epoch: int | None, *, error: int = 0,
    assigned: bool = False, owned: bool = False, instance: str | None = None,
    partitions: int = 1,
) -> Exchange:  # fmt: skip
    """``epoch`` None: not answered."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=sent, instance_id=instance,
        server_assignor="uniform" if sent == 0 else None,
        topic_partitions=[Owned(partitions=[0])] if owned else None,
    )  # fmt: skip
    answer = ConsumerGroupHeartbeatResponse(
        error_code=error, member_id=member, member_epoch=epoch or 0,
        assignment=Assignment(topic_partitions=[TopicPartitions(partitions=[0])] * partitions)
        if assigned
        else None,
    )  # fmt: skip
    return exchange(
        request, None if epoch is None else answer, 1, at=at, client_id=f"client-{member}"
    )


def test_an_epoch_is_a_row() -> None:
    items = [
        consumer(1, "a", 0, 1, assigned=True), consumer(3, "a", 1, 1, owned=True),
        consumer(5, "a", 1, 1),
        consumer(10, "b", 0, 2),                 # nothing is free yet
        consumer(12, "a", 1, 1, assigned=True),  # a is asked to give something up
        consumer(14, "a", 1, 2, owned=True),
        consumer(16, "b", 2, 2, assigned=True),
        consumer(19, "b", 2, 2, owned=True),
        consumer(25, "b", 2, 2), consumer(26, "a", 2, 2),
    ]  # fmt: skip
    assert brief(items, "generation", "outcome", "members", "members_joined", "assignor") == [
        (1, "completed", 1, 1, "uniform"),
        (2, "completed", 2, 1, "uniform"),
    ]
    assert brief(items, "protocol", "began_ns", "ended_ns", "client_ids")[1] == (
        "consumer", 10 * SECOND, 19 * SECOND, ["client-a", "client-b"],
    )  # fmt: skip


def test_an_assignment_of_nothing_needs_no_confirmation() -> None:
    items = [
        consumer(1, "a", 0, 1, assigned=True, partitions=0),
        consumer(9, "a", 1, 1, owned=True),
    ]
    assert brief(items, "outcome", "ended_ns") == [("completed", 2 * SECOND)]


def test_a_consumer_that_leaves_begins_an_epoch() -> None:
    items = [
        consumer(1, "a", 0, 1), consumer(3, "b", 0, 2), consumer(5, "a", 1, 2),
        consumer(9, "b", -1, -1), consumer(12, "a", 2, 3, assigned=True),
        consumer(13, "a", 3, 3, owned=True),
    ]  # fmt: skip
    *_, row = rows(items)
    assert (row["generation"], row["members"], row["members_left"]) == (3, 1, 1)
    assert (row["began_ns"], row["duration_ns"]) == (9 * SECOND, 4 * SECOND)
    last = [*items, consumer(20, "a", -2, None)]
    assert rows(last) == rows(items)


def test_errors_of_consumers() -> None:
    fenced = [
        consumer(1, "a", 0, 1), consumer(3, "a", 1, 0, error=FENCED_MEMBER_EPOCH),
        consumer(5, "a", 0, 2),
    ]  # fmt: skip
    assert brief(fenced, "generation", "began_ns", "errors") == [
        (1, SECOND, []),
        (2, 3 * SECOND, ["FENCED_MEMBER_EPOCH"]),
    ]
    assert brief([consumer(1, "a", 0, 0, error=30)], "generation", "outcome") == [(None, "failed")]
    assert brief([consumer(1, "a", 0, None)], "outcome") == [("in progress",)]
    assert rows([consumer(1, "a", 0, 0, error=NOT_COORDINATOR), consumer(3, "a", 4, None)]) == []


def test_an_epoch_from_before_the_capture_is_no_rebalance() -> None:
    items = [consumer(1, "a", 7, 7), consumer(3, "a", 7, 7, assigned=True)]
    assert rows(items) == []
    assert brief([*items, consumer(9, "a", 7, 8)], "generation", "members") == [(8, 1)]


def test_a_static_member_takes_its_place_again() -> None:
    items = [consumer(1, "a", 0, 1, instance="i"), consumer(3, "a", -2, -2, instance="i")]
    items.append(consumer(9, "b", 0, 1, instance="i"))
    assert brief(items, "generation", "ended_ns") == [(1, 2 * SECOND)]
    anew = [consumer(1, "a", 0, 1), consumer(3, "a", -1, -1), consumer(9, "b", 0, 1)]
    assert brief(anew, "generation", "began_ns") == [(1, SECOND), (1, 9 * SECOND)]


def test_share_and_streams_groups() -> None:
    share = [
        exchange(
            ShareGroupHeartbeatRequest(group_id="s", member_id="a", member_epoch=sent),
            ShareGroupHeartbeatResponse(member_id="a", member_epoch=epoch),
            1, at=at,
        )
        for at, sent, epoch in ((1, 0, 1), (3, 1, 1), (5, 1, 2))
    ]  # fmt: skip
    streams = [
        exchange(
            StreamsGroupHeartbeatRequest(
                group_id="t", member_id="a", member_epoch=sent,
                active_tasks=[OwnedTasks()] if owned else None,
            ),
            StreamsGroupHeartbeatResponse(
                member_id="a", member_epoch=3, active_tasks=None if owned else [TaskIds()]
            ),
            1, at=at,
        )
        for at, sent, owned in ((11, 0, False), (13, 3, True))
    ]  # fmt: skip
    found = brief([*share, *streams], "group_id", "protocol", "generation", "outcome", "ended_ns")
    assert found == [
        ("s", "share", 1, "completed", 2 * SECOND),
        ("s", "share", 2, "completed", 6 * SECOND),
        ("t", "streams", 3, "completed", 13 * SECOND),
    ]


# ---- bounds ----------------------------------------------------------------------------------


@given(st.integers(1, 60))
def test_what_is_kept_is_bounded_and_no_rebalance_is_lost(count: int) -> None:
    groups = Groups(most_weight=100)
    found = []
    for number in range(count):
        item = join(number + 1, "a", group=f"g{number}")
        excerpt = excerpt_of(item, texts_of(item))
        assert excerpt is not None
        found += list(groups.feed(excerpt))
        assert number < 8 or found
    found += list(groups.end())
    assert [row[1] for _, row in found] == [f"g{number}" for number in range(count)]
