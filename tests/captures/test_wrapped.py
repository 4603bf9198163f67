"""Real captures in tunnels and over other links: the tables are those of the bare capture."""

import functools
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.captures.test_captures import uncompressed
from tests.captures.worse import HEADER, RECORD, records_of
from tests.captures.wrapping import WRAPPINGS, fragmented, wrapped
from tests.support.full import FULL, drawn
from tests.wiredump.spark.pipeline import LOCAL, pipeline, single
from wiredump import native

NAME = "kafka-4.4.0-admin"
WHERE_IT_STANDS = {"captured", "length", "link_type", "interface", "tunnel", "bytes", "source"}
"""Columns that tell of the records themselves."""

Tables = dict[str, list[dict[str, Any]]]


@functools.cache
def capture() -> bytes:
    whole = uncompressed(NAME)
    return whole if FULL else whole[:HEADER] + b"".join(records_of(whole)[:260])


def read(folder: Path, places: list[int]) -> Tables:
    """Every table, with packets by their number instead of their place, and connections likewise;
    of ``lineage`` and ``packets`` no more than the traffic has."""
    number = {place: rank for rank, place in enumerate(places)}
    found = {}
    for name in (*LOCAL, "account"):
        rows = [
            row
            for file in (folder / name).rglob("*.parquet")
            for row in pq.read_table(file).to_pylist()
        ]
        for row in rows:
            for column in ("packet", "connection", "ended_connection"):
                if row.get(column) is not None:
                    row[column] = number[row[column]]
            for column in WHERE_IT_STANDS - ({"bytes"} if name == "account" else set()):
                row.pop(column, None)
        found[name] = sorted(rows, key=repr)
    return found


def places_of(data: bytes) -> list[int]:
    places, at = [], HEADER
    for record in records_of(data):
        places.append(at)
        at += len(record)
    return places


@functools.cache
def bare(folder: Path) -> Tables:
    path = folder / "bare.pcap"
    path.write_bytes(capture())
    single([str(path)], folder / "bare", told=True)
    return read(folder / "bare", places_of(capture()))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return bare(tmp_path_factory.mktemp("bare"))


def tunnels(folder: Path, table: str) -> set[str | None]:
    return {
        row["tunnel"]
        for file in (folder / table).rglob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn("wrappings", [*WRAPPINGS], few=8))
def test_tables_are_those_of_the_bare_capture(name: str, expected: Tables, tmp_path: Path) -> None:
    """By the extension, by Python alone (which has the table of packets), by the stages of Spark's
    job."""
    wrapping = WRAPPINGS[name]
    data = wrapped(capture(), wrapping)
    path = tmp_path / "wrapped.pcap"
    path.write_bytes(data)
    places = places_of(data)
    single([str(path)], tmp_path / "told", told=True)
    assert read(tmp_path / "told", places) == expected
    for table in ("connections", "packets"):
        assert tunnels(tmp_path / "told", table) == {wrapping.tunnel}
    without = {**expected, "packets": []}
    single([str(path)], tmp_path / "quick")
    assert read(tmp_path / "quick", places) == without
    with native.using(None):
        single([str(path)], tmp_path / "pure")
    assert read(tmp_path / "pure", places) == without
    for engine in ("python", "quick"):
        pipeline([str(path)], tmp_path / engine, split_bytes=30_000, tasks=2, engines=(engine,) * 2)
        assert {**read(tmp_path / engine, places), "account": expected["account"]} == without
        assert tunnels(tmp_path / engine, "connections") == {wrapping.tunnel}


@pytest.mark.slow
def test_a_tunnel_whose_datagrams_come_in_fragments(expected: Tables, tmp_path: Path) -> None:
    """A packet is then the last fragment of its datagram."""
    data = fragmented(capture())
    path = tmp_path / "fragments.pcap"
    path.write_bytes(data)
    made = single([str(path)], tmp_path / "single")
    for table in ("frames", "requests", "bodies", "anomalies"):
        assert len(made[table]) == len(expected[table])
    assert tunnels(tmp_path / "single", "connections") == {"vxlan 7"}
    for engine in ("python", "quick"):
        found, _, _ = pipeline(
            [str(path)], tmp_path / engine, split_bytes=30_000, tasks=2, engines=(engine,) * 2
        )
        assert found == made


@pytest.mark.slow
def test_what_the_mirror_cut_is_missing(tmp_path: Path) -> None:
    """Mirrors of clouds cut packets before they wrap them: the tunnel's own length is short, and
    what follows it on the wire is none of ours."""
    vxlan = WRAPPINGS["vxlan"]
    cut = [record[RECORD : RECORD + 128] for record in records_of(capture())]
    head = wrapped(capture(), vxlan)[:HEADER]
    made = [vxlan.wrap(frame) + b"\xee" * 6 for frame in cut]
    data = head + b"".join(
        record[:8] + len(packet).to_bytes(4, "little") * 2 + packet
        for record, packet in zip(records_of(capture()), made, strict=True)
    )
    path, snapped = tmp_path / "mirrored.pcap", tmp_path / "snapped.pcap"
    path.write_bytes(data)
    snapped.write_bytes(
        capture()[:HEADER]
        + b"".join(
            record[:8] + len(frame).to_bytes(4, "little") + record[12:16] + frame
            for record, frame in zip(records_of(capture()), cut, strict=True)
        )
    )
    single([str(path)], tmp_path / "mirrored")
    single([str(snapped)], tmp_path / "snapped")
    assert read(tmp_path / "mirrored", places_of(data)) == read(
        tmp_path / "snapped", places_of(snapped.read_bytes())
    )
