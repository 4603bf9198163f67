"""Turn sources of traffic into the items of ``wiredump.model``: captures, the mock's journals,
brokers' request logs, frames in hexadecimal.

``open_sources`` opens files of any kind (``opening``, ``kinds``). The other modules are pure: they
take events, entries or lines that a caller reads.
"""

from wiredump.sources.opening import Read, Sources, open_sources

__all__ = ["Read", "Sources", "open_sources"]
