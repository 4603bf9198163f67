"""``mockbroker serve``, ``ctl`` and ``profiles`` as a user runs them."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto.journal import read_journal
from mockbroker.cli import main
from mockbroker.profiles import all_profiles
from tests.mockbroker.serving.test_scripts import REQUEST, RESPONSE
from tests.support.requests import request_of

PATIENCE = 30
ROOT = Path(__file__).parents[3]


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mockbroker", "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        yield process, json.loads(first) if first else {}
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def end(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def run_here(words: list[str]) -> int:
    """The exit code of the command line in this process."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def ctl(capsys: pytest.CaptureFixture[str], url: str, *words: str) -> tuple[int, str, str]:
    code = run_here(["ctl", url, *words])
    out, err = capsys.readouterr()
    return code, out, err


def ask(address: str, body: Any, version: int) -> Any:
    import socket

    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
        sock.sendall(kproto.encode_request(body, api_version=version, correlation_id=1))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            chunk = sock.recv(65536)
            assert chunk, "closed"
            data += chunk
    return kproto.decode_response(data, api_key=body.API_KEY, api_version=version)[1]


# ---- serve ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_where_it_is_and_stops_cleanly(number: int) -> None:
    with serving("--brokers", "2", "--topic", "foo:2:2") as (process, ready):
        assert list(ready) == ["bootstrap", "brokers", "control", "listeners", "versions"]
        assert ready["versions"]["kproto"] == kproto.__version__
        assert ready["control"] is None
        assert list(ready["brokers"]) == ["1", "2"]
        assert ready["bootstrap"] == ",".join(ready["brokers"].values())
        for address in ready["brokers"].values():
            answer = ask(address, request_of("Metadata", topics=None), 12)
            assert {b.node_id: f"{b.host}:{b.port}" for b in answer.brokers} == {
                int(key): value for key, value in ready["brokers"].items()
            }
            assert answer.controller_id in (1, 2)
            assert [[p.replica_nodes for p in topic.partitions] for topic in answer.topics] == [
                [[1, 2], [2, 1]]
            ]
        assert end(process, number) == (0, "", "")


