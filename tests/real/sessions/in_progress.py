"""Sessions over AlterPartitionReassignments (45) while replicas lag or brokers are gone, and
ListPartitionReassignments (46).
"""

from __future__ import annotations

import uuid

from kproto.messages import DeleteTopicsRequest
from kproto.messages.delete_topics_request import DeleteTopicState
from tests.real.sessions.registry import session
from tests.real.steps import (
    BROKER,
    DELETE,
    PREFERRED,
    Ask,
    CatchUp,
    Rounds,
    Settle,
    alter,
    change,
    create,
    elect,
    listing,
    metadata,
    try_to_create,
)


def _progress(name: str) -> tuple[Ask, Ask]:
    """The reassignment of partition 0, and the topic in metadata."""
    return listing((name, [0])), metadata(name)


@session(45)
def in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2, 3])],
        frozen=[
            alter((t, 0, [2, 3, 4])),
            *_progress(t),
            alter((t, 0, None)),
            *_progress(t),
        ],
    )


@session(45)
def in_progress_then_done(t: str) -> Rounds:
    """The frozen broker catches up between the rounds."""
    return Rounds(
        [create(t, [1, 2])],
        frozen=[alter((t, 0, [4, 2])), *_progress(t)],
        stopped=[*_progress(t)],
    )


@session(45)
def growth_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1])],
        frozen=[
            alter((t, 0, [1, 3, 4])),
            CatchUp(t, 0, 3),
            *_progress(t),
            alter((t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def retargeted(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4])),
            alter((t, 0, [3, 4])),
            CatchUp(t, 0, 3),
            *_progress(t),
            alter((t, 0, [4, 1])),
            *_progress(t),
            alter((t, 0, None)),
            *_progress(t),
        ],
    )


@session(45)
def retargeted_to_where_it_was(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [1, 4])),
            listing((t, [0])),
            alter((t, 0, [1, 2])),
            *_progress(t),
        ],
    )


@session(45)
def retargeted_without_the_laggard(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4])),
            alter((t, 0, [2, 3])),
            CatchUp(t, 0, 3),
            *_progress(t),
        ],
    )


@session(45)
def started_twice(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4])),
            alter((t, 0, [2, 4])),
            *_progress(t),
            alter((t, 0, None)),
            alter((t, 0, None)),
        ],
    )


@session(45)
def swap_with_the_laggard(t: str) -> Rounds:
    """Nothing stays but the frozen broker: a cancellation leaves what there was."""
    return Rounds(
        [create(t, [1], [2])],
        frozen=[
            alter((t, 0, [4]), (t, 1, [4, 3])),
            CatchUp(t, 1, 3),
            listing((t, [0, 1])),
            metadata(t),
            alter((t, 0, None), (t, 1, None)),
            metadata(t),
        ],
    )


@session(45)
def leader_stays_while_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [4, 3])),
            CatchUp(t, 0, 3),
            metadata(t),
            elect(PREFERRED, (t, [0])),
            alter((t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def to_a_stopped_broker(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        stopped=[
            alter((t, 0, [1, 4])),
            *_progress(t),
            alter((t, 0, None)),
            metadata(t),
        ],
    )


@session(45)
def away_from_a_stopped_broker(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 4], [4, 2]), create(f"{t}-b", [4])],
        stopped=[
            metadata(t),
            alter((t, 0, [1, 3]), (t, 1, [2])),
            Settle(),
            metadata(t),
            alter((f"{t}-b", 0, [1])),
            *_progress(f"{t}-b"),
            alter((f"{t}-b", 0, None)),
            metadata(f"{t}-b"),
        ],
    )


