"""Bugs of released clients that the differential finds, or that were reported, shown once each with
the bytes that do it. A release that mends one fails its test here, which then has to say so.

- librdkafka 2.16.0: a null array in GetTelemetrySubscriptions' answer (librdkafka#5577).
- segmentio/kafka-go v0.4.51: an array's count of 2147483647 (kafka-go#1439).
- kafkajs 2.2.4: a frame size of -1.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

import kproto
from kproto.builds import built, run
from kproto.errors import AbsentError
from kproto.schema.versions import Versions
from kspec.client_catalog import client
from kspec.clientfuzz.decoders.calls import base_of
from kspec.clientfuzz.decoders.client_decoder import ClientDecoder
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample
from kspec.runner.install import Launch, install
from mockbroker import MockCluster
from mockbroker.faults import Fault
from tests.support.toolchain import absent, require, require_module

KAFKA = kproto.dialect("kafka")
HERE = Path(__file__).resolve().parent


def told(label: str, launch: Launch, api_key: int, frames: list[bytes]) -> list[Verdict]:
    base = base_of(KAFKA, api_key)
    decoder = ClientDecoder(label, launch, api_key, base.version)
    try:
        return decoder.judge([Sample(api_key, base.version, "response", each) for each in frames])
    finally:
        decoder.close()


@pytest.mark.slow
@pytest.mark.node
def test_kafkajs_dies_of_a_negative_frame_size() -> None:
    require("node", "npm")
    good = base_of(KAFKA, 46).frame
    try:
        launch = install(client("kafkajs"))
    except AbsentError as error:
        absent("npm", str(error))
        raise
    first, second = told("kafkajs", launch, 46, [good, b"\xff\xff\xff\xff" + good[4:]])
    assert first.outcome == "accepted"
    assert second.outcome == "died"
    assert "TypeError" in second.text


@pytest.mark.slow
@pytest.mark.go
@pytest.mark.skipif(sys.platform != "linux", reason="its memory is bounded on Linux alone")
def test_kafka_go_allocates_what_a_count_says() -> None:
    require("go")
    source = HERE / "kafka_go"

    def build(folder: Path) -> None:
        run(["go", "build", "-o", str(folder) + os.sep, "."], cwd=source)

    files = [source / name for name in ("go.mod", "go.sum", "main.go")]
    folder = built("fuzz/kafka-go", [file.read_text() for file in files], build)
    launch = Launch((str(folder / "kafka_go"),), None)
    good = base_of(KAFKA, 19).frame
    at = good.index(b"\0\0\0\1", 12)  # one topic
    huge = good[:at] + b"\x7f\xff\xff\xff" + good[at + 4 :]
    first, second = told("kafka-go", launch, 19, [good, huge])
    assert first.outcome == "accepted"
    assert second.outcome == "died"
    assert "out of memory" in second.text


PRODUCER = """
import sys, confluent_kafka
producer = confluent_kafka.Producer({"bootstrap.servers": sys.argv[1], "log_level": 0})
print("polling", flush=True)
while True:
    producer.poll(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("field", ["accepted_compression_types", "requested_metrics"])
async def test_librdkafka_aborts_over_a_null_array(field: str) -> None:
    confluent_kafka = require_module("confluent_kafka")
    assert confluent_kafka.libversion()[0] == "2.16.0"
    telemetry = {71: Versions(0, 0), 72: Versions(0, 0)}
    answer = {
        "throttleTimeMs": 0, "errorCode": 0, "clientInstanceId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "subscriptionId": 1, "acceptedCompressionTypes": [0], "pushIntervalMs": 1000,
        "telemetryMaxBytes": 100_000, "deltaTemporality": True, "requestedMetrics": ["*"],
    }  # fmt: skip
    async with MockCluster(brokers=1, apis=telemetry) as mock:
        sound = mock.fault(Fault(api=71, reply=answer, times=1))
        process = await _producer(mock.bootstrap)
        try:
            async with asyncio.timeout(30):
                await mock.wait_for_hit(sound, 1)
            with pytest.raises(TimeoutError):  # it goes on
                async with asyncio.timeout(0.5):
                    await process.wait()
        finally:
            process.kill()
            await process.wait()
        mock.fault(Fault(api=71, reply=answer, set={field: None}))
        process = await _producer(mock.bootstrap)
        try:
            async with asyncio.timeout(30):
                assert await process.wait() == -6  # SIGABRT: an assertion on what calloc gave
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _producer(bootstrap: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", PRODUCER, bootstrap,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
