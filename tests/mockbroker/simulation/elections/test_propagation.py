"""Brokers that hear of changes later, and answers that wait for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulation.elections.clusters import QUEUED, electable, pending, start


@pytest.mark.requirement("K183-14")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_an_election_is_told_when_the_broker_shows_it(profile_name: str) -> None:
    cluster = electable(profile_name)
    Operations(cluster).set_propagation(200)
    started = start(cluster, "foo", timeout_ms=1000)
    assert cluster.topics.partition("foo", 0).leader == 1, "the controller knows at once"
    assert cluster.timers.next_due_ms == cluster.timers.now_ms + 200
    cluster.turns.advance(199)
    assert pending(started)
    assert cluster.controller.metadata_view(3).topics["foo"].partitions[0].leader == 2
    cluster.turns.advance(1)
    assert cluster.controller.metadata_view(3).topics["foo"].partitions[0].leader == 1
    assert started.result is not None
    assert started.result.topics[0].partitions[0].error_code == 0


@pytest.mark.requirement("K183-12", "K183-14")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_too_late_is_too_late_even_in_one_stride(profile_name: str) -> None:
    """Time-out at 150, news at 200: whoever moves the clock to 1000 at once changes nothing."""
    cluster = electable(profile_name)
    Operations(cluster).set_propagation(200)
    started = start(cluster, "foo", timeout_ms=150)
    cluster.turns.advance(1000)
    assert started.result is not None
    assert started.result.topics[0].partitions[0].error_code == 7
    assert started.result.topics[0].partitions[0].error_message is None


@pytest.mark.requirement("K183-14")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_it_is_the_broker_that_was_asked_who_has_to_show_it(profile_name: str) -> None:
    cluster = electable(profile_name)
    Operations(cluster).hold_metadata(3)
    started = start(cluster, "foo", timeout_ms=1000)
    assert start(cluster, "bar", broker_id=2).result is not None
    assert pending(started)
    Operations(cluster).release_metadata(3)
    assert started.result is not None


def test_kraft_answers_at_once() -> None:
    cluster = electable("kafka-4.4")
    Operations(cluster).set_propagation(200)
    Operations(cluster).hold_metadata(3)
    assert start(cluster, "foo").result is not None


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("advance"), st.integers(0, 60)),
            st.tuples(st.just("delay"), st.integers(0, 60)),
            st.tuples(st.just("move"), st.integers(1, 3)),
            st.tuples(st.just("hold"), st.integers(1, 3)),
        ),
        max_size=30,
    )
)
def test_what_each_broker_knows(steps: list[tuple[str, int]]) -> None:
    """Against the plain definition: all that was so at some moment at least the delay ago, and
    nothing that a broker ever knew is forgotten."""
    cluster = Cluster(3, topics=["foo=1,2,3"])
    epochs = [
        (cluster.timers.now_ms, cluster.state.controller_epoch)
    ]  # of every change, when it came to be
    delay, known = 0, cluster.state.controller_epoch
    held: dict[int, int] = {}
    for name, value in steps:
        if name == "advance":
            cluster.turns.advance(value)
        elif name == "delay":
            Operations(cluster).set_propagation(value)
            delay = value
        elif name == "move":
            if cluster.state.controller_id == value:
                continue
            Operations(cluster).failover(value)
            epochs.append((cluster.timers.now_ms, cluster.state.controller_epoch))
        elif value in held:
            Operations(cluster).release_metadata(value)
            del held[value]
        else:
            Operations(cluster).hold_metadata(value)
            held[value] = known
        last = dict(epochs)
        arrived = [epoch for at, epoch in last.items() if at + delay <= cluster.timers.now_ms]
        known = max(known, *arrived) if arrived else known
        for broker_id in (1, 2, 3):
            view = cluster.controller.metadata_view(broker_id)
            expected = held.get(broker_id, known)
            assert cluster_epoch(cluster, view.offset) == expected
    assert replay(cluster.state.cluster_id, cluster.log) == cluster.state


def cluster_epoch(cluster: Cluster, offset: int) -> int:
    """The controller epoch after that many actions."""
    return replay(cluster.state.cluster_id, cluster.log.since(0)[:offset]).controller_epoch
