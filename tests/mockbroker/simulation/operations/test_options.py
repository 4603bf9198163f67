"""The options of a cluster that concern its data: events that are kept, retention, waits."""

import asyncio

import pytest

from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.log_events import Appended
from mockbroker.simulation.state.actions import DataActionsDropped, LogStartMoved
from tests.mockbroker.control.test_command_line import run_here
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.simulation.operations.test_requests_that_wait import (
    asked,
    fetch,
    first,
    produce,
)
from tests.mockbroker.wire import connect


@pytest.mark.requirement("DP-CTL-57")
async def test_the_first_event_that_is_dropped_is_an_action() -> None:
    async with controlled(clock="manual", data_actions=3) as (mock, client):
        for value in ("a", "b", "c"):
            mock.produce("foo", value=value)
        assert (await client.get("/data-actions"))[1]["dropped"] == 0
        for value in ("d", "e"):
            mock.produce("foo", value=value)
        dropped = [each for each in mock.cluster.log if isinstance(each.change, DataActionsDropped)]
        assert [each.change for each in dropped] == [DataActionsDropped(3)]
        _, found = await client.get("/data-actions?since=3")
        assert (found["dropped"], found["next"]) == (2, 5)
        assert found["actions"][0] == {
            "number": 3, "kind": "Appended", "partition": "foo-0", "at_ms": 0, "first_offset": 3,
            "last_offset": 3, "size": 69, "producer_id": -1,
        }  # fmt: skip
        _, found = await client.get("/data-actions")
        assert [each["number"] for each in found["actions"]] == [2, 3, 4]
        assert [type(each) for each in mock.cluster.logs.events] == [Appended] * 3
        _, log = await client.get("/log")
        assert log[-1]["kind"] == "DataActionsDropped"
    with pytest.raises(ClusterError, match='"data_actions" is 0; it must be between 1 and'):
        MockCluster(data_actions=0)


@pytest.mark.requirement("DP-RETAIN-01")
async def test_retention_runs_by_itself_at_an_interval() -> None:
    options = {"clock": "manual", "broker_configs": {"log.retention.ms": "1000"}}
    async with MockCluster(1, topics=["foo:1:1"], auto_retention_ms=500, **options) as mock:
        mock.produce("foo", value="old")
        mock.roll_segment("foo-0")
        mock.advance(900)
        mock.produce("foo", value="new")
        mock.advance(599)
        assert len(mock.records("foo")) == 2, "the next check is at 1500 ms"
        mock.advance(1)
        assert [each.value for each in mock.records("foo")] == [b"new"]
        moves = [each for each in mock.cluster.log if isinstance(each.change, LogStartMoved)]
        assert [(each.at_ms, each.cause) for each in moves] == [(1500, "auto_retention")]
    async with MockCluster(1, topics=["foo:1:1"], **options) as mock:
        mock.produce("foo", value="old")
        mock.advance(10_000)
        assert len(mock.records("foo")) == 1, "never by itself without the option"
    with pytest.raises(ClusterError, match='"auto_retention_ms" is 0; it must be between 1 and'):
        MockCluster(auto_retention_ms=0)


@pytest.mark.requirement("DP-CTL-56")
async def test_long_polls_wait_by_the_virtual_clock() -> None:
    options = {"clock": "manual", "data_waits": "virtual"}
    async with MockCluster(topics=["foo:1:1"], **options) as mock, connect(mock) as wire:
        waiting = await asked(wire, fetch(max_wait_ms=10**9), 11)
        async with asyncio.timeout(10):
            while not mock.cluster.timers.pending():
                await asyncio.sleep(0)
        mock.advance(10**9 - 1)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        mock.advance(1)
        assert not first(await waiting).records
        assert mock.cluster.timers.pending() == []


@pytest.mark.requirement("DP-CTL-56")
@pytest.mark.parametrize("waits", ["real", "virtual"])
async def test_a_produce_request_times_out_by_the_clock_of_the_option(waits: str) -> None:
    options = {"clock": "manual", "data_waits": waits}
    async with MockCluster(topics=["foo=1,2"], **options) as mock, connect(mock) as wire:
        mock.hold_replication("foo-0")
        waiting = await asked(wire, produce(), 9)
        async with asyncio.timeout(10):
            while not (mock.records("foo") if waits == "real" else mock.cluster.timers.pending()):
                await asyncio.sleep(0)
        mock.advance(30_000)
        if waits == "real":
            await asyncio.sleep(0.01)
            assert not waiting.done()
            mock.release_replication("foo-0")
        assert first(await waiting).error_code == (0 if waits == "real" else 7)


def test_the_command_line_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (
        ("--data-actions", "0"), ("--auto-retention", "0ms"), ("--data-waits", "never"),
    ):  # fmt: skip
        assert run_here(["serve", option, value]) == 2
        assert option in capsys.readouterr().err
