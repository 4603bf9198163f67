"""The share coordinator (83 to 87): states of share partitions begin, move, are fenced, and end."""

import uuid
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kproto.error_codes import ErrorCode
from kproto.messages import delete_share_group_state_request as delete
from kproto.messages import initialize_share_group_state_request as initialize
from kproto.messages import read_share_group_state_request as read
from kproto.messages import read_share_group_state_summary_request as summary
from kproto.messages import write_share_group_state_request as write
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.groups.share.share_states import (
    ShareStateError,
    ShareStates,
    StoredState,
)
from mockbroker.simulation.groups.share.stored_batches import StateBatch, WrittenState, combine
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.groups.sharers import Sharers

UNKNOWN = uuid.UUID(int=7)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


class States:
    """The states of the group "g" in the topic "foo"."""

    def __init__(self, release: tuple[int, int] = (4, 4)) -> None:
        self.cluster = simulated_cluster(1, release=release, topics=["foo:2:1"])
        self.topic_id = self.cluster.topics["foo"].topic_id

    @property
    def at(self) -> ShareStates:
        return self.cluster.share_states

    def initialize(self, epoch: int = 0, start: int = -1, index: int = 0) -> Any:
        return self.at.initialize("g", self.topic_id, index, epoch, start)

    def write(
        self, *batches: StateBatch, start: int = -1, complete: int = 0, leader: int = 0,
        epoch: int = 0, index: int = 0, topic_id: uuid.UUID | None = None,
    ) -> ShareStateError | None:  # fmt: skip
        written = WrittenState(start, complete, batches)
        topic_id = topic_id or self.topic_id
        return self.at.write("g", topic_id, index, leader, epoch, written)

    def read(self, leader: int = 0, index: int = 0) -> Any:
        return self.at.read("g", self.topic_id, index, leader)

    def summary(self, index: int = 0) -> Any:
        return self.at.summary("g", self.topic_id, index)


def code(result: object) -> int:
    assert isinstance(result, ShareStateError)
    return result.code


