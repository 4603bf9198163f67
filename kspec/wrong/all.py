"""Every misbehaviour, registered. A new module of some is named here."""

from __future__ import annotations

from kspec.wrong import answers, flexible, frames, identity, negotiation, retries, versions
from kspec.wrong.registry import MISBEHAVIOURS, Misbehaviour, wrong_client

__all__ = [
    "MISBEHAVIOURS",
    "Misbehaviour",
    "answers",
    "flexible",
    "frames",
    "identity",
    "negotiation",
    "retries",
    "versions",
    "wrong_client",
]
