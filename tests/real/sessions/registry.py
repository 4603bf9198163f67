"""What a session is registered with, and all of them as data.

``@session(45)`` plays a script once for each version of api 45 that Kafka and the mock both serve;
``since`` leaves out versions that cannot carry what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kproto.schema.versions import Versions
from tests.real.steps import (
    Script,
    Session,
)

__all__ = ["API_KEYS", "sessions"]

API_KEYS: Final = (18, 3, 60, 75, 32, 44, 35, 29, 30, 31, 43, 45, 46, 19, 20, 37)


class _Scripted(NamedTuple):
    api_key: int
    script: Script
    since: int
    until: int
    zookeeper: bool | None
    shows: tuple[str, ...]


_SCRIPTS: list[_Scripted] = []


def session(
    api_key: int,
    *,
    since: int = 0,
    until: int = 99,
    zookeeper: bool | None = None,
    shows: tuple[str, ...] = (),
) -> Callable[[Script], Script]:
    """Register a script; ``zookeeper`` says for which kind of cluster alone it makes sense, and
    ``shows`` which requirements."""

    def keep(script: Script) -> Script:
        _SCRIPTS.append(_Scripted(api_key, script, since, until, zookeeper, shows))
        return script

    return keep


def sessions(served: Mapping[int, Versions], *, zookeeper: bool) -> list[Session]:
    """Every session for a cluster that serves these versions."""
    found = []
    for api_key, script, since, until, only, shows in _SCRIPTS:
        if (only is not None and only != zookeeper) or api_key not in served:
            continue
        for version in served[api_key]:
            if since <= version <= until:
                name = f"{script.__name__.replace('_', '-')}-v{version}"
                found.append(Session(name, api_key, version, script(name), shows))
    return found
