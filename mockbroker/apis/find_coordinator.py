"""FindCoordinator (10): there are no groups, transactions or share groups here, and it says so.

Versions: 1 key type; 3 flexible; 4 several keys in one request; 5 and 6 new error codes and key
types. Every key gets COORDINATOR_NOT_AVAILABLE(15), which clients retry until their own timeout.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode, message
from kproto.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from mockbroker.apis.registry import Call, register

__all__ = ["find_coordinator"]

_NOWHERE: Final = -1


@register(10, "0-6", cacheable=True)
def find_coordinator(call: Call) -> FindCoordinatorResponse:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if call.version < 4:
        return FindCoordinatorResponse(
            error_code=code,
            error_message=message(code) if call.version >= 1 else None,
            node_id=_NOWHERE,
            host="",
            port=_NOWHERE,
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key,
                node_id=_NOWHERE,
                host="",
                port=_NOWHERE,
                error_code=code,
                error_message=message(code),
            )
            for key in call.body.coordinator_keys
        ]
    )
