"""Merge several captures by time. Lazily: at most a window of each is held.

Captures are nearly, but not quite, in the order of time, since several queues or interfaces write
to one file. So each is sorted within a window of packets; a packet older than one already returned
passes through, with an anomaly for each step back. One wrong time does no harm: a packet from the
future waits in its window until the end while others pass it.

A single capture keeps its own order, whatever its times are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from wiredump.readers.model import Anomaly, Packet

__all__ = ["WINDOW", "merge", "sorted_within"]

WINDOW: Final = 256
"""Packets of one capture that are sorted together."""


def merge(
    *captures: Iterable[Packet | Anomaly], window: int = WINDOW
) -> Iterator[Packet | Anomaly]:
    """Yield the packets of all captures by time; with equal times, in the order of the captures."""
    if len(captures) == 1:
        yield from captures[0]
        return
    # The time of each capture's next packet; its number decides between equal times.
    heads: list[tuple[int, int, Packet | Anomaly, Iterator[Packet | Anomaly]]] = []
    for number, capture in enumerate(captures):
        rest = sorted_within(iter(capture), window)
        for first in rest:
            heads.append((first.timestamp_ns, number, first, rest))
            break
    heapify(heads)
    while heads:
        _, number, head, rest = heads[0]
        yield head
        for following in rest:
            # An anomaly without a time stays in its place in the file: it comes at once.
            time = following.timestamp_ns if isinstance(following, Packet) else head.timestamp_ns
            heapreplace(heads, (time, number, following, rest))
            break
        else:
            heappop(heads)


def sorted_within(
    packets: Iterator[Packet | Anomaly], window: int = WINDOW
) -> Iterator[Packet | Anomaly]:
    """Yield one capture in the order of time, within a window."""
    held: list[tuple[int, int, Packet | Anomaly]] = []
    newest: int | None = None
    latest_time = 0
    for order, packet in enumerate(packets):
        if isinstance(packet, Packet):
            latest_time = packet.timestamp_ns
        heappush(held, (latest_time, order, packet))
        if len(held) > window:
            time, _, earliest = heappop(held)
            yield from _noting_steps_back(earliest, time, newest)
            newest = time
    while held:
        time, _, earliest = heappop(held)
        yield from _noting_steps_back(earliest, time, newest)
        newest = time


def _noting_steps_back(
    packet: Packet | Anomaly, time: int, newest: int | None
) -> Iterator[Packet | Anomaly]:
    if newest is not None and time < newest:
        reason = f"the time goes back by {newest - time} ns"
        yield Anomaly("clock", reason, packet.capture, packet.offset, time)
    yield packet
