"""Registers every misbehaviour. New modules are listed here."""

from __future__ import annotations

from kspec.wrong import (
    answers,
    committed_offsets,
    consumer_group_members,
    consumers,
    correlation,
    flexible,
    frames,
    framing,
    identity,
    members,
    metadata,
    negotiation,
    partitions,
    producers,
    quotas,
    retries,
    routing,
    secured,
    transactions,
    versions,
)
from kspec.wrong.registry import MISBEHAVIOURS, Misbehaviour, wrong_client

__all__ = [
    "MISBEHAVIOURS",
    "Misbehaviour",
    "answers",
    "committed_offsets",
    "consumer_group_members",
    "consumers",
    "correlation",
    "flexible",
    "frames",
    "framing",
    "identity",
    "members",
    "metadata",
    "negotiation",
    "partitions",
    "producers",
    "quotas",
    "retries",
    "routing",
    "secured",
    "transactions",
    "versions",
    "wrong_client",
]
