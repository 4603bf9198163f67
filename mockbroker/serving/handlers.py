"""The broker's own answers: the handler of the request's dialect and api key is called."""

from __future__ import annotations

from collections.abc import Awaitable, Container
from functools import partial
from typing import Any

from kproto.codec.message import Message
from kproto.connection import RequestReceived
from kproto.dialects import Dialect
from mockbroker.apis import Call, Handler
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.errors import ClusterError
from mockbroker.serving.broker_software import BrokerSoftware
from mockbroker.serving.exchange import Exchange, Pending, Reply
from mockbroker.serving.suspended_calls import Calls
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.authorizer import Authorizer

__all__ = ["HandlerStage"]


class HandlerStage:
    """``calls`` runs the handlers. ``software`` is that of each broker.
    Responses to the api keys in ``scripted`` are never cached, nor is any with an ``authorizer``,
    since it depends on who sent the request."""

    def __init__(
        self,
        cluster: Cluster,
        software: BrokerSoftware,
        calls: Calls,
        authorizer: Authorizer | None,
        *,
        scripted: Container[int],
    ) -> None:
        self.calls = calls
        self._cluster = cluster
        self._software = software
        self._authorizer = authorizer
        self._scripted = scripted
        self._handlers: dict[Dialect, dict[int, Handler]] = {}

    def handler_of(self, codec: Dialect, api_key: int) -> Handler | None:
        """A listener may take several dialects; each request has its own."""
        return self._handlers_of(codec).get(api_key)

    def _handlers_of(self, codec: Dialect) -> dict[int, Handler]:
        handlers = self._handlers.get(codec)
        if handlers is None:
            handlers = self._handlers[codec] = dialect_handlers(codec)
        return handlers

    def call(self, exchange: Exchange, request: RequestReceived) -> Call:
        """What a handler is given of a request."""
        return Call(
            request.api, exchange.version, request.body, exchange.client_id, exchange.session,
            self._cluster, self._software.profile_of(exchange.session.broker_id),
            self._software.served_by, self._authorizer,
        )  # fmt: skip

    async def response(self, exchange: Exchange, request: RequestReceived) -> Message:
        """What the broker answers, for a script that amends it. Raises ClusterError if it has no
        answer."""
        handler = self._handlers_of(request.dialect).get(exchange.api_key)
        if handler is None or exchange.version not in handler.versions:
            raise ClusterError(
                f"the broker has no answer of its own to {request.api.name} v{exchange.version}"
            )
        call = self.call(exchange, request)
        call.takes_parts = False
        body: Message | Awaitable[Any] = self.calls.start(handler.answer, call)
        found = body if isinstance(body, Message) else await body
        answer: Message = found if isinstance(found, Message) else await found
        return answer

    def answer(self, exchange: Exchange) -> Reply | Pending | None:
        request = exchange.request
        if not isinstance(request, RequestReceived):
            return None
        handlers = self._handlers.get(request.dialect) or self._handlers_of(request.dialect)
        handler = handlers.get(exchange.api_key)
        if handler is None:
            return None
        versions = handler.versions
        if not versions.lowest <= exchange.version <= versions.highest:
            return None
        offset = self._offset(exchange) if handler.cacheable else None
        call = self.call(exchange, request)
        body: Message | Awaitable[Any] = self.calls.start(handler.answer, call)
        if isinstance(body, Message):
            return Reply(
                body, log_offset=offset, in_parts=call.in_parts, redraw=call.draws_controller
            )
        return Pending(partial(_later, body, call))

    def _offset(self, exchange: Exchange) -> int | None:
        """The length of the log, if the response depends on nothing that the log does not have."""
        if (
            self._authorizer is None
            and exchange.repeatable
            and exchange.api_key not in self._scripted
            and not self._cluster.state.propagation_ms  # brokers learn of changes without an action
        ):
            return len(self._cluster.log)
        return None


async def _later(body: Awaitable[Any], call: Call) -> Reply:
    found = await body
    # The handler of a suspended call may itself wait for the cluster.
    answer = found if isinstance(found, Message) else await found
    return Reply(answer, in_parts=call.in_parts)
