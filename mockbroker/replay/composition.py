"""Answers put together from what was recorded for each topic and partition that a request names.

For apis whose responses say something of each of them (``partition_names.forms_of``). A topic or
partition is answered with what was recorded for itself, from the first of these that there is:

1. a request of the same meaning as this one,
2. a request that meant the same by this topic or partition,
3. any request or response that named it;

within each the nearest version first, of two the lower. Of several that are equal in this, the
connection gets each once, in the recorded order, and then the last again and again. What was not
recorded gets an error in the answer (3, or 100 where the request names topics by id), and is
``missing``. A disconnect, silence, an error of the whole response and bytes that cannot be decoded
are answers to a request as a whole: they are given where one of its parts meets them.
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
from mockbroker.apis.refusals import error_response
from mockbroker.faults.error_places import Place, chosen_places, place_error
from mockbroker.faults.error_skeleton import ErrorSkeleton
from mockbroker.faults.message_edits import recast
from mockbroker.faults.request_entities import Selection, fields_of, id_field, topic_field
from mockbroker.replay.fetch_sessions import FETCH, SHARE_FETCH, FetchSessions
from mockbroker.replay.partition_names import Forms, Key, MessagePart, TopicNames
from mockbroker.replay.recorded_parts import (
    Known,
    RecordedParts,
    RequestMeaning,
    asked_of,
    forms_at,
)
from mockbroker.state.model import Topic

__all__ = ["Composed", "Composition"]

_NOTHING: Final = Key((), "", None)
"""In place of a key, for what an answer says apart from topics."""

_UNRECORDED: Final = "nothing was recorded for it"


class Composed(NamedTuple):
    """``body`` is the answer; None where ``exchange`` has to be given as it is. ``again``: all of
    it was given to this connection before. ``missing`` says in words what was not recorded."""

    exchange: Exchange | None
    body: Message | None
    again: bool = False
    missing: str = ""
    latency_ms: float | None = None


class _Chosen(NamedTuple):
    known: Known
    again: bool


class Composition:
    """One connection's way through a recording."""

    def __init__(self, recorded: RecordedParts) -> None:
        self._recorded = recorded
        self._sessions = FetchSessions()
        self._given: set[tuple[int, Key]] = set()
        self._carried: dict[tuple[int, int], bool] = {}

    def answer(self, api: Api, version: int, body: Any) -> Composed | None:
        """None where nothing of this api was recorded; KprotoError where that is none of its
        version."""
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
        parts = forms.request.take_apart(body, version, names)
        session = 0
        if api.api_key in (FETCH, SHARE_FETCH):
            opened = self._sessions.open(api.api_key, body, parts, version, names)
            if opened.parts is None:
                problem = "a session that was not opened on this connection"
                refused = error_response(api.response, version, opened.error_code)
                return Composed(None, refused, missing=problem)
            parts = opened.parts
            session = body.session_id if api.api_key == FETCH and opened.incremental else 0
        asked = asked_of(body, version, forms, parts)
        composed = _Request(self, api, version, body, forms, parts, asked, recorded).compose()
        if api.api_key == FETCH and composed.body is not None:
            self._open(composed.body, body, session)
        return composed

    def _open(self, answer: Any, request: Any, session: int) -> None:
        answer.session_id = session or (0 if request.session_epoch else answer.session_id)
        self._sessions.answered(answer.session_id)

    def choose(self, equals: list[Known], key: Key) -> _Chosen:
        """The first of these that this connection was not given yet, or else the last."""
        fresh = [each for each in equals if (id(each), key) not in self._given]
        known = fresh[0] if fresh else equals[-1]
        self._given.add((id(known), key))
        return _Chosen(known, not fresh)

    @property
    def names(self) -> TopicNames:
        return self._recorded.names

    @property
    def topics(self) -> Mapping[str, Topic]:
        return {name: Topic(name, each, ()) for name, each in self.names.ids.items()}

    def carries(self, known: Known, forms: Forms, version: int) -> bool:
        """Whether a version can say what was recorded in another."""
        if known.exchange.api_version == version:
            return True
        found = self._carried.get((id(known), version))
        if found is None:
            assert known.response is not None
            parts = [
                self.fit(part, forms, version) for each in known.parts.values() for part in each
            ]
            try:
                forms.response.put_together(known.response, parts).encode(version)
                found = True
            except KprotoError:
                found = False
            self._carried[id(known), version] = found
        return found

    def fit(self, part: MessagePart, forms: Forms, version: int) -> MessagePart:
        """The part as ``version`` names its topic."""
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
    asked: RequestMeaning
    recorded: list[Known]

    def compose(self) -> Composed:
        chosen: dict[Key, _Chosen] = {}
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
        body = form.put_together(base, [*parts, *self._failing(missing, places)])
        if missing and not chosen and places and not places[0].path:
            place_error(body, self.version, places, _code(self), _UNRECORDED, {})
        latencies = [each.known.exchange.latency_ms for each in chosen.values()]
        known = [each for each in latencies if each is not None]
        return Composed(
            None, body, again and not (missing and not chosen),
            f"{_UNRECORDED}: {', '.join(map(str, missing))}" if missing else "",
            max(known, default=None),
        )  # fmt: skip

    def _keys(self) -> list[Key]:
        """What is asked about. All topics of which nobody asked before are those that were
        recorded."""
        keys: list[Key] = []
        for key in self.asked.meanings:
            if key.topic is None and not any(
                each.asked is not None and key in each.asked.meanings for each in self.recorded
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

    def _find(self, key: Key) -> _Chosen | None:
        able = [each for each in self.recorded if self._answers(each, key)]
        if self.api.api_key in (FETCH, SHARE_FETCH):
            # Its client closed while the broker waited for records: that says nothing.
            able = [each for each in able if each.exchange.outcome != "unanswered"] or able
        if not able:
            return None
        return self._best(able, key)

    def _best(self, able: list[Known], key: Key) -> _Chosen:
        whole = self.asked.whole
        ranks = [self._rank(each, key, whole) for each in able]
        best = min(ranks)
        return self.way.choose(
            [each for each, rank in zip(able, ranks, strict=True) if rank == best], key
        )

    def _answers(self, known: Known, key: Key) -> bool:
        asked = known.asked.meanings if known.asked is not None else {}
        every = Key(key.holder, None, None)
        if known.response is None and known.exchange.response is not None:
            return bool(known.whole == self.asked.whole)  # bytes
        if known.fails_whole:
            return key in asked or every in asked
        if known.says(key):
            return self._carried(known)
        # Left out of an answer it was asked for in. That is one where there is no error to say.
        silent = self.api.api_key == SHARE_FETCH or not self._says_errors()
        return silent and (key in asked or every in asked) and self._carried(known)

    def _rank(self, known: Known, key: Key, whole: Any) -> tuple[bool, bool, bool, int, bool]:
        asked = known.asked
        version = known.exchange.api_version
        return (
            known.whole != whole,
            asked is None or asked.meanings.get(key) != self.asked.meanings.get(key),
            asked is None or asked.base != self.asked.base,
            abs(version - self.version),
            version > self.version,
        )

    def _carried(self, known: Known) -> bool:
        return self.way.carries(known, self.forms, self.version)

    def _base(self, chosen: Mapping[Key, _Chosen]) -> tuple[Message, bool]:
        """What the answer says apart from topics, as the first part's did, or as any; and whether
        there is nothing in the answer that this connection was not given before."""
        for each in chosen.values():
            again = all(each.again for each in chosen.values())
            return self._without_cursor(each.known), again
        able = [each for each in self.recorded if not each.fails_whole and self._carried(each)]
        if not able:
            return self.api.response(), False
        best = self._best(able, _NOTHING)
        return self._without_cursor(best.known), best.again

    def _without_cursor(self, known: Known) -> Message:
        """A cursor says where the very same request goes on, which another one does not."""
        assert known.response is not None
        if known.whole == self.asked.whole:
            return known.response
        base = copy.copy(known.response)
        for field in fields_of(schema_of(type(base)).root, self.version):
            struct = field.type.struct
            if struct is not None and topic_field(struct, self.version) is not None:
                setattr(base, field.python_name, None)
        return base

    def _as_it_was(self, chosen: _Chosen) -> Composed:
        exchange = chosen.known.exchange
        body = chosen.known.response
        return Composed(exchange, body, chosen.again, latency_ms=exchange.latency_ms)

    # ---- what was not recorded -------------------------------------------------------------------

    def _places(self) -> tuple[Place, ...]:
        """Where the version has an error of one topic or partition, or else of the response."""
        form = self.forms.response
        topics = form.path[form.depth]
        found = chosen_places(self.api.response, self.version, form.level, Selection())
        return tuple(place for place in found if not place.path or topics in place.path)

    def _says_errors(self) -> bool:
        return any(place.path for place in self._places())

    def _failing(self, missing: Iterable[Key], places: tuple[Place, ...]) -> list[MessagePart]:
        """Elements that say of each key that there is no such topic or partition."""
        wanted = set(missing)
        if not wanted or not places or not places[0].path:
            return []
        asked = [each for each in self.parts if each.key in wanted]
        request = self.forms.request.put_together(self.body, asked)
        topics = self.way.topics
        answer = ErrorSkeleton(request, self.version, topics).answer(
            self.api.response, self.version, places
        )
        place_error(answer, self.version, places, _code(self), _UNRECORDED, topics)
        recast(answer, self.version)
        return self.forms.response.take_apart(answer, self.version, self.way.names)


def _code(request: _Request) -> int:
    """Brokers say 100 of an id, and 3 of a name."""
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
