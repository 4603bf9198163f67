"""Sessions over AlterPartitionReassignments (45) that are decided at once."""

from __future__ import annotations

from tests.real.sessions.registry import session
from tests.real.steps import (
    CatchUp,
    Rounds,
    Settle,
    alter,
    create,
    listing,
    metadata,
)

# ---- 45 AlterPartitionReassignments ----------------------------------------------------------


@session(45)
def reassign_to_another_broker(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 3])),
            Settle(),
            listing((t, [0])),
            metadata(t),
        ]
    )


@session(45)
def reassign_everything_elsewhere(t: str) -> Rounds:
    return Rounds([create(t, [1], [2]), alter((t, 0, [2]), (t, 1, [4, 1])), Settle(), metadata(t)])


@session(45)
def pure_reorder(t: str) -> Rounds:
    return Rounds([create(t, [1, 2, 3]), alter((t, 0, [3, 2, 1])), listing((t, [0])), metadata(t)])


@session(45)
def pure_removal(t: str) -> Rounds:
    return Rounds([create(t, [1, 2, 3]), alter((t, 0, [1, 3])), Settle(), metadata(t)])


@session(45)
def removal_of_the_leader(t: str) -> Rounds:
    return Rounds([create(t, [1, 2, 3]), alter((t, 0, [2, 3])), Settle(), metadata(t)])


@session(45)
def growth(t: str) -> Rounds:
    return Rounds([create(t, [2]), alter((t, 0, [2, 1, 3])), Settle(), metadata(t)])


@session(45)
def same_replicas(t: str) -> Rounds:
    return Rounds([create(t, [2, 1]), alter((t, 0, [2, 1])), listing((t, [0])), metadata(t)])


@session(45, shows=("K455-23",))
def bad_targets(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [])),
            alter((t, 0, [1, 1])),
            alter((t, 0, [1, 9])),
            alter((t, 0, [-1])),
            alter((t, 0, [9, -3, 9])),
            alter((t, 0, [2, 9, 2])),
            metadata(t),
        ]
    )


@session(45)
def unknown_partitions(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((f"{t}-unknown", 0, [1])),
            alter((t, 1, [1])),
            alter((t, -1, [1])),
            alter((f"{t}-unknown", 0, None)),
            alter((t, 7, None)),
            alter(("", 0, [1])),
            alter((t, 7, [])),
        ]
    )


@session(45, shows=("K455-23",))
def one_bad_row_among_good_ones(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 1], [1, 2]),
            alter((t, 0, [2, 1]), (t, 9, [1]), (t, 1, [9]), (t, 2, [2])),
            Settle(),
            metadata(t),
        ]
    )


@session(45, shows=("A-47",))
def nothing_asked(t: str) -> Rounds:
    none = alter((t, 0, [1]))
    none.body.topics[0].partitions = []
    return Rounds([create(t, [1]), alter(), none, metadata(t)])


@session(45)
def named_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2, 3], [1, 2, 3]),
            alter((t, 0, [3, 2, 1]), (t, 0, [2, 1, 3])),
            metadata(t),
            alter((t, 1, [1, 2]), (t, 1, None)),
            Settle(),
            metadata(t),
        ]
    )


@session(45)
def named_twice_in_progress(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [2, 4]), (t, 0, [1, 3])),
            CatchUp(t, 0, 3),
            listing((t, [0])),
            metadata(t),
        ],
    )


@session(45)
def topic_named_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [1, 2]),
            alter((t, 0, [2, 1]), (f"{t}-unknown", 0, [1]), (t, 1, [2, 1])),
            metadata(t),
        ]
    )


@session(45)
def cancel_of_nothing(t: str) -> Rounds:
    return Rounds([create(t, [1, 2]), alter((t, 0, None)), metadata(t)])


@session(45)
def cancel_and_start_together(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2], [1, 2])],
        frozen=[
            alter((t, 0, [1, 4])),
            alter((t, 0, None), (t, 1, [2, 4])),
            listing((t, [0, 1])),
            metadata(t),
            alter((t, 1, None), (t, 0, None)),
            metadata(t),
        ],
    )
