"""SASL that ends at the proxy: clients authenticate here, and the upstream sees the proxy's own
credentials. No I/O.

The exchange is the mock's (``mockbroker.apis.handlers.sasl``). A session has no end, as with
Kafka's default of ``connections.max.reauth.ms``.
"""

from __future__ import annotations

from typing import Final, cast

from kproto.connection import RequestReceived, SaslTokenReceived, ServerConnection, ServerState
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.schema.versions import Versions
from mockbroker.apis import Call, Session
from mockbroker.apis.handlers.api_versions import API_VERSIONS
from mockbroker.apis.handlers.sasl import sasl_authenticate, sasl_handshake
from mockbroker.errors import ClusterError
from mockbroker.profiles import DEFAULT_PROFILE
from mockbroker.profiles import profile as profile_of
from mockbroker.proxy.recorder import Recorder
from mockbroker.proxy.request_heads import RequestHead
from mockbroker.proxy.sasl_tokens import SASL_AUTHENTICATE, SASL_HANDSHAKE
from mockbroker.serving.redaction import redacted_request, redacted_token
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.sasl import SaslRefusedError
from mockbroker.simulation.state.timers import Timers

__all__ = ["SaslGate"]

_HANDLERS: Final = {SASL_HANDSHAKE: sasl_handshake, SASL_AUTHENTICATE: sasl_authenticate}


class _NoConfigs:
    def broker(self, _broker_id: int, name: str) -> object:
        raise ClusterError(f"a proxy has no config {name}")


class _NoCluster:
    """The parts of a cluster that the handlers of SASL use."""

    timers: Final = Timers()
    configs: Final = _NoConfigs()


_NO_CLUSTER: Final = cast(Cluster, _NoCluster())


class SaslGate:
    """The authentication of one connection, whose ``session`` has the exchange."""

    def __init__(self, codec: Dialect, recorder: Recorder, session: Session) -> None:
        self._recorder = recorder
        self._session = session
        self._line = ServerConnection(codec=codec, sasl_required=True)

    @property
    def expects_token(self) -> bool:
        """Whether the client's next frame is a raw token."""
        return self._line.state is ServerState.RAW_TOKENS

    def concerns(self, head: RequestHead) -> bool:
        """Whether a request belongs to the authentication, or may not come before it."""
        if head.api_key in _HANDLERS:
            return True
        return not self._session.authenticated and head.api_key != API_VERSIONS

    def answer(self, head: RequestHead, frame: bytes) -> bytes | None:
        """Return the answer to a frame of SASL; None if the connection ends instead. Once
        ``session.ended`` it ends behind the answer."""
        line, session = self._line, self._session
        try:
            line.receive_data(frame)
            event = line.next_event()
            if isinstance(event, SaslTokenReceived):
                return self._token(event.token)
            if isinstance(event, RequestReceived):
                return self._request(head, event)
        except (KprotoError, SaslRefusedError) as error:
            self._recorder.event(session, "authentication-failed", str(error))
        return None

    def _token(self, token: bytes) -> bytes:
        self._recorder.token(self._session, "request", redacted_token(self._session, token))
        answer = self._line.send_sasl_token(
            self._session.authenticate(token, _NO_CLUSTER.timers.now_ms)
        )
        self._recorder.token(self._session, "response", answer)
        self._finish()
        return answer

    def _request(self, head: RequestHead, request: RequestReceived) -> bytes:
        raw = redacted_request(self._session, request) if self._recorder.frames else b""
        self._recorder.request(self._session, head, raw)
        call = Call(
            request.api, head.version, request.body, head.client_id, self._session, _NO_CLUSTER,
            profile_of(DEFAULT_PROFILE), _nothing,
        )  # fmt: skip
        body = _HANDLERS[head.api_key](call)
        answer = self._line.send_response(request, body)
        kept = answer if self._recorder.frames else b""
        self._recorder.response(self._session, head, head.version, kept)
        self._finish()
        return answer

    def _finish(self) -> None:
        if self._session.authenticated and self._line.state is not ServerState.OPEN:
            self._line.complete_sasl()
            self._recorder.event(self._session, "authenticated", self._session.principal)


def _nothing(_broker_id: int) -> dict[int, Versions]:
    return {}
