"""Fault rules in a proxy: the stage of the mock (``serving.fault_stage``), with the upstream as the
broker behind it.

An API key that is served here (``served_apis``) has the mock cluster behind the rules instead. A
rule's ``apply`` decides whether the request goes upstream. Rules know the topics that the
upstream has named in Metadata. Steps are the proxy's own operations; a rule with a step on a mock's
state is refused when it is added.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from msgspec import structs

from kproto.codec.message import Message
from kproto.connection import (
    MalformedRequest,
    RequestReceived,
    ServerConnection,
    ServerEvent,
    UnsupportedRequest,
)
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from mockbroker.apis import Handler, Session
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.faults.delivery import Plan, Write
from mockbroker.faults.matching import FaultRules
from mockbroker.proxy.passage import Held, Passage
from mockbroker.proxy.recorder import Recorder
from mockbroker.proxy.request_heads import RequestHead
from mockbroker.proxy.served_apis import ServedApis
from mockbroker.serving.delivery import Delivery, ResponseCache
from mockbroker.serving.exchange import CLOSE, Close, Exchange, Reply
from mockbroker.serving.fault_stage import FaultStage
from mockbroker.serving.quirks import read_with_quirks
from mockbroker.simulation.operations import PROXY_OPERATIONS
from mockbroker.simulation.state.cluster_parts import Partition, Topic
from mockbroker.simulation.state.cluster_state import ActionLog
from mockbroker.simulation.state.timers import Alarm, Timers, wall_ms

__all__ = ["ProxyFaults", "SeenTopics", "Taken"]

_MOST_TOPICS: Final = 100_000


class SeenTopics:
    """The topics that the upstream has named in Metadata; the view of rules."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}

    def learn(self, metadata: Any) -> None:
        """Take over the topics of a Metadata response."""
        for topic in metadata.topics:
            if not topic.name or topic.error_code:
                continue
            if len(self.topics) >= _MOST_TOPICS and topic.name not in self.topics:
                continue
            partitions = sorted(topic.partitions, key=lambda each: int(each.partition_index))
            topic_id = topic.topic_id if topic.topic_id.int else uuid.UUID(int=0)
            self.topics[topic.name] = Topic(
                topic.name, topic_id, tuple(_partition(each, n) for n, each in
                                            enumerate(partitions)),
            )  # fmt: skip

    def complete(self, body: Message, _broker_id: int) -> Message:
        """A proxy does not follow fetch sessions: a request is what it says."""
        return body


def _partition(row: Any, index: int) -> Partition:
    return Partition(
        index=index, replicas=tuple(row.replica_nodes), isr=tuple(row.isr_nodes),
        leader=row.leader_id,
    )  # fmt: skip


class Taken(Protocol):
    """A connection whose request is held for the rules."""

    session: Session
    passage: Passage

    def flush(self) -> None: ...
    def go_on(self) -> None: ...
    async def perform_plan(self, plan: Plan) -> None: ...
    def end(self) -> None: ...


