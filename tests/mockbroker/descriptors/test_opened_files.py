"""A request opens no file: what is served is loaded before the first connection is accepted.

Each family of profiles gets every API and version that it serves, and the control ports get every
GET, of processes that report the files that they open (``watched``).
"""

import asyncio
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
import pytest

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.reference.random_trees import random_tree
from mockbroker.control import ROUTES
from mockbroker.control.openapi import served_paths
from mockbroker.control.page import page_files
from mockbroker.control.proxy_port import PROXY_ROUTES
from mockbroker.control.routes import Route
from mockbroker.profiles import all_profiles, profile
from mockbroker.serving.served_versions import served_versions
from tests.mockbroker.control.test_command_line import serving
from tests.mockbroker.descriptors.watched import ROOT
from tests.mockbroker.wire import PATIENCE
from tests.support.instances import to_instance

pytestmark = pytest.mark.slow

PATIENT: Final = 60.0
CONTROL: Final = ("--control", "127.0.0.1:0")

LATER: Final[dict[str, str]] = {
    "mockbroker.cli.": "commands that serve nothing",
    "kproto.annotate kproto.reference": "imported with a control port, or a rule that sets fields",
    "mockbroker.faults.documents yaml": "rules in YAML are files, read at the start",
    "mockbroker.running.mock_cluster kproto.client.zookeeper": "imported as a cluster is made",
    "mockbroker.simulation.configs.effective ": "imported as a cluster with configs is made",
    "mockbroker.simulation.reassignment mockbroker.simulation.reassignment.": "with a cluster",
    "mockbroker.serving.suspended_calls greenlet": "imported as a cluster on ZooKeeper is made",
    "mockbroker.serving.listener_security cryptography": "imported as a store of PKCS12 is read",
    "mockbroker.simulation.security.sasl scramp": "imported as users of SCRAM are made",
    "mockbroker.simulation.security.token_issuer ": "imported as an issuer of tokens is made",
    "kproto.client.sasl scramp": "imported as credentials for SCRAM are made",
}
"""Imports inside functions that no request reaches, or only one that makes a cluster."""


def families() -> dict[str, str]:
    """A profile of each mode, dialect and kind of controller: the newest of the releases."""
    found: dict[tuple[str, str, str], str] = {}
    for each in all_profiles():
        kind = each.reassignment if each.is_proposal else each.reassignment.partition("-")[0]
        found[each.mode, each.dialect, kind] = each.name
    return {name: " ".join(family) for family, name in found.items()}


