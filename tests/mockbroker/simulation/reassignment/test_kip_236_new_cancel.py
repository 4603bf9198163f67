"""KIP-236, newer revision: cancelling rolls back, in seven steps, or says why it does not."""

from typing import Any

import pytest

from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LeaderAndIsrSent, StopReplicaSent
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulation.reassignment.cancelling import (
    CANCEL,
    PLAN,
    cancel,
    cluster,
    entry,
    on_record,
    plan,
    submit,
)
from tests.mockbroker.simulation.reassignment.walks import FOO, joined, now, warnings

ALL = (1, 2, 3, 4, 5, 6)
STEPS = [f"K236-{number}" for number in range(20, 27)]


@pytest.mark.requirement("K236-32")
def test_while_it_runs_all_three_znodes_are_there() -> None:
    c = cluster()
    submit(c, entry([4, 5, 6]))
    since = len(c.log)
    cancel(c)
    there: list[list[str]] = []
    for action in c.log.since(since):
        if isinstance(action.change, LeaderAndIsrSent | StopReplicaSent):
            known = replay(c.state.cluster_id, list(c.log)[: action.offset]).znodes
            there.append(sorted(path for path in known if path.startswith("/admin/")))
    assert there == [[CANCEL, PLAN]] * 4


@pytest.mark.requirement("K236-41")
@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"version":1}', "\ud800"])
def test_what_the_request_holds_says_nothing(text: str) -> None:
    c = cluster()
    submit(c, entry([4]))
    Operations(c).write_znode(CANCEL, text)
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    assert c.znodes.read(CANCEL) is None
    assert warnings(c) == []


@pytest.mark.requirement("K236-33", "A-19")
def test_throttles_are_the_tools_to_remove() -> None:
    c = cluster()
    throttled = [
        (2, "foo", [("leader.replication.throttled.replicas", 0, "0:1,0:2")]),
        (4, "1", [("leader.replication.throttled.rate", 0, "1000")]),
    ]
    c.config_changes.alter_incrementally(throttled)
    submit(c, entry([4]))
    before = {path: text for path, text in c.state.znodes.items() if path.startswith("/config/")}
    cancel(c)
    after = {path: text for path, text in c.state.znodes.items() if path.startswith("/config/")}
    assert len(before) == 2
    assert after == before


# ---- what is not rolled back ---------------------------------------------------------------------


STOP, START = Operations.stop_broker, Operations.start_broker
WITHOUT_ORIGINALS = [(STOP, 1), (STOP, 2), (STOP, 3)]
"""Then 4, which is new, is the last in sync, and leads."""
ORIGINALS_BACK = [(START, 1), (START, 2), (START, 3)]
"""Up, but not in sync."""
WITHOUT_NEW = [(STOP, 5), (STOP, 4)]


@pytest.mark.requirement("K236-35", "A-14")
@pytest.mark.parametrize(
    ("steps", "rolled_back"),
    [
        ([], True),
        (WITHOUT_NEW, True),
        ([(STOP, 1), (STOP, 2)], True),
        (WITHOUT_ORIGINALS, False),
        (WITHOUT_ORIGINALS + ORIGINALS_BACK, False),
        ([*WITHOUT_ORIGINALS, (STOP, 5)], False),
        ([*WITHOUT_ORIGINALS, (STOP, 4)], False),
        (WITHOUT_ORIGINALS + WITHOUT_NEW, True),
        (WITHOUT_ORIGINALS + WITHOUT_NEW + ORIGINALS_BACK, True),
    ],
)
def test_what_would_go_offline_is_skipped(steps: list[Any], rolled_back: bool) -> None:
    c = cluster()
    Operations(c).failover(6)
    submit(c, entry([4, 5]))
    joined(c, 4)
    for step, broker in steps:
        step(Operations(c), broker)
    cancel(c)
    partition = c.topics.partition(*FOO)
    assert c.znodes.read(CANCEL) is None
    if rolled_back:
        assert (partition.reassigning, partition.replicas) == (False, (1, 2, 3))
        assert (on_record(c), warnings(c)) == (None, [])
        return
    assert (partition.reassigning, partition.replicas) == (True, (4, 5, 1, 2, 3))
    assert on_record(c) == [entry([4, 5], [1, 2, 3])]
    assert warnings(c) == ["foo-0: not rolled back, as none of its original_replicas could lead it"]


# ---- what is read for it -------------------------------------------------------------------------


@pytest.mark.requirement("K236-10")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry([4], []), "The manual partition assignment includes an empty replica list."),
        (entry([4], [1, 1]), "more than once"),
        (entry([4], [9]), "includes broker 9, but no such broker is registered."),
        (entry([], [1, 2, 3]), "includes an empty replica list."),
        (entry([4], [1], ("no", 0)), "Unable to find a topic named no."),
        (entry([4], [1], ("foo", 7)), "Unable to find partition foo:7."),
    ],
)
def test_entries_that_make_no_sense_are_left_out_of_a_cancellation(bad, reason):
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4]), entry([4], tp=("foo", 1)))
    Operations(c).write_znode(PLAN, plan(bad, entry([4], [1, 2, 3], ("foo", 1))))
    cancel(c)
    assert now(c, ("foo", 1)) == ([1, 2, 3], [1, 2, 3], None)
    (named,) = [text for text in warnings(c) if "left out" in text]
    assert reason in named
    if (bad["topic"], bad["partition"]) == FOO:
        # As it was remembered, and so it is on record again.
        assert now(c) == ([4, 1, 2, 3], [1, 2, 3], [4])
        assert on_record(c) == [entry([4], [1, 2, 3])]
