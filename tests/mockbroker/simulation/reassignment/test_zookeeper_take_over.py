"""What a new controller makes of what it finds, wherever the one before it stopped."""

import contextlib
import json
from collections.abc import Callable

import pytest

from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LeaderAndIsrSent, ZnodeWritten
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.walks import warnings
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    PLAN,
    STATE,
    TOPIC,
    ZK,
    alter,
    cluster_of,
    listed,
    planned,
    shape,
    story,
    submit,
)

BAR = ("bar", 0)


@pytest.mark.requirement("K455-38")
def test_a_new_controller_resumes_what_the_topic_znodes_say_and_tells_it_anew() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 5, 6])
    Operations(cluster).join_isr(FOO, 4)
    before, epoch = listed(cluster), cluster.state.controller_epoch
    since = len(cluster.log)
    Operations(cluster).failover(2)
    assert listed(cluster) == before
    assert cluster.state.controller_epoch == epoch + 1
    assert shape(cluster) == ([4, 5, 6, 1, 2, 3], [1, 2, 3, 4], 1, 2)
    told = [a.change for a in cluster.log.since(since) if isinstance(a.change, LeaderAndIsrSent)]
    assert {(to, each.is_new) for each in told for to in each.to} == {
        (1, False), (2, False), (3, False), (4, True), (5, True), (6, True)
    }  # fmt: skip
    assert {(each.leader_epoch, each.adding, each.removing) for each in told} == {
        (2, (4, 5, 6), (1, 2, 3))
    }
    # Nobody is started twice: the new replicas are known to be.
    assert len([line for line in story(cluster, since) if line.startswith("LeaderAndIsr new")]) == 1
    for broker in (5, 6):
        Operations(cluster).join_isr(FOO, broker)
    assert shape(cluster)[:3] == ([4, 5, 6], [4, 5, 6], 4)


@pytest.mark.requirement("K455-26")
def test_the_list_is_the_controllers_memory_until_another_takes_over() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 5, 6])
    before = listed(cluster)
    Operations(cluster).write_znode(TOPIC, '{"version":3,"partitions":{"0":[1,2,3]}}')
    assert listed(cluster) == before
    Operations(cluster).failover(2)
    assert listed(cluster) == {}


@pytest.mark.requirement("K455-38", "K455-39")
def test_the_plan_comes_first_and_supplants_what_was_asked_for() -> None:
    """Written while no controller looked: here while the watch was used up."""
    cluster = cluster_of("foo=1,2,3", "bar=1,2")
    submit(cluster, {FOO: [3, 4]})
    alter(cluster, [5, 1], BAR)
    submit(cluster, {FOO: [3, 4], BAR: [6, 1]})
    since = len(cluster.log)
    Operations(cluster).failover(2)
    assert listed(cluster) == {BAR: ([6, 1, 2], [6], [2]), FOO: ([3, 4, 1, 2], [4], [1, 2])}
    assert planned(cluster) == {FOO: [3, 4], BAR: [6, 1]}
    # Once each: what the plan has started is not resumed again.
    raised = [line for line in story(cluster, since) if line.startswith("state znode")]
    assert len(raised) == 1
    stopped = [line for line in story(cluster, since, "bar") if line.startswith("StopReplica")]
    assert stopped == ["StopReplica to 5", "StopReplica delete to 5"]


@pytest.mark.requirement("K455-63")
def test_what_is_in_no_plan_is_resumed_after_it() -> None:
    cluster = cluster_of("foo=1,2,3", "bar=1,2")
    submit(cluster, {FOO: [3, 4]})
    alter(cluster, [5, 1], BAR)
    since = len(cluster.log)
    Operations(cluster).failover(2)
    changed = [
        a.change.path
        for a in cluster.log.since(since)
        if isinstance(a.change, ZnodeWritten)
        and a.change.path.endswith("/state")
        and a.cause != "zookeeper"
    ]
    assert changed == [STATE, STATE.replace("foo", "bar")]


