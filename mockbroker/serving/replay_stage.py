"""Requests answered out of a recording: a part of the dispatcher. Which recorded answer it is, is
for ``replay_answers``.
"""

from __future__ import annotations

from kproto.connection import RequestReceived, ServerConnection, ServerState, UnsupportedRequest
from kproto.errors import KprotoError
from mockbroker.apis import Session
from mockbroker.serving.delivery import Delivery
from mockbroker.serving.outcome import CLOSE, Close, Outcome
from mockbroker.serving.replay_answers import Replay, Replayed

__all__ = ["ReplayStage"]


class ReplayStage(Delivery):
    replay: Replay | None = None
    """Asked before anybody else but rules of faults, where there is one."""

    def _replayed(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
    ) -> Outcome | None:
        """What the recording answers; None, journalled, where it has nothing."""
        assert self.replay is not None
        if not request.expects_response:
            return b""
        problem = "nothing like it was recorded"
        try:
            found = self.replay.answer(connection, session, request)
        except KprotoError as error:
            found, problem = None, f"what was recorded does not fit: {error}"
        if found is None:
            self.note_either(session, request, "replay-miss", problem)
            return None
        if found.missing:
            self.note_either(session, request, "replay-miss", found.missing)
        if found.after_ms:
            return self._replay_later(connection, session, request, found)
        return self._replay(connection, session, request, found)

    async def _replay_later(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
        found: Replayed,
    ) -> bytes | Close:
        assert self.replay is not None
        await self.replay.sleep(found.after_ms / 1000)
        return self._replay(connection, session, request, found)

    def _replay(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
        found: Replayed,
    ) -> bytes | Close:
        if found.closes or found.answer is None:
            ended = "the connection ended" if found.closes else "no answer came"
            self.note_either(session, request, "replayed", f"here {ended}")
            return CLOSE if found.closes else connection.drop_response(request)
        if isinstance(found.answer, bytes):
            data = connection.send_bytes(request, found.answer)
        else:
            data = connection.send_response(request, found.answer, api_version=found.version)
        self.record_either(session, request, found.version, data, "replayed")
        if found.ends_sasl and connection.state is ServerState.AUTHENTICATING:
            connection.complete_sasl()
        return data
