"""What a session is registered with, and all of them for a pair of clusters.

``@session(0, since=3)`` plays a script once for each version of API 0 that both clusters serve,
from version 3 on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from kproto.schema.versions import Versions
from tests.real.data.side import Side

__all__ = ["Script", "Session", "session", "sessions"]

Script: TypeAlias = Callable[[Side], Awaitable[None]]


class _Scripted(NamedTuple):
    api_key: int
    script: Script
    since: int
    until: int
    needs: tuple[int, ...]


class Session(NamedTuple):
    """One script at one version; ``name`` is that of its topics and groups."""

    name: str
    api_key: int
    version: int
    script: Script


FOUNDATION: Final = (0, 1, 2)
"""APIs that any script may ask."""

_SCRIPTS: Final[list[_Scripted]] = []


def session(
    api_key: int, *, since: int = 0, until: int = 99, needs: tuple[int, ...] = ()
) -> Callable[[Script], Script]:
    """Register a script; ``needs`` are other API keys that it asks."""

    def keep(script: Script) -> Script:
        _SCRIPTS.append(_Scripted(api_key, script, since, until, needs))
        return script

    return keep


def sessions(served: Mapping[int, Versions]) -> list[Session]:
    """Every session for clusters that both serve these versions."""
    return [
        Session(f"{each.script.__name__.replace('_', '-')}-v{version}", each.api_key, version,
                each.script)
        for each in _SCRIPTS
        if {each.api_key, *FOUNDATION} <= served.keys()
        and all(key in served for key in each.needs)
        for version in served[each.api_key]
        if each.since <= version <= each.until
    ]  # fmt: skip
