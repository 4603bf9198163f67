"""Captures made up for the pipeline: several connections of Kafka, mixed, and torn as taps do."""

from __future__ import annotations

import random
from ipaddress import ip_address
from struct import pack

from kproto.capture import Conversation, container
from kproto.capture.packets import ethernet_frame, ip_packet
from tests.wiredump.talk import say

START_NS = 1_700_000_000_000_000_000


def connection(rng: random.Random, number: int, exchanges: int) -> list[bytes]:
    """IP packets of one connection, as they were sent."""
    six = rng.random() < 0.2
    ends = (f"10.0.0.{1 + number % 3}", "10.0.1.1") if not six else ("2001:db8::1", "2001:db8::2")
    talk = Conversation(
        (ends[0], 40_000 + number), (ends[1], 9092), segment_size=rng.choice((64, 500, 1448)),
        client_isn=rng.choice((1, 2**32 - 200)),
    )  # fmt: skip
    packets = talk.open() if rng.random() < 0.8 else []
    for each in range(exchanges):
        said = say(rng, each)
        packets += talk.send(said.request)
        if said.response is not None:
            packets += talk.send(said.response, from_server=True)
        elif rng.random() < 0.5:
            packets.append(talk.acknowledge(from_server=True))
    if rng.random() < 0.6:
        packets += talk.close(from_server=rng.random() < 0.5)
    return packets


def mixed(rng: random.Random, talks: list[list[bytes]]) -> list[bytes]:
    """All of them, each in its order."""
    queues = [list(reversed(talk)) for talk in talks if talk]
    packets = []
    while queues:
        queue = rng.choice(queues)
        packets.append(queue.pop())
        if not queue:
            queues.remove(queue)
    return packets


def fragmented(packet: bytes, rng: random.Random) -> list[bytes]:
    """An IPv4 packet in pieces; any other as it is."""
    if packet[0] >> 4 != 4 or len(packet) < 80:
        return [packet]
    source, destination = ip_address(packet[12:16]), ip_address(packet[16:20])
    body, number = packet[20:], rng.randrange(1 << 16)
    at = rng.randrange(8, len(body), 8)
    pieces = [
        ip_packet(source, destination, body[:at], identification=number, fragment=0x2000),
        ip_packet(source, destination, body[at:], identification=number, fragment=at // 8),
    ]
    if rng.random() < 0.2:
        pieces.pop()
    rng.shuffle(pieces)
    return pieces


def torn(packets: list[bytes], rng: random.Random, share: float) -> list[tuple[bytes, int]]:
    """What was captured of them, and their length on the wire: some lost, doubled, late, cut."""
    out: list[tuple[bytes, int]] = []
    for packet in packets:
        chance = rng.random() / share if share else 9.0
        pieces = [packet]
        if chance < 0.2:
            continue
        if chance < 0.4:
            pieces = [packet, packet]
        elif chance < 0.6:
            pieces = fragmented(packet, rng)
        for piece in pieces:
            framed = ethernet_frame(piece)
            kept = len(framed)
            if 0.6 <= chance < 0.8:
                kept = rng.randrange(len(framed))
            out.append((framed[:kept], len(framed)))
        if 0.8 <= chance < 1 and len(out) > 1:
            out[-1], out[-2] = out[-2], out[-1]
    return out


def times(rng: random.Random, count: int, back: float = 0.05) -> list[int]:
    now, found = START_NS, []
    for _ in range(count):
        now += rng.choice((0, 1_000, 1_000_000, 300_000_000))
        step = rng.randrange(10**9) if rng.random() < back else 0
        found.append((now - step) // 1000 * 1000)
    return found


def pcap(
    records: list[tuple[int, bytes, int]], order: str = "<", nanoseconds: bool = False,
    link_type: int = 1,
) -> bytes:  # fmt: skip
    """Of times, captured bytes and lengths on the wire."""
    return container.pcap_header(link_type, order=order, nanoseconds=nanoseconds) + b"".join(
        container.pcap_record(
            time, data, order=order, nanoseconds=nanoseconds, original_length=length
        )
        for time, data, length in records
    )


def pcapng(records: list[tuple[int, bytes, int]], rng: random.Random, odd: float) -> bytes:
    """With blocks of other kinds between them, and new sections, where ``odd`` has it."""
    order, resolution = rng.choice("<>"), rng.choice((6, 9))
    made = [container.pcapng_section(order=order)]
    made.append(container.pcapng_interface(1, order=order, resolution=resolution))
    for time, data, length in records:
        chance = rng.random() / odd if odd else 9.0
        if chance < 0.2:
            made.append(container.block(5, pack(order + "III", 0, 0, 0), order=order))
        elif chance < 0.4:
            order, resolution = rng.choice("<>"), rng.choice((6, 9))
            made.append(container.pcapng_section(order=order))
            made.append(container.pcapng_interface(1, order=order, resolution=resolution))
        elif chance < 0.6:
            made.append(container.pcapng_simple_packet(data, order=order, original_length=length))
            continue
        elif chance < 0.7:
            made.append(container.pcapng_packet(0, data, order=order, interface=7))
            continue
        ticks = time // 10 ** (9 - resolution)
        made.append(container.pcapng_packet(ticks, data, order=order, original_length=length))
    return b"".join(made)


def capture(
    seed: int, *, connections: int = 4, exchanges: int = 4, share: float = 0.2, back: float = 0.05,
    odd: float = 0.0, kind: str = "",
) -> bytes:  # fmt: skip
    """A file; the same for the same numbers."""
    rng = random.Random(seed)
    talks = [connection(rng, number, rng.randint(0, exchanges)) for number in range(connections)]
    taken = torn(mixed(rng, talks), rng, share)
    records = [
        (time, data, length)
        for time, (data, length) in zip(times(rng, len(taken), back), taken, strict=True)
    ]
    kind = kind or rng.choice(("pcap", "pcap>", "pcap-ns", "pcapng"))
    if kind == "pcapng":
        return pcapng(records, rng, odd)
    return pcap(records, ">" if kind == "pcap>" else "<", kind == "pcap-ns")
