"""Who may talk to a mock cluster, and who they are: what all of its listeners share. No sockets.

``sasl`` proves who somebody is, ``authorizer`` says what they may do; either can be absent. TLS is
``mockbroker.serving.server``'s; what a client certificate says of its owner is read here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mockbroker.security.authorizer import Authorizer
from mockbroker.security.sasl import SaslUsers

__all__ = ["OPEN", "Security", "certificate_principal"]


@dataclass(frozen=True)
class Security:
    """None and None: everybody is User:ANONYMOUS, and may do everything."""

    authorizer: Authorizer | None = None
    sasl: SaslUsers | None = None

    @classmethod
    def of(
        cls,
        authorizer: Authorizer | None,
        users: Iterable[str],
        scram_iterations: int | None = None,
        scram_final: str | None = None,
    ) -> Security:
        """``users`` as ``SaslUsers`` takes them; with none, nobody has to authenticate."""
        sasl = SaslUsers(users, iterations=scram_iterations, final=scram_final)
        return cls(authorizer, sasl if sasl.mechanisms else None)


OPEN: Final = Security()

_RFC_2253: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""The attributes that have a short name there."""
_ESCAPED: Final = ',=+<>#;"\\'
"""As Java does it: `=` and `#` anywhere."""


def certificate_principal(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """``User:CN=alice,OU=dev,C=DE`` from ``ssl.SSLSocket.getpeercert()["subject"]``.

    As Kafka's default principal builder: the distinguished name in RFC 2253's form, last attribute
    first. Attributes without a short name keep OpenSSL's long one, where Java has ``OID=#hex``.
    """
    parts = ["+".join(_attribute(*pair) for pair in names) for names in subject]
    return "User:" + ",".join(reversed(parts))


def _attribute(name: str, value: str) -> str:
    inner = value.strip(" ")
    begin = value.find(inner)
    end = begin + len(inner)
    text = "".join(
        f"\\{char}" if char in _ESCAPED or not begin <= at < end else char
        for at, char in enumerate(value)
    )
    return f"{_RFC_2253.get(name, name)}={text}"
