"""The versions that a server announces in its first line and at ``GET /version``."""

from __future__ import annotations

import platform

import kproto
from mockbroker.profiles import DEFAULT_PROFILE

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """``kproto``, ``python``, and the release of the default profile as ``kafka``."""
    return {
        "kproto": kproto.__version__,
        "python": platform.python_version(),
        "kafka": DEFAULT_PROFILE.removeprefix("kafka-"),
    }
