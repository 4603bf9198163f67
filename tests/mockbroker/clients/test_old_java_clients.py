"""Clients as old as Kafka 0.10 and 0.11 while the brokers are upgraded to 4.4, which refuses what
0.10 sends (KIP-896)."""

import asyncio
from pathlib import Path

import pytest

from mockbroker import MockCluster
from tests.support.maven import with_dependencies
from tests.support.toolchain import require

HERE = Path(__file__).parent
SECONDS = 120


async def roll(mock: MockCluster, release: str) -> None:
    for broker in (1, 2, 3):
        await mock.upgrade(broker, release)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("UPGRADE-08")
@pytest.mark.parametrize("release", ["0.10.2.2", "0.11.0.3"])
async def test_an_upgrade_beneath_an_old_client(release: str) -> None:
    require("java", "maven")
    is_served = release != "0.10.2.2"
    jars = await asyncio.to_thread(with_dependencies, [("org.apache.kafka:kafka-clients", release)])
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    path = ":".join(map(str, jars))
    async with MockCluster(3, topics=["foo=1,2,3"], profile="kafka-3.9") as mock:
        process = await asyncio.create_subprocess_exec(
            "java", *options, "-cp", path, str(HERE / "OldClients.java"), mock.bootstrap,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        async def play(value: str) -> list[str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{value}\n".encode())
            async with asyncio.timeout(SECONDS):
                return [(await process.stdout.readline()).decode().strip() for _ in range(2)]

        try:
            assert await play("one") == ["produced one", "consumed one"]
            await roll(mock, "kafka-4.4")
            if is_served:
                assert await play("two") == ["produced two", "consumed two"]
            else:
                lines = ["not produced: NetworkException", "not consumed"]
                assert await play("refused") == lines
                closed = {each.api_key for each in mock.journal.select(direction="request")}
                assert {0, 1} <= closed
        finally:
            process.kill()
            await process.wait()
