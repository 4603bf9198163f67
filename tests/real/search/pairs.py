"""A running broker of each side as an arena for programs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kproto.messages import ApiVersionsRequest, FindCoordinatorRequest
from kproto.schema.versions import Versions
from tests.real.data.side import CLOSED, Cluster, Side
from tests.real.search.clusters import BROKER, Release, SearchKafka, search_mock
from tests.real.search.play import Arena

__all__ = ["Pair", "pair", "paired", "served_by", "warm_up"]

PATIENCE: Final = 60.0
COMING: Final = frozenset({14, 15, 16})
"""Codes while a coordinator has not begun."""


class Pair(NamedTuple):
    """``served`` are the versions that both sides serve, ``differing`` what only one does."""

    arena: Arena
    served: Mapping[int, Versions]
    differing: tuple[str, ...]
    kafka: SearchKafka


@asynccontextmanager
async def pair(release: Release, run: int) -> AsyncIterator[Pair]:
    """A fresh broker of each side."""
    with tempfile.TemporaryDirectory() as folder, SearchKafka(release, Path(folder)) as kafka:
        async with paired(release, kafka, run) as found:
            yield found


@asynccontextmanager
async def paired(release: Release, kafka: SearchKafka, run: int) -> AsyncIterator[Pair]:
    """A mock beside a broker that runs."""
    async with search_mock(release, kafka.configs) as mock:
        host, port = mock.addresses[BROKER].rsplit(":", 1)
        real = ("127.0.0.1", kafka.ports[BROKER])
        theirs = await served_by(real)
        ours = await served_by((host, int(port)))
        served = {
            key: both
            for key, versions in theirs.items()
            if key in ours and (both := versions.intersect(ours[key]))
        }
        differing = tuple(
            f"API {key}: Kafka {theirs.get(key)}, mock {ours.get(key)}"
            for key in sorted(theirs.keys() | ours.keys())
            if theirs.get(key) != ours.get(key)
        )
        for address in (real, (host, int(port))):
            await warm_up(address, served)
        yield Pair(Arena(real, (host, int(port)), run, release.name), served, differing, kafka)


async def served_by(address: tuple[str, int]) -> dict[int, Versions]:
    side = Side(Cluster({BROKER: address}), "warm-up", 18, 0, {})
    try:
        answer = await side.exchange(ApiVersionsRequest(), 0, BROKER, "main")
    finally:
        side.close()
    return {row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys}


async def warm_up(address: tuple[str, int], served: Mapping[int, Versions]) -> None:
    """Let the broker create its internal topics and give out its first producer id."""
    cluster = Cluster({BROKER: address})
    highest = served[10].highest
    if 22 in served and highest >= 3:
        await cluster.find_coordinator()
    elif 22 in served:
        await cluster.give_ids()
    side = Side(cluster, "warm-up", 10, 0, {})
    deadline = time.monotonic() + PATIENCE
    kinds = (0,) if highest < 1 else (0, 1, 2) if 78 in served else (0, 1)
    try:
        for kind in kinds:
            key = "warm-up" if kind < 2 else "warm-up:AAAAAAAAAAAAAAAAAAAAAQ:0"
            while time.monotonic() < deadline:
                if highest >= 4:
                    body = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
                else:
                    body = FindCoordinatorRequest(key=key, key_type=kind)
                answer = await side.exchange(body, highest, BROKER, "main")
                if answer is CLOSED:
                    break
                rows = answer.coordinators if highest >= 4 else [answer]
                if all(row.error_code not in COMING for row in rows):
                    break
                await asyncio.sleep(0.1)
    finally:
        side.close()
