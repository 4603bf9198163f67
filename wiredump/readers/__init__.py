"""Captures to TCP byte streams: pure Python, no Spark, and no knowledge of Kafka.

::

    file, pipe     Capture            bytes out of files: gzip, zstd, following one that grows
      bytes        pcap, pcapng       -> Packet      (time, link type, captured bytes)
      packets      merge              several captures as one, by time
                   link, ip, segments -> Segment     (addresses, ports, sequence numbers, payload)
      segments     tcp               -> Event       (Opened, Data, Gap, Retransmission, Closed)

In one go, with the account of where every byte went::

    streams = Streams()
    for event in streams.read(Capture("a.pcap"), Capture("b.pcapng.zst", number=1)):
        match event:
            case Data(): ...
    streams.account.check()

or step by step, as a capture grows::

    capture, streams = Capture("growing.pcap"), Streams()
    while not stopped():
        for packet in capture.poll():           # what is complete by now, perhaps nothing
            for event in streams.feed(packet):  # an Anomaly of the container passes through
                ...
    for packet in capture.finish(): ...         # an Anomaly if it ended inside a record
    for event in streams.close(): ...

What holds for the events:

- ``Opened`` comes first for each connection, ``Closed`` ends it: after it no ``Data`` and no
  ``Gap`` come, only what was late. Every connection is closed by ``Streams.close`` at the latest.
- The ``Data`` and ``Gap`` of one direction follow each other without a hole or an overlap.
- The directions of a connection are *not* in step where packets were lost: what waits behind a hole
  comes when the hole is filled or given up. ``Data.timestamp_ns`` is always its own packet's.
- Nothing raises for what a capture holds, and memory is bounded by ``Limits``, whatever it holds.
- Every byte of TCP payload is in one of ``Data``, ``Retransmission``, ``Anomaly.length``; a ``Gap``
  counts what was not captured. ``Account.check`` proves the sums.
- The same captures give the same events, however they were cut into reads.
"""

from wiredump.readers.account import Account, AccountError
from wiredump.readers.capture import Capture
from wiredump.readers.merge import merge
from wiredump.readers.model import (
    FROM_CLIENT,
    FROM_SERVER,
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
    "FROM_CLIENT",
    "FROM_SERVER",
    "TLS_KEY_LOG",
    "Account",
    "AccountError",
    "Anomaly",
    "Capture",
    "Closed",
    "Data",
    "Endpoint",
    "Event",
    "Gap",
    "Interface",
    "Limits",
    "Opened",
    "Packet",
    "Retransmission",
    "Secrets",
    "Segment",
    "Streams",
    "TcpReassembler",
    "merge",
]
