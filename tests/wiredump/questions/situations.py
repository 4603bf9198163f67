"""Captures in which one thing goes wrong, and who is to blame: among clients and brokers that have
nothing to do with it."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kproto.capture.packets import ACK, FIN
from kproto.records import Record, build_batch
from tests.wiredump.questions.incident import Client, quiet
from tests.wiredump.unread_captures import START_NS, Packet, file_of

__all__ = ["SITUATIONS", "Situation", "situation"]


class Situation(NamedTuple):
    """``found``: how the findings begin that name what is to blame, the first of which comes first;
    nothing else is a finding."""

    capture: bytes
    found: tuple[str, ...]


class _Scene:
    """``client`` adds a connection, ``broker`` is one that quiet clients do not use."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.clients: list[Client] = []
        self.port = rng.randrange(9093, 9100)
        self.broker = f"10.0.0.2:{self.port}"

    def client(self, name: str, start_ns: int = START_NS) -> Client:
        self.clients.append(Client(len(self.clients), name, self.port, start_ns))
        return self.clients[-1]

    def several(self, name: str, most: int = 4) -> Iterator[Client]:
        for _ in range(self.rng.randint(1, most)):
            yield self.client(name)


def _slow_broker(scene: _Scene) -> tuple[str, ...]:
    for client in scene.several("app"):
        for _ in range(scene.rng.randint(5, 30)):
            client.heartbeat(seconds=scene.rng.uniform(0.6, 3))
    return (f"broker {scene.broker} needed",)


def _hung_broker(scene: _Scene) -> tuple[str, ...]:
    for client in scene.several("app"):
        client.heartbeat()
        client.heartbeat(answered=False)
        client.line.wait(scene.rng.uniform(11, 40))
        client.line.acknowledge(0)
        client.line.finish()
    return (f"broker {scene.broker} left {len(scene.clients)} requests unanswered",)


def _slow_client(scene: _Scene) -> tuple[str, ...]:
    client = scene.client("reader")
    for _ in range(scene.rng.randint(3, 20)):
        client.fetch(4)
        client.line.put(0, ACK, window=0)
        client.line.wait(scene.rng.uniform(0.1, 0.4))
        client.line.put(0, ACK)
    return (f"client reader at 10.0.0.1 does not read what broker {scene.broker} sends",)


def _lossy_link(scene: _Scene) -> tuple[str, ...]:
    client, end = scene.client("app"), scene.rng.randrange(2)
    for _ in range(scene.rng.randint(12, 30)):
        client.heartbeat()
        client.line.again(end, b"x" * 6, 6)
    return (f"between 10.0.0.1:{client.port} and {scene.broker} 0 bytes were never captured",)


def _lost_packets(scene: _Scene) -> tuple[str, ...]:
    client, size = scene.client("app"), scene.rng.randint(1_000, 50_000)
    client.produce()
    client.line.skip(0, size)
    client.produce()
    return (f"between 10.0.0.1:{client.port} and {scene.broker} {size} bytes were never captured",)


def _stuck_group(scene: _Scene) -> tuple[str, ...]:
    client, at = scene.client("consumer"), scene.rng.randint(1, 1000)
    count = scene.rng.randint(3, 20)
    for number in range(count):
        client.fetch(4, 0.4, offset=at + 5, end=at + 10 + number)
        client.commit("billing", at)
    return (f"group billing commits offset {at} of payments-0 again and again, {count} times",)


def _poison(scene: _Scene) -> tuple[str, ...]:
    """A consumer that gets the same batch again and again."""
    client, at = scene.client("consumer"), scene.rng.randint(1, 1000)
    batch = build_batch([Record(value=b"v")], base_offset=at)
    records = b64encode(batch).decode()
    count = scene.rng.randint(5, 20)
    for _ in range(count):
        client.fetch(4, offset=at, end=at + 1, records=records)
    return (f"client consumer fetched payments-0 from offset {at} {count} times",)


def _rebalances(scene: _Scene) -> tuple[str, ...]:
    client, times = scene.client("member"), scene.rng.randint(5, 20)
    for generation in range(times):
        client.rebalance(generation + 1)
        client.line.wait(scene.rng.randint(1, 30))
    return (f"group orders rebalanced {times} times",)


