"""What becomes of a request that a rule of faults has taken: the cluster's steps, the broker's own
answer where it is wanted, the rule's changes to it, the journal. No sockets; bytes go out as
``faults.planning`` says.

The broker's own answer comes out of the dispatcher as ever, of a copy of it that keeps the answer
from the journal: what is in there is what went out.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kproto.codec.message import Message
from kproto.connection import RequestReceived, ServerConnection
from kproto.dialects import Api, Dialect
from kproto.errors import KprotoError
from mockbroker.apis import Session
from mockbroker.faults import frame_edits, message_edits
from mockbroker.faults.delivery import End, Hold, Plan, Step, Write, plan_answer
from mockbroker.faults.error_places import chosen_places
from mockbroker.faults.error_skeleton import ErrorSkeleton
from mockbroker.faults.matching import ActiveFault
from mockbroker.faults.partial_requests import narrowed
from mockbroker.faults.request_entities import Topics, named_by
from mockbroker.faults.rule import Fault
from mockbroker.faults.steps import parse_step
from mockbroker.serving.fault_rules import Request, about
from mockbroker.serving.outcome import CLOSE, Close
from mockbroker.serving.withheld import Forgetful, Withheld
from mockbroker.timers import sleep

if TYPE_CHECKING:
    from mockbroker.serving.dispatch import Dispatcher

__all__ = ["FaultedExchange"]

_log = logging.getLogger("mockbroker")

_API_VERSIONS: Final = 18


class FaultedExchange:
    """One request that a rule has taken. ``own`` has the dispatcher it is given answer it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        connection: ServerConnection,
        session: Session,
        request: Request,
        rule: ActiveFault,
        own: Callable[[Dispatcher, Request], Any],
    ) -> None:
        self._dispatcher = dispatcher
        self._connection = connection
        self._session = session
        self._request = request
        self._rule = rule
        self._fault: Fault = rule.fault
        self._own = own
        self._key, self._asked_version, self._client_id = about(request)
        self._codec: Dialect = (
            request.dialect if isinstance(request, RequestReceived) else dispatcher.codec
        )
        self._problems: list[str] = []
        self._answered = False
        """Whether the connection has been told of an answer."""

    @property
    def _topics(self) -> Topics:
        return self._dispatcher.cluster.topics

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
                self._dispatcher.faults.perform(parse_step(text), self._session.broker_id)
            except KprotoError as error:
                note = f"{self._rule.name}: {text}: {error}"
                self._dispatcher.note_event(self._session, "fault-step-failed", note)

    # ---- what is said ------------------------------------------------------------------------

    async def _answer(self) -> tuple[Message, int] | bytes | Close | None:
        """A message and its version, or a frame; None where there is none."""
        fault = self._fault
        applies = fault.apply
        if fault.reply is not None:
            if applies:
                await self._broker(self._request)
            return self._reply()
        if fault.error is not None:
            return await self._error()
        instead = (fault.raw, fault.garbage, fault.tls_alert)
        silent = fault.never_answer or any(each is not None for each in instead)
        if applies or (applies is None and not silent):
            return await self._broker(self._request)
        return None

    async def _broker(self, request: Request) -> bytes | Close:
        """What the broker itself would say to it, as a frame; nothing where that is nothing."""
        quiet = copy.copy(self._dispatcher)
        withheld = Withheld(self._dispatcher.journal)
        quiet.journal = withheld
        quiet.response_cache = Forgetful()  # type: ignore[assignment]  # as far as it is used
        answered: Any = self._own(quiet, request)
        if isinstance(answered, Awaitable):
            answered = await answered
        if isinstance(answered, Close):
            return answered
        self._answered = True
        self._version = self._asked_version if withheld.version is None else withheld.version
        return bytes(answered)

    def _reply(self) -> tuple[Message, int]:
        assert self._fault.reply is not None
        api, version = self._api_and_version()
        return message_edits.replied(self._fault.reply, api.response, version), version

    def _api_and_version(self) -> tuple[Api, int]:
        """The version the answer is made at: the rule's, or the request's. What no codec has is
        answered as ApiVersions is, at 0. Raises KprotoError for a key nobody knows."""
        api = self._codec.api(self._key)
        version = self._asked_version
        if self._fault.as_version is not None:
            version = self._fault.as_version
        if version not in api.response.VALID_VERSIONS:
            valid = api.response.VALID_VERSIONS
            if self._fault.as_version is not None:
                self._problems.append(f"there is no version {version}")
            nearest = min(max(self._asked_version, valid.lowest), valid.highest)
            fell_back = self._key == _API_VERSIONS and self._asked_version not in valid
            version = 0 if fell_back else nearest
        return api, version

    async def _error(self) -> tuple[Message, int] | bytes | Close:
        fault, request = self._fault, self._request
        api, version = self._api_and_version()
        if not isinstance(request, RequestReceived):
            # Nobody has read what it asks about; what takes its place asks about nothing.
            body = message_edits.refusal(fault, api.response(), version, api.response, version, {})
            return self._unless_none(body, version)
        if fault.apply or (fault.apply is None and self._reads(api, version)):
            return await self._error_over(request, api, version)
        if self._rule.wanted:
            parted = await self._parted(request, api, version)
            if parted is not None:
                return parted
        body = message_edits.refusal(
            fault, request.body, self._asked_version, api.response, version, self._topics
        )
        return self._unless_none(body, version)

    def _unless_none(self, body: Message | None, version: int) -> tuple[Message, int]:
        if body is None:
            raise KprotoError(f"version {version} carries no error code")
        return body, version

    def _reads(self, api: Api, version: int) -> bool:
        """Whether carrying it out changes nothing, and only elements of the answer fail."""
        handler = self._dispatcher.handler_of(self._codec, self._key)
        return (
            handler is not None
            and handler.cacheable
            and message_edits.carried_by_elements(self._fault, api.response, version)
        )

    async def _error_over(
        self, request: RequestReceived, api: Api, version: int
    ) -> tuple[Message, int] | bytes | Close:
        said = await self._broker(request)
        if not isinstance(said, bytes) or not said:
            return said
        body = self._decoded(said)
        if version != self._version:
            message_edits.recast(body, version)
        if not message_edits.error_over(
            self._fault, body, request.body, self._asked_version, version, self._topics
        ):
            self._problems.append("the answer has no place for the error")
        return body, version

    async def _parted(
        self, request: RequestReceived, api: Api, version: int
    ) -> tuple[Message, int] | bytes | Close | None:
        """The error for what the rule is about, and the broker's own answer to the rest; None
        where a part cannot be told from the rest."""
        fault, wanted, asked = self._fault, self._rule.wanted, self._asked_version
        places = chosen_places(api.response, version, fault.error_at, wanted)
        if not any(place.path for place in places):
            return None
        by_partition = wanted.partition is not None and any(p.level == "partition" for p in places)
        halves = [
            narrowed(request.body, asked, wanted, self._topics, partitions=by_partition, keep=keep)
            for keep in (False, True)
        ]
        rest, taken = halves
        if rest is None or taken is None:
            return await self._error_over(request, api, version)
        if not named_by(rest, asked, self._topics):
            return None
        handler = self._dispatcher.handler_of(self._codec, self._key)
        if handler is None or asked not in handler.versions:
            body = ErrorSkeleton(rest, asked, self._topics).answer(api.response, version, places)
        else:
            said = await self._broker(msgspec.structs.replace(request, body=rest))
            if not isinstance(said, bytes) or not said:
                return said
            body = self._decoded(said)
            if version != self._version:
                message_edits.recast(body, version)
        return (
            message_edits.merged_error(
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
        version = self._asked_version
        if whole is not None:
            frame = whole
            if not self._answered:
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
            correlation_id=self._correlation_id,
            unknown_tags=header_tags,
        )
        if not self._answered:
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

    @property
    def _correlation_id(self) -> int:
        if isinstance(self._request, RequestReceived):
            return int(self._request.header.correlation_id)
        return self._request.correlation_id

    def _drop(self) -> None:
        if not self._answered:
            self._connection.drop_response(self._request)

    # ---- the journal -------------------------------------------------------------------------

    def _note(self, note: str) -> None:
        self._dispatcher.note_either(
            self._session, self._request, f"fault: {self._rule.name}", note
        )

    def _recorder(self, version: int, *, framed: bool) -> Callable[[bytes], None]:
        def record(frame: bytes) -> None:
            said_id = None
            if framed and len(frame) >= 8:
                said_id = int.from_bytes(frame[4:8], "big", signed=True)
            mark = f"fault: {self._rule.name}"
            self._dispatcher.record_either(
                self._session, self._request, version, frame, mark, said_id
            )

        return record
