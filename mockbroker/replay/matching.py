"""Which recorded exchange answers a request as a whole; ``composition`` answers by topic and
partition.

The meaning of a request is its API key, its version and its body, except for the fields that
``request_meanings`` omits. Of the recorded exchanges of its API key that have an end (an answer,
silence, a disconnect), the best match answers:

1. the same meaning at the same version,
2. the same meaning at another version: the nearest, the lower one of two,
3. another body at the same version,
4. another body at another version, the nearest.

A request that names topics is answered only by an exchange about the same topics, or, if the
response names its topics itself (the assignment in a heartbeat), about at least these.

If several exchanges match equally well, the connection gets each once, in the recorded order, and
then the last one again. Every connection starts at the beginning. An ApiVersions answer that fell
back is for its version and those above: it means that they are too high.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from kproto.codec.message import Message
from kproto.errors import KprotoError
from kproto.transcript import Exchange, Transcript, TranscriptMessage
from mockbroker.apis.common.request_entities import named_by
from mockbroker.replay.partition_names import TopicNames
from mockbroker.replay.recorded_parts import codec_of, readable
from mockbroker.replay.request_meanings import meaning
from mockbroker.simulation.state.cluster_parts import Topic

__all__ = ["Cursor", "RecordedMatch", "Recording"]


class RecordedMatch(NamedTuple):
    """``again``: this connection has had it before. ``ends_sasl``: no SaslAuthenticate follows."""

    exchange: Exchange
    again: bool
    ends_sasl: bool


class _Topics(NamedTuple):
    """The topic names in the request and in the response of an exchange."""

    request: frozenset[str]
    response: frozenset[str]


class Recording:
    """A transcript by API key. ``names`` maps topic ids to names."""

    def __init__(self, transcript: Transcript, names: TopicNames) -> None:
        self._known_topics = {name: Topic(name, each, ()) for name, each in names.ids.items()}
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

        self._topics: dict[int, _Topics] = {}

    def topics_in(self, body: Message | None, version: int) -> frozenset[str]:
        if body is None:
            return frozenset()
        named = named_by(body, version, self._known_topics)
        return frozenset(each.topic for each in named if each.topic is not None)

    def _about(self, exchange: Exchange) -> _Topics:
        found = self._topics.get(id(exchange))
        if found is None:
            said = exchange.response
            found = self._topics[id(exchange)] = _Topics(
                self._topics_of(exchange, "request", exchange.request),
                frozenset() if said is None else self._topics_of(exchange, "response", said),
            )
        return found

    def _topics_of(self, exchange: Exchange, side: str, said: TranscriptMessage) -> frozenset[str]:
        try:
            api = codec_of(exchange).api(exchange.api_key, said.version)
            cls = api.request if side == "request" else api.response
            body = cls.from_json(readable(said.body or {}), said.version)
        except KprotoError:  # truncated
            return frozenset()
        return self.topics_in(body, said.version)

    def _is_about(self, exchange: Exchange, topics: frozenset[str]) -> bool:
        known = self._about(exchange)
        if not known.response:
            return topics == known.request
        return topics <= known.request | known.response

    def ranked(
        self,
        api_key: int,
        version: int,
        meaning_at: Callable[[int], str | None],
        topics: frozenset[str],
    ) -> list[tuple[tuple[bool, int, bool], Exchange]]:
        """Return the exchanges that could answer, each with its rank; the lowest is best."""
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
                if (not each.fell_back or version >= each.api_version)
                and (not topics or self._is_about(each, topics))
            ),
            key=lambda ranked: ranked[0],
        )

    def ends_sasl(self, exchange: Exchange) -> bool:
        return id(exchange) in self._ends_sasl


class Cursor:
    """The progress of one connection through a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._given: set[int] = set()

    def find(self, api_key: int, version: int, body: Message | None) -> RecordedMatch | None:
        """Return the exchange that answers a request, None if there is none. ``body`` is None if it
        could not be decoded."""

        @lru_cache
        def meaning_at(recorded: int) -> str | None:
            if body is None:
                return None
            try:
                return meaning(body.to_json_value(recorded))
            except KprotoError:  # that version cannot carry the body
                return None

        ranked = self._recording.ranked(
            api_key, version, meaning_at, self._recording.topics_in(body, version)
        )
        if not ranked:
            return None
        equals = [exchange for rank, exchange in ranked if rank == ranked[0][0]]
        fresh = [exchange for exchange in equals if id(exchange) not in self._given]
        exchange = fresh[0] if fresh else equals[-1]
        self._given.add(id(exchange))
        return RecordedMatch(exchange, not fresh, self._recording.ends_sasl(exchange))
