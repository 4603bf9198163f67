"""The operations on a simulated cluster as methods. ``scripts.operation_stubs`` writes the stub."""

from __future__ import annotations

from mockbroker.simulation.operations.no_sockets import SimulatedMethods

__all__ = ["Operations"]


class Operations(SimulatedMethods):
    """The operations on a simulated ``Cluster``: ``Operations(cluster).join_isr("foo-0", 4)``."""
