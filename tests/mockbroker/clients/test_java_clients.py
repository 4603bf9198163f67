"""Kafka's own Java producer and consumer, of two releases, against a mock cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mockbroker import MockCluster
from tests.mockbroker.clients.programs import run
from tests.real.jars import class_path
from tests.support.toolchain import require

PROGRAM = Path(__file__).with_name("RoundTrip.java")
TOPIC = "foo=1,2,3/2,3,1/3,1,2/1,2,3"


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-LISTOFF-08", "DP-GROUP-09")
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
async def test_the_java_clients(release: str) -> None:
    require("java", "maven")
    jars = await asyncio.to_thread(class_path, release)
    async with MockCluster(
        3, topics=[TOPIC], profile=f"kafka-{release.rpartition('.')[0]}"
    ) as mock:
        options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        out = await run("java", *options, logging, "-cp", jars, str(PROGRAM), mock.bootstrap)
    assert out.splitlines()[-1] == "ok 60"
