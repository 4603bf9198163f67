"""The OAuth token endpoint of a cluster, and its keys. Clients of Kafka use both, so they need no
control token: the endpoint checks the client's own credentials."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from aiohttp import web

from mockbroker.control.errors import RefusedError
from mockbroker.control.routes import TEXT, ControlRequest, Route
from mockbroker.control.schemas import object_of
from mockbroker.simulation.security.token_issuer import TokenIssuer

__all__ = ["OAUTH_ROUTES", "credentials"]

_NONE: Final = {404: "There is no cluster of this id, or it has no OAuth clients."}
_REFUSED: Final = {
    400: "The request is not one for client credentials, or asks for a scope of others.",
    401: "The client is unknown, or its secret is wrong.",
}


def _issuer(request: ControlRequest) -> TokenIssuer:
    found = request.cluster.mock.token_issuer
    if found is None:
        raise RefusedError(404, "the cluster has no OAuth clients (--oauth-client)")
    return found


def credentials(form: Mapping[str, str], authorization: str) -> tuple[str, str]:
    """The client's id and secret, of the header Authorization or the form; "" if missing."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        client_id, _, secret = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return unquote_plus(client_id), unquote_plus(secret)


async def _token(request: ControlRequest) -> object:
    issuer = _issuer(request)
    form = dict(parse_qsl(await request.http.text(), keep_blank_values=True))
    authorization = request.http.headers.get("Authorization", "")
    request.cluster.mock.follow_clock()
    now_ms = request.cluster.mock.cluster.timers.now_ms
    status, document = issuer.grant(form, *credentials(form, authorization), now_ms)
    return web.json_response(document, status=status, headers={"Cache-Control": "no-store"})


async def _keys(request: ControlRequest) -> object:
    return _issuer(request).keys()


OAUTH_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "POST",
        "/oauth/token",
        "createToken",
        "A signed token for a client, by OAuth's client credentials.",
        _token,
        object_of(access_token=TEXT, token_type=TEXT, expires_in={"type": "integer"}, scope=TEXT),
        refusals={**_REFUSED, **_NONE},
        details="The body is a form with `grant_type=client_credentials`, and with `scope` and "
        "`audience` if they differ from the client's and the broker's.",
        open_to_all=True,
    ),
    Route(
        "GET",
        "/oauth/jwks.json",
        "listTokenKeys",
        "The keys that check signed tokens, as a JSON Web Key Set.",
        _keys,
        object_of(keys={"type": "array", "items": {"type": "object"}}),
        refusals=_NONE,
        open_to_all=True,
    ),
)
