"""Answers composed from what was recorded for each topic and partition that a request names.

They are used for APIs whose responses have an element for each of them
(``partition_names.forms_of``). A topic or partition is answered from its own record, preferably

1. from a request with the same meaning,
2. from a request with the same meaning for this topic or partition,
3. from any request or response that named it;

and within each of these from the nearest version, the lower one of two. If several records are
equally good, the connection gets each once, in the recorded order, and then the last one again.
Topics and partitions that were not recorded get an error (3, or 100 if the request names topics by
id) and are ``missing``. A disconnect, silence, an error of the whole response and bytes that cannot
be decoded answer the whole request: they are used if one of its parts matches them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.dialects import Api
from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError
from kproto.schema.model import ZERO_UUID
from kproto.transcript import Exchange
from mockbroker.apis.common.error_places import Place, chosen_places, place_error
from mockbroker.apis.common.error_skeleton import ErrorSkeleton
from mockbroker.apis.common.refusals import error_response
from mockbroker.apis.common.request_entities import Selection, fields_of, id_field, topic_field
from mockbroker.apis.common.version_cast import recast
from mockbroker.replay.fetch_sessions import FETCH, SHARE_FETCH, FetchSessions
from mockbroker.replay.partition_names import Forms, Key, MessagePart, TopicNames
from mockbroker.replay.recorded_parts import (
    RecordedParts,
    RequestMeaning,
    SplitExchange,
    forms_at,
    meaning_of_request,
)
from mockbroker.simulation.state.cluster_parts import Topic

__all__ = ["ComposedAnswer", "Composition"]

_NOTHING: Final = Key((), "", None)
"""Stands for the parts of an answer outside topics."""

_UNRECORDED: Final = "nothing was recorded for it"


class ComposedAnswer(NamedTuple):
    """A composed answer. ``body`` is None if ``exchange`` has to be replayed as it is. ``again``:
    this connection has had all of it before. ``missing`` describes what was not recorded."""

    exchange: Exchange | None
    body: Message | None
    again: bool = False
    missing: str = ""
    latency_ms: float | None = None


class _Choice(NamedTuple):
    known: SplitExchange
    again: bool


class Composition:
    """The progress of one connection through a recording."""

    def __init__(self, recorded: RecordedParts) -> None:
        self._recorded = recorded
        self._sessions = FetchSessions()
        self._given: set[tuple[int, Key]] = set()
        self._carried: dict[tuple[int, int], bool] = {}

    def answer(self, api: Api, version: int, body: Any) -> ComposedAnswer | None:
        """Return the answer, None if the API was not recorded. Raises KprotoError if the record
        does not fit its version."""
        names = self._recorded.names
        names.learn(body, version)
        forms = forms_at(api, version)
        assert forms is not None
        recorded = [
            each
            for each in self._recorded.by_api.get(api.api_key, ())
            if each.api.response is api.response and each.forms.response.path == forms.response.path
        ]
        if not recorded:
            if api.api_key in self._recorded.unfit:
                raise self._recorded.unfit[api.api_key]
            return None
        parts = forms.request.split(body, version, names)
        session = 0
        if api.api_key in (FETCH, SHARE_FETCH):
            opened = self._sessions.open(api.api_key, body, parts, version, names)
            if opened.parts is None:
                problem = "a session that was not opened on this connection"
                refused = error_response(api.response, version, opened.error_code)
                return ComposedAnswer(None, refused, missing=problem)
            parts = opened.parts
            session = body.session_id if api.api_key == FETCH and opened.incremental else 0
        requested = meaning_of_request(body, version, forms, parts)
        composed = _Request(self, api, version, body, forms, parts, requested, recorded).compose()
        if api.api_key == FETCH and composed.body is not None:
            self._open(composed.body, body, session)
        return composed

    def _open(self, answer: Any, request: Any, session: int) -> None:
        answer.session_id = session or (0 if request.session_epoch else answer.session_id)
        self._sessions.answered(answer.session_id)

    def choose(self, equals: list[SplitExchange], key: Key) -> _Choice:
        """Return the first record that this connection has not had yet, or else the last."""
        fresh = [each for each in equals if (id(each), key) not in self._given]
        known = fresh[0] if fresh else equals[-1]
        self._given.add((id(known), key))
        return _Choice(known, not fresh)

    @property
    def names(self) -> TopicNames:
        return self._recorded.names

    @property
    def topics(self) -> Mapping[str, Topic]:
        return {name: Topic(name, each, ()) for name, each in self.names.ids.items()}

    def carries(self, known: SplitExchange, forms: Forms, version: int) -> bool:
        """Return whether ``version`` can carry what was recorded in another version."""
        if known.exchange.api_version == version:
            return True
        found = self._carried.get((id(known), version))
        if found is None:
            assert known.response is not None
            parts = [
                self.fit(part, forms, version) for each in known.parts.values() for part in each
            ]
            try:
                forms.response.join(known.response, parts).encode(version)
                found = True
            except KprotoError:
                found = False
            self._carried[id(known), version] = found
        return found

    def fit(self, part: MessagePart, forms: Forms, version: int) -> MessagePart:
        """Return the part with its topic named as in ``version``."""
        depth = forms.response.depth
        struct = forms.response.path[depth].type.inner_struct
        if len(part.steps) <= depth or struct is None or part.key.topic is None:
            return part
        steps = list(part.steps)
        steps[depth] = copy.copy(steps[depth])
        self.names.rename(steps[depth], struct, part.key.topic, version)
        return part._replace(steps=tuple(steps))


class _Request(NamedTuple):
    way: Composition
    api: Api
    version: int
    body: Message
    forms: Forms
    parts: list[MessagePart]
    requested: RequestMeaning
    recorded: list[SplitExchange]

    def compose(self) -> ComposedAnswer:
        chosen: dict[Key, _Choice] = {}
        missing: list[Key] = []
        for key in self._keys():
            found = self._find(key)
            if found is None:
                missing.append(key)
            else:
                chosen[key] = found
        for each in chosen.values():
            if each.known.fails_whole:
                return self._as_it_was(each)
        base, again = self._base(chosen)
        parts = [
            self.way.fit(part, self.forms, self.version)
            for key, each in chosen.items()
            for part in each.known.says(key)
        ]
        form, places = self.forms.response, self._places()
        body = form.join(base, [*parts, *self._failing(missing, places)])
        if missing and not chosen and places and not places[0].path:
            place_error(body, self.version, places, _code(self), _UNRECORDED, {})
        latencies = [each.known.exchange.latency_ms for each in chosen.values()]
        known = [each for each in latencies if each is not None]
        return ComposedAnswer(
            None, body, again and not (missing and not chosen),
            f"{_UNRECORDED}: {', '.join(map(str, missing))}" if missing else "",
            max(known, default=None),
        )  # fmt: skip

    def _keys(self) -> list[Key]:
        """Return the requested keys. If all topics are requested, which was not recorded as such,
        they are the recorded topics."""
        keys: list[Key] = []
        for key in self.requested.meanings:
            if key.topic is None and not any(
                each.requested is not None and key in each.requested.meanings
                for each in self.recorded
            ):
                keys += [
                    each
                    for known in self.recorded
                    for each in known.parts
                    if each.holder == key.holder and each.topic is not None
                ]
            else:
                keys.append(key)
        return list(dict.fromkeys(keys))

    def _find(self, key: Key) -> _Choice | None:
        able = [each for each in self.recorded if self._answers(each, key)]
        if self.api.api_key in (FETCH, SHARE_FETCH):
            # A client that disconnects while the broker waits for records gets no response.
            able = [each for each in able if each.exchange.outcome != "unanswered"] or able
        if not able:
            return None
        return self._best(able, key)

    def _best(self, able: list[SplitExchange], key: Key) -> _Choice:
        whole = self.requested.whole
        ranks = [self._rank(each, key, whole) for each in able]
        best = min(ranks)
        return self.way.choose(
            [each for each, rank in zip(able, ranks, strict=True) if rank == best], key
        )

    def _answers(self, known: SplitExchange, key: Key) -> bool:
        requested = known.requested.meanings if known.requested is not None else {}
        every = Key(key.holder, None, None)
        if known.response is None and known.exchange.response is not None:
            return bool(known.whole == self.requested.whole)  # bytes
        if known.fails_whole:
            return key in requested or every in requested
        if known.says(key):
            return self._carried(known)
        # A response that omits a requested key answers it, if the API has no error field.
        silent = self.api.api_key == SHARE_FETCH or not self._says_errors()
        return silent and (key in requested or every in requested) and self._carried(known)

    def _rank(
        self, known: SplitExchange, key: Key, whole: Any
    ) -> tuple[bool, bool, bool, int, bool]:
        requested = known.requested
        version = known.exchange.api_version
        return (
            known.whole != whole,
            requested is None or requested.meanings.get(key) != self.requested.meanings.get(key),
            requested is None or requested.base != self.requested.base,
            abs(version - self.version),
            version > self.version,
        )

    def _carried(self, known: SplitExchange) -> bool:
        return self.way.carries(known, self.forms, self.version)

    def _base(self, chosen: Mapping[Key, _Choice]) -> tuple[Message, bool]:
        """Return the answer apart from topics, from the record of the first part or from any
        other, and whether this connection has had all of it before."""
        for each in chosen.values():
            again = all(each.again for each in chosen.values())
            return self._without_cursor(each.known), again
        able = [each for each in self.recorded if not each.fails_whole and self._carried(each)]
        if not able:
            return self.api.response(), False
        best = self._best(able, _NOTHING)
        return self._without_cursor(best.known), best.again

    def _without_cursor(self, known: SplitExchange) -> Message:
        """Drop the cursor if the request differs: a cursor continues the recorded request only."""
        assert known.response is not None
        if known.whole == self.requested.whole:
            return known.response
        base = copy.copy(known.response)
        for field in fields_of(schema_of(type(base)).root, self.version):
            struct = field.type.struct
            if struct is not None and topic_field(struct, self.version) is not None:
                setattr(base, field.python_name, None)
        return base

    def _as_it_was(self, chosen: _Choice) -> ComposedAnswer:
        exchange = chosen.known.exchange
        body = chosen.known.response
        return ComposedAnswer(exchange, body, chosen.again, latency_ms=exchange.latency_ms)

    # ---- topics and partitions without a record ----------------------------------------------

    def _places(self) -> tuple[Place, ...]:
        """Return the error fields of a topic or partition, or else of the response."""
        form = self.forms.response
        topics = form.path[form.depth]
        found = chosen_places(self.api.response, self.version, form.level, Selection())
        return tuple(place for place in found if not place.path or topics in place.path)

    def _says_errors(self) -> bool:
        return any(place.path for place in self._places())

    def _failing(self, missing: Iterable[Key], places: tuple[Place, ...]) -> list[MessagePart]:
        """Return elements with the error of an unknown topic or partition for each key."""
        expected = set(missing)
        if not expected or not places or not places[0].path:
            return []
        requested = [each for each in self.parts if each.key in expected]
        request = self.forms.request.join(self.body, requested)
        topics = self.way.topics
        answer = ErrorSkeleton(request, self.version, topics).answer(
            self.api.response, self.version, places
        )
        place_error(answer, self.version, places, _code(self), _UNRECORDED, topics)
        recast(answer, self.version)
        return self.forms.response.split(answer, self.version, self.way.names)


def _code(request: _Request) -> int:
    """Brokers return 100 for an unknown id and 3 for an unknown name."""
    form = request.forms.request
    struct = form.path[form.depth].type.inner_struct
    if struct is not None:
        field = id_field(struct, request.version)
        for part in request.parts:
            if field is not None and len(part.steps) > form.depth:
                element = part.steps[form.depth]
                if getattr(element, field.python_name) != ZERO_UUID:
                    return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
