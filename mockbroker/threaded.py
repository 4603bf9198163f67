"""A mock cluster on a thread of its own, for tests that have no event loop."""

from __future__ import annotations

from mockbroker.running.threaded import ThreadedCluster

__all__ = ["ThreadedCluster"]
