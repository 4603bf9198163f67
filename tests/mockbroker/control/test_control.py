"""The HTTP control port: commands, invalid requests and tokens."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from mockbroker import MockCluster
from mockbroker.control import OPERATIONS, ControlServer
from mockbroker.errors import ClusterError
from mockbroker.scenarios import SCENARIOS
from tests.mockbroker.wire import connect
from tests.support.requests import request_of


class Client:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.session.get(self.url + path, **options) as response:
            return response.status, await response.json()

    async def post(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.session.post(self.url + path, **options) as response:
            return response.status, await response.json()

    async def step(self, command: str, **body: Any) -> list[dict[str, Any]]:
        status, answer = await self.post(f"/{command}", json=body)
        assert status == 200, answer
        actions: list[dict[str, Any]] = answer["actions"]
        return actions


@asynccontextmanager
async def controlled(
    token: str | None = None, **options: Any
) -> AsyncIterator[tuple[MockCluster, Client]]:
    async with MockCluster(brokers=4, topics=["foo=1,2,3"], **options) as mock:
        control = ControlServer(mock, token=token, scenarios=SCENARIOS)
        await control.start()
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            try:
                yield mock, Client(session, control.url)
            finally:
                await control.stop()


async def test_state_is_the_documented_object() -> None:
    async with controlled() as (mock, client):
        mock.cluster.reassignments.alter([("foo", [(0, [2, 3, 4])])])
        assert await client.get("/state") == (
            200,
            {
                "controller": 1,
                "controller_epoch": 1,
                "brokers": {str(broker): {"live": True} for broker in (1, 2, 3, 4)},
                "topics": {
                    "foo": {
                        "0": {
                            "replicas": [2, 3, 4, 1],
                            "isr": [1, 2, 3],
                            "leader": 1,
                            "leader_epoch": 0,
                            "adding": [4],
                            "removing": [1],
                            "target": [2, 3, 4],
                        }
                    }
                },
            },
        )


async def test_commands_take_effect() -> None:
    async with controlled(clock="manual") as (mock, client):
        cluster = mock.cluster
        await client.step("leave-isr", partition="foo-0", broker=3)
        assert cluster.topics.partition("foo", 0).isr == (1, 2)
        (action,) = await client.step("join-isr", partition="foo-0", broker=3)
        assert cluster.topics.partition("foo", 0).isr == (1, 2, 3)
        assert (action["kind"], action["topic"]) == ("PartitionChanged", "foo")
        await client.step("failover", broker=2)
        assert cluster.state.controller_id == 2
        await client.step("hold-metadata", broker=4)
        await client.step("stop-broker", broker=3)
        assert not cluster.controller.broker(3).live
        assert 3 in {b.broker_id for b in cluster.controller.metadata_view(4).live_brokers()}
        await client.step("release-metadata", broker=4)
        assert 3 not in {b.broker_id for b in cluster.controller.metadata_view(4).live_brokers()}
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            async with connect(mock, 3):
                pass
        await client.step("start-broker", broker=3)
        async with connect(mock, 3) as wire:
            assert len((await wire.ask("Metadata", 9, topics=[])).brokers) == 4
        await client.step("advance", duration="1m")
        await client.step("advance", duration=5)
        assert cluster.timers.now_ms == 60_005


async def test_the_log_can_be_read_from_any_offset() -> None:
    async with controlled() as (mock, client):
        offset = len(mock.cluster.log)
        await client.step("failover", broker=2)
        status, everything = await client.get("/log")
        assert (status, len(everything)) == (200, len(mock.cluster.log))
        assert [action["offset"] for action in everything] == list(range(len(everything)))
        assert (await client.get(f"/log?since={offset}"))[1] == everything[offset:]
        assert everything[-1]["kind"] == "ControllerChanged"


@pytest.mark.requirement("C-08", "C-10")
async def test_the_journal_is_decoded_and_can_be_filtered() -> None:
    async with controlled() as (mock, client):
        async with connect(mock, 2) as wire:
            hello = request_of(
                "ApiVersions", client_software_name="me", client_software_version="1"
            )
            await wire.ask(hello, 3)
            await wire.ask("Metadata", 12, topics=None)
            wire.send(b"\0\0\0\4\0\3\0\0")
            await wire.closed()
        rows = (await client.get("/journal"))[1]
        assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
        metadata = (await client.get("/journal?api=3&direction=request"))[1]
        assert metadata[0]["body"]["topics"] is None
        assert (await client.get("/journal?api=Metadata&direction=request"))[1] == metadata
        assert metadata[0]["client_software"] == {"name": "me", "version": "1"}
        (bad,) = (await client.get("/journal?event=malformed"))[1]
        assert bad["broker_id"] == 2
        assert (await client.get("/journal?broker=1"))[1] == []
        assert len((await client.get("/journal?limit=2"))[1]) == 2
        after = (await client.get(f"/journal?after={rows[-2]['sequence']}"))[1]
        assert after == rows[-1:]
        assert (await client.get("/journal?after=x"))[0] == 400


BAD = [
    ("join-isr", "", "the body is not JSON"),
    ("join-isr", "{", "the body is not JSON"),
    ("join-isr", "[]", "must be a JSON object"),
    ("join-isr", "{}", "lacks 'partition'"),
    ("join-isr", '{"partition":"foo-0"}', "lacks 'broker'"),
    ("join-isr", '{"partition":"foo-0","broker":4,"x":1}', "unknown member 'x'"),
    ("join-isr", '{"partition":"foo-0","broker":"4"}', "must be an integer"),
    ("join-isr", '{"partition":"foo-0","broker":true}', "must be an integer"),
    ("join-isr", '{"partition":"foo-0","broker":4.5}', "must be an integer"),
    ("join-isr", '{"partition":"foo-0","broker":' + "9" * 5000 + "}", "the body is not JSON"),
    ("join-isr", '{"partition":"foo-0","broker":' + "9" * 400 + "}", "too large"),
    ("join-isr", "[" * 20_000, "the body is not JSON"),
    ("join-isr", '{"partition":7,"broker":4}', "must be a string"),
    ("join-isr", '{"partition":"foo","broker":4}', "is not a partition"),
    ("join-isr", '{"partition":"bar-0","broker":4}', "bar"),
    ("join-isr", '{"partition":"foo-0","broker":4}', "4"),
    ("leave-isr", '{"partition":"foo-0","broker":1}', "1"),
    ("stop-broker", '{"broker":9}', "no broker 9"),
    ("start-broker", '{"broker":1}', "1"),
    ("failover", '{"broker":9}', "9"),
    ("hold-metadata", '{"broker":9}', "9"),
    ("advance", '{"duration":"soon"}', "not a duration"),
    ("advance", '{"duration":-5}', "cannot go back"),
    ("advance", '{"duration":null}', "must be an integer"),
    ("advance", '{"duration":' + "9" * 30 + "}", "too large"),
]


@pytest.mark.parametrize(("command", "body", "problem"), BAD, ids=range(len(BAD)))
async def test_a_bad_body_is_400_and_changes_nothing(command: str, body: str, problem: str) -> None:
    async with controlled(clock="manual") as (mock, client):
        before = len(mock.cluster.log)
        headers = {"Content-Type": "application/json"}
        status, answer = await client.post(f"/{command}", data=body.encode(), headers=headers)
        assert status == 400
        assert problem in answer["error"]
        assert "\n" not in answer["error"]
        assert len(mock.cluster.log) == before


async def test_an_unknown_charset_is_accepted() -> None:
    async with controlled() as (mock, client):
        headers = {"Content-Type": "application/json; charset=nope"}
        assert (await client.post("/failover", data=b'{"broker":2}', headers=headers))[0] == 200
        assert mock.cluster.state.controller_id == 2


@pytest.mark.parametrize("query", ["log?since", "journal?after", "journal?limit", "journal?broker"])
@pytest.mark.parametrize("value", ["x", "-1", "9" * 5000])
async def test_a_bad_number_in_a_query_is_400(query: str, value: str) -> None:
    async with controlled() as (_, client):
        status, answer = await client.get(f"/{query}={value}")
        assert status == 400
        assert "must be a non-negative integer" in answer["error"]
        assert len(answer["error"]) < 200


async def test_other_content_types_are_refused() -> None:
    """A form on another site's page must not control the cluster."""
    async with controlled() as (mock, client):
        body = json.dumps({"broker": 2})
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            status, answer = await client.post(
                "/failover", data=body.encode(), headers={"Content-Type": kind}
            )
            assert (status, "Content-Type" in answer["error"]) == (400, True)
        assert mock.cluster.state.controller_id == 1


