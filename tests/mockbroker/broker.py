"""A broker without sockets: frames through ``ServerConnection`` and ``Dispatcher`` alone."""

from collections.abc import Mapping
from typing import Any

from kproto.connection import ServerConnection
from kproto.dialects import Dialect, dialect
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.apis import Session
from mockbroker.profiles import Profile, profile
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.exchange import Outcome
from mockbroker.serving.served_versions import served_versions
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.authorizer import ANONYMOUS
from mockbroker.simulation.security.policy import OPEN, Security
from tests.support.requests import request_of

__all__ = ["DirectBroker"]


class DirectBroker:
    """Ask any broker of ``cluster`` and get the decoded answer; None when it closes instead, or
    does not answer."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        profile_name: str | Profile = "kafka-4.4",
        apis: Mapping[int, Versions | None] | None = None,
        security: Security = OPEN,
        principal: str = ANONYMOUS,
        codec: Dialect | None = None,
    ) -> None:
        self.cluster = cluster
        self.principal = principal
        self.journal = Journal()
        found = profile(profile_name) if isinstance(profile_name, str) else profile_name
        self.codec = codec or dialect(found.dialect)
        self.dispatcher = Dispatcher(
            cluster=cluster,
            profile=found,
            codec=self.codec,
            served=served_versions(found, self.codec, apis),
            journal=self.journal,
            security=security,
        )
        self._correlation_id = 0

    def ask(self, body: Any, version: int, /, *, broker_id: int = 1, **fields: Any) -> Any:
        """Ask with ``body``, or with a request of that name and these ``fields``."""
        if isinstance(body, str):
            body = request_of(body, **fields)
        self._correlation_id += 1
        frame = self.codec.encode_request(
            body, api_version=version, correlation_id=self._correlation_id, client_id="test"
        )
        answer = self.send(frame, broker_id=broker_id)
        if not isinstance(answer, bytes) or not answer:
            return None
        header, response = self.codec.decode_response(
            answer, api_key=body.API_KEY, api_version=version
        )
        assert header.correlation_id == self._correlation_id
        return response

    def send(self, frame: bytes, *, broker_id: int = 1) -> Outcome:
        """Return what the broker makes of one frame."""
        connection = ServerConnection(codec=self.codec, served=self.dispatcher.served)
        connection.receive_data(frame)
        event = connection.next_event()
        assert event is not None
        session = Session(1, broker_id, "127.0.0.1:9", principal=self.principal)
        answer = self.dispatcher.answer(connection, session, event)
        return b"".join(answer) if isinstance(answer, list) else answer
