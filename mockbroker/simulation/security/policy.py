"""The authentication and authorization that all listeners of a cluster share.

``sasl`` authenticates clients and ``authorizer`` decides what they may do; both are optional. TLS
is in ``mockbroker.serving.server``; this module reads the principal from a client certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from mockbroker.simulation.releases.release import NEWEST, Release
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.sasl import SaslUsers

__all__ = ["OPEN", "Security", "certificate_principal"]


class Security(msgspec.Struct, frozen=True):
    """With neither, every client is User:ANONYMOUS and may do everything."""

    authorizer: Authorizer | None = None
    sasl: SaslUsers | None = None

    @classmethod
    def of(
        cls,
        authorizer: Authorizer | None,
        users: Iterable[str],
        scram_iterations: int | None = None,
        scram_first: str | None = None,
        scram_final: str | None = None,
        oauth_clients: Iterable[str] = (),
        release: Release = NEWEST,
        *,
        authenticates: bool = False,
    ) -> Security:
        """``users`` and ``oauth_clients`` are the texts that ``SaslUsers`` takes; without any, no
        authentication is needed, unless a listener ``authenticates`` all the same."""
        sasl = SaslUsers(
            users,
            iterations=scram_iterations,
            first=scram_first,
            final=scram_final,
            oauth_clients=oauth_clients,
            release=release,
        )
        return cls(authorizer, sasl if sasl.mechanisms or authenticates else None)


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
"""The attributes with a short name in RFC 2253."""
_ESCAPED: Final = ',=+<>#;"\\'
"""Java escapes `=` and `#` at any position."""


def certificate_principal(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return ``User:CN=alice,OU=dev,C=DE`` from ``ssl.SSLSocket.getpeercert()["subject"]``.

    Like Kafka's default principal builder it writes the distinguished name as in RFC 2253, last
    attribute first. Attributes without a short name keep OpenSSL's long name, where Java writes
    ``OID=#hex``.
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
