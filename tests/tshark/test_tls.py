"""TLS by the same key log: tshark's plaintext is ours, byte by byte."""

import re
from pathlib import Path

import pytest

from tests.support.toolchain import require
from tests.tshark.pdml import tshark
from tests.wiredump.talk import say
from tests.wiredump.tls.recorded import (
    SERVER,
    SUITES,
    capture_of,
    client_context,
    in_memory,
    packets_of,
    server_context,
)
from wiredump.model import Exchange
from wiredump.sources import open_sources

pytestmark = pytest.mark.slow


def followed(capture: Path, log: Path) -> dict[bool, bytes]:
    """What tshark reads of the one connection, by whether the server said it."""
    arguments = ("-o", f"tls.keylog_file:{log}", "-q", "-z", "follow,tls,raw,0")
    with tshark(capture, *arguments) as process:
        assert process.stdout is not None
        text = process.stdout.read().decode()
    assert process.returncode == 0
    found = {False: b"", True: b""}
    # Node 0, whose lines are not indented, is who has the first record that opens: of TLS 1.3 that
    # is the server, with its session tickets.
    turned = "Node 0: {}:{}".format(*SERVER) in text
    for line in text.splitlines():
        if re.fullmatch(r"\t?[0-9a-f]+", line):
            found[line.startswith("\t") != turned] += bytes.fromhex(line.strip())
    return found


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name[:28] or "TLS 1.3")
def test_the_plaintext(tmp_path, suite, rng, figures):
    require("tshark")
    capture, log = tmp_path / "capture.pcap", tmp_path / "keys.log"
    said = [say(rng, number) for number in range(40)]
    passages, _ = in_memory(said, client_context(log, suite), server_context(suite))
    capture.write_bytes(capture_of(packets_of(passages, 1460)))
    mine = {False: b"", True: b""}
    for item in open_sources([str(capture)], keylog=str(log)):
        assert isinstance(item, Exchange)
        for frame in (item.request, item.response):
            if frame is not None:
                assert frame.offset == len(mine[frame.direction == "response"])
                mine[frame.direction == "response"] += frame.raw
    assert mine == followed(capture, log)
    assert mine[False] == b"".join(each.request for each in said)
    figures.append(f"{sum(map(len, mine.values()))} bytes of plaintext within TLS agree")
