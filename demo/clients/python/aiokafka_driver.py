"""Drives aiokafka's ``AIOKafkaAdminClient`` for the demo: ``BOOTSTRAP TIMEOUT_MS`` on the line."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient

from demo.clients.python.line_protocol import serve


class Driver:
    """One admin client on one event loop, stepped a call at a time."""

    def __init__(self, bootstrap: str, timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        self._timeout_ms = timeout_ms
        self._runner = asyncio.Runner()
        self._admin: AIOKafkaAdminClient | None = None

    def describe_cluster(self, _call: dict[str, Any]) -> dict[str, Any]:
        return self._runner.run(self._describe_cluster())

    async def _describe_cluster(self) -> dict[str, Any]:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(
                bootstrap_servers=self._bootstrap,
                client_id="demo-aiokafka",
                request_timeout_ms=self._timeout_ms,
            )
            await self._admin.start()
        cluster = await self._admin.describe_cluster()
        return {
            "brokers": sorted(broker["node_id"] for broker in cluster["brokers"]),
            "controller": cluster["controller_id"],
        }

    def close(self) -> None:
        if self._admin is not None:
            self._runner.run(self._admin.close())
        self._runner.close()


def main() -> None:
    driver = Driver(sys.argv[1], int(sys.argv[2]))
    try:
        serve("aiokafka", aiokafka.__version__, {"describe_cluster": driver.describe_cluster})
    finally:
        driver.close()


if __name__ == "__main__":
    main()
