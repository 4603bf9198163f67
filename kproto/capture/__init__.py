"""Write captures: a connection's bytes as packets that any capture tool can open.

These are pure functions that return bytes; the caller owns the file. ``container`` contains pcap
and pcapng, ``packets`` the headers of Ethernet, IP and TCP, ``conversation`` a TCP connection, and
``journal`` the conversion of a mock broker's journal. ``wiredump`` reads captures.
"""

from kproto.capture.conversation import Conversation
from kproto.capture.journal import JournalCapture

__all__ = ["Conversation", "JournalCapture"]
