"""Captures of connections on which segments were lost, sent again, with other bounds, or overtaken
by later ones. Deterministic: a seed makes one capture."""

import random
from typing import Final

from kproto.capture import container
from tests.wiredump.readers.conversations import Connection, Sent, farewell, handshake, packets

__all__ = ["badly_captured"]

ROUNDS: Final = 12
LARGEST: Final = 1_200


def badly_captured(seed: int, connections: int) -> bytes:
    """A pcap of so many connections, one after the other, IPv4 and IPv6, some of them beginning
    close to where sequence numbers wrap."""
    rng = random.Random(seed)
    capture = container.pcap_header(1)
    at = 1_700_000_000_000_000_000
    for number in range(connections):
        isn = rng.choice((1_000, 2**32 - rng.randrange(1, 4_000)))
        connection = Connection(version=rng.choice((4, 6)), isns=(isn, 2_000), port=50_000 + number)
        for packet in packets(_segments(rng), connection, start_ns=at):
            capture += container.pcap_record(packet.timestamp_ns, bytes(packet.data))
        at += 10_000_000_000
    return capture


def _segments(rng: random.Random) -> list[Sent]:
    """Each side in turn sends a burst, which the other acknowledges as a whole."""
    sent = handshake()
    lengths = [0, 0]
    for number in range(ROUNDS):
        direction = number % 2
        start = lengths[direction]
        burst = rng.randbytes(rng.randint(100, 8_000))
        lengths[direction] += len(burst)
        sent += _burst(rng, direction, start, burst, lengths[1 - direction])
        sent.append(Sent(1 - direction, lengths[1 - direction], acked=lengths[direction]))
    return sent + farewell((lengths[0], lengths[1]))


def _burst(rng: random.Random, direction: int, start: int, data: bytes, acked: int) -> list[Sent]:
    segments = []
    at = 0
    while at < len(data):
        end = min(len(data), at + rng.randint(1, LARGEST))
        segments.append(Sent(direction, start + at, data[at:end], acked=acked))
        if rng.random() < 0.15:  # again, with bounds of its own
            again = rng.randrange(at + 1)
            segments.append(Sent(direction, start + again, data[again:end], acked=acked))
        at = end
    kept = [segment for segment in segments if rng.random() > 0.08]
    keys = [index + rng.randint(0, 3) for index in range(len(kept))]
    return [kept[index] for index in sorted(range(len(kept)), key=lambda index: keys[index])]
