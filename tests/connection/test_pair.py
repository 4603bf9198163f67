"""A client and a server connection wired together, driven at random.

Invariant: neither ever blames the other, whatever is asked of them in whatever state and however
the bytes between them are cut; what a state does not allow is refused locally and changes nothing;
in the end every request has its own response.
"""

from typing import Any

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kproto.connection import (
    ClientConnection,
    ClientState,
    MalformedRequest,
    MalformedResponse,
    Negotiated,
    NegotiationRetry,
    RequestReceived,
    ResponseReceived,
    SaslTokenReceived,
    ServerConnection,
    ServerState,
    UnsupportedRequest,
    refusal,
)
from kproto.errors import LocalProtocolError
from kproto.messages import (
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.schema.versions import Versions

SERVED = {
    0: Versions(3, 9),
    12: Versions(0, 4),
    17: Versions(0, 1),
    18: Versions(0, 3),
    36: Versions(0, 2),
}
LAST = b"last"


class Pair(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.client = ClientConnection(first_correlation_id=2**31 - 3)
        self.server = ServerConnection(served=SERVED)
        self.to_server = b""
        self.to_client = b""
        self.held: list[Any] = []
        self.sent = 0
        self.answered: list[int] = []
        self.sasl_ending = False
        self.sasl_done = False

    # ---- the client is asked for anything at any time ------------------------------------------

    def attempt(self, action: Any, *arguments: Any, **options: Any) -> bool:
        before = (self.client.state, self.client.pending)
        try:
            self.to_server += action(*arguments, **options) or b""
        except LocalProtocolError as error:
            note(str(error))
            assert (self.client.state, self.client.pending) == before
            return False
        return True

    @rule(version=st.integers(0, 4))
    def send_heartbeat(self, version: int) -> None:
        body = HeartbeatRequest(group_id="g", generation_id=self.sent, member_id="m")
        if self.attempt(self.client.send_request, body, version, context=self.sent):
            self.sent += 1

    @rule()
    def send_produce_without_acks(self) -> None:
        body = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
        self.attempt(self.client.send_request, body, 9)

    @rule()
    def negotiate(self) -> None:
        self.attempt(self.client.begin_negotiation)

    @rule(version=st.integers(0, 1), mechanism=st.sampled_from(["GOOD", "BAD"]))
    def handshake(self, version: int, mechanism: str) -> None:
        self.attempt(self.client.send_request, SaslHandshakeRequest(mechanism=mechanism), version)

    @rule(token=st.sampled_from([b"", b"one", LAST]))
    def raw_token(self, token: bytes) -> None:
        # A client whose mechanism has ended sends no more tokens; only it can know that.
        if not self.sasl_ending and self.attempt(self.client.send_sasl_token, token):
            self.sasl_ending = token == LAST

    @rule(token=st.sampled_from([b"", b"one", LAST]), version=st.integers(0, 2))
    def framed_token(self, token: bytes, version: int) -> None:
        body = SaslAuthenticateRequest(auth_bytes=token)
        if not self.sasl_ending and self.attempt(self.client.send_request, body, version):
            self.sasl_ending = token == LAST

    @rule()
    def complete(self) -> None:
        if self.sasl_done and self.attempt(self.client.complete_sasl):
            self.sasl_ending = self.sasl_done = False

    @rule(version=st.integers(0, 1), token=st.sampled_from([b"one", LAST]))
    def go_on_with_sasl(self, version: int, token: bytes) -> None:
        """The step that is due, so that walks lead into the exchange and through it."""
        match self.client.state:
            case ClientState.OPEN:
                self.handshake(version, "GOOD")
            case ClientState.RAW_TOKENS:
                self.raw_token(token)
            case ClientState.AUTHENTICATING:
                self.framed_token(token, version)
        self.deliver_everything()
        self.complete()

    # ---- the server answers --------------------------------------------------------------------

    @rule(data=st.data())
    def answer_one(self, data: st.DataObject) -> None:
        if self.held:
            self.answer(self.held.pop(data.draw(st.integers(0, len(self.held) - 1))))

    def answer(self, event: Any) -> None:
        body = HeartbeatResponse(error_code=event.body.generation_id)
        self.to_client += self.server.send_response(event, body)

    def serve(self, event: Any) -> None:
        server = self.server
        match event:
            case SaslTokenReceived(token=token):
                self.to_client += server.send_sasl_token(token.upper())
                self.after_token(token)
            case UnsupportedRequest(api_key=18):
                body = refusal(server.dialect, SERVED[18])
                self.to_client += server.send_response(event, body, api_version=0)
            case RequestReceived(api=api, body=body) if api.api_key == 17:
                code = 0 if body.mechanism == "GOOD" else 33
                answer = SaslHandshakeResponse(error_code=code, mechanisms=["GOOD"])
                self.to_client += server.send_response(event, answer)
            case RequestReceived(api=api, body=body) if api.api_key == 36:
                framed = SaslAuthenticateResponse(auth_bytes=body.auth_bytes)
                self.to_client += server.send_response(event, framed)
                self.after_token(body.auth_bytes)
            case RequestReceived(api=api) if api.api_key == 18:
                keys = [
                    ApiVersion(api_key=key, min_version=range_.lowest, max_version=range_.highest)
                    for key, range_ in SERVED.items()
                ]
                self.to_client += server.send_response(event, ApiVersionsResponse(api_keys=keys))
            case RequestReceived(expects_response=False):
                pass
            case RequestReceived(api=api) if api.api_key == 12:
                self.held.append(event)
            case MalformedRequest() | UnsupportedRequest():
                raise AssertionError(event)

    def after_token(self, token: bytes) -> None:
        if token == LAST:
            self.server.complete_sasl()

    # ---- bytes move ----------------------------------------------------------------------------

    @rule()
    def deliver_everything(self) -> None:
        while self.to_server or self.to_client or self.held:
            self.deliver_to_server(1 << 20)
            while self.held:
                self.answer(self.held.pop())
            self.deliver_to_client(1 << 20)

    @rule(size=st.integers(1, 60))
    def deliver_to_server(self, size: int) -> None:
        self.server.receive_data(self.to_server[:size])
        self.to_server = self.to_server[size:]
        while (event := self.server.next_event()) is not None:
            self.serve(event)

    @rule(size=st.integers(1, 60))
    def deliver_to_client(self, size: int) -> None:
        self.client.receive_data(self.to_client[:size])
        self.to_client = self.to_client[size:]
        while (event := self.client.next_event()) is not None:
            match event:
                case NegotiationRetry(data=data):
                    self.to_server += data
                case Negotiated(versions=versions):
                    assert versions == SERVED
                case ResponseReceived(request=request, body=HeartbeatResponse(error_code=code)):
                    assert request.context == code
                    self.answered.append(code)
                case ResponseReceived(body=SaslHandshakeResponse(mechanisms=mechanisms)):
                    assert mechanisms == ["GOOD"]
                case SaslTokenReceived(token=token):
                    self.sasl_done = token == LAST.upper()
                case ResponseReceived(body=SaslAuthenticateResponse(auth_bytes=token)):
                    self.sasl_done = token == LAST
                case MalformedResponse():
                    raise AssertionError(event)

    @invariant()
    def nobody_closed(self) -> None:
        assert self.client.state is not ClientState.CLOSED
        assert self.server.state is not ServerState.CLOSED

    def teardown(self) -> None:
        self.deliver_everything()
        assert self.answered == list(range(self.sent))
        assert not self.client.pending
        assert self.server.unanswered == 0


TestPair = Pair.TestCase
TestPair.settings = settings(settings.default, stateful_step_count=40)
