"""Rules on a running cluster: kproto's own client, steps of the cluster, clocks, the journal."""

import asyncio
import logging
from typing import Any

import pytest

from kproto.client import Admin, Connection
from kproto.errors import KprotoError
from mockbroker import MockCluster
from mockbroker.errors import FaultError
from mockbroker.faults import Fault
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.requests import request_of

METADATA = request_of("Metadata", topics=None)
LIST = request_of("ListPartitionReassignments", topics=None)


async def opened(mock: MockCluster, broker_id: int = 1) -> Connection:
    host, port = mock.addresses[broker_id].split(":")
    return await Connection.open(host, int(port))


BREAKING: list[dict[str, Any]] = [
    {"disconnect": "before"},
    {"disconnect": "after"},
    {"disconnect": "before", "close_with": "reset"},
    {"truncate": 6, "disconnect": "answered"},
    {"raw": "ffffffff"},
    {"tls_alert": 80, "disconnect": "answered"},
    {"length": -1},
    {"correlation_off_by": 1},
    {"trailing": "00"},
    {"set_length": {"topics": 2**31 - 1}},
    {"unsolicited": "before"},
    {"set": {"topics": None}},
]


@pytest.mark.parametrize("members", BREAKING, ids=lambda m: " ".join(m))
async def test_the_client_sees_what_breaks(members):
    async with MockCluster(topics=["foo:1:1"], strict_faults=True) as mock:
        mock.fault(api=3, **members)
        async with asyncio.timeout(PATIENCE), await opened(mock) as broker:
            with pytest.raises((KprotoError, OSError)):
                await broker.request(METADATA)


@pytest.mark.parametrize(
    "members",
    [
        {"delay": 1}, {"split": 3}, {"unknown_tags": ["header", "body", "elements"]},
        {"hold_for": 1}, {"disconnect": "answered"}, {"throttle": 1},
    ],
    ids=lambda m: " ".join(m),
)  # fmt: skip
async def test_the_client_takes_what_a_client_must_take(members):
    async with MockCluster(topics=["foo:1:1"], strict_faults=True) as mock:
        mock.fault(api=3, **members)
        async with asyncio.timeout(PATIENCE), await opened(mock) as broker:
            assert [each.name for each in (await broker.request(METADATA)).topics] == ["foo"]


async def test_the_controller_moves_between_two_requests():
    """Admin learns from Metadata who the controller is; by then it is another one."""
    async with MockCluster(topics=["foo:1:1"], profile="kafka-2.8-zk", strict_faults=True) as mock:
        mock.fault(api=3, times=1, steps_after=["failover 2"])
        async with asyncio.timeout(PATIENCE), Admin(mock.bootstrap) as admin:
            assert await admin.list_partition_reassignments() == {}
        assert mock.cluster.state.controller_id == 2
        refused = [
            each.decode().body.error_code
            for each in mock.journal.select(api=46, direction="response")
        ]
        assert refused == [41, 0]


@pytest.mark.requirement("DP-API-96")
async def test_a_rule_only_counts_and_its_hits_are_waited_for():
    async with MockCluster(topics=["foo:1:1"], strict_faults=True) as mock, connect(mock) as wire:
        rule = mock.fault(name="seen", api="Metadata", observe=True)
        third = asyncio.create_task(mock.wait_for_hit("seen", hits=3))
        for _ in range(3):
            assert not third.done()
            assert [each.name for each in (await wire.ask(METADATA, 9)).topics] == ["foo"]
        async with asyncio.timeout(PATIENCE):
            await third
        assert rule.hits == 3
        assert not mock.journal.select(event="fault: seen")


async def test_stale_metadata():
    async with MockCluster(topics=["foo=1,2,3"], strict_faults=True) as mock:
        mock.fault(api=3, times=1, steps_before=["hold-metadata self"])
        async with connect(mock) as wire:
            before = await wire.ask(METADATA, 9)
            mock.leave_isr("foo-0", 3)
            assert (await wire.ask(METADATA, 9)).topics == before.topics
        async with connect(mock, 2) as wire:
            assert (await wire.ask(METADATA, 9)).topics != before.topics


