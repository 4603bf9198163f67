"""aiokafka's message structs, which are written by hand and interpreted in Python, at the versions
that it has.

Only one of the workloads is at such a version. The others are compared on other bytes, made from
the same message at the newest version that aiokafka has; it lacks LeaderAndIsr.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from benchmarks.workloads import Workload

__all__ = ["VERSIONS", "operations"]

CLASSES = {
    "a": ("admin", "ApiVersionResponse"),
    "b": ("metadata", "MetadataResponse"),
    "c": ("admin", "AlterPartitionReassignmentsRequest"),
    "e": ("group", "HeartbeatRequest"),
}
VERSIONS = {"a": 2, "b": 5, "c": 0, "e": 1}
"""Workload key -> the version to compare."""


def operations(workload: Workload, body: bytes) -> dict[str, Callable[[], object]]:
    """Return aiokafka's decode and encode. Raises AssertionError if ``body`` does not
    round-trip."""
    place, name = CLASSES[workload.key]
    module = importlib.import_module(f"aiokafka.protocol.{place}")
    kind = getattr(module, f"{name}_v{VERSIONS[workload.key]}")
    message = kind.decode(body)
    assert message.encode() == body, f"aiokafka does not round-trip {workload.title}"
    return {"decode": lambda: kind.decode(body), "encode": message.encode}
