"""Fault rules, commands and speed, with a mock cluster as the upstream."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kproto.journal import UPSTREAM_ANSWER
from kproto.records import Record, build_batch
from mockbroker import MockCluster
from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults import read_faults
from mockbroker.faults.documents import fault_of
from tests.mockbroker.proxy.conftest import address, dial
from tests.mockbroker.wire import PATIENCE
from tests.support.requests import request_of
from tests.support.waiting import until

Proxied = Callable[..., Any]


def create(name: str = "new") -> Any:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return request_of("CreateTopics", topics=[topic], timeout_ms=1000)


def offsets(*partitions: int) -> Any:
    rows = [{"partition_index": each, "timestamp": -1} for each in partitions]
    return request_of("ListOffsets", name="foo", partitions=rows)


@pytest.mark.requirement("DP-PROXY-29")
@pytest.mark.parametrize(("apply", "created"), [(None, False), (False, False), (True, True)])
async def test_an_error_with_and_without_the_upstream(proxied, apply, created):
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        rule = {"api": "CreateTopics", "error": "NOT_CONTROLLER", "times": 1}
        if apply is not None:
            rule["apply"] = apply
        (active,) = proxy.load_faults([fault_of(rule)])
        async with dial(proxy) as wire:
            assert [each.error_code for each in (await wire.ask(create(), 5)).topics] == [41]
            assert ("new" in mock.cluster.topics) is created
            # The rule has ended.
            assert [each.error_code for each in (await wire.ask(create("other"), 5)).topics] == [0]
        assert active.hits == 1
        assert proxy.unused_faults() == []


@pytest.mark.requirement("DP-PROXY-29")
async def test_a_rule_for_a_partition_leaves_the_others_to_the_upstream(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, topics=["foo:2:1"]) as mock:
        proxy = await proxied(mock)
        proxy.load_faults([fault_of({"api": 2, "partition": 1, "error": "LEADER_NOT_AVAILABLE"})])
        async with dial(proxy, 1) as wire:
            answer = await wire.ask(offsets(0, 1), 7)
            codes = {row.partition_index: row.error_code for row in answer.topics[0].partitions}
            assert codes == {0: 0, 1: 5}
            answer = await wire.ask(offsets(0), 7)
            assert [row.error_code for row in answer.topics[0].partitions] == [0]


@pytest.mark.requirement("DP-PROXY-29")
async def test_topics_by_id_are_known_from_metadata(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, topics=["foo:1:1"], profile="kafka-4.1") as mock:
        proxy = await proxied(mock)
        proxy.load_faults([fault_of({"topic": "foo", "api": 1, "error": "KAFKA_STORAGE_ERROR"})])
        topic_id = mock.cluster.topics["foo"].topic_id
        fetch = request_of("Fetch", topics={"topic_id": topic_id, "partition": 0})
        async with dial(proxy, 1) as wire:
            before = await wire.ask(fetch, 16)
            assert before.responses[0].partitions[0].error_code == 0
            await wire.ask("Metadata", 12, topics=None)
            assert (await wire.ask(fetch, 16)).responses[0].partitions[0].error_code == 56


@pytest.mark.requirement("DP-PROXY-27", "DP-PROXY-29")
async def test_a_delay_holds_what_is_behind_it(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        proxy.load_faults([fault_of({"api": 12, "hold_responses": 1, "times": 1})])
        async with dial(proxy) as wire:
            frames = [wire.frame(request_of("Heartbeat", group_id="g"), 4) for _ in range(3)]
            wire.send(*frames)
            got = [(await wire.receive())[4:8] for _ in frames]
            assert [int.from_bytes(each, "big") for each in got] == [2, 1, 3]
            proxy.load_faults([fault_of({"api": 12, "delay": "20ms", "times": 1})])
            wire.send(*(wire.frame(request_of("Heartbeat", group_id="g"), 4) for _ in range(3)))
            got = [(await wire.receive())[4:8] for _ in frames]
            assert [int.from_bytes(each, "big") for each in got] == [4, 5, 6]


@pytest.mark.requirement("DP-PROXY-29", "DP-PROXY-30")
async def test_what_the_upstream_answered_is_in_the_journal(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, topics=["foo:1:1"]) as mock:
        proxy = await proxied(mock)
        proxy.load_faults([fault_of({"api": 2, "set": {"topics[*].partitions[*].offset": 7}})])
        async with dial(proxy, 1) as wire:
            answer = await wire.ask(offsets(0), 7)
        assert answer.topics[0].partitions[0].offset == 7
        (given,) = proxy.journal.select(api=2, direction="response")
        (upstream,) = proxy.journal.select(event=UPSTREAM_ANSWER)
        assert given.event.startswith("fault: ")
        assert given.decode().body.topics[0].partitions[0].offset == 7
        assert upstream.decode().body.topics[0].partitions[0].offset == 0


@pytest.mark.requirement("DP-PROXY-29")
async def test_ends_and_bytes_of_rules(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        rules: list[tuple[dict[str, Any], bool]] = [
            ({"disconnect": "before"}, False),
            ({"disconnect": "after"}, True),
            ({"raw": "00000004deadbeef", "apply": False}, False),
        ]
        for number, (rule, arrives) in enumerate(rules):
            (active,) = proxy.load_faults([fault_of({"api": "CreateTopics", "times": 1, **rule})])
            async with dial(proxy) as wire:
                wire.send(wire.frame(create(f"t{number}"), 5))
                if "raw" in rule:
                    assert (await wire.receive()).hex() == "00000004deadbeef"
                else:
                    assert await wire.closed() == b""
            assert active.hits == 1
            assert (f"t{number}" in mock.cluster.topics) is arrives


@pytest.mark.requirement("DP-PROXY-28", "DP-PROXY-29")
async def test_a_rule_takes_produce_without_an_answer(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, topics=["foo:1:1"]) as mock:
        proxy = await proxied(mock)
        (active,) = proxy.load_faults([fault_of({"api": 0, "delay": "1ms"})])
        data = [{"index": 0, "records": build_batch([Record(value=b"v")])}]
        silent = request_of("Produce", acks=0, timeout_ms=1, name="foo", partition_data=data)
        async with dial(proxy, 1) as wire:
            wire.send(wire.frame(silent, 9))
            await wire.ask("ApiVersions", 0)
        assert active.hits == 1


@pytest.mark.requirement("DP-PROXY-29")
async def test_steps_on_a_mocks_state_are_refused(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        for member in ("steps_before", "steps_after"):
            with pytest.raises(FaultError, match="join-isr is an operation on a mock cluster"):
                proxy.load_faults([fault_of({"api": 3, member: ["join-isr foo-0 1"]})])
            with pytest.raises(FaultError, match="drop-upstream is an operation on a proxy"):
                mock.load_faults([fault_of({"api": 3, member: ["drop-upstream 1"]})])
        assert proxy.faults == []


@pytest.mark.requirement("DP-PROXY-29", "DP-PROXY-33")
async def test_steps_drop_and_refuse_the_upstream(proxied: Proxied) -> None:
    document = """
    - {api: CreateTopics, times: 1, steps_before: [refuse-upstream self, drop-upstream other]}
    - {api: Heartbeat, times: 1, steps_after: [drop-upstream self]}
    """
    async with MockCluster(brokers=2) as mock:
        proxy = await proxied(mock)
        proxy.load_faults(read_faults(document))
        async with dial(proxy, 1) as wire, dial(proxy, 2) as other:
            await other.ask("ApiVersions", 0)
            await wire.ask(create(), 5)
            assert await other.closed() == b""
            async with dial(proxy, 1) as refused:
                assert await refused.closed() == b""
            wire.send(wire.frame(request_of("Heartbeat", group_id="g"), 4))
            assert await wire.closed() == b""
        notes = [each.note for each in proxy.journal.select(event="upstream-unreachable")]
        assert notes == [f"{mock.addresses[1]}: connections are refused (refuse-upstream)"]


@pytest.mark.requirement("DP-PROXY-33")
async def test_commands(proxied: Proxied) -> None:
    async with MockCluster(brokers=2) as mock:
        proxy = await proxied(mock)
        async with dial(proxy, 2) as wire, dial(proxy, 1) as stays:
            await wire.ask("ApiVersions", 0)
            proxy.run_command("drop-upstream 2")
            assert await wire.closed() == b""
            proxy.run_command("refuse-upstream 2")
            async with dial(proxy, 2) as refused:
                assert await refused.closed() == b""
            proxy.run_command("allow-upstream 2")
            async with dial(proxy, 2) as again:
                await again.ask("ApiVersions", 0)
            await stays.ask("ApiVersions", 0)
        for text, problem in (
            ("drop-upstream 9", "the upstream has named no broker 9 yet"),
            ("drop-upstream", "lacks an argument"),
            ("failover 1", "is not an operation"),
        ):
            with pytest.raises(ClusterError, match=problem):
                proxy.run_command(text)


async def test_latency_and_bandwidth_change_nothing_but_time(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, topics=["foo:50:1"]) as mock:
        proxy = await proxied(mock, latency_ms=2)
        async with dial(proxy) as wire:
            body = await wire.ask("Metadata", 12, topics=None)
            proxy.run_command("set-latency 0")
            proxy.run_command("set-bandwidth 200000")
            assert await wire.ask("Metadata", 12, topics=None) == body
            proxy.run_command("set-bandwidth 0")
            assert await wire.ask("Metadata", 12, topics=None) == body


@pytest.mark.requirement("DP-PROXY-29")
async def test_a_rule_expires(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        (rule,) = proxy.load_faults([fault_of({"api": 12, "error": 27, "expires": "1ms"})])
        await until(lambda: not rule.live, "the rule's end")
        async with dial(proxy) as wire:
            assert (await wire.ask("Heartbeat", 4, group_id="g")).error_code != 27


@pytest.mark.requirement("DP-PROXY-27")
async def test_a_request_that_comes_before_the_upstream_is_connected(proxied, monkeypatch):
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock, profile="kafka-2.4")
        (rule,) = proxy.load_faults([fault_of({"api": 12, "delay": 0})])
        connect, ready = proxy.connect, asyncio.Event()

        async def later(*arguments: Any) -> None:
            await ready.wait()
            await connect(*arguments)

        monkeypatch.setattr(proxy, "connect", later)
        host, port = address(proxy.bootstrap)
        async with dial(proxy) as wire:
            await until(lambda: len(proxy.connections) == 1, "a connection")
            (connection,) = proxy.connections
            # uvloop reads before the protocol can stop it.
            connection.data_received(wire.frame(request_of("ApiVersions"), 4))
            connection.data_received(wire.frame(request_of("Heartbeat", group_id="g"), 4))
            ready.set()
            async with asyncio.timeout(PATIENCE):
                assert (await wire.receive())[4:10].hex() == "000000010023"
                assert (await wire.receive())[4:8].hex() == "00000002"
        assert (host, port) == address(proxy.bootstrap)
        assert rule.hits == 1
