"""Markers that are written some time after the end of a transaction is answered."""

import asyncio

import pytest

from mockbroker import MockCluster
from mockbroker.options import Clock
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.transactions.transacting import (
    NOW_MS,
    Producer,
    coordinator,
    markers,
)
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

DELAY_MS = 200


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("release", [(0, 11), (2, 3), (3, 9), (4, 0), (4, 4)])
@pytest.mark.requirement("DP-TXN-53", "DP-TXN-06", "DP-TXN-09", "DP-TXN-13")
def test_until_then_the_producer_gets_concurrent_transactions(release, commit):
    cluster = coordinator(release, marker_delay_ms=DELAY_MS)
    producer = Producer(cluster)
    producer.init()
    for number in range(2):
        assert producer.add() == 0
        assert producer.produce(b"v").error == 0
        assert producer.end(commit=commit) == 0
        cluster.turns.advance(DELAY_MS - 1)
        assert (producer.add(), producer.init().code) == (51, 51)
        former = {"epoch": producer.epoch - 1} if producer.version >= 2 else {}
        assert producer.end(commit=commit, keep=True, **former) == 51
        assert producer.state == ("PrepareCommit" if commit else "PrepareAbort")
        assert len(markers(cluster)) == number
        cluster.turns.advance(1)
        assert producer.state == ("CompleteCommit" if commit else "CompleteAbort")
        assert len(markers(cluster)) == number + 1
    assert producer.init().code == 0


@pytest.mark.requirement("DP-TXN-53", "DP-TXN-21")
def test_the_next_coordinator_takes_its_time_too_and_held_markers_wait_on() -> None:
    cluster = coordinator(brokers=2, marker_delay_ms=DELAY_MS)
    producer = Producer(cluster)
    producer.init()
    producer.write()
    assert producer.end() == 0
    cluster.turns.advance(DELAY_MS - 1)
    operations = Operations(cluster)
    operations.load_coordinator("transaction", "t")
    operations.finish_loading("transaction", "t")
    cluster.turns.advance(DELAY_MS - 1)
    assert producer.state == "PrepareCommit"
    operations.hold_markers("t")
    cluster.turns.advance(1)
    assert producer.state == "PrepareCommit"
    operations.release_markers("t")
    assert producer.state == "CompleteCommit"


@pytest.mark.requirement("DP-TXN-53")
def test_a_cluster_without_a_delay_has_no_timer() -> None:
    cluster = coordinator()
    producer = Producer(cluster)
    producer.init()
    producer.write()
    assert producer.end() == 0
    assert (producer.state, cluster.timers.now_ms) == ("CompleteCommit", NOW_MS)


@pytest.mark.parametrize("clock", ["wall", "manual"])
@pytest.mark.requirement("DP-TXN-53")
async def test_either_clock_writes_them(clock: Clock) -> None:
    async with (
        MockCluster(1, topics=["foo=1"], clock=clock, marker_delay_ms=DELAY_MS) as mock,
        connect(mock) as wire,
    ):
        Operations(mock.cluster).load_coordinator("transaction", "t")
        Operations(mock.cluster).finish_loading("transaction", "t")
        producer = Producer(mock.cluster)
        producer.init()
        producer.write()
        end = request_of(
            "EndTxn",
            transactional_id="t",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=True,
        )
        init = request_of("InitProducerId", transactional_id="t", transaction_timeout_ms=60_000)
        assert (await wire.ask(end, 5)).error_code == 0
        assert (await wire.ask(init, 5)).error_code == 51
        if clock == "manual":
            await asyncio.sleep(2 * DELAY_MS / 1000)
            assert (await wire.ask(init, 5)).error_code == 51
            mock.advance(DELAY_MS)
        else:
            await mock.wait_for_transaction("t", state="CompleteCommit")
        assert (await wire.ask(init, 5)).error_code == 0
