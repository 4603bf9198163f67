"""Which of the API keys that a profile advertises the mock serves, and why it serves no others.

The handlers are those of the registry. A key or version without one is a gap; ``_REASONS`` says of
each why it exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kproto.dialects import dialect
from kproto.schema.versions import Versions
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.profiles import Profile

__all__ = ["CoveredApi", "coverage", "gaps"]

_BROKERS: Final = (
    "sent by brokers only; the mock's brokers change the state of the cluster directly"
)

_REASONS: Final[tuple[tuple[tuple[int, ...], str], ...]] = (((7, 56, 58, 67), _BROKERS),)
_REASON_OF: Final = {key: reason for keys, reason in _REASONS for key in keys}


class CoveredApi(msgspec.Struct, frozen=True):
    """An API that a profile advertises. ``served`` are the versions with a handler, ``reason``
    explains why others have none; empty if all have one."""

    api_key: int
    name: str
    advertised: Versions
    served: Versions
    reason: str

    @property
    def complete(self) -> bool:
        """Whether every advertised version has a handler."""
        return self.served.covers(self.advertised)


def coverage(profile: Profile) -> list[CoveredApi]:
    """The APIs that the profile advertises, by key."""
    codec = dialect(profile.dialect)
    handlers = dialect_handlers(codec)
    found = []
    for key, advertised in sorted(profile.versions.items()):
        handler = handlers.get(key)
        served = Versions.NONE if handler is None else handler.versions.intersect(advertised)
        reason = "" if served.covers(advertised) else _REASON_OF.get(key, "")
        name = codec.api(key).request.__name__.removesuffix("Request")
        found.append(CoveredApi(key, name, advertised, served, reason))
    return found


def gaps(profiles: Iterable[Profile]) -> list[tuple[CoveredApi, list[str]]]:
    """The APIs that are not completely served, by key, with the profiles that advertise them. Each
    is described as the last of these profiles has it."""
    found: dict[int, tuple[CoveredApi, list[str]]] = {}
    for profile in profiles:
        for api in coverage(profile):
            if not api.complete:
                names = found[api.api_key][1] if api.api_key in found else []
                found[api.api_key] = (api, [*names, profile.name])
    return [found[key] for key in sorted(found)]
