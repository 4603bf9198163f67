"""Heartbeats of the newer protocols: epochs with a meaning of their own, and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.partitions import Assignment

__all__ = ["JOINING", "LEAVING", "HeartbeatResult", "Reject", "is_blank"]

JOINING: Final = 0
LEAVING: Final = -1
"""Member epochs of a heartbeat that mean something else."""


class HeartbeatResult(msgspec.Struct, frozen=True):
    """``assignment`` is None if it is not sent."""

    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    interval_ms: int = 0
    assignment: Assignment | None = None


class _Heartbeat(Protocol):
    def words(self) -> Mapping[str, object]:
        """What texts of errors may name."""
        ...

    def reject(self, code: ErrorCode, text: str | None) -> None: ...


class Reject(msgspec.Struct, frozen=True):
    """Answer with an error and a text, which may name what the request has and the group knows."""

    code: ErrorCode
    text: str | None = None

    def __call__(self, subject: _Heartbeat, /) -> None:
        text = None if self.text is None else self.text.format(**subject.words())
        subject.reject(self.code, text)


def is_blank(text: str | None) -> bool:
    """Whether a text is sent, and has nothing but spaces."""
    return text is not None and not text.strip()
