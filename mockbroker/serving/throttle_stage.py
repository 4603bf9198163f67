"""Requests of throttled clients: their answers have a throttle time, and their connections wait.

A request that a rule of faults takes is answered by the rule alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Final

from msgspec import structs

from kproto.codec.message import Message
from kproto.messages.fetch_response import FetchResponse
from mockbroker.faults.delivery import Plan, Sleep, Write
from mockbroker.faults.message_edits import throttle
from mockbroker.serving.exchange import Close, Exchange, Frames, Pending, Reply
from mockbroker.simulation.clients.quotas.meters import QuotaMeters
from mockbroker.simulation.clients.quotas.mutations import MUTATION_APIS
from mockbroker.simulation.clients.quotas.throttling import Throttle, Throttles
from mockbroker.simulation.state.timers import sleep

__all__ = ["ThrottleStage"]

_PRODUCE: Final = 0
_FETCH: Final = 1


class ThrottleStage:
    """``broker_answer`` gives what the broker answers otherwise; ``send`` encodes and records
    it."""

    def __init__(
        self,
        throttles: Throttles,
        meters: QuotaMeters,
        broker_answer: Callable[[Exchange], Awaitable[Reply | Close]],
        send: Callable[[Exchange, Reply], Frames | Close],
    ) -> None:
        self._throttles = throttles
        self._meters = meters
        self._broker_answer = broker_answer
        self._send = send

    def answer(self, exchange: Exchange) -> Pending | None:
        client_id = exchange.client_id or ""
        found = self._throttles.of(client_id)
        if found is None and not self._meters.concern(exchange.session.user, client_id):
            return None
        return Pending(partial(self._throttled, exchange, found))

    async def _throttled(self, exchange: Exchange, by: Throttle | None) -> Reply | Close | Plan:
        # The response cache has answers to clients that are not throttled, and keeps none of these.
        reply = await self._broker_answer(structs.replace(exchange, repeatable=False))
        if isinstance(reply, Close):
            return reply
        if by is not None and by.empties_fetches and exchange.api_key == _FETCH:
            session = exchange.session
            session.owes_records = not session.owes_records
            if not session.owes_records:
                return reply
        if by is None:
            by = self._over_quota(exchange, reply)
        if by is None:
            return reply
        if isinstance(reply.body, Message):
            body = copy(reply.body)
            version = exchange.version if reply.version is None else reply.version
            throttle(body, version, by.milliseconds)
            reply = structs.replace(reply, body=body)
        if not by.mutes:
            await sleep(by.milliseconds / 1000)
        if not by.mutes or exchange.session.ended:
            return reply
        data = self._send(exchange, reply)
        if isinstance(data, Close):
            return data
        data = data if isinstance(data, bytes) else b"".join(data)
        steps = (Write(data), Sleep(by.milliseconds)) if data else (Sleep(by.milliseconds),)
        return Plan(steps, answers=bool(data))

    def _over_quota(self, exchange: Exchange, reply: Reply) -> Throttle | None:
        """Count the request. A fetch, and a request that changes topics, are counted by their
        handlers and have a throttle time."""
        user, client_id = exchange.session.user, exchange.client_id or ""
        if exchange.api_key == _FETCH:
            body = reply.body
            longest = body.throttle_time_ms if isinstance(body, FetchResponse) else 0
        else:
            longest = 0
            if exchange.request.expects_response:
                longest = self._meters.request(user, client_id)
            if exchange.api_key in MUTATION_APIS and isinstance(reply.body, Message):
                longest = max(longest, getattr(reply.body, "throttle_time_ms", 0))
            if exchange.api_key == _PRODUCE:
                size = len(exchange.request.frame) - 4
                longest = max(longest, self._meters.produce(user, client_id, size))
        return self._throttles.lasting(longest) if longest else None
