"""Drive aiokafka by the protocol of docs/reference/adapters.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import aiokafka
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.helpers import create_ssl_context

from kspec.adapters.python import aiokafka_admin
from kspec.adapters.python.admin_adapter import AdminAdapter
from kspec.adapters.python.aiokafka_data import OPTIONS, AiokafkaDataClients, Runner
from kspec.adapters.python.lines import client_call, serve
from kspec.adapters.python.values import GivenTokens, client_options, given_tokens

__all__ = ["Adapter"]

_NAMES = {
    "protocol": "security_protocol",
    "mechanism": "sasl_mechanism",
    "username": "sasl_plain_username",
    "password": "sasl_plain_password",
}


class _Provider(AbstractTokenProvider):  # type: ignore[misc]  # the client has no types
    def __init__(self, tokens: GivenTokens) -> None:
        self._tokens = tokens

    async def token(self) -> str:
        return str(self._tokens.next()["token"])


class Adapter(AdminAdapter):
    """Every client runs on one event loop."""

    client = "aiokafka"
    version = aiokafka.__version__
    admin_calls = aiokafka_admin.CALLS

    def __init__(self) -> None:
        super().__init__()
        self._runner = Runner()
        self._options: dict[str, Any] = {}

    def options(self) -> Mapping[str, Any]:
        return {"request_timeout_ms": "timeout_ms", **OPTIONS}

    def set_up(self, call: dict[str, Any]) -> AiokafkaDataClients:
        self._options = {
            "bootstrap_servers": call["bootstrap"],
            "client_id": call["client_id"],
            "request_timeout_ms": self.timeout_ms,
            **client_options(call, _NAMES),
        }
        tokens = given_tokens(call)
        if tokens is not None:
            self._options["sasl_oauth_token_provider"] = _Provider(tokens)
        tls = call.get("tls")
        if tls is not None:
            with client_call():
                self._options["ssl_context"] = create_ssl_context(
                    cafile=tls["ca"], certfile=tls.get("certificate"), keyfile=tls.get("key")
                )
        return AiokafkaDataClients(self._runner, self._options, call)

    def perform(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return self._runner.run(work(*arguments))

    async def new_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**self._options)
        try:
            await admin.start()
        except BaseException:
            with suppress(Exception):
                await admin.close()
            raise
        return admin

    def close_admin(self, admin: AIOKafkaAdminClient) -> None:
        self._runner.run(admin.close())


if __name__ == "__main__":
    serve(Adapter(), connects=["tls", "oauthbearer"], records=["headers"])
