"""Defects of OAUTHBEARER (RFC 7628, KIP-255)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kspec.defects.declaration import defect
from kspec.reference_client.bearer import Bearer

__all__: list[str] = []


@defect("sends-its-token-alone")
class SendsItsTokenAlone(Bearer):
    """Sends the token without the header of GS2 and the name of the scheme."""

    def first_message(self, token: str) -> bytes:
        return token.encode()


@defect("keeps-its-first-token")
class KeepsItsFirstToken(Bearer):
    """Asks its application for a token once, and uses it for good."""

    def expires_soon(self, token: Mapping[str, Any]) -> bool:
        return False


@defect("takes-an-error-for-success")
class TakesAnErrorForSuccess(Bearer):
    """Does not look at the broker's answer to its token."""

    def after_answer(self, received: bytes) -> bytes | None:
        return None


@defect("authenticates-without-a-token")
class AuthenticatesWithoutAToken(Bearer):
    """Sends an empty token where its application has none."""

    def token(self) -> str:
        if self.current is None:
            self.current = self.next_token()
        return "" if self.current is None else super().token()
