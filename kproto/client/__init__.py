"""Talking to a broker from asyncio: send any request, get its response."""

from kproto.client.connection import Connection
from kproto.client.errors import (
    BrokerError,
    ConnectionClosedError,
    RequestTimeoutError,
    broker_error,
    raise_for_code,
)

__all__ = [
    "BrokerError",
    "Connection",
    "ConnectionClosedError",
    "RequestTimeoutError",
    "broker_error",
    "raise_for_code",
]