@session(45)
def beside_a_stopped_broker(t: str) -> Rounds:
    """Broker 4 was there before, is out of sync and is to stay (KAFKA-19975)."""
    return Rounds(
        [create(t, [1, 4]), create(f"{t}-b", [1, 2, 4])],
        stopped=[
            alter((t, 0, [2, 4])),
            CatchUp(t, 0, 2),
            *_progress(t),
            alter((f"{t}-b", 0, [2, 4])),
            *_progress(f"{t}-b"),
            alter((t, 0, None), (f"{t}-b", 0, None)),
            metadata(t),
            metadata(f"{t}-b"),
        ],
    )


@session(45)
def cancel_that_would_need_an_unclean_election(t: str) -> Rounds:
    return Rounds(
        [create(t, [4])],
        frozen=[],
        stopped=[alter((t, 0, [2])), alter((t, 0, None)), *_progress(t)],
    )


@session(45, since=1)
def guard(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [1, 2]),
            alter((t, 0, [1, 2, 3]), factor_may_change=False),
            alter((t, 0, [1]), factor_may_change=False),
            alter((t, 0, [2, 1]), (t, 1, [3]), factor_may_change=False),
            alter((t, 1, [2, 3]), factor_may_change=False),
            Settle(),
            metadata(t),
            alter((t, 0, None), factor_may_change=False),
            alter((t, 0, []), factor_may_change=False),
            alter((f"{t}-unknown", 0, [1]), factor_may_change=False),
            alter(factor_may_change=False),
        ]
    )


@session(45, since=1)
def guard_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [1, 3, 4])),
            CatchUp(t, 0, 3),
            alter((t, 0, [1, 2]), factor_may_change=False),
            alter((t, 0, [1, 2, 4]), factor_may_change=False),
            *_progress(t),
            alter((t, 0, None), factor_may_change=False),
            metadata(t),
        ],
    )


@session(45, zookeeper=True, shows=("K183-06", "K455-20", "K455-22", "K455-24", "K455-25"))
def not_the_controller(t: str) -> Rounds:
    rate = "leader.replication.throttled.rate"
    by_id = DeleteTopicState(name=None, topic_id=uuid.UUID(int=7))
    create_elsewhere = Ask(try_to_create(f"{t}-b", [1]).body, broker_id=2)
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 1]), (f"{t}-unknown", 1, []), broker_id=2),
            alter(broker_id=2),
            listing((t, [0]), broker_id=2),
            listing(everything=True, broker_id=2),
            elect(PREFERRED, (t, [0]), broker_id=2),
            elect(PREFERRED, everything=True, broker_id=3),
            create_elsewhere,
            Ask(DeleteTopicsRequest(topic_names=[t]), version=5, broker_id=2),
            Ask(DeleteTopicsRequest(topics=[by_id]), version=6, broker_id=2),
            change((BROKER, "2", [(rate, DELETE, "")]), broker_id=2),
            metadata(t),
        ]
    )


@session(45, zookeeper=False)
def forwarded(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 1]), (t, 1, []), broker_id=2),
            listing((t, [0]), broker_id=3),
            elect(PREFERRED, (t, [0]), broker_id=2),
            metadata(t),
        ]
    )


# ---- 46 ListPartitionReassignments -----------------------------------------------------------


@session(46, shows=("A-48",))
def list_nothing(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            listing(everything=True),
            listing(),
            listing((t, [0])),
            listing((t, [])),
            listing((t, [5, -1])),
            listing((f"{t}-unknown", [0])),
        ]
    )


@session(46)
def list_some(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2], [2, 3], [3, 1]), create(f"{t}-b", [1])],
        frozen=[
            alter((t, 0, [1, 4]), (t, 2, [3, 4]), (f"{t}-b", 0, [1, 4])),
            listing((t, [0])),
            listing((t, [2, 1, 0])),
            listing((t, [0, 0])),
            listing((f"{t}-b", [0]), (t, [1, 2])),
            listing((t, [0]), (f"{t}-unknown", [0]), (t, [2])),
            listing(everything=True),
            alter((t, 0, None), (t, 2, None), (f"{t}-b", 0, None)),
            listing(everything=True),
        ],
    )
