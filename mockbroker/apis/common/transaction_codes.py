"""Error codes of transactions that older clients do not know."""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Call

__all__ = ["fenced_code"]


def fenced_code(call: Call, code: ErrorCode, since_version: int) -> ErrorCode:
    """Return INVALID_PRODUCER_EPOCH(47) for PRODUCER_FENCED(90) below this version (KIP-588)."""
    if code == ErrorCode.PRODUCER_FENCED and call.version < since_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
