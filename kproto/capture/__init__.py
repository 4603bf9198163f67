"""Writing captures: what was said on a connection as packets that any capture tool opens.

Pure: bytes come out, and the caller owns the file. ``container`` has pcap and pcapng, ``packets``
the headers of Ethernet, IP and TCP, ``conversation`` a TCP connection made of them, and ``journal``
the journal of a mock broker as a capture. Reading captures is ``wiredump``'s business.
"""

from kproto.capture.conversation import Conversation
from kproto.capture.journal import JournalCapture

__all__ = ["Conversation", "JournalCapture"]
