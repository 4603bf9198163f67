"""The scripted sessions. Each is a function from a topic name of its own to its rounds.

Broker 1 is the controller; in the frozen round broker 4 does not catch up, in the stopped round it
is gone. A file a group of apis; importing them here is what registers them.
"""

from __future__ import annotations

from tests.real.sessions import (  # noqa: F401 - each registers its sessions
    acls,
    cluster_facts,
    configs,
    elections,
    in_progress,
    reassignments,
    topics,
    znodes,
)
from tests.real.sessions.registry import API_KEYS, sessions

__all__ = ["API_KEYS", "sessions"]