async def test_a_listener_vanishes_and_the_cluster_does_not_know():
    async with MockCluster(strict_faults=True) as mock:
        mock.fault(api=46, steps_after=["close-listener self"], times=1)
        async with connect(mock, 2) as wire:
            await wire.ask(LIST, 0)
            await wire.closed()
        with pytest.raises(OSError, match="onnect"):
            await opened(mock, 2)
        assert mock.cluster.controller.broker(2).live
        mock.fault(api=46, steps_after=["open-listener 2"], times=1)
        async with connect(mock) as wire:
            await wire.ask(LIST, 0)
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    async with connect(mock, 2) as wire:
                        await wire.ask(LIST, 0)
                    break
                except ConnectionRefusedError:
                    await asyncio.sleep(0)


async def test_brokers_stop_and_start_and_replicas_come_and_go():
    async with MockCluster(topics=["foo=1,2,3"], strict_faults=True) as mock:
        steps = ["leave-isr foo-0 3", "stop-broker other", "start-broker 2", "advance 1s"]
        mock.fault(api=46, times=1, steps_before=steps)
        async with connect(mock) as wire:
            await wire.ask(LIST, 0)
        assert mock.cluster.topics.partition("foo", 0).isr == (1,)
        assert mock.cluster.controller.broker(2).live


async def test_a_step_that_cannot_be_done_is_told(caplog):
    caplog.set_level(logging.WARNING, "mockbroker.faults")
    async with MockCluster() as mock:
        rule = mock.fault(name="x", api=46, steps_before=["failover 1", "failover 9"])
        async with connect(mock) as wire:
            assert (await wire.ask(LIST, 0)).error_code == 0
        (first, second) = rule.failed
        assert first.startswith("failover 1: ")
        assert second.startswith("failover 9: ")
        assert rule.to_dict()["failed"] == [first, second]
        assert mock.failed_faults() == [rule]
        async with connect(mock) as wire:
            await wire.ask(LIST, 0)
        logged = [each.getMessage() for each in caplog.records if "fault rule" in each.message]
        assert logged == [f"fault rule x: {first}", f"fault rule x: {second}"], "each once"
        with pytest.raises(AssertionError, match="fault rule x failed: failover 1: "):
            mock.assert_faults_used()
        notes = [each.note for each in mock.journal.select(event="fault-step-failed")]
        assert [note.split(": ")[:2] for note in notes] == [
            ["x", "failover 1"],
            ["x", "failover 9"],
        ] * 2


async def test_a_change_that_some_response_has_no_place_for_is_no_failure_of_the_rule():
    async with MockCluster(topics=["foo:1:1"], strict_faults=True) as mock:
        rule = mock.fault(api=3, set={"topics[0].name": "bar"})
        async with connect(mock) as wire:
            await wire.ask("Metadata", 8, topics=[])
            assert rule.is_broken
            await wire.ask(METADATA, 8)
        assert rule.failed == ["the response has no topics[0].name"]
        assert not rule.is_broken


async def test_rules_end_by_the_clusters_clock():
    async with MockCluster(clock="manual") as mock:
        rule = mock.fault(api=46, error=41, expires="10s")
        async with connect(mock) as wire:
            mock.advance(9_999)
            assert (await wire.ask(LIST, 0)).error_code == 41
            mock.advance(1)
            assert (await wire.ask(LIST, 0)).error_code == 0
        assert not rule.live
        with pytest.raises(FaultError, match="ended after 1 hits"):
            await mock.wait_for_hit(rule, 2)


async def test_answers_known_by_their_bytes_are_not_given_past_a_rule():
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        usual = await wire.ask(METADATA, 8)
        assert await wire.ask(METADATA, 8) == usual
        rule = mock.fault(api=3, throttle=9, times=2)
        for expected in (9, 9, 0, 0):
            assert (await wire.ask(METADATA, 8)).throttle_time_ms == expected
        assert rule.hits == 2


