"""The operations on a running cluster as methods. ``scripts.operation_stubs`` writes the stub."""

from __future__ import annotations

from mockbroker.simulation.operations.methods import OperationMethods

__all__ = ["AwaitableOperations", "LoopOperations", "ThreadOperations"]


class LoopOperations(OperationMethods):
    """On the event loop of the cluster: those that concern sockets are coroutines."""


class ThreadOperations(OperationMethods):
    """From other threads: each method returns when the operation is done."""


class AwaitableOperations(OperationMethods):
    """From other event loops: each method returns an awaitable."""
