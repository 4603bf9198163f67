"""Replies a test wrote in place of the broker's own. No sockets, no bytes.

A script answers one api key, every time or a number of times. The script added last is called
first; a script that returns None passes the request on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from kproto.codec.message import Message
from kproto.connection import RequestReceived
from kproto.dialects import Api
from mockbroker.apis.registry import Call
from mockbroker.serving.exchange import Exchange, Pending, Reply

__all__ = ["Script", "ScriptStage", "Scripted", "Scripts"]

Scripted: TypeAlias = Message | Mapping[str, Any] | str
"""A response: a message, or its JSON for the version of the request, parsed or as text."""

Script: TypeAlias = Callable[[Call], Scripted | Awaitable[Scripted] | None]
"""None leaves the request to the broker; an awaitable must give a response in the end."""


@dataclass(slots=True)
class _Entry:
    script: Script
    left: int | None


class Scripts:
    """The scripts of one mock cluster: ``by_key`` has those of each api key, in calling order.

    ``on_change`` functions are called when scripts were added or cleared.
    """

    def __init__(self) -> None:
        self.by_key: dict[int, list[_Entry]] = {}
        self.on_change: list[Callable[[], None]] = []

    def add(self, api_key: int, script: Script, times: int | None = None) -> None:
        """``times`` None: until ``clear``."""
        self.by_key.setdefault(api_key, []).insert(0, _Entry(script, times))
        self._changed()

    def clear(self, api_key: int | None = None) -> None:
        """Remove the scripts of one api key, or all."""
        if api_key is None:
            self.by_key.clear()
        else:
            self.by_key.pop(api_key, None)
        self._changed()

    def _changed(self) -> None:
        for call in self.on_change:
            call()

    def call(self, api_key: int, call: Call) -> Scripted | Awaitable[Scripted] | None:
        """Return the first reply that a script gives, None if none does. Raises what it raises."""
        for entry in list(self.by_key.get(api_key, ())):
            scripted = entry.script(call)
            if scripted is None:
                continue
            if entry.left is not None:
                entry.left -= 1
                if entry.left <= 0:
                    self._drop(api_key, entry)
            return scripted
        return None

    def _drop(self, api_key: int, entry: _Entry) -> None:
        entries = self.by_key[api_key]
        entries.remove(entry)
        if not entries:
            del self.by_key[api_key]


class ScriptStage:
    """Answers with a test's scripts. ``make_call`` gives what a handler would be given."""

    def __init__(self, scripts: Scripts, make_call: Callable[[Exchange], Call]) -> None:
        self._by_key = scripts.by_key
        self._scripts = scripts
        self._make_call = make_call

    def answer(self, exchange: Exchange) -> Reply | Pending | None:
        request = exchange.request
        if exchange.api_key not in self._by_key or not isinstance(request, RequestReceived):
            return None
        scripted = self._scripts.call(exchange.api_key, self._make_call(exchange))
        if scripted is None:
            return None
        if isinstance(scripted, Awaitable):
            return Pending(partial(_later, scripted, request.api, exchange.version))
        return _reply(scripted, request.api, exchange.version)


def _reply(scripted: Scripted, api: Api, version: int) -> Reply:
    if isinstance(scripted, Message):
        return Reply(scripted)
    return Reply(api.response.from_json(scripted, version))


async def _later(scripted: Awaitable[Scripted], api: Api, version: int) -> Reply:
    return _reply(await scripted, api, version)
