"""``--keylog`` of the commands: what they say of a connection in TLS is what they say of it in
plaintext."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.wiredump.talk import say
from tests.wiredump.tls.recorded import (
    capture_of,
    client_context,
    in_memory,
    packets_of,
    plain,
    server_context,
)
from wiredump.cli import main


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in TLS, with its key log, and without."""
    folder = tmp_path_factory.mktemp("captures")
    rng = random.Random(7)
    said = [say(rng, number) for number in range(30)]
    passages, _ = in_memory(said, client_context(folder / "keys.log"), server_context())
    (folder / "tls.pcap").write_bytes(capture_of(packets_of(passages)))
    (folder / "plain.pcap").write_bytes(capture_of(packets_of(plain(said))))
    return folder


def wiredump(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    out = capsys.readouterr()
    return ended.value.code or 0, out.out, out.err


def test_show(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = captures / "keys.log"
    code, secret, err = wiredump(capsys, "show", captures / "tls.pcap", "--keylog", log, "--json")
    assert (code, err) == (0, "")
    _, clear, _ = wiredump(capsys, "show", captures / "plain.pcap", "--json")
    shown = []
    for text in (secret, clear):
        *lines, summary = map(json.loads, text.splitlines())
        shown.append([(each["api"], each["correlation_id"], each["request"]["body"])
                      for each in lines])  # fmt: skip
        assert summary["anomalies"] == {}
    assert shown[0] == shown[1]
    assert summary["account"].keys() >= {"payload", "frames"}
    assert "tls" not in summary["account"]
    _, without, err = wiredump(capsys, "show", captures / "tls.pcap", "--no-summary")
    assert err.endswith(" payload bytes were not read: 100 % TLS without keys; try --keylog\n")
    assert all("nothing inside can be read" in line for line in without.splitlines())


@pytest.mark.slow
def test_table_and_audit_and_extract(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, found = captures / "keys.log", {}
    for name, more in (("tls", ["--keylog", log]), ("plain", [])):
        capture, out = captures / f"{name}.pcap", tmp_path / name
        code, text, _ = wiredump(capsys, "table", capture, "--out", out, "--json", *more)
        assert code == 0
        written = json.loads(text)["bytes"]
        audit = wiredump(capsys, "audit", capture, "--to", "kafka-4.1", "--json", *more)
        extract = wiredump(capsys, "extract", capture, "--connection", 0, "--out", "-", *more)
        assert extract[0] == 0
        exchanges = [
            {key: value for key, value in json.loads(line).items() if key != "at_ms"}
            for line in extract[1].splitlines()[1:]
        ]
        for each in exchanges:
            each.pop("latency_ms", None)
        bodies = pq.read_table(out / "bodies", columns=["api_key", "direction", "body"])
        found[name] = (audit, exchanges, bodies.to_pylist(), written["frames"])
    assert found["tls"] == found["plain"]
    account = {
        row["what"]: row["bytes"] for row in pq.read_table(tmp_path / "tls" / "account").to_pylist()
    }
    assert account["payload"] == account["frames"] + account["tls"]


def test_a_key_log_that_is_none(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "keys.log"
    log.write_text("not a key log\n")
    for path, told in ((log, "line 1: not a line of a key log"), (tmp_path / "none", "none")):
        for command in (["show"], ["table", "--out", tmp_path / "out"]):
            code, out, err = wiredump(capsys, *command, captures / "tls.pcap", "--keylog", path)
            assert (code, out) == (1, "")
            assert told in err
            assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