async def test_scripts_answer_and_rules_change_what_they_say():
    async with MockCluster(strict_faults=True) as mock, connect(mock) as wire:
        mock.script(46, {"throttleTimeMs": 1, "errorCode": 7, "errorMessage": "s", "topics": []})
        mock.fault(api=46, throttle=5, times=1)
        answered = await wire.ask(LIST, 0)
        assert (answered.throttle_time_ms, answered.error_message) == (5, "s")
        assert (await wire.ask(LIST, 0)).throttle_time_ms == 1


async def test_a_predicate_in_python():
    def ours(call: Any) -> bool:
        return call.client_id == "wire" and not call.body.topics

    async with MockCluster() as mock, connect(mock) as wire:
        mock.fault(api=46, error=41, when=ours)
        mock.fault(api=46, error=42, when=lambda call: 1 / 0)
        assert (await wire.ask(LIST, 0)).error_code == 41
        (event,) = mock.journal.select(event="fault-predicate-failed")
        assert "ZeroDivisionError" in event.note
        assert [type(error) for error in mock.take_handler_errors()] == [ZeroDivisionError]


async def test_software_is_known_from_its_api_versions_on():
    async with MockCluster(strict_faults=True) as mock, connect(mock) as wire:
        mock.fault(software="mine", api=46, error=41)
        assert (await wire.ask(LIST, 0)).error_code == 0
        body = request_of("ApiVersions", client_software_name="mine", client_software_version="1")
        await wire.ask(body, 3)
        assert (await wire.ask(LIST, 0)).error_code == 41


async def test_a_handshake_that_is_refused_leaves_the_connection_in_order():
    async with MockCluster(sasl=["PLAIN:u:p"], strict_faults=True) as mock, connect(mock) as wire:
        mock.fault(api=17, error="UNSUPPORTED_SASL_MECHANISM", times=1)
        assert (await wire.ask("SaslHandshake", 1, mechanism="PLAIN")).error_code == 33


async def test_an_unused_rule_fails_a_strict_cluster():
    with pytest.raises(AssertionError, match=r"idle \(api=3 delay=1ms\)"):
        async with MockCluster(strict_faults=True) as mock:
            mock.fault(name="idle", api=3, delay=1)


async def test_a_strict_cluster_hides_no_other_error():
    mock = MockCluster(strict_faults=True)
    await mock.start()
    mock.fault(name="idle", api=3, delay=1)
    error = ZeroDivisionError()
    await mock.__aexit__(type(error), error, None)


@pytest.mark.parametrize("close_with", ["fin", "half-close", "reset"])
async def test_the_ends_of_a_tls_connection(close_with):
    async with MockCluster(tls=server_context(), strict_faults=True) as mock:
        mock.fault(api=3, split=7, times=1)
        mock.fault(api=46, delay=1, disconnect="after", close_with=close_with)
        port = mock.addresses[1].rpartition(":")[2]
        async with asyncio.timeout(PATIENCE):
            broker = await Connection.open("localhost", int(port), ssl=client_context())
            async with broker:
                assert len((await broker.request(METADATA)).brokers) == 3
                with pytest.raises((KprotoError, OSError)):
                    await broker.request(LIST)


async def test_bytes_in_place_of_a_frame_may_be_none():
    async with MockCluster(strict_faults=True) as mock, connect(mock) as wire:
        mock.fault(api=46, raw="", steps_after=["failover 2"], disconnect="answered")
        wire.send(wire.frame(LIST, 0))
        assert await wire.closed() == b""


async def test_the_same_requests_get_the_same_faults():
    async def codes() -> list[int]:
        async with MockCluster() as mock, connect(mock) as wire:
            mock.fault(api=46, error=41, probability=0.5, seed=3)
            return [(await wire.ask(LIST, 0)).error_code for _ in range(24)]

    first = await codes()
    assert set(first) == {0, 41}
    assert first == await codes()


async def test_a_fault_or_its_members():
    async with MockCluster() as mock:
        with pytest.raises(FaultError, match="not both"):
            mock.fault(Fault(delay=1), api=3)
        with pytest.raises(FaultError, match="unknown member 'erorr'"):
            mock.fault(erorr=3)
        made = mock.fault(Fault(delay=1, name="x"))
        assert mock.faults == [made]
        mock.clear_faults()
        assert mock.faults == []
        assert not made.live
