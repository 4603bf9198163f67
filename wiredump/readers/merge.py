"""Several captures of one incident as one, by time. Lazy: never more than a window of each is held.

Captures are nearly in the order of time, not quite: several queues or interfaces write to one file.
So each is sorted within a window of packets, and a packet older than one already handed out passes
on as it comes, with an anomaly for every step back. One wrong time does no harm: a packet from the
future waits in its window until the end, the rest passes it by.

One capture alone keeps its own order, whatever its times: the file knows best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from wiredump.readers.model import Anomaly, Packet

__all__ = ["WINDOW", "merge", "sorted_within"]

WINDOW: Final = 256
"""Packets of one capture that are looked at together."""


def merge(
    *captures: Iterable[Packet | Anomaly], window: int = WINDOW
) -> Iterator[Packet | Anomaly]:
    """The packets of all captures, the earliest first; of one time, in the captures' order."""
    if len(captures) == 1:
        yield from captures[0]
        return
    # The time of what each would give next; a number decides where times are equal.
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
            # An anomaly without a time belongs where it stands in its file: at once.
            time = following.timestamp_ns if isinstance(following, Packet) else head.timestamp_ns
            heapreplace(heads, (time, number, following, rest))
            break
        else:
            heappop(heads)


def sorted_within(
    packets: Iterator[Packet | Anomaly], window: int = WINDOW
) -> Iterator[Packet | Anomaly]:
    """One capture in the order of time, as far as a window shows it."""
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
