"""What readers of committed records see, and the aborted transactions that they are told."""

from typing import Any

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.partition_log import AbortedTransaction
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import FOO, append, ask, row, rows, values

COMMITTED = 1


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(1, topics=["foo=1"])


@pytest.mark.requirement("DP-FETCH-14")
def test_readers_of_committed_records_stop_at_an_open_transaction(cluster: Cluster) -> None:
    append(cluster, b"a")
    append(
        cluster, b"open", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    append(cluster, b"b")
    broker = DirectBroker(cluster)
    found = row(ask(broker, {FOO: 0}, isolation_level=COMMITTED))
    assert (values(found), found.last_stable_offset, found.high_watermark) == ([b"a"], 1, 3)
    assert values(row(ask(broker, {FOO: 0}))) == [b"a", b"open", b"b"]


@pytest.mark.requirement("DP-FETCH-15")
def test_a_partition_whose_first_batch_does_not_fit_has_no_list() -> None:
    """The list is null, as if the isolation level was 0; it is empty where no room is left."""
    cluster = Cluster(1, topics=["foo=1", "bar=1"])
    broker = DirectBroker(cluster)
    for tp in (FOO, ("bar", 0)):
        append(cluster, b"1", tp=tp)
    size = cluster.logs.log(FOO).storage.size
    lists = []
    for most_bytes in (2 * size, 2 * size - 1, size):
        answer = ask(broker, {FOO: 0, ("bar", 0): 0}, isolation_level=1, max_bytes=most_bytes)
        lists.append([each.aborted_transactions for each in rows(answer).values()])
    assert lists == [[[], []], [[], None], [[], []]]


@pytest.mark.requirement("DP-FETCH-15")
@pytest.mark.parametrize(
    ("offset", "most_bytes", "expected"),
    [
        (0, 1 << 20, [1, 2, 3]),
        (0, 1, []),
        (1, 1, [1]),
        (3, 1, [1, 2]),
        (4, 1 << 20, [1, 2, 3]),
        (5, 1 << 20, [2, 3]),
        (7, 1 << 20, [3]),
        (8, 1 << 20, []),
        (10, 1 << 20, []),
    ],
)
def test_aborted_transactions_overlap_the_records(offset, most_bytes, expected):
    """As far as the index tells, here with an entry a batch."""
    cluster = simulated_cluster(
        1, topics=["foo=1"], broker_configs={"log.index.interval.bytes": "0"}
    )
    _with_aborted_transactions(cluster)
    assert [each.producer_id for each in _aborted(cluster, offset, most_bytes)] == expected
    assert row(ask(DirectBroker(cluster), {FOO: offset})).aborted_transactions is None


@pytest.mark.requirement("DP-FETCH-15")
@pytest.mark.parametrize(
    ("interval", "expected"), [(0, []), (1, []), (150, [1]), (4096, [1, 2, 3, 4])]
)
def test_an_index_with_gaps_lists_more_transactions(interval: int, expected: list[int]) -> None:
    cluster = simulated_cluster(
        1, topics=["foo=1"], broker_configs={"log.index.interval.bytes": str(interval)}
    )
    _with_aborted_transactions(cluster)
    cluster.logs.log(FOO).aborted.append(AbortedTransaction(4, 9, 9, 9))
    assert [each.producer_id for each in _aborted(cluster, 0, 1)] == expected


@pytest.mark.requirement("DP-FETCH-15")
def test_the_index_ends_with_its_segment(cluster: Cluster) -> None:
    _with_aborted_transactions(cluster)
    log = cluster.logs.log(FOO)
    log.roll(0)
    append(cluster, b"10")
    log.aborted.append(AbortedTransaction(4, 10, 11, 10))
    assert [each.producer_id for each in _aborted(cluster, 0, 1)] == [1, 2, 3]
    assert [each.producer_id for each in _aborted(cluster, 10, 1)] == [4]


def _with_aborted_transactions(cluster: Cluster) -> None:
    for number in range(10):
        append(cluster, b"%d" % number)
    cluster.logs.log(FOO).aborted += [
        AbortedTransaction(1, 1, 4, 1),
        AbortedTransaction(2, 3, 6, 5),
        AbortedTransaction(3, 5, 7, 7),
    ]


def _aborted(cluster: Cluster, offset: int, most_bytes: int) -> Any:
    position = {FOO: {"fetch_offset": offset, "partition_max_bytes": most_bytes}}
    found = row(ask(DirectBroker(cluster), position, isolation_level=COMMITTED))
    assert found.aborted_transactions is not None
    return found.aborted_transactions
