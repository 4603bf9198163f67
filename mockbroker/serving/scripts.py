"""Replies a test wrote in place of the broker's own. No sockets, no bytes.

A script answers one api key, every time or a number of times. The script added last is called
first; a script that returns None passes the request on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from kproto.codec.message import Message
from kproto.connection import RequestReceived
from kproto.dialects import Api
from kproto.schema.versions import Versions
from mockbroker.apis.registry import Call
from mockbroker.serving.exchange import Exchange, Pending, Reply
from mockbroker.serving.handlers import HandlerStage

__all__ = ["EVERY_VERSION", "Script", "ScriptStage", "Scripted", "Scripts"]

EVERY_VERSION: Final = Versions(0, 32767)
_MOST_ERRORS: Final = 20

Scripted: TypeAlias = Message | Mapping[str, Any] | str
"""A response: a message, or its JSON for the version of the request, parsed or as text, in which
missing fields have their defaults."""

Script: TypeAlias = Callable[[Call], Scripted | Awaitable[Scripted] | None]
"""None leaves the request to the broker; an awaitable must give a response in the end."""


class _Entry(msgspec.Struct):
    script: Script
    left: int | None
    versions: Versions


class Scripts:
    """The scripts of one mock cluster: ``by_key`` has those of each api key, in calling order.

    ``on_change`` functions are called when scripts were added or cleared. ``errors`` has the oldest
    exceptions that scripts and the predicates of fault rules raised, and those of replies that
    could not be sent: mistakes in the test, which a client cannot report.
    """

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.by_key: dict[int, list[_Entry]] = {}
        self.on_change: list[Callable[[], None]] = []

    def failed(self, error: Exception) -> None:
        """Keep an exception of the test's own code."""
        if len(self.errors) < _MOST_ERRORS:
            self.errors.append(error)

    def add(
        self,
        api_key: int,
        script: Script,
        times: int | None = None,
        versions: Versions = EVERY_VERSION,
    ) -> None:
        """``times`` None: until ``clear``."""
        self.by_key.setdefault(api_key, []).insert(0, _Entry(script, times, versions))
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
            if call.version not in entry.versions:
                continue
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
    """Answers with a test's scripts. ``handlers`` have what a handler would be given, and what it
    would answer."""

    def __init__(self, scripts: Scripts, handlers: HandlerStage) -> None:
        self._by_key = scripts.by_key
        self._scripts = scripts
        self._handlers = handlers

    def answer(self, exchange: Exchange) -> Reply | Pending | None:
        request = exchange.request
        if exchange.api_key not in self._by_key or not isinstance(request, RequestReceived):
            return None
        try:
            call = self._handlers.call(exchange, request)
            call.respond = partial(self._handlers.response, exchange, request)
            scripted = self._scripts.call(exchange.api_key, call)
            if scripted is None:
                return None
            if isinstance(scripted, Awaitable):
                return Pending(partial(self._later, scripted, request.api, exchange.version))
            return _reply(scripted, request.api, exchange.version)
        except Exception as error:  # a script may raise anything
            self._scripts.failed(error)
            raise

    async def _later(self, scripted: Awaitable[Scripted], api: Api, version: int) -> Reply:
        try:
            return _reply(await scripted, api, version)
        except Exception as error:
            self._scripts.failed(error)
            raise


def _reply(scripted: Scripted, api: Api, version: int) -> Reply:
    if isinstance(scripted, Message):
        return Reply(scripted, scripted=True)
    return Reply(api.response.from_json(scripted, version, fill=True), scripted=True)
