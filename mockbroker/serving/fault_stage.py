"""Requests that a fault rule takes. No sockets: ``server`` performs the plan of bytes.

The stage finds the rule, takes the rule's steps on the cluster, gets the broker's own answer if the
rule wants one, and changes it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

from msgspec import structs

from kproto.codec.message import Message
from kproto.connection import RequestReceived
from kproto.dialects import Api, Dialect
from kproto.errors import KprotoError
from mockbroker.apis import Handler
from mockbroker.apis.common.error_places import chosen_places
from mockbroker.apis.common.error_skeleton import ErrorSkeleton
from mockbroker.apis.common.request_entities import Topics, named_by
from mockbroker.apis.common.version_cast import recast
from mockbroker.faults import frame_edits, message_edits, partial_errors
from mockbroker.faults.damaged_records import damage
from mockbroker.faults.delivery import End, Hold, Plan, Step, Write, plan_answer
from mockbroker.faults.matching import ActiveFault, FaultRules, RequestFacts
from mockbroker.faults.partial_requests import part_of_request
from mockbroker.faults.rule import Fault
from mockbroker.serving.delivery import Delivery
from mockbroker.serving.exchange import CLOSE, Close, Exchange, Pending, Reply, Request
from mockbroker.simulation.state.timers import sleep

__all__ = ["ClusterView", "FaultStage", "Handlers"]

_log = logging.getLogger("mockbroker")

_API_VERSIONS: Final = 18


class ClusterView(Protocol):
    """What rules know of the cluster that answers."""

    @property
    def topics(self) -> Topics: ...

    def complete(self, body: Message, broker_id: int) -> Message:
        """Return a request with what the broker adds to it: the rest of a fetch session."""


class Handlers(Protocol):
    """The handlers of a broker: what they only read, and what they are given."""

    def handler_of(self, codec: Dialect, api_key: int) -> Handler | None: ...

    def call(self, exchange: Exchange, request: RequestReceived) -> Any: ...


class FaultStage:
    """Finds the rule that takes a request, and carries it out.

    ``broker_answer`` gives what the broker itself answers, and ``commit`` encodes that for the
    connection without journalling it. ``carry_out`` carries out a step of a rule, as text, for a
    request that the broker of that id received; it raises KprotoError for what cannot be done.
    """

    def __init__(
        self,
        rules: FaultRules,
        view: ClusterView,
        codec: Dialect,
        delivery: Delivery,
        *,
        broker_answer: Callable[[Exchange], Awaitable[Reply | Close]],
        commit: Callable[[Exchange, Reply], bytes | Close],
        handlers: Handlers,
        carry_out: Callable[[str, int], None],
        predicate_failed: Callable[[Exception], None],
    ) -> None:
        self.rules = rules
        self.view = view
        self.codec = codec
        self.delivery = delivery
        self.broker_answer = broker_answer
        self.commit = commit
        self.handler_of = handlers.handler_of
        self._handlers = handlers
        self.carry_out = carry_out
        self._predicate_failed = predicate_failed

    def answer(self, exchange: Exchange) -> Pending | None:
        request, session = exchange.request, exchange.session
        received = request if isinstance(request, RequestReceived) else None
        if received is not None and self.rules.live:
            whole = self.view.complete(received.body, session.broker_id)
            if whole is not received.body:
                received = structs.replace(received, body=whole)
        facts = RequestFacts(
            session.node_id, session.connection_id, exchange.api_key, exchange.version,
            exchange.client_id, session.software, self.view.topics,
            None if received is None else received.body,
            None if received is None else partial(self._handlers.call, exchange, received),
            session.listener,
        )  # fmt: skip

        def failed(rule: ActiveFault, error: Exception) -> None:
            _log.error("the predicate of rule %s failed", rule.name, exc_info=error)
            note = f"{rule.name}: {error!r}"
            self.delivery.note_event(session, "fault-predicate-failed", note)
            self._predicate_failed(error)

        rule = self.rules.take(facts, failed)
        if rule is None:
            return None
        return Pending(_FaultRun(self, exchange, rule, received or request).run)


class _FaultRun:
    """One request under one rule."""

    def __init__(
        self, stage: FaultStage, exchange: Exchange, rule: ActiveFault, whole: Request
    ) -> None:
        self._stage = stage
        self._delivery = stage.delivery
        self._exchange = exchange
        self._connection = exchange.connection
        self._session = exchange.session
        self._request = exchange.request
        self._whole = whole
        """The request with what its fetch session adds to it."""
        self._rule = rule
        self._fault: Fault = rule.fault
        self._key, self._request_version = exchange.api_key, exchange.version
        self._codec = exchange.dialect
        self._problems: list[str] = []
        self._failed_steps: list[str] = []
        self._committed = False
        """Whether the connection has counted the request as answered."""
        self._version = exchange.version
        """The version of the broker's own answer."""

    @property
    def _topics(self) -> Topics:
        return self._stage.view.topics

    async def run(self) -> Plan | Close:
        """Return the plan of what goes out. Never raises."""
        plan: Plan | Close
        try:
            plan = await self._run()
        except Exception as error:
            if not isinstance(error, KprotoError):
                _log.error("rule %s failed", self._rule.name, exc_info=error)
            problem = f"failed, the connection ends: {type(error).__name__}: {error}"
            self._note(problem)
            self._problems.append(problem)
            plan = CLOSE
        self._rule.finish(self._failed_steps, self._problems)
        return plan

    async def _run(self) -> Plan | Close:
        fault = self._fault
        if isinstance(fault.delay, int):
            await sleep(fault.delay / 1000)
        self._steps(fault.steps_before)
        if fault.disconnect == "before":
            self._note("disconnected before the request was carried out")
            return self._end()
        answer = await self._answer()
        self._steps(fault.steps_after)
        if fault.disconnect == "after":
            self._note("disconnected after the request was carried out")
            return self._end()
        if isinstance(answer, Close):
            self._note("the broker itself closes the connection")
            return answer
        if not self._request.expects_response:
            self._note("the request has no response")
            return Plan((), answers=False)
        if fault.never_answer:
            self._drop()
            self._note("never answered")
            return Plan((), answers=False)
        if answer == b"":
            self._note("the broker itself does not answer")
            return Plan((), answers=False)
        return self._plan(answer)

    def _end(self) -> Plan:
        return Plan((End(self._fault.close_with or "fin"),), answers=False)

    # ---- steps of the cluster ------------------------------------------------------------------

    def _steps(self, steps: tuple[str, ...]) -> None:
        for text in steps:
            try:
                self._stage.carry_out(text, self._session.broker_id)
            except KprotoError as error:
                note = f"{self._rule.name}: {text}: {error}"
                self._delivery.note_event(self._session, "fault-step-failed", note)
                self._failed_steps.append(f"{text}: {error}")

    # ---- the response ------------------------------------------------------------------------

    async def _answer(self) -> tuple[Message, int] | bytes | Close | None:
        """Return a message and its version, or a frame; None if there is no response."""
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
        """Return the broker's own answer as a frame, empty if the broker does not answer."""
        # The cache is bypassed, because the exchange may be for a part of the request only.
        exchange = structs.replace(exchange, repeatable=False)
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
        return message_edits.reply_message(self._fault.reply, api.response, version), version

    def _api_and_version(self) -> tuple[Api, int]:
        """Return the API and the version of the response: the rule's, or the request's.

        If the codec lacks that version, it is the nearest one; 0 for ApiVersions. Raises
        KprotoError for an unknown key.
        """
        api = self._codec.api(self._key)
        version = self._request_version
        if self._fault.as_version is not None:
            version = self._fault.as_version
        if version not in api.response.VALID_VERSIONS:
            valid = api.response.VALID_VERSIONS
            if self._fault.as_version is not None:
                self._problems.append(f"version {version} does not exist")
            nearest = min(max(self._request_version, valid.lowest), valid.highest)
            fell_back = self._key == _API_VERSIONS and self._request_version not in valid
            version = 0 if fell_back else nearest
        return api, version

    async def _error(self) -> tuple[Message, int] | bytes | Close:
        fault, request = self._fault, self._whole
        api, version = self._api_and_version()
        if not isinstance(request, RequestReceived):
            # The request was not decoded, so the response repeats nothing of it.
            body = partial_errors.refusal(fault, api.response(), version, api.response, version, {})
            return self._checked(body, version)
        if fault.apply or (fault.apply is None and self._reads(api, version)):
            return await self._error_over(request, api, version)
        if self._rule.selection:
            split = await self._split_answer(request, api, version)
            if split is not None:
                return split
        body = partial_errors.refusal(
            fault, request.body, self._request_version, api.response, version, self._topics
        )
        return self._checked(body, version)

    def _checked(self, body: Message | None, version: int) -> tuple[Message, int]:
        if body is None:
            raise KprotoError(f"version {version} carries no error code")
        return body, version

    def _reads(self, api: Api, version: int) -> bool:
        """Return whether the request only reads, and the error goes into elements only."""
        handler = self._stage.handler_of(self._codec, self._key)
        return (
            handler is not None
            and handler.cacheable
            and partial_errors.carried_by_elements(self._fault, api.response, version)
        )

    async def _error_over(
        self, request: RequestReceived, api: Api, version: int
    ) -> tuple[Message, int] | bytes | Close:
        answer = await self._broker(self._exchange)
        if not isinstance(answer, bytes) or not answer:
            return answer
        body = self._decoded(answer)
        if version != self._version:
            recast(body, version)
        if not partial_errors.error_over(
            self._fault, body, request.body, self._request_version, version, self._topics
        ):
            self._problems.append("the response has no field for the error")
        return body, version

    async def _split_answer(
        self, request: RequestReceived, api: Api, version: int
    ) -> tuple[Message, int] | bytes | Close | None:
        """Return the error for what the rule selects, with the broker's own answer to the rest;
        None if the request cannot be split."""
        fault, selection, request_version = (
            self._fault,
            self._rule.selection,
            self._request_version,
        )
        places = chosen_places(api.response, version, fault.error_at, selection)
        if not any(place.path for place in places):
            return None
        by_partition = selection.partition is not None and any(
            p.level == "partition" for p in places
        )
        rest, taken = (
            part_of_request(
                request.body, request_version, selection, self._topics,
                partitions=by_partition, keep=keep,
            )
            for keep in (False, True)
        )  # fmt: skip
        if rest is None or taken is None:
            return await self._error_over(request, api, version)
        if not named_by(rest, request_version, self._topics):
            return None
        handler = self._stage.handler_of(self._codec, self._key)
        if handler is None or request_version not in handler.versions:
            body = ErrorSkeleton(rest, request_version, self._topics).answer(
                api.response, version, places
            )
        else:
            answer = await self._broker(
                structs.replace(self._exchange, request=structs.replace(request, body=rest))
            )
            if not isinstance(answer, bytes) or not answer:
                return answer
            body = self._decoded(answer)
            if version != self._version:
                recast(body, version)
        return (
            partial_errors.merged_error(
                fault, body, taken, request.body, request_version, version, self._topics
            ),
            version,
        )

    def _decoded(self, frame: bytes) -> Message:
        _, body = self._codec.decode_response(frame, api_key=self._key, api_version=self._version)
        return body

    # ---- its bytes -------------------------------------------------------------------------

    def _plan(self, answer: tuple[Message, int] | bytes | None) -> Plan:
        fault = self._fault
        whole = frame_edits.replacement(fault, self._rule.random)
        version = self._request_version
        if whole is not None:
            frame = whole
            if not self._committed:
                self._connection.send_bytes(self._request, frame)
        else:
            frame, version = self._encoded(answer)
            frame, problems = frame_edits.edit_fields(
                self._codec, frame, fault, api_key=self._key, version=version
            )
            self._problems += problems
            frame = frame_edits.edit_frame(frame, fault)
        self._note("; ".join([self._fault.describe_actions(), *self._problems]))
        record = self._recorder(version, framed=whole is None)
        steps: list[Step] = list(plan_answer(frame, fault, record))
        if self._session.ended:
            steps.append(End("fin"))
        answers_it = any(isinstance(step, Hold) or (isinstance(step, Write) and step.data)
                         for step in steps)  # fmt: skip
        return Plan(tuple(steps), answers=answers_it)

    def _encoded(self, answer: tuple[Message, int] | bytes | None) -> tuple[bytes, int]:
        fault = self._fault
        if isinstance(answer, bytes):
            changes = (fault.throttle is not None, fault.unknown_tags, fault.more, fault.corrupt)
            if not any(changes) and fault.as_version is None:
                return answer, self._version
            body, version = self._decoded(answer), self._version
            if fault.as_version is not None:
                _, version = self._api_and_version()
                recast(body, version)
        else:
            assert answer is not None
            body, version = answer
        if isinstance(fault.throttle, int) and not message_edits.throttle(
            body, version, fault.throttle
        ):
            self._problems.append(f"version {version} has no throttle time")
        for name, count in fault.more.items():
            if not message_edits.lengthen(body, version, name, count):
                self._problems.append(f"the response has no array {name!r} with an element to copy")
        if fault.corrupt is not None:
            selection = self._rule.selection
            count, problem = damage(body, version, fault.corrupt, self._topics, selection)
            if problem is not None or not count:
                self._problems.append(problem or "the response has no records")
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
                self._problems.append(f"the response has no place for tags in {part}")
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
            correlation_id = None
            if framed and len(frame) >= 8:
                correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
            mark = f"fault: {self._rule.name}"
            self._delivery.record(self._exchange, version, frame, mark, correlation_id)

        return record
