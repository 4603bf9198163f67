"""Transactions under the steps of a tester: commands, HTTP, Python."""

import pytest

from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.running.fixture import MockKafka
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.simulation.transactions.transacting import FOO, Producer, markers


def cluster() -> MockCluster:
    return MockCluster(1, topics=["foo:2:1"], profile="kafka-4.4", clock="manual")


def begun(mock: MockCluster, name: str = "t") -> Producer:
    Operations(mock.cluster).load_coordinator("transaction", name)
    Operations(mock.cluster).finish_loading("transaction", name)
    return Producer(mock.cluster, name).begun()


@pytest.mark.requirement(
    "DP-CTL-30", "DP-CTL-31", "DP-CTL-32", "DP-CTL-33", "DP-CTL-34", "DP-CTL-35"
)
async def test_commands_on_transactions() -> None:
    async with cluster() as mock:
        producer = begun(mock)
        for command, state, epoch in (
            ("hold-markers t", "Ongoing", 0),
            ("abort-transaction t", "PrepareAbort", 0),
            ("release-markers", "CompleteAbort", 0),
            ("fence-producer t", "Empty", 1),
            ("set-producer-epoch t 32000", "Empty", 32000),
        ):
            await mock.run_command(command)
            found = mock.transactions()["t"]
            assert (found.state, found.epoch) == (state, epoch), command
        producer.epoch = 32000
        producer.sequences.clear()
        producer.write()
        await mock.run_command("hold-markers")
        await mock.run_command("expire-transaction t")
        assert mock.transactions()["t"].state == "PrepareAbort"
        await mock.run_command("release-markers")
        await mock.run_command(f"write-marker foo-0 {producer.producer_id} commit")
        assert [each[0] for each in markers(mock.cluster)] == ["ABORT", "ABORT", "COMMIT"]
        for wrong in ("set-producer-epoch t", "set-producer-epoch t many", "write-marker foo-0 7"):
            with pytest.raises(ClusterError):
                await mock.run_command(wrong)


@pytest.mark.requirement("DP-CTL-52", "DP-CTL-33")
async def test_transactions_over_http() -> None:
    async with controlled(profile="kafka-4.4", clock="manual") as (mock, http):
        assert await http.get("/transactions") == (200, {})
        producer = begun(mock)
        shown = {
            "transactional_id": "t", "state": "Ongoing", "pending": None,
            "producer_id": producer.producer_id, "epoch": 0, "partitions": ["foo-0"],
            "start_ms": 0, "timeout_ms": 60_000, "held": False,
        }  # fmt: skip
        assert await http.get("/transactions") == (200, {"t": shown})
        assert (await http.post("/hold-markers", json={"transactional_id": "t"}))[0] == 200
        assert producer.end() == 0
        ends = {"state": "PrepareCommit", "pending": "CompleteCommit", "epoch": 1, "held": True}
        prepared = (200, {**shown, **ends})
        assert await http.get("/transactions/t") == prepared
        assert await http.get("/transactions/t/wait?state=PrepareCommit") == prepared
        status, answer = await http.get("/transactions/t/wait?state=Empty&timeout=1ms")
        assert status == 408
        assert "wanted: state Empty" in str(answer)
        assert (await http.get("/transactions/u"))[0] == 404
        assert (await http.get("/transactions/u/wait?timeout=1ms"))[0] == 408
        assert (await http.get("/transactions/t/wait?state=nothing"))[0] == 400
        assert (await http.post("/release-markers", json={}))[0] == 200
        _, found = await http.get("/transactions/t")
        assert found["state"] == "CompleteCommit"
        assert (await http.post("/expire-transaction", json={"transactional_id": "t"}))[0] == 400


@pytest.mark.requirement("DP-CTL-52", "DP-CTL-32")
def test_the_fixture_shows_transactions(mock_kafka: MockKafka) -> None:
    mock_kafka.load_coordinator("transaction", "t")
    mock_kafka.finish_loading("transaction", "t")
    assert mock_kafka.transactions() == {}
    with pytest.raises(ClusterError, match="no transactional id 't'"):
        mock_kafka.fence_producer("t")
    with pytest.raises(TimeoutError, match="does not exist after"):
        mock_kafka.wait_for_transaction("t", timeout=0.001)


@pytest.mark.requirement("DP-CTL-26", "DP-TXN-21")
async def test_a_coordinator_moves_while_a_transaction_ends() -> None:
    async with MockCluster(2, topics=["foo:1:2"], profile="kafka-4.4") as mock:
        producer = begun(mock)
        before = producer.at
        mock.hold_markers("t")
        producer.end()
        mock.move_coordinator("transaction", "t", 3 - before)
        assert mock.transactions()["t"].state == "PrepareCommit"
        mock.release_markers("t")
        found = await mock.wait_for_transaction("t", state="CompleteCommit")
        assert (found.partitions, found.pending) == ((), None)
        assert markers(mock.cluster, FOO)[0][3] == 1
