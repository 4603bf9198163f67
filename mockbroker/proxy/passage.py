"""One client's connection and its own connection to an upstream broker. No I/O.

Feed it what either side sends; it fills ``to_upstream`` and ``to_client`` with what to write. Most
frames pass as bytes, as they arrive. A frame is read whole only if its content is needed: an answer
with addresses, ApiVersions, SaslHandshake, for the journal, or for a fault rule.

Answers come in the order of requests, as brokers send them, so ``_in_flight`` is a queue. A request
that cannot pass as it is (``Held``) stops the client's stream until every earlier request is
answered; the caller then decides, and calls ``go_on``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from kproto.codec.message import Message
from kproto.codec.registry import CompiledPlan, compiled_plan
from kproto.connection import RequestReceived
from kproto.connection.negotiation import API_VERSIONS_KEY, read_reply
from kproto.dialects import Dialect
from kproto.errors import KprotoError, RemoteProtocolError
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH
from mockbroker.apis import Session
from mockbroker.apis.handlers.api_versions import identify
from mockbroker.proxy.addresses import (
    EndpointFor,
    may_hold_addresses,
    only_tagged_addresses,
    rewrite,
)
from mockbroker.proxy.frame_runs import frame_runs
from mockbroker.proxy.frame_stream import Collect, Copy, FrameStream, Treatment
from mockbroker.proxy.recorder import Recorder
from mockbroker.proxy.request_heads import HeadReader, RequestHead
from mockbroker.proxy.sasl_gate import SaslGate
from mockbroker.proxy.sasl_tokens import SASL_HANDSHAKE, SaslPassage
from mockbroker.proxy.versions import Clamp
from mockbroker.serving.limits import MAX_BEFORE_SASL
from mockbroker.serving.loop_turns import MOST_REQUESTS, Turn
from mockbroker.serving.redaction import REDACTED, redacted_request, redacted_token

__all__ = ["Held", "Passage", "Passing"]

_MOST_IN_FLIGHT: Final = 10_000
"""Requests without an answer on one connection, beyond which the client is not read."""
_TOKEN: Final = RequestHead(-1, -1, -1, None, expects_response=True)
"""In the place of a raw token's head, which it has not got."""
_READ_HERE: Final = frozenset({API_VERSIONS_KEY, SASL_HANDSHAKE})


class Passing(msgspec.Struct):
    """What all passages of a proxy share. ``concerned`` says whether a rule of faults may take a
    request of that API key; ``endpoint_for`` returns the proxy's address of an upstream's."""

    codec: Dialect
    clamp: Clamp
    recorder: Recorder
    endpoint_for: EndpointFor
    concerned: Callable[[int], bool] = lambda _key: False
    learn: Callable[[Any, int], None] = lambda _body, _key: None
    _plans: dict[tuple[int, int], CompiledPlan | None] = msgspec.field(default_factory=dict)

    def untagged_plan(self, api_key: int, version: int) -> CompiledPlan | None:
        """Return the plan that tells responses without addresses from others, for an API key whose
        responses give them in tagged fields alone; None if there is none."""
        key = api_key, version
        if key not in self._plans:
            plan = None
            if only_tagged_addresses(*key):
                plan = compiled_plan(self.codec.api(api_key).response, version)
            self._plans[key] = plan
        return self._plans[key]


Reason: TypeAlias = Literal["refused", "sasl", "concerned"]


class Held(NamedTuple):
    """A request that does not pass as it is.

    ``refused``: its version is outside the clamp. ``sasl``: the client authenticates here, and this
    belongs to it, or comes before it. ``concerned``: a rule of faults may take it.
    """

    reason: Reason
    head: RequestHead
    frame: bytes


class _InFlight(msgspec.Struct):
    """Requests of one head that the upstream has to answer, from ``ids[place]`` on; a raw token if
    ``head`` is None. Answers go to ``take``, or to the client."""

    head: RequestHead | None
    ids: list[int]
    take: Callable[[bytes, int], None] | None = None
    place: int = 0


