"""Access to the control port: host names, origins and tokens; and the end of the parent."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from mockbroker import MockCluster
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.openapi import served_paths
from tests.mockbroker.control.test_command_line import PATIENCE, ROOT, ctl, run_here, serving
from tests.mockbroker.control.test_control import controlled


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
async def test_a_rebound_host_name_is_refused(host):
    """DNS rebinding: a page whose host name resolves to 127.0.0.1 sends that name."""
    async with controlled() as (mock, client):
        for path in ("/state", "/", "/openapi.json"):
            status, answer = await client.get(path, headers={"Host": host})
            assert (status, list(answer)) == (403, ["error"])
        status, _ = await client.post("/failover", json={"broker": 2}, headers={"Host": host})
        assert (status, mock.cluster.state.controller_id) == (403, 1)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "127.9.9.9", "[::1]:5"])
async def test_host_names_of_this_machine_are_accepted(host):
    async with controlled() as (_, client):
        assert (await client.get("/state", headers={"Host": host}))[0] == 200


async def test_a_page_of_another_site_is_refused():
    async with controlled() as (mock, client):
        own = client.url
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"):
            headers = {"Origin": origin}
            assert (await client.get("/journal/stream", headers=headers))[0] == 403
            status, _ = await client.post("/failover", json={"broker": 2}, headers=headers)
            assert (status, mock.cluster.state.controller_id) == (403, 1)
        async with client.session.options(own + "/failover", headers={"Origin": own}) as response:
            assert response.status == 405
            assert not [name for name in response.headers if name.startswith("Access-Control")]
        assert (await client.get("/state", headers={"Origin": own}))[0] == 200


@pytest.mark.slow
async def test_no_other_site_can_send_a_request_that_acts():
    """Of every route that is not a GET: with a form's content types, with none, and with JSON from
    another origin, which a browser would send only after a preflight that is refused. The token
    endpoint takes a form, checks the client's own secret and changes nothing."""
    acting = [route for route in ROUTES if route.method != "GET" and not route.open_to_all]
    assert [route.path for route in ROUTES if route.open_to_all and route not in acting] == [
        "/oauth/token", "/oauth/jwks.json",
    ]  # fmt: skip
    assert {route.method for route in acting} == {"POST", "DELETE"}
    evil = {"Origin": "http://evil.example"}
    async with controlled() as (mock, client):
        mock.fault(name="kept", api=3, error=41)
        before = (mock.cluster.describe(), len(mock.cluster.log), len(mock.faults))
        for route in acting:
            for path in served_paths(route):
                for braces in re.findall(r"\{\w+\}", path):
                    path = path.replace(braces, "1")
                url = client.url + path
                async with client.session.request(
                    route.method, url, json={}, headers=evil
                ) as response:
                    assert response.status == 403, path
                if route.method == "DELETE":  # no form and no image can send it
                    continue
                for media in ("text/plain", "application/x-www-form-urlencoded", "", "a/json"):
                    async with client.session.post(
                        url, data=b"{}", headers={"Content-Type": media}
                    ) as response:
                        assert response.status == 400, (path, media)
                        assert "application/json" in (await response.json())["error"]
        assert (mock.cluster.describe(), len(mock.cluster.log), len(mock.faults)) == before


async def test_beyond_loopback_any_host_name_works_with_the_token():
    async with MockCluster() as mock:
        server = ControlServer(mock, host="0.0.0.0", token="secret")
        await server.start()
        try:
            async with aiohttp.ClientSession() as session:
                for token, wanted in (("secret", 200), ("secre", 401), ("", 401), ("\xe9", 401)):
                    headers = {"Host": "kafka.example", "Authorization": f"Bearer {token}"}
                    async with session.get(server.url + "/state", headers=headers) as response:
                        assert response.status == wanted
                # The page asks for it; all else wants it.
                for accept, wanted in (("text/html", 200), ("*/*", 401)):
                    async with session.get(server.url, headers={"Accept": accept}) as response:
                        assert response.status == wanted
                headers = {"Authorization": "Bearer secret"}
                async with session.get(server.url + "/openapi.json", headers=headers) as response:
                    assert (await response.json())["security"] == [{"token": []}]
        finally:
            await server.stop()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Authorization: Bearer \xff\xfe", b"401"),
        (b"Origin: http://[", b"403"),
        (b"Origin: \xff", b"403"),
        (b"Host: \xff", b"40"),
        (b"Last-Event-ID: \xff", b"401"),
    ],
)
async def test_headers_that_are_not_text_are_refused(header, status):
    async with MockCluster(1) as mock:
        server = ControlServer(mock, token="secret")
        await server.start()
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            own = b"" if header.startswith(b"Host") else b"Host: localhost\r\n"
            writer.write(b"GET /state HTTP/1.1\r\n" + own + header + b"\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()).startswith(b"HTTP/1.1 " + status)
        finally:
            writer.close()
            await server.stop()


@pytest.mark.slow
def test_a_token_is_generated_if_needed(capsys):
    with serving("--brokers", "1", "--control", "0.0.0.0:0") as (_, ready):
        url, token = ready["control"], ready["control_token"]
        assert len(token) >= 32
        code, _, err = ctl(capsys, url, "state")
        assert (code, "token" in err) == (1, True)
        assert run_here(["ctl", "--token", token, url, "state"]) == 0


# ---- --exit-with-parent --------------------------------------------------------------------------

STARTER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "mockbroker", "serve", *sys.argv[1:]])
print(child.pid, flush=True)
time.sleep(600)
"""


def runs(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_serve_ends_with_its_parent_on_request():
    """The parent is killed, so that it cannot send a signal."""
    command = [sys.executable, "-c", STARTER, "--brokers", "1", "--exit-with-parent"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        first = [parent.stdout.readline() for _ in range(2)]
        served = next(int(line) for line in first if line.strip().isdigit())
        try:
            assert any(json.loads(line) for line in first if line.startswith("{"))
            assert runs(served)
            parent.kill()
            parent.wait(PATIENCE)
            deadline = time.monotonic() + PATIENCE
            while runs(served) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not runs(served)
        finally:
            if runs(served):
                os.kill(served, signal.SIGKILL)
