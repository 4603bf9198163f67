"""Several clusters in one process are independent and can be removed."""

import asyncio
import ssl
from typing import Any

import aiohttp
import pytest

from mockbroker.control import ControlServer
from tests.mockbroker.control.test_command_line import ask
from tests.mockbroker.control.test_control import Client, controlled
from tests.mockbroker.simulation.security.test_tls import PEM
from tests.support.requests import request_of

LIST = request_of("ListPartitionReassignments", topics=None)


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
        answer = await request(one, request_of("Metadata", topics=None), 5)
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
        status, answer = await client.post("/clusters?timeout=1ms", json={"brokers": 1})
        assert (status, list(answer)) == (429, ["error"])
        # One that may wait gets the place of a cluster that is removed.
        waiting = asyncio.create_task(client.post("/clusters?timeout=1m", json={"brokers": 1}))
        await asyncio.sleep(0)
        async with client.session.delete(client.url + "/clusters/1") as response:
            assert response.status == 200
        status, answer = await waiting
        assert (status, answer.get("id")) == (201, "3"), answer
        assert (await client.get("/state"))[0] == 404


async def test_a_taken_port_leaves_nothing_behind():
    async with controlled() as (mock, client):
        port = int(mock.addresses[1].rpartition(":")[2])
        status, answer = await client.post("/clusters", json={"port": port, "brokers": 1})
        assert (status, "in use" in answer["error"]) == (400, True)
        assert len((await client.get("/clusters"))[1]["clusters"]) == 1


async def test_a_port_without_a_cluster():
    server = ControlServer()
    await server.start()
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        client = Client(session, server.url)
        try:
            assert (await client.get("/clusters"))[1] == {"clusters": []}
            status, answer = await client.get("/state")
            assert (status, "POST /clusters" in answer["error"]) == (404, True)
            made = (await client.post("/clusters", json={"labels": {"test": "a"}}))[1]
            await client.post("/clusters", json={"labels": {"test": "b"}})
            found = (await client.get("/clusters?label=test=a"))[1]["clusters"]
            assert [each["id"] for each in found] == [made["id"]]
            async with session.get(server.url + "/") as response:
                assert response.status == 200
        finally:
            await server.stop()


@pytest.mark.parametrize("hit", [True, False])
async def test_the_end_of_a_cluster_reports_rules_that_must_hit(hit: bool):
    async with controlled() as (_, client):
        options = {"strict_faults": True, "faults": [{"name": "moved", "api": 46, "error": 41}]}
        made = (await client.post("/clusters", json=options))[1]
        if hit:
            await request(made["brokers"]["1"], LIST, 0)
        async with client.session.delete(client.url + f"/clusters/{made['id']}") as response:
            problems = (await response.json())["problems"]
        expected = "fault rule that no request has hit: moved (api=46 error=41)"
        assert problems == ([] if hit else [expected])


async def test_clusters_have_certificates_of_their_own():
    pem = PEM.read_text()
    certificate = pem[pem.index("-----BEGIN CERTIFICATE") :]
    key = pem.removesuffix(certificate)
    async with controlled() as (_, client):
        body = {"brokers": 1, "tls": {"certificate": certificate, "key": key}}
        status, made = await client.post("/clusters", json=body)
        assert status == 201, made
        host, port = made["bootstrap"].split(":")
        trusting = ssl.create_default_context(cafile=PEM)
        trusting.check_hostname = False
        _, writer = await asyncio.open_connection(host, int(port), ssl=trusting)
        assert writer.get_extra_info("cipher") is not None
        writer.close()


async def test_waiting_ends_with_the_request_or_with_the_cluster():
    async with controlled() as (mock, client):
        made = (await client.post("/clusters", json={"brokers": 1}))[1]
        here = f"/clusters/{made['id']}"
        waits = [
            asyncio.create_task(client.get(f"{here}/journal/wait?timeout=1m&{query}"))
            for query in ("api=Metadata&count=2", "api=Produce")
        ]
        for _ in range(2):
            await request(made["bootstrap"], request_of("Metadata", topics=None), 5)
        status, entries = await waits[0]
        assert (status, [each["api"] for each in entries]) == (200, ["Metadata"] * 2)
        async with client.session.delete(client.url + here) as response:
            assert response.status == 200
        assert (await waits[1])[0] == 404
        # Past requests count, unless they are not newer.
        await request(mock.addresses[1], LIST, 0)
        where = "/journal/wait?api=ListPartitionReassignments&timeout=1ms"
        status, entries = await client.get(where)
        assert (status, len(entries)) == (200, 1)
        status, answer = await client.get(f"{where}&after={entries[0]['sequence']}")
        assert (status, "0 of 1 request entries" in answer["error"]) == (408, True)


async def test_the_journal_as_text_folds_what_every_client_sends():
    async with controlled() as (mock, client):
        for _ in range(3):
            await request(mock.addresses[1], request_of("Metadata", topics=None), 5)
        await request(mock.addresses[1], LIST, 0)
        plain = {"Accept": "text/plain"}
        async with client.session.get(client.url + "/journal", headers=plain) as response:
            assert response.content_type == "text/plain"
            lines = (await response.text()).splitlines()
        shown = [each for each in lines if "ListPartitionReassignments" in each]
        assert len(shown) == 2, lines
        assert "folded: connected 4, Metadata 3, disconnected 3" in lines[0]
