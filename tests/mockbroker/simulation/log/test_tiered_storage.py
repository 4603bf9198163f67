"""Tiered storage (KIP-405): what is in remote storage, and what clients see of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import RecordBatches
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.fetching.epoch_ends import EpochQuery, end_of_epoch
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import RemoteStorageChanged
from mockbroker.simulation.state.cluster_state import TOPIC
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching import fetching, test_list_offsets
from tests.mockbroker.simulation.log.records import append_times

TP = ("foo", 0)
ENABLED = ("remote.storage.enable", 0, "true")
UNKNOWN = (0, -1, -1, -1)


def tiered(replicas: str = "1,2", **options: Any) -> Cluster:
    cluster = simulated_cluster(
        3,
        topics=[f"foo={replicas}"],
        broker_configs={"remote.log.storage.system.enable": "true"},
        **options,
    )
    (result,) = cluster.config_changes.alter_incrementally([(TOPIC, "foo", [ENABLED])])
    assert not result.error_code
    return cluster


def filled() -> Cluster:
    """Offsets 0 to 5 in batches of two with times 90, 10, 20, ..., of the epochs 0, 0 and 1."""
    cluster = tiered()
    append_times(cluster, 90, 10)
    append_times(cluster, 20, 30)
    Operations(cluster).truncate("foo-0", 4)  # cuts nothing, and raises the epoch
    append_times(cluster, 40, 50)
    return cluster


def listed(cluster: Cluster, timestamp: int, **fields: Any) -> tuple[int, int, int, int]:
    return test_list_offsets.ask(cluster, timestamp, **fields)


def read_from(cluster: Cluster, offset: int) -> list[int]:
    """Read to the end as a consumer, and return the offsets."""
    broker = DirectBroker(cluster, profile_name="kafka-4.4")
    found: list[int] = []
    while True:
        (answer,) = fetching.ask(broker, {TP: offset}).responses[0].partitions
        assert answer.error_code == 0
        records = [each for batch in RecordBatches(answer.records or b"") for each in batch]
        if not records:
            return found
        found += [each.offset for each in records if each.offset >= offset]
        offset = found[-1] + 1


@pytest.mark.requirement("DP-LISTOFF-04", "DP-LISTOFF-05", "DP-LISTOFF-06", "DP-LISTOFF-07")
def test_special_timestamps_distinguish_local_and_remote_records() -> None:
    cluster = filled()
    assert [listed(cluster, each) for each in (-4, -5, -6)] == [
        (0, -1, 0, 0),
        UNKNOWN,
        (0, -1, 0, 0),
    ]
    Operations(cluster).copy_to_remote("foo-0", 4)
    assert [listed(cluster, each) for each in (-4, -5, -6)] == [
        (0, -1, 0, 0), (0, -1, 3, 0), (0, -1, 4, 1)
    ]  # fmt: skip
    assert listed(cluster, -3) == (0, 90, 0, 0)
    Operations(cluster).jump_local_log_start("foo-0", 5)  # in the middle of a batch
    assert [listed(cluster, each) for each in (-1, -2, -3, -4, -5, -6)] == [
        (0, -1, 6, 1), (0, -1, 0, 0), (0, 50, 5, 1), (0, -1, 4, 1), (0, -1, 3, 0), (0, -1, 4, 1)
    ]  # fmt: skip
    assert [listed(cluster, each) for each in (0, 15)] == [(0, 90, 0, 0), (0, 90, 0, 0)]
    Operations(cluster).jump_local_log_start("foo-0", 6)
    assert [listed(cluster, each)[2] for each in (-3, -4, -5, -6)] == [-1, 6, 5, -1]


@pytest.mark.requirement("DP-LISTOFF-07", "DP-LISTOFF-11")
def test_a_new_leader_does_not_know_a_pending_upload_behind_what_is_replicated() -> None:
    cluster = tiered("1,2,3")
    append_times(cluster, 10)
    cluster.logs.hold_replication(TP, 3)
    append_times(cluster, 20)
    Operations(cluster).stop_broker(1)  # broker 2 has the second record, broker 3 still lacks it
    assert listed(cluster, -6, broker_id=2) == (0, -1, 0, 0)
    Operations(cluster).copy_to_remote("foo-0", 1)
    assert listed(cluster, -6, broker_id=2) == (78, -1, -1, -1)
    assert listed(cluster, -5, broker_id=2) == (0, -1, 0, 0)
    cluster.logs.release_replication(TP, 3)
    assert listed(cluster, -6, broker_id=2) == (0, -1, 1, 0)


@pytest.mark.requirement("DP-LISTOFF-01")
def test_version_0_lists_local_segments() -> None:
    cluster = tiered(release=(3, 9))
    for time in (10, 20, 30):
        append_times(cluster, time)
        Operations(cluster).roll_segment("foo-0")
    Operations(cluster).jump_local_log_start("foo-0", 2)
    broker = DirectBroker(cluster, profile_name="kafka-3.9")
    for timestamp, starts in ((-1, [3, 2]), (-2, [2])):
        request = test_list_offsets.request(timestamp, max_num_offsets=9)
        assert broker.ask(request, 0).topics[0].partitions[0].old_style_offsets == starts


@pytest.mark.requirement("DP-FETCH-24")
def test_consumers_read_remote_records_and_replicas_do_not() -> None:
    cluster = filled()
    Operations(cluster).jump_local_log_start("foo-0", 4)
    Operations(cluster).jump_log_start("foo-0", 1)
    assert read_from(cluster, 1) == [1, 2, 3, 4, 5]
    broker = DirectBroker(cluster, profile_name="kafka-4.4")
    found = {}
    for offset in (0, 1, 3, 4):
        (answer,) = fetching.ask(broker, {TP: offset}, replica_id=2).responses[0].partitions
        found[offset] = answer.error_code, answer.high_watermark, answer.log_start_offset
        assert bool(answer.records) == (offset == 4)
    moved = (109, 6, 1)
    assert found == {0: (1, -1, -1), 1: moved, 3: moved, 4: (0, 6, 1)}


@pytest.mark.requirement("DP-FETCH-25")
@pytest.mark.parametrize(("release", "offsets"), [((4, 1), [0]), ((4, 2), [0, 1])])
def test_how_many_partitions_have_remote_records(release, offsets):
    cluster = tiered("1,2/1,2/1,2", release=release)
    for index in range(3):
        append_times(cluster, 10, tp=("foo", index))
    for index in range(2):
        Operations(cluster).jump_local_log_start(f"foo-{index}", 1)
    broker = DirectBroker(cluster, profile_name=f"kafka-{release[0]}.{release[1]}")
    answer = fetching.ask(broker, {("foo", index): 0 for index in range(3)})
    partitions = [each for topic in answer.responses for each in topic.partitions]
    found = [each.partition_index for each in partitions if each.records]
    assert sorted(found) == [*offsets, 2]


@pytest.mark.requirement("DP-FETCH-24")
@pytest.mark.parametrize("last_fetched_epoch", [0, 9])
def test_moved_records_come_before_an_unknown_epoch(last_fetched_epoch: int) -> None:
    cluster = filled()
    Operations(cluster).jump_local_log_start("foo-0", 4)
    position = {"fetch_offset": 2, "last_fetched_epoch": last_fetched_epoch}
    broker = DirectBroker(cluster, profile_name="kafka-4.4")
    response = fetching.ask(broker, {TP: position}, replica_id=2)
    assert response.responses[0].partitions[0].error_code == 109


@pytest.mark.requirement("DP-CTL-60")
def test_local_sizes_shrink_and_epochs_stay() -> None:
    cluster = filled()
    broker = DirectBroker(cluster, profile_name="kafka-4.4")

    def size() -> int:
        answer = broker.ask("DescribeLogDirs", 4, topics=None)
        return int(answer.results[0].topics[0].partitions[0].partition_size)

    whole = size()
    Operations(cluster).jump_local_log_start("foo-0", 4)
    assert size() == whole // 3
    query = EpochQuery(TP, 1, 0, -1)
    assert end_of_epoch(cluster.logs, cluster.topics.partition(*TP), query)[1] == (0, 4)


@pytest.mark.requirement("DP-CTL-60", "CONFIG-16")
def test_a_topic_that_leaves_tiered_storage_loses_what_only_it_has() -> None:
    cluster = filled()
    Operations(cluster).jump_local_log_start("foo-0", 4)
    changes = [("remote.storage.enable", 0, "false"), ("remote.log.delete.on.disable", 0, "true")]
    cluster.config_changes.alter_incrementally([(TOPIC, "foo", changes)])
    assert [listed(cluster, each)[2] for each in (-2, -4, -5, -6)] == [4, 4, -1, -1]
    moves = [each.change for each in cluster.log if isinstance(each.change, RemoteStorageChanged)]
    assert [(each.local_start_offset, each.highest_remote_offset) for each in moves] == [
        (4, 3), (4, -1)
    ]  # fmt: skip
    with pytest.raises(ClusterError, match="foo is not a topic with tiered storage"):
        Operations(cluster).copy_to_remote("foo-0", 5)


@pytest.mark.requirement("DP-CTL-60")
def test_offsets_that_remote_storage_cannot_have() -> None:
    cluster = filled()
    Operations(cluster).jump_log_start("foo-0", 2)
    for offset in (1, 7):
        with pytest.raises(ClusterError, match="can have foo-0 up to 2 to 6, its last stable"):
            Operations(cluster).jump_local_log_start("foo-0", offset)


@pytest.mark.requirement("DP-CTL-60", "DP-FETCH-24")
@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "copy", "local", "start", "cut"]), st.integers(0, 9)),
        max_size=12,
    )
)
def test_consumers_read_the_whole_log_wherever_it_is(steps: list[tuple[str, int]]) -> None:
    cluster = tiered()
    operations, log = Operations(cluster), cluster.logs.log(TP)
    for name, number in steps:
        offset = min(log.start_offset + number, log.end_offset)
        if name == "append":
            append_times(cluster, *range(1, number % 3 + 2))
        elif name == "copy":
            operations.copy_to_remote("foo-0", offset)
        elif name == "local":
            operations.jump_local_log_start("foo-0", offset)
        elif name == "start":
            operations.jump_log_start("foo-0", offset)
        else:
            operations.truncate("foo-0", offset)
        bases = [each.base_offset for each in log.segments]
        assert bases == sorted(set(bases))
        assert log.start_offset <= log.local_start_offset <= log.end_offset
        assert log.highest_remote_offset < log.end_offset
        if log.local_start_offset > log.start_offset:
            assert log.highest_remote_offset >= log.local_start_offset - 1
    assert read_from(cluster, log.start_offset) == list(range(log.start_offset, log.end_offset))
