"""The exchanges of a transcript about topics and partitions, split into parts."""

from __future__ import annotations

from typing import Any

import msgspec

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.dialects import Api, Dialect, dialect
from kproto.errors import KprotoError
from kproto.schema.model import Field
from kproto.transcript import REDACTED, Exchange, Transcript
from mockbroker.replay.fetch_sessions import FETCH, SHARE_FETCH, FetchSessions, unchanged_part
from mockbroker.replay.partition_names import Form, Forms, Key, MessagePart, TopicNames, forms_of
from mockbroker.replay.request_meanings import PASSING, meaning_of_fields

__all__ = [
    "RecordedParts",
    "RequestMeaning",
    "SplitExchange",
    "codec_of",
    "forms_at",
    "meaning_of_request",
    "readable",
]

_METADATA = 3


class RequestMeaning(msgspec.Struct):
    """The meaning of a request: ``base`` apart from its parts, ``meanings`` of each part. ``base``
    is None if the request is unknown."""

    base: Any
    meanings: dict[Key, Any]

    @property
    def whole(self) -> Any:
        return self.base, frozenset(self.meanings.items())


class SplitExchange(msgspec.Struct):
    """One exchange. ``response`` is None if the exchange has to be replayed as it is: silence, a
    disconnect, or raw bytes."""

    exchange: Exchange
    api: Api
    forms: Forms
    requested: RequestMeaning | None = None
    response: Message | None = None
    parts: dict[Key, list[MessagePart]] = msgspec.field(default_factory=dict)
    whole: Any = None

    @property
    def fails_whole(self) -> bool:
        """Whether the exchange has no parts: silence, or an error of the whole response."""
        if self.response is None:
            return True
        return bool(getattr(self.response, "error_code", 0)) and not self.parts

    def says(self, key: Key) -> list[MessagePart]:
        """Return the parts of a key: of the partition, or else of the topic, or of the group."""
        wider = key.wider if self.forms.same_holders else key.wider[:1]
        for expected in (key, *wider):
            if expected in self.parts and expected.topic is not None:
                return self.parts[expected]
        if key.partition is None:
            return [
                part
                for each, parts in self.parts.items()
                if each.holder == key.holder and key.topic in (None, each.topic)
                for part in parts
            ]
        return self.parts.get(wider[-1], []) if self.forms.same_holders else []


class RecordedParts:
    """Every exchange about topics and partitions, by API key, in the recorded order."""

    def __init__(self, transcript: Transcript) -> None:
        self.names = TopicNames()
        self.by_api: dict[int, list[SplitExchange]] = {}
        self.unfit: dict[int, KprotoError] = {}
        """API key -> the error of the last response that does not fit its version."""
        self._sessions: dict[int, FetchSessions] = {}
        self._last: dict[tuple[int, Key], MessagePart] = {}
        usable = [
            each
            for each in transcript.exchanges
            if not each.bare and not each.fell_back and each.outcome not in ("none-due", "unknown")
        ]
        for exchange in usable:
            self._learn(exchange)
        for exchange in usable:
            known = self._known(exchange)
            if known is not None:
                self.by_api.setdefault(exchange.api_key, []).append(known)

    def _learn(self, exchange: Exchange) -> None:
        try:
            api = codec_of(exchange).api(exchange.api_key, exchange.api_version)
        except KprotoError:
            return
        for cls, said in ((api.request, exchange.request), (api.response, exchange.response)):
            try:
                if said is not None and said.body is not None:
                    body = cls.from_json(readable(said.body), said.version)
                    self.names.learn(body, said.version)
            except KprotoError:  # truncated
                continue

    def _known(self, exchange: Exchange) -> SplitExchange | None:
        version = exchange.api_version
        try:
            api = codec_of(exchange).api(exchange.api_key, version)
            forms = forms_at(api, version)
        except KprotoError:
            return None
        if forms is None:
            return None
        known = SplitExchange(exchange, api, forms)
        parts: list[MessagePart] = []
        incremental = False
        try:
            body: Any = api.request.from_json(readable(exchange.request.body or {}), version)
            parts = forms.request.split(body, version, self.names)
            if exchange.api_key in (FETCH, SHARE_FETCH):
                sessions = self._sessions.setdefault(exchange.connection, FetchSessions())
                opened = sessions.open(exchange.api_key, body, parts, version, self.names)
                parts, incremental = opened.parts or parts, opened.incremental
            known.requested = meaning_of_request(body, version, forms, parts)
        except KprotoError:  # a truncated body
            pass
        said = exchange.response
        if said is not None and not said.raw and said.body is not None:
            try:
                known.response = api.response.from_json(readable(said.body), version)
            except KprotoError as error:
                self.unfit[exchange.api_key] = error
                return None
            self._take(known, parts if incremental else [], version)
        elif said is not None and not said.raw:
            return None
        if known.requested is None:
            if known.response is None:
                return None
            known.requested = RequestMeaning(None, {})
        else:
            known.whole = known.requested.whole
        return known

    def _take(self, known: SplitExchange, session: list[MessagePart], version: int) -> None:
        """Split a response into parts, including those that a session's answer omits."""
        assert known.response is not None
        connection, key = known.exchange.connection, known.exchange.api_key
        for part in known.forms.response.split(known.response, version, self.names):
            known.parts.setdefault(part.key, []).append(part)
            self._last[connection, part.key] = part
        for part in session:
            last = self._last.get((connection, part.key))
            if part.key not in known.parts and last is not None:
                known.parts[part.key] = [unchanged_part(last)]
        if key == FETCH and known.requested is not None:  # otherwise the request was truncated
            self._sessions[connection].answered(getattr(known.response, "session_id", 0))


def meaning_of_request(
    body: Message, version: int, forms: Forms, parts: list[MessagePart]
) -> RequestMeaning:
    form = forms.request
    root = schema_of(type(body)).root
    skipped = [each for each in root.fields if each.name == "ForgottenTopicsData"]
    base = meaning_of_fields(body, root, [*skipped, form.path[0]])
    meanings: dict[Key, Any] = {}
    for part in parts:
        meanings[part.key] = (*meanings.get(part.key, ()), *_meaning(part, form))
    if not parts and (type(body).API_KEY, version) == (_METADATA, 0):
        meanings[Key((), None, None)] = ()  # an empty list means all; later versions use null
    return RequestMeaning(base, meanings)


def _meaning(part: MessagePart, form: Form) -> tuple[Any, ...]:
    """Return the meaning of a part without the fields that name its topic, which are in its key."""
    out = []
    for at, step in enumerate(part.steps):
        struct = form.path[at].type.inner_struct
        if struct is not None:
            out.append(meaning_of_fields(step, struct, _naming(form, at)))
    return tuple(out)


def _naming(form: Form, at: int) -> list[Field]:
    struct = form.path[at].type.inner_struct
    assert struct is not None
    naming = [
        each for each in struct.fields if each.name == "TopicId" or each.entity_type == "topicName"
    ]
    return naming if at == form.depth else []


def forms_at(api: Api, version: int) -> Forms | None:
    return forms_of(api.request, api.response, version, PASSING)


def codec_of(exchange: Exchange) -> Dialect:
    try:
        return dialect(exchange.dialect)
    except KprotoError:
        return dialect("kafka")


def readable(value: Any) -> Any:
    """Replace redacted secrets by empty text, except for config values, which are text anyway."""
    if isinstance(value, list):
        return [readable(each) for each in value]
    if isinstance(value, dict):
        return {
            name: "" if each == REDACTED and name != "value" else readable(each)
            for name, each in value.items()
        }
    return value
