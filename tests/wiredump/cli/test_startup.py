"""A run imports what it needs, and no more: most runs are over small captures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from kproto.dialects import DIALECTS, Dialect, dialect
from kproto.records import Record, build_batch
from tests.wiredump.rows.test_batches import metadata, produce
from tests.wiredump.spark.made_up import pcap
from wiredump.native import quick

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "tests/captures/kafka-4.4.0-admin.pcap.zst"

_RUN = """
import sys
from {package} import main
sys.argv[0] = {name!r}
try:
    main()
finally:
    print("modules", *sorted(sys.modules))
"""

HEADERS = {"_index", "request_header", "response_header"}


def imported(package: str, *arguments: str) -> set[str]:
    """The modules there are at the end of a run that succeeds."""
    code = _RUN.format(package=package, name=package.partition(".")[0])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = set(done.stdout.splitlines()[-1].split())
    assert found >= {"modules", "kproto", "click"}
    return found


def messages(modules: set[str]) -> set[str]:
    head = "kproto.messages."
    return {name.removeprefix(head) for name in modules if name.startswith(head)}


@pytest.mark.slow
def test_frames_take_neither_bodies_nor_what_shows_them(tmp_path: Path) -> None:
    modules = imported(
        "wiredump.cli",
        "table", str(CAPTURE), "--tables", "frames", "--no-bodies", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert list((tmp_path / "out/frames").glob("run=*/part-0.parquet"))
    assert not modules & {"construct", "rich", "cryptography", "wiredump.cli.show"}
    if quick() is not None:  # else rows are objects, which pyarrow takes more for
        assert not modules & {"pandas", "pyarrow.compute", "kproto.records"}
        # Bodies are looked into for the client's software alone, and where drafts share a key.
        looked_into = {"api_versions", "alter_partition_reassignments"}
        looked_into |= {"list_partition_reassignments"}
        directions = ("request", "response")
        most = {f"{api}_{direction}" for api in looked_into for direction in directions}
        assert messages(modules) <= HEADERS | most


@pytest.mark.slow
@pytest.mark.parametrize("version", [9, 13])
def test_records_in_bulk_take_no_pandas(tmp_path: Path, version: int) -> None:
    """Which ``pyarrow`` imports to make an array of objects: longer than many a capture takes. Nor
    ``pyarrow.compute``, but to name topics that were named too late."""
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1448)
    batch = build_batch([Record(value=bytes(9))] * 50)
    packets = talk.open()
    for exchange in (produce(batch, version), metadata(2)):
        packets += talk.send(exchange.request.raw)
        packets += talk.send(exchange.response.raw, from_server=True)
    frames = [ethernet_frame(packet) for packet in packets]
    place = tmp_path / "one.pcap"
    place.write_bytes(pcap([(at, frame, len(frame)) for at, frame in enumerate(frames)]))
    out = str(tmp_path / "out")
    modules = imported("wiredump.cli", "table", str(place), "--tables", "records", "--out", out)
    assert list((tmp_path / "out/records").glob("run=*/part-0.parquet"))
    if quick() is not None:
        assert not modules & {"construct", "rich", "cryptography", "pandas"}
        assert version == 13 or "pyarrow.compute" not in modules


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "table", "audit"])
def test_help_takes_no_message_and_no_arrow(command: str) -> None:
    modules = imported("wiredump.cli", command, "--help")
    assert f"wiredump.cli.{command}" in modules
    assert messages(modules) <= HEADERS
    assert not modules & {"construct", "pandas", "numpy", "pyarrow", "cryptography"}


def test_the_version_takes_no_message_at_all() -> None:
    modules = imported("kproto.__main__", "--version")
    assert not messages(modules)
    others = {"construct", "pandas", "numpy", "rich", "kproto.cli.codec", "kproto.dialects"}
    assert not modules & others


@pytest.mark.parametrize("name", DIALECTS)
def test_versions_are_those_of_the_classes(name: str) -> None:
    codec = dialect(name)
    requests = {key: api.request for key, api in codec.apis.items()}
    assert codec.request_versions() == {k: each.VALID_VERSIONS for k, each in requests.items()}
    flexible = {k: each.FLEXIBLE_VERSIONS for k, each in requests.items()}
    assert codec.request_versions(flexible=True) == flexible


@pytest.mark.parametrize("name", [name for name in DIALECTS if name not in ("kafka", "auto")])
def test_own_requests_are_those_whose_class_differs(name: str) -> None:
    codec = dialect(name)
    assert codec.base is not None
    assert codec.own_requests == {
        key for key, api in codec.apis.items() if api.request is not _request(codec.base, key)
    }


def _request(codec: Dialect, key: int) -> object:
    return codec.apis[key].request if key in codec.apis else None
