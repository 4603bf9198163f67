"""The queue, KIP-183's flag, time-outs: who waits for whom, and who is told what, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.errors import ClusterError, ControllerDiedError
from mockbroker.simulation.elections.queue import StartedElection
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import ElectionEnqueued
from mockbroker.simulation.state.cluster_state import replay
from mockbroker.simulation.state.results import ElectLeadersResult, PartitionResult, TopicResult
from tests.mockbroker.simulation.elections.clusters import (
    FLAGGED,
    QUEUED,
    electable,
    pending,
    queue_log,
    start,
)


def answer(code: int, *names: str) -> ElectLeadersResult:
    topics = tuple(TopicResult(name, (PartitionResult(0, code),)) for name in names)
    return ElectLeadersResult(0, topics)


@pytest.mark.requirement("K183-11", "K183-13", "A-30")
def test_a_second_election_waits_for_the_flag() -> None:
    """Although it is about another partition."""
    cluster = electable()
    Operations(cluster).hold_elections()
    first, second = start(cluster, "foo"), start(cluster, "bar")
    assert queue_log(cluster) == ["+1"]
    assert (first.result, second.result) == (None, None)
    assert cluster.topics.partition("foo", 0).leader == 2
    Operations(cluster).release_elections()
    assert queue_log(cluster) == ["+1", "-1", "+2", "-2"]
    assert first.result == answer(0, "foo")
    assert second.result == answer(0, "bar")
    assert {name: cluster.topics.partition(name, 0).leader for name in ("foo", "bar")} == {
        "foo": 1,
        "bar": 1,
    }


@pytest.mark.requirement("K183-11")
def test_without_a_flag_both_are_enqueued() -> None:
    """As in Kafka 2.2, whose queue is the controller's one thread."""
    cluster = electable("kafka-2.2")
    Operations(cluster).hold_elections()
    first, second = start(cluster, "foo"), start(cluster, "bar")
    assert queue_log(cluster) == ["+1", "+2"]
    Operations(cluster).release_elections()
    assert queue_log(cluster) == ["+1", "+2", "-1", "-2"]
    assert (first.result, second.result) == (answer(0, "foo"), answer(0, "bar"))


@pytest.mark.requirement("K183-12", "K183-13", "A-31")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_a_time_out_is_told_and_the_election_is_held_all_the_same(profile_name: str) -> None:
    cluster = electable(profile_name)
    Operations(cluster).hold_elections()
    started = start(cluster, "foo", "bar", timeout_ms=500)
    cluster.turns.advance(499)
    assert pending(started)
    cluster.turns.advance(1)
    assert started.result == answer(7, "foo", "bar")
    assert cluster.topics.partition("foo", 0).leader == 2
    Operations(cluster).release_elections()
    assert cluster.topics.partition("foo", 0).leader == 1
    assert queue_log(cluster) == ["+1", "-1"]
    assert started.result == answer(7, "foo", "bar"), "what was said was said"


@pytest.mark.requirement("A-30")
def test_who_waits_for_the_flag_does_so_within_its_own_time_out() -> None:
    """Its election is never held; that of who comes next is."""
    cluster = electable()
    Operations(cluster).hold_elections()
    first = start(cluster, "foo", timeout_ms=10_000)
    second = start(cluster, "bar", timeout_ms=300)
    third = start(cluster, "bar", timeout_ms=5_000)
    cluster.turns.advance(1000)
    assert second.result == answer(7, "bar")
    assert (first.result, third.result) == (None, None)
    Operations(cluster).release_elections()
    assert queue_log(cluster) == ["+1", "-1", "+2", "-2"]
    assert (first.result, third.result) == (answer(0, "foo"), answer(0, "bar"))


@pytest.mark.requirement("A-30")
def test_the_flag_goes_to_who_waited_longest() -> None:
    cluster = electable()
    Operations(cluster).hold_elections()
    asked = ["foo", "bar", "bar", "foo"]
    started = [start(cluster, name) for name in asked]
    assert all(map(pending, started))
    Operations(cluster).release_elections()
    enqueued = [each.change for each in cluster.log if isinstance(each.change, ElectionEnqueued)]
    assert [each.topics for each in enqueued] == [((name, (0,)),) for name in asked]
    assert [each.result for each in started] == [answer(0, name) for name in asked]