class ProxyFaults:
    """The rules of a proxy. ``carry_out`` carries out a step, as text, for a request to the
    broker of that id. ``served`` answers its API keys in the upstream's place."""

    def __init__(
        self,
        codec: Dialect,
        recorder: Recorder,
        carry_out: Callable[[str, int], None],
        served: ServedApis | None = None,
    ) -> None:
        self._served = served
        self.topics = SeenTopics()
        self.errors: list[Exception] = []
        self._codec = codec
        self._recorder = recorder
        self._timers = Timers(wall_ms())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm = Alarm(lambda: self._loop, self.follow_clock)
        self._timers.notify(self._set_alarm)
        self.rules = FaultRules(self._api_names, self._timers, operations=PROXY_OPERATIONS)
        self._delivery = Delivery(recorder.journal, codec, ResponseCache(ActionLog()))
        self._handlers: Mapping[int, Handler] | None = None
        self._stage = FaultStage(
            self.rules, self.topics, codec, self._delivery, carry_out=carry_out,
            broker_answer=self._upstream_answer, commit=self._delivery.commit, handlers=self,
            predicate_failed=self.errors.append,
        )  # fmt: skip
        self._taken: dict[int, tuple[Taken, Held, Message | None]] = {}

    # ---- time --------------------------------------------------------------------------------

    def start(self) -> None:
        """Let rules expire from now on, which needs a running event loop."""
        self._loop = asyncio.get_running_loop()
        self.follow_clock()

    def stop(self) -> None:
        self._loop = None
        self._alarm.cancel()

    def follow_clock(self) -> None:
        """Let the rules expire whose time has come."""
        self._timers.run_until(wall_ms())

    def _set_alarm(self) -> None:
        due = self._timers.next_due_ms
        self._alarm.set(None if due is None else due - wall_ms())

    # ---- for ``FaultStage`` ------------------------------------------------------------------

    def handler_of(self, _codec: Dialect, api_key: int) -> Handler | None:
        """The mock's handler says whether an API only reads."""
        if self._handlers is None:
            self._handlers = dialect_handlers(self._codec)
        return self._handlers.get(api_key)

    def call(self, exchange: Exchange, request: RequestReceived) -> Exchange:
        """What a rule's predicate is given."""
        return structs.replace(exchange, request=request)

    def _api_names(self) -> dict[str, int]:
        return {name: key for key, name in self._codec.api_names.items()}

    def concerned(self, api_key: int) -> bool:
        """Whether a request of this API key is not simply passed on."""
        return self._serves(api_key) or self.rules.concern(api_key)

    def _serves(self, api_key: int) -> bool:
        return self._served is not None and api_key in self._served.versions

    # ---- one request -------------------------------------------------------------------------

    async def take_over(self, connection: Taken, held: Held) -> None:
        """Deal with a request that a rule may take or that is served here, and let the connection
        go on."""
        self.follow_clock()
        session, passage = connection.session, connection.passage
        line = ServerConnection(codec=self._codec)
        line.receive_data(held.frame)
        event: ServerEvent | None = None
        with contextlib.suppress(KprotoError):
            event = line.next_event()
        if isinstance(event, MalformedRequest):
            event = read_with_quirks(self._codec, event)
        if not isinstance(event, RequestReceived | UnsupportedRequest):
            self._recorder.request(session, held.head, held.frame, "malformed")
            await self._pass(connection, held)
            return
        body = event.body if isinstance(event, RequestReceived) else None
        codec = event.dialect if isinstance(event, RequestReceived) else self._codec
        exchange = Exchange(
            line, session, event, codec, held.head.api_key, held.head.version,
            held.head.correlation_id, held.head.client_id, repeatable=False,
        )  # fmt: skip
        self._delivery.receive(exchange)
        if body is not None:
            passage.read_own_affairs(held.head, body)
        pending = self._stage.answer(exchange)
        if pending is None:
            await self._pass(connection, held)
            return
        self._taken[session.connection_id] = (connection, held, body)
        try:
            answer = await pending.wait()
        finally:
            del self._taken[session.connection_id]
        if isinstance(answer, Plan):
            await connection.perform_plan(answer)
            connection.go_on()
        else:
            connection.end()

    async def _pass(self, connection: Taken, held: Held) -> None:
        """No rule takes the request: it goes upstream, or is answered here."""
        head = held.head
        if not self._serves(head.api_key):
            connection.passage.forward(head, held.frame)
            connection.go_on()
            return
        answer = await self._served_answer(connection.session, head, held.frame)
        if answer is None:
            connection.end()
            return
        if answer:
            raw = answer if self._recorder.frames else b""
            self._recorder.response(connection.session, head, head.version, raw)
            await connection.perform_plan(Plan((Write(answer),), answers=True))
        connection.go_on()

    async def _served_answer(
        self, session: Session, head: RequestHead, frame: bytes
    ) -> bytes | None:
        assert self._served is not None
        return await self._served.answer(session, frame, expects_response=head.expects_response)

    async def _upstream_answer(self, exchange: Exchange) -> Reply | Close:
        """Send the request of a rule upstream, or the part of it that the rule leaves."""
        connection, held, body = self._taken[exchange.session.connection_id]
        request, head, frame = exchange.request, held.head, held.frame
        if isinstance(request, RequestReceived) and request.body is not body:
            frame = request.dialect.encode_request(
                request.body,
                api_version=head.version,
                correlation_id=head.correlation_id,
                client_id=head.client_id,
            )
        if self._serves(head.api_key):
            served = await self._served_answer(connection.session, head, frame)
            if served is None:
                return CLOSE
            if served:
                self._recorder.upstream_answer(connection.session, head, head.version, served)
            return Reply(served or None, head.version)
        answered: asyncio.Future[tuple[bytes, int]] = asyncio.get_running_loop().create_future()

        def take(data: bytes, version: int) -> None:
            if not answered.done():
                answered.set_result((data, version))

        connection.passage.forward(head, frame, take)
        connection.flush()
        if not head.expects_response:
            return Reply(None)
        data, version = await answered
        self._recorder.upstream_answer(connection.session, head, version, data)
        return Reply(data, version)
