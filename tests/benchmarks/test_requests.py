"""The benchmark of data requests drives a broker as it says, and judges what it measured."""

import asyncio

from benchmarks.bench_broker import TOPIC, Server
from benchmarks.bench_requests import DELAYS, FETCH, IDLE, _marks
from benchmarks.group_members import Group, form
from mockbroker import MockCluster

ALONE = {
    "memory, their logs, MB": 20, "memory, 16 kB": 1.1, "memory, 300 kB": 1.1,
    "start to Metadata": 300, "1,000 clusters": 60_000, "group of 3": 50, "100 groups of 10": 2_000,
}  # fmt: skip


def server(name: str, worse: float = 1) -> Server:
    """What just meets every target, or is that much worse."""
    rates = {"produce, 1 record": 1, "produce, 64 kB": 100, "produce, 1 MB": 300, FETCH: 1000}
    cpu = ["produce, 16 kB", "produce, 64 kB", "produce, 1 MB", FETCH]
    found = Server(name, ("127.0.0.1", 0), 0)
    found.rates = {rate: [value / worse] for rate, value in rates.items()}
    found.rates |= {DELAYS: [500 * worse], IDLE: [5 * worse]}
    found.cpu = {each: [worse] for each in cpu}
    return found


def test_targets_are_judged() -> None:
    marks = _marks({"mockbroker": server("mockbroker"), "kfake": server("kfake")}, ALONE)
    assert [mark.aim for mark in marks if mark.met is not True] == []
    worse = {name: value * 1.01 for name, value in ALONE.items()}
    marks = _marks({"mockbroker": server("mockbroker", 2.1), "kfake": server("kfake")}, worse)
    assert [mark.aim for mark in marks if mark.met is not False] == []
    alone = _marks({"mockbroker": server("mockbroker")}, ALONE)
    assert not any("kfake" in mark.aim for mark in alone)


async def test_members_form_groups_and_send_heartbeats() -> None:
    delay = {"group.initial.rebalance.delay.ms": "0"}
    async with MockCluster(brokers=2, topics=[f"{TOPIC}:1:2"], broker_configs=delay) as mock:
        host, port = mock.addresses[1].rsplit(":", 1)
        groups = [Group(f"g{number}", size) for number, size in enumerate((1, 3))]
        await form(groups, (host, int(port)))
        await asyncio.gather(*(group.heartbeats(0.05, 0.01) for group in groups))
        sizes = {name: len(group.members) for name, group in mock.groups().items()}
        for group in groups:
            group.close()
    assert sizes == {"g0": 1, "g1": 3}