@pytest.mark.requirement("DP-SHARE-40")
def test_partitions_without_a_state_or_that_are_not_there() -> None:
    states = States()
    for verb, result in (("Read", states.read()), ("Write", states.write())):
        text = f"{verb} operation on uninitialized share partition not allowed."
        assert result == ShareStateError(ErrorCode.INVALID_REQUEST, text)
    assert states.summary() is None
    assert states.at.delete("g", states.topic_id, 0) is None
    negative = "The partition id cannot be a negative number."
    for result in (
        states.initialize(index=-1),
        states.read(index=-1),
        states.write(index=-1),
        states.summary(-1),
        states.at.delete("g", states.topic_id, -1),
    ):
        assert result == ShareStateError(ErrorCode.INVALID_REQUEST, negative)
    for result in (
        states.initialize(index=2),
        states.summary(2),
        states.at.delete("g", states.topic_id, 2),
        states.at.initialize("g", UNKNOWN, 0, 0, 0),
    ):
        assert code(result) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    states.initialize(index=1)
    states.cluster.topics.delete([("foo", uuid.UUID(int=0))])
    assert code(states.read(index=1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(states.write(index=1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.requirement("DP-SHARE-41")
def test_older_epochs_are_fenced() -> None:
    states = States()
    assert states.initialize(epoch=2) is None
    assert states.read(leader=5).leader_epoch == 5
    assert code(states.read(leader=4)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code(states.write(leader=4, epoch=2)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code(states.write(leader=5, epoch=1)) == ErrorCode.FENCED_STATE_EPOCH
    assert states.write(leader=5, epoch=2) is None
    assert states.write(leader=5, epoch=3) is None
    assert code(states.initialize(epoch=1)) == ErrorCode.FENCED_STATE_EPOCH
    assert states.initialize(epoch=2) is None
    assert code(states.read(leader=4)) == ErrorCode.FENCED_LEADER_EPOCH, "a new state is no end"
    assert states.read(leader=5).leader_epoch == 0, "the state has no leader yet"
    states.at.delete("g", states.topic_id, 0)
    states.initialize()
    assert isinstance(states.read(leader=0), StoredState)


@pytest.mark.requirement("DP-SHARE-41")
@pytest.mark.parametrize(
    ("release", "text"),
    [
        ((4, 3), "The share coordinator rejected the request because the share-group state epoch "),
        ((4, 4), "The coordinator rejected the request because the state epoch "),
    ],
)
def test_the_text_about_an_older_state_epoch(release: tuple[int, int], text: str) -> None:
    states = States(release)
    states.initialize(epoch=2)
    refused = ShareStateError(ErrorCode.FENCED_STATE_EPOCH, f"{text}did not match.")
    assert states.initialize(epoch=1) == refused


@pytest.mark.requirement("DP-SHARE-41")
@pytest.mark.parametrize(
    ("release", "error"), [((4, 1), 74), ((4, 2), 74), ((4, 3), 0), ((4, 4), 42)]
)
def test_a_reader_without_an_epoch(release: tuple[int, int], error: int) -> None:
    """By bytecode so in 4.1.2, 4.2.2, 4.3.1 and 4.4.0; 4.2.2 and 4.3.1 answer so."""
    states = States(release)
    states.initialize()
    found = states.read(leader=-1)
    assert (code(found) if isinstance(found, ShareStateError) else 0) == error


@pytest.mark.requirement("DP-SHARE-41")
@pytest.mark.parametrize("release", [(4, 3), (4, 4)])
def test_negative_epochs(release: tuple[int, int]) -> None:
    """Until 4.3 the epoch -1 counts as any, and smaller ones as older."""
    states = States(release)
    states.initialize(epoch=2)
    states.read(leader=5)
    results = [
        states.read(leader=-1),
        states.write(leader=-1, epoch=2),
        states.write(leader=5, epoch=-1),
        states.initialize(epoch=-1),
    ]
    if release < (4, 4):
        assert not any(isinstance(each, ShareStateError) for each in results)
        assert code(states.read(leader=-2)) == ErrorCode.FENCED_LEADER_EPOCH
        assert code(states.write(leader=5, epoch=-2)) == ErrorCode.FENCED_STATE_EPOCH
        assert code(states.initialize(epoch=1)) == ErrorCode.FENCED_STATE_EPOCH, "2 counts on"
        states.at.delete("g", states.topic_id, 0)
        assert states.initialize(epoch=1) is None
        return
    of_leader = "The leader epoch cannot be a negative number."
    of_state = of_leader.replace("leader", "state")
    assert [each.text for each in results] == [of_leader, of_leader, of_state, of_state]
    assert {each.code for each in results} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.requirement("DP-SHARE-42")
@pytest.mark.parametrize(
    ("start", "complete", "until_4_3", "since_4_4"),
    [
        (12, 3, (12, 3), (12, 3)),
        (10, 6, (10, 6), (10, 6)),
        (10, 4, (10, 4), (10, 5)),
        (8, 9, (8, 9), (10, 5)),
        (-1, 9, (10, 9), (10, 5)),
    ],
)
def test_start_offsets_and_what_is_complete(start, complete, until_4_3, since_4_4):
    for release, expected in (((4, 3), until_4_3), ((4, 4), since_4_4)):
        states = States(release)
        states.initialize()
        states.write(start=10, complete=5)
        states.write(start=start, complete=complete)
        found = states.read()
        assert (found.start_offset, found.complete) == expected, release


BATCHES = st.builds(
    lambda first, size, state, count: StateBatch(first, first + size, state, count),
    st.integers(0, 30),
    st.integers(0, 8),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
    st.integers(1, 3),
)


@pytest.mark.requirement("DP-SHARE-43")
@given(st.lists(BATCHES, max_size=8), st.integers(-1, 40))
def test_batches_are_combined_record_by_record(batches: Sequence[StateBatch], start: int) -> None:
    """Of each record the state with the most deliveries counts, and neighbours are joined."""
    states: dict[int, tuple[int, int]] = {}
    for each in batches:
        for offset in range(max(each.first, start), each.last + 1):
            states[offset] = max(states.get(offset, (0, 0)), (each.deliveries, each.state))
    found = combine(batches, start)
    assert {
        offset: (each.deliveries, each.state)
        for each in found
        for offset in range(each.first, each.last + 1)
    } == states
    for before, after in pairwise(found):
        assert before.last < after.first
        assert before.last + 1 < after.first or before[2:] != after[2:], "they would be one"


@pytest.mark.requirement("DP-SHARE-43")
def test_what_a_leader_of_the_mock_stores_is_read_and_what_is_written_is_fetched() -> None:
    sharers = Sharers()
    topic_id, _ = sharers.key()
    states = sharers.cluster.share_states
    sharers.settle("a")
    sharers.append(6)
    assert sharers.fetch() == [(0, 5, 1)]
    assert stored(states, topic_id).batches == [], "acquisitions are not stored"
    sharers.ack("a", (1, 1, [1]), (2, 2, [2]), (3, 3, [3]))
    assert stored(states, topic_id).batches == [
        StateBatch(1, 1, ACKNOWLEDGED, 1),
        StateBatch(2, 2, AVAILABLE, 1),
        StateBatch(3, 3, ARCHIVED, 1),
    ]
    assert sharers.fetch() == [(2, 2, 2)]
    assert stored(states, topic_id).batches[1] == StateBatch(2, 2, AVAILABLE, 1), "as before"
    written = WrittenState(4, 0, [StateBatch(4, 4, ACKNOWLEDGED, 1)])
    assert states.write("g", topic_id, 0, 0, stored(states, topic_id).state_epoch, written) is None
    Operations(sharers.cluster).stop_broker(1)
    Operations(sharers.cluster).start_broker(1)  # a leader that loads the state anew
    assert sharers.fetch() == [(5, 5, 1)]
    sharers.ack("a", (5, 5, [1]))
    found = states.summary("g", topic_id, 0)
    assert isinstance(found, StoredState)
    assert (found.start_offset, found.batches) == (5, [StateBatch(5, 5, ACKNOWLEDGED, 1)]), (
        "the leader has forgotten them, the coordinator has not"
    )


def stored(states: ShareStates, topic_id: uuid.UUID) -> StoredState:
    found = states.read("g", topic_id, 0, 0)
    assert isinstance(found, StoredState)
    return found


# ---- on the wire -----------------------------------------------------------------------------


def broker(**options: Any) -> DirectBroker:
    return DirectBroker(Cluster(1, topics=["foo:2:1"]), profile_name="kafka-4.4", **options)


def bodies(topic_id: uuid.UUID, group: str = "g") -> list[Any]:
    """Each request, about partitions 1 and 0."""
    rows: list[tuple[Any, Any, Any]] = [
        (initialize.InitializeShareGroupStateRequest, initialize.InitializeStateData, initialize),
        (write.WriteShareGroupStateRequest, write.WriteStateData, write),
        (read.ReadShareGroupStateRequest, read.ReadStateData, read),
        (summary.ReadShareGroupStateSummaryRequest, summary.ReadStateSummaryData, summary),
        (delete.DeleteShareGroupStateRequest, delete.DeleteStateData, delete),
    ]
    return [
        request(
            group_id=group,
            topics=[
                topic(
                    topic_id=topic_id,
                    partitions=[module.PartitionData(partition=index) for index in (1, 0)],
                )
            ],
        )
        for request, topic, module in rows
    ]


def codes(response: Any) -> dict[int, int]:
    return {
        each.partition: each.error_code for topic in response.results for each in topic.partitions
    }


def ready(at: DirectBroker) -> uuid.UUID:
    """Create the internal topic and return the topic's id."""
    at.ask("FindCoordinator", 6, key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAA:0"])
    return at.cluster.topics["foo"].topic_id


@pytest.mark.requirement("DP-SHARE-40")
def test_every_request_is_answered_by_partition() -> None:
    at = broker()
    topic_id = at.cluster.topics["foo"].topic_id
    for body in bodies(topic_id):
        response = at.ask(body, 0)
        assert codes(response) == {0: 16, 1: 16}, "there is no coordinator yet"
        assert response.results[0].partitions[0].error_message.endswith("correct coordinator.")
    ready(at)
    for body in bodies(topic_id):
        response = at.ask(body, 0)
        assert codes(response) == {0: 0, 1: 0}
        assert [each.partition for each in response.results[0].partitions] == [0, 1]
        assert at.ask(type(body)(group_id="", topics=body.topics), 0).results == []
        assert at.ask(type(body)(group_id="g"), 0).results == []
        empty = structs.replace(body.topics[0], partitions=[])
        mixed = at.ask(type(body)(group_id="g", topics=[empty, *body.topics]), 0).results
        only_initialize = isinstance(body, initialize.InitializeShareGroupStateRequest)
        assert len(mixed) == only_initialize, "the others are answered with nothing at all"
