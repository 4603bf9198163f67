"""The rules of a dispatcher: which of them takes a request, as the connection reports it. What they
then do is for ``faulting``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from kproto.connection import RequestReceived, UnsupportedRequest
from mockbroker.apis import Session
from mockbroker.faults.matching import ActiveFault, FaultRules, RequestFacts
from mockbroker.faults.steps import ClusterStep

if TYPE_CHECKING:
    from mockbroker.serving.dispatch import Dispatcher

__all__ = ["Faults", "Request", "about"]

_log = logging.getLogger("mockbroker")

Request: TypeAlias = RequestReceived | UnsupportedRequest
"""What rules look at: a request, whether or not the broker serves it."""


class Faults(FaultRules):
    """The rules, and who carries out their steps: ``perform`` is given the step and the broker
    that was asked, and raises KprotoError for what cannot be done."""

    def __init__(
        self,
        names: Callable[[], dict[str, int]],
        perform: Callable[[ClusterStep, int], None] = lambda _step, _broker: None,
    ) -> None:
        super().__init__(names)
        self.perform = perform

    def hit(
        self,
        dispatcher: Dispatcher,
        session: Session,
        request: Request,
        call: Callable[[], Any] | None,
    ) -> ActiveFault | None:
        """The rule that takes this request. What a predicate raises is told in the journal."""
        key, version, client_id = about(request)
        asked = RequestFacts(
            session.broker_id, session.connection_id, key, version, client_id, session.software,
            dispatcher.cluster.topics, dispatcher.cluster.now_ms,
            request.body if isinstance(request, RequestReceived) else None, call,
        )  # fmt: skip

        def failed(rule: ActiveFault, error: Exception) -> None:
            _log.error("the predicate of rule %s failed", rule.name, exc_info=error)
            dispatcher.note_event(session, "fault-predicate-failed", f"{rule.name}: {error!r}")

        return self.take(asked, failed)


def about(request: Request) -> tuple[int, int, str | None]:
    """Api key, version, client id."""
    if isinstance(request, RequestReceived):
        header = request.header
        return header.request_api_key, header.request_api_version, header.client_id
    return request.api_key, request.api_version, request.client_id
