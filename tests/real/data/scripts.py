"""All sessions: importing this registers every script."""

from __future__ import annotations

from tests.real.data import (  # noqa: F401 - each registers its sessions
    administration,
    cluster_wide,
    consumer_groups,
    credentials,
    fetch,
    groups,
    mutation_quotas,
    offsets,
    produce,
    reading,
    share_fetches,
    share_groups,
    share_offsets,
    share_states,
    streams_groups,
    transactions,
)
from tests.real.data.registry import sessions

__all__ = ["sessions"]
