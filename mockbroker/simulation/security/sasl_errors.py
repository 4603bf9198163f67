"""How an exchange of SASL fails."""

from __future__ import annotations

__all__ = ["SaslRefusedError", "invalid_credentials"]


class SaslRefusedError(Exception):
    """The exchange failed. The client receives the text."""


def invalid_credentials(mechanism: str) -> SaslRefusedError:
    """The error that does not say what is wrong, since that may be a secret."""
    return SaslRefusedError(
        "Authentication failed during authentication due to invalid credentials with SASL "
        f"mechanism {mechanism}"
    )
