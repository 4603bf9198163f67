"""The work of a change does not grow faster than what changes. Work is counted, never timed."""

import gc
import sys
import uuid
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Partition, Topic
from tests.support.steps import MOST_GROWTH, growth_of

TOPIC_ID = uuid.UUID(int=1)
SIZES = [0, 1, 127, 128, 129, 255, 256, 257, 1000]


def partition(index: int, epoch: int = 0) -> Partition:
    return Partition(index, (1, 2), (1, 2), 1, leader_epoch=epoch)


def topic(size: int) -> Topic:
    return Topic("foo", TOPIC_ID, tuple(map(partition, range(size))))


def calls(step: Callable[[], object]) -> int:
    """How many functions of Python the step calls."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    gc.collect()
    gc.disable()  # so that no finalizer is counted
    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


# ---- topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_a_topic_finds_its_partitions(size: int) -> None:
    found = topic(size)
    assert found.partitions == tuple(map(partition, range(size)))
    assert [found.partition(index) for index in range(size)] == list(found.partitions)
    outside = (-1, -size, size, size + 1, 10 * size + 128)
    assert [found.partition(index) for index in outside if not 0 <= index < size] == [
        None for index in outside if not 0 <= index < size
    ]


@given(size=st.sampled_from(SIZES[1:]), data=st.data())
def test_a_changed_topic_is_the_topic_with_other_partitions(size: int, data: st.DataObject) -> None:
    changed, expected = topic(size), list(map(partition, range(size)))
    places = data.draw(st.lists(st.integers(0, size - 1), max_size=5))
    for epoch, index in enumerate(places, start=1):
        former, kept = changed, changed.partitions
        expected[index] = partition(index, epoch)
        changed = changed.with_partition(expected[index])
        assert former.partitions == kept, "a topic never changes"
        assert changed.partition(index) == expected[index]
    whole = Topic("foo", TOPIC_ID, tuple(expected))
    assert changed == whole
    assert hash(changed) == hash(whole)
    assert repr(changed) == repr(whole)
    assert changed.partitions == whole.partitions
    assert (changed == topic(size)) is not bool(places)


def test_topics_differ_by_name_and_id() -> None:
    found = topic(3)
    assert found != Topic("bar", TOPIC_ID, found.partitions)
    assert found != Topic("foo", uuid.UUID(int=2), found.partitions)
    assert found != found.partitions


def test_a_changed_topic_shares_the_partitions_that_did_not_change() -> None:
    before = topic(1000)
    after = before.with_partition(partition(500, epoch=1))
    pairs = list(zip(before._chunks, after._chunks, strict=True))
    assert [one is other for one, other in pairs].count(False) == 1
    assert max(map(len, after._chunks)) <= 128


# ---- steps ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_work_of_stopping_a_broker_grows_as_its_partitions() -> None:
    work = {}
    for size in (250, 500, 1000):
        cluster = Cluster(3, topics=[f"foo:{size}:3"])
        work[size] = calls(lambda cluster=cluster: Operations(cluster).stop_broker(3))  # type: ignore[misc]
        changed = [each for each in cluster.topics["foo"].partitions if each.isr != (1, 2, 3)]
        assert len(changed) == size
    assert work[500] - work[250] == pytest.approx((work[1000] - work[500]) / 2, rel=0.02)
    assert work[1000] / 1000 < 60


@pytest.mark.slow
def test_the_work_of_a_step_does_not_grow_with_the_cluster() -> None:
    work = []
    for topics in (1, 200):
        cluster = Cluster(4, topics=[f"t{number}:2:3" for number in range(topics)])
        work.append(calls(lambda cluster=cluster: Operations(cluster).leave_isr(("t0", 0), 3)))  # type: ignore[misc]
        assert cluster.topics.partition("t0", 0).isr == (1, 2)
    assert work[0] == work[1]


def test_the_work_of_deleting_topics_grows_as_their_number() -> None:
    """Each is named by its name and by its id, which Kafka 4.4.0 refuses."""

    def prepare(size: int) -> Callable[[], object]:
        cluster = Cluster(1, topics=[f"t{number}:1:1" for number in range(size)])
        ids = [(None, topic.topic_id) for topic in cluster.topics.values()]
        names = [(name, ZERO_UUID) for name in cluster.topics]
        return lambda: cluster.topics.delete([*names, *ids])

    assert growth_of(prepare, 200).factor <= MOST_GROWTH


def test_a_step_leaves_other_topics_as_they_are() -> None:
    cluster = Cluster(4, topics=["foo:200:3", "bar:200:3"])
    before = dict(cluster.topics)
    Operations(cluster).leave_isr(("foo", 0), 3)
    assert cluster.topics["bar"] is before["bar"]
    expected = replace(before["foo"].partitions[0], isr=(1, 2), partition_epoch=1)
    assert cluster.topics["foo"].partitions == (expected, *before["foo"].partitions[1:])
