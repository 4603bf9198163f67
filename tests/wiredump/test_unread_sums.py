"""Each captured byte of payload is read, repeats an earlier one, or is unread for one reason; and
the figures are the same for one process, several, both engines and Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.captures.test_captures import uncompressed
from tests.captures.test_damaged import snapped
from tests.captures.worse import HEADER, made_worse, records_of
from tests.support.toolchain import require_module
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.unread_captures import (
    SAMPLES,
    Line,
    Sample,
    heartbeat,
    heartbeats,
    merged,
    sample,
)
from wiredump import native
from wiredump.model import Exchange, Item
from wiredump.readers.share import Share
from wiredump.skipped import distinct_of, requests_of, unread_of
from wiredump.sources import open_sources
from wiredump.tables import jobs
from wiredump.tables.making import make
from wiredump.tables.work import Work
from wiredump.unread import Unread

__all__ = ["session"]

NAMES = [each.name for each in SAMPLES]
TABLES = ("lineage", "account", "connections", "requests", "anomalies")


def written(each: Sample, folder: Path) -> dict[int, str]:
    paths = {number: str(folder / f"{number}.pcap") for number in range(len(each.parts))}
    for number, part in enumerate(each.parts):
        Path(paths[number]).write_bytes(part)
    return paths


@pytest.fixture(params=["quick", "python"])
def _ways(request: pytest.FixtureRequest) -> Iterator[None]:
    with native.using(native.built() if request.param == "quick" else None):
        yield


def is_true(account: Mapping[str, int], each: Sample) -> None:
    assert account["payload"] == each.payload
    assert unread_of(account) == dict(each.unread)
    assert requests_of(account) == each.requests
    assert each.payload - distinct_of(account) == each.repeated


# ---- the truth, on all ways ---------------------------------------------------------------------


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("name", NAMES)
def test_one_process(name: str, tmp_path: Path) -> None:
    each = sample(name)
    sources = open_sources(list(written(each, tmp_path).values()), rotated=each.rotated)
    adds_up(list(sources), sources.account)
    is_true(sources.account, each)


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("name", [each.name for each in SAMPLES if not each.rotated])
def test_several_processes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of connections and, with the extension, of exchanges; one after the other."""

    def share_out(task: Callable[[Share], Any], count: int, _progress: object) -> list[Any]:
        return [task(Share(each, count)) for each in range(count)]

    monkeypatch.setattr(jobs, "share_out", share_out)
    work = Work(out=str(tmp_path / "out"), paths=written(sample(name), tmp_path), tables=TABLES)
    is_true(jobs.make_tables_in_processes(work, 3).account, sample(name))


@pytest.mark.parametrize("split_bytes", [400, 1 << 20])
@pytest.mark.parametrize("name", NAMES)
def test_spark(name: str, split_bytes: int, session: FakeSession, tmp_path: Path) -> None:
    require_module("pyspark")
    from wiredump.spark.connections import Options
    from wiredump.spark.job import Job

    each = sample(name)
    options = Options(out=str(tmp_path / "out"), paths=written(each, tmp_path), tables=TABLES)
    job = Job(options=options, split_bytes=split_bytes, partitions=2, rotated=each.rotated)
    made = job.run(session)  # type: ignore[arg-type] # as much of a session as it takes
    is_true(made.account, each)
    one = make(Work(out=str(tmp_path / "one"), paths=options.paths, tables=TABLES),
               rotated=each.rotated)  # fmt: skip
    assert dict(one.account) == dict(made.account)


@pytest.mark.parametrize("name", [each.name for each in SAMPLES if not each.rotated])
def test_a_stream_at_its_end(name: str, session: FakeSession, tmp_path: Path) -> None:
    """The capture comes in three files, of which each begins where the one before ends."""
    require_module("pyspark")
    from tests.wiredump.spark.rotating import follow, to_the_end

    (data,) = sample(name).parts
    records = records_of(data)
    place = tmp_path / "in"
    place.mkdir()
    for number in range(3):
        part = records[len(records) * number // 3 : len(records) * (number + 1) // 3]
        (place / f"r.pcap{number or ''}").write_bytes(data[:HEADER] + b"".join(part))
    made = to_the_end(session, follow(place, tmp_path, TABLES, max_bytes=1))
    is_true(made.account, sample(name))


@pytest.mark.usefixtures("_ways")
def test_a_limit_of_memory(tmp_path: Path) -> None:
    """So many requests wait behind a lost one that its place is given up before it comes."""
    line = Line(9092)
    size = heartbeats(line)
    late = heartbeat(105)
    line.skip(0, len(late))
    behind = sum(line.send(0, heartbeat(number)) for number in range(106, 306))
    size += behind + line.again(0, late, behind + len(late))
    path = tmp_path / "limited.pcap"
    path.write_bytes(merged(line))
    sources = open_sources([str(path)], memory=64 << 10)
    adds_up(list(sources), sources.account)
    unread: dict[Unread, int] = {"reassembly-limit": len(late)}
    is_true(sources.account, Sample("", [], size, unread, 205))


# ---- captures of real traffic -------------------------------------------------------------------


def adds_up(items: list[Item], account: Mapping[str, int]) -> None:
    """Every byte of payload is somewhere, by sums over the items alone."""
    frames, outside = 0, Counter[str]()
    for item in items:
        if isinstance(item, Exchange):
            for frame in (item.request, item.response):
                frames += frame.size - frame.missing if frame is not None else 0
        elif item.size:
            assert item.unread is not None
            outside[item.unread] += item.size
    unread = Counter(unread_of(account))
    within = unread - outside
    assert not outside - unread
    differing = within.pop("differing", 0)
    read = frames - within.total() + account.get("tls", 0) + account.get("prologues", 0)
    repeated = account["retransmitted"] - differing
    assert account["payload"] == read + unread.total() + repeated
    assert distinct_of(account) == account["payload"] - repeated


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("how", ["lossy", "middle", "reversed parts", "snapped", "spoiled"])
@pytest.mark.parametrize("name", ["kafka-4.4.0-admin", "kafka-2.4.1-everyday-1", "mock-4.4"])
def test_what_is_lost_of_real_traffic_is_named(
    name: str, how: str, tmp_path: Path, rng: random.Random
) -> None:
    capture = uncompressed(name)
    records = records_of(capture)
    parts = [capture]
    match how:
        case "lossy":
            parts = [made_worse(capture, rng, lost=0.05, repeated=0.05, late=0.05)]
        case "middle":
            start = rng.randrange(len(records) // 2)
            parts = [capture[:HEADER] + b"".join(records[start:])]
        case "reversed parts":
            cuts = sorted(rng.sample(range(1, len(records)), 3))
            pieces = [
                records[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)
            ]
            parts = [capture[:HEADER] + b"".join(piece) for piece in pieces[::-1]]
        case "snapped":
            parts = [snapped(name, rng.randrange(80, 400))]
        case "spoiled":
            bad = bytearray(capture)
            for _ in range(40):
                bad[rng.randrange(len(bad) // 2, len(bad))] ^= 1 << rng.randrange(8)
            parts = [bytes(bad)]
    each = Sample(name, parts, 0, {}, 0)
    sources = open_sources(list(written(each, tmp_path).values()), rotated=True)
    adds_up(list(sources), sources.account)