class Passage:
    """``session`` is what the journal and rules know of the client. ``client_turn`` and
    ``upstream_turn`` bound what is made at once of the bytes of either side."""

    def __init__(
        self,
        passing: Passing,
        session: Session,
        max_size: int = DEFAULT_MAX_SIZE,
        client_turn: Turn | None = None,
        upstream_turn: Turn | None = None,
    ) -> None:
        self.gate = None if session.sasl is None else SaslGate(
            passing.codec, passing.recorder, session
        )  # fmt: skip
        """Where the client authenticates, if SASL ends here."""
        self._max_size = max_size
        if self.gate is not None:
            max_size = min(max_size, MAX_BEFORE_SASL)
        self.to_upstream: list[bytes] = []
        self.to_client: list[bytes] = []
        self.held: Held | None = None
        self.whole_answers = False
        """Whether ``to_client`` has each answer as one element, so that others can overtake it."""
        self.session = session
        self._passing = passing
        self._codec = passing.codec
        self._in_flight: deque[_InFlight] = deque()
        self.unanswered = 0
        """Requests that the upstream has not begun to answer."""
        self._sasl = SaslPassage(passing.codec)
        self._heads = HeadReader(passing.codec)
        self._runs = frame_runs()
        self._client_turn, self._upstream_turn = client_turn, upstream_turn
        self._requests = FrameStream(self._request, self.to_upstream, max_size, client_turn)
        self._responses = FrameStream(
            self._response, self.to_client, DEFAULT_MAX_SIZE, upstream_turn
        )

    # ---- what may be asked at any time -------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether every request that passed has its whole answer."""
        return not self._in_flight and not self._responses.within_frame

    @property
    def full(self) -> bool:
        """Whether nothing more is read from the client for now."""
        return self.held is not None or self.unanswered >= _MOST_IN_FLIGHT

    @property
    def buffered(self) -> int:
        """The bytes of incomplete frames held here."""
        return self._requests.buffered + self._responses.buffered

    # ---- bytes -------------------------------------------------------------------------------

    def receive_from_client(self, data: bytes) -> None:
        """Raises RemoteProtocolError for bytes that are no Kafka request."""
        self._requests.receive(data)

    def receive_from_upstream(self, data: bytes) -> None:
        """Raises RemoteProtocolError for bytes that answer no request."""
        self._responses.receive(data)

    def go_on(self) -> None:
        """The held request has been dealt with: read the ones behind it."""
        self.held = None
        if self.session.authenticated:
            self._requests.max_size = self._max_size
        self._requests.paused = False
        self._requests.receive(b"")

    def forward(
        self, head: RequestHead, frame: bytes, take: Callable[[bytes, int], None] | None = None
    ) -> None:
        """Send a request, also one that was held. ``take`` is given the answer that the client
        would have, and its version, in the client's place."""
        self.to_upstream.append(frame)
        if head.expects_response:
            self._expect(head, [head.correlation_id], take)

    def _expect(
        self,
        head: RequestHead | None,
        ids: list[int],
        take: Callable[[bytes, int], None] | None = None,
    ) -> None:
        self._in_flight.append(_InFlight(head, ids, take))
        self.unanswered += len(ids)

    # ---- requests ----------------------------------------------------------------------------

    def _request(self, data: bytes, at: int) -> Treatment | None:
        gate = self.gate
        if gate is not None and gate.expects_token:
            return self._holding("sasl", _TOKEN)
        if gate is None and self._sasl.is_token(data, at):
            self._expect(None, [_TOKEN.correlation_id])
            return Copy(self._token_from_client)
        head = self._heads.read(data, at)
        if head is None:
            return None
        passing, key = self._passing, head.api_key
        if gate is not None and gate.concerns(head):
            return self._holding("sasl", head)
        if not passing.clamp.accepts(key, head.version):
            return self._holding("refused", head)
        if passing.concerned(key):
            return self._holding("concerned", head)
        recorder = passing.recorder
        if key in _READ_HERE or recorder.frames:
            if head.expects_response:
                self._expect(head, [head.correlation_id])
            if key in _READ_HERE or key in REDACTED:
                return Copy(lambda frame: self._read_request(head, frame))
            return Copy(lambda frame: recorder.request(self.session, head, frame))
        turn = self._client_turn
        most = MOST_REQUESTS if turn is None else turn.requests_left
        ids, end = self._heads.run(data, at, self._requests.max_size, most)
        if turn is not None:
            turn.count(len(ids) - 1)
        if head.expects_response:
            self._expect(head, ids)
        recorder.run(self.session, "request", head, ids)
        return end

    def _holding(self, reason: Reason, head: RequestHead) -> Collect:
        def hold(parts: list[bytes]) -> None:
            self.held = Held(reason, head, b"".join(parts))
            self._requests.paused = True

        return Collect(hold)

    def _token_from_client(self, frame: bytes) -> None:
        kept = redacted_token(self.session, frame[SIZE_LENGTH:])
        recorder = self._passing.recorder
        recorder.token(self.session, "request", kept if recorder.frames else b"")

    def _read_request(self, head: RequestHead, frame: bytes) -> None:
        """Look into a request of the connection's own affairs, which passes on as it is."""
        recorder = self._passing.recorder
        try:
            header, body = self._codec.decode_request(frame)
        except KprotoError as error:  # the upstream judges it
            raw = b"" if head.api_key in REDACTED else frame
            recorder.request(self.session, head, raw, "malformed", str(error))
            return
        self.read_own_affairs(head, body)
        raw = b""
        if recorder.frames:
            api = self._codec.api(head.api_key)
            request = RequestReceived(0, self._codec, api, header, body, frame)
            raw = redacted_request(self.session, request)
        recorder.request(self.session, head, raw)

    def read_own_affairs(self, head: RequestHead, body: Any) -> None:
        """Note what a request says about the connection itself."""
        if head.api_key == API_VERSIONS_KEY:
            identify(self.session, head.version, body)
        elif head.api_key == SASL_HANDSHAKE:
            self.session.passed_mechanism = body.mechanism
            self._sasl.handshake(body)

    # ---- answers -----------------------------------------------------------------------------

    def _response(self, data: bytes, at: int) -> Treatment | None:
        if not self._in_flight:
            raise RemoteProtocolError("the upstream sent a response that no request is waiting for")
        first = self._in_flight[0]
        head, take = first.head, first.take
        if head is None:
            self._answered(first, 1)
            return Copy(self._token_from_upstream)
        if len(data) - at < 2 * SIZE_LENGTH:
            if int.from_bytes(data[at : at + SIZE_LENGTH], "big") < SIZE_LENGTH:
                raise RemoteProtocolError("the upstream sent a response without a correlation id")
            return None
        key, version, recorder = head.api_key, head.version, self._passing.recorder
        ids, place = first.ids, first.place
        correlation_id = int.from_bytes(data[at + 4 : at + 8], "big", signed=True)
        if correlation_id != ids[place]:
            raise RemoteProtocolError(
                f"the upstream sent a response with correlation id {correlation_id} where "
                f"{ids[place]} was due"
            )
        read = take or self.whole_answers or key in _READ_HERE
        addresses = may_hold_addresses(key, version)
        if not read and not recorder.frames:
            plan = self._passing.untagged_plan(key, version) if addresses else None
            if plan is not None or not addresses:
                turn, due, begin = self._upstream_turn, ids, place
                if turn is not None and len(ids) - place > turn.requests_left:
                    due, begin = ids[place : place + turn.requests_left], 0
                count, end = self._runs.answers_in_order(
                    data, at, due, begin, DEFAULT_MAX_SIZE, plan
                )
                if count:
                    if turn is not None:
                        turn.count(count - 1)
                    self._answered(first, count)
                    recorder.run(self.session, "response", head, ids[place : place + count])
                    return end
        self._answered(first, 1)
        if place:
            head = head._replace(correlation_id=correlation_id)
        if read or addresses:
            return Collect(lambda parts: self._read_response(head, take, parts))
        return Copy(lambda frame: recorder.response(self.session, head, version, frame))

    def _answered(self, first: _InFlight, count: int) -> None:
        """The upstream has begun to answer this many of the first requests in flight."""
        first.place += count
        self.unanswered -= count
        if first.place == len(first.ids):
            self._in_flight.popleft()

    def _token_from_upstream(self, frame: bytes) -> None:
        recorder = self._passing.recorder
        recorder.token(self.session, "response", frame if recorder.frames else b"")

    def _read_response(
        self, head: RequestHead, take: Callable[[bytes, int], None] | None, parts: list[bytes]
    ) -> None:
        recorder, version = self._passing.recorder, head.version
        plain = not self._gives_addresses(head, parts)
        if plain and take is None and not self.whole_answers and not recorder.frames:
            recorder.run(self.session, "response", head, [head.correlation_id])
            self.to_client += parts
            return
        frame = b"".join(parts)
        if not plain:
            frame, version = self._changed(head, frame)
        if take is not None:
            take(frame, version)
            return
        recorder.response(self.session, head, version, frame if recorder.frames else b"")
        self.to_client.append(frame)

    def _gives_addresses(self, head: RequestHead, parts: list[bytes]) -> bool:
        """Whether an answer has to be decoded; also true if only the decoded answer shows it."""
        key, version = head.api_key, head.version
        if key in _READ_HERE:
            return True
        if not may_hold_addresses(key, version):
            return False
        plan = self._passing.untagged_plan(key, version)
        return plan is None or not self._runs.is_untagged(parts, plan)

    def _changed(self, head: RequestHead, frame: bytes) -> tuple[bytes, int]:
        """Return the answer as the client gets it, with its version."""
        key, version = head.api_key, head.version
        try:
            if key == API_VERSIONS_KEY:
                header, body, version = read_reply(self._codec, frame, version)
            else:
                header, body = self._codec.decode_response(frame, api_key=key, api_version=version)
            if not self._change(head, version, body):
                return frame, version
            return self._codec.encode_response(
                body,
                api_version=version,
                correlation_id=head.correlation_id,
                unknown_tags=header.unknown_tags,
            ), version
        except KprotoError as error:
            # Passed on unread it might send the client past the proxy.
            raise RemoteProtocolError(
                f"the upstream's answer to {self._codec.api(key).name} v{version} cannot be read: "
                f"{error}"
            ) from None

    def _change(self, head: RequestHead, version: int, body: Message) -> bool:
        """Change a response. Returns whether it differs now."""
        key, any_body = head.api_key, body
        if key == API_VERSIONS_KEY:
            self._passing.learn(body, key)
            self._passing.clamp.cut(any_body)
            return True
        if key == SASL_HANDSHAKE:
            if getattr(body, "error_code", -1) == 0:
                self._sasl.accepted(version)
            return False
        self._passing.learn(body, key)
        return rewrite(key, version, body, self._passing.endpoint_for)
