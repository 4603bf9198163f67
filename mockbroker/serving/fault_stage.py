"""Requests that a fault rule takes. No sockets: ``server`` performs the plan of bytes.

The stage finds the rule, takes the rule's steps on the cluster, gets the broker's own answer if the
rule wants one, and changes it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from kproto.codec.message import Message
from kproto.connection import RequestReceived
from kproto.dialects import Api, Dialect
from kproto.errors import KprotoError
from mockbroker.apis import Call, Handler
from mockbroker.cluster import Cluster
from mockbroker.commands import CommandCall, parse_command
from mockbroker.faults import frame_edits, message_edits, partial_errors
from mockbroker.faults.delivery import End, Hold, Plan, Step, Write, plan_answer
from mockbroker.faults.error_places import chosen_places
from mockbroker.faults.error_skeleton import ErrorSkeleton
from mockbroker.faults.matching import ActiveFault, FaultRules, RequestFacts
from mockbroker.faults.partial_requests import part_of_request
from mockbroker.faults.request_entities import Topics, named_by
from mockbroker.faults.rule import Fault
from mockbroker.serving.delivery import Delivery
from mockbroker.serving.exchange import CLOSE, Close, Exchange, Pending, Reply
from mockbroker.timers import sleep

__all__ = ["FaultStage"]

_log = logging.getLogger("mockbroker")

_API_VERSIONS: Final = 18


class FaultStage:
    """Finds the rule that takes a request, and carries it out.

    ``broker_answer`` gives what the broker itself answers, and ``commit`` encodes that for the
    connection without journalling it. ``perform_step`` carries out a step of a rule, for a request
    that the broker of that id received; it raises KprotoError for what cannot be done.
    """

    def __init__(
        self,
        rules: FaultRules,
        cluster: Cluster,
        codec: Dialect,
        delivery: Delivery,
        *,
        broker_answer: Callable[[Exchange], Awaitable[Reply | Close]],
        commit: Callable[[Exchange, Reply], bytes | Close],
        make_call: Callable[[Exchange], Call],
        handler_of: Callable[[Dialect, int], Handler | None],
        perform_step: Callable[[CommandCall, int], None],
    ) -> None:
        self.rules = rules
        self.cluster = cluster
        self.codec = codec
        self.delivery = delivery
        self.broker_answer = broker_answer
        self.commit = commit
        self.handler_of = handler_of
        self.perform_step = perform_step
        self._make_call = make_call

    def answer(self, exchange: Exchange) -> Pending | None:
        request, session = exchange.request, exchange.session
        served = isinstance(request, RequestReceived)
        facts = RequestFacts(
            session.broker_id, session.connection_id, exchange.api_key, exchange.version,
            exchange.client_id, session.software, self.cluster.topics,
            request.body if isinstance(request, RequestReceived) else None,
            partial(self._make_call, exchange) if served else None,
        )  # fmt: skip

        def failed(rule: ActiveFault, error: Exception) -> None:
            _log.error("the predicate of rule %s failed", rule.name, exc_info=error)
            note = f"{rule.name}: {error!r}"
            self.delivery.note_event(session, "fault-predicate-failed", note)

        rule = self.rules.take(facts, failed)
        return None if rule is None else Pending(_FaultRun(self, exchange, rule).run)


class _FaultRun:
    """One request under one rule."""

    def __init__(self, stage: FaultStage, exchange: Exchange, rule: ActiveFault) -> None:
        self._stage = stage
        self._delivery = stage.delivery
        self._exchange = exchange
        self._connection = exchange.connection
        self._session = exchange.session
        self._request = exchange.request
        self._rule = rule
        self._fault: Fault = rule.fault
        self._key, self._request_version = exchange.api_key, exchange.version
        self._codec = exchange.dialect
        self._problems: list[str] = []
        self._committed = False
        """Whether the connection has counted the request as answered."""
        self._version = exchange.version
        """The version of the broker's own answer."""

    @property
    def _topics(self) -> Topics:
        return self._stage.cluster.topics

    async def run(self) -> Plan | Close:
        """What goes out. Never raises."""
        try:
            return await self._run()
        except Exception as error:
            if not isinstance(error, KprotoError):
                _log.error("rule %s failed", self._rule.name, exc_info=error)
            self._note(f"failed, the connection ends: {type(error).__name__}: {error}")
            return CLOSE

    async def _run(self) -> Plan | Close:
        fault = self._fault
        if isinstance(fault.delay, int):
            await sleep(fault.delay / 1000)
        self._steps(fault.steps_before)
        if fault.disconnect == "before":
            self._note("disconnected before the request was carried out")
            return self._end()
        said = await self._answer()
        self._steps(fault.steps_after)
        if fault.disconnect == "after":
            self._note("disconnected after the request was carried out")
            return self._end()
        if isinstance(said, Close):
            self._note("the broker itself closes the connection")
            return said
        if not self._request.expects_response:
            self._note("the request wants no answer")
            return Plan((), answers=False)
        if fault.never_answer:
            self._drop()
            self._note("never answered")
            return Plan((), answers=False)
        if said == b"":
            self._note("the broker itself does not answer")
            return Plan((), answers=False)
        return self._planned(said)

    def _end(self) -> Plan:
        return Plan((End(self._fault.close_with or "fin"),), answers=False)

    # ---- the cluster -------------------------------------------------------------------------

    def _steps(self, steps: tuple[str, ...]) -> None:
        for text in steps:
            try:
                call = parse_command(text, relative_brokers=True)
                self._stage.perform_step(call, self._session.broker_id)
            except KprotoError as error:
                note = f"{self._rule.name}: {text}: {error}"
                self._delivery.note_event(self._session, "fault-step-failed", note)

    # ---- what is said ------------------------------------------------------------------------

    async def _answer(self) -> tuple[Message, int] | bytes | Close | None:
        """A message and its version, or a frame; None where there is none."""
        fault = self._fault
        applies = fault.apply
        if fault.reply is not None:
            if applies:
                await self._broker(self._exchange)
            return self._reply()
        if fault.error is not None:
            return await self._error()
        instead = (fault.raw, fault.garbage, fault.tls_alert)
        silent = fault.never_answer or any(each is not None for each in instead)
        if applies or (applies is None and not silent):
            return await self._broker(self._exchange)
        return None

    async def _broker(self, exchange: Exchange) -> bytes | Close:
        """The broker's own answer as a frame; empty if the broker does not answer."""
        # Neither from the cache nor into it: the answer may be to a part of the request only.
        exchange = replace(exchange, repeatable=False)
        answer = await self._stage.broker_answer(exchange)
        if isinstance(answer, Close):
            return answer
        data = self._stage.commit(exchange, answer)
        if isinstance(data, Close):
            return data
        self._committed = True
        self._version = self._request_version if answer.version is None else answer.version
        return data

    def _reply(self) -> tuple[Message, int]:
        assert self._fault.reply is not None
        api, version = self._api_and_version()
        return message_edits.replied(self._fault.reply, api.response, version), version

    def _api_and_version(self) -> tuple[Api, int]:
        """The version the answer is made at: the rule's, or the request's. What no codec has is
        answered as ApiVersions is, at 0. Raises KprotoError for a key nobody knows."""
        api = self._codec.api(self._key)
        version = self._request_version
        if self._fault.as_version is not None:
            version = self._fault.as_version
        if version not in api.response.VALID_VERSIONS:
            valid = api.response.VALID_VERSIONS
            if self._fault.as_version is not None:
                self._problems.append(f"there is no version {version}")
            nearest = min(max(self._request_version, valid.lowest), valid.highest)
            fell_back = self._key == _API_VERSIONS and self._request_version not in valid
            version = 0 if fell_back else nearest
        return api, version

    async def _error(self) -> tuple[Message, int] | bytes | Close:
        fault, request = self._fault, self._request
        api, version = self._api_and_version()
        if not isinstance(request, RequestReceived):
            # Nobody has read what it asks about; what takes its place asks about nothing.
            body = partial_errors.refusal(fault, api.response(), version, api.response, version, {})
            return self._unless_none(body, version)
        if fault.apply or (fault.apply is None and self._reads(api, version)):
            return await self._error_over(request, api, version)
        if self._rule.selection:
            parted = await self._parted(request, api, version)
            if parted is not None:
                return parted
        body = partial_errors.refusal(
            fault, request.body, self._request_version, api.response, version, self._topics
        )
        return self._unless_none(body, version)

    def _unless_none(self, body: Message | None, version: int) -> tuple[Message, int]:
        if body is None:
            raise KprotoError(f"version {version} carries no error code")
        return body, version

    def _reads(self, api: Api, version: int) -> bool:
        """Whether carrying it out changes nothing, and only elements of the answer fail."""
        handler = self._stage.handler_of(self._codec, self._key)
        return (
            handler is not None
            and handler.cacheable
            and partial_errors.carried_by_elements(self._fault, api.response, version)
        )

    async def _error_over(
        self, request: RequestReceived, api: Api, version: int
    ) -> tuple[Message, int] | bytes | Close:
        said = await self._broker(self._exchange)
        if not isinstance(said, bytes) or not said:
            return said
        body = self._decoded(said)
        if version != self._version:
            message_edits.recast(body, version)
        if not partial_errors.error_over(
            self._fault, body, request.body, self._request_version, version, self._topics
        ):
            self._problems.append("the answer has no place for the error")
        return body, version

    async def _parted(
        self, request: RequestReceived, api: Api, version: int
    ) -> tuple[Message, int] | bytes | Close | None:
        """The error for what the rule is about, and the broker's own answer to the rest; None
        where a part cannot be told from the rest."""
        fault, selection, asked = self._fault, self._rule.selection, self._request_version
        places = chosen_places(api.response, version, fault.error_at, selection)
        if not any(place.path for place in places):
            return None
        by_partition = selection.partition is not None and any(
            p.level == "partition" for p in places
        )
        halves = [
            part_of_request(
                request.body, asked, selection, self._topics, partitions=by_partition, keep=keep
            )
            for keep in (False, True)
        ]
        rest, taken = halves
        if rest is None or taken is None:
            return await self._error_over(request, api, version)
        if not named_by(rest, asked, self._topics):
            return None
        handler = self._stage.handler_of(self._codec, self._key)
        if handler is None or asked not in handler.versions:
            body = ErrorSkeleton(rest, asked, self._topics).answer(api.response, version, places)
        else:
            said = await self._broker(
                replace(self._exchange, request=msgspec.structs.replace(request, body=rest))
            )
            if not isinstance(said, bytes) or not said:
                return said
            body = self._decoded(said)
            if version != self._version:
                message_edits.recast(body, version)
        return (
            partial_errors.merged_error(
                fault, body, taken, request.body, asked, version, self._topics
            ),
            version,
        )

    def _decoded(self, frame: bytes) -> Message:
        _, body = self._codec.decode_response(frame, api_key=self._key, api_version=self._version)
        return body

    # ---- which bytes -------------------------------------------------------------------------

    def _planned(self, said: tuple[Message, int] | bytes | None) -> Plan:
        fault = self._fault
        whole = frame_edits.replacement(fault, self._rule.random)
        version = self._request_version
        if whole is not None:
            frame = whole
            if not self._committed:
                self._connection.send_bytes(self._request, frame)
        else:
            frame, version = self._framed(said)
            frame, problems = frame_edits.edit_fields(
                self._codec, frame, fault, api_key=self._key, version=version
            )
            self._problems += problems
            frame = frame_edits.altered(frame, fault)
        self._note("; ".join([self._fault.describe_actions(), *self._problems]))
        record = self._recorder(version, framed=whole is None)
        steps: list[Step] = list(plan_answer(frame, fault, record))
        if self._session.ended:
            steps.append(End("fin"))
        answers_it = any(isinstance(step, Hold) or (isinstance(step, Write) and step.data)
                         for step in steps)  # fmt: skip
        return Plan(tuple(steps), answers=answers_it)

    def _framed(self, said: tuple[Message, int] | bytes | None) -> tuple[bytes, int]:
        fault = self._fault
        if isinstance(said, bytes):
            changes = (fault.throttle is not None, fault.unknown_tags, fault.more)
            if not any(changes) and fault.as_version is None:
                return said, self._version
            body, version = self._decoded(said), self._version
            if fault.as_version is not None:
                _, version = self._api_and_version()
                message_edits.recast(body, version)
        else:
            assert said is not None
            body, version = said
        if isinstance(fault.throttle, int) and not message_edits.throttle(
            body, version, fault.throttle
        ):
            self._problems.append(f"version {version} has no throttle time")
        for name, count in fault.more.items():
            if not message_edits.lengthen(body, version, name, count):
                self._problems.append(f"there is no array {name!r} with an element to copy")
        header_tags = self._tag(body, version)
        frame = self._codec.encode_response(
            body,
            api_version=version,
            correlation_id=self._exchange.correlation_id,
            unknown_tags=header_tags,
        )
        if not self._committed:
            self._connection.send_response(self._request, body, api_version=version)
        return frame, version

    def _tag(self, body: Message, version: int) -> dict[int, bytes] | None:
        fault = self._fault
        number, data = fault.unknown_tag, bytes.fromhex(fault.unknown_tag_data)
        for part in fault.unknown_tags:
            if part == "header":
                if self._codec.api(self._key).response_header_version(version) < 1:
                    self._problems.append(f"the header of version {version} has no tags")
            elif not message_edits.tag(body, version, number, data, elements=part == "elements"):
                self._problems.append(f"there are no tags for {part} in this answer")
        flexible = self._codec.api(self._key).response_header_version(version) >= 1
        return {number: data} if "header" in fault.unknown_tags and flexible else None

    def _drop(self) -> None:
        if not self._committed:
            self._connection.drop_response(self._request)

    # ---- the journal -------------------------------------------------------------------------

    def _note(self, note: str) -> None:
        self._delivery.note(self._exchange, f"fault: {self._rule.name}", note)

    def _recorder(self, version: int, *, framed: bool) -> Callable[[bytes], None]:
        def record(frame: bytes) -> None:
            said_id = None
            if framed and len(frame) >= 8:
                said_id = int.from_bytes(frame[4:8], "big", signed=True)
            mark = f"fault: {self._rule.name}"
            self._delivery.record(self._exchange, version, frame, mark, said_id)

        return record