@pytest.mark.requirement("A-30")
def test_busy_is_an_error_if_asked_for() -> None:
    cluster = electable(busy_fails=True)
    Operations(cluster).hold_elections()
    first = start(cluster, "foo")
    assert start(cluster, "bar").result == answer(7, "bar")
    assert pending(first)
    Operations(cluster).release_elections()
    assert first.result == answer(0, "foo")
    assert start(cluster, "bar").result == answer(0, "bar"), "the flag is free again"


@pytest.mark.requirement("K183-12", "K183-14")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_what_is_finished_keeps_its_result(profile_name: str) -> None:
    """Broker 3 was told of foo and not of bar, which has come to be led otherwise meanwhile."""
    cluster = electable(profile_name)
    Operations(cluster).hold_elections()
    asked = [("foo", [0, 9]), ("bar", [0])]
    started = cluster.elections.start(0, asked, timeout_ms=1000)
    Operations(cluster).hold_metadata(3)
    Operations(cluster).release_elections()
    assert pending(started)
    # Another election for bar: the leader that was waited for is not seen any more.
    Operations(cluster).leave_isr(("bar", 0), 3)
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    Operations(cluster).join_isr(("foo", 0), 1)
    cluster.elections.start(0, [("foo", [0])])
    Operations(cluster).release_metadata(3)
    assert pending(started)
    cluster.turns.advance(1000)
    assert started.result == ElectLeadersResult(
        0,
        (
            TopicResult(
                "foo", (PartitionResult(0), PartitionResult(9, 3, "The partition does not exist."))
            ),
            TopicResult("bar", (PartitionResult(0, 7),)),
        ),
    )


@pytest.mark.requirement("K183-05")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_a_controller_that_goes_tells_callers_to_ask_the_next(profile_name: str) -> None:
    cluster = electable(profile_name)
    Operations(cluster).hold_elections()
    first, second = start(cluster, "foo"), start(cluster, "bar")
    Operations(cluster).failover(2)
    assert (first.result, second.result) == (answer(41, "foo"), answer(41, "bar"))
    Operations(cluster).release_elections()
    marks = ["+1", "x1"] if profile_name == FLAGGED else ["+1", "+2", "x1", "x2"]
    assert queue_log(cluster) == marks, "who waits for the flag never gets it from the next"
    assert cluster.topics.partition("foo", 0).leader == 2
    assert start(cluster, "foo").result == answer(0, "foo")


def test_a_controller_that_dies_in_the_midst_tells_its_caller_too() -> None:
    cluster = electable()
    Operations(cluster).hold_elections()
    started = start(cluster, "foo", "bar")
    Operations(cluster).kill_controller_after(2)  # the release is one, foo's new leader another
    with pytest.raises(ControllerDiedError):
        Operations(cluster).release_elections()
    assert started.result == answer(41, "foo", "bar")
    assert cluster.topics.partition("foo", 0).leader == 1
    assert cluster.topics.partition("bar", 0).leader == 2
    assert start(cluster, "bar").result == answer(0, "bar"), "the flag went with it"


def test_who_goes_away_is_not_waited_for() -> None:
    """One that waited for the flag is never held; one that was enqueued is."""
    cluster = electable()
    Operations(cluster).hold_elections()
    first, second = start(cluster, "foo"), start(cluster, "bar")
    told: list[StartedElection] = []
    for each in (first, second):
        each.when_done(lambda each=each: told.append(each))  # type: ignore[misc]
        cluster.elections.withdraw(each)
    assert cluster.timers.next_due_ms is None
    Operations(cluster).release_elections()
    assert queue_log(cluster) == ["+1", "-1"]
    assert cluster.topics.partition("foo", 0).leader == 1
    assert cluster.topics.partition("bar", 0).leader == 2
    assert told == [first, second]


