"""franz-go, sarama and kafka-go produce, share a group and read on, against a mock cluster."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from mockbroker import MockCluster
from tests.mockbroker.clients.programs import run
from tests.support.full import drawn
from tests.support.toolchain import require

FOLDER = Path(__file__).with_name("go")
BUILD_SECONDS = 900
CLIENTS = ("franz", "sarama", "segmentio")
"""The seed draws one of them, as a build may take a minute; a full run has all."""
TOPIC = "foo=1,2,3/2,3,1/3,1,2/1,2,3"


def build(client: str, into: Path) -> Path:
    """Go keeps modules and objects in its own cache."""
    program = into / client
    subprocess.run(
        ["go", "build", "-trimpath", "-o", str(program), f"./{client}"],
        cwd=FOLDER, timeout=BUILD_SECONDS, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return program


@pytest.mark.slow
@pytest.mark.go
@pytest.mark.requirement("DP-GROUP-09", "DP-LISTOFF-08")
@pytest.mark.parametrize("client", drawn("Go clients", CLIENTS, 1))
async def test_go_clients(client: str, tmp_path: Path) -> None:
    require("go")
    program = await asyncio.to_thread(build, client, tmp_path)
    async with MockCluster(3, topics=[TOPIC]) as mock:
        out = await run(str(program), mock.bootstrap.split(",")[0])
    assert out.splitlines()[-1] == "ok 60"
