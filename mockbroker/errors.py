"""Errors of the mock broker itself: a wrong command, never something a Kafka client is told.

What a client is told travels as an error code inside a result (``mockbroker.results``).

::

    kproto.KprotoError
    └── ClusterError            a command that the simulated cluster cannot carry out
        ├── UnknownBrokerError      no broker of that id was registered
        └── UnknownPartitionError   no such topic, or no such partition in it
"""

from __future__ import annotations

from kproto.errors import KprotoError

__all__ = ["ClusterError", "UnknownBrokerError", "UnknownPartitionError"]


class ClusterError(KprotoError, ValueError):
    """A step, a setting or a description of a cluster that makes no sense; one line says why."""


class UnknownBrokerError(ClusterError, LookupError):
    """A broker id that was never registered."""

    # LookupError would quote the message as KeyError does not; ValueError's plain text is wanted.


class UnknownPartitionError(ClusterError, LookupError):
    """A topic or partition that does not exist."""
