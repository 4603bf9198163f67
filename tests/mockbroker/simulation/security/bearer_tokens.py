"""Tokens and messages of OAUTHBEARER: good ones, and damaged ones that a broker refuses."""

import json
from base64 import urlsafe_b64encode
from typing import Any, Final

__all__ = ["ACCEPTED", "DAMAGED", "compact", "first_message", "part", "token"]

UNSECURED: Final = {"alg": "none"}
FAR: Final = 4_000_000_000
"""A time of expiry, in seconds, that no test reaches."""


def part(document: Any) -> str:
    """A part of a token; text stays as it is."""
    text = document if isinstance(document, str) else json.dumps(document)
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def compact(claims: Any, header: Any = UNSECURED, signature: str = "") -> str:
    return f"{part(header)}.{part(claims)}.{signature}"


def token(header: Any = UNSECURED, **claims: Any) -> str:
    """A token of alice that has every scope; a claim that is None is left out."""
    found = {"sub": "alice", "exp": FAR, "scope": ["kafka", "read"], **claims}
    return compact({name: value for name, value in found.items() if value is not None}, header)


def first_message(bearer: str, authorization_id: str = "", **extensions: str) -> bytes:
    user = f"a={authorization_id}" if authorization_id else ""
    pairs = "".join(f"\x01{name}={value}" for name, value in extensions.items())
    return f"n,{user},\x01auth=Bearer {bearer}{pairs}\x01\x01".encode()


_GOOD: Final = token()
_END: Final = b"\x01"
DAMAGED: Final[tuple[tuple[bytes, ...], ...]] = (
    (b"",),
    (_END,),
    (b"nonsense",),
    (b"y,,\x01auth=Bearer x\x01\x01",),
    (b"n,,\x01auth=Bearer " + _GOOD.encode() + _END,),
    (b"n,,\x01bearer=x\x01\x01",),
    (b"n,,\x01\x01",),
    (b"n,,\x01auth=Basic " + _GOOD.encode() + b"\x01\x01",),
    (b"n,,\x01auth=Bearer\x01\x01",),
    (b"n,,\x01auth=Bearer a b\x01\x01",),
    (b"n,,\x01auth=Bearer x\x01n0=x\x01\x01",),
    (b"n,b=x,\x01auth=Bearer x\x01\x01",),
    (first_message(_GOOD, "bob"),),
    *(
        (first_message(each), _END)
        for each in (
            "x",
            "x.y",
            "a.b.c.d",
            "a..",
            _GOOD + "c2ln",
            _GOOD + "=",
            compact("[]"),
            compact("5"),
            compact(""),
            compact("{"),
            compact({}),
            f"{part(UNSECURED)}.+.",
            f"{part(UNSECURED)}.a.",
            token({"alg": "HS256"}),
            token({"alg": ["none"]}),
            token(exp=None),
            token(exp="4000000000"),
            token(exp=True),
            token(exp=[1]),
            token(exp=1),
            token(exp=-1.5),
            token(sub=None),
            token(sub=5),
            token(sub=["alice"]),
            token(sub=" \t"),
            token(sub={}),
            token(iat="now"),
            token(iat=FAR - 1),
            token(iat=FAR),
            token(scope=None),
            token(scope=5),
            token(scope="kafka"),
            token(scope="kafka read"),
            token(scope=["kafka", "write"]),
            token(scope=[]),
        )
    ),
    (first_message(token({})), _END),
    (first_message(compact({}, "")),),
    (first_message(token(exp=10**17)),),
    (first_message(token(exp=1)), b"\x01\x01"),
    (first_message(token(exp=1)), first_message(token(exp=2)), _END),
)
"""The client's messages, of which the last ends the exchange."""

_SCOPE: Final = ["read", " kafka ", "other", ""]
ACCEPTED: Final = (
    first_message(_GOOD),
    first_message(_GOOD, "alice"),
    first_message(_GOOD, traceId="a b\t", logicalCluster="lkc-1"),
    first_message(token(iat=-1, exp=FAR + 0.5, scope=_SCOPE)),
    first_message(token({"alg": "none", "typ": "JWT"}, sub=" alice ")),
    first_message(compact({"sub": None, "exp": FAR, "scope": _SCOPE}), "null"),
    first_message(compact({"sub": True, "exp": FAR, "scope": _SCOPE}), "true"),
    first_message(token()).replace(b"Bearer", b"bEARER  "),
)
"""Messages that a broker accepts."""
