"""The quota of requests that change topics (KIP-599), for their handlers."""

from __future__ import annotations

from mockbroker.apis.calls import Call
from mockbroker.simulation.clients.quotas.mutations import MutationQuota

__all__ = ["mutation_quota"]


def mutation_quota(call: Call, *, validate_only: bool = False) -> MutationQuota:
    """Return the caller's quota for this request."""
    return call.cluster.meters.mutations(
        call.session.user,
        call.client_id or "",
        call.api.api_key,
        call.version,
        validate_only=validate_only,
    )
