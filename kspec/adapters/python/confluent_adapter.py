"""Drive confluent-kafka by the protocol of docs/reference/adapters.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient

from kspec.adapters.python import confluent_admin
from kspec.adapters.python.admin_adapter import AdminAdapter
from kspec.adapters.python.confluent_data import OPTIONS, ConfluentDataClients
from kspec.adapters.python.confluent_errors import described
from kspec.adapters.python.lines import client_call, serve
from kspec.adapters.python.values import (
    LIBRDKAFKA_NAMES,
    client_options,
    given_tokens,
    librdkafka_time_outs,
)

__all__ = ["Adapter"]

_LIBRARY, _ = confluent_kafka.libversion()


class Adapter(AdminAdapter):
    """librdkafka connects in the background as soon as a client is made, which ``connect`` does."""

    client = "confluent-kafka"
    version = f"{confluent_kafka.__version__} (librdkafka {_LIBRARY})"
    admin_calls = confluent_admin.CALLS

    def options(self) -> Mapping[str, Any]:
        per_call = {"request_timeout of each call": "timeout_ms, but for elect_leaders"}
        return {**librdkafka_time_outs("timeout_ms"), "log_level": 0, **per_call, **OPTIONS}

    def set_up(self, call: dict[str, Any]) -> ConfluentDataClients:
        options = {
            "bootstrap.servers": call["bootstrap"],
            "client.id": call["client_id"],
            **librdkafka_time_outs(self.timeout_ms),
            "log_level": 0,
            **client_options(call, LIBRDKAFKA_NAMES),
        }
        tokens = given_tokens(call)
        if tokens is not None:
            options["oauth_cb"] = lambda _config: _token(tokens.next())
        with client_call():
            self._admin = AdminClient(options)
        return ConfluentDataClients(options, call)

    def new_admin(self) -> Any:
        raise AssertionError("connect comes first")

    def close_admin(self, admin: AdminClient) -> None:
        """librdkafka frees everything with the last reference."""


def _token(given: Mapping[str, Any]) -> tuple[str, float, str, dict[str, str]]:
    return given["token"], given["expires_ms"] / 1000, given["principal"], {}


if __name__ == "__main__":
    serve(Adapter(), described=described, connects=["tls", "oauthbearer"], records=["headers"])
