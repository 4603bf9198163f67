"""Turn captures into TCP byte streams: pure Python, without Spark and without Kafka.

::

    file, pipe     Capture            bytes out of files: gzip, zstd, following one that grows
      bytes        pcap, pcapng       -> Packet      (time, link type, captured bytes)
      packets      merge              several captures as one, by time
                   link, ip, segments -> Segment     (addresses, ports, sequence numbers, payload)
      segments     tcp               -> Event       (Opened, Data, Gap, Retransmission, Closed)

All at once, with the account of every byte::

    streams = Streams()
    for event in streams.read(Capture("a.pcap"), Capture("b.pcapng.zst", number=1)):
        match event:
            case Data(): ...
    streams.account.check()

Or step by step, while a capture grows::

    capture, streams = Capture("growing.pcap"), Streams()
    while not stopped():
        for packet in capture.poll():           # complete packets, perhaps none
            for event in streams.feed(packet):  # also passes on an Anomaly
                ...
    for packet in capture.finish(): ...         # an Anomaly if it ended inside a record
    for event in streams.close(): ...

Guarantees:

- ``Opened`` is the first event of each connection, and ``Closed`` ends it: after that no ``Data``
  or ``Gap`` follows, only late segments. ``Streams.close`` closes the remaining connections.
- The ``Data`` and ``Gap`` of one direction follow each other without a hole or an overlap.
- If packets were lost, the two directions are *not* in step: data behind a hole is delivered when
  the hole is filled or given up. ``Data.timestamp_ns`` is always that of its own packet.
- Nothing in a capture raises an exception, and ``Limits`` bounds the memory.
- Each byte of TCP payload is in one of ``Data``, ``Retransmission`` and ``Anomaly.length``; a
  ``Gap`` counts bytes that were not captured, or not in time for a limit (``REASSEMBLY_LIMITS``).
  ``Account.check`` verifies the sums.
- The same captures give the same events, however they were split into reads.
"""

from wiredump.readers.account import Account, AccountError
from wiredump.readers.capture import Capture
from wiredump.readers.merge import merge
from wiredump.readers.model import (
    FROM_CLIENT,
    FROM_SERVER,
    REASSEMBLY_LIMITS,
    TLS_KEY_LOG,
    Anomaly,
    Closed,
    Data,
    Endpoint,
    Event,
    Gap,
    Interface,
    Opened,
    Packet,
    Retransmission,
    Secrets,
    Segment,
)
from wiredump.readers.streams import Streams
from wiredump.readers.tcp import Limits, TcpReassembler

__all__ = [
    "FROM_CLIENT", "FROM_SERVER", "REASSEMBLY_LIMITS", "TLS_KEY_LOG", "Account", "AccountError",
    "Anomaly", "Capture", "Closed", "Data", "Endpoint", "Event", "Gap", "Interface", "Limits",
    "Opened", "Packet", "Retransmission", "Secrets", "Segment", "Streams", "TcpReassembler",
    "merge",
]  # fmt: skip
