"""Signed tokens of the mock's token endpoint on a real broker and on the mock, by hand (KIP-768)::

    python -m tests.real.signed_tokens --release 4.4.0

The real broker fetches the keys from the mock's control port. Both get the same tokens, good ones
and damaged ones, and must answer alike.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kproto.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.simulation.security.token_issuer import TokenIssuer
from tests.mockbroker.simulation.security.bearer_tokens import compact, first_message, part, token
from tests.mockbroker.wire import Wire
from tests.real.secured_kafka import OAUTHBEARER, SecuredKafka

CLIENTS: Final = ["alice:secret:read"]
EXPECTING: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        "sasl.oauthbearer.allow.unverified.audience": "true",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
    },
    "expectedAudience=kafka other,expectedIssuer=mockbroker": {
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.expected.issuer": "mockbroker",
    },
    "expectedIssuer=other": {
        "sasl.oauthbearer.allow.unverified.audience": "true",
        "sasl.oauthbearer.expected.issuer": "other",
    },
}
"""Options of the mock, and the same as configs of a broker. 4.4.0 needs an expected audience and
issuer unless it is allowed not to verify them."""
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_PREFIX: Final = "listener.name.sasl_plaintext.oauthbearer."


class OAuthKafka(SecuredKafka):
    """As ``SecuredKafka``, with the validator for signed tokens."""

    def __init__(
        self, release: str, folder: Path, keys_url: str, expecting: Mapping[str, str]
    ) -> None:
        super().__init__(release, folder)
        self._keys_url = keys_url
        self._expecting = expecting

    def _start(self, name: str, *arguments: str) -> None:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._keys_url}"
        super()._start(name, allowed, *arguments)

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        own = {
            "sasl.server.callback.handler.class": f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": self._keys_url,
            **self._expecting,
            "sasl.jaas.config": f"{_PACKAGE}.OAuthBearerLoginModule required;",
        }
        return {**configs, **{f"{_PREFIX}{key}": value for key, value in own.items()}}


def texts(issuer: TokenIssuer, now_ms: int) -> dict[str, str]:
    """Tokens by what they are."""
    good = issuer.token("alice", now_ms, ["read"])
    header, body, signature = good.split(".")
    stranger = TokenIssuer(CLIENTS, "expectedAudience=kafka")
    hour = issuer.validator.token_lifetime_ms
    return {
        "good": good,
        "of one audience": issuer.token("alice", now_ms, ["read"], "other"),
        "of one audience among others": issuer.token("alice", now_ms, [], "x kafka"),
        "without scopes": issuer.token("alice", now_ms),
        "for another audience": issuer.token("alice", now_ms, ["read"], "x"),
        "expired": issuer.token("alice", now_ms - hour - 31_000, ["read"]),
        "expired within the skew": issuer.token("alice", now_ms - hour - 10_000, ["read"]),
        "of tomorrow": issuer.token("alice", now_ms + 86_400_000, ["read"]),
        "of another key": stranger.token("alice", now_ms, ["read"]),
        "unsecured": token(),
        "with a changed body": f"{header}.{part({'sub': 'admin'})}.{signature}",
        "with a changed signature": f"{header}.{body}.{signature[::-1]}",
        "of no algorithm": f"{part({'alg': 'none'})}.{body}.{signature}",
        "in two sections": f"{header}.{body}",
        "in four sections": f"{good}.{signature}",
        "without a signature": f"{header}.{body}.",
        "nonsense": "x",
        "of JSON that is no token": compact({}, {}, "x"),
    }


async def _answers(wire: Wire, text: str) -> Any:
    """What the broker answers to the token, and to what a client says after an error."""
    found: list[Any] = []
    try:
        shaken = await wire.ask(SaslHandshakeRequest(mechanism=OAUTHBEARER), 1)
        found.append((shaken.error_code, OAUTHBEARER in shaken.mechanisms))
        said = await wire.ask(SaslAuthenticateRequest(auth_bytes=first_message(text)), 2)
        minutes = round(said.session_lifetime_ms / 60_000)
        found.append((said.error_code, said.error_message, said.auth_bytes, minutes))
        if said.auth_bytes:
            said = await wire.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
            found.append((said.error_code, said.error_message))
    except (asyncio.IncompleteReadError, ConnectionError):
        found.append("closed")
    wire.writer.close()
    return found


async def _all(address: str, mock: MockCluster, tokens: Mapping[str, str]) -> dict[str, Any]:
    host, port = address.rsplit(":", 1)
    return {
        name: await _answers(
            Wire(*await asyncio.open_connection(host, int(port)), mock.dialect), text
        )
        for name, text in tokens.items()
    }


def _profile(release: str) -> str:
    return "kafka-" + release.rpartition(".")[0]


async def _compared(release: str, options: str) -> int:
    """Compare with brokers that expect this; returns the number of differences."""
    async with MockCluster(
        1, profile=_profile(release), sasl=[f"{OAUTHBEARER}:{options}"], oauth_clients=CLIENTS
    ) as mock:
        assert mock.token_issuer is not None
        control = ControlServer(mock, port=0)
        await control.start()
        with tempfile.TemporaryDirectory() as folder:
            url = f"{control.url}/oauth/jwks.json"
            kafka = OAuthKafka(release, Path(folder), url, EXPECTING[options])
            try:
                await asyncio.to_thread(kafka.__enter__)
                tokens = texts(mock.token_issuer, int(time.time() * 1000))
                real = await _all(kafka.bootstrap, mock, tokens)
            finally:
                kafka.close()
        ours = await _all(mock.bootstrap, mock, tokens)
        await control.stop()
    differing = [name for name in tokens if real[name] != ours[name]]
    for name in differing:
        print(f"{name}:\n  Kafka {real[name]}\n  mock  {ours[name]}")
    accepted = [name for name in tokens if real[name][1][:3] == (0, "", b"")]
    print(f"{release}, {options or 'no options'}: {len(tokens)} tokens, {len(differing)} differ")
    print(f"accepted: {', '.join(accepted)}")
    return len(differing)


async def _main(release: str) -> int:
    return 1 if sum([await _compared(release, options) for options in EXPECTING]) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.signed_tokens")
    parser.add_argument("--release", required=True, help="4.1.2 or 4.4.0")
    return asyncio.run(_main(parser.parse_args().release))


if __name__ == "__main__":
    sys.exit(main())
