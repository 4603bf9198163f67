"""The control port's part for faults: rules in, their hits out. What they mean is for ``faults``.

``GET /faults`` lists, ``POST /faults`` adds, ``DELETE /faults[/NAME]`` removes, and ``GET
/faults/NAME/wait`` answers when a rule has been hit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults import faults_of
from mockbroker.faults.matching import ActiveFault
from mockbroker.mock_cluster import MockCluster
from mockbroker.topic_spec import parse_milliseconds

__all__ = ["FaultRoutes"]

_LONGEST_WAIT_MS: Final = 60_000
_MOST_HITS: Final = 10**9


class FaultRoutes:
    """The errors of these are the control port's own to tell."""

    def __init__(self, mock: MockCluster) -> None:
        self._mock = mock

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_get("/faults", self._list)
        router.add_post("/faults", self._add)
        router.add_delete("/faults", self._clear)
        router.add_delete("/faults/{name}", self._remove)
        router.add_get("/faults/{name}/wait", self._wait)

    async def _list(self, _request: web.Request) -> web.Response:
        return _rules(self._mock.faults)

    async def _add(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            raise ClusterError("send JSON, with Content-Type: application/json")
        try:
            document = json.loads(await request.read())
        except (ValueError, RecursionError) as error:
            raise ClusterError(f"the body is no JSON: {error}") from None
        return _rules(self._mock.load_faults(faults_of(document)))

    async def _clear(self, _request: web.Request) -> web.Response:
        self._mock.clear_faults()
        return _rules(self._mock.faults)

    async def _remove(self, request: web.Request) -> web.Response:
        self._mock.remove_fault(request.match_info["name"])
        return _rules(self._mock.faults)

    async def _wait(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        rule = next((each for each in self._mock.faults if each.name == name), None)
        if rule is None:
            raise FaultError(f"there is no rule {name!r}")
        hits = _hits(request.query.get("hits", "1"))
        timeout = min(parse_milliseconds(request.query.get("timeout", "10s")), _LONGEST_WAIT_MS)
        try:
            async with asyncio.timeout(timeout / 1000):
                await self._mock.wait_for_hit(rule, hits)
        except TimeoutError:
            text = f"rule {name!r} has {rule.hits} hits, not {hits}, after {timeout} ms"
            return web.json_response({"error": text}, status=408)
        return _rules([rule])


def _rules(rules: Iterable[ActiveFault]) -> web.Response:
    return web.json_response({"faults": [rule.to_dict() for rule in rules]})


def _hits(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) <= _MOST_HITS):
        raise ClusterError(f"hits={text!r:.80} must be a whole number from 1 on")
    return int(text)