@pytest.mark.requirement("K455-38")
def test_a_new_controller_elects_before_it_resumes() -> None:
    """The dead one led, and could not be told of anything. Replicas that are gone come first."""
    cluster = cluster_of()
    alter(cluster, [4, 2])
    since = len(cluster.log)
    Operations(cluster).stop_broker(1)
    states = [line for line in story(cluster, since) if line.startswith("state znode")]
    assert states == [
        "state znode isr 2,3 -1@2", "state znode isr 2,3 2@3", "state znode isr 2,3 2@4"
    ]  # fmt: skip
    told = [line for line in story(cluster, since) if line.startswith("LeaderAndIsr to")]
    assert told[:2] == [
        "LeaderAndIsr to 4,2,3 4,2,1,3+4-1,3 isr 2,3 -1@2",
        "LeaderAndIsr to 4,2,3 4,2,1,3+4-1,3 isr 2,3 2@3",
    ]
    assert "UpdateMetadata to 2,3,4,5,6 4,2,1,3 isr 2,3 2@3" in story(cluster, since)


@pytest.mark.requirement("K455-38")
def test_no_leader_on_record_is_none() -> None:
    cluster = cluster_of("foo=4")
    Operations(cluster).stop_broker(4)
    Operations(cluster).failover(2)
    assert shape(cluster) == ([4], [4], -1, 2)
    Operations(cluster).write_znode(
        STATE, cluster.state.znodes[STATE].replace('"isr":[4]', '"isr":[4,5]')
    )
    Operations(cluster).failover(3)
    assert cluster.topics.partition(*FOO).leader == -1


# ---- znodes that cannot be read ------------------------------------------------------------------


@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "\ud800", "[" * 100_000, '{"version":3}', '{"partitions":{"0":4}}',
        '{"partitions":{"0":[1,1]}}', '{"partitions":{"0":[]}}',
        '{"partitions":{"0":[1,2]},"removing_replicas":{"0":[1,2]}}',
    ],
)  # fmt: skip
def test_an_unreadable_topic_znode_changes_nothing_and_the_log_says_so(text: str) -> None:
    cluster = cluster_of()
    alter(cluster, [4, 5, 6])
    before = listed(cluster)
    Operations(cluster).write_znode(TOPIC, text)
    Operations(cluster).failover(2)
    assert listed(cluster) == before
    assert warnings(cluster)[-1].startswith(f"{TOPIC}: ")
    assert warnings(cluster)[-1].endswith("; the replicas stay as they were known")
    for broker in (4, 5, 6):
        Operations(cluster).join_isr(FOO, broker)
    assert shape(cluster)[:2] == ([4, 5, 6], [4, 5, 6])
    assert json.loads(cluster.state.znodes[TOPIC])["partitions"] == {"0": [4, 5, 6]}


@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize("text", ["", "{", "[]", "\ud800", '{"leader":1}', '{"isr":[true]}'])
def test_an_unreadable_state_znode_changes_nothing_and_the_log_says_so(text: str) -> None:
    cluster = cluster_of()
    alter(cluster, [4, 2])
    before = listed(cluster)
    Operations(cluster).write_znode(STATE, text)
    Operations(cluster).failover(2)
    assert listed(cluster) == before
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{STATE}: ")
    assert warning.endswith("; it stays as it was known")
    Operations(cluster).join_isr(FOO, 4)
    assert shape(cluster)[0] == [4, 2]


@pytest.mark.requirement("K455-38")
def test_an_unreadable_plan_lets_the_rest_resume() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 2])
    Operations(cluster).write_znode(PLAN, "{")
    Operations(cluster).failover(2)
    assert shape(cluster)[3] == 2
    assert all(text.startswith(f"{PLAN}: ") for text in warnings(cluster))


# ---- a cluster that comes up on what another left ------------------------------------------------


