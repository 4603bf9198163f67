"""Operations on a proxy: its connections to the upstream."""

from __future__ import annotations

from mockbroker.simulation.operations.arguments import BrokerArgument
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
