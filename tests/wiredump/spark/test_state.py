"""State that an earlier release wrote: ``states`` has that of the last one with version 4, after
``before.pcap``, as ``spark --follow`` wrote it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.pipeline import load
from tests.wiredump.spark.rotating import follow, one_process
from wiredump.spark.rotation import Rotation
from wiredump.spark.state import STATE_VERSION, State, StateError, StateReader
from wiredump.spark.stream_folder import Planned, Record, StreamFolder, Taken
from wiredump.tables.parts import Counts

__all__ = ["session"]

STATES = Path(__file__).with_name("states")
TABLES = ("connections", "requests", "frames")


def test_a_stream_goes_on_from_the_version_before(tmp_path: Path, session: FakeSession) -> None:
    """Connections have what came before and after, requests that waited get their responses."""
    files = [tmp_path / "in" / name for name in ("a.pcap", "b.pcap")]
    files[0].parent.mkdir()
    for source, target in zip(("before.pcap", "after.pcap"), files, strict=True):
        shutil.copy(STATES / source, target)
    stream = follow(tmp_path / "in", tmp_path, TABLES, partitions=1)
    stream.begin(session)
    store = StreamFolder(stream.folder)
    index, data = (tmp_path / "checkpoint" / "wiredump" / kind for kind in ("state", "data"))
    for folder, name in ((index, "index"), (data, "data")):
        (folder / "000001").mkdir(parents=True)
        shutil.copy(STATES / f"version-4-{name}", folder / "000001" / "part-00000")
    size = (STATES / "version-4-data").stat().st_size
    state = State("state/000001/part-00000", ENTRIES, "", {1: (size, size)})
    first, second = Rotation(str(tmp_path / "in")).new({}, None).files
    store.commit(
        Record(
            batch=1, files=[Taken(0, first)], count=1, last=first, newest_ns=first.first_ns or 0,
            state={0: state}, read={0: first.size}, total=Counts(expected=EXPECTED),
        )
    )  # fmt: skip
    record = stream.batch.run(session, 2, Planned(files=[Taken(1, second)]))
    written = (tmp_path / "checkpoint" / "wiredump" / record.state[0].index).read_bytes()
    assert msgspec.json.decode(written.splitlines()[0])["version"] == STATE_VERSION
    made = stream.complete(session, ending=True)
    expected = one_process(files, tmp_path / "one", TABLES)
    found = load(tmp_path / "out", TABLES)
    assert without_attempts(found["connections"]) == without_attempts(expected["connections"])
    assert made.account["payload"] > EXPECTED
    assert found["requests"]
    assert set(found["requests"]) < set(expected["requests"])
    assert set(found["frames"]) < set(expected["frames"])


def without_attempts(rows: list[str]) -> list[str]:
    """Without the counts of SYN and SYN-ACK and the first sequence numbers, which states of version
    4 lack."""
    lacking = r"'(syns|syn_acks|client_sequence|broker_sequence)': (\d+|None)"
    return [re.sub(lacking, "", row) for row in rows]


ENTRIES = 3
EXPECTED = 7408
"""The connections in that state, and the bytes of payload in ``before.pcap``."""


def test_a_version_that_nobody_reads(tmp_path: Path) -> None:
    place = tmp_path / "index"
    place.write_bytes(b'{"what":"wiredump state","version":99}\n')
    state = State(str(place), 0, "", {})
    with pytest.raises(StateError, match="has state version 99, but this release reads 4 to 6"):
        list(StateReader(state, str))