async def test_errors_of_unknown_paths_and_methods_are_json() -> None:
    async with controlled() as (_, client):
        for path in ("/nope", "/failover/now"):
            status, answer = await client.post(path, json={})
            assert (status, list(answer)) == (404, ["error"])
        status, answer = await client.get("/failover")
        assert (status, list(answer)) == (405, ["error"])
        assert answer["error"].endswith("; GET / lists what this port has")


async def test_a_body_too_large_is_refused() -> None:
    async with controlled() as (_, client):
        body = b'{"broker":' + b" " * 100_000 + b"2}"
        headers = {"Content-Type": "application/json"}
        status, answer = await client.post("/failover", data=body, headers=headers)
        assert (status, list(answer)) == (413, ["error"])


async def test_the_index_lists_every_command() -> None:
    async with controlled() as (_, client):
        _, index = await client.get("/")
        assert set(index["post"]) >= {f"/{name}" for name in OPERATIONS}
        assert index["post"]["/join-isr"] == ["partition", "broker"]
        assert "/journal/stream" in index["get"]


async def test_every_request_needs_the_token() -> None:
    async with controlled(token="secret") as (mock, client):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            assert (await client.get("/state", headers=headers))[0] == 401
            status, _ = await client.post("/failover", json={"broker": 2}, headers=headers)
            assert status == 401
        assert mock.cluster.state.controller_id == 1
        good = {"Authorization": "Bearer secret"}
        assert (await client.get("/state", headers=good))[0] == 200
        assert (await client.post("/failover", json={"broker": 2}, headers=good))[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
async def test_other_addresses_than_loopback_need_a_token(host: str) -> None:
    async with MockCluster() as mock:
        with pytest.raises(ClusterError, match="token"):
            await ControlServer(mock, host=host).start()
