"""The HTTP server of the control port: access control, one form for every error, and the routes of
``route_table``."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.http import HttpProcessingError

from kproto import annotate
from kproto.errors import KprotoError
from kproto.journal import Journal
from mockbroker.control import connection_limits
from mockbroker.control.connection_limits import ConnectionLimits
from mockbroker.control.errors import RefusedError
from mockbroker.control.hosting import FIRST, ClusterHost, HostedCluster, Scenario
from mockbroker.control.openapi import served_paths
from mockbroker.control.page import file_response, page_files, page_templates, requests_page
from mockbroker.control.route_table import ROUTES
from mockbroker.control.routes import ControlRequest, Route, read_body, read_query
from mockbroker.control.same_site import is_same_site
from mockbroker.errors import ClusterError
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.serving.acceptor import SPARE_FOR_CONTROL, Acceptor, bound_sockets
from mockbroker.serving.endpoints import dialable, is_loopback, show

__all__ = ["ControlPort", "ControlServer"]

_log = logging.getLogger("mockbroker")
_http_log = logging.getLogger("mockbroker.http")
# Bytes that are not HTTP get a 400. Anybody can send them, so they must not fill the log.
_http_log.addFilter(lambda record: not _is_protocol_error(record))

_SHUTDOWN_SECONDS: Final = 1.0
"""How long pending requests may take when the server stops; streams end at once."""

_NO_BROKER: Final = -1

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ControlPort:
    """Serves ``routes``, with the access control and limits of every control port.

    ``start`` raises ClusterError for an address that other machines can reach without a ``token``,
    and OSError for an address that is not available. ``open_page``: the page needs no token, since
    it holds no data and prompts for one.
    """

    def __init__(
        self, routes: tuple[Route, ...], host: str, port: int, token: str | None, *, open_page: bool
    ) -> None:
        self._routes = routes
        self._open_page = open_page
        self._open_paths = {
            path for route in routes if route.open_to_all for path in served_paths(route)
        }
        self._host = host
        self._port = port
        self._token = token
        self._runner: web.AppRunner | None = None
        self._limits: ConnectionLimits | None = None
        self._acceptor: Acceptor | None = None

    def _cluster(self, cluster_id: str | None) -> HostedCluster | None:
        """What a request acts on; without an id, it is a request for the port as a whole. Raises
        RefusedError."""
        raise NotImplementedError

    @property
    def _host_of_clusters(self) -> ClusterHost:
        raise NotImplementedError

    @property
    def _journal(self) -> Journal:
        """The journal that has an entry for each connection that is refused."""
        raise NotImplementedError

    def _note_refused(self, peer: str, event: str, note: str) -> None:
        self._journal.record(
            time.time_ns(), _NO_BROKER, 0, "event", peer,
            event=event, note=f"control port: {note}",
        )  # fmt: skip

    def _files(self) -> Iterable[str]:
        """The paths of the page's files. Reads these files, and the page's templates."""
        return ()

    async def _close(self) -> None:
        """End what the port itself has started."""

    @property
    def url(self) -> str:
        return f"http://{show(dialable(self._host), self._port)}"

    async def start(self) -> None:
        if self._token is None and not is_loopback(self._host):
            raise ClusterError(
                f"a control port on {self._host} is open to other machines: it needs a token"
            )
        annotate.preload()
        self._runner = web.AppRunner(
            self.application(),
            access_log=None,
            logger=_http_log,
            shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        await self._runner.setup()
        assert self._runner.server is not None
        try:
            self._acceptor = Acceptor(
                await bound_sockets(self._host, self._port),
                self._runner.server,
                refuse=self._note_refused,
                spare=lambda: SPARE_FOR_CONTROL,
            )
            self._acceptor.start()
        except OSError:
            await self.stop()
            raise
        self._port = self._acceptor.port
        self._limits = ConnectionLimits(
            self._runner.server,
            most=connection_limits.MOST_CONNECTIONS,
            quiet_seconds=connection_limits.QUIET_SECONDS,
        )
        self._limits.start()

    def application(self) -> web.Application:
        """The application without a socket; ``start`` makes its own."""
        app = web.Application(
            client_max_size=max(route.max_body for route in self._routes), middlewares=[self._guard]
        )
        for route in self._routes:
            for path in served_paths(route):
                app.router.add_route(route.method, path, self._handler(route))
        for path in self._files():
            app.router.add_get(path, file_response, allow_head=False)
        return app

    async def stop(self) -> None:
        await self._close()
        if self._limits is not None:
            self._limits.stop()
        acceptor, self._acceptor = self._acceptor, None
        if acceptor is not None:
            await acceptor.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _handler(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            path = request.match_info
            control_request = ControlRequest(
                hosting=self._host_of_clusters,
                hosted=self._cluster(path.get("cluster", FIRST) if route.of_cluster else None),
                http=request,
                path=path,
                query=read_query(route, request),
                body=await read_body(route, request),
                wants_token=self._token is not None,
            )
            answer = await route.answer(control_request)
            if isinstance(answer, web.StreamResponse):
                return answer
            return web.json_response(answer, status=route.status)

        return handle

    # ---- access ------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check access, and give every error the form ``{"error": one line}``."""
        if not is_same_site(request, on_loopback=is_loopback(self._host)):
            return _error(403, "this control port accepts only its own address and its own page")
        if not self._is_authorized(request):
            return _error(401, "this control port requires its token: Authorization: Bearer TOKEN")
        # From Python 3.12 on, aiohttp answers pipelined requests without leaving the loop.
        await asyncio.sleep(0)
        slot = nullcontext() if self._limits is None else self._limits.serving(request)
        try:
            with slot:
                return await handler(request)
        except web.HTTPException as error:
            unknown = "; GET / lists what this port has" if error.status in (404, 405) else ""
            return _error(error.status, f"{request.method} {request.path}: {error.reason}{unknown}")
        except RefusedError as error:
            return _error(error.status, str(error))
        except (KprotoError, OSError) as error:
            return _error(400, str(error))
        except Exception as error:  # a defect of mockbroker
            _log.exception("%s %s", request.method, request.path)
            return _error(500, f"internal error: {type(error).__name__}: {error}")

    def _is_authorized(self, request: web.Request) -> bool:
        """The page and its files need no token: they hold no data, and the page prompts for it."""
        if self._token is None or (self._open_page and requests_page(request)):
            return True
        resource = request.match_info.route.resource
        if resource is not None and resource.canonical in self._open_paths:
            return True
        received = request.headers.get("Authorization", "")
        expected = f"Bearer {self._token}"
        return hmac.compare_digest(received.encode(errors="surrogateescape"), expected.encode())


