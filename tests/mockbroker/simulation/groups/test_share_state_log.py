"""The records of share states in ``__share_group_state``, as a consumer of the topic reads them."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from kproto.records import RecordBatches
from mockbroker import MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import share_text
from mockbroker.simulation.groups.share.share_state_log import LoggedState
from mockbroker.simulation.groups.share.share_states import ShareStateError, StoredState
from mockbroker.simulation.groups.share.stored_batches import StateBatch, WrittenState, combine
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.groups.sharers import Sharers
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

TOPIC: Final = "__share_group_state"
UPDATES: Final = "share.coordinator.snapshot.update.records.per.snapshot"
CLASSES: Final = {0: (ShareSnapshotKey, ShareSnapshotValue), 1: (ShareUpdateKey, ShareUpdateValue)}


def records_in(data: bytes) -> list[tuple[Any, Any]]:
    """Decode keys and values; None for a deletion."""
    found = []
    for batch in RecordBatches(data):
        for record in batch:
            assert record.key is not None
            key_class, value_class = CLASSES[int.from_bytes(record.key[:2], "big")]
            value = None
            if record.value is not None:
                assert record.value[:2] == b"\0\0"
                value = value_class.decode(record.value[2:], 0)
            found.append((key_class.decode(record.key[2:], 0), value))
    return found


def records(cluster: Cluster) -> list[tuple[Any, Any]]:
    """The records of all partitions of the topic; the keys of a state have the same partition."""
    found = []
    topic = cluster.topics.get(TOPIC)
    for each in topic.partitions if topic is not None else ():
        log = cluster.logs.log((TOPIC, each.index))
        data = log.read(log.start_offset, log.end_offset, 1 << 30, at_least_one=True)
        found += records_in(b"".join(data))
    return found


def replayed(found: list[tuple[Any, Any]]) -> dict[int, LoggedState]:
    """What a coordinator knows after loading the records, by partition."""
    states: dict[int, LoggedState] = {}
    for key, value in found:
        if value is None:
            states.pop(key.partition)
            continue
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state,
                       each.delivery_count) for each in value.state_batches
        ]  # fmt: skip
        if isinstance(value, ShareSnapshotValue):
            assert isinstance(key, ShareSnapshotKey)
            states[key.partition] = LoggedState(
                value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset,
                value.delivery_complete_count, batches,
            )  # fmt: skip
            continue
        state = states[key.partition]
        assert state.snapshot_epoch == value.snapshot_epoch
        state.leader_epoch, state.start_offset = value.leader_epoch, value.start_offset
        state.complete = value.delivery_complete_count
        state.batches = combine([*state.batches, *batches], state.start_offset)
        state.updates += 1
    return states


_OFFSET = st.integers(0, 8)
_BATCHES = st.lists(
    st.builds(
        lambda first, length, state, count: StateBatch(first, first + length, state, count),
        _OFFSET, st.integers(0, 3), st.sampled_from([0, 2, 4]), st.integers(1, 3),
    ),
    max_size=3,
)  # fmt: skip
_STEP = st.one_of(
    st.tuples(st.just("initialize"), st.integers(0, 2), st.integers(-1, 4)),
    st.tuples(st.just("read"), st.integers(0, 3)),
    st.tuples(st.just("write"), st.integers(0, 3), st.integers(-1, 9), st.integers(0, 4), _BATCHES),
    st.tuples(st.just("delete")),
)


@pytest.mark.requirement("DP-SHARE-45")
@given(st.lists(st.tuples(st.integers(0, 1), _STEP), max_size=14), st.integers(0, 3))
def test_the_records_add_up_to_the_state(steps, per_snapshot):
    configs = {UPDATES: str(per_snapshot), "share.coordinator.state.topic.num.partitions": "1"}
    cluster = simulated_cluster(1, topics=["foo:2:1"], broker_configs=configs)
    topic_id, states = cluster.topics["foo"].topic_id, cluster.share_states
    for index, (name, *arguments) in steps:
        if name == "initialize":
            states.initialize("g", topic_id, index, *arguments)
        elif name == "read":
            states.read("g", topic_id, index, *arguments)
        elif name == "write":
            leader, *written = arguments
            states.write("g", topic_id, index, leader, 2, WrittenState(*written))
        else:
            states.delete("g", topic_id, index)
    found = records(cluster)
    known = replayed(found)
    for index in (0, 1):
        summary = states.summary("g", topic_id, index)
        assert not isinstance(summary, ShareStateError)
        state = known.get(index)
        assert (state is None) == (summary is None)
        if state is not None and summary is not None:
            assert summary == StoredState(
                state.state_epoch, state.leader_epoch, state.start_offset, state.complete,
                state.batches,
            )  # fmt: skip
            assert state.updates <= per_snapshot
    assert all((key.group_id, key.topic_id) == ("g", topic_id) for key, _ in found)


@pytest.mark.requirement("DP-SHARE-45")
@pytest.mark.parametrize(
    ("release", "count"), [((4, 0), None), ((4, 1), -1), ((4, 2), 0), ((4, 4), 0)]
)
def test_records_by_release(release: tuple[int, int], count: int | None) -> None:
    cluster = simulated_cluster(1, release=release, topics=["foo:1:1"], now_ms=7)
    cluster.share_states.initialize("g", cluster.topics["foo"].topic_id, 0, 1, 5)
    assert [
        (value.state_epoch, value.start_offset, value.delivery_complete_count,
         value.create_timestamp, value.write_timestamp)
        for _, value in records(cluster)
    ] == ([] if count is None else [(1, 5, count, 7, 7)])  # fmt: skip


@pytest.mark.requirement("DP-SHARE-45")
def test_what_members_acknowledge_is_recorded() -> None:
    at = Sharers(topics=("foo:1:1",))
    at.settle("m")
    at.append(4)
    at.fetch("m")
    assert [type(value) for _, value in records(at.cluster)] == [ShareSnapshotValue]
    at.ack("m", (0, 0, [1]), (1, 1, [2]), (2, 2, [3]))
    (_, snapshot), (_, update) = records(at.cluster)
    assert (snapshot.start_offset, snapshot.delivery_complete_count) == (-1, -1)
    assert (update.start_offset, update.delivery_complete_count) == (0, 2)
    assert [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in update.state_batches
    ] == [(0, 0, 2, 1), (1, 1, 0, 1), (2, 2, 4, 1)]


async def fetched(wire: Wire, index: int) -> list[tuple[Any, Any]]:
    part = {"partition": index, "partition_max_bytes": 1 << 20}
    topic = {"topic": TOPIC, "partitions": [part]}
    answer = await wire.ask("Fetch", 12, max_bytes=1 << 20, topics=[topic])
    return records_in(answer.responses[0].partitions[0].records or b"")


@pytest.mark.requirement("DP-SHARE-45", "DP-COORD-04")
async def test_states_move_with_their_coordinator() -> None:
    """14 while it loads, 16 at the former one; the records are the same everywhere."""
    configs = {"share.coordinator.state.topic.num.partitions": "1"}
    async with MockCluster(2, topics=["foo:1:2"], broker_configs=configs) as mock:
        topic_id = mock.cluster.topics["foo"].topic_id
        key = share_text("g", topic_id, 0)
        read = request_of("ReadShareGroupState", group_id="g", topic_id=topic_id, leader_epoch=3)

        async def code(wire: Wire) -> int:
            return int((await wire.ask(read, 0)).results[0].partitions[0].error_code)

        mock.cluster.share_states.initialize("g", topic_id, 0, 1, 5)
        async with connect(mock, 1) as first, connect(mock, 2) as second:
            wires = {1: first, 2: second}
            find = request_of("FindCoordinator", key_type=2, coordinator_keys=[key])
            (found,) = (await first.ask(find, 6)).coordinators
            old, new = wires.pop(found.node_id), wires.popitem()
            assert await code(old) == 0
            before = await fetched(old, 0)
            assert [value.leader_epoch for _, value in before] == [0, 3]
            mock.move_coordinator("share", key, new[0])
            mock.load_coordinator("share", key)
            assert [await code(old), await code(new[1])] == [16, 14]
            mock.finish_loading("share", key)
            assert [await code(old), await code(new[1])] == [16, 0]
            assert await fetched(new[1], 0) == before
            (listed,) = (await first.ask(request_of("Metadata", name=TOPIC), 9)).topics
            assert listed.is_internal