@pytest.mark.requirement("K455-38")
def test_a_cluster_that_comes_up_resumes_what_it_finds() -> None:
    tree = ZnodeTree()

    def start(*topics: str) -> Cluster:
        store = EmbeddedStore(tree, lambda: 0)
        cluster = simulated_cluster(6, topics=topics, reassignment=ZK, znodes=store)
        stores.append(store)
        return cluster

    stores: list[EmbeddedStore] = []
    first = start("foo=1,2,3", "bar=1,2")
    alter(first, [4, 5, 6])
    submit(first, {BAR: [3]})
    before = listed(first)
    stores[0].close()
    second = start()
    assert listed(second) == before
    assert planned(second) == {BAR: [3]}
    Operations(second).join_isr(BAR, 3)
    for broker in (4, 5, 6):
        Operations(second).join_isr(FOO, broker)
    assert shape(second)[:2] == ([4, 5, 6], [4, 5, 6])
    assert shape(second, BAR)[:2] == ([3], [3])
    assert planned(second) is None


# ---- a controller that dies in the midst ---------------------------------------------------------


def _start(cluster: Cluster) -> None:
    alter(cluster, [4, 5, 6])


def _cancel(cluster: Cluster) -> None:
    alter(cluster, None)


def _change(cluster: Cluster) -> None:
    alter(cluster, [4, 6, 2])


def _submit(cluster: Cluster) -> None:
    submit(cluster, {FOO: [4, 5, 6]})


def _join_last(cluster: Cluster) -> None:
    Operations(cluster).join_isr(FOO, 6)


def _finish(cluster: Cluster) -> None:
    for broker in cluster.topics.partition(*FOO).target or ():
        if (
            cluster.topics.partition(*FOO).reassigning
            and broker in cluster.topics.partition(*FOO).replicas
        ):
            Operations(cluster).join_isr(FOO, broker)


def _idle(_: Cluster) -> None:
    pass


def _in_flight(cluster: Cluster) -> None:
    alter(cluster, [4, 5, 6])
    Operations(cluster).join_isr(FOO, 4)
    Operations(cluster).join_isr(FOO, 5)


def _planned(cluster: Cluster) -> None:
    submit(cluster, {FOO: [4, 5, 6]})
    Operations(cluster).join_isr(FOO, 4)
    Operations(cluster).join_isr(FOO, 5)


Step = Callable[[Cluster], None]

SCENES: dict[str, tuple[Step, Step, list[list[int]]]] = {
    "a start": (_idle, _start, [[1, 2, 3], [4, 5, 6]]),
    "a start by znode": (_idle, _submit, [[1, 2, 3], [4, 5, 6]]),
    "the end": (_in_flight, _join_last, [[4, 5, 6]]),
    "the end of a plan": (_planned, _join_last, [[4, 5, 6]]),
    "a change": (_in_flight, _change, [[4, 5, 6], [4, 6, 2]]),
    "a cancellation": (_in_flight, _cancel, [[4, 5, 6], [1, 2, 3]]),
    "a cancellation of a plan": (_planned, _cancel, [[4, 5, 6], [1, 2, 3]]),
}
"""What happened before, what the controller dies in, which replicas it may come to in the end: as
if what it died in had been asked for, or never."""


@pytest.mark.requirement("K455-38", "K455-42")
@pytest.mark.parametrize("scene", SCENES)
def test_wherever_a_controller_dies_the_next_brings_it_to_an_end(scene: str) -> None:
    """Its last write stands or never was, so the end is that of the request or that of the state
    before it. The one exception is below."""
    before, step, ends = SCENES[scene]
    deaths = 0
    while _dies(before, step, ends, deaths):
        deaths += 1
    assert deaths > 3


