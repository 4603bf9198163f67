"""Errors of the control port that have an HTTP status of their own."""

from __future__ import annotations

from mockbroker.errors import ClusterError

__all__ = ["RefusedError"]


class RefusedError(ClusterError):
    """A refusal with this HTTP status; every other ClusterError gets 400."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