@contextmanager
def watched(*words: str) -> Iterator[tuple[dict[str, Any], list[tuple[str, str]]]]:
    """The first line of ``mockbroker`` and its deferred imports; afterwards nothing was opened."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mockbroker.descriptors.watched", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        if not first:
            pytest.fail(process.communicate()[1])
        lines: list[str] = []
        assert process.stderr is not None
        while not lines or not lines[-1].startswith("DEFERRED"):
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        deferred = json.loads(lines[-1].partition(" ")[2])
        yield json.loads(first), [(name, wanted) for name, wanted in deferred]
    finally:
        process.kill()
        _, rest = process.communicate(timeout=PATIENCE)
    assert [line for line in rest.splitlines() if line.startswith("OPENED")] == []
    assert "Traceback" not in rest, rest


def requests_of(name: str, seed: int = 455) -> list[bytes]:
    """A valid request of every version that the profile serves."""
    found = profile(name)
    codec = dialect(found.dialect)
    rng = random.Random(seed)
    frames = []
    telemetry = bool(found.optional_versions)
    for api_key, versions in served_versions(found, codec, client_telemetry=telemetry).items():
        request = codec.api(api_key).request
        for version in versions:
            tree = random_tree(schema_of(request), version, rng, size=40)
            body = to_instance(request, tree, schema_of(request))
            frames.append(
                codec.encode_request(
                    body, api_version=version, correlation_id=7, client_id="descriptors"
                )
            )
    return frames


async def send_all(ready: dict[str, Any], frames: list[bytes]) -> None:
    """Send each request on a connection of its own, and wait until the journal has them all. Some
    are not answered, such as Produce with acks=0, or only later."""
    host, _, port = ready["bootstrap"].split(",")[0].rpartition(":")
    opened = []
    async with asyncio.timeout(PATIENT), aiohttp.ClientSession() as session:
        for frame in frames:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(frame)
            opened.append((reader, writer))
        while True:
            query = "/journal?direction=request&limit=10000"
            async with session.get(ready["control"] + query) as response:
                if len(await response.json()) >= len(frames):
                    break
            await asyncio.sleep(0.05)
    for _, writer in opened:
        writer.close()


async def get_all(url: str, routes: tuple[Route, ...], **parts: str) -> dict[str, int]:
    """The status of every GET route, in every form that it has."""
    values = {
        "cluster": "1", "partition": "foo-0", "name": "rule", "sequence": "3", "group": "group",
        "transactional_id": "id", "scenario": "expansion", **parts,
    }  # fmt: skip
    statuses: dict[str, int] = {}
    async with aiohttp.ClientSession() as session:
        for route in routes:
            for path in served_paths(route) if route.method == "GET" else ():
                path = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], path)
                for accept in (route.media, *route.also):
                    names = [each.name for each in route.query]
                    timeout = "timeout=1" if "timeout" in names else ""
                    for query in (f"?{timeout}", *(f"?{name}=1&{timeout}" for name in names)):
                        if query.count("timeout") > 1:
                            continue
                        async with session.get(
                            url + path + query, headers={"Accept": accept}
                        ) as response:
                            statuses[path + query] = response.status
                            await response.content.readany()
        for path in page_files():
            async with session.get(url + path) as response:
                statuses[path] = response.status
    return statuses


def test_there_are_families() -> None:
    assert {"kafka-3.9-zk", "kip-455-new", "kip-240", "kip-860"} <= families().keys()
    assert len(families()) >= 10


@pytest.mark.parametrize("name", families())
async def test_no_request_of_a_profile_opens_a_file(name: str) -> None:
    frames = requests_of(name)
    telemetry = ["--client-telemetry"] if profile(name).optional_versions else []
    options = ("--profile", name, "--topic", "foo:2:3", "--clock", "manual", *telemetry)
    with watched("serve", *options, *CONTROL) as (ready, _):
        await send_all(ready, frames)


async def test_no_get_of_the_control_port_opens_a_file() -> None:
    """After traffic, so that the journal has something to decode."""
    with watched("serve", "--topic", "foo:2:3", *CONTROL) as (ready, _):
        await send_all(ready, requests_of("kafka-4.1"))
        url = ready["control"]
        async with aiohttp.ClientSession() as session:
            rule = {"name": "rule", "api": "Metadata", "error": "CORRUPT_MESSAGE"}
            async with session.post(url + "/faults", json=rule) as response:
                assert response.status == 200
            async with session.post(url + "/faults", json={"api": "Metadatas"}) as response:
                assert response.status == 400  # with similar names
            async with session.get(url + "/journal") as response:
                numbers = [entry["sequence"] for entry in await response.json()]
            for number in numbers[:: len(numbers) // 50]:
                async with session.get(f"{url}/journal/{number}") as response:
                    assert response.status == 200
        statuses = await get_all(url, ROUTES)
    assert set(statuses.values()) <= {200, 400, 404, 408}, statuses
    assert sum(status == 200 for status in statuses.values()) > 60


async def test_no_request_through_a_proxy_and_no_get_of_its_port_opens_a_file() -> None:
    with (
        serving("--brokers", "1", "--topic", "foo:1:1") as (_, upstream),
        watched("proxy", "--upstream", upstream["bootstrap"], *CONTROL) as (ready, _),
    ):
        await send_all(ready, requests_of("kafka-4.1"))
        statuses = await get_all(ready["control"], PROXY_ROUTES)
    assert set(statuses.values()) <= {200, 400, 404, 408}, statuses


@pytest.mark.parametrize(
    "words",
    [
        ["serve", *CONTROL],
        ["serve", "--sasl", "SCRAM-SHA-256:alice:pencil", "--oauth-client", "id:secret"],
        ["proxy", "--upstream", "127.0.0.1:1", "--sasl", "SCRAM-SHA-256:alice:pencil"],
    ],
    ids=" ".join,
)
def test_imports_inside_functions_are_done_at_the_start(words: list[str]) -> None:
    """Of every function in the modules that serve, whether or not a request here reaches it."""
    with watched(*words) as (_, deferred):
        pass
    later = [each for each in LATER if "--sasl" not in words or "scramp" not in each]
    found = [" ".join(each) for each in deferred]
    assert [each for each in found if not each.startswith(tuple(later))] == []
