"""The tokens that a client of a case gets for OAUTHBEARER: JSON Web Tokens without a signature,
which brokers take by default (KIP-255)."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["OAUTHBEARER", "lacks_token", "sasl_arguments"]

OAUTHBEARER: Final = "OAUTHBEARER"
_ISSUED_BEFORE: Final = 3600.0
_FAILING: Final = "-"


def sasl_arguments(wanted: Mapping[str, str], now: float) -> dict[str, Any]:
    """Return the member ``sasl`` of ``connect``.

    ``tokens`` are texts such as ``alice:600``, the principal and the seconds from ``now`` until the
    token expires, and ``-`` where there is none to be had. Raises ValueError.
    """
    if wanted["mechanism"] != OAUTHBEARER:
        return dict(wanted)
    tokens = [_token(each, now) for each in wanted["tokens"].split()]
    return {"mechanism": OAUTHBEARER, "tokens": tokens}


def lacks_token(wanted: Mapping[str, str]) -> bool:
    """Whether there is a time when the client has no token."""
    return _FAILING in wanted.get("tokens", "").split()


def _token(text: str, now: float) -> dict[str, Any] | None:
    if text == _FAILING:
        return None
    principal, _, seconds = text.partition(":")
    expires = now + float(seconds)
    claims = {"sub": principal, "iat": now - _ISSUED_BEFORE, "exp": expires}
    token = f"{_part({'alg': 'none'})}.{_part(claims)}."
    return {"token": token, "principal": principal, "expires_ms": int(expires * 1000)}


def _part(content: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
