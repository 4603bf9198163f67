"""The table ``packets``: each packet once, as another library reads it, and its bytes where the
account, the frames and the anomalies say that they went. (That Spark's is the same, and that of
several processes, is shown where all tables are compared.)"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dpkt
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wiredump.spark.made_up import capture
from wiredump.cli import cli
from wiredump.readers import Anomaly, Capture, Packet
from wiredump.rows.packets import PIECE
from wiredump.rows.schema import TABLES
from wiredump.sources import open_sources
from wiredump.tables.table_rows import TableRows

Row = dict[str, Any]
TOLD = ("frames", "anomalies", "packets", "connections")


def tables_of(path: Path) -> tuple[dict[str, list[Row]], dict[str, int]]:
    found: dict[str, list[Row]] = {name: [] for name in TOLD}
    columns = {name: [column.name for column in TABLES[name].columns] for name in TOLD}

    def add(name: str, row: Any) -> None:
        found[name].append(dict(zip(columns[name], row, strict=True)))

    sources = open_sources([str(path)])
    sources.packets_to(lambda row: add("packets", row))
    rows = TableRows(tables=TOLD, bodies=False)
    for item in sources:
        for name, row in rows.add(item):
            add(name, row)
    for name, row in rows.end(sources.connections, [], {}):
        add(name, row)
    return found, dict(sources.account)


def read_by_dpkt(packet: Packet) -> Row | None:
    """Of an unfragmented IPv4 packet that was captured whole, as far as its headers."""
    if packet.link_type != 1 or len(packet.data) != packet.original_length:
        return None
    ip = dpkt.ethernet.Ethernet(bytes(packet.data)).data
    if (
        not isinstance(ip, dpkt.ip.IP)
        or ip.mf
        or ip.offset
        or not isinstance(ip.data, dpkt.tcp.TCP)
    ):
        return None
    tcp = ip.data
    return {
        "source": str(ip_address(ip.src)), "source_port": tcp.sport,
        "destination": str(ip_address(ip.dst)), "destination_port": tcp.dport,
        "sequence": tcp.seq, "acknowledgement": tcp.ack, "flags": tcp.flags & 0xFF,
        "window": tcp.win, "payload": len(tcp.data), "missing": 0, "problem": None,
    }  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32), share=st.sampled_from([0, 0.1, 0.5]),
    odd=st.sampled_from([0, 0.2]), end=st.floats(0.3, 1),
)  # fmt: skip
def test_each_packet_is_there_and_its_bytes_are_where_it_says(
    tmp_path: Path, seed: int, share: float, odd: float, end: float
) -> None:
    path = tmp_path / "a.cap"
    whole = capture(seed, exchanges=8, share=share, odd=odd)
    path.write_bytes(whole[: int(len(whole) * end)])
    told, account = tables_of(path)
    rows = {row["packet"]: row for row in told["packets"]}
    assert len(rows) == len(told["packets"])

    # Every packet, and of records that could not be read those of packets. All are TCP, or damaged.
    records = list(Capture(str(path)))
    kept = {each.offset for each in records if isinstance(each, Packet) or each.kind == "packet"}
    malformed = {row["packet"] for row in told["anomalies"] if row["kind"] == "malformed"}
    assert set(rows) <= kept
    for each in records:
        if isinstance(each, Anomaly):
            continue
        row = rows[each.offset]
        shown = (row["timestamp_ns"], row["link_type"], row["captured"], row["length"])
        assert shown == (each.timestamp_ns, each.link_type, len(each.data), each.original_length)
        assert row["interface"] == each.interface
        assert (row["problem"] is not None) == (row["connection"] is None)
        assert (row["problem"] not in (None, PIECE)) == (each.offset in malformed)
        expected = read_by_dpkt(each)
        if expected is not None:
            assert {name: row[name] for name in expected} == expected

    # Where the bytes went.
    segments = [row for row in told["packets"] if row["connection"] is not None]
    of_none = [row for row in told["anomalies"] if row["connection"] is None]
    assert account["payload"] == sum(row["payload"] for row in segments) + sum(
        row["bytes"] for row in of_none
    )
    again = account["retransmitted"] + account.get("copies", 0)
    assert again == sum(row["retransmitted"] for row in segments)
    assert {row["connection"] for row in segments} == {
        row["connection"] for row in told["connections"]
    }
    for frame in told["frames"]:
        row = rows[frame["packet"]]
        assert row["connection"] == frame["connection"]
        assert row["timestamp_ns"] == frame["first_ns"]
        assert row["offset"] <= frame["offset"] < row["offset"] + row["payload"]
    of_tcp = ("late", "before-start", "after-close", "out-of-window", "reset")
    assert sum(row["anomalous"] for row in segments) == sum(
        row["bytes"] for row in told["anomalies"] if row["kind"] in of_tcp
    )


def test_made_only_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture(3))
    for number, (options, made) in enumerate(
        [
            ([], False),
            (["--packets"], True),
            (["--no-bodies", "--packets"], True),
            (["--tables", "frames,packets"], True),
            (["--tables", "frames", "--packets"], True),
            (["--tables", "frames"], False),
        ]
    ):
        out = tmp_path / f"{number}"
        arguments = ["table", str(path), "--out", str(out), *options]
        result = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert result.exception is None
        assert (out / "packets").exists() == made
        assert (out / "frames").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka-4.4.0-admin", "kafka-2.4.1-everyday-2"])
def test_real_captures(name: str) -> None:
    from tests.captures.reading import file_of

    told, account = tables_of(Path(file_of(name)))
    assert sum(row["payload"] for row in told["packets"]) == account["payload"] > 0
    assert all(row["problem"] is None for row in told["packets"])
