"""The client of a control port, for the command line. It imports neither codecs nor aiohttp."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from email.message import Message
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import click

from kproto.cli.terminal import echo_json
from kproto.os_errors import os_error_text
from mockbroker.cli.option_types import json_option

__all__ = ["ControlClient", "shows"]

_TIMEOUT_SECONDS: Final = 90
_WHERE_IT_IS: Final = (
    'the URL is the member "control" of the first line that '
    "`mockbroker serve --control 127.0.0.1:0` prints"
)
_OF_THE_PORT: Final = ("/clusters", "/scenarios")
"""Routes that do not refer to one cluster."""


class ControlClient:
    """A control port and one of its clusters. Failures raise ClickException: one line, exit 1."""

    def __init__(self, url: str, token: str | None, cluster: str | None = None) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._prefix = "" if cluster is None else f"/clusters/{quote(cluster, safe='')}"

    @cached_property
    def _address(self) -> tuple[str, int]:
        """Parsed with the first request, so that --help works with any URL."""
        url = self._url
        try:
            parts = urlsplit(url if "//" in url else f"//{url}", scheme="http")
            port = parts.port
        except ValueError:
            port = None
        if port is None or parts.scheme != "http" or not parts.hostname:
            raise click.UsageError(f"{url!r} is not a control URL; use http://HOST:PORT")
        return parts.hostname, port

    def get(self, where: str, **query: Any) -> Any:
        return self._ask("GET", _with_query(where, query), None)[0]

    def get_with(self, header: str, where: str, **query: Any) -> tuple[Any, str | None]:
        """The answer, and the value of one of its headers."""
        answer, headers = self._ask("GET", _with_query(where, query), None)
        return answer, headers[header]

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, json.dumps(body).encode())[0]

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path, None)[0]

    def follow(self, where: str, **query: Any) -> Iterator[tuple[str, Any]]:
        """The name and data of each event of a stream, until the server ends it."""
        with closing(self._connection()) as connection:
            response = self._send(connection, "GET", _with_query(where, query), None)
            if response.status != 200:
                self._refused(response)
            name, data = "", ""
            while line := self._line(response):
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data = value
                elif not field and data:
                    yield name, json.loads(data)
                    name, data = "", ""

    def _line(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.readline()
        except (OSError, http.client.HTTPException) as error:
            raise click.ClickException(f"{self._url}: {error}") from None

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[Any, Message]:
        with closing(self._connection()) as connection:
            response = self._send(connection, method, path, body)
            if response.status not in (200, 201):
                self._refused(response)
            return self._read(response), response.headers

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        where = path if path.startswith(_OF_THE_PORT) else self._prefix + path
        try:
            connection.request(method, where, body, headers)
            return connection.getresponse()
        except http.client.HTTPException:
            raise self._not_a_control_port("no HTTP response") from None
        except OSError as error:
            raise click.ClickException(
                f"{self._url}: {os_error_text(error)}; {_WHERE_IT_IS}"
            ) from None

    def _not_a_control_port(self, what: str) -> click.ClickException:
        return click.ClickException(f"{self._url} is not a control port: {what}; {_WHERE_IT_IS}")

    def _read(self, response: http.client.HTTPResponse) -> Any:
        try:
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise click.ClickException(f"{self._url}: {error}") from None
        try:
            return json.loads(text)
        except ValueError:
            what = f"HTTP {response.status}, and not JSON"
            raise self._not_a_control_port(what) from None

    def _refused(self, response: http.client.HTTPResponse) -> None:
        answer = self._read(response)
        problem = answer.get("error") if isinstance(answer, dict) else None
        raise click.ClickException(problem or f"{self._url}: HTTP {response.status}")


def _with_query(where: str, query: dict[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{where}?{urlencode(given)}" if given else where


def shows(name: str, path: str) -> Callable[[Callable[[Any], None]], click.Command]:
    """Make a command of a function that prints what GET returns for a path; with --json the command
    prints that as it is."""

    def decorate(show: Callable[[Any], None]) -> click.Command:
        def run(client: ControlClient, as_json: bool) -> None:
            answer = client.get(path)
            echo_json(answer) if as_json else show(answer)

        return click.command(name, help=show.__doc__)(json_option(click.pass_obj(run)))

    return decorate
