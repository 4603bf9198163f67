"""Operations on a proxy: its connections to the upstream, and their speed."""

from __future__ import annotations

from typing import Annotated

from mockbroker.simulation.operations.arguments import (
    COUNT,
    Argument,
    BrokerArgument,
    DurationArgument,
)
from mockbroker.simulation.operations.operation import Proxy, operation


@operation
def drop_upstream(proxy: Proxy, broker_id: BrokerArgument) -> None:
    """Close the connections to an upstream broker, and those of their clients."""
    proxy.drop_upstream(broker_id)


@operation
def refuse_upstream(proxy: Proxy, broker_id: BrokerArgument) -> None:
    """Close new connections for an upstream broker at once, as if it did not listen.

    Open connections stay; `drop-upstream` closes them. `allow-upstream` ends it.
    """
    proxy.refuse_upstream(broker_id)


@operation
def allow_upstream(proxy: Proxy, broker_id: BrokerArgument) -> None:
    """Accept connections for an upstream broker again."""
    proxy.allow_upstream(broker_id)


@operation
def set_latency(proxy: Proxy, milliseconds: DurationArgument) -> None:
    """Delay everything that passes, in each direction; 0 ends it."""
    proxy.set_latency(milliseconds)


@operation
def set_bandwidth(
    proxy: Proxy, bytes_per_second: Annotated[int, Argument(COUNT, name="bytes")]
) -> None:
    """Limit the bytes a second of each connection, in each direction; 0 ends it."""
    proxy.set_bandwidth(bytes_per_second)
