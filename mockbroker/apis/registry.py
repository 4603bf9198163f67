"""The handlers by API key, and the ``Call`` that each is given.

Each module of this package handles one api key and registers itself::

    @register(46, "0")
    def list_partition_reassignments(call: Call) -> ListPartitionReassignmentsResponse: ...

If a draft gives an API key another layout, its handler has its own module and names the dialects::

    @register(46, "0", dialects=("kip-455-old", "kip-455-new"))
    def list_partition_reassignments_of_drafts(call: Call) -> Message: ...

A handler declares what it requires, in the order of Kafka's checks, and is called only for requests
that meet it (``mockbroker.apis.common.requirements``)::

    @register(12, "0-4", requires=(group_access(AclOperation.READ),))
    def heartbeat(call: Call) -> HeartbeatResponse: ...

A handler returns a response message, or an awaitable of one if a broker would wait.
``mockbroker.serving`` encodes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kproto.schema.versions import Versions
from mockbroker.apis.calls import Answer, Call, Session
from mockbroker.apis.common.requirements import Requirement, requiring

__all__ = ["DRAFT_HANDLERS", "HANDLERS", "Answer", "Call", "Handler", "Session", "register"]


class Handler(msgspec.Struct, frozen=True):
    """``versions`` are those implemented. ``cacheable``: the answer depends only on the request's
    bytes, the receiving broker, its view of the cluster and the caller's permissions. ``answer``
    refuses a request that does not meet ``requires``."""

    api_key: int
    versions: Versions
    answer: Callable[[Call], Answer]
    cacheable: bool
    requires: tuple[Requirement, ...] = ()


HANDLERS: Final[dict[int, Handler]] = {}
"""API key -> handler; complete once ``mockbroker.apis`` is imported."""

DRAFT_HANDLERS: Final[dict[tuple[str, int], Handler]] = {}
"""(dialect, API key) -> handler, for messages that differ from the released ones."""


def register(
    api_key: int,
    versions: str,
    *,
    cacheable: bool = False,
    requires: tuple[Requirement, ...] = (),
    dialects: Iterable[str] = (),
) -> Callable[[Callable[[Call], Answer]], Callable[[Call], Answer]]:
    """Register the decorated function as the handler of ``api_key`` at ``versions`` (``"0-2"``), in
    the released protocol or in these ``dialects``, for requests that meet ``requires``."""

    def keep(answer: Callable[[Call], Answer]) -> Callable[[Call], Answer]:
        checked = requiring(requires, answer) if requires else answer
        handler = Handler(api_key, Versions.parse(versions), checked, cacheable, requires)
        for name in dialects:
            DRAFT_HANDLERS[name, api_key] = handler
        if dialects:
            return answer
        if api_key in HANDLERS:
            raise ValueError(f"api key {api_key} has a handler already")
        HANDLERS[api_key] = handler
        return answer

    return keep
