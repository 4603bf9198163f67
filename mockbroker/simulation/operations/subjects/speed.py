"""Operations on the speed of connections, of a cluster and of a proxy alike."""

from __future__ import annotations

from typing import Annotated

from mockbroker.simulation.operations.arguments import (
    COUNT,
    Argument,
    DurationArgument,
    PlaceArgument,
)
from mockbroker.simulation.operations.operation import Paced, operation


@operation
def set_latency(paced: Paced, milliseconds: DurationArgument, where: PlaceArgument = None) -> None:
    """Delay everything that passes, in each direction; 0 ends it.

    The delay is real time, whatever the clock of the cluster is.
    """
    paced.set_latency(milliseconds, where)


@operation
def set_bandwidth(
    paced: Paced,
    bytes_per_second: Annotated[int, Argument(COUNT, name="bytes")],
    where: PlaceArgument = None,
) -> None:
    """Limit the bytes a second of each connection, in each direction; 0 ends it."""
    paced.set_bandwidth(bytes_per_second, where)
