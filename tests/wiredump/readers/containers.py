"""Captures as files, in every form the readers take; a test draws one and its records."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from struct import pack

from hypothesis import strategies as st

from kproto.capture import container

FORMATS = ("pcap", "pcap-ns", "pcapng", "pcapng-simple", "pcapng-obsolete")
RECORDS = st.lists(
    st.tuples(
        st.integers(1, 2**30),  # seconds
        st.integers(0, 999_999_999),
        st.binary(max_size=70),
        st.integers(0, 40),  # bytes on the wire and not captured
    ),
    max_size=12,
)


@dataclass(frozen=True)
class Form:
    name: str
    order: str
    resolution: int = 9  # pcapng's if_tsresol
    offset_seconds: int = 0

    def time(self, seconds: int, nanoseconds: int) -> int:
        """What is left of a time in this form."""
        if self.name == "pcap":
            nanoseconds -= nanoseconds % 1000
        whole = seconds * 1_000_000_000 + nanoseconds
        if self.name.startswith("pcapng"):
            units = self._units()
            return whole * units // 1_000_000_000 * 1_000_000_000 // units + self._offset()
        return whole

    def _units(self) -> int:
        exponent = self.resolution & 0x7F
        return int((2 if self.resolution & 0x80 else 10) ** exponent)

    def _offset(self) -> int:
        return self.offset_seconds * 1_000_000_000

    def header(self, link_type: int = 1) -> bytes:
        if self.name.startswith("pcapng"):
            options = [
                (container.INTERFACE_NAME, "eth0 ü".encode()),
                (0x8123, b"unknown"),
                (container.TIME_OFFSET, self.offset_seconds.to_bytes(
                    8, "little" if self.order == "<" else "big", signed=True)),
            ]  # fmt: skip
            return container.pcapng_section(order=self.order) + container.pcapng_interface(
                link_type, order=self.order, resolution=self.resolution, options=options
            )
        return container.pcap_header(
            link_type, order=self.order, nanoseconds=self.name == "pcap-ns"
        )

    def record(self, seconds: int, nanoseconds: int, data: bytes, more: int) -> bytes:
        original, order = len(data) + more, self.order
        if not self.name.startswith("pcapng"):
            return container.pcap_record(
                seconds * 1_000_000_000 + nanoseconds, data, order=order,
                nanoseconds=self.name == "pcap-ns", original_length=original,
            )  # fmt: skip
        ticks = (seconds * 1_000_000_000 + nanoseconds) * self._units() // 1_000_000_000
        if self.name == "pcapng-simple":
            return container.pcapng_simple_packet(data, order=order)
        if self.name == "pcapng-obsolete":
            head = pack(order + "HH4I", 0, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), original)
            return container.block(2, head + data, order=order)
        return container.pcapng_packet(
            ticks, data, order=order, original_length=original,
            options=[(container.COMMENT, b"a comment")],
        )  # fmt: skip


FORMS = st.builds(
    Form,
    name=st.sampled_from(FORMATS),
    order=st.sampled_from("<>"),
    resolution=st.sampled_from((0, 3, 6, 9, 10, 0x80 | 10, 0x80 | 20)),
    offset_seconds=st.sampled_from((0, 1, -1, 1_000_000)),
).filter(lambda form: form.resolution <= 9 or form.name.startswith("pcapng"))


def members(data: bytes, size: int) -> bytes:
    """gzip in as many members as ``size`` makes of it."""
    return b"".join(gzip.compress(data[at : at + size]) for at in range(0, len(data), size))
