"""What requests need from files, read before the first connection: a broker whose clients have used
up the descriptors of its process still answers."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Final

from kproto.dialects import Dialect
from kproto.records.compression import available
from kproto.records.crc import crc32c
from kproto.records.model import Compression
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.simulation.groups.consumer import regexes

__all__ = ["preload"]

_DEFERRED: Final = ("difflib", "kproto.records.summaries", "kproto.telemetry.summaries")
"""Modules that are imported inside functions, as most programs do not need them."""


def preload(codec: Dialect, api_keys: Iterable[int]) -> None:
    """Load the schemas and classes of these API keys, and the optional libraries that are
    installed. It takes some milliseconds the first time, and nothing after that."""
    codec.preload(api_keys)
    dialect_handlers(codec)  # compares classes also of APIs that are not served
    crc32c(b"")
    for compression in Compression:
        available(compression)
    regexes.library()
    for module in _DEFERRED:
        importlib.import_module(module)