def _old_version(scene: _Scene) -> tuple[str, ...]:
    for client in scene.several("ancient", 1):
        client.fetch(2)
    return ("client ancient sends Fetch in version 2",)


def _dropped(scene: _Scene) -> tuple[str, ...]:
    """The broker closes the connection at a request that it does not support."""
    count = scene.rng.randint(2, 6)
    for number in range(count):
        client = scene.client("ancient", START_NS + number * 10**10)
        client.heartbeat(answered=False)
        client.line.put(1, ACK | FIN)
    return (
        f"broker {scene.broker} closed {count} connections of client ancient without an answer",
    )


def _throttled(scene: _Scene) -> tuple[str, ...]:
    for _ in scene.several("greedy"):
        scene.clients[-1].produce(throttled=1000)
    return ("client greedy was throttled",)


def _error(error: int, name: str, times: int = 1) -> Callable[[_Scene], tuple[str, ...]]:
    def make(scene: _Scene) -> tuple[str, ...]:
        client = scene.client("producer")
        for _ in range(times):
            client.produce(error=error)
        what = f"{name} for payments-0 from broker {scene.broker}: {times} responses to Produce"
        return (what,)

    return make


def _elections(scene: _Scene) -> tuple[str, ...]:
    client = scene.client("producer")
    for partition in range(scene.rng.randint(1, 8)):
        for _ in range(3):
            client.produce(error=6, partition=partition)
    return ("NOT_LEADER_OR_FOLLOWER for payments-",)


def _reconnects(scene: _Scene) -> tuple[str, ...]:
    count = scene.rng.randint(40, 80)
    for number in range(count):
        client = scene.client("storm", START_NS + number * scene.rng.randint(1, 5) * 10**8)
        if scene.rng.random() < 0.8:
            client.heartbeat()
        client.line.finish()
    return ("client storm at 10.0.0.1 opened",)


def _refused(scene: _Scene) -> tuple[str, ...]:
    for client in scene.several("app"):
        client.line.packets[1:] = []
    return (f"broker {scene.broker} refused, or did not answer, {len(scene.clients)} attempts",)


SITUATIONS: Final[dict[str, Callable[[_Scene], tuple[str, ...]]]] = {
    "slow broker": _slow_broker,
    "hung broker": _hung_broker,
    "slow client": _slow_client,
    "lossy link": _lossy_link,
    "lost packets": _lost_packets,
    "stuck group": _stuck_group,
    "poison": _poison,
    "rebalances": _rebalances,
    "old version": _old_version,
    "dropped": _dropped,
    "throttled": _throttled,
    "too large": _error(10, "MESSAGE_TOO_LARGE"),
    "disk": _error(56, "KAFKA_STORAGE_ERROR"),
    "replicas": _error(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    "access": _error(29, "TOPIC_AUTHORIZATION_FAILED"),
    "elections": _elections,
    "reconnects": _reconnects,
    "refused": _refused,
    "clock ahead": lambda scene: ("the clock of the capture stepped",),
    "clock back": lambda scene: ("the clock of the capture went back",),
}


def situation(name: str, seed: object) -> Situation:
    rng = random.Random(f"{seed} {name}")
    scene = _Scene(rng)
    found = SITUATIONS[name](scene)
    clients = scene.clients + quiet(rng, 200)
    if name.startswith("clock"):
        clients = _busy(scene)
    packets = [packet for client in clients for packet in client.line.packets]
    if name.startswith("clock"):
        packets = _stepped(rng, sorted(packets), ahead=name == "clock ahead")
    else:
        packets.sort()
    return Situation(file_of(packets), found)


def _busy(scene: _Scene) -> list[Client]:
    """Clients of two brokers that always have a request open."""
    clients = [Client(number, f"busy-{number}", 9092 + number % 2) for number in range(6)]
    for client in clients:
        for _ in range(40):
            client.fetch(4, 0.4)
    return clients


def _stepped(rng: random.Random, packets: list[Packet], *, ahead: bool) -> list[Packet]:
    """The clock steps in the middle."""
    at = rng.randrange(len(packets) // 4, len(packets) * 3 // 4)
    step = int(rng.uniform(5, 500) * 10**9) * (1 if ahead else -1)
    return [
        each._replace(time_ns=each.time_ns + step) if number >= at else each
        for number, each in enumerate(packets)
    ]
