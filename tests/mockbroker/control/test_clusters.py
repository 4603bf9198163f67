"""Several clusters in one process are independent and can be removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto.messages import ListPartitionReassignmentsRequest, MetadataRequest
from mockbroker.control import ControlServer
from tests.mockbroker.control.test_command_line import ask
from tests.mockbroker.control.test_control import controlled

LIST = ListPartitionReassignmentsRequest(topics=None)


async def request(address: str, body: Any, version: int) -> Any:
    return await asyncio.to_thread(ask, address, body, version)


async def test_a_cluster_is_made_used_and_removed():
    async with controlled() as (mock, client):
        options = {
            "brokers": "1-5", "topics": ["bar=1,2"], "profile": "kafka-2.4", "clock": "manual",
            "apis": {"45": "off"}, "advertise": "localhost", "broker_configs": {"a": "b"},
            "own_broker_configs": {"2": {"c": "d"}}, "racks": {"3": "r"}, "features": {},
            "auto_progress_ms": 10, "propagation_ms": 0, "inter_broker": None,
            "broker_levels": {"2": "3=0-5"}, "implemented_only": True,
            "authorizer": {"super_users": ["User:ANONYMOUS"]},
            "faults": [{"name": "moved", "api": 46, "error": 41, "times": 1}],
        }  # fmt: skip
        status, made = await client.post("/clusters", json=options)
        assert (status, made["id"], len(made["brokers"])) == (201, "2", 5), made
        assert made["bootstrap"] == ",".join(made["brokers"].values())
        here = "/clusters/2"
        one = made["brokers"]["1"]
        answer = await request(one, MetadataRequest(topics=None), 5)
        assert [topic.name for topic in answer.topics] == ["bar"]
        assert {broker.host for broker in answer.brokers} == {"localhost"}
        assert [(await request(one, LIST, 0)).error_code for _ in range(2)] == [41, 0]
        # Nothing of it is the first one's.
        assert (await client.get(f"{here}/faults"))[1]["faults"][0]["hits"] == 1
        assert (await client.get("/faults"))[1] == {"faults": []}
        assert len((await client.get(f"{here}/journal?api=46"))[1]) > 2
        assert (await client.get("/journal"))[1] == []
        before = len(mock.cluster.log)
        status, answer = await client.post(f"{here}/failover", json={"broker": 5})
        assert (status, (await client.get(f"{here}/state"))[1]["controller"]) == (200, 5), answer
        assert len(mock.cluster.log) == before
        assert [each["id"] for each in (await client.get("/clusters"))[1]["clusters"]] == ["1", "2"]

        async with client.session.delete(client.url + here) as response:
            assert (response.status, (await response.json())["id"]) == (200, "2")
        assert (await client.get(f"{here}/state"))[0] == 404
        with pytest.raises(OSError, match="refused"):
            await request(one, LIST, 0)
        # No number is given twice.
        assert (await client.post("/clusters", json={}))[1]["id"] == "3"


async def test_clusters_end_with_the_server():
    async with controlled() as (mock, _):
        server = ControlServer(mock)
        await server.start()
        import aiohttp

        async with aiohttp.ClientSession() as session:
            async with session.post(server.url + "/clusters", json={"brokers": 1}) as response:
                address = (await response.json())["bootstrap"]
            assert (await request(address, LIST, 0)).error_code == 0
            await server.stop()
        with pytest.raises(OSError, match="refused"):
            await request(address, LIST, 0)
        assert (await request(mock.addresses[1], LIST, 0)).error_code == 0


async def test_there_is_an_end_to_how_many(monkeypatch):
    monkeypatch.setattr("mockbroker.control.hosting._MOST_CLUSTERS", 2)
    async with controlled() as (_, client):
        assert (await client.post("/clusters", json={"brokers": 1}))[0] == 201
        status, answer = await client.post("/clusters", json={"brokers": 1})
        assert (status, list(answer)) == (429, ["error"])


async def test_a_taken_port_leaves_nothing_behind():
    async with controlled() as (mock, client):
        port = int(mock.addresses[1].rpartition(":")[2])
        status, answer = await client.post("/clusters", json={"port": port, "brokers": 1})
        assert (status, "in use" in answer["error"]) == (400, True)
        assert len((await client.get("/clusters"))[1]["clusters"]) == 1