def test_kraft_has_no_queue() -> None:
    cluster = electable("kafka-4.4")
    with pytest.raises(ClusterError, match="no queue of elections"):
        Operations(cluster).hold_elections()
    assert start(cluster, "foo").result == answer(0, "foo")
    assert queue_log(cluster) == []


def test_holding_and_releasing_once_each() -> None:
    cluster = electable()
    with pytest.raises(ClusterError, match="elections are not held back"):
        Operations(cluster).release_elections()
    Operations(cluster).hold_elections()
    with pytest.raises(ClusterError, match="already held back"):
        Operations(cluster).hold_elections()
    with pytest.raises(ClusterError, match="must be 0 ms or more, not -1 ms"):
        Operations(cluster).set_propagation(-1)


def test_waiting_for_nothing() -> None:
    """``elect_leaders`` has no time: what is done is told, what is not is 7."""
    cluster = electable()
    Operations(cluster).hold_elections()
    assert cluster.elections.elect(0, [("foo", [0])]) == answer(7, "foo")
    Operations(cluster).release_elections()
    assert cluster.elections.elect(0, [("bar", [0])]) == answer(0, "bar")


STEPS = st.one_of(
    st.tuples(
        st.just("start"), st.sampled_from([("foo",), ("bar",), ("foo", "bar"), ()]),
        st.integers(0, 400),
    ),
    st.tuples(st.just("advance"), st.integers(0, 300)),
    st.tuples(st.just("propagation"), st.integers(0, 300)),
    st.sampled_from([("hold",), ("release",), ("move",), ("withdraw",), ("failover",)]),
)  # fmt: skip


@pytest.mark.requirement("K183-11", "K183-12")
@given(st.sampled_from(QUEUED), st.booleans(), st.lists(STEPS, max_size=25))
def test_whatever_happens(profile_name, busy_fails, steps):
    """Elections never interleave, every caller is answered within its time, nobody is left, and
    the log gives the state again."""
    cluster = electable(profile_name, busy_fails=busy_fails)
    callers: list[tuple[StartedElection, int]] = []
    for name, *arguments in steps:
        before = {id(each): each.result for each, _ in callers}
        try:
            match name, arguments:
                case "start", [names, timeout_ms]:
                    begun = start(cluster, *names, timeout_ms=timeout_ms)  # type: ignore[misc, arg-type]
                    callers.append((begun, cluster.timers.now_ms + timeout_ms))  # type: ignore[operator]
                case "advance", [milliseconds]:
                    cluster.turns.advance(milliseconds)  # type: ignore[arg-type]
                case "propagation", [milliseconds]:
                    Operations(cluster).set_propagation(milliseconds)  # type: ignore[arg-type]
                case "hold", _:
                    Operations(cluster).hold_elections()
                case "release", _:
                    Operations(cluster).release_elections()
                case "move", _:
                    Operations(cluster).stop_broker(1)
                    Operations(cluster).start_broker(1)
                    Operations(cluster).join_isr(("foo", 0), 1)
                    Operations(cluster).join_isr(("bar", 0), 1)
                case "withdraw", _ if callers:
                    cluster.elections.withdraw(callers[-1][0])
                case "failover", _:
                    Operations(cluster).failover(2 if cluster.state.controller_id == 3 else 3)
        except ClusterError:
            pass
        for each, deadline in callers:
            old = before.get(id(each))
            assert old is None or each.result is old
            assert each.result is not None or cluster.timers.now_ms < deadline
    waiting = [deadline for each, deadline in callers if each.result is None]
    due = cluster.timers.next_due_ms
    assert (due is None) == (not waiting)
    assert due is None or cluster.timers.now_ms < due <= min(waiting)
    if profile_name == FLAGGED:
        marks = queue_log(cluster)
        pairs = [marks[i : i + 2] for i in range(0, len(marks), 2)]
        assert all(len(p) == 1 or p[0][1:] == p[1][1:] for p in pairs), marks
    state = cluster.state
    assert replay(cluster.state.cluster_id, cluster.log) == state
    cluster.turns.advance(1000)
    assert all(each.result is not None for each, _ in callers)
    assert cluster.timers.next_due_ms is None
