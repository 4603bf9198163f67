"""kafkajs and @platformatic/kafka produce, share a group and read on, against a mock cluster."""

import asyncio
from pathlib import Path

import pytest

from kspec import client_catalog
from kspec.runner.install import install
from mockbroker import MockCluster
from tests.mockbroker.clients.programs import run
from tests.support.toolchain import require

TOPIC = "foo=1,2,3/2,3,1/3,1,2/1,2,3"


@pytest.mark.slow
@pytest.mark.node
@pytest.mark.requirement("DP-GROUP-09", "DP-LISTOFF-08")
@pytest.mark.parametrize("client", ["kafkajs", "platformatic"])
async def test_node_clients(client: str) -> None:
    require("node", "npm")
    folder = (await asyncio.to_thread(install, client_catalog.client("kafkajs"))).cwd
    source = Path(__file__).with_name(f"round_trip_{client}.mjs").read_text("utf-8")
    async with MockCluster(3, topics=[TOPIC]) as mock:
        # A program on the command line finds the packages of its working directory.
        out = await run(
            "node", "--input-type=module", "-e", source, "--", mock.bootstrap, folder=folder
        )
    assert out.splitlines()[-1].startswith("ok ")
