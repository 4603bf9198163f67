"""How long a client must leave its connection alone after a response (KIP-219). No clock.

Brokers before Kafka 2.0, and later ones in older versions of an API, hold a response back for the
throttle time, which it then contains for information only. From the versions below on they respond
at once, and do not read from the connection until the time has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

__all__ = ["pause_ms"]

_SINCE: Final[Mapping[int, int]] = MappingProxyType(
    {
        0: 6, 1: 8, 2: 3, 3: 6, 8: 4, 9: 4, 10: 2, 11: 3, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 18: 2,
        19: 3, 20: 2, 21: 1, 22: 1, 24: 1, 25: 1, 26: 1, 28: 1, 29: 1, 30: 1, 31: 1, 32: 2, 33: 1,
        34: 1, 35: 1, 37: 1, 38: 1, 39: 1, 40: 1, 41: 1, 42: 1,
    }
)  # fmt: skip
"""Api key -> the first version whose response is sent before throttling. It applies to all versions
of newer APIs."""


def pause_ms(api_key: int, api_version: int, body: Any) -> int:
    """Return the milliseconds after the response during which the broker does not read, at least
    0."""
    if api_version < _SINCE.get(api_key, 0):
        return 0
    return max(0, getattr(body, "throttle_time_ms", 0))
