"""What is no capture, or has nothing in it that can be read: every command says so, and fails; and
packets without TCP are counted."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kproto.capture import container
from tests.captures.reading import read
from tests.captures.test_captures import uncompressed
from tests.captures.wrapping import ethernet, ipv4, udp
from tests.wiredump.spark.pipeline import read_all
from wiredump.cli import cli
from wiredump.skipped import bytes_of
from wiredump.sources import open_sources

NAME = "mock-4.4"
TIME = 1_700_000_000 * 10**9

COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "show": lambda capture, folder: ["show", str(capture)],
    "table": lambda capture, folder: ["table", str(capture), "--out", str(folder / "out")],
    "packets": lambda capture, folder: [
        "table", str(capture), "--out", str(folder / "out"), "--packets"
    ],
    "audit": lambda capture, folder: ["audit", str(capture), "--to", "kafka-4.1"],
    "report": lambda capture, folder: ["report", str(capture), "--out", str(folder / "page")],
    "extract": lambda capture, folder: ["extract", str(capture), "--out", str(folder / "out")],
}  # fmt: skip


def others(link_type: int = 1) -> bytes:
    """Two UDP packets and an ARP request."""
    frames = [ethernet(0x0800, ipv4(17, udp(53, bytes(20))))] * 2 + [ethernet(0x0806, bytes(28))]
    records = b"".join(container.pcap_record(TIME, frame) for frame in frames)
    return container.pcap_header(link_type) + records


FILES: dict[str, tuple[bytes, str]] = {
    "no TCP": (others(), "its packets have no TCP: 2 udp, 1 arp"),
    "an unknown link": (others(147), "its packets have no TCP: 3 link type 147"),
    "no capture": (bytes(range(200)), "neither pcap nor pcapng: begins with 00010203"),
    "nothing": (b"", "the capture is empty"),
    "half a header": (others()[:20], "ends inside the file header"),
    "snoop": (b"snoop\0\0\0" + bytes(30), "neither pcap nor pcapng: a snoop file (RFC 1761)"),
    "damaged gzip": (b"\x1f\x8b\x08" + b"\xff" * 50, "gzip: "),
    "damaged xz": (b"\xfd7zXZ\0" + b"\xff" * 50, "xz: "),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_fails_with_a_line(name: str, command: str, tmp_path: Path) -> None:
    data, reason = FILES[name]
    capture = tmp_path / "capture"
    capture.write_bytes(data)
    result = CliRunner().invoke(cli, COMMANDS[command](capture, tmp_path), standalone_mode=False)
    assert str(result.exception).startswith(f"{capture}: nothing could be read: {reason}")


@pytest.mark.slow
@pytest.mark.usefixtures("every_process")
def test_several_processes_say_so_once(tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(others())
    arguments = ["table", str(capture), "--out", str(tmp_path / "out"), "--jobs", "2"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert "its packets have no TCP: 2 udp, 1 arp" in str(result.exception)


def test_one_of_two_captures(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.pcap", tmp_path / "bad.pcap"
    good.write_bytes(uncompressed(NAME))
    bad.write_bytes(others())
    source = open_sources([str(good), str(bad)])
    assert len(list(source))
    assert source.unread == {str(bad): ""}


@pytest.mark.parametrize("dates", [[], ["--dates"]])
def test_a_cut_end_has_a_place_and_no_time(dates: list[str], tmp_path: Path) -> None:
    capture = tmp_path / "cut.pcap"
    whole = uncompressed(NAME)
    capture.write_bytes(whole[: len(whole) * 3 // 4])
    result = CliRunner().invoke(cli, ["show", str(capture), *dates])
    assert re.search(r"^- !! truncated: .*\[capture 0, byte \d+\]$", result.stdout, re.M)


@pytest.mark.slow
@pytest.mark.usefixtures("every_process")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_packets_without_tcp_are_counted(jobs: str, tmp_path: Path) -> None:
    """In what commands print, in the table, in the report; the rest is read as ever."""
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(uncompressed(NAME) + others()[24:])
    skipped = {"arp": 1, "udp": 2}
    out = tmp_path / "out"
    run = CliRunner().invoke
    made = run(cli, ["table", str(capture), "--out", str(out), "--jobs", jobs, "--json"])
    assert json.loads(made.stdout)["skipped"] == skipped
    assert json.loads(made.stdout)["bytes"] == bytes_of(read(NAME).account)
    rows = [row for file in (out / "account").glob("*") for row in pq.read_table(file).to_pylist()]
    assert {row["what"]: row["packets"] for row in rows if row["packets"]} == skipped
    shown = run(cli, ["show", str(capture), "--json"]).stdout.splitlines()[-1]
    assert json.loads(shown)["skipped"] == skipped
    audit = ["audit", str(capture), "--to", "kafka-4.1", "--json", "--jobs", jobs]
    assert json.loads(run(cli, audit).stdout)["skipped"] == skipped
    page = run(cli, ["report", str(capture), "--out", "-", "--jobs", jobs]).stdout
    assert "3 packets carry no TCP that could be read" in page
    chosen = ["extract", str(capture), "--out", str(tmp_path / "x"), "--connection", "1"]
    assert "packets without TCP: 1 arp, 2 udp" in run(cli, chosen).stderr


def test_parts_of_a_capture_count_each_packet_once(tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(uncompressed(NAME) + others()[24:])
    _, notes, _ = read_all([str(capture)], 5_000)
    assert len(notes) > 3
    assert sum(note.others.get("udp", 0) for note in notes) == 2
    assert sum(note.others.get("arp", 0) for note in notes) == 1


def lz4(data: bytes) -> bytes:
    frame = pytest.importorskip("lz4.frame")
    return bytes(frame.compress(data))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, lz4])
def test_compressed_captures(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Whole; in two streams; and cut, which is an anomaly and no traceback."""
    data = uncompressed(NAME)
    path = tmp_path / "packed"
    for packed in (pack(data), pack(data[:9_000]) + pack(data[9_000:])):
        path.write_bytes(packed)
        source = open_sources([str(path)])
        assert len(list(source)) == len(read(NAME).items)
        assert source.account == read(NAME).account
    path.write_bytes(pack(data)[:-40])
    source = open_sources([str(path)])
    kinds = [getattr(item, "kind", "") for item in source]
    assert {"truncated", "damaged"} & {*kinds}
    assert source.account["payload"] <= read(NAME).account["payload"]
