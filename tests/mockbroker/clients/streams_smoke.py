"""Kafka Streams' own smoke test, on the mock or on real Kafka, with exactly-once semantics.

``SmokeTestDriver`` of its test jar produces records and verifies what ``SmokeTestClient`` makes of
them: every minimum, maximum, difference, sum, count and average, and the windows that are closed.
Four instances of the client come and go meanwhile (``SmokeTest.java``). A run takes 30 to 50
seconds, so it is a target of its own::

    make streams-smoke
    python -m tests.mockbroker.clients.streams_smoke --protocol streams --kafka 4.4.0

It prints the driver's verification, and exits with 1 if that fails.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from mockbroker import MockCluster
from tests.mockbroker.clients.test_kafka_streams import JAVA, class_path
from tests.real.kafka import RealKafka
from tests.support.maven import artifacts

__all__ = ["main"]

RELEASE: Final = "4.3.1"
"""The newest of which Kafka Streams is on Maven Central."""
ROCKSDB: Final = ("org.rocksdb:rocksdbjni", "10.1.3")
_CLASSIFIERS: Final = {"x86_64": "linux64", "aarch64": "linux-aarch64"}
"""The jar without one has the libraries of every platform, and 70 MB."""
KEYS, RECORDS, SECONDS = 10, 200, 10
LIMIT_SECONDS: Final = 600
BROKERS: Final = (1, 2, 3)
VERIFICATION: Final = "Result Verification"


def smoke_class_path() -> str:
    name, version = ROCKSDB
    classifier = _CLASSIFIERS.get(platform.machine())
    wanted = [
        ("org.apache.kafka:kafka-streams:test", RELEASE),
        ("org.apache.kafka:kafka-clients:test", RELEASE),
        (name if classifier is None else f"{name}:{classifier}", version),
    ]
    return os.pathsep.join([*map(str, artifacts(wanted)), class_path(RELEASE)])


@asynccontextmanager
async def cluster(kafka: str | None) -> AsyncIterator[str]:
    """The bootstrap servers of the mock, or of a release of Kafka."""
    if kafka is None:
        configs = {"group.streams.heartbeat.interval.ms": "300"}
        async with MockCluster(len(BROKERS), profile="kafka-4.4", broker_configs=configs) as mock:
            yield mock.bootstrap
        return
    with tempfile.TemporaryDirectory() as folder:
        real = RealKafka(kafka, Path(folder), zookeeper=False, broker_ids=BROKERS)
        await asyncio.to_thread(real.__enter__)
        try:
            yield ",".join(f"127.0.0.1:{port}" for port in real.ports.values())
        finally:
            await asyncio.to_thread(real.close)


async def play(protocol: str, kafka: str | None) -> tuple[int, str]:
    """Run the test. Returns the exit status, and the output from the verification on."""
    jars = await asyncio.to_thread(smoke_class_path)
    program = str(Path(__file__).with_name("SmokeTest.java"))
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    numbers = map(str, (KEYS, RECORDS, SECONDS))
    async with cluster(kafka) as bootstrap:
        process = await asyncio.create_subprocess_exec(
            *JAVA, logging, "-cp", jars, program, bootstrap, protocol, *numbers,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                out, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    text = out.decode()
    assert process.returncode is not None
    return process.returncode, text[max(text.find(VERIFICATION), 0) :]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--protocol", choices=["classic", "streams"], help="default: both")
    parser.add_argument("--kafka", metavar="RELEASE", help="run on real Kafka, for example 4.4.0")
    given = parser.parse_args()
    failed = 0
    for protocol in [given.protocol] if given.protocol else ["classic", "streams"]:
        print(f"---- {protocol} protocol, on {given.kafka or 'the mock'}", flush=True)
        status, text = asyncio.run(play(protocol, given.kafka))
        print(text if status else text.partition("SUCCESS")[0] + "SUCCESS")
        failed |= status
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
