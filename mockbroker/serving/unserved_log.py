"""Log what clients request and the mock does not serve, once for each client.

A client that meets an API without a handler reports an error of its own, or retries until its
time-out. These warnings name the request and the remedy. ``mockbroker serve`` prints them on
standard error; in a test they are records of the logger ``mockbroker.unserved``.
"""

from __future__ import annotations

import logging
from typing import Final

from kproto.safe_text import printable
from kproto.schema.versions import Versions
from mockbroker.apis.handlers.api_versions import API_VERSIONS
from mockbroker.serving.exchange import Exchange

__all__ = ["UnservedLog"]

_log = logging.getLogger("mockbroker.unserved")

_MOST_LINES: Final = 100
_MOST_OF_CLIENT: Final = 80
"""Characters of a client's name in a line."""


class UnservedLog:
    """The warnings of one mock cluster: at most ``most_lines``, and one that ends them."""

    def __init__(self, most_lines: int = _MOST_LINES) -> None:
        self._logged: set[tuple[str, int, int]] = set()
        self._most_lines = most_lines

    def without_handler(self, exchange: Exchange) -> None:
        """The broker advertises the API, but has no handler for this version."""
        key = exchange.api_key
        self._warn(
            exchange,
            "the mock has no handler for it and answers UNSUPPORTED_VERSION (35)",
            f"script a response (serve --reply {key}=FILE.json, or MockCluster.script), or let "
            "clients see what is implemented (serve --advertise implemented)",
        )

    def not_advertised(self, exchange: Exchange, served: Versions | None) -> None:
        """The broker does not serve this API, or not at this version."""
        if exchange.api_key == API_VERSIONS or (served and exchange.version in served):
            return  # how clients negotiate, or what a recording or a fault rule refuses
        key = exchange.api_key
        problem = f"the broker serves v{served}" if served else "the broker does not serve this API"
        api = exchange.dialect.apis.get(key)
        if api is not None and exchange.version in api.request.VALID_VERSIONS:
            remedy = (
                "choose another --profile, or serve the version (serve --api "
                f"{key}={exchange.version})"
            )
        else:
            remedy = "the schemas do not define it, so check what the client sends"
        self._warn(exchange, f"{problem}, so it refuses the request", remedy)

    def _warn(self, exchange: Exchange, problem: str, remedy: str) -> None:
        client = _client(exchange)
        key = (client, exchange.api_key, exchange.version)
        if key in self._logged or len(self._logged) > self._most_lines:
            return
        self._logged.add(key)
        if len(self._logged) > self._most_lines:
            _log.warning(
                "%d requests that are not served have been reported; the others are only in the "
                "journal", self._most_lines,
            )  # fmt: skip
            return
        _log.warning("%s from %s: %s; %s", _request(exchange), client, problem, remedy)


def _request(exchange: Exchange) -> str:
    api = exchange.dialect.apis.get(exchange.api_key)
    name = "an unknown API" if api is None else api.request.__name__.removesuffix("Request")
    return f"{name} ({exchange.api_key}) v{exchange.version}"


def _client(exchange: Exchange) -> str:
    """The client's software and id, as far as they are known; otherwise its host."""
    software = exchange.session.software
    names = [str(software)] if software is not None else []
    if exchange.client_id:
        names.append(f"client id {exchange.client_id[:_MOST_OF_CLIENT]!r}")
    return printable(", ".join(names) or exchange.session.host)[: 2 * _MOST_OF_CLIENT]
