"""The operation on the simulated clock."""

from __future__ import annotations

from mockbroker.simulation.operations.arguments import DurationArgument
from mockbroker.simulation.operations.operation import RunningCluster, operation


@operation
def advance(running: RunningCluster, milliseconds: DurationArgument) -> None:
    """Advance the simulated clock.

    Whatever is due until then happens at once, in order. DURATION has a unit, as in 500ms, 2s or
    1m.
    """
    running.advance(milliseconds)
