"""Replies a test wrote in place of the broker's own. No sockets, no bytes.

A script answers one api key, every time or a number of times; the last one added is asked first,
and one that returns None passes the request on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kproto.codec.message import Message
from kproto.dialects import Api
from mockbroker.apis.registry import Answer, Call

__all__ = ["Script", "Scripted", "Scripts"]

Scripted: TypeAlias = Message | Mapping[str, Any] | str
"""A response: a message, or its JSON for the version of the request, parsed or as text."""

Script: TypeAlias = Callable[[Call], Scripted | Awaitable[Scripted] | None]
"""None leaves the request to the broker; an awaitable must give a response in the end."""


@dataclass(slots=True)
class _Entry:
    script: Script
    left: int | None


class Scripts:
    """The scripts of one mock cluster, by api key."""

    def __init__(self) -> None:
        self._entries: dict[int, list[_Entry]] = {}

    def __contains__(self, api_key: object) -> bool:
        return api_key in self._entries

    def add(self, api_key: int, script: Script, times: int | None = None) -> None:
        """``times`` None: until ``clear``."""
        self._entries.setdefault(api_key, []).insert(0, _Entry(script, times))

    def clear(self, api_key: int | None = None) -> None:
        """Back to the broker's own answers, for one api key or all."""
        if api_key is None:
            self._entries.clear()
        else:
            self._entries.pop(api_key, None)

    def answer(self, api: Api, call: Call) -> Answer | None:
        """The scripted response to this request, None when no script wants it."""
        entries = self._entries.get(api.api_key, [])
        for entry in list(entries):
            scripted = entry.script(call)
            if scripted is None:
                continue
            if entry.left is not None:
                entry.left -= 1
                if entry.left <= 0:
                    self._drop(api.api_key, entry)
            if isinstance(scripted, Awaitable):
                return _later(scripted, api, call.version)
            return _message(scripted, api, call.version)
        return None

    def _drop(self, api_key: int, entry: _Entry) -> None:
        entries = self._entries[api_key]
        entries.remove(entry)
        if not entries:
            del self._entries[api_key]


def _message(scripted: Scripted, api: Api, version: int) -> Message:
    if isinstance(scripted, Message):
        return scripted
    return api.response.from_json(scripted, version)


async def _later(scripted: Awaitable[Scripted], api: Api, version: int) -> Message:
    return _message(await scripted, api, version)
