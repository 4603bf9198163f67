"""Requests of throttled clients: their answers have a throttle time, and their connections wait.

A request that a rule of faults takes is answered by the rule alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial

from msgspec import structs

from kproto.codec.message import Message
from mockbroker.faults.delivery import Plan, Sleep, Write
from mockbroker.faults.message_edits import throttle
from mockbroker.quotas.throttling import Throttle, Throttles
from mockbroker.serving.exchange import Close, Exchange, Pending, Reply
from mockbroker.timers import sleep

__all__ = ["ThrottleStage"]


class ThrottleStage:
    """``broker_answer`` gives what the broker answers otherwise; ``send`` encodes and records
    it."""

    def __init__(
        self,
        throttles: Throttles,
        broker_answer: Callable[[Exchange], Awaitable[Reply | Close]],
        send: Callable[[Exchange, Reply], bytes | Close],
    ) -> None:
        self._throttles = throttles
        self._broker_answer = broker_answer
        self._send = send

    def answer(self, exchange: Exchange) -> Pending | None:
        found = self._throttles.of(exchange.client_id)
        return None if found is None else Pending(partial(self._throttled, exchange, found))

    async def _throttled(self, exchange: Exchange, by: Throttle) -> Reply | Close | Plan:
        # The response cache has answers to clients that are not throttled, and keeps none of these.
        reply = await self._broker_answer(structs.replace(exchange, repeatable=False))
        if isinstance(reply, Close):
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
        steps = (Write(data), Sleep(by.milliseconds)) if data else (Sleep(by.milliseconds),)
        return Plan(steps, answers=bool(data))
