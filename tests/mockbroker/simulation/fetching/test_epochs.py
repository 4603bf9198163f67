"""Clients that say which epoch they read last: truncated logs show (KIP-320, KIP-595)."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import NEWEST, Release
from mockbroker.simulation.state.settings import ClusterSettings
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.fetching.fetching import FOO, append, ask, row, values


def unclean(release: Release = NEWEST) -> Cluster:
    """Broker 2 leads with epoch 2, and has records 0 and 1 of epoch 0, record 2 of its own."""
    cluster = Cluster(2, topics=["foo=1,2"], settings=ClusterSettings(release=release))
    append(cluster, b"a")
    append(cluster, b"b")
    Operations(cluster).leave_isr(FOO, 2)
    append(cluster, b"lost")
    Operations(cluster).stop_broker(1)
    cluster.elections.elect(1, [("foo", [0])])
    append(cluster, b"c")
    return cluster


def fetch(cluster: Cluster, offset: int, epoch: int, broker_id: int = 2, version: int = 12) -> Any:
    position = {"fetch_offset": offset, "last_fetched_epoch": epoch}
    return row(ask(DirectBroker(cluster), {FOO: position}, version, broker_id=broker_id))


@pytest.mark.requirement("DP-FETCH-16")
def test_a_client_that_read_lost_records_is_told() -> None:
    cluster = unclean()
    current = cluster.topics.partition(*FOO).leader_epoch
    found = fetch(cluster, 3, 0)
    assert (found.error_code, found.records, found.aborted_transactions) == (0, b"", None)
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 2)
    assert (found.high_watermark, found.log_start_offset) == (3, 0)
    assert values(fetch(cluster, 2, 0)) == [b"c"]
    assert values(fetch(cluster, 2, -1)) == [b"c"], "not checked"
    assert fetch(cluster, 3, current).diverging_epoch.epoch == -1
    smaller = fetch(cluster, 2, current - 1)
    assert (smaller.diverging_epoch.epoch, smaller.diverging_epoch.end_offset) == (0, 2)


@pytest.mark.requirement("DP-FETCH-16")
def test_an_unknown_epoch_is_out_of_range() -> None:
    cluster = unclean()
    assert fetch(cluster, 2, 99).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.requirement("DP-FETCH-16", "DP-FETCH-05")
@pytest.mark.parametrize(
    ("release", "out_of_range"), [((2, 7), False), ((2, 7, 2), True), ((3, 0), True)]
)
def test_an_offset_before_the_log_whose_epoch_diverges(release, out_of_range):
    cluster = unclean(Release(release))
    cluster.logs.advance_start("test", FOO, 1)
    found = fetch(cluster, 0, 1)
    assert (found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE) is out_of_range
    assert (found.diverging_epoch.epoch == 0) is not out_of_range


@pytest.mark.requirement("DP-CTL-13")
def test_a_tester_lets_an_epoch_diverge() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    append(cluster, b"a")
    append(cluster, b"b")
    fetches = cluster.fetches
    fetches.diverge(FOO, 0, 1)
    found = fetch(cluster, 2, 0, broker_id=1)
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 1)
    assert values(fetch(cluster, 1, 0, broker_id=1)) == [b"b"]
    assert cluster.logs.log(FOO).epochs.end_of(0, 2) == (0, 1)
    fetches.diverge(FOO, 0, None)
    assert fetch(cluster, 2, 0, broker_id=1).diverging_epoch.epoch == -1
