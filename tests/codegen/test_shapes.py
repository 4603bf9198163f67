"""Runs of structs of one shape, broken at every place, read as one by one would be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codec import interpreter
from kproto.codec.registry import decoder, plan_of, structs_of
from kproto.codegen import shapes
from kproto.errors import DecodeError
from kproto.messages import LeaderAndIsrRequest, MetadataResponse
from kproto.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrTopicState,
)
from kproto.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from tests.support import engines

ids = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4)
replicas = st.one_of(st.just([1, 2, 3]), ids)
partitions = st.builds(
    MetadataResponsePartition,
    partition_index=st.integers(0, 99),
    replica_nodes=replicas,
    isr_nodes=replicas,
    unknown_tags=st.one_of(st.just({}), st.just({}), st.just({7: b"x"})),
)


@given(st.lists(st.lists(partitions, max_size=12), max_size=4), st.data())
def test_runs_of_mixed_shapes(topics, data):
    message = MetadataResponse(
        topics=[MetadataResponseTopic(name="t", partitions=items) for items in topics]
    )
    body = message.encode(9)
    assert MetadataResponse.decode(body, 9) == message
    plan = plan_of(MetadataResponse, 9).root
    assert interpreter.encode(plan, structs_of(MetadataResponse), message) == body
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(DecodeError):
        MetadataResponse.decode(body[:cut], 9)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=12))
def test_runs_with_int32_counts(rows: list[tuple[list[int], list[int]]]) -> None:
    states = [LeaderAndIsrPartitionState(isr=isr, adding_replicas=adding) for isr, adding in rows]
    topic = LeaderAndIsrTopicState(topic_name="t", partition_states=states)
    message = LeaderAndIsrRequest(topic_states=[topic])
    assert LeaderAndIsrRequest.decode(message.encode(3), 3) == message


@pytest.mark.parametrize("count", [2, 3, 7, 50, pytest.param(300, marks=pytest.mark.slow)])
@given(st.data())
def test_a_few_of_another_shape_among_many(count: int, data: st.DataObject) -> None:
    """As in a cluster with some partitions under-replicated: the runs between are read at once,
    long ones in pieces, and no element is lost, repeated or moved."""
    odd = data.draw(st.sets(st.integers(0, count - 1), max_size=6))
    states = [
        LeaderAndIsrPartitionState(
            partition_index=index, isr=[1, 2] if index in odd else [1, 2, 3], replicas=[1, 2, 3]
        )
        for index in range(count)
    ]
    topics = [LeaderAndIsrTopicState(topic_name="t", partition_states=states)] * 2
    message = LeaderAndIsrRequest(topic_states=topics)
    body = message.encode(3)
    assert LeaderAndIsrRequest.decode(body, 3) == message
    for cut in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=3)):
        with pytest.raises(DecodeError):
            LeaderAndIsrRequest.decode(body[:cut], 3)


def test_shapes_from_outside_are_bounded() -> None:
    """However many shapes bytes bring, only so many are compiled; the rest is read all the same."""
    rows = [
        [MetadataResponsePartition(replica_nodes=[1] * a, isr_nodes=[2] * b)] * 6
        for a in range(9)
        for b in range(9)
    ]
    assert len(rows) > shapes.MAX_SHAPES
    message = MetadataResponse(
        topics=[MetadataResponseTopic(name="t", partitions=items) for items in rows]
    )
    with engines.running("pure"):  # the native engine compiles nothing for a shape
        assert MetadataResponse.decode(message.encode(9), 9) == message
        runs = decoder(MetadataResponse, 9).__globals__["runs"]  # type: ignore[attr-defined]
    assert 1 < len(runs["MetadataResponsePartition"].known) <= shapes.MAX_SHAPES
