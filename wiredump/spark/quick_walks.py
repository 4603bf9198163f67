"""The walks of ``walks`` with the extension: records in bulk, and unusual ones one by one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from wiredump.readers import Anomaly, Packet
from wiredump.spark.heads import Head
from wiredump.spark.walks import PcapngWalk, PcapWalk, Walked

__all__ = ["QuickPcapWalk", "QuickPcapngWalk"]

_RECORD = 16


class QuickPcapWalk(PcapWalk):
    def __init__(self, head: Head, context: bytes, capture: int, module: ModuleType) -> None:
        super().__init__(head, context, capture)
        self._walk = module.walk_pcap
        scale = 1 if head.nanoseconds else 1000
        self._how = head.order == ">", scale, head.limit, self._link_type, capture

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        packets, at = self._walk(chunk, 0, base, *self._how, stop)
        damaged = False
        if at <= len(chunk) - _RECORD and base + at < stop:
            damaged = self._length(chunk, at + 8)[0] > self._head.limit
        return Walked([], [], at, damaged, () if packets is None else (packets,))


class QuickPcapngWalk(PcapngWalk):
    def __init__(
        self, head: Head, context: bytes, capture: int, time_ns: int | None, module: ModuleType
    ) -> None:
        super().__init__(head, context, capture, time_ns)
        self._walk = module.walk_pcapng
        self._capture = capture

    def walk(self, chunk: bytes, base: int, stop: int) -> Walked:
        last = self.last(chunk, base, stop)
        found: list[Any] = []
        others: list[Packet | Anomaly] = []
        at, damaged = 0, False
        while at <= last:
            clocks, first = self._reader.clocks
            packets, at = self._walk(
                chunk, at, base, self._order == ">", clocks, first, self._capture, stop
            )
            if packets is not None:
                found.append(packets)
                self._time = packets[len(packets) - 1][1]
            if at > last:
                break
            block, end = self.block(chunk, at)
            if end is None:
                damaged = True
                break
            if end > len(chunk):
                break
            self._other(block, chunk, base, at, end, others)
            if self._reader.stopped:
                return Walked([], others, len(chunk), True, tuple(found))
            at = end
        return Walked([], others, at, damaged, tuple(found))
