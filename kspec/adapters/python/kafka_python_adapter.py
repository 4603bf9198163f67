"""Drive kafka-python by the protocol of docs/reference/adapters.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import kafka
from kafka.admin import KafkaAdminClient

from kspec.adapters.python import kafka_python_admin, kafka_python_data
from kspec.adapters.python.admin_adapter import AdminAdapter
from kspec.adapters.python.kafka_python_data import KafkaPythonDataClients
from kspec.adapters.python.lines import serve
from kspec.adapters.python.values import GivenTokens, client_options, given_tokens

try:
    from kafka.net.sasl.oauth import AbstractTokenProvider
except ImportError:  # kafka-python 2
    from kafka.oauth import AbstractTokenProvider

__all__ = ["Adapter"]

_NAMES = {
    "protocol": "security_protocol",
    "ca": "ssl_cafile",
    "certificate": "ssl_certfile",
    "key": "ssl_keyfile",
    "mechanism": "sasl_mechanism",
    "username": "sasl_plain_username",
    "password": "sasl_plain_password",
}


class Adapter(AdminAdapter):
    client = "kafka-python"
    version = kafka.__version__
    admin_calls = kafka_python_admin.CALLS
    time_outs: ClassVar[tuple[str, ...]] = ("request_timeout_ms", "bootstrap_timeout_ms")
    data_clients: ClassVar[type[KafkaPythonDataClients]] = KafkaPythonDataClients

    def __init__(self) -> None:
        super().__init__()
        self._options: dict[str, Any] = {}

    def options(self) -> Mapping[str, Any]:
        more = {**kafka_python_admin.OPTIONS, **kafka_python_data.OPTIONS}
        return {**self.limits("timeout_ms"), **more}

    def set_up(self, call: dict[str, Any]) -> KafkaPythonDataClients:
        self._options = {
            "bootstrap_servers": call["bootstrap"].split(","),
            "client_id": call["client_id"],
            **self.limits(self.timeout_ms),
            **client_options(call, _NAMES),
        }
        tokens = given_tokens(call)
        if tokens is not None:
            self._options["sasl_oauth_token_provider"] = _Provider(tokens)
        return self.data_clients(self._options, call)

    def new_admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(**self._options)

    def close_admin(self, admin: KafkaAdminClient) -> None:
        admin.close()

    def limits(self, timeout_ms: Any) -> dict[str, Any]:
        return dict.fromkeys(self.time_outs, timeout_ms)


class _Provider(AbstractTokenProvider):  # type: ignore[misc]  # the client has no types
    def __init__(self, tokens: GivenTokens) -> None:
        self._tokens = tokens

    def token(self) -> str:
        return str(self._tokens.next()["token"])


if __name__ == "__main__":
    serve(Adapter(), connects=["tls", "oauthbearer"], records=["headers"])
