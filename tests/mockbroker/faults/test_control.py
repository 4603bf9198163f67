"""Rules over HTTP, on the command line, and from files."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.mockbroker.control.test_command_line import ask, ctl, end, run_here, serving
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

LIST = request_of("ListPartitionReassignments", topics=None)


async def test_rules_are_added_listed_and_removed():
    async with controlled() as (mock, client):
        status, answer = await client.post(
            "/faults", json=[{"name": "a", "api": 46, "error": 41, "times": 1}, {"delay": "1s"}]
        )
        expected = {
            "faults": [
                {"name": "a", "hits": 0, "matched": 0, "live": True, "failed": [],
                 "rule": {"name": "a", "api": 46, "error": 41, "times": 1}},
                {"name": "fault-2", "hits": 0, "matched": 0, "live": True, "failed": [],
                 "rule": {"delay": 1000}},
            ]
        }  # fmt: skip
        assert (status, answer) == (200, expected)
        async with connect(mock) as wire:
            assert (await wire.ask(LIST, 0)).error_code == 41
        expected["faults"][0] |= {"hits": 1, "matched": 1, "live": False}
        assert await client.get("/faults") == (200, expected)
        async with client.session.delete(client.url + "/faults/a") as response:
            assert [each["name"] for each in (await response.json())["faults"]] == ["fault-2"]
        async with client.session.delete(client.url + "/faults/a") as response:
            assert response.status == 400
            assert "unknown rule 'a'" in (await response.json())["error"]
        async with client.session.delete(client.url + "/faults") as response:
            assert await response.json() == {"faults": []}
        assert mock.faults == []


async def test_waiting_over_http():
    async with controlled() as (mock, client):
        await client.post("/faults", json={"name": "a", "api": 46, "error": 41})
        status, answer = await client.get("/faults/a/wait?timeout=10")
        assert status == 408
        assert "0 hits after " in answer["error"]
        waiting = asyncio.create_task(client.get("/faults/a/wait?hits=2"))
        async with connect(mock) as wire:
            for _ in range(2):
                await wire.ask(LIST, 0)
        status, answer = await waiting
        assert (status, answer["faults"][0]["hits"]) == (200, 2)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "not JSON"),
        (b"3", "a list of rules"),
        (b'[{"error": 3}, {"erorr": 3}]', "rule 2: unknown member 'erorr'"),
        (b'{"api": "Nope", "delay": 1}', "unknown API 'Nope'"),
        (b'{"raw": "00", "error": 3}', "raw cannot be combined with error"),
    ],
)
async def test_a_bad_rule_is_refused_and_none_is_added(body, problem):
    async with controlled() as (mock, client):
        headers = {"Content-Type": "application/json"}
        status, answer = await client.post("/faults", data=body, headers=headers)
        assert status == 400
        assert problem in answer["error"]
        assert mock.faults == []
        status, answer = await client.post("/faults", data=body)
        assert status == 400
        assert "Content-Type" in answer["error"]


@pytest.mark.parametrize("query", ["hits=0", "hits=x", "timeout=soon"])
async def test_what_no_wait_can_be(query):
    async with controlled() as (_, client):
        await client.post("/faults", json={"name": "a", "api": 46, "error": 41})
        status, _ = await client.get(f"/faults/a/wait?{query}")
        assert status == 400


YAML = """
- name: moved
  api: ListPartitionReassignments
  times: 1
  error: NOT_CONTROLLER
- name: idle
  api: 3
  delay: 1s
"""


@pytest.mark.slow
def test_files_and_ctl_on_a_served_cluster(tmp_path, capsys):
    file = tmp_path / "faults.yaml"
    file.write_text(YAML)
    more = tmp_path / "more.json"
    more.write_text(json.dumps([{"name": "first", "api": 46, "error": 7, "times": 1}]))
    with serving(
        "--faults",
        str(more),
        "--faults",
        str(file),
        "--faults-must-hit",
        "--control",
        "127.0.0.1:0",
    ) as (process, ready):
        address, url = ready["brokers"]["1"], ready["control"]
        assert [ask(address, LIST, 0).error_code for _ in range(3)] == [7, 41, 0]
        code, out, _ = ctl(
            capsys, url, "fault", "add", "name=later", "api=46", "error=NOT_CONTROLLER", "times=1",
            "trailing=15", "steps_after=failover 2,failover 1", '{"error_message": "moved on"}',
        )  # fmt: skip
        assert (code, out.split(":")[0]) == (0, "later")
        rules = tmp_path / "third.yml"
        rules.write_text("api: 46\nname: third\nthrottle: 2s")
        code, out, _ = ctl(capsys, url, "fault", "add", "--file", str(rules), "--json")
        assert json.loads(out)["faults"][0]["rule"]["throttle"] == 2000
        assert ctl(capsys, url, "fault", "remove", "third")[0] == 0
        code, out, _ = ctl(capsys, url, "fault", "list")
        assert [line.split(":")[0] for line in out.splitlines()] == [
            "later", "first", "moved", "idle",
        ]  # fmt: skip
        assert "moved: 1 hits (over)" in out
        code, _, err = ctl(capsys, url, "fault", "wait", "idle", "--timeout", "10ms")
        assert (code, "0 hits after " in err) == (1, True)
        code, _, err = ctl(capsys, url, "fault", "wait", "idle", "--timeout", "10")
        assert (code, "'10' has no unit: use 10ms, 10s or 10m" in err) == (2, True)
        code, _, err = ctl(capsys, url, "fault", "add", "api=3", "delay=20")
        assert (code, "'20' has no unit" in err) == (1, True)
        code, _, err = ctl(capsys, url, "fault", "add", "erorr=3")
        assert (code, "did you mean error" in err) == (1, True)
        assert ctl(capsys, url, "fault", "wait", "first")[0] == 0
        code, _, err = end(process, signal.SIGTERM)
        assert code == 1
        assert [line for line in err.splitlines() if "no request hit" in line] == [
            "mockbroker: no request hit later: api=46 times=1"
            " steps_after=['failover 2', 'failover 1'] error=41 error_message=moved on trailing=15",
            "mockbroker: no request hit idle: api=3 delay=1000ms",
            "mockbroker: no request hit 2 of the fault rules",
        ]


@pytest.mark.slow
def test_unused_rules_are_told_and_no_failure(tmp_path):
    file = tmp_path / "faults.json"
    file.write_text('{"api": 3, "delay": 1}')
    with serving("--faults", str(file)) as (process, _):
        code, _, err = end(process, signal.SIGTERM)
    assert (code, err) == (0, "mockbroker: no request hit fault-1: api=3 delay=1ms\n")


def test_a_bad_file_is_bad_usage_and_says_where(tmp_path, capsys):
    file = Path(tmp_path / "faults.yaml")
    for text, problem in [
        ("- api: 3\n  delay: 1\n- api: 3", f"{file}:3: rule 2: the rule has no effect"),
        ("- api: Nope\n  delay: 1", f"--faults: {file}: fault-1: unknown API 'Nope'"),
        ("- {api: 3, steps_before: [drop-upstream self]}", f"{file}: fault-1: drop-upstream is a"),
        ("\x80", "invalid YAML"),
    ]:
        file.write_text(text)
        assert run_here(["serve", "--faults", str(file)]) == 2
        assert problem in capsys.readouterr().err
    file.write_bytes(b"\xff")
    assert run_here(["serve", "--faults", str(file)]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    assert run_here(["serve", "--faults", str(tmp_path / "none.yaml")]) == 2
    assert run_here(["serve", "--faults-must-hit"]) == 2
    capsys.readouterr()
