"""Levels, external brokers and the switch, from the command line and the control port."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto.dialects import dialect
from kproto.journal import read_journal
from tests.mockbroker.control.test_command_line import ctl, run_here, serving
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.wire import PATIENCE

DRAFT = dialect("kip-455-new")


def start_a_reassignment(address: str) -> None:
    """foo-0 to 2 and 3, as any client of the draft asks for it."""
    import socket

    request = DRAFT.apis[45].request
    topics, partitions = (
        request.STRUCTS["ReassignableTopic"], request.STRUCTS["ReassignablePartition"],
    )  # fmt: skip
    body: Any = request
    body = body(topics=[topics(name="foo", partitions=[partitions(replicas=[2, 3])])])
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
        sock.sendall(DRAFT.encode_request(body, api_version=0, correlation_id=1))
        assert sock.recv(64)


@pytest.mark.slow
@pytest.mark.requirement("K455-64")
def test_a_stuck_reassignment_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "wire.jsonl"
    options = ["--profile", "kip-455-new", "--topic", "foo=1", "--control", "127.0.0.1:0"]
    options += ["--broker-api", "3:4=0-2", "--clock", "manual", "--journal", str(journal)]
    with serving(*options) as (_, ready):
        url = ready["control"]
        start_a_reassignment(ready["brokers"]["1"])
        assert ctl(capsys, url, "join-isr", "foo-0", "2")[0] == 0
        code, _, err = ctl(capsys, url, "join-isr", "foo-0", "3")
        assert code == 1
        assert "broker 3 does not fetch foo-0" in err
        code, out, _ = ctl(capsys, url, "set-level", "3", "cluster")
        assert code == 0
        assert re.search(r"set_level  BrokerChanged  broker_id 3  apis \[\[4,0,2\]\] -> \[\]", out)
        assert ctl(capsys, url, "join-isr", "foo-0", "3")[0] == 1
        _, out, _ = ctl(capsys, url, "failover", "2", "--json")
        sent = [each for each in json.loads(out)["actions"] if each["kind"] == "LeaderAndIsrSent"]
        assert [(each["to"], each["versions"]) for each in sent] == [([1, 2, 3], [3, 3, 3])]
        assert ctl(capsys, url, "join-isr", "foo-0", "3")[0] == 0
        _, out, _ = ctl(capsys, url, "state", "--json")
        assert json.loads(out)["topics"]["foo"]["0"]["replicas"] == [2, 3]
    entries = list(read_journal(journal.read_text().splitlines(keepends=True)))
    versions = {
        (entry.broker_id, entry.api_version)
        for entry in entries
        if entry.api_key == 4 and entry.direction == "request"
    }
    assert {(2, 3), (3, 2)} <= versions


@pytest.mark.slow
def test_as_many_brokers_as_a_cluster_may_have() -> None:
    """Each has two listeners already: more than the 1024 files that are usual."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, HARD)); "
    limited = limited.replace("HARD", "resource.getrlimit(resource.RLIMIT_NOFILE)[1]")
    words = ["serve", "--brokers", "520", "--profile", "kafka-2.4"]
    code = f"{limited}from mockbroker.cli import main; main({words!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert len(json.loads(process.stdout.readline())["brokers"]) == 520
        finally:
            process.kill()


@pytest.mark.slow
def test_the_switch_is_off(tmp_path: Path) -> None:
    journal = tmp_path / "wire.jsonl"
    options = ["--profile", "kafka-2.4", "--topic", "foo=1", "--inter-broker", "off"]
    with serving(*options, "--journal", str(journal)) as (_, ready):
        assert len(ready["brokers"]) == 3
    assert list(read_journal(journal.read_text().splitlines(keepends=True))) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--broker-api", "4=0-2"], "BROKER:KEY=LOWEST-HIGHEST"),
        (["--broker-api", "9:4=0-2"], "no broker 9"),
        (["--broker-api", "2:4=0-99"], "not 0-99"),
        (["--broker-api", "2:nonsense"], "nonsense"),
        (["--broker-api", "2:kafka-2.0", "--broker-api", "2:4=0-1"], "a release or versions"),
        (["--external-broker", "2"], "ID=HOST:PORT"),
        (["--external-broker", "2=localhost"], "no port"),
        (["--external-broker", "1=localhost:9"], "broker 1 is the controller"),
        (["--external-broker", "2=h:9", "--external-broker", "2=h:8"], "given twice"),
        (["--external-broker", "2=h:9", "--inter-broker", "off"], "requests are off"),
    ],
)
def test_bad_usage_is_2_and_one_line(words, problem, capsys):
    assert run_here(["serve", "--profile", "kafka-2.4", *words]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert problem in line


async def test_a_level_over_http() -> None:
    async with controlled(profile="kip-455-new", clock="manual") as (mock, client):
        (changed,) = await client.step("set-level", broker=2, level="4=0-1,45=off")
        assert changed["after"]["apis"] == [[4, 0, 1], [45, 0, -1]]
        status, answer = await client.post("/set-level", json={"broker": 2, "level": 4})
        assert (status, answer) == (
            400,
            {"error": '"level" must be a string such as "4=0-2", not 4'},
        )
        assert mock.cluster.controller.broker(2).apis == ((4, 0, 1), (45, 0, -1))