def _dies(before: Step, step: Step, ends: list[list[int]], after: int) -> bool:
    """Whether the controller died before the step was done."""
    cluster = simulated_cluster(6, topics=["foo=1,2,3"], reassignment=ZK, cluster_id="c")
    Operations(cluster).failover(2)
    before(cluster)
    Operations(cluster).failover(3)
    Operations(cluster).kill_controller_after(after)
    try:
        step(cluster)
    except ControllerDiedError:
        died = True
    else:
        died = False
    if not died:
        return False
    assert cluster.state.controller_id == 1
    Operations(cluster).start_broker(3)
    if 3 in cluster.topics.partition(*FOO).replicas:
        Operations(cluster).join_isr(FOO, 3)
    _finish(cluster)
    if step is _cancel and _forgot_whom_to_stop(cluster):
        assert alter(cluster, [1, 2, 3]) == (0, None)
    replicas, isr, leader, _ = shape(cluster)
    assert sorted(replicas) in [sorted(each) for each in ends], after
    assert set(isr) == set(replicas), after
    assert leader in isr
    assert listed(cluster) == {}
    written = json.loads(cluster.state.znodes[TOPIC])
    assert written["partitions"] == {"0": replicas}
    assert written["adding_replicas"] == written["removing_replicas"] == {}
    assert json.loads(cluster.state.znodes[STATE])["isr"] == isr
    assert planned(cluster) is None
    assert replay("c", cluster.log).topics == cluster.topics
    return True


def _forgot_whom_to_stop(cluster: Cluster) -> bool:
    """The replicas are those of the cancellation, and others are still in sync."""
    return cluster.topics.partition(*FOO).replicas == (1, 2, 3) and bool(
        set(cluster.topics.partition(*FOO).isr) - {1, 2, 3}
    )


@pytest.mark.requirement("K455-38", "K455-42")
@pytest.mark.parametrize(
    ("reassignment", "left_in_the_isr"),
    [
        ("zookeeper-2.8", {1: (1, 2, 4, 5), 2: (1, 2, 4, 5), 3: (1, 2, 5), 4: (1, 2, 5)}),
        (ZK, {1: (1, 2), 2: (1, 2), 3: (1, 2), 4: (1, 2)}),
    ],
)
def test_what_a_cancellation_drops_is_forgotten_between_two_writes(reassignment, left_in_the_isr):
    """Kafka's own gap. The topic's znode is all that says what was being added; it is written
    first, and then those that go leave the ISR. Where a controller dies between the two, nobody is
    told to delete the copies. A leader to which its successor gives another epoch, as here for the
    sake of the dead follower, takes them out of the ISR, but for 2.4 to 2.8; there they
    have to become replicas first, and to be removed again."""
    for after, left in left_in_the_isr.items():
        cluster = simulated_cluster(6, topics=["foo=1,2,3"], reassignment=reassignment)
        _in_flight(cluster)
        Operations(cluster).failover(3)
        since = len(cluster.log)
        Operations(cluster).kill_controller_after(after)
        with contextlib.suppress(ControllerDiedError):
            _cancel(cluster)
        assert cluster.topics.partition(*FOO).replicas == (1, 2, 3)
        assert cluster.topics.partition(*FOO).isr == left
        assert not any(line.startswith("StopReplica") for line in story(cluster, since))
        assert listed(cluster) == {}
        assert alter(cluster, None)[0] == 85
        assert alter(cluster, [1, 2, 3]) == (0, None)
        assert cluster.topics.partition(*FOO).isr == left
        assert alter(cluster, [1, 2, *left[2:]]) == (0, None)
        assert alter(cluster, [1, 2]) == (0, None)
        assert cluster.topics.partition(*FOO).isr == (1, 2)


@pytest.mark.requirement("K455-38")
def test_a_leader_that_is_given_no_other_epoch_keeps_what_was_added_in_the_isr() -> None:
    """It passes over a LeaderAndIsr with the epoch that it has, and what that says of replicas."""
    cluster = cluster_of()
    _in_flight(cluster)
    Operations(cluster).failover(6)
    Operations(cluster).kill_controller_after(1)
    with pytest.raises(ControllerDiedError):
        _cancel(cluster)
    assert shape(cluster) == ([1, 2, 3], [1, 2, 3, 4, 5], 1, 2)
    Operations(cluster).leave_isr(FOO, 3)
    Operations(cluster).stop_broker(2)
    assert shape(cluster)[:2] == ([1, 2, 3], [1])
