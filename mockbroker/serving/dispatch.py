"""One request in, the bytes of its answer out. No sockets, and no opinion on any single api.

A request goes through a chain of stages; the first that has an answer decides:

1. SASL closes connections that break its rules (``sasl_gate``), if clients must authenticate,
2. a rule of faults (``fault_stage``), if one may still be hit,
3. the throttle of the client (``throttle_stage``), if any client is throttled,
4. a recording (``replay_stage``), if there is one,
5. scripts (``scripts``), if there are any,
6. what a KRaft controller refuses (``controller_stage``), on its listeners,
7. the handler of the api key (``handlers``, ``mockbroker.apis``),
8. the refusal (``refusals``).

``delivery`` encodes the answer and writes the journal; ``server`` writes the bytes. What the
response cache knows, ``server`` sends before any stage, while ``uses_cache`` allows it.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from kproto.connection import (
    MalformedRequest,
    RequestReceived,
    SaslTokenReceived,
    ServerConnection,
    ServerEvent,
    ServerState,
    UnexpectedRequest,
    UnsupportedRequest,
)
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.apis import Session
from mockbroker.apis.handlers.api_versions import API_VERSIONS, identify
from mockbroker.errors import ControllerDiedError, NotControllerError, UnreadableError
from mockbroker.faults.delivery import Plan
from mockbroker.faults.matching import FaultRules
from mockbroker.profiles import Profile
from mockbroker.serving.broker_software import BrokerSoftware
from mockbroker.serving.controller_stage import ControllerStage
from mockbroker.serving.delivery import Delivery, ResponseCache
from mockbroker.serving.exchange import (
    CLOSE,
    Answer,
    Close,
    Exchange,
    Frames,
    Outcome,
    Pending,
    Reply,
    Stage,
)
from mockbroker.serving.fault_stage import FaultStage
from mockbroker.serving.fetch_requests import MockView
from mockbroker.serving.handlers import HandlerStage
from mockbroker.serving.quirks import read_with_quirks
from mockbroker.serving.refusals import RefusalStage, error_reply
from mockbroker.serving.replay_stage import Replay, ReplayStage
from mockbroker.serving.sasl_gate import SaslGate
from mockbroker.serving.scripts import Scripts, ScriptStage
from mockbroker.serving.served_versions import served_versions
from mockbroker.serving.suspended_calls import Calls
from mockbroker.serving.throttle_stage import ThrottleStage
from mockbroker.serving.unserved_log import UnservedLog
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations import OPERATIONS, OperationCall, parse_operation
from mockbroker.simulation.security.policy import OPEN, Security

__all__ = ["Dispatcher"]

_log = logging.getLogger("mockbroker")

FramesT = TypeVar("FramesT", bound=Frames)


class Dispatcher:
    """Shared by all connections of a mock cluster.

    ``served`` is what every listener advertises, and the only keys and versions it accepts.
    ``reply35`` answers a version outside that range with error 35, in the nearest version served,
    where brokers close the connection. ``follow_clock`` is called before anything may change.
    ``security`` says who may connect, and do what. Two dispatchers can share
    ``connection_ids`` and ``scripts``. ``calls`` runs the handlers; ``carry_out`` carries
    out a step of a fault rule, for a request that the broker of that id received. ``serve`` returns
    the versions that brokers of a release serve. ``beside`` is the dispatcher of the brokers, whose
    rules, scripts and connection ids this one of controllers shares.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        profile: Profile,
        codec: Dialect,
        served: Mapping[int, Versions],
        journal: Journal,
        reply35: bool = False,
        follow_clock: Callable[[], None] = lambda: None,
        security: Security = OPEN,
        connection_ids: Iterator[int] | None = None,
        scripts: Scripts | None = None,
        calls: Calls | None = None,
        carry_out: Callable[[OperationCall, int], None] = lambda _step, _broker: None,
        serve: Callable[[Profile], Mapping[int, Versions]] | None = None,
        beside: Dispatcher | None = None,
    ) -> None:
        self.cluster = cluster
        self.profile = profile
        self.codec = codec
        self.served = served
        self.software = BrokerSoftware(
            cluster, profile, served, serve or partial(served_versions, codec=codec)
        )
        self.security = security
        self._follow_clock = follow_clock
        if beside is not None:
            connection_ids, scripts = beside.connection_ids, beside.scripts
        self.connection_ids: Iterator[int] = (
            itertools.count(1) if connection_ids is None else connection_ids
        )
        self.scripts: Scripts = Scripts() if scripts is None else scripts
        self.response_cache = ResponseCache(cluster.log)
        self.delivery = Delivery(journal, codec, self.response_cache)
        if beside is None:
            self.faults = FaultRules(self._api_names, cluster.timers, self._link_stages, OPERATIONS)
        else:
            self.faults = beside.faults
            self.faults.on_live.append(self._link_stages)
        self._controller_stage = None if beside is None else ControllerStage(cluster)
        unserved = UnservedLog()
        self.handlers = HandlerStage(
            cluster, self.software, calls or Calls(), security.authorizer,
            scripted=self.scripts.by_key,
        )  # fmt: skip
        self._sasl = SaslGate(cluster, codec, self.delivery, follow_clock, self.software)
        self._fault_stage = FaultStage(
            self.faults, MockView(cluster), codec, self.delivery,
            carry_out=_parsed(carry_out), broker_answer=self._broker_answer,
            commit=self._commit, handlers=self.handlers, predicate_failed=self.scripts.failed,
        )  # fmt: skip
        self._replay_stage: ReplayStage | None = None
        self._refusals = RefusalStage(
            codec, self.software, reply35=reply35, unserved=unserved,
        )  # fmt: skip
        self._throttle_stage = ThrottleStage(
            cluster.throttles, cluster.meters, self._broker_answer, self._send
        )
        cluster.throttles.on_live.append(self._link_stages)
        self._script_stage = ScriptStage(self.scripts, self.handlers)
        self.scripts.on_change.append(self._scripts_changed)
        self._link_stages()

    def _link_stages(self) -> None:
        """Chain the stages that can answer now, in order."""
        stages: list[Stage] = []
        if self._replay_stage is not None:
            stages.append(self._replay_stage)
        if self.scripts.by_key:
            stages.append(self._script_stage)
        if self._controller_stage is not None:
            stages.append(self._controller_stage)
        stages += [self.handlers, self._refusals]
        self._after_faults = tuple(stages)
        if self.cluster.throttles.live:
            stages.insert(0, self._throttle_stage)
        if self.faults.live:
            stages.insert(0, self._fault_stage)
        if self.security.sasl is not None:
            stages.insert(0, self._sasl)
        self._chain = tuple(stages)
        self.uses_cache = not (self.faults.live or self.cluster.throttles.live)

    def _scripts_changed(self) -> None:
        self._link_stages()
        self.response_cache.forget()

    def state_replaced(self) -> None:
        """The cluster, the rules of faults and the scripts are no longer what they were."""
        self._scripts_changed()

    # ---- what may answer ---------------------------------------------------------------------

    def replay(self, recording: Replay) -> None:
        """Answer out of a recording from now on; cached responses no longer hold."""
        self._replay_stage = ReplayStage(recording, self.delivery, self.served_by)
        self._link_stages()
        self.response_cache.forget()

    def served_by(self, broker_id: int) -> Mapping[int, Versions]:
        """The versions that this broker serves."""
        return self.software.served_by(broker_id)

    def accepted_by(self, broker_id: int) -> Mapping[int, Versions] | None:
        """The versions that a connection decodes. None stands for all: a recording may answer what
        is not served."""
        return self.served_by(broker_id) if self._replay_stage is None else None

    def next_connection_id(self) -> int:
        """Connections are counted from 1, over all brokers."""
        return next(self.connection_ids)

    def note_refused(self, broker_id: int, peer: str, event: str, note: str) -> None:
        """Record that a connection to a broker was closed before its first request."""
        session = Session(self.next_connection_id(), broker_id, peer)
        self.delivery.note_event(session, event, note)

    def _api_names(self) -> dict[str, int]:
        return {name: key for key, name in self.codec.api_names.items()}

    # ---- one event ---------------------------------------------------------------------------

    def answer(self, connection: ServerConnection, session: Session, event: ServerEvent) -> Outcome:
        """What to write for ``event``; never raises."""
        if isinstance(event, RequestReceived):
            return self._received(connection, session, event)
        if isinstance(event, UnsupportedRequest):
            return self._unsupported(connection, session, event)
        if isinstance(event, SaslTokenReceived):
            return self._sasl.token(connection, session, event)
        if isinstance(event, UnexpectedRequest):
            return self._sasl.unexpected(connection, session, event)
        if isinstance(event, MalformedRequest):
            request = read_with_quirks(self.codec, event)
            if request is not None:
                return self._received(connection, session, request, "trailing-bytes")
            self.delivery.note_frame(session, event, "malformed", str(event.error))
        return CLOSE

    def _received(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        mark: str = "",
    ) -> Outcome:
        header = request.header
        api_key, version = header.request_api_key, header.request_api_version
        if api_key == API_VERSIONS:
            identify(session, version, request.body)
        exchange = Exchange(
            connection, session, request, request.dialect, api_key, version, header.correlation_id,
            header.client_id, mark, repeatable=not mark,
        )  # fmt: skip
        self.delivery.receive(exchange)
        return self._respond(exchange)

    def _unsupported(
        self, connection: ServerConnection, session: Session, request: UnsupportedRequest
    ) -> Outcome:
        exchange = Exchange(
            connection, session, request, self.codec, request.api_key, request.api_version,
            request.correlation_id, request.client_id, "unsupported",
        )  # fmt: skip
        served = self.served_by(session.broker_id).get(request.api_key)
        problem = f"versions {served} are served" if served else "the api key is not served"
        self.delivery.receive(exchange, problem)
        return self._respond(exchange)

    # ---- the stages, and the delivery --------------------------------------------------------

    def _respond(self, exchange: Exchange) -> Outcome:
        self._follow_clock()
        answer = self._through(self._chain, exchange)
        if isinstance(answer, Reply):
            return self._send(exchange, answer)
        return answer if isinstance(answer, Close) else self._send_later(exchange, answer)

    def _through(self, stages: Iterable[Stage], exchange: Exchange) -> Answer:
        try:
            for stage in stages:
                answer = stage.answer(exchange)
                if answer is not None:
                    return answer
        except Exception as error:  # a test's script may raise anything; the broker lives on
            return self._failed(exchange, error)
        raise AssertionError("the last stage answers every request")

    async def _send_later(self, exchange: Exchange, pending: Pending) -> Frames | Close | Plan:
        answer = await self._settled(exchange, pending)
        return self._send(exchange, answer) if isinstance(answer, Reply) else answer

    async def _settled(self, exchange: Exchange, pending: Pending) -> Reply | Close | Plan:
        try:
            return await pending.wait()
        except Exception as error:  # as in ``_through``
            return self._failed(exchange, error)

    def _send(self, exchange: Exchange, reply: Reply) -> Frames | Close:
        try:
            data = self.delivery.send(exchange, reply)
        except Exception as error:
            return self._send_error(exchange, reply, error, self.delivery.send)
        if reply.ends_sasl or exchange.session.sasl is not None:
            self._finish_sasl(exchange, reply)
        return data

    def _commit(self, exchange: Exchange, reply: Reply) -> bytes | Close:
        """Deliver a reply that a fault rule changes: it is not what goes into the journal."""
        try:
            data = self.delivery.commit(exchange, reply)
        except Exception as error:
            return self._send_error(exchange, reply, error, self.delivery.commit)
        self._finish_sasl(exchange, reply)
        return data

    def _send_error(
        self,
        exchange: Exchange,
        reply: Reply,
        error: Exception,
        deliver: Callable[[Exchange, Reply], FramesT],
    ) -> FramesT | Close:
        """Refuse a request whose version cannot carry the reply."""
        if reply.scripted:
            self.scripts.failed(error)
        refused = self._failed(exchange, error)
        if isinstance(refused, Close):
            return refused
        try:
            data = deliver(exchange, refused)
        except KprotoError as problem:
            self.delivery.note(exchange, "failed", str(problem))
            return CLOSE
        self._finish_sasl(exchange, reply)
        return data

    def _finish_sasl(self, exchange: Exchange, reply: Reply) -> None:
        connection, session = exchange.connection, exchange.session
        if reply.ends_sasl and connection.state is ServerState.AUTHENTICATING:
            connection.complete_sasl()
        elif session.sasl is not None:
            self._sasl.finish(connection, session)

    async def _broker_answer(self, exchange: Exchange) -> Reply | Close:
        """What the stages behind the rules of faults answer."""
        answer = self._through(self._after_faults, exchange)
        if isinstance(answer, Pending):
            later = await self._settled(exchange, answer)
            assert not isinstance(later, Plan), "only rules of faults have plans"
            return later
        return answer

    def _failed(self, exchange: Exchange, error: Exception) -> Reply | Close:
        """A handler or a script raised, or returned what its version cannot carry."""
        if isinstance(error, ControllerDiedError):
            self.delivery.note(exchange, "controller-died", str(error))
            return CLOSE
        if isinstance(error, UnreadableError):
            self.delivery.note(exchange, "malformed", str(error))
            return CLOSE
        if isinstance(error, NotControllerError):
            return error_reply(exchange, ErrorCode.NOT_CONTROLLER, "")
        if not isinstance(error, KprotoError):
            name = exchange.dialect.apis[exchange.api_key].name
            _log.error("%s v%d failed", name, exchange.version, exc_info=error)
        self.delivery.note(exchange, "failed", f"{type(error).__name__}: {error}")
        return error_reply(exchange, ErrorCode.UNKNOWN_SERVER_ERROR, "failed")


def _parsed(carry_out: Callable[[OperationCall, int], None]) -> Callable[[str, int], None]:
    return lambda text, broker_id: carry_out(
        parse_operation(text, relative_brokers=True), broker_id
    )
