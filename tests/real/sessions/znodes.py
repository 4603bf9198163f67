"""Sessions over what a controller keeps in ZooKeeper, and what users write there: plans of
reassignments and elections, topics to delete. Only for clusters that have one.

A controller hears of a znode a moment later, so nothing is asked of it before metadata shows that
it has acted; and what may be over by then is not looked for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.real.sessions.registry import session
from tests.real.steps import (
    CatchUp,
    Look,
    Rounds,
    Settle,
    Submit,
    alter,
    create,
    elect,
    listing,
    metadata,
)

PLAN = "/admin/reassign_partitions"
ELECTION = "/admin/preferred_replica_election"


def _topic(name: str) -> Look:
    return Look(f"/brokers/topics/{name}")


def _state(name: str, index: int = 0) -> Look:
    return Look(f"/brokers/topics/{name}/partitions/{index}/state")


def _znodes(name: str) -> tuple[Look, Look]:
    """The topic, and the state of partition 0."""
    return _topic(name), _state(name)


def _plan(*rows: tuple[str, int, Sequence[int]], version: int = 1) -> Submit:
    partitions = [
        {"topic": topic, "partition": index, "replicas": list(replicas)}
        for topic, index, replicas in rows
    ]
    return Submit(PLAN, json.dumps({"version": version, "partitions": partitions}))


def _election(*rows: tuple[str, int]) -> Submit:
    partitions = [{"topic": topic, "partition": index} for topic, index in rows]
    return Submit(ELECTION, json.dumps({"version": 1, "partitions": partitions}))


@session(45, zookeeper=True)
def znodes_of_a_reassignment(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 1]),
            metadata(t),
            *_znodes(t),
            alter((t, 0, [2, 3])),
            Settle(),
            metadata(t),
            *_znodes(t),
            alter((t, 1, [1, 2])),
            _topic(t),
            _state(t, 1),
        ],
        frozen=[
            alter((t, 0, [3, 4]), (t, 1, [4, 2, 1])),
            metadata(t),
            *_znodes(t),
            alter((t, 0, [2, 1])),
            CatchUp(t, 0, 1),
            metadata(t),
            *_znodes(t),
            alter((t, 1, None)),
            metadata(t),
            _topic(t),
            _state(t, 1),
        ],
    )


@session(45, zookeeper=True)
def znodes_while_stopped(t: str) -> Rounds:
    return Rounds(
        [create(t, [4, 1], [1, 4]), create(f"{t}-b", [4])],
        stopped=[
            metadata(t, f"{t}-b"),
            _state(t),
            _state(t, 1),
            _state(f"{t}-b"),
            Look("/brokers/ids/4"),
            elect(0, (t, [0, 1])),
            alter((t, 0, [1, 2])),
            Settle(),
            metadata(t),
            *_znodes(t),
        ],
    )


@session(45, zookeeper=True)
def plan_submitted(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 3]),
            _plan((t, 0, [2, 3]), (t, 1, [3, 2])),
            CatchUp(t, 0, 3),
            metadata(t),
            Look(PLAN),
            *_znodes(t),
            _plan((t, 0, [2, 3])),
            Look(PLAN),
            metadata(t),
        ]
    )


@session(45, zookeeper=True)
def plan_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2], [2, 1])],
        frozen=[
            _plan((t, 0, [2, 4]), (t, 1, [2, 3])),
            CatchUp(t, 1, 3),
            metadata(t),
            Look(PLAN),
            listing((t, [0, 1])),
            _topic(t),
            alter((t, 0, None)),
            Look(PLAN),
            listing((t, [0, 1])),
            metadata(t),
            *_znodes(t),
        ],
    )


@session(45, zookeeper=True)
def plan_overruled(t: str) -> Rounds:
    """A request takes its partition out of the plan."""
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            _plan((t, 0, [1, 4])),
            metadata(t),
            listing((t, [0])),
            alter((t, 0, [1, 3])),
            CatchUp(t, 0, 3),
            Look(PLAN),
            metadata(t),
            _topic(t),
        ],
    )


@session(45, zookeeper=True)
def plan_of_what_is_not_there(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            _plan((f"{t}-unknown", 0, [1]), (t, 7, [1]), (t, 0, [2, 1])),
            Look(PLAN),
            metadata(t),
            _topic(t),
            _plan((f"{t}-unknown", 0, [1])),
            Look(PLAN),
        ]
    )


@session(45, zookeeper=True)
def plan_that_cannot_be(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [1, 2]),
            _plan((t, 0, [1, 9]), (t, 1, [2, 1])),
            metadata(t),
            Look(PLAN),
            listing((t, [0, 1])),
            _topic(t),
            alter((t, 0, None)),
            Look(PLAN),
            metadata(t),
        ]
    )


@session(45, zookeeper=True)
def plan_that_names_a_broker_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            _plan((t, 0, [3, 3])),
            CatchUp(t, 0, 3),
            metadata(t),
            _topic(t),
            Look(PLAN),
            Submit(PLAN, None),
            Look(PLAN),
        ]
    )


@session(45, zookeeper=True)
def plan_that_is_none(t: str) -> Rounds:
    """It stays until a request throws it away."""
    return Rounds(
        [
            create(t, [1, 2]),
            metadata(t),
            Submit(PLAN, "no plan"),
            Look(PLAN),
            metadata(t),
            alter((t, 0, [3, 1])),
            Settle(),
            metadata(t),
            Look(PLAN),
        ]
    )


@session(45, zookeeper=True)
def election_submitted(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 3]),
            alter((t, 0, [2, 1])),
            metadata(t),
            _election((t, 0), (t, 1), (f"{t}-unknown", 0)),
            Look(ELECTION),
            metadata(t),
            _state(t),
        ]
    )


@session(45, zookeeper=True)
def deletion_submitted(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            metadata(t),
            Submit(f"/admin/delete_topics/{t}", ""),
            metadata(t),
            Look(f"/admin/delete_topics/{t}"),
            *_znodes(t),
            Submit(f"/admin/delete_topics/{t}-unknown", ""),
            Look(f"/admin/delete_topics/{t}-unknown"),
        ]
    )
