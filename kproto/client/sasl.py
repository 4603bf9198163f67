"""The client's side of SASL mechanisms: what the tokens contain. ``Connection.authenticate`` sends
them.

The package ``scramp`` computes SCRAM; it is imported on use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from kproto.client.errors import SaslExchangeError

__all__ = ["SCRAM_MECHANISMS", "Exchange", "SaslMechanism", "SaslPlain", "SaslScram"]

Exchange = Callable[[bytes], bytes | None]
"""Takes the broker's token (first ``b""``) and returns ours; None once satisfied."""

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms of ``SaslScram``."""

MOST_ITERATIONS: Final = 1_000_000
"""The number of hash iterations a broker may request: a few tenths of a second, during which the
event loop is blocked. Kafka's own credentials have 4096 to 16,384 (ScramMechanism, 4.4.0)."""


class SaslMechanism(Protocol):
    """The interface of ``Admin(sasl=...)``, also for mechanisms of your own."""

    @property
    def mechanism(self) -> str:
        """The name in SaslHandshake."""

    def exchange(self) -> Exchange:
        """Start an exchange, one for each connection."""


@dataclass(frozen=True)
class SaslPlain:
    """PLAIN (RFC 4616). It sends the password itself, so use TLS. Neither part may contain NUL."""

    username: str
    password: str = field(repr=False)

    mechanism: ClassVar[str] = "PLAIN"

    def __post_init__(self) -> None:
        if "\0" in self.username + self.password:
            raise ValueError("PLAIN separates user and password by NUL, so neither may contain it")

    def exchange(self) -> Exchange:
        """Start the exchange of one connection."""
        tokens = [f"\0{self.username}\0{self.password}".encode()]
        return lambda _received: tokens.pop() if tokens else None


@dataclass(frozen=True)
class SaslScram:
    """SCRAM (RFC 5802, KIP-84). It does not send the password, and the broker proves that it knows
    the password."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in SCRAM_MECHANISMS:
            known = " and ".join(SCRAM_MECHANISMS)
            raise ValueError(f"no mechanism {self.mechanism!r}; Kafka has {known}")
        importlib.import_module("scramp")  # now, so that connecting opens no file

    def exchange(self) -> Exchange:
        """Start the exchange of one connection."""
        import scramp

        try:
            client = scramp.ScramClient([self.mechanism], self.username, self.password)
        except scramp.ScramException as error:
            raise SaslExchangeError(f"{self.mechanism}: {error}") from error

        def prove(text: str) -> str:
            client.set_server_first(text)
            requested = int(client.iterations)
            if requested > MOST_ITERATIONS:
                raise SaslExchangeError(
                    f"{self.mechanism}: the broker requests {requested} iterations, and no more "
                    f"than {MOST_ITERATIONS} are computed"
                )
            proof: str = client.get_client_final()
            return proof

        steps = [lambda _: client.get_client_first(), prove, client.set_server_final]

        def answer(received: bytes) -> bytes | None:
            try:
                token = steps.pop(0)(received.decode())
            except (scramp.ScramException, UnicodeDecodeError) as error:
                raise SaslExchangeError(
                    f"{self.mechanism}: the broker's token is wrong: {error}"
                ) from error
            return None if token is None else token.encode()

        return answer
