"""A controller that dies in the midst of an election, wherever that is: nothing of it lies about.

Found by ``fuzz.stateful``: one that died while it enqueued an election left one in the queue that
the log knew nothing of, and every later step failed. Read in the code when the fuzz was written:
one that died when it had held it left the flag of KIP-183 set for good; and whoever had just been
given the flag was forgotten.
"""

from collections.abc import Callable

import pytest

from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_state import replay
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.elections.clusters import (
    MACHINES,
    QUEUED,
    electable,
    pending,
    start,
)


@pytest.mark.requirement("K183-05")
@pytest.mark.parametrize("profile_name", QUEUED)
def test_wherever_it_dies_the_next_holds_elections(profile_name: str) -> None:
    """After each number of changes in turn, up to one that is too many for it to die of."""
    changes = 0
    while _dies_of_an_election(profile_name, changes):
        changes += 1
    assert changes > 2


def _dies_of_an_election(profile_name: str, changes: int) -> bool:
    cluster = electable(profile_name)
    Operations(cluster).kill_controller_after(changes)
    try:
        start(cluster, "foo")
    except ControllerDiedError:
        died = True
    else:
        died = False
    Operations(cluster).kill_controller_after(1_000)
    assert cluster.brokers[3].live is not died
    assert replay(cluster.state.cluster_id, cluster.log).elections == {}, "the flag is cleared"
    assert start(cluster, "bar").result is not None, "and nobody waits for it"
    return died


@pytest.mark.requirement("K183-05")
def test_who_was_about_to_get_the_flag_is_told_to_ask_the_next() -> None:
    cluster = electable()
    Operations(cluster).hold_elections()
    first, second = start(cluster, "foo"), start(cluster, "bar")
    # The release, foo's new leader, and that it was held; it dies as bar's is enqueued.
    Operations(cluster).kill_controller_after(3)
    with pytest.raises(ControllerDiedError):
        Operations(cluster).release_elections()
    assert not pending(first)
    assert not pending(second)


@pytest.mark.parametrize("reassignment", ["kraft", *MACHINES])
def test_whatever_it_dies_of_it_is_succeeded(reassignment: str) -> None:
    """Access rules and auto-progress are changes like any other: the broker is stopped, and another
    takes over."""
    binding = AclBinding(2, "foo", 3, "User:a", "*", 3, 3)
    steps: list[Callable[[Cluster], object]] = [
        lambda cluster: cluster.auto_progress.set_interval(5),
        lambda cluster: cluster.acls.create([binding]),
    ]
    for step in steps:
        cluster = simulated_cluster(3, topics=["foo=1,2,3"], reassignment=reassignment)
        Operations(cluster).kill_controller_after(0)
        with pytest.raises(ControllerDiedError):
            step(cluster)
        assert not cluster.brokers[1].live
        assert cluster.state.controller_id == 2
