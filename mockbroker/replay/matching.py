"""Which recorded exchange answers a request: by what it means, not by its bytes.

A request means its api key, its version and its body; correlation ids, client ids, and in the body
the fields of ``PASSING`` do not count: they are another's at another time. Among the recorded
exchanges of its api key that had an end (an answer, silence, a disconnect) the first of these that
there is answers:

1. the same meaning at the same version,
2. the same meaning at another version, the nearest first, of two the lower,
3. another body at the same version,
4. another body at another version, the nearest first.

Of several that are equal in this, the connection gets each once, in the recorded order, and then
the last again and again. Every connection begins at the beginning. An ApiVersions answer that fell
back is for its version and those above it: it says that they are too high.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from kproto.codegen.base import Message
from kproto.errors import KprotoError
from kproto.transcript import Exchange, Transcript

__all__ = ["PASSING", "Cursor", "Found", "Recording"]

PASSING: Final = frozenset(
    {
        "authBytes", "baseSequence", "clientInstanceId", "clientSoftwareName",
        "clientSoftwareVersion", "clusterId", "committedLeaderEpoch", "currentLeaderEpoch",
        "generationId", "generationIdOrMemberEpoch", "maxWaitMs", "memberEpoch", "memberId",
        "metrics", "producerEpoch", "producerId", "records", "sessionEpoch", "sessionId",
        "shareSessionEpoch", "subscriptionId", "timeoutMs",
    }
)  # fmt: skip
"""Fields of requests, by their JSON names, that differ when the same client asks the same again:
sessions, epochs, identities that brokers hand out, time that is left, and records with their
timestamps."""

_TIMESTAMP: Final = "timestamp"
"""Of ListOffsets: below 0 it is a meaning (latest, earliest), else a time."""


class Found(NamedTuple):
    """``again``: it was given to this connection before. ``ends_sasl``: no SaslAuthenticate
    follows it."""

    exchange: Exchange
    again: bool
    ends_sasl: bool


class Recording:
    """A transcript, by api key."""

    def __init__(self, transcript: Transcript) -> None:
        self._by_key: dict[int, list[Exchange]] = {}
        self._ends_sasl: set[int] = set()
        exchanges = [each for each in transcript.exchanges if not each.bare]
        following: dict[int, int] = {}
        for exchange in reversed(exchanges):
            if exchange.api_key == 36 and following.get(exchange.connection) != 36:
                self._ends_sasl.add(id(exchange))
            following[exchange.connection] = exchange.api_key
        for exchange in exchanges:
            if exchange.outcome not in ("none-due", "unknown"):
                self._by_key.setdefault(exchange.api_key, []).append(exchange)
        self._meanings = {
            id(each): meaning(each.request.body) for each in exchanges if each.request.body
        }

    def ranked(
        self, api_key: int, version: int, meaning_at: Callable[[int], str | None]
    ) -> list[tuple[tuple[bool, int, bool], Exchange]]:
        """The exchanges that could answer, each with how well: less is better."""
        return sorted(
            (
                (
                    (
                        self._meanings.get(id(each)) is None
                        or meaning_at(each.api_version) != self._meanings[id(each)],
                        abs(each.api_version - version),
                        each.api_version > version,
                    ),
                    each,
                )
                for each in self._by_key.get(api_key, ())
                if not each.fell_back or version >= each.api_version
            ),
            key=lambda ranked: ranked[0],
        )

    def ends_sasl(self, exchange: Exchange) -> bool:
        return id(exchange) in self._ends_sasl


class Cursor:
    """One connection's way through a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._given: set[int] = set()

    def find(self, api_key: int, version: int, body: Message | None) -> Found | None:
        """What answers a request; ``body`` None where it could not be decoded. None: nothing."""

        @lru_cache
        def meaning_at(recorded: int) -> str | None:
            if body is None:
                return None
            try:
                return meaning(body.to_json_value(recorded))
            except KprotoError:  # that version cannot say this
                return None

        ranked = self._recording.ranked(api_key, version, meaning_at)
        if not ranked:
            return None
        equals = [exchange for rank, exchange in ranked if rank == ranked[0][0]]
        fresh = [exchange for exchange in equals if id(exchange) not in self._given]
        exchange = fresh[0] if fresh else equals[-1]
        self._given.add(id(exchange))
        return Found(exchange, not fresh, self._recording.ends_sasl(exchange))


def meaning(body: dict[str, Any] | None) -> str:
    """One text for all bodies that mean the same."""
    return msgspec.json.encode(_lasting(body), order="deterministic").decode()


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _lasting(each)
            for name, each in value.items()
            if name not in PASSING
            and not (name == _TIMESTAMP and isinstance(each, int) and each >= 0)
        }
    if isinstance(value, list):
        return [_lasting(each) for each in value]
    return value