class ControlServer(ControlPort):
    """Serves the routes for ``mock``, if there is one, and for the clusters created over HTTP,
    which ``stop`` stops. ``scenarios``, such as ``mockbroker.scenarios.SCENARIOS``, can be run over
    HTTP."""

    def __init__(
        self,
        mock: MockCluster | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        scenarios: Mapping[str, Scenario] = MappingProxyType({}),
    ) -> None:
        super().__init__(ROUTES, host, port, token, open_page=True)
        self._mock = mock
        self._scenarios = scenarios
        self._hosting = ClusterHost(mock, scenarios)
        self._own_journal = Journal() if mock is None else mock.journal

    async def start(self) -> None:
        self._hosting = ClusterHost(self._mock, self._scenarios)
        await super().start()

    def _cluster(self, cluster_id: str | None) -> HostedCluster | None:
        return None if cluster_id is None else self._hosting.find(cluster_id)

    @property
    def _host_of_clusters(self) -> ClusterHost:
        return self._hosting

    @property
    def _journal(self) -> Journal:
        return self._own_journal

    def _files(self) -> Iterable[str]:
        page_templates()
        return page_files()

    async def _close(self) -> None:
        await self._hosting.close()


def _is_protocol_error(record: logging.LogRecord) -> bool:
    return record.exc_info is not None and isinstance(record.exc_info[1], HttpProcessingError)


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": " ".join(text.split())}, status=status)