@pytest.mark.slow
def test_ctl_drives_what_serve_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "wire.jsonl"
    options = [
        "--brokers", "4", "--topic", "foo=1,2,3", "--control", "127.0.0.1:0", "--clock", "manual",
        "--profile", "kafka-2.4", "--api", "45=off", "--advertise", "localhost",
        "--advertise", "implemented", "--auto-progress", "500ms", "--journal", str(journal),
    ]  # fmt: skip
    with serving(*options) as (process, ready):
        url = ready["control"]
        answer = ask(ready["brokers"]["1"], request_of("ApiVersions"), 0)
        keys = {row.api_key for row in answer.api_keys}
        # The profile's keys that have an answer, but for the one switched off.
        assert keys >= {3, 18, 43, 46}
        assert not keys & {45, 60}
        assert ask(ready["brokers"]["1"], request_of("Metadata", topics=[]), 5).brokers[0].host == (
            "localhost"
        )
        # In the file before the client has its answer.
        entries = list(read_journal(journal.read_text().splitlines(keepends=True)))
        asked = [e.api_key for e in entries if e.direction == "request"]
        # The controller talks to its brokers meanwhile.
        assert [key for key in asked if key not in (4, 5, 6)] == [18, 3]

        code, out, _ = ctl(capsys, url, "state", "--json")
        assert (code, json.loads(out)["topics"]["foo"]["0"]["isr"]) == (0, [1, 2, 3])
        assert ctl(capsys, url, "leave-isr", "foo-0", "3")[0] == 0
        code, out, _ = ctl(capsys, url, "join-isr", "foo-0", "3", "--json")
        kinds = [action["kind"] for action in json.loads(out)["actions"]]
        # The target is recorded first; then the brokers are notified.
        assert kinds[:2] == ["ZnodeWritten", "PartitionChanged"]
        for words in (
            ["failover", "3"], ["stop-broker", "2"], ["start-broker", "2"],
            ["hold-metadata", "4"], ["release-metadata", "4"], ["advance", "500ms"],
        ):  # fmt: skip
            assert ctl(capsys, url, *words)[0] == 0, words
        code, out, _ = ctl(capsys, url, "log", "--json")
        causes = {action["cause"] for action in json.loads(out)}
        assert causes >= {"leave_isr", "join_isr", "failover", "stop_broker", "auto_progress"}
        code, out, _ = ctl(capsys, url, "state")
        assert "controller 3, epoch 2" in out
        code, out, _ = ctl(capsys, url, "log")
        assert "  join_isr  foo-0  R 1,2,3  I 1,2,3  leader 1 epoch 0" in out
        lines = out.splitlines()
        shown: Callable[[str], bool]
        for words, shown in (
            (["--kind", "BrokerChanged"], lambda line: "  BrokerChanged  " in line),
            (["--kind", "partitionchanged"], lambda line: "  R " in line and "->" not in line),
            (["--partition", "foo-9"], lambda line: False),
            (["--topic", "nope"], lambda line: False),
        ):
            code, out, _ = ctl(capsys, url, "log", *words)
            assert (code, out.splitlines()) == (0, [line for line in lines if shown(line)])
        code, out, _ = ctl(capsys, url, "log", "--partition", "foo-0", "--json")
        assert {action["topic"] for action in json.loads(out) if "topic" in action} == {"foo"}
        code, out, _ = ctl(capsys, url, "journal", "--api", "Metadata")
        assert "api 3 v5" in out

        code, out, err = ctl(capsys, url, "failover", "9")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "9" in err
        assert end(process, signal.SIGTERM)[0] == 0
    code, out, err = ctl(capsys, url, "state")
    assert (code, out, err.count("\n")) == (1, "", 1)


@pytest.mark.slow
def test_the_command_line_serves_a_new_schema(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "FrobnicateRequest.json").write_text(REQUEST)
    (folder / "FrobnicateResponse.json").write_text(RESPONSE)
    reply = tmp_path / "reply.json"
    reply.write_text('{"errorCode": 0, "verdict": "frobbed"}')
    mine = kproto.load_dialect(folder)
    with serving("--dialect", str(folder), "--reply", f"31000={reply}") as (_, ready):
        import socket

        host, port = ready["brokers"]["2"].split(":")
        request = mine.message("FrobnicateRequest")()
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
            sock.sendall(mine.encode_request(request, api_version=1, correlation_id=5))
            _, body = mine.decode_response(sock.recv(65536), api_key=31000, api_version=1)
        assert body.verdict == "frobbed"  # type: ignore[attr-defined]


@pytest.mark.slow
def test_brokers_have_the_static_configs_of_the_command_line() -> None:
    configs = {"message.max.bytes": "4096", "auto.create.topics.enable": "true"}
    options = [f"--broker-config={name}={value}" for name, value in configs.items()]
    with serving("--brokers", "7-7", *options) as (_, ready):
        resource = {"resource_type": 4, "resource_name": "7", "configuration_keys": [*configs]}
        answer = ask(ready["bootstrap"], request_of("DescribeConfigs", resources=[resource]), 4)
        described = {each.name: each for each in answer.results[0].configs}
        assert {name: each.value for name, each in described.items()} == configs
        # 4 is the source STATIC_BROKER_CONFIG.
        assert {each.config_source for each in described.values()} == {4}


