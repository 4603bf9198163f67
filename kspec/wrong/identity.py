"""Wrong about who it is: SASL."""

from __future__ import annotations

from kproto.client.sasl import SaslMechanism
from kspec.wrong.link import Link
from kspec.wrong.registry import misbehaves

__all__: list[str] = []


@misbehaves("does-not-authenticate")
class DoesNotAuthenticate(Link):
    """Asks for what it wants without having said who it is."""

    async def authenticate(self, sasl: SaslMechanism) -> None:
        """It goes without."""
