"""Sessions over ElectLeaders (43)."""

from __future__ import annotations

from tests.real.sessions.registry import session
from tests.real.steps import (
    PREFERRED,
    UNCLEAN,
    Rounds,
    alter,
    create,
    elect,
    listing,
    metadata,
)

# ---- 43 ElectLeaders -------------------------------------------------------------------------


@session(43, shows=("A-29",))
def election_not_needed(t: str) -> Rounds:
    return Rounds([create(t, [1, 2], [2, 1]), elect(PREFERRED, (t, [0, 1])), metadata(t)])


@session(43, shows=("K183-09",))
def election_of_unknown(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1]),
            elect(PREFERRED, (f"{t}-unknown", [0])),
            elect(PREFERRED, (t, [1])),
            elect(PREFERRED, (t, [-1])),
            elect(PREFERRED, (t, [])),
            elect(PREFERRED),
        ]
    )


@session(43, shows=("K183-09",))
def election_elsewhere(t: str) -> Rounds:
    """The controller holds no replica, and elects."""
    return Rounds(
        [create(t, [3, 4]), alter((t, 0, [4, 3])), elect(PREFERRED, (t, [0])), metadata(t)]
    )


@session(43)
def election_after_reorder(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2, 3], [2, 3, 1]),
            alter((t, 0, [3, 1, 2])),
            metadata(t),
            elect(PREFERRED, (t, [0, 1])),
            metadata(t),
            elect(PREFERRED, (t, [0])),
        ]
    )


@session(43, shows=("K183-08",))
def election_named_twice(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            alter((t, 0, [2, 1])),
            elect(PREFERRED, (t, [0, 0])),
            metadata(t),
        ]
    )


@session(43, since=1)
def election_of_unknown_type(t: str) -> Rounds:
    return Rounds([create(t, [1]), elect(7, (t, [0])), elect(7, everything=True)])


@session(43, since=1)
def unclean_election_not_needed(t: str) -> Rounds:
    return Rounds([create(t, [1, 2]), elect(UNCLEAN, (t, [0, 4]), (f"{t}-unknown", [0]))])


@session(43)
def election_of_everything(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 3]),
            alter((t, 0, [2, 1]), (t, 1, [2, 3])),
            elect(PREFERRED, everything=True),
            metadata(t),
        ]
    )


@session(43, shows=("K183-25",))
def election_of_one_not_in_sync(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [4, 1])),
            elect(PREFERRED, (t, [0])),
            metadata(t),
            alter((t, 0, None)),
            elect(PREFERRED, (t, [0])),
            metadata(t),
        ],
    )


@session(43)
def election_while_stopped(t: str) -> Rounds:
    return Rounds(
        [create(t, [4, 1], [1, 4])],
        stopped=[
            metadata(t),
            elect(PREFERRED, (t, [0])),
            elect(PREFERRED, (t, [1])),
            elect(PREFERRED, (t, [0, 1])),
            metadata(t),
        ],
    )


@session(43)
def election_while_offline(t: str) -> Rounds:
    return Rounds(
        [create(t, [4], [1])],
        stopped=[metadata(t), elect(PREFERRED, (t, [0, 1])), metadata(t)],
    )


@session(43, since=1)
def unclean_election_while_stopped(t: str) -> Rounds:
    return Rounds(
        [create(t, [4], [1])],
        stopped=[elect(UNCLEAN, (t, [0, 1])), metadata(t)],
    )


@session(43, since=1, zookeeper=False)
def unclean_election_of_an_added_replica(t: str) -> Rounds:
    return Rounds(
        [create(t, [4])],
        stopped=[
            alter((t, 0, [4, 1])),
            listing((t, [0])),
            elect(UNCLEAN, (t, [0])),
            metadata(t),
            listing((t, [0])),
            elect(UNCLEAN, (t, [0])),
            elect(PREFERRED, (t, [0])),
        ],
    )