@pytest.mark.slow
def test_a_taken_port_is_a_failed_operation() -> None:
    with serving("--brokers", "1") as (_, ready):
        done = subprocess.run(
            [sys.executable, "-m", "mockbroker", "serve", "--brokers", "1",
             "--listen", ready["bootstrap"]],
            capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "in use" in done.stderr


@pytest.mark.slow
def test_a_server_without_a_cluster_ends_with_its_standard_input() -> None:
    command = [sys.executable, "-m", "mockbroker", "serve", "--no-cluster", "--control"]
    with subprocess.Popen(
        [*command, "127.0.0.1:0", "--exit-on-stdin-eof"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["bootstrap"], ready["brokers"]) == ("", {})
        assert run_here(["ctl", ready["control"], "cluster", "add", "brokers=1"]) == 0
        process.stdin.write("not the end\n")
        process.stdin.flush()
        assert run_here(["ctl", ready["control"], "cluster", "list"]) == 0
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


BAD = [
    ["serve", "--brokers", "0"],
    ["serve", "--brokers", "x"],
    ["serve", "--profile", "kafka-9.9"],
    ["serve", "--topic", "foo:1:4"],
    ["serve", "--topic", "foo"],
    ["serve", "--topic", "foo=1,1"],
    ["serve", "--topic", "foo=9"],
    ["serve", "--topic", "foo:1:1", "--topic", "foo:1:1"],
    ["serve", "--topic", "a b:1:1"],
    ["serve", "--api", "45"],
    ["serve", "--api", "45=0-9"],
    ["serve", "--api", "999=0"],
    ["serve", "--api", "999=off"],
    ["serve", "--broker-config", "min.insync.replicas"],
    ["serve", "--broker-config", "=2"],
    ["serve", "--auto-progress", "soon"],
    ["serve", "--auto-progress", "0ms"],
    ["serve", "--clock", "sun"],
    ["serve", "--listen", "127.0.0.1"],
    ["serve", "--listen", "a..b:0"],
    ["serve", "--listen", "x" * 64 + ":0"],
    ["serve", "--control", "\udcff:0"],
    ["serve", "--listen", "127.0.0.1:99999"],
    ["serve", "--listen", "127.0.0.1:65535"],
    ["serve", "--advertise", "a:b:c"],
    ["serve", "--advertise", "a", "--advertise", "b"],
    ["serve", "--control", "nowhere"],
    ["serve", "--journal", "x.pcap"],
    ["serve", "--dialect", "/nonexistent"],
    ["serve", "--reply", "45"],
    ["serve", "--reply", "45=/nonexistent"],
    ["serve", "--faults", "x"],
    ["serve", "--replay", "x"],
    ["serve", "--replay-latency"],
    ["serve", "--sasl", "x"],
    ["serve", "--tls", "x"],
    ["serve", "--zookeeper", "x"],
    ["serve", "--no-cluster"],
    ["serve", "--no-cluster", "--control", "127.0.0.1:0", "--topic", "foo:1:1"],
    ["serve", "extra"],
    [],
    ["ctl"],
    ["ctl", "http://127.0.0.1:1"],
    ["ctl", "nonsense", "state"],
    ["ctl", "http://[zz]:1", "state"],
    ["ctl", "https://127.0.0.1:1", "state"],
    ["ctl", "http://127.0.0.1:1", "join-isr", "foo-0"],
    ["ctl", "http://127.0.0.1:1", "join-isr", "foo-0", "x"],
    ["ctl", "http://127.0.0.1:1", "fault"],
    ["profiles", "--nope"],
    ["nope"],
]


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_usage_is_2_and_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = run_here(words)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("mockbroker: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [[], ["serve"], ["ctl", "http://h:1"], ["ctl", "http://h:1", "log"], ["profiles"]]
)
def test_help_everywhere(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here([*words, "--help"]) == 0
    assert "Usage: mockbroker" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", "[]", "7" * 5000, "[" * 100_000], ids=range(4))
def test_a_reply_that_is_not_a_json_object(text, tmp_path, capsys):
    reply = tmp_path / "reply.json"
    reply.write_text(text)
    assert run_here(["serve", "--reply", f"45={reply}"]) == 2
    err = capsys.readouterr().err
    assert str(reply) in err
    assert err.count("\n") == 1


def test_a_journal_that_cannot_be_opened(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(["serve", "--journal", "/nonexistent/x.jsonl"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# ---- profiles ------------------------------------------------------------------------------------


def test_profiles_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(["profiles"]) == 0
    out = capsys.readouterr().out
    text = " ".join(out.split())
    for each in all_profiles():
        assert each.name in out
        assert each.summary in text
    # The terminal that is 80 columns wide loses none of it.
    assert max(len(line.rstrip()) for line in out.splitlines() if line.startswith("kafka-")) <= 80


def test_profiles_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(["profiles", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == [each.name for each in all_profiles()]
    assert [name for name, row in rows.items() if row["default"]] == ["kafka-4.4"]
    assert (rows["kafka-3.9"]["mode"], rows["kafka-3.9-zk"]["mode"]) == ("kraft", "zk")
    assert (rows["kafka-2.4"]["apis"]["45"], rows["kafka-4.1"]["apis"]["45"]) == ([0, 0], [0, 1])
    assert (rows["kafka-3.9"]["reassignment"], rows["kafka-3.9-zk"]["reassignment"]) == (
        "kraft",
        "zookeeper",
    )


def without(module: str, *words: str) -> subprocess.Popen[str]:
    """Run ``mockbroker`` as if an optional package were not installed."""
    code = (
        f"import sys; sys.modules[{module!r}] = None; "
        f"from mockbroker.cli import main; main({list(words)!r})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("C-01")
def test_serve_without_uvloop() -> None:
    process = without("uvloop", "serve", "--brokers", "1")
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["bootstrap"]
        assert len(ask(address, request_of("Metadata", topics=[]), 9).brokers) == 1
        assert end(process, signal.SIGTERM) == (0, "", "")
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@pytest.mark.slow
def test_the_command_line_imports_no_codec() -> None:
    """Shell scripts call ``ctl`` in loops, so it imports no message module and no aiohttp."""
    code = (
        "import sys; import mockbroker.cli.ctl, mockbroker.cli.profiles, mockbroker.cli.serve; "
        "slow = ('kproto.messages', 'aiohttp', 'construct'); "
        "print([name for name in sys.modules if name.startswith(slow)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


# ---- refusals ------------------------------------------------------------------------------------


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that sends ``answer`` to everyone, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield "http://{}:{}".format(*server.getsockname())
        server.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>", "HTTP 404, and not JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "HTTP 200, and not JSON"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP response"),
        (b"", "no HTTP response"),  # a Kafka broker, which closes the connection
    ],
)
def test_ctl_names_a_port_that_is_no_control_port(answer, problem, capsys):
    with answering(answer) as url:
        code, out, err = ctl(capsys, url, "state")
    assert (code, out) == (1, "")
    assert err.startswith(f"mockbroker: {url} is not a control port: {problem}; the URL is ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_a_port_in_use_is_named_with_its_option(option, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())
        assert run_here(["serve", "--brokers", "1", option, address]) == 1
    assert capsys.readouterr().err == (
        f"mockbroker: {option}: cannot listen on {address}: address already in use; "
        "port 0 takes a free one\n"
    )


def test_a_reply_with_a_field_that_the_response_lacks_is_refused(tmp_path, capsys):
    path = tmp_path / "reply.json"
    path.write_text('{"throttleTimeMs": 0, "errorCode": 0, "groups": [], "bogus": 1}')
    assert run_here(["serve", "--reply", f"16={path}"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mockbroker: --reply 16: ListGroupsResponse has no field 'bogus'; ")


@pytest.mark.slow  # a process
def test_versions_that_a_reply_does_not_fit_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "reply.json"
    path.write_text('{"coordinators": [{"key": "g", "nodeId": 1, "host": "h", "port": 9}]}')
    with serving("--brokers", "1", "--reply", f"10={path}") as (process, _):
        code, _, err = end(process, signal.SIGTERM)
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith(
        "mockbroker: --reply 10 fits versions 4, 5, 6 of FIND_COORDINATOR, not all of 0-6;"
    )
